//! One line changes in a Burn model: the last `Linear` becomes a `HetLinear`.
//!
//! Trains both on handwritten digits of which every fourth 3, 4, 8 and 9 is labelled as the digit
//! it is easily taken for (3 ↔ 8, 4 ↔ 9), and shows accuracy on clean labels, and which classes
//! the noise model ties together.
//!
//! cargo run --release -p aleator --example digits

use aleator::burn::module::Module;
use aleator::burn::nn::loss::CrossEntropyLossConfig;
use aleator::burn::nn::{Linear, LinearConfig};
use aleator::burn::optim::{AdamConfig, GradientsParams};
use aleator::burn::tensor::activation::{log_softmax, relu};
use aleator::burn::tensor::{Device, Int, Tensor, TensorData};
use aleator::{
    DiagScale, Draws, HeadTemperature, HetLinear, HetLinearConfig, Likelihood, Link, Noise,
    Temperature, kernels::split_mix,
};

const CLASSES: usize = 10;
const HIDDEN: usize = 64;
const TRAINING: usize = 1200;
const BATCH: usize = 100;
const EPOCHS: usize = 40;

/// The model as it was.
#[derive(Module, Debug)]
struct Plain {
    hidden: Linear,
    output: Linear,
}

/// The same with the last layer replaced.
#[derive(Module, Debug)]
struct Noisy {
    hidden: Linear,
    output: HetLinear,
}

/// What training needs to know of a model.
trait Classifier: Module {
    /// [B, 64] → logits [B, 10], on which cross-entropy is the loss.
    fn forward(&self, images: Tensor<2>) -> Tensor<2>;
}

impl Classifier for Plain {
    fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(images)))
    }
}

impl Classifier for Noisy {
    fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(images)))
    }
}

fn main() {
    let device = Device::flex();
    let training = device.clone().autodiff();
    training.seed(0);
    let data = Digits::load();
    let noisy: Vec<usize> = (0..TRAINING).map(|at| data.noisy_label(at)).collect();
    let wrong = (0..TRAINING).filter(|at| noisy[*at] != data.labels[*at]).count();
    println!("{TRAINING} training digits, {wrong} with a wrong label; the rest is clean test data");

    let plain = Plain {
        hidden: LinearConfig::new(64, HIDDEN).init(&training),
        output: LinearConfig::new(HIDDEN, CLASSES).init(&training),
    };
    let replaced = Noisy {
        hidden: LinearConfig::new(64, HIDDEN).init(&training),
        output: HetLinearConfig {
            feature_dim: HIDDEN,
            classes: CLASSES,
            noise: Noise::LowRank { rank: 4 },
            link: Link::Softmax,
            likelihood: Likelihood::Marginal,
            temperature: HeadTemperature::Fixed(Temperature::try_from(0.5).expect("above 0")),
            diag_scale: DiagScale::Softplus,
            samples: 200,
            draws: Draws::Antithetic,
            seed: 0,
        }
        .init(&training),
    };
    let plain = train(plain, &data, &noisy, &training);
    report("Linear", &plain.valid(), &data, &device);
    let replaced = train(replaced, &data, &noisy, &training).valid();
    report("HetLinear", &replaced, &data, &device);
    report_pairs(&replaced, &data, &device);
}

fn train<M: Classifier>(mut model: M, data: &Digits, labels: &[usize], device: &Device) -> M {
    let loss = CrossEntropyLossConfig::new().init(device);
    let mut adam = AdamConfig::new().init();
    for epoch in 0..EPOCHS {
        let order = shuffled(TRAINING, epoch as u64);
        for batch in order.chunks(BATCH) {
            let targets: Vec<usize> = batch.iter().map(|at| labels[*at]).collect();
            let logits = model.forward(data.images(batch, device));
            let loss = loss.forward(logits, classes(&targets, device));
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = adam.step(3e-3, model, grads);
        }
    }
    model
}

fn report(name: &str, model: &impl Classifier, data: &Digits, device: &Device) {
    let test: Vec<usize> = (TRAINING..data.labels.len()).collect();
    let targets: Vec<usize> = test.iter().map(|at| data.labels[*at]).collect();
    let log_probs = log_softmax(model.forward(data.images(&test, device)), 1);
    let right = log_probs.clone().argmax(1).squeeze_dim::<1>(1).equal(classes(&targets, device));
    let accuracy = right.float().mean().into_scalar::<f32>();
    let index = classes(&targets, device).unsqueeze_dim::<2>(1);
    let nll = -log_probs.gather(1, index).mean().into_scalar::<f32>();
    println!("{name:<10} accuracy {:.1} %   negative log-likelihood {nll:.3}", 100.0 * accuracy);
}

/// The pairs of classes whose utilities' noise correlates most, averaged over test images.
fn report_pairs(model: &Noisy, data: &Digits, device: &Device) {
    let test: Vec<usize> = (TRAINING..TRAINING + 300).collect();
    let features = relu(model.hidden.forward(data.images(&test, device)));
    let latent = model.output.predict(features).latent;
    let mut average = vec![0.0f32; CLASSES * CLASSES];
    for example in 0..test.len() {
        let sigma: Vec<f32> = latent.covariance(example).into_data().iter::<f32>().collect();
        average.iter_mut().zip(sigma).for_each(|(sum, entry)| *sum += entry / test.len() as f32);
    }
    let mut pairs: Vec<(usize, usize)> =
        (0..CLASSES).flat_map(|i| (i + 1..CLASSES).map(move |j| (i, j))).collect();
    let size = |(i, j): &(usize, usize)| average[i * CLASSES + j].abs();
    pairs.sort_by(|a, b| size(b).total_cmp(&size(a)));
    print!("pairs with the largest average covariance:");
    for (i, j) in &pairs[..3] {
        print!("  {i}-{j} ({:+.2})", average[i * CLASSES + j]);
    }
    println!();
}

fn classes(labels: &[usize], device: &Device) -> Tensor<1, Int> {
    let labels: Vec<i64> = labels.iter().map(|label| *label as i64).collect();
    let count = labels.len();
    Tensor::from_data(TensorData::new(labels, [count]), device)
}

/// A permutation that depends on the seed alone.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<(u64, usize)> = split_mix(seed).zip(0..count).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

struct Digits {
    pixels: Vec<[f32; 64]>,
    labels: Vec<usize>,
}

impl Digits {
    fn load() -> Self {
        let digits = aleator_data::digits::open().expect("digits are part of the program");
        let read = |row: usize| {
            let mut pixels = [0.0; 64];
            digits.inputs.read(row, &mut pixels).expect("digits are in memory");
            pixels
        };
        let labels = digits.labels.as_ref().and_then(|labels| labels.classes()).unwrap_or_default();
        Self {
            pixels: (0..digits.inputs.len()).map(read).collect(),
            labels: labels.iter().map(|label| *label as usize).collect(),
        }
    }

    fn images(&self, which: &[usize], device: &Device) -> Tensor<2> {
        let pixels: Vec<f32> = which.iter().flat_map(|at| self.pixels[*at]).collect();
        Tensor::from_data(TensorData::new(pixels, [which.len(), 64]), device)
    }

    /// What an annotator wrote down: for a quarter of 3, 4, 8 and 9 the wrong one of its pair.
    fn noisy_label(&self, at: usize) -> usize {
        let flips = split_mix(at as u64).next().is_some_and(|word| word % 4 == 0);
        match (flips, self.labels[at]) {
            (true, 3) => 8,
            (true, 8) => 3,
            (true, 4) => 9,
            (true, 9) => 4,
            (_, label) => label,
        }
    }
}
