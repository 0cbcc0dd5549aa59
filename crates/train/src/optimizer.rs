//! How weights move: SGD with momentum, Adam, AdamW, over plain numbers.

use aleator_model::params::{self, Parameter};
use aleator_run::recipe::{Moments, Optimizer as Settings, Rule, WeightDecay};
use rayon::prelude::*;

/// The rule and its running averages.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    settings: Settings,
    /// Whether the layers before the head stay as they are.
    frozen: bool,
    /// Updates made so far.
    updates: u64,
    /// For each parameter, its running averages: none, one or two, as long as the parameter.
    averages: Vec<Vec<Vec<f32>>>,
}

/// Which λ a parameter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Running statistics, and the layers of a frozen network: no gradient moves them.
    Fixed,
    /// Biases, the temperature: never decayed.
    Undecayed,
    /// Weights of the layers before the head.
    Network,
    /// Weights of the layer of μ(x).
    Mean,
    /// Weights of the layers of Σ(x).
    Covariance,
}

impl Group {
    /// The group of a parameter, by its name and shape, in a model whose network may be frozen.
    pub fn of(name: &str, shape: &[usize], frozen: bool) -> Self {
        match name {
            _ if params::is_statistic(name) => Self::Fixed,
            _ if frozen && !name.starts_with("output.") => Self::Fixed,
            _ if shape.len() < 2 => Self::Undecayed,
            _ if !name.starts_with("output.") => Self::Network,
            "output.head.mean.weight" => Self::Mean,
            _ => Self::Covariance,
        }
    }

    fn decay(self, l2: &WeightDecay) -> f64 {
        match self {
            Self::Fixed | Self::Undecayed => 0.0,
            Self::Network => l2.network,
            Self::Mean => l2.mean,
            Self::Covariance => l2.covariance,
        }
    }
}

/// Below this many numbers a second thread costs more than it gives.
const CHUNK: usize = 1 << 15;

impl Optimizer {
    /// A rule that has made no update.
    pub fn new(settings: &Settings, parameters: &[Parameter], frozen: bool) -> Self {
        let kept = match settings.rule {
            Rule::Sgd { momentum, .. } => usize::from(momentum > 0.0),
            Rule::Adam(_) | Rule::AdamW(_) => 2,
        };
        let zeros =
            |parameter: &Parameter| match Group::of(&parameter.name, &parameter.shape, frozen) {
                Group::Fixed => vec![],
                _ => vec![vec![0.0; parameter.values.len()]; kept],
            };
        let averages = parameters.iter().map(zeros).collect();
        Self { settings: settings.clone(), frozen, updates: 0, averages }
    }

    /// Updates made so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The running averages of each parameter, to be saved.
    pub fn averages(&self) -> &[Vec<Vec<f32>>] {
        &self.averages
    }

    /// Goes on from what was saved.
    ///
    /// # Panics
    /// When the averages are not of these parameters.
    pub fn restore(&mut self, updates: u64, averages: Vec<Vec<Vec<f32>>>) {
        let lengths = |all: &[Vec<Vec<f32>>]| -> Vec<Vec<usize>> {
            all.iter().map(|one| one.iter().map(Vec::len).collect()).collect()
        };
        assert_eq!(lengths(&self.averages), lengths(&averages), "averages of other parameters");
        (self.updates, self.averages) = (updates, averages);
    }

