//! Times training steps of a ResNet-20 on 32 × 32 images: an answer in seconds for every line read.
//!
//!     echo 128 | cargo run --release -p aleator-model --example resnet20
//!
//! A line is the number of images of a batch. A step is forward, loss, all gradients, and SGD with
//! momentum; the answer is the shortest of six, and their mean processor time, all threads
//! together, where the system is Linux.

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
        let (mut shortest, mut before) = (f64::INFINITY, 0.0);
        for step in 0..=STEPS {
            if step == 1 {
                before = processor_seconds(); // the first step is not counted
            }
            let start = Instant::now();
            let loss = model.loss(images.clone(), classes.clone());
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(0.01, model, gradients);
            shortest = shortest.min(start.elapsed().as_secs_f64());
        }
        println!("{shortest:.6} {:.6}", (processor_seconds() - before) / STEPS as f64);
    }
}

const STEPS: usize = 6;

/// Of all threads of this process, since they began.
fn processor_seconds() -> f64 {
    // Idle threads have slept by then, and their times are counted up.
    std::thread::sleep(std::time::Duration::from_millis(2));
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() * 1e-9
}
