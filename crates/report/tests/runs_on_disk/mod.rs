//! Run directories with chosen numbers, as the training leaves them.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use aleator_metrics::{EVALUATION_FORMAT, Evaluation, SplitEvaluation, Summary};
use aleator_report::compare::{CompareError, Row, Settings, Source, Test, Wanted, compare};
use aleator_report::table::Table;
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, GroupFile, GroupKind, GroupMember, Link, Noise, RunDir, RunInfo,
    Split, SplitCounts,
};
use tempfile::TempDir;

/// A folder of runs.
pub struct Place(TempDir);

/// A run, to be changed before it is written.
#[derive(Clone)]
pub struct Made {
    pub info: RunInfo,
    pub evaluation: Evaluation,
    pub examples: Vec<ExampleRow>,
}

impl Made {
    /// With these on the test split; on the validation split both are a tenth worse.
    pub fn new(seed: u64, top1: f64, nll: f64) -> Self {
        let given = summary(top1, nll);
        let split = |given| SplitEvaluation { given, clean: None, calibrated: None };
        let class_names: Vec<String> = ["cat", "dog", "fox"].map(String::from).to_vec();
        let example = |id: &str, split| ExampleRow {
            id: id.to_string(),
            split,
            label: Some(vec![0]),
            clean_label: None,
        };
        Self {
            info: RunInfo {
                format: FORMAT,
                version: "0.1.0".to_string(),
                seed,
                fingerprint: "5d41".to_string(),
                link: Link::Softmax,
                likelihood: Default::default(),
                noise: Noise::None,
                class_names: class_names.clone(),
                input_shape: vec![4],
                feature_names: None,
                examples: SplitCounts { train: 1, validation: 2, test: 2 },
                set_aside: vec![],
                pretrained: None,
            },
            evaluation: Evaluation {
                format: EVALUATION_FORMAT,
                weights: "best".to_string(),
                step: Some(10),
                class_names,
                calibration: None,
                true_class: None,
                validation: split(summary(top1 - 0.1, nll + 0.1)),
                test: Some(split(given)),
                other_weights: None,
            },
            examples: vec![
                example("t", Split::Train),
                example("v0", Split::Validation),
                example("v1", Split::Validation),
                example("w0", Split::Test),
                example("w1", Split::Test),
            ],
        }
    }

    pub fn test(&mut self) -> &mut SplitEvaluation {
        self.evaluation.test.as_mut().expect("a test split")
    }

    pub fn write(&self, path: &Path) {
        let create = CreateRun { recipe: String::new(), info: self.info.clone() };
        let run = RunDir::create(path, &create).unwrap();
        run.write_examples(self.examples.clone()).unwrap();
        run.write_json("evaluation.json", &self.evaluation).unwrap();
    }
}

/// The other measures follow from the NLL, as far as it is finite.
pub fn summary(top1: f64, nll: f64) -> Summary {
    let error = nll.min(2.0);
    Summary {
        examples: 2,
        top1,
        top5: None,
        nll,
        brier: error / 2.0,
        ece: error / 10.0,
        gap: None,
        gap_error: None,
        mean_ap: None,
        mean_ap_error: None,
        subset_accuracy: None,
        per_class: vec![],
        reliability: vec![],
    }
}

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A folder of seeds, with (top-1, NLL) of each.
    pub fn seeds(&self, name: &str, values: &[(f64, f64)]) {
        self.seeds_with(name, values, |_| ());
    }

    pub fn seeds_with(&self, name: &str, values: &[(f64, f64)], change: impl Fn(&mut Made)) {
        let mut members = vec![];
        for (seed, (top1, nll)) in (0..).zip(values) {
            let mut made = Made::new(seed, *top1, *nll);
            change(&mut made);
            let member = format!("seed-{seed}");
            made.write(&self.path(name).join(&member));
            members.push(member);
        }
        self.group(name, GroupKind::Seeds, &members);
    }

    /// The `group.json` of a folder whose members are of seeds 0, 1, ….
    pub fn group(&self, name: &str, kind: GroupKind, members: &[String]) {
        let member = |(seed, name): (u64, &String)| GroupMember {
            name: name.clone(),
            seed,
            recipe: String::new(),
        };
        fs::create_dir_all(self.path(name)).unwrap();
        let members = (0..).zip(members).map(member).collect();
        GroupFile::new(kind, members).save(&self.path(name)).unwrap();
    }

    pub fn rows(&self, names: &[&str]) -> Result<Vec<Row>, CompareError> {
        Row::read(&names.iter().map(|name| self.source(name)).collect::<Vec<_>>())
    }

    /// `NAME=DIR` or `DIR`.
    pub fn source(&self, text: &str) -> Source {
        match text.split_once('=') {
            Some((name, dir)) => Source { name: Some(name.to_string()), dir: self.path(dir) },
            None => Source { name: None, dir: self.path(text) },
        }
    }

    pub fn compare(&self, names: &[&str]) -> Result<Table, CompareError> {
        compare(&self.rows(names)?, &DEFAULT)
    }

    /// The message of a comparison that is refused.
    #[track_caller]
    pub fn refused(&self, names: &[&str], settings: &Settings, words: &[&str]) {
        let table = self.rows(names).and_then(|rows| compare(&rows, settings));
        let message = table.unwrap_err().to_string();
        for word in words {
            assert!(message.contains(word), "{message} lacks {word:?}");
        }
    }
}

/// What `aleator compare` does without options.
pub const DEFAULT: Settings = Settings {
    wanted: Wanted { split: None, labels: None, calibrated: false },
    measures: None,
    test: Test::PairedBySeed,
    weights: None,
};
