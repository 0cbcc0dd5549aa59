//! The rules of the optimizer against the same rules in f64, and against PyTorch.

use aleator_model::params::{Live, Parameter, Values};
use aleator_run::recipe::{Moments, Optimizer as Settings, Rule, WeightDecay};
use aleator_train::{Group, Layer, Optimizer};

const START: [f64; 3] = [0.5, -1.25, 2.0];
const GRADIENTS: [[f64; 3]; 4] =
    [[0.3, -0.2, 1.0], [-0.1, 0.4, 0.5], [0.25, 0.05, -2.0], [0.6, -0.7, 0.1]];
const RATE: f64 = 0.1;
const DECAY: f64 = 0.01;
const MOMENTS: Moments = Moments { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 };

/// Every rule, and where PyTorch 2.15 comes to by
///
/// ```python
/// import torch
/// from torch.optim import SGD, Adam, AdamW
/// torch.set_default_dtype(torch.float64)
/// def run(rule, **settings):
///     w = torch.nn.Parameter(torch.tensor([0.5, -1.25, 2.0]))
///     optimizer = rule([w], lr=0.1, weight_decay=0.01, **settings)
///     for g in GRADIENTS:
///         w.grad = torch.tensor(g)
///         optimizer.step()
///     print(w.tolist())
/// run(SGD)
/// run(SGD, momentum=0.9)
/// run(SGD, momentum=0.9, nesterov=True)
/// run(Adam, betas=(0.9, 0.99))
/// run(AdamW, betas=(0.9, 0.99))
/// ```
const RULES: [(Rule, [f64; 3]); 5] = [
    (
        Rule::Sgd { momentum: 0.0, nesterov: false },
        [0.3930979180305, -1.1999824750212498, 2.032211642102],
    ),
    (
        Rule::Sgd { momentum: 0.9, nesterov: false },
        [0.31217015068049997, -1.2178495551462503, 1.8734220267019999],
    ),
    (
        Rule::Sgd { momentum: 0.9, nesterov: true },
        [0.22433091955432907, -1.171048693765557, 1.9191512216326743],
    ),
    (Rule::Adam(MOMENTS), [0.21581164265552688, -1.1784322356112213, 1.838303934134567]),
    (Rule::AdamW(MOMENTS), [0.21726923246013075, -1.1838384063769214, 1.834062519775396]),
];

/// One number through all steps, in f64, as the rules are written in papers.
fn reference(rule: Rule, start: f64, gradients: impl Iterator<Item = f64>) -> f64 {
    let (mut w, mut m, mut v) = (start, 0.0, 0.0);
    for (step, gradient) in (1..).zip(gradients) {
        match rule {
            Rule::Sgd { momentum, nesterov } => {
                let g = gradient + DECAY * w;
                m = momentum * m + g;
                w -= RATE * if nesterov { g + momentum * m } else { m };
            }
            Rule::Adam(moments) | Rule::AdamW(moments) => {
                let decoupled = matches!(rule, Rule::AdamW(_));
                let g = gradient + if decoupled { 0.0 } else { DECAY * w };
                m = moments.beta1 * m + (1.0 - moments.beta1) * g;
                v = moments.beta2 * v + (1.0 - moments.beta2) * g * g;
                let m_hat = m / (1.0 - moments.beta1.powi(step));
                let v_hat = v / (1.0 - moments.beta2.powi(step));
                let shrunk = if decoupled { w - RATE * DECAY * w } else { w };
                w = shrunk - RATE * m_hat / (v_hat.sqrt() + moments.epsilon);
            }
            Rule::Lbfgs { .. } => panic!("it is tested on objectives, next to its code"),
        }
    }
    w
}

fn settings(rule: Rule, clip_norm: Option<f64>) -> Settings {
    let l2 = WeightDecay::of_all(DECAY);
    Settings { rule, learning_rate: RATE, network_rate: None, clip_norm, l2 }
}

