//! The encoders of CleanNet: references of a class → φ_s, an example → φ_q, and back to features.
//!
//! With x a row of features, r a reference and all layers dense:
//!
//! ```text
//! r → tanh → tanh = h_r      a_r = softmax over the class of context(tanh(h_r))
//! φ_s = tanh(Σ a_r h_r)      φ_q: x → tanh → tanh      x̂: φ_q → tanh → linear
//! ```

use aleator_layers::dense::{self, DenseShape};
use aleator_model::params::Values;

use super::references::References;
use crate::tensors::NamedTensor;

/// The layers, in the order of the tensors: a weight and a bias each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Reference,
    ReferenceUpper,
    Attention,
    Context,
    Class,
    Query,
    QueryUpper,
    Decoder,
    DecoderUpper,
}

const LAYERS: [(Layer, &str); 9] = [
    (Layer::Reference, "reference"),
    (Layer::ReferenceUpper, "reference_upper"),
    (Layer::Attention, "attention"),
    (Layer::Context, "context"),
    (Layer::Class, "class"),
    (Layer::Query, "query"),
    (Layer::QueryUpper, "query_upper"),
    (Layer::Decoder, "decoder"),
    (Layer::DecoderUpper, "decoder_upper"),
];

impl Layer {
    /// Inputs and outputs.
    fn sizes(self, sizes: Sizes) -> [usize; 2] {
        let Sizes { features, hidden, embedding } = sizes;
        match self {
            Self::Reference | Self::Query => [features, hidden],
            Self::ReferenceUpper | Self::Attention => [hidden, hidden],
            Self::Context => [hidden, 1],
            Self::Class | Self::QueryUpper => [hidden, embedding],
            Self::Decoder => [embedding, hidden],
            Self::DecoderUpper => [hidden, features],
        }
    }

    fn is_linear(self) -> bool {
        matches!(self, Self::Context | Self::DecoderUpper)
    }
}

/// How wide the layers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub features: usize,
    pub hidden: usize,
    pub embedding: usize,
}

/// The weights of all layers.
#[derive(Clone, Copy)]
pub(super) struct Encoders<'a> {
    pub sizes: Sizes,
    pub tensors: &'a [NamedTensor],
}

/// Fresh weights: each uniform between ± the root of three over its layer's inputs, so that the
/// variance of what comes in stays; biases 0.
pub(super) fn fresh(sizes: Sizes, words: impl Iterator<Item = u64>) -> Vec<NamedTensor> {
    let mut words = words.map(|word| (word >> 11) as f64 / (1u64 << 53) as f64);
    let tensors = |(layer, name): (Layer, &str)| {
        let [inputs, outputs] = layer.sizes(sizes);
        let bound = (3.0 / inputs as f64).sqrt();
        let weight: Vec<f32> = words
            .by_ref()
            .take(inputs * outputs)
            .map(|unit| (bound * (2.0 * unit - 1.0)) as f32)
            .collect();
        let (shape, values) = (vec![inputs, outputs], weight.into());
        [
            NamedTensor { name: format!("{name}.weight"), shape, values },
            NamedTensor::zeros(&format!("{name}.bias"), &[outputs]),
        ]
    };
    LAYERS.into_iter().flat_map(tensors).collect()
}

/// What became of the references of some classes.
pub(super) struct EncodedClasses {
    inputs: Vec<f32>,
    /// How many references each class has.
    counts: Vec<usize>,
    /// The first layer, [M, H].
    lower: Vec<f32>,
    /// h, [M, H].
    upper: Vec<f32>,
    attention: Vec<f32>,
    /// a, `[M]`.
    shares: Vec<f32>,
    /// Σ a h, [C, H].
    pooled: Vec<f32>,
    /// φ_s, [C, E].
    pub embeddings: Vec<f32>,
}

/// What became of some examples.
pub(super) struct EncodedQueries {
    inputs: Vec<f32>,
    lower: Vec<f32>,
    /// φ_q, [B, E].
    pub embeddings: Vec<f32>,
}

/// What the decoder makes of φ_q.
pub(super) struct Decoded {
    lower: Vec<f32>,
    /// x̂, [B, D].
    pub features: Vec<f32>,
}

/// The gradient of each tensor.
pub(super) struct Gradients(Vec<Vec<f32>>);

impl Gradients {
    pub fn zeros(tensors: &[NamedTensor]) -> Self {
        Self(tensors.iter().map(|tensor| vec![0.0; tensor.values.len()]).collect())
    }

    pub fn into_values(self) -> Vec<Values> {
        self.0.into_iter().map(Values::from).collect()
    }
}

