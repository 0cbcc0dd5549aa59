//! How much of a runtime's own rate is left between image files and embeddings.
//!
//! ```text
//! cargo run --release -p aleator-embed --example rate -- NET.onnx IMAGES SIZE PRESET RUNTIME [BATCH] [ROUNDS]
//! ```
//!
//! Each round runs as many prepared batches in a loop as there are images, then embeds the images
//! to a file; the two take turns, so that a busy machine disturbs both alike. The time that the
//! processors spent on it is shown too, where the system tells: others do not disturb that, and on
//! a machine without others the two ratios agree.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use aleator_embed::{
    DEFAULT_BATCH, Extractor, Images, Job, OnnxNetwork, OnnxOptions, Outcome, Precision,
    Preprocessing, Runtime, embed, open_sources,
};
use aleator_run::recipe::{Framing, PixelValues};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, images, size, preset, runtime, rest @ ..] = &arguments[..] else {
        return Err("NET.onnx IMAGES SIZE PRESET RUNTIME [BATCH] [ROUNDS]".into());
    };
    let number = |at: usize, usual: usize| rest.get(at).map_or(Ok(usual), |text| text.parse());
    let (batch, rounds) = (number(0, DEFAULT_BATCH)?, number(1, 3)?);
    let values = match preset.as_str() {
        "lite" => PixelValues::Lite,
        "imagenet" => PixelValues::ImageNet,
        "unit" => PixelValues::Unit,
        _ => PixelValues::Symmetric,
    };
    let framing = Framing { values, ..Framing::sized(size.parse()?) };
    let runtime = if runtime == "rten" { Runtime::Rten } else { Runtime::OnnxRuntime };
    let threads = rayon::current_num_threads();
    let options = OnnxOptions { runtime, library: None, output: None, threads };
    let mut network =
        OnnxNetwork::open(model.as_ref(), &options, &AtomicBool::new(false), &mut |said| {
            println!("{said}")
        })?;
    let (preprocessing, _) = Preprocessing::new(&framing, network.input())?;
    let source = open_sources(&[PathBuf::from(images)], &framing)?.swap_remove(0).opened;
    let total = source.inputs.len();

    let mut prepared = vec![0.0; batch * preprocessing.numbers()];
    let started = Instant::now();
    for (row, image) in prepared.chunks_exact_mut(preprocessing.numbers()).enumerate() {
        preprocessing.read(&source.inputs, row % total, image)?;
    }
    let alone = started.elapsed().as_secs_f64() / batch as f64;
    println!("preparing takes {:.3} ms an image on one thread", 1e3 * alone);

    let (width, height) = preprocessing.size();
    let images = Images { values: &prepared, count: batch, height, width };
    black_box(network.extract(&images)?);
    let folder = std::env::temp_dir().join(format!("aleator-rate-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (mut own, mut whole) = (0.0, 0.0);
    let (mut own_work, mut whole_work) = (0.0, 0.0);
    for round in 0..rounds {
        let (started, work) = (Instant::now(), processor_seconds());
        let batches = total.div_ceil(batch);
        for _ in 0..batches {
            black_box(network.extract(&images)?);
        }
        let own_rate = (batches * batch) as f64 / started.elapsed().as_secs_f64();
        own_work += (processor_seconds() - work) / (batches * batch) as f64;
        let out = folder.join(format!("{round}.safetensors"));
        let precision = Precision::Single;
        let job = Job { source: &source, preprocessing, precision, batch, out: &out };
        let (started, work) = (Instant::now(), processor_seconds());
        let outcome = embed(&job, &mut network, &AtomicBool::new(false), &mut |_| ())?;
        let whole_rate = total as f64 / started.elapsed().as_secs_f64();
        whole_work += (processor_seconds() - work) / total as f64;
        assert!(matches!(outcome, Outcome::Finished { .. }), "{outcome:?}");
        println!(
            "round {round}: runtime alone {own_rate:.1} images/s, from images to the file \
             {whole_rate:.1} images/s, ratio {:.3}",
            whole_rate / own_rate
        );
        own += 1.0 / own_rate;
        whole += 1.0 / whole_rate;
    }
    std::fs::remove_dir_all(&folder)?;
    let (own, whole) = (rounds as f64 / own, rounds as f64 / whole);
    println!("all rounds: {own:.1} and {whole:.1} images/s, ratio {:.3}", whole / own);
    println!(
        "processor time: {:.2} and {:.2} ms an image, ratio {:.3}",
        1e3 * own_work / rounds as f64,
        1e3 * whole_work / rounds as f64,
        own_work / whole_work
    );
    Ok(())
}

/// What all threads of this process have computed so far; Linux counts it in hundredths.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