/// A rule for these parameters that has made no update.
fn optimizer_of(settings: &Settings, parameters: &[Parameter], frozen: bool) -> Optimizer {
    let mut optimizer = Optimizer::new(settings, frozen);
    for Parameter { name, shape, values } in parameters {
        optimizer.add(name, shape, &Values::from(values.clone()));
    }
    optimizer
}

fn move_by(
    optimizer: &mut Optimizer,
    parameters: &mut [Parameter],
    gradients: &[Parameter],
    rate: f64,
) {
    let gradients: Vec<Values> =
        gradients.iter().map(|gradient| Values::from(gradient.values.clone())).collect();
    let mut step = optimizer.step(&gradients, 1.0, rate);
    for (index, Parameter { name, shape, values }) in parameters.iter_mut().enumerate() {
        let mut moved = Values::from(std::mem::take(values));
        step.apply(index, Live { name, shape, values: &mut moved });
        *values = moved.read().into_owned();
    }
}

fn parameter(name: &str, shape: &[usize], values: &[f64]) -> Parameter {
    let values = values.iter().map(|value| *value as f32).collect();
    Parameter { name: name.to_string(), shape: shape.to_vec(), values }
}

fn mean_weight(values: &[f64]) -> Parameter {
    parameter("output.head.mean.weight", &[1, values.len()], values)
}

#[test]
fn the_reference_equals_pytorch() {
    for (rule, torch) in RULES {
        for (at, expected) in torch.iter().enumerate() {
            let found = reference(rule, START[at], GRADIENTS.iter().map(|row| row[at]));
            assert!((found - expected).abs() < 1e-12, "{rule:?}: {found} for {expected}");
        }
    }
}

#[test]
fn every_rule_equals_the_reference_after_each_step() {
    for (rule, _) in RULES {
        let mut parameters = [mean_weight(&START)];
        let mut optimizer = optimizer_of(&settings(rule, None), &parameters, false);
        for step in 1..=GRADIENTS.len() {
            let gradient = mean_weight(&GRADIENTS[step - 1]);
            move_by(&mut optimizer, &mut parameters, &[gradient], RATE);
            assert_eq!(optimizer.updates(), step as u64);
            for (at, found) in parameters[0].values.iter().enumerate() {
                let gradients = GRADIENTS.iter().take(step).map(|row| row[at]);
                let expected = reference(rule, START[at], gradients);
                // A few roundings of numbers near 1; 1 − β₂ in f32 is off by 1e-6 of itself.
                assert!((*found as f64 - expected).abs() < 2e-6, "{rule:?}: {found}, {expected}");
            }
        }
    }
}

