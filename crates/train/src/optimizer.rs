//! How weights move: SGD with momentum, Adam, AdamW, L-BFGS.

use aleator_model::params::{self, Live, Values};
use aleator_run::recipe::{Moments, Optimizer as Settings, Rule, WeightDecay};
use rayon::prelude::*;

use crate::lbfgs::{Lbfgs, Search};
use crate::sum::CHUNK;
use crate::tensors::NamedTensor;

/// The rule and what it remembers.
///
/// ```
/// use aleator_model::params::{Live, Values};
/// use aleator_run::recipe::{self, Rule, WeightDecay};
/// use aleator_train::Optimizer;
///
/// let settings = recipe::Optimizer {
///     rule: Rule::Sgd { momentum: 0.9, nesterov: false },
///     learning_rate: 0.1,
///     network_rate: None,
///     clip_norm: None,
///     l2: WeightDecay::of_all(0.0),
/// };
/// let (name, shape) = ("output.head.mean.bias", [2]);
/// let mut values = Values::from(vec![1.0, 2.0]);
/// let mut optimizer = Optimizer::new(&settings, false);
/// optimizer.add(name, &shape, &values);
/// let gradients = [Values::from(vec![1.0, -1.0])];
/// optimizer.step(&gradients, 1.0, 0.5).apply(0, Live { name, shape: &shape, values: &mut values });
/// assert_eq!(*values.read(), [0.5, 2.5]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    settings: Settings,
    /// Whether the layers before the head stay as they are.
    frozen: bool,
    /// Updates made so far.
    updates: u64,
    kept: Kept,
}

/// What a rule remembers.
#[derive(Clone, Debug, PartialEq)]
enum Kept {
    /// For each parameter, its running averages: none, one or two, as long as the parameter.
    Averages(Vec<Vec<Values>>),
    /// The search, and λ of each parameter.
    Search(Lbfgs, Vec<f64>),
}

/// Which λ a parameter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Running statistics, and the layers of a frozen network: no gradient moves them.
    Fixed,
    /// Parameters of norms, the temperature: never decayed.
    Undecayed,
    /// Biases: decayed as the weights of their layer if the recipe says so (deviation D20).
    Biases(Layer),
    /// Weights.
    Weights(Layer),
}

/// The layers that have a λ of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Any layer before the head.
    Network,
    /// The layer of μ(x).
    Mean,
    /// The layer of d(x).
    Diagonal,
    /// V, where all examples share it.
    SharedLoadings,
    /// The other layers of Σ(x).
    Covariance,
}

impl Group {
    /// The group of a parameter, by its name and shape, in a model whose network may be frozen.
    pub fn of(name: &str, shape: &[usize], frozen: bool) -> Self {
        if params::is_statistic(name) || (frozen && !name.starts_with("output.")) {
            return Self::Fixed;
        }
        match name.rsplit('.').next() {
            Some("bias") => Self::Biases(Layer::of(name)),
            _ if shape.len() < 2 => Self::Undecayed,
            _ => Self::Weights(Layer::of(name)),
        }
    }

    fn decay(self, l2: &WeightDecay) -> f64 {
        match self {
            Self::Weights(layer) => layer.decay(l2),
            Self::Biases(layer) if l2.biases => layer.decay(l2),
            Self::Fixed | Self::Undecayed | Self::Biases(_) => 0.0,
        }
    }
}

impl Layer {
    /// The layer of a parameter, by the parameter's name.
    fn of(name: &str) -> Self {
        let Some(part) = name.strip_prefix("output.head.") else { return Self::Network };
        match part.split('.').next() {
            Some("mean") => Self::Mean,
            Some("diag_scale") => Self::Diagonal,
            Some("shared_loadings") => Self::SharedLoadings,
            _ => Self::Covariance,
        }
    }

    fn decay(self, l2: &WeightDecay) -> f64 {
        match self {
            Self::Network => l2.network,
            Self::Mean => l2.mean,
            Self::Diagonal => l2.diagonal.unwrap_or(l2.covariance),
            Self::SharedLoadings => l2.shared_loadings.unwrap_or(l2.covariance),
            Self::Covariance => l2.covariance,
        }
    }
}

impl Optimizer {
    /// A rule that has made no update, for no parameters yet.
    pub fn new(settings: &Settings, frozen: bool) -> Self {
        let kept = match settings.rule {
            Rule::Lbfgs { memory, tolerance, .. } => {
                Kept::Search(Lbfgs::new(memory, tolerance), vec![])
            }
            _ => Kept::Averages(vec![]),
        };
        Self { settings: settings.clone(), frozen, updates: 0, kept }
    }