    /// One update. The gradients are clipped together, before any decay is added to them.
    ///
    /// # Panics
    /// When the gradients are not those of the parameters.
    pub fn step(&mut self, parameters: &mut [Parameter], gradients: &[Parameter], rate: f64) {
        assert_eq!(parameters.len(), gradients.len(), "one gradient for each parameter");
        self.updates += 1;
        let scale = self.settings.clip_norm.map_or(1.0, |limit| {
            let norm = norm(gradients);
            if norm > limit { limit / norm } else { 1.0 }
        });
        let moves = parameters.iter_mut().zip(gradients).zip(&mut self.averages);
        for ((parameter, gradient), averages) in moves {
            let group = Group::of(&parameter.name, &parameter.shape, self.frozen);
            if group == Group::Fixed {
                continue;
            }
            let decay = group.decay(&self.settings.l2);
            let rate = match self.settings.network_rate {
                Some(share) if !parameter.name.starts_with("output.") => rate * share,
                _ => rate,
            };
            let update = Update { scale: scale as f32, decay: decay as f32, rate };
            let values = parameter.values.as_mut_slice();
            match self.settings.rule {
                Rule::Sgd { momentum, nesterov } => {
                    let kept = averages.first_mut().map(Vec::as_mut_slice);
                    sgd(update, values, &gradient.values, kept, momentum as f32, nesterov);
                }
                Rule::Adam(moments) => {
                    adam(update, values, &gradient.values, averages, moments, self.updates, false)
                }
                Rule::AdamW(moments) => {
                    adam(update, values, &gradient.values, averages, moments, self.updates, true)
                }
            }
        }
    }
}

/// The Euclidean norm of all gradients together, summed in f64 in a fixed order.
pub fn norm(gradients: &[Parameter]) -> f64 {
    let squares = |values: &[f32]| values.iter().map(|x| *x as f64 * *x as f64).sum::<f64>();
    let sum = |parameter: &Parameter| {
        let parts: Vec<f64> = parameter.values.par_chunks(CHUNK).map(squares).collect();
        parts.into_iter().sum::<f64>()
    };
    gradients.iter().map(sum).sum::<f64>().sqrt()
}

/// What one update does to every number alike.
#[derive(Clone, Copy)]
struct Update {
    scale: f32,
    decay: f32,
    rate: f64,
}

fn sgd(
    update: Update,
    values: &mut [f32],
    gradient: &[f32],
    velocity: Option<&mut [f32]>,
    momentum: f32,
    nesterov: bool,
) {
    let Update { scale, decay, rate } = update;
    let rate = rate as f32;
    let values = values.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
    let Some(velocity) = velocity else {
        values.for_each(|(values, gradient)| {
            for (value, gradient) in values.iter_mut().zip(gradient) {
                *value -= rate * (scale * gradient + decay * *value);
            }
        });
        return;
    };
    values.zip(velocity.par_chunks_mut(CHUNK)).for_each(|((values, gradient), velocity)| {
        for ((value, gradient), velocity) in values.iter_mut().zip(gradient).zip(velocity) {
            let slope = scale * gradient + decay * *value;
            *velocity = momentum * *velocity + slope;
            *value -= rate * if nesterov { slope + momentum * *velocity } else { *velocity };
        }
    });
}

fn adam(
    update: Update,
    values: &mut [f32],
    gradient: &[f32],
    averages: &mut [Vec<f32>],
    moments: Moments,
    updates: u64,
    decoupled: bool,
) {
    let [first, second] = averages else { panic!("Adam keeps two averages") };
    let Update { scale, decay, rate } = update;
    // The averages start at zero; dividing by the weight that they have seen undoes it.
    let seen = |beta: f64| 1.0 - beta.powf(updates as f64);
    let step = (rate / seen(moments.beta1)) as f32;
    let correction = (1.0 / seen(moments.beta2)).sqrt() as f32;
    let (beta1, beta2) = (moments.beta1 as f32, moments.beta2 as f32);
    let epsilon = moments.epsilon as f32;
    let shrink = if decoupled { 1.0 - (rate * decay as f64) as f32 } else { 1.0 };
    let coupled = if decoupled { 0.0 } else { decay };
    let values = values.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
    let averages = first.par_chunks_mut(CHUNK).zip(second.par_chunks_mut(CHUNK));
    values.zip(averages).for_each(|((values, gradient), (first, second))| {
        for (((value, gradient), first), second) in
            values.iter_mut().zip(gradient).zip(first).zip(second)
        {
            let slope = scale * gradient + coupled * *value;
            *first = beta1 * *first + (1.0 - beta1) * slope;
            *second = beta2 * *second + (1.0 - beta2) * slope * slope;
            *value = shrink * *value - step * *first / (second.sqrt() * correction + epsilon);
        }
    });
}