/// Deviation D14: every layer has a λ of its own. Deviation D20: biases are decayed where the recipe
/// says so.
#[test]
fn each_layer_has_its_own_decay_and_biases_have_it_where_the_recipe_says_so() {
    let names: [(&str, &[usize], Group); 15] = [
        ("network.Image.stem.norm.running_mean", &[2], Group::Fixed),
        ("network.Image.stem.norm.scale", &[2], Group::Undecayed),
        ("network.Image.stem.norm.shift", &[2], Group::Undecayed),
        ("network.Mlp.layers.0.weight", &[2, 2], Group::Weights(Layer::Network)),
        ("network.Mlp.layers.0.bias", &[2], Group::Biases(Layer::Network)),
        ("network.Conv.layers.0.weight", &[2, 1, 3, 3], Group::Weights(Layer::Network)),
        ("output.head.mean.weight", &[2, 2], Group::Weights(Layer::Mean)),
        ("output.head.mean.bias", &[2], Group::Biases(Layer::Mean)),
        ("output.head.diag_scale.weight", &[2, 2], Group::Weights(Layer::Diagonal)),
        ("output.head.diag_scale.bias", &[2], Group::Biases(Layer::Diagonal)),
        ("output.head.loadings.weight", &[2, 2], Group::Weights(Layer::Covariance)),
        ("output.head.loading_scale.weight", &[2, 2], Group::Weights(Layer::Covariance)),
        ("output.head.loading_scale.bias", &[2], Group::Biases(Layer::Covariance)),
        ("output.head.shared_loadings", &[2, 2], Group::Weights(Layer::SharedLoadings)),
        ("output.head.temperature_logit", &[1], Group::Undecayed),
    ];
    let l2 = WeightDecay { network: 0.125, mean: 0.25, ..WeightDecay::of_all(0.5) };
    let apart = WeightDecay { diagonal: Some(0.75), shared_loadings: Some(0.0625), ..l2 };
    for l2 in [l2, apart, WeightDecay { biases: true, ..apart }] {
        let mut parameters: Vec<Parameter> = names
            .iter()
            .map(|(name, shape, _)| parameter(name, shape, &vec![1.0; shape.iter().product()]))
            .collect();
        let mut gradients = parameters.clone();
        gradients.iter_mut().for_each(|gradient| gradient.values.fill(0.0));
        let mut settings = settings(Rule::Sgd { momentum: 0.0, nesterov: false }, None);
        settings.l2 = l2;
        let mut optimizer = optimizer_of(&settings, &parameters, false);
        move_by(&mut optimizer, &mut parameters, &gradients, 1.0);
        for ((name, shape, group), parameter) in names.into_iter().zip(&parameters) {
            assert_eq!(Group::of(name, shape, false), group, "{name}");
            let decay = match group {
                Group::Weights(layer) => Some(layer),
                Group::Biases(layer) => Some(layer).filter(|_| l2.biases),
                Group::Fixed | Group::Undecayed => None,
            };
            let decay = decay.map_or(0.0, |layer| match layer {
                Layer::Network => 0.125,
                Layer::Mean => 0.25,
                Layer::Diagonal => l2.diagonal.map_or(0.5, |_| 0.75),
                Layer::SharedLoadings => l2.shared_loadings.map_or(0.5, |_| 0.0625),
                Layer::Covariance => 0.5,
            });
            assert!(parameter.values.iter().all(|value| *value == 1.0 - decay), "{name}, {l2:?}");
        }
    }
}

#[test]
fn the_network_learns_at_its_own_rate_or_not_at_all_and_statistics_never_do() {
    let names = [
        "network.Mlp.layers.0.weight",
        "network.Mlp.layers.0.bias",
        "network.Image.norm.running_variance",
        "output.head.mean.weight",
    ];
    let moved = |frozen: bool, network_rate: Option<f64>| {
        let mut parameters = names.map(|name| parameter(name, &[1, 1], &[1.0]));
        parameters[1].shape = vec![1];
        parameters[2].shape = vec![1];
        let gradients = parameters.clone();
        let mut settings = settings(Rule::Sgd { momentum: 0.5, nesterov: false }, None);
        settings.network_rate = network_rate;
        settings.l2 = WeightDecay::of_all(1.0);
        let mut optimizer = optimizer_of(&settings, &parameters, frozen);
        move_by(&mut optimizer, &mut parameters, &gradients, 0.25);
        let kept = optimizer.kept().iter().map(Vec::len).collect::<Vec<_>>();
        (parameters.map(|one| one.values[0]), kept)
    };
    assert_eq!(moved(false, None), ([0.5, 0.75, 1.0, 0.5], vec![1, 1, 0, 1]));
    assert_eq!(moved(false, Some(0.5)), ([0.75, 0.875, 1.0, 0.5], vec![1, 1, 0, 1]));
    assert_eq!(moved(true, Some(0.5)), ([1.0, 1.0, 1.0, 0.5], vec![0, 0, 0, 1]));
}

