//! The parameters of a model by name, as plain numbers.
//!
//! A parameter's name is its path in the model, `output.head.mean.weight`; it is also its key in
//! files of weights. [`read`] and [`write`](fn@write) copy; [`update`] and [`take_gradients`] work on the
//! numbers where they are.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor};

pub use crate::values::Values;

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its path in the model.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, row by row.
    pub values: Vec<f32>,
}

pub(crate) const RUNNING_MEAN: &str = "running_mean";
pub(crate) const RUNNING_VARIANCE: &str = "running_variance";

/// Whether a parameter is a running statistic of a norm: kept with the weights and read in
/// evaluation, but moved by [`BatchStatistics::update`](crate::BatchStatistics::update), never by
/// a gradient.
///
/// ```
/// use aleator_model::params::is_statistic;
///
/// assert!(is_statistic("network.Image.trunk.Residual.norm.running_mean"));
/// assert!(!is_statistic("network.Image.trunk.Residual.norm.scale"));
/// ```
pub fn is_statistic(name: &str) -> bool {
    let last = name.rsplit('.').next();
    last == Some(RUNNING_MEAN) || last == Some(RUNNING_VARIANCE)
}

/// How many numbers are learned; running statistics are not.
pub fn learned(parameters: &[Parameter]) -> usize {
    let learned = parameters.iter().filter(|parameter| !is_statistic(&parameter.name));
    learned.map(|parameter| parameter.values.len()).sum()
}

/// The parameters of a model, in the order of its fields.
///
/// ```
/// use aleator_model::{Dense, params};
/// use burn::tensor::Device;
///
/// let layer = Dense::init(4, 2, 0, &Device::flex());
/// let names: Vec<String> = params::read(&layer).into_iter().map(|p| p.name).collect();
/// assert_eq!(names, ["weight", "bias"]);
/// ```
pub fn read<M: Module>(model: &M) -> Vec<Parameter> {
    visit(model, Source::Numbers).into_iter().map(Parameter::from).collect()
}

/// The gradient of each parameter, in the same order; zeros where the loss does not reach it.
pub fn gradients<M: Module>(model: &M, gradients: &Gradients) -> Vec<Parameter> {
    visit(model, Source::Gradients(gradients)).into_iter().map(Parameter::from).collect()
}

/// The gradient of each parameter where it was computed, in the same order; zeros where the loss
/// does not reach it.
pub fn take_gradients<M: Module>(model: &M, gradients: &mut Gradients) -> Vec<Values> {
    visit(model, Source::TakenGradients(gradients)).into_iter().map(|it| it.values).collect()
}

/// Changes the numbers of each parameter where they are, in the order of [`read`]: without
/// copying, unless the model has been cloned.
///
/// ```
/// use aleator_model::{Dense, params};
/// use burn::tensor::Device;
///
/// let layer = Dense::init(4, 2, 0, &Device::flex());
/// let layer = params::update(layer, |index, parameter| {
///     assert_eq!(parameter.name, ["weight", "bias"][index]);
///     parameter.values.change(|values| values.fill(0.5));
/// });
/// assert_eq!(params::read(&layer)[1].values, [0.5, 0.5]);
/// ```
pub fn update<M: Module>(model: M, change: impl FnMut(usize, Live<'_>)) -> M {
    model.map(&mut Updater { path: vec![], next: 0, change })
}

/// A parameter of a model that is being changed.
#[derive(Debug)]
pub struct Live<'a> {
    /// Its path in the model.
    pub name: &'a str,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its numbers, row by row.
    pub values: &'a mut Values,
}

/// The model with these numbers in place of its own, in the order of [`read`].
///
/// # Panics
/// When names or shapes are not those of the model.
pub fn write<M: Module>(model: M, parameters: &[Parameter]) -> M {
    let mut given = parameters.iter();
    let model = update(model, |_, Live { name, shape, values }| {
        let next = given.next().unwrap_or_else(|| panic!("no values for {name}"));
        assert_eq!(next.name, name, "parameters must be in the order of the model");
        assert_eq!(next.shape, shape, "{name} has another shape");
        values.change(|numbers| numbers.copy_from_slice(&next.values));
    });
    assert!(given.next().is_none(), "more parameters than the model has");
    model
}

/// A parameter of a model as it is visited, with its numbers or its gradient.
pub(crate) struct Visited {
    pub id: ParamId,
    pub name: String,
    shape: Vec<usize>,
    values: Values,
}

impl From<Visited> for Parameter {
    fn from(visited: Visited) -> Self {
        let Visited { name, shape, values, .. } = visited;
        Self { name, shape, values: values.read().into_owned() }
    }
}

/// What is read of each parameter.
pub(crate) enum Source<'a> {
    Numbers,
    Gradients(&'a Gradients),
    TakenGradients(&'a mut Gradients),
}

/// The parameters of a model, in the order of its fields.
pub(crate) fn visit<M: Module>(model: &M, source: Source<'_>) -> Vec<Visited> {
    let mut reader = Reader { path: vec![], source, found: vec![] };
    model.visit(&mut reader);
    reader.found
}

struct Reader<'a> {
    path: Vec<String>,
    source: Source<'a>,
    found: Vec<Visited>,
}

impl ModuleVisitor for Reader<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let shape = value.dims().to_vec();
        let gradient = match &mut self.source {
            Source::Numbers => Some(value.clone()),
            Source::Gradients(gradients) => value.grad(gradients),
            Source::TakenGradients(gradients) => value.grad_remove(gradients),
        };
        let values = match gradient {
            Some(gradient) => Values::from_tensor(gradient),
            None => Values::from_tensor(value).zeros_like(),
        };
        self.found.push(Visited { id: param.id, name: self.path.join("."), shape, values });
    }
}

struct Updater<F> {
    path: Vec<String>,
    next: usize,
    change: F,
}

impl<F: FnMut(usize, Live<'_>)> ModuleMapper for Updater<F> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, old, mapper) = param.consume();
        let (shape, learned, tracked) = (old.dims(), old.is_require_grad(), old.is_autodiff());
        let mut values = Values::from_tensor(old);
        let name = self.path.join(".");
        (self.change)(self.next, Live { name: &name, shape: &shape, values: &mut values });
        self.next += 1;
        let value = values.into_tensor(shape);
        let value = if tracked { value.autodiff() } else { value };
        let value = if learned { value.require_grad() } else { value };
        Param::from_mapped_value(id, value, mapper)
    }
}
