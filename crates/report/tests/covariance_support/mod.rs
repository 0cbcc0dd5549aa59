//! Random predictions of every noise model as run directories, and what they mean in plain f64.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ops::Range;
use std::path::PathBuf;

use aleator_metrics::probability_above_zero;
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Link, Noise, Predictions, RunDir, RunInfo, Split, SplitCounts,
};
use tempfile::TempDir;

/// A run whose test split holds some predictions.
pub struct Case {
    folder: TempDir,
    pub predictions: Predictions,
    pub examples: Vec<ExampleRow>,
    pub info: RunInfo,
}

pub fn names(classes: usize) -> Vec<String> {
    (0..classes).map(|class| format!("class {class}")).collect()
}

impl Case {
    pub fn new(noise: Noise, examples: usize, classes: usize, seed: u64) -> Self {
        Self::of(random(noise, examples, classes, seed), noise, Link::Softmax)
    }

    /// Labels are classes in turn.
    pub fn of(predictions: Predictions, noise: Noise, link: Link) -> Self {
        let (count, classes) = (predictions.examples(), predictions.classes);
        let row = |at: usize| ExampleRow {
            id: format!("example {at}"),
            split: Split::Test,
            label: Some(vec![(at % classes) as u32]),
            clean_label: None,
        };
        let info = RunInfo {
            format: FORMAT,
            version: "0.1.0".to_string(),
            seed: 0,
            fingerprint: "5d41".to_string(),
            link,
            likelihood: Default::default(),
            noise,
            class_names: names(classes),
            input_shape: vec![4],
            feature_names: None,
            examples: SplitCounts { train: 0, validation: 0, test: count },
            set_aside: vec![],
            pretrained: None,
        };
        let examples = (0..count).map(row).collect();
        Self { folder: tempfile::tempdir().unwrap(), predictions, examples, info }
    }

    pub fn dir(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// Writes the directory.
    pub fn run(&self) -> RunDir {
        let create = CreateRun { recipe: String::new(), info: self.info.clone() };
        let run = RunDir::create(&self.dir(), &create).unwrap();
        run.write_examples(self.examples.clone()).unwrap();
        self.predictions.save(&run.predictions_path(Split::Test)).unwrap();
        run
    }
}

/// Some rows of predictions.
pub fn rows(all: &Predictions, rows: Range<usize>) -> Predictions {
    let part =
        |values: &Vec<f32>, width: usize| values[rows.start * width..rows.end * width].to_vec();
    let (k, r) = (all.classes, all.rank);
    let some = |values: &Option<Vec<f32>>, width: usize| values.as_ref().map(|it| part(it, width));
    Predictions {
        log_probs: part(&all.log_probs, k),
        log_probs_off: some(&all.log_probs_off, k),
        mean: part(&all.mean, k),
        diag_scale: some(&all.diag_scale, k),
        loadings: some(&all.loadings, k * r),
        loading_scale: some(&all.loading_scale, k),
        joint_log_probs: some(&all.joint_log_probs, 1),
        ..all.clone()
    }
}

/// Numbers in (−1, 1) from a linear congruence.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn take(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

pub fn random(noise: Noise, examples: usize, classes: usize, seed: u64) -> Predictions {
    let mut numbers = Numbers(seed);
    let cells = examples * classes;
    let mean: Vec<f32> = numbers.take(cells).iter().map(|value| 2.0 * value).collect();
    let mut made = Predictions {
        classes,
        rank: 0,
        temperature: 0.7,
        log_probs: mean.iter().map(|value| value - 5.0).collect(),
        log_probs_off: None,
        mean,
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    };
    if noise != Noise::None {
        made.diag_scale = Some(numbers.take(cells).iter().map(|value| 0.5 + 0.3 * value).collect());
    }
    match noise {
        Noise::None | Noise::Diagonal => {}
        Noise::LowRank { rank } | Noise::OnFeatures { rank } => {
            made.rank = rank;
            made.loadings = Some(numbers.take(cells * rank));
        }
        Noise::SharedLowRank { rank } => {
            made.rank = rank;
            made.loading_scale = Some(numbers.take(cells).iter().map(|v| 0.6 + v).collect());
            made.shared_loadings = Some(numbers.take(classes * rank));
        }
    }
    made
}

/// Σ(x) of one example, `[K, K]`.
pub fn dense(predictions: &Predictions, example: usize) -> Vec<f64> {
    let (k, r) = (predictions.classes, predictions.rank);
    let loading = |class: usize, factor: usize| {
        let at = example * k + class;
        match (&predictions.loadings, &predictions.loading_scale, &predictions.shared_loadings) {
            (Some(loadings), _, _) => loadings[at * r + factor] as f64,
            (_, Some(scale), Some(shared)) => scale[at] as f64 * shared[class * r + factor] as f64,
            _ => 0.0,
        }
    };
    let diag = predictions.diag_scale.as_ref().unwrap();
    let mut out = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..k {
            out[i * k + j] = (0..r).map(|factor| loading(i, factor) * loading(j, factor)).sum();
        }
        out[i * k + i] += (diag[example * k + i] as f64).powi(2);
    }
    out
}

/// C Σ C.
pub fn centred(matrix: &[f64], k: usize) -> Vec<f64> {
    let centre = |i: usize, j: usize| f64::from(u8::from(i == j)) - 1.0 / k as f64;
    let product = |a: &dyn Fn(usize, usize) -> f64, b: &dyn Fn(usize, usize) -> f64| {
        let mut out = vec![0.0; k * k];
        for i in 0..k {
            for j in 0..k {
                out[i * k + j] = (0..k).map(|m| a(i, m) * b(m, j)).sum();
            }
        }
        out
    };
    let left = product(&centre, &|i, j| matrix[i * k + j]);
    product(&|i, j| left[i * k + j], &centre)
}

/// The mean of Σ(x).
pub fn average(predictions: &Predictions) -> Vec<f64> {
    let (n, k) = (predictions.examples(), predictions.classes);
    let mut sum = vec![0.0; k * k];
    for example in 0..n {
        sum.iter_mut().zip(dense(predictions, example)).for_each(|(sum, value)| *sum += value);
    }
    sum.iter().map(|sum| sum / n as f64).collect()
}

pub fn correlation(centred: &[f64], k: usize, i: usize, j: usize) -> f64 {
    centred[i * k + j] / (centred[i * k + i] * centred[j * k + j]).sqrt()
}

/// The mean of P(u_to > u_from) over the examples whose largest mean is `from`.
pub fn flip(predictions: &Predictions, from: usize, to: usize) -> Option<f64> {
    let k = predictions.classes;
    let mut all = vec![];
    for (example, mean) in predictions.mean.chunks_exact(k).enumerate() {
        if (0..k).all(|class| class == from || mean[class] < mean[from]) {
            let sigma = dense(predictions, example);
            let variance = sigma[from * k + from] + sigma[to * k + to] - 2.0 * sigma[from * k + to];
            all.push(probability_above_zero(mean[to] as f64 - mean[from] as f64, variance));
        }
    }
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}