    /// Decays the weights of all layers by this λ, in place of the settings'.
    pub(crate) fn decay_all(&mut self, decay: f64) {
        self.settings.l2 = WeightDecay::of_all(decay);
    }

    /// The same rule before any update, for no parameters yet.
    pub(crate) fn restarted(&self) -> Self {
        Self::new(&self.settings, self.frozen)
    }

    /// Adds a parameter.
    pub fn add(&mut self, name: &str, shape: &[usize], values: &Values) {
        let group = Group::of(name, shape, self.frozen);
        let fixed = group == Group::Fixed;
        match &mut self.kept {
            Kept::Averages(all) => {
                let count = match self.settings.rule {
                    _ if fixed => 0,
                    Rule::Sgd { momentum, .. } => usize::from(momentum > 0.0),
                    _ => 2,
                };
                all.push((0..count).map(|_| values.zeros_like()).collect());
            }
            Kept::Search(lbfgs, decays) => {
                lbfgs.add(if fixed { Values::from(vec![]) } else { values.clone() });
                decays.push(group.decay(&self.settings.l2));
            }
        }
    }

    /// Updates made so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// What is kept of each parameter, as long as the parameter.
    pub fn kept(&self) -> Vec<Vec<&Values>> {
        match &self.kept {
            Kept::Averages(all) => all.iter().map(|own| own.iter().collect()).collect(),
            Kept::Search(lbfgs, decays) => {
                (0..decays.len()).map(|parameter| lbfgs.kept(parameter).collect()).collect()
            }
        }
    }

    /// How the search stands, for a rule that searches.
    pub(crate) fn search(&self) -> Option<&Search> {
        match &self.kept {
            Kept::Averages(_) => None,
            Kept::Search(lbfgs, _) => Some(&lbfgs.search),
        }
    }

    /// What is kept, named after the parameters that it belongs to.
    pub(crate) fn tensors(&self, parameters: &[NamedTensor]) -> Vec<NamedTensor> {
        let mut named = vec![];
        for (NamedTensor { name, shape, values }, kept) in parameters.iter().zip(self.kept()) {
            let whole = kept.into_iter().enumerate().filter(|(_, own)| own.len() == values.len());
            named.extend(whole.map(|(index, values)| NamedTensor {
                name: format!("{name}.average{index}"),
                shape: shape.clone(),
                values: values.clone(),
            }));
        }
        named
    }

    /// Continues from what was kept, in the order of [`Optimizer::tensors`].
    ///
    /// # Panics
    /// When it was kept for other parameters.
    pub(crate) fn restore(
        &mut self,
        updates: u64,
        search: Option<Search>,
        saved: impl IntoIterator<Item = Values>,
    ) {
        let mut saved = saved.into_iter();
        let mut put = |own: &mut Values| {
            if own.is_empty() {
                return;
            }
            let values = saved.next().expect("one saved tensor for each");
            assert_eq!(values.len(), own.len(), "kept for other parameters");
            *own = values;
        };
        match &mut self.kept {
            Kept::Averages(all) => all.iter_mut().flatten().for_each(put),
            Kept::Search(lbfgs, decays) => {
                (0..decays.len())
                    .for_each(|parameter| lbfgs.kept_mut(parameter).for_each(&mut put));
                lbfgs.search = search.unwrap_or_default();
            }
        }
        self.updates = updates;
    }

    /// Begins an update, which [`Step::apply`] makes parameter by parameter, from the loss and its
    /// gradients. The gradients are clipped together, before any decay is added to them (deviation
    /// D19).
    ///
    /// # Panics
    /// When there is not one gradient for each parameter.
    pub fn step<'a>(&'a mut self, gradients: &'a [Values], loss: f64, rate: f64) -> Step<'a> {
        assert_eq!(self.parameters(), gradients.len(), "one gradient for each parameter");
        self.updates += 1;
        if let Kept::Search(lbfgs, decays) = &mut self.kept {
            lbfgs.evaluated(loss, gradients, decays);
        }
        let scale = self.settings.clip_norm.map_or(1.0, |limit| {
            let norm = norm(gradients);
            if norm > limit { limit / norm } else { 1.0 }
        });
        Step { optimizer: self, gradients, scale: scale as f32, rate }
    }

    fn parameters(&self) -> usize {
        match &self.kept {
            Kept::Averages(all) => all.len(),
            Kept::Search(_, decays) => decays.len(),
        }
    }

