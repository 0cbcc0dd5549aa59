//! Times training steps of a ResNet-20 on 32 × 32 images: an answer in seconds for every line read.
//!
//!     echo 128 | cargo run --release -p aleator-model --example resnet20
//!
//! A line is the number of images of a batch. A step is forward, loss, all gradients, and SGD with
//! momentum; the answer is the shortest of three, and the last loss.

use std::io::{BufRead, stdin};
use std::time::Instant;

use aleator_model::bench::ResNet20;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};

fn main() {
    let device = Device::flex().autodiff();
    let momentum = MomentumConfig::new().with_momentum(0.9).with_dampening(0.0);
    let mut optimizer = SgdConfig::new().with_momentum(Some(momentum)).init();
    let mut model = ResNet20::new(&device);
    for line in stdin().lock().lines().map_while(Result::ok) {
        let Ok(batch) = line.trim().parse::<usize>() else {
            eprintln!("the size of a batch is expected, found: {line}");
            continue;
        };
        let normal = Distribution::Normal(0.0, 1.0);
        let images = Tensor::<4>::random([batch, 3, 32, 32], normal, &device);
        let classes: Vec<i64> = (0..batch as i64).map(|image| image % 10).collect();
        let classes = Tensor::<1, Int>::from_data(TensorData::new(classes, [batch]), &device);
        let (mut shortest, mut last) = (f64::INFINITY, f32::NAN);
        for _ in 0..4 {
            let start = Instant::now();
            let loss = model.loss(images.clone(), classes.clone());
            last = loss.clone().into_scalar();
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(0.01, model, gradients);
            shortest = shortest.min(start.elapsed().as_secs_f64());
        }
        println!("{shortest:.6} {last:.4}");
    }
}