/// Deviation D19: the limit is on the gradients of the loss alone.
#[test]
fn gradients_are_clipped_by_their_norm_together_before_the_decay() {
    let moved = |clip_norm: Option<f64>| {
        let mut parameters =
            [mean_weight(&[1.0]), parameter("output.head.mean.bias", &[1], &[1.0])];
        let gradients = [mean_weight(&[3.0]), parameter("output.head.mean.bias", &[1], &[4.0])];
        let mut settings = settings(Rule::Sgd { momentum: 0.0, nesterov: false }, clip_norm);
        settings.l2.mean = 0.5;
        let mut optimizer = optimizer_of(&settings, &parameters, false);
        move_by(&mut optimizer, &mut parameters, &gradients, 0.5);
        [parameters[0].values[0], parameters[1].values[0]]
    };
    let close = |found: [f32; 2], expected: [f32; 2]| {
        let near = |(found, expected): (f32, f32)| (found - expected).abs() < 1e-6;
        assert!(found.into_iter().zip(expected).all(near), "{found:?} for {expected:?}");
    };
    close(moved(None), [1.0 - 0.5 * (3.0 + 0.5), 1.0 - 0.5 * 4.0]);
    close(moved(Some(5.0)), moved(None)); // the norm itself
    close(moved(Some(1.0)), [1.0 - 0.5 * (0.6 + 0.5), 1.0 - 0.5 * 0.8]);
}

/// Deviation D23: the velocity is a sum of gradients, and the rate of a step moves all of it. Keras
/// has every gradient in it with the rate of its own step: −(0.5 · 1 + 0.25) · 1.
#[test]
fn a_new_learning_rate_acts_on_the_whole_velocity() {
    let mut parameters = [mean_weight(&[0.0])];
    let mut settings = settings(Rule::Sgd { momentum: 0.5, nesterov: false }, None);
    settings.l2 = WeightDecay::of_all(0.0);
    let mut optimizer = optimizer_of(&settings, &parameters, false);
    move_by(&mut optimizer, &mut parameters, &[mean_weight(&[1.0])], 1.0);
    assert_eq!(parameters[0].values, [-1.0]);
    move_by(&mut optimizer, &mut parameters, &[mean_weight(&[1.0])], 0.25);
    assert_eq!(parameters[0].values, [-1.0 - 0.25 * (0.5 + 1.0)]);
}

#[test]
fn a_large_parameter_moves_by_the_same_bits_as_its_pieces_and_for_any_threads() {
    const LENGTH: usize = 100_003;
    const PIECE: usize = 1_000;
    let numbers = |seed| -> Vec<f64> {
        let words = aleator_kernels::split_mix(seed).take(LENGTH);
        words.map(|word| (word >> 40) as f64 / (1u64 << 23) as f64 - 1.0).collect()
    };
    let pieces =
        |values: &[f64]| -> Vec<Parameter> { values.chunks(PIECE).map(mean_weight).collect() };
    let bits = |parameters: &[Parameter]| -> Vec<u32> {
        parameters.iter().flat_map(|one| &one.values).map(|value| value.to_bits()).collect()
    };
    for (rule, _) in RULES {
        let moved = |mut parameters: Vec<Parameter>, gradients: [Vec<Parameter>; 2]| {
            let mut optimizer = optimizer_of(&settings(rule, None), &parameters, false);
            gradients.iter().for_each(|one| move_by(&mut optimizer, &mut parameters, one, RATE));
            bits(&parameters)
        };
        let whole = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let gradients = [2, 3].map(|seed| vec![mean_weight(&numbers(seed))]);
            pool.install(|| moved(vec![mean_weight(&numbers(1))], gradients))
        };
        let apart = moved(pieces(&numbers(1)), [2, 3].map(|seed| pieces(&numbers(seed))));
        assert!(whole(1) == apart && whole(2) == apart, "{rule:?}");
    }
}

#[test]
fn clipping_gives_the_same_bits_for_any_threads() {
    let gradient = mean_weight(&(0..100_003).map(|at| (at as f64).sin()).collect::<Vec<_>>());
    let moved = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut parameters = vec![gradient.clone()];
        let rule = Rule::Sgd { momentum: 0.0, nesterov: false };
        let mut optimizer = optimizer_of(&settings(rule, Some(0.1)), &parameters, false);
        pool.install(|| {
            move_by(&mut optimizer, &mut parameters, std::slice::from_ref(&gradient), RATE)
        });
        parameters
    };
    assert_eq!(moved(1), moved(2));
}