    /// The numbers of a parameter at the accepted point, for a rule that searches.
    pub(crate) fn accepted(&self, index: usize) -> Option<&Values> {
        match &self.kept {
            Kept::Averages(_) => None,
            Kept::Search(lbfgs, _) => lbfgs.kept(index).next().filter(|own| !own.is_empty()),
        }
    }
}

/// An update that is being made.
pub struct Step<'a> {
    optimizer: &'a mut Optimizer,
    gradients: &'a [Values],
    scale: f32,
    rate: f64,
}

impl Step<'_> {
    /// Updates made, with this one.
    pub fn updates(&self) -> u64 {
        self.optimizer.updates
    }

    /// Moves one parameter.
    pub fn apply(&mut self, index: usize, parameter: Live<'_>) {
        let Live { name, shape, values } = parameter;
        let Optimizer { settings, frozen, updates, kept } = &mut *self.optimizer;
        let group = Group::of(name, shape, *frozen);
        if group == Group::Fixed {
            return;
        }
        let averages = match kept {
            Kept::Averages(averages) => averages,
            Kept::Search(lbfgs, _) => return values.change(|values| lbfgs.next(index, values)),
        };
        let rate = match settings.network_rate {
            Some(share) if !name.starts_with("output.") => self.rate * share,
            _ => self.rate,
        };
        let update = Update { scale: self.scale, decay: group.decay(&settings.l2) as f32, rate };
        let gradient = self.gradients[index].read();
        values.change(|values| match (settings.rule, &mut averages[index][..]) {
            (Rule::Sgd { .. }, []) => plain_sgd(update, values, &gradient),
            (Rule::Sgd { momentum, nesterov }, [velocity, ..]) => velocity
                .change(|kept| sgd(update, values, &gradient, kept, momentum as f32, nesterov)),
            (rule @ (Rule::Adam(moments) | Rule::AdamW(moments)), [first, second]) => {
                let decoupled = matches!(rule, Rule::AdamW(_));
                first.change(|first| {
                    second.change(|second| {
                        let averages = [first, second];
                        adam(update, values, &gradient, averages, moments, *updates, decoupled)
                    })
                })
            }
            (rule, averages) => panic!("{rule:?} does not keep {} averages", averages.len()),
        });
    }
}

/// The Euclidean norm of all gradients together, summed in f64 in a fixed order.
pub(crate) fn norm(gradients: &[Values]) -> f64 {
    let sum = |gradient: &Values| {
        let parts: Vec<f64> = gradient.read().par_chunks(CHUNK).map(sum_of_squares).collect();
        parts.into_iter().sum::<f64>()
    };
    gradients.iter().map(sum).sum::<f64>().sqrt()
}

/// Eight sums, as one would wait for itself.
fn sum_of_squares(values: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        sums.iter_mut().zip(eight).for_each(|(sum, x)| *sum += f64::from(*x) * f64::from(*x));
    }
    let rest = rest.iter().map(|x| f64::from(*x) * f64::from(*x));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

/// What one update does to every number alike.
#[derive(Clone, Copy)]
struct Update {
    scale: f32,
    decay: f32,
    rate: f64,
}

fn plain_sgd(update: Update, values: &mut [f32], gradient: &[f32]) {
    let Update { scale, decay, rate } = update;
    let rate = rate as f32;
    let values = values.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
    values.for_each(|(values, gradient)| {
        for (value, gradient) in values.iter_mut().zip(gradient) {
            *value -= rate * (scale * gradient + decay * *value);
        }
    });
}

fn sgd(
    update: Update,
    values: &mut [f32],
    gradient: &[f32],
    velocity: &mut [f32],
    momentum: f32,
    nesterov: bool,
) {
    let Update { scale, decay, rate } = update;
    let rate = rate as f32;
    let values = values.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
    values.zip(velocity.par_chunks_mut(CHUNK)).for_each(|((values, gradient), velocity)| {
        for ((value, gradient), velocity) in values.iter_mut().zip(gradient).zip(velocity) {
            let slope = scale * gradient + decay * *value;
            // Deviation D23: without the rate, which moves all of it.
            *velocity = momentum * *velocity + slope;
            *value -= rate * if nesterov { slope + momentum * *velocity } else { *velocity };
        }
    });
}

fn adam(
    update: Update,
    values: &mut [f32],
    gradient: &[f32],
    [first, second]: [&mut [f32]; 2],
    moments: Moments,
    updates: u64,
    decoupled: bool,
) {
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
