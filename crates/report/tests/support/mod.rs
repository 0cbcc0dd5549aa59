//! Run directories and audits of made-up numbers.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};

use aleator_metrics::{EVALUATION_FORMAT, Evaluation, LogProbs, SplitEvaluation, Truth};
use aleator_report::audit::{
    AnnotatorFinding, Answer, Audit, AuditSummary, ClassFinding, Estimate, Issue, Known,
    PairFinding,
};
use aleator_report::page::{Page, PageSettings, Picture, page};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Link, MetricsLog, Noise, Predictions, RunDir, RunInfo, Split,
    SplitCounts,
};
use serde_json::json;

/// Knuth's linear congruential generator; the tests need variety, not quality.
pub struct Random(pub u64);

impl Random {
    pub fn uniform(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }

    pub fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f32) as usize).min(count - 1)
    }
}

/// Classes that are alike.
const GROUP: usize = 40;

/// A run of made-up numbers.
pub struct Fixture {
    pub names: Vec<String>,
    pub examples: usize,
    pub rank: usize,
    pub link: Link,
    pub seed: u64,
    /// Whether classes share noise by their groups; otherwise by chance, by the seed.
    pub is_noise_learned: bool,
}

impl Fixture {
    pub fn of(names: &[&str]) -> Self {
        let names = names.iter().map(|name| name.to_string()).collect();
        Self { names, examples: 60, rank: 2, link: Link::Softmax, seed: 0, is_noise_learned: true }
    }

    pub fn numbered(classes: usize) -> Self {
        let names = (0..classes).map(|class| format!("class {class}")).collect();
        Self { names, ..Self::of(&[]) }
    }

    /// Writes a finished run.
    pub fn write(&self, path: &Path) -> RunDir {
        let info = RunInfo {
            format: FORMAT,
            version: "0.1.0".to_string(),
            seed: self.seed,
            fingerprint: "5d41402abc".to_string(),
            link: self.link,
            likelihood: Default::default(),
            noise: Noise::SharedLowRank { rank: self.rank },
            class_names: self.names.clone(),
            input_shape: vec![4],
            feature_names: None,
            examples: SplitCounts {
                train: self.examples,
                validation: self.examples,
                test: self.examples,
            },
            set_aside: vec![],
            pretrained: None,
        };
        let recipe = "summary = \"made up </pre><script>alert(2)</script>\"\n".to_string();
        let run = RunDir::create(path, &CreateRun { recipe, info }).expect("a run");
        let mut random = Random(self.seed + 1);
        let mut rows = vec![];
        let mut evaluated = vec![];
        for split in Split::ALL {
            let truths: Vec<usize> =
                (0..self.examples).map(|_| random.below(self.names.len())).collect();
            let labels: Vec<u32> =
                truths.iter().map(|truth| self.label(*truth, &mut random)).collect();
            for (at, (label, truth)) in labels.iter().zip(&truths).enumerate() {
                let id = format!("{}/{at}", split.name());
                let (label, clean_label) = (Some(vec![*label]), Some(vec![*truth as u32]));
                rows.push(ExampleRow { id, split, label, clean_label });
            }
            if split != Split::Train {
                let predictions = self.predictions(&truths, &mut random);
                predictions.save(&run.predictions_path(split)).expect("predictions");
                evaluated.push(self.evaluated(predictions, labels, &truths));
            }
        }
        run.write_examples(rows).expect("examples");
        self.write_log(&run);
        let test = evaluated.pop();
        let evaluation = Evaluation {
            format: EVALUATION_FORMAT,
            weights: "last".to_string(),
            step: Some(40),
            class_names: self.names.clone(),
            calibration: None,
            true_class: None,
            validation: evaluated.pop().expect("two splits"),
            test,
            other_weights: None,
        };
        run.write_json("evaluation.json", &evaluation).expect("an evaluation");
        run
    }

    /// Mostly the truth, else the next class.
    fn label(&self, truth: usize, random: &mut Random) -> u32 {
        let wrong = random.uniform() < 0.2;
        (if wrong { (truth + 1) % self.names.len() } else { truth }) as u32
    }

    fn predictions(&self, truths: &[usize], random: &mut Random) -> Predictions {
        let classes = self.names.len();
        let mut mean = vec![];
        for truth in truths {
            for class in 0..classes {
                let many = (classes as f32).ln();
                let hit = if class == *truth { 1.5 + many } else { 0.0 };
                let near = if class == (truth + 1) % classes { 0.5 * many } else { 0.0 };
                let group = if class / GROUP == truth / GROUP { 0.8 } else { 0.0 };
                mean.push(hit + near + group + random.uniform());
            }
        }
        let rows = mean.chunks_exact(classes);
        let log_probs = rows.flat_map(|row| match self.link {
            Link::Softmax => {
                let total: f32 = row.iter().map(|value| value.exp()).sum();
                row.iter().map(|value| value - total.ln()).collect::<Vec<f32>>()
            }
            Link::Sigmoid => row.iter().map(|value| -(1.0 + (2.0 - value).exp()).ln()).collect(),
        });
        let log_probs: Vec<f32> = log_probs.collect();
        let log_probs_off = (self.link == Link::Sigmoid)
            .then(|| log_probs.iter().map(|log_p| (-log_p.exp()).ln_1p()).collect());
        Predictions {
            classes,
            rank: self.rank,
            temperature: 1.0,
            log_probs,
            log_probs_off,
            diag_scale: Some(vec![0.5; mean.len()]),
            loadings: None,
            loading_scale: Some((0..mean.len()).map(|_| 0.5 + random.uniform()).collect()),
            shared_loadings: Some(self.shared_loadings()),
            joint_log_probs: None,
            mean,
        }
    }

