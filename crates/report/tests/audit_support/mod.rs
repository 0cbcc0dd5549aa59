//! The folds of an audit whose truth is known, made by hand.

use std::path::PathBuf;

use aleator_report::audit::{Source, SourceExample};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Link, Noise, Predictions, RunDir, RunInfo, Split, SplitCounts,
};
use tempfile::TempDir;

pub const CLASSES: usize = 4;
pub const EXAMPLES: usize = 600;
pub const FOLDS: usize = 3;

/// A number between 0 and 1 for every (purpose, example, class): SplitMix64.
pub fn uniform(purpose: u64, example: usize, class: usize) -> f64 {
    let mut z = purpose
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((example * CLASSES + class) as u64)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 30)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z = (z ^ (z >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

pub fn truth(example: usize) -> u32 {
    (example % CLASSES) as u32
}

/// One in five labels of class 0 is 1, and one in twenty of the others the class before it.
pub fn given(example: usize) -> u32 {
    let (truth, draw) = (truth(example), uniform(1, example, 0));
    match truth {
        0 if draw < 0.2 => 1,
        1.. if draw < 0.05 => truth - 1,
        _ => truth,
    }
}

pub struct Folds {
    folder: TempDir,
    pub source: Source,
}

impl Folds {
    pub fn new() -> Self {
        let example = |number: usize| SourceExample {
            id: number.to_string(),
            label: vec![given(number)],
            path: Some(PathBuf::from(format!("images/{number}.png"))),
            votes: vec![],
        };
        let source = Source { examples: (0..EXAMPLES).map(example).collect(), annotators: vec![] };
        let folds = Self { folder: tempfile::tempdir().unwrap(), source };
        (0..FOLDS).for_each(|fold| folds.write(fold));
        folds
    }

    pub fn dirs(&self) -> Vec<PathBuf> {
        (0..FOLDS).map(|fold| self.folder.path().join(format!("fold-{fold}"))).collect()
    }

    pub fn out(&self) -> PathBuf {
        let out = self.folder.path().join("out");
        std::fs::create_dir_all(&out).unwrap();
        out
    }

    /// Every third example, in an order of its own.
    pub fn members(fold: usize) -> Vec<usize> {
        (0..EXAMPLES).rev().filter(|example| example % FOLDS == fold).collect()
    }

    fn write(&self, fold: usize) {
        let members = Self::members(fold);
        let counts =
            SplitCounts { train: EXAMPLES - members.len(), validation: 1, test: members.len() };
        let info = RunInfo {
            format: FORMAT,
            version: "0.1.0".to_string(),
            seed: 0,
            fingerprint: "5d41".to_string(),
            link: Link::Softmax,
            likelihood: Default::default(),
            noise: Noise::LowRank { rank: 1 },
            class_names: ["=cat", "dog", "<b>fox</b>", "owl"].map(String::from).to_vec(),
            input_shape: vec![4],
            feature_names: None,
            examples: counts,
            set_aside: vec![],
            pretrained: None,
        };
        let create = CreateRun { recipe: "summary = \"x\"\n".to_string(), info };
        let run = RunDir::create(&self.dirs()[fold], &create).unwrap();
        let row = |example: &usize| ExampleRow {
            id: example.to_string(),
            split: Split::Test,
            label: Some(vec![given(*example)]),
            clean_label: Some(vec![truth(*example)]),
        };
        run.write_examples(members.iter().map(row)).unwrap();
        predictions(&members).save(&run.predictions_path(Split::Test)).unwrap();
    }
}

/// A model that is mostly right, and whose noise ties classes 0 and 1.
pub fn predictions(members: &[usize]) -> Predictions {
    let mean: Vec<f32> = members
        .iter()
        .flat_map(|example| {
            (0..CLASSES).map(|class| {
                let own = if truth(*example) as usize == class { 3.0 } else { 0.0 };
                (own + 2.0 * uniform(2, *example, class)) as f32
            })
        })
        .collect();
    let log_probs = mean.chunks_exact(CLASSES).flat_map(|row| {
        let sum: f32 = row.iter().map(|mean| (0.7 * mean).exp()).sum();
        row.iter().map(move |mean| 0.7 * mean - sum.ln()).collect::<Vec<f32>>()
    });
    Predictions {
        classes: CLASSES,
        rank: 1,
        temperature: 1.0,
        log_probs: log_probs.collect(),
        log_probs_off: None,
        diag_scale: Some(vec![0.1; mean.len()]),
        loadings: Some(members.iter().flat_map(|_| [1.0, -1.0, 0.0, 0.0]).collect()),
        mean,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    }
}