impl Encoders<'_> {
    fn forward(&self, layer: Layer, inputs: &[f32]) -> Vec<f32> {
        let shape = self.shape(layer, inputs);
        let [weight, bias] = [0, 1].map(|at| self.tensors[2 * layer as usize + at].values.read());
        let mut out = vec![0.0; shape.batch * shape.outputs];
        dense::forward(inputs, &weight, Some(&bias), &mut out, shape);
        if !layer.is_linear() {
            out.iter_mut().for_each(|value| *value = value.tanh());
        }
        out
    }

    /// From the gradient of what a layer gave to that of its inputs; those of its weights are kept.
    fn backward(
        &self,
        layer: Layer,
        inputs: &[f32],
        out: &[f32],
        mut slopes: Vec<f32>,
        gradients: &mut Gradients,
    ) -> Vec<f32> {
        if !layer.is_linear() {
            let pairs = slopes.iter_mut().zip(out);
            pairs.for_each(|(slope, out)| *slope *= 1.0 - out * out);
        }
        let shape = self.shape(layer, inputs);
        let first = 2 * layer as usize;
        dense::backward_weight(inputs, &slopes, &mut gradients.0[first], shape);
        dense::backward_bias(&slopes, &mut gradients.0[first + 1]);
        let mut of_inputs = vec![0.0; inputs.len()];
        let weight = self.tensors[first].values.read();
        dense::backward_features(&slopes, &weight, &mut of_inputs, shape);
        of_inputs
    }

    fn shape(&self, layer: Layer, inputs: &[f32]) -> DenseShape {
        let [width, outputs] = layer.sizes(self.sizes);
        DenseShape { batch: inputs.len() / width, inputs: width, outputs }
    }

    /// φ_s of some classes, each of which has references.
    pub fn encode_classes(&self, references: &References, classes: &[usize]) -> EncodedClasses {
        let rows = |class: &usize| references.of(*class);
        let width = references.width;
        let inputs: Vec<f32> = classes
            .iter()
            .flat_map(|class| {
                let rows = rows(class);
                &references.rows[rows.start * width..rows.end * width]
            })
            .copied()
            .collect();
        let counts: Vec<usize> = classes.iter().map(|class| rows(class).len()).collect();
        let lower = self.forward(Layer::Reference, &inputs);
        let upper = self.forward(Layer::ReferenceUpper, &lower);
        let attention = self.forward(Layer::Attention, &upper);
        let mut shares = self.forward(Layer::Context, &attention);
        let hidden = self.sizes.hidden;
        let mut pooled = vec![0.0; classes.len() * hidden];
        let mut first = 0;
        for (count, pooled) in counts.iter().zip(pooled.chunks_exact_mut(hidden)) {
            let shares = &mut shares[first..first + count];
            softmax(shares);
            let rows = upper[first * hidden..].chunks_exact(hidden);
            for (share, row) in shares.iter().zip(rows) {
                pooled.iter_mut().zip(row).for_each(|(sum, value)| *sum += share * value);
            }
            first += count;
        }
        let embeddings = self.forward(Layer::Class, &pooled);
        EncodedClasses { inputs, counts, lower, upper, attention, shares, pooled, embeddings }
    }

    /// The gradients of the layers of references, from those of φ_s.
    pub fn backward_classes(
        &self,
        encoded: &EncodedClasses,
        slopes: Vec<f32>,
        gradients: &mut Gradients,
    ) {
        let EncodedClasses { inputs, counts, lower, upper, attention, shares, pooled, embeddings } =
            encoded;
        let of_pooled = self.backward(Layer::Class, pooled, embeddings, slopes, gradients);
        let hidden = self.sizes.hidden;
        let (mut of_scores, mut of_upper) = (vec![0.0; shares.len()], vec![0.0; upper.len()]);
        let mut first = 0;
        for (count, of_pooled) in counts.iter().zip(of_pooled.chunks_exact(hidden)) {
            let rows = first..first + count;
            for row in rows.clone() {
                let own = row * hidden..(row + 1) * hidden;
                let pairs = upper[own.clone()].iter().zip(of_pooled);
                of_scores[row] = pairs.map(|(value, slope)| value * slope).sum();
                let pairs = of_upper[own].iter_mut().zip(of_pooled);
                pairs.for_each(|(slope, own)| *slope = shares[row] * own);
            }
            let mean: f32 = rows.clone().map(|row| shares[row] * of_scores[row]).sum();
            rows.for_each(|row| of_scores[row] = shares[row] * (of_scores[row] - mean));
            first += count;
        }
        let of_attention = self.backward(Layer::Context, attention, shares, of_scores, gradients);
        let through = self.backward(Layer::Attention, upper, attention, of_attention, gradients);
        of_upper.iter_mut().zip(through).for_each(|(sum, slope)| *sum += slope);
        let of_lower = self.backward(Layer::ReferenceUpper, lower, upper, of_upper, gradients);
        self.backward(Layer::Reference, inputs, lower, of_lower, gradients);
    }

    /// φ_q of some examples, [B, D].
    pub fn encode_queries(&self, inputs: Vec<f32>) -> EncodedQueries {
        let lower = self.forward(Layer::Query, &inputs);
        let embeddings = self.forward(Layer::QueryUpper, &lower);
        EncodedQueries { inputs, lower, embeddings }
    }

    /// x̂ of φ_q.
    pub fn decode(&self, encoded: &EncodedQueries) -> Decoded {
        let lower = self.forward(Layer::Decoder, &encoded.embeddings);
        let features = self.forward(Layer::DecoderUpper, &lower);
        Decoded { lower, features }
    }

    /// The gradients of the layers of queries and of the decoder, from those of φ_q and of x̂.
    pub fn backward_queries(
        &self,
        encoded: &EncodedQueries,
        decoded: &Decoded,
        mut of_embeddings: Vec<f32>,
        of_features: Vec<f32>,
        gradients: &mut Gradients,
    ) {
        let EncodedQueries { inputs, lower, embeddings } = encoded;
        let Decoded { lower: middle, features } = decoded;
        let of_middle =
            self.backward(Layer::DecoderUpper, middle, features, of_features, gradients);
        let through = self.backward(Layer::Decoder, embeddings, middle, of_middle, gradients);
        of_embeddings.iter_mut().zip(through).for_each(|(sum, slope)| *sum += slope);
        let of_lower =
            self.backward(Layer::QueryUpper, lower, embeddings, of_embeddings, gradients);
        self.backward(Layer::Query, inputs, lower, of_lower, gradients);
    }
}

fn softmax(values: &mut [f32]) {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter_mut().for_each(|value| *value = (*value - largest).exp());
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
}
