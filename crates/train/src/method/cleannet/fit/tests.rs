//! The loss and the gradients of the encoders against plain loops in f64, and what they learn.

use super::*;

const WIDTH: usize = 3;

fn settings() -> recipe::CleanNet {
    recipe::CleanNet {
        verified: String::new(),
        after: 1,
        refresh: 1,
        references: 2,
        hidden: 5,
        embedding: 4,
        margin: 0.1,
        wrong_weight: 5.0,
        unverified_weight: 0.3,
        reconstruction_weight: 0.2,
        batch: 16,
        steps: 400,
        rate: 0.01,
    }
}

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let words = split_mix(seed).take(count);
    words.map(|word| (word >> 40) as f32 / (1u64 << 22) as f32 - 2.0).collect()
}

/// Weights by the name of their tensor, in f64.
type Wide = std::collections::BTreeMap<String, Vec<f64>>;

fn wide(tensors: &[NamedTensor]) -> Wide {
    let numbers =
        |tensor: &NamedTensor| tensor.values.read().iter().map(|it| f64::from(*it)).collect();
    tensors.iter().map(|tensor| (tensor.name.clone(), numbers(tensor))).collect()
}

fn dense(weights: &Wide, layer: &str, input: &[f64]) -> Vec<f64> {
    let (weight, bias) = (&weights[&format!("{layer}.weight")], &weights[&format!("{layer}.bias")]);
    let output = |at: usize| -> f64 {
        let terms = input.iter().enumerate().map(|(row, x)| x * weight[row * bias.len() + at]);
        terms.sum::<f64>() + bias[at]
    };
    (0..bias.len()).map(output).collect()
}

fn tanh(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(f64::tanh).collect()
}

fn row(features: &[f32], at: usize) -> Vec<f64> {
    features[at * WIDTH..][..WIDTH].iter().map(|value| f64::from(*value)).collect()
}

fn class_embedding(weights: &Wide, references: &References, class: usize) -> Vec<f64> {
    let of_row = |at: usize| {
        let lower = tanh(dense(weights, "reference", &row(&references.rows, at)));
        let upper = tanh(dense(weights, "reference_upper", &lower));
        let attention = tanh(dense(weights, "attention", &upper));
        (upper, dense(weights, "context", &attention)[0].exp())
    };
    let rows: Vec<(Vec<f64>, f64)> = references.of(class).map(of_row).collect();
    let total: f64 = rows.iter().map(|(_, odds)| odds).sum();
    let pooled: Vec<f64> = (0..rows[0].0.len())
        .map(|at| rows.iter().map(|(upper, odds)| odds / total * upper[at]).sum())
        .collect();
    tanh(dense(weights, "class", &pooled))
}

/// The loss of some examples. `held` are the cosines that decide which unverified labels are taken
/// for right.
fn formula(
    task: &Task<'_>,
    weights: &Wide,
    queries: &[Query],
    held: Option<&[f64]>,
) -> (f64, Vec<f64>) {
    let recipe::CleanNet { margin, wrong_weight, unverified_weight, reconstruction_weight, .. } =
        *task.settings;
    let verified = queries.iter().filter(|query| query.judgement.is_some()).count();
    let (mut loss, mut cosines) = (0.0, vec![]);
    for (at, query) in queries.iter().enumerate() {
        let input = row(task.features, query.example);
        let phi_q = tanh(dense(weights, "query_upper", &tanh(dense(weights, "query", &input))));
        let middle = tanh(dense(weights, "decoder", &phi_q));
        let decoded = dense(weights, "decoder_upper", &middle);
        let class = task.labels[query.example] as usize;
        let phi_s = class_embedding(weights, &task.references, class);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine =
            product(&phi_q, &phi_s) / (product(&phi_q, &phi_q) * product(&phi_s, &phi_s)).sqrt();
        let right = query.judgement.unwrap_or(held.map_or(cosine, |held| held[at]) >= margin);
        let own = if right { 1.0 - cosine } else { wrong_weight * (cosine - margin).max(0.0) };
        loss += match query.judgement {
            Some(_) => own / verified as f64,
            None => unverified_weight * own / (queries.len() - verified) as f64,
        };
        let errors = decoded.iter().zip(&input).map(|(a, b)| (a - b).powi(2));
        let count = (queries.len() * WIDTH) as f64;
        loss += reconstruction_weight * errors.sum::<f64>() / count;
        cosines.push(cosine);
    }
    (loss, cosines)
}