    /// Classes of one group share their noise; the next one stands against it.
    fn shared_loadings(&self) -> Vec<f32> {
        if !self.is_noise_learned {
            let mut random = Random(100 + self.seed);
            return (0..self.names.len() * self.rank).map(|_| random.uniform() - 0.5).collect();
        }
        let mut random = Random(11);
        let groups = self.names.len().div_ceil(GROUP);
        let of_group: Vec<f32> = (0..groups * self.rank).map(|_| random.uniform() - 0.5).collect();
        let loading = |at: usize| {
            let (class, factor) = (at / self.rank, at % self.rank);
            of_group[class / GROUP * self.rank + factor] + 0.4 * (random.uniform() - 0.5)
        };
        (0..self.names.len() * self.rank).map(loading).collect()
    }

    fn evaluated(
        &self,
        predictions: Predictions,
        labels: Vec<u32>,
        truths: &[usize],
    ) -> SplitEvaluation {
        let log_probs = LogProbs {
            classes: self.names.len(),
            on: predictions.log_probs,
            off: predictions.log_probs_off,
        };
        let clean = Truth::Classes(truths.iter().map(|truth| *truth as u32).collect());
        SplitEvaluation::new(&log_probs, &Truth::Classes(labels), Some(&clean), None)
    }

    fn write_log(&self, run: &RunDir) {
        let mut log = MetricsLog::create(&run.metrics_path()).expect("a log");
        for step in 1..=40 {
            let loss = 2.0 / step as f64 + 0.1 * self.seed as f64;
            let line = json!({"step": step, "loss": loss, "learning_rate": 0.1 / step as f64});
            log.append(&line).expect("a line");
            if step % 10 == 0 {
                let nll = 1.0 + 1.0 / step as f64;
                let line = json!({"step": step, "validation_nll": nll, "validation_top1": null});
                log.append(&line).expect("a line");
            }
        }
    }
}

/// Several runs with `group.json`.
pub fn write_group(folder: &Path, kind: &str, members: &[(&str, Fixture)]) {
    let member = |(name, fixture): &(&str, Fixture)| {
        fixture.write(&folder.join(name));
        json!({"name": name, "seed": fixture.seed, "recipe": ""})
    };
    let members: Vec<serde_json::Value> = members.iter().map(member).collect();
    let group = json!({"format": 1, "version": "0.1.0", "kind": kind, "members": members});
    std::fs::write(folder.join("group.json"), group.to_string()).expect("a group");
}

/// An audit of made-up numbers.
pub fn audit(names: &[String], issues: usize) -> Audit {
    let classes = names.len() as u32;
    let issue = |at: usize| Issue {
        id: format!("img/{at}.png"),
        path: Some(PathBuf::from(format!("/gone/{at}.png"))),
        given: Answer::Class(at as u32 % classes),
        suggested: Answer::Class((at as u32 + 1) % classes),
        given_probability: 0.05,
        suggested_probability: 0.9,
        score: 1.0 - at as f64 / issues as f64,
        wrong: true,
        covariance: Some(-0.3),
        correlation: Some(-0.5),
        truth: Some(Answer::Class((at as u32 + 1) % classes)),
    };
    let class = |class: u32| ClassFinding {
        class,
        given: 10,
        expected: 9.5,
        noise_rate: 0.1 + class as f64 / 1e4,
        missed_rate: 0.05,
        known_noise_rate: Some(0.12),
        confused_with: vec![((class + 1) % classes, 0.1)],
    };
    let pair = |class: u32| PairFinding {
        given: class,
        truth: (class + 1) % classes,
        count: 3.0,
        flip_probability: Some(0.2),
        covariance: Some(-0.3),
        correlation: Some(-0.5),
    };
    let annotator = |at: usize| AnnotatorFinding {
        name: format!("annotator {at}"),
        annotations: 100,
        error_rate: 0.1 * at as f64,
        error_rate_bounds: [0.0, 0.2 * at as f64],
        new_error_rate: 0.1,
        new_error_rate_bounds: [0.05, 0.2],
        known_error_rate: None,
        confuses: vec![(0, 1 % classes, 4.0)],
    };
    Audit {
        summary: AuditSummary {
            format: AuditSummary::FORMAT,
            version: "0.1.0".to_string(),
            link: Link::Softmax,
            noise: Noise::LowRank { rank: 2 },
            fingerprint: "5d41402abc".to_string(),
            class_names: names.to_vec(),
            folds: 5,
            checkpoint: None,
            score: "posterior".to_string(),
            examples: 12_345,
            labels: 12_345,
            wrong: Estimate { count: 1234.0, low: 1100.0, high: 1350.0 },
            comparison: None,
            known: Some(Known {
                wrong: 1200,
                auroc: 0.961,
                average_precision: 0.812,
                suggestions_right: 0.8,
            }),
            settings: None,
            self_confidence: None,
            annotator_concentration: None,
            files: None,
        },
        issues: (0..issues).map(issue).collect(),
        classes: (0..classes).map(class).collect(),
        pairs: (0..classes).map(pair).collect(),
        annotators: (0..3).map(annotator).collect(),
        consensus: vec![],
        examples: vec![],
        lists: Default::default(),
    }
}

pub const SETTINGS: PageSettings = PageSettings { suspects: 20, ambiguous: 6 };

/// The page of directories, without pictures.
pub fn plain(dirs: &[PathBuf]) -> Page {
    page(dirs, &SETTINGS, &mut |_| Picture::None).unwrap_or_else(|error| panic!("{error}"))
}
