//! A value computed outside autodiff, with its own backward rule.
//!
//! The one place where Burn's extension mechanism is named: every op of this crate is a plain
//! function over tensors of the inner device plus a rule that turns the upstream gradient into
//! gradients of its inputs.

use std::sync::{Arc, Mutex};

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, BackendTensor, Dispatch, DispatchKindConversion, DispatchTensor, Flex,
    backend_extension,
};
use burn::tensor::Tensor;

/// Most inputs that an op of ours has.
const INPUTS: usize = 6;

/// Upstream gradient and which inputs want one, to a gradient for each input.
type Rule = Box<dyn FnOnce(DispatchTensor, &[bool]) -> Vec<Option<DispatchTensor>> + Send>;

/// Autodiff wants its state to be `Clone`; the rule runs once.
#[derive(Clone)]
pub struct Pullback(Arc<Mutex<Option<Rule>>>);

impl core::fmt::Debug for Pullback {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Pullback")
    }
}

/// On a device without autodiff the value is all there is.
#[backend_extension(Flex, Cube: cfg(feature = "wgpu"), Autodiff)]
pub trait CustomGrad: Backend {
    /// The value, with the rule as its backward step.
    #[allow(clippy::too_many_arguments)] // an op of an extension takes its tensors one by one
    fn attach(
        value: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        e: FloatTensor<Self>,
        f: FloatTensor<Self>,
        rule: Pullback,
    ) -> FloatTensor<Self> {
        let _ = (a, b, c, d, e, f, rule);
        value
    }
}

impl CustomGrad for Flex {}

#[cfg(feature = "wgpu")]
impl CustomGrad for burn::backend::Cube {}

#[derive(Debug)]
struct RunRule;

impl<B: Backend> Backward<B, INPUTS> for RunRule
where
    DispatchTensor: DispatchKindConversion<B>,
{
    type State = Pullback;

    fn backward(self, ops: Ops<Pullback, INPUTS>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<B>(&ops.node);
        let rule = ops.state.0.lock().expect("no rule panics while it is taken").take();
        let rule = rule.expect("autodiff runs a backward step once");
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let upstream = <DispatchTensor as DispatchKindConversion<B>>::from_backend(
            BackendTensor::Float(upstream),
        );
        for (node, grad) in ops.parents.into_iter().zip(rule(upstream, &wanted)) {
            if let (Some(node), Some(grad)) = (node, grad) {
                let grad = <DispatchTensor as DispatchKindConversion<B>>::try_into_backend(grad)
                    .expect("a rule gives gradients on the device of its upstream gradient");
                grads.register::<B>(node.id, grad.float());
            }
        }
    }
}

impl<B: Backend, C: CheckpointStrategy> CustomGrad for Autodiff<B, C>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    fn attach(
        value: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        e: FloatTensor<Self>,
        f: FloatTensor<Self>,
        rule: Pullback,
    ) -> FloatTensor<Self> {
        let nodes = [a.node(), b.node(), c.node(), d.node(), e.node(), f.node()];
        let value = value.into_primitive();
        match RunRule.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish(rule, value),
            OpsKind::UnTracked(step) => step.finish(value),
        }
    }
}

/// Makes `value`, computed on the inner device, the result of an op on `inputs` whose backward
/// step is `rule(upstream, wanted)`: one gradient for each input, on the inner device.
pub(crate) fn custom_grad<const D: usize>(
    value: Tensor<D>,
    inputs: Vec<DispatchTensor>,
    rule: impl FnOnce(Tensor<D>, &[bool]) -> Vec<Option<DispatchTensor>> + Send + 'static,
) -> Tensor<D> {
    assert!((1..=INPUTS).contains(&inputs.len()), "an op has 1 to {INPUTS} inputs");
    let count = inputs.len();
    let rule: Rule = Box::new(move |upstream, wanted| {
        let mut grads = rule(Tensor::from_dispatch(upstream), &wanted[..count]);
        assert_eq!(grads.len(), count, "one gradient for each input");
        grads.resize_with(INPUTS, || None);
        grads
    });
    // Slots that an op does not use repeat its first input and give it nothing.
    let first = inputs[0].clone();
    let mut slots = inputs.into_iter().chain(core::iter::repeat(first));
    let mut next = || slots.next().expect("repeats for ever");
    let (a, b, c, d, e, f) = (next(), next(), next(), next(), next(), next());
    let rule = Pullback(Arc::new(Mutex::new(Some(rule))));
    Tensor::from_dispatch(Dispatch::attach(value.into_dispatch(), a, b, c, d, e, f, rule))
}