#[test]
fn the_loss_and_its_gradients_are_those_of_the_formula() {
    let settings = settings();
    let features = numbers(12 * WIDTH, 3);
    let labels: Vec<u32> = (0..12).map(|at| at % 3).collect();
    let verified: Vec<(usize, bool)> = (0..6).map(|at| (at, at < 3)).collect();
    let task = Task::new(&settings, &features, &labels, 4, &verified, (1, 2));
    let tensors = fresh(task.sizes, words((1, 2), Use::Weights));
    let queries: Vec<Query> = (0..10)
        .map(|example| Query { example, judgement: verified.get(example).map(|(_, right)| *right) })
        .collect();
    let encoders = Encoders { sizes: task.sizes, tensors: &tensors };
    let (found, gradients) = task.loss(encoders, &queries);
    let (expected, held) = formula(&task, &wide(&tensors), &queries, None);
    // f32 sums of numbers about one.
    assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    let is_idle = |(query, cosine): &(&Query, &f64)| {
        query.judgement == Some(false) && **cosine < settings.margin
    };
    let idle = queries.iter().zip(&held).filter(is_idle).count();
    assert!(idle < 3, "some wrong label must be too similar to its class: {held:?}");
    for (tensor, gradient) in tensors.iter().zip(gradients.into_values()) {
        for (at, slope) in gradient.read().iter().enumerate() {
            let moved = |by: f64| {
                let mut weights = wide(&tensors);
                weights.get_mut(&tensor.name).unwrap()[at] += by;
                formula(&task, &weights, &queries, Some(&held)).0
            };
            let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let difference = (f64::from(*slope) - expected).abs();
            // f32 sums of numbers about one.
            assert!(difference < 2e-5, "{}[{at}]: {slope} {expected}", tensor.name);
        }
    }
}

/// Examples of three classes around places of their own; every third label is that of another class.
#[test]
fn labels_that_are_not_like_their_class_are_dissimilar() {
    let count = 600;
    let noise = numbers(count * WIDTH, 5);
    let truth = |at: usize| at % 3;
    let is_wrong = |at: usize| at % 10 < 3;
    let features: Vec<f32> = (0..count * WIDTH)
        .map(|at| if at % WIDTH == truth(at / WIDTH) { 1.5 } else { -0.5 } + 0.25 * noise[at])
        .collect();
    let labels: Vec<u32> =
        (0..count).map(|at| ((truth(at) + usize::from(is_wrong(at))) % 3) as u32).collect();
    let verified: Vec<(usize, bool)> =
        (0..count).step_by(4).map(|at| (at, !is_wrong(at))).collect();
    let settings = recipe::CleanNet { references: 6, hidden: 16, embedding: 8, ..settings() };
    let similarities = |random| {
        let task = Task::new(&settings, &features, &labels, 3, &verified, random);
        task.fit().similarities(&task)
    };
    let found = similarities((1, 5));
    let mean = |wrong: bool| {
        let of: Vec<f64> = (0..count)
            .filter(|at| !at.is_multiple_of(4) && is_wrong(*at) == wrong)
            .map(|at| f64::from(found[at].max(0.0)))
            .collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    // The groups hardly overlap: similarities are near 1, or below the margin.
    assert!(mean(false) > 0.8 && mean(true) < 0.2, "{} {}", mean(false), mean(true));
    assert_eq!(found, similarities((1, 5)));
    assert_ne!(found, similarities((1, 6)));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(found, pool.install(|| similarities((1, 5))), "threads change nothing");
}
