//! How many images a second become inputs of a network.
//!
//! ```text
//! cargo run --release -p aleator-data --example decode -- FOLDER train|eval WORKERS PASSES
//! ```
//!
//! FOLDER holds a folder of images for each class. `train` decodes, cuts a random rectangle to
//! 224 × 224 and mirrors half of them; `eval` cuts the central 0.875 of the shorter side.
//! benchmarks/decode.py compares the numbers with those of torchvision.

use std::sync::Arc;
use std::time::Instant;

use aleator_data::{DataSet, Order, evaluation_batches, training_batches};
use aleator_run::recipe::{
    Augment, Crop, Data, Filter, Framing, HeldOut, InputSource, Link, PixelValues, Source,
};

const BATCH: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, mode, workers, passes] = &arguments[..] else {
        return Err("give FOLDER train|eval WORKERS PASSES".into());
    };
    let (workers, passes): (usize, usize) = (workers.parse()?, passes.parse()?);
    let train = DataSet::open(&data(folder), Link::Softmax)?.train;
    let (mut images, mut sum) = (0, 0.0);
    let start = Instant::now();
    match mode.as_str() {
        "train" => {
            let order = Order { examples: train.len(), batch: BATCH, part: BATCH, seed: 0 };
            let steps = 0..passes * order.steps_per_epoch();
            for batch in training_batches(train, order, steps, 0..1, workers) {
                let batch = batch?;
                images += batch.examples.len();
                sum += batch.inputs[0];
            }
        }
        "eval" => {
            for _ in 0..passes {
                for batch in evaluation_batches(Arc::clone(&train), BATCH, workers) {
                    let batch = batch?;
                    images += batch.examples.len();
                    sum += batch.inputs[0];
                }
            }
        }
        other => return Err(format!("{other:?} is neither train nor eval").into()),
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = images as f64 / seconds;
    println!(
        "{{\"mode\": {mode:?}, \"workers\": {workers}, \"images\": {images}, \"seconds\": \
         {seconds:.4}, \"images_per_second\": {rate:.1}, \"sum\": {sum}}}"
    );
    Ok(())
}

fn data(folder: &str) -> Data {
    let crop = Crop::Inception { area: (0.08, 1.0), ratio: (0.75, 4.0 / 3.0) };
    let validation = HeldOut::Fraction { fraction: 0.01, seed: 0 };
    Data {
        framing: Framing {
            channels: None,
            size: Some(224),
            centre_crop: Some(0.875),
            filter: Filter::Bilinear,
            values: PixelValues::ImageNet,
        },
        augment: Some(Augment { crop, flip: true, rand_augment: None, mixup: None }),
        ..Data::of(Source::of(InputSource::images(folder)), validation)
    }
}
