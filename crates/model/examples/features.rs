//! Features of images by a pretrained network, to hold against another implementation:
//!
//! ```text
//! cargo run --release -p aleator-model --example features -- \
//!     efficientnet-lite0 1e-3 weights.safetensors images.npy features.npy
//! ```
//!
//! The images are f32 [N, C, H, W], prepared as the network wants them; the second argument is
//! the epsilon that its norms were trained with.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use aleator_model::{
    BackboneConfig, ClassifierConfig, DiagScale, Draws, HeadTemperature, HetLinearConfig,
    ImageNetwork, Likelihood, Link, Noise, NormConfig, Temperature, load_network,
};
use burn::tensor::{Device, Tensor, TensorData};

const USAGE: &str = "features NETWORK EPSILON WEIGHTS.safetensors IMAGES.npy FEATURES.npy";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [network, epsilon, weights, images, features] = arguments.as_slice() else {
        return Err(format!("five arguments are needed: {USAGE}").into());
    };
    let network = ImageNetwork::from_name(network).ok_or_else(|| {
        let names = ImageNetwork::ALL.map(ImageNetwork::name).join(", ");
        format!("no network is called {network}; there are {names}")
    })?;
    let (shape, pixels) = read_npy(Path::new(images))?;
    let [count, channels, height, width] = <[usize; 4]>::try_from(shape)
        .map_err(|found| format!("{images}: images must be [N, C, H, W], found {found:?}"))?;
    let backbone = BackboneConfig::Image {
        network,
        image: [channels, height, width],
        norm: NormConfig { momentum: 0.9, epsilon: epsilon.parse()? },
        hidden: vec![],
    };
    backbone.check()?;
    let device = Device::flex();
    let model = load_network(classifier(backbone).init(&device), Path::new(weights))?;
    let pixels =
        Tensor::from_data(TensorData::new(pixels, [count, channels * height * width]), &device);
    let start = Instant::now();
    let found = model.features(pixels);
    let dims = found.dims();
    let values: Vec<f32> = found.into_data().iter::<f32>().collect();
    println!("{count} images of {height} × {width} in {:.2} s", start.elapsed().as_secs_f64());
    write_npy(Path::new(features), dims, &values)?;
    Ok(())
}

/// The head is not used.
fn classifier(backbone: BackboneConfig) -> ClassifierConfig {
    let output = HetLinearConfig {
        feature_dim: backbone.feature_dim(),
        classes: 2,
        noise: Noise::None,
        link: Link::Softmax,
        likelihood: Likelihood::Marginal,
        temperature: HeadTemperature::Fixed(Temperature::try_from(1.0).expect("1 is positive")),
        diag_scale: DiagScale::Softplus,
        samples: 1,
        draws: Draws::Antithetic,
        seed: 0,
    };
    ClassifierConfig { backbone, output, frozen: true }
}

/// Shape and numbers of an array of f32 that NumPy saved.
fn read_npy(path: &Path) -> Result<(Vec<usize>, Vec<f32>), Box<dyn Error>> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    let bad = || format!("{name}: expected little-endian f32 in row order, as np.save writes it");
    let long = bytes.get(6) == Some(&2);
    let start = if long { 12 } else { 10 };
    let size: Vec<u8> = bytes.get(8..start).ok_or_else(bad)?.to_vec();
    let size = size.iter().rev().fold(0, |size, byte| size * 256 + usize::from(*byte));
    let header = bytes.get(start..start + size).ok_or_else(bad)?;
    let header = std::str::from_utf8(header)?;
    if !(header.contains("'<f4'") && header.contains("'fortran_order': False")) {
        return Err(bad().into());
    }
    let inside = header.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let numbers = inside.ok_or_else(bad)?.0.split(',').map(str::trim).filter(|it| !it.is_empty());
    let shape = numbers.map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let words = bytes[start + size..].chunks_exact(4);
    let values: Vec<f32> = words.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    if values.len() != shape.iter().product::<usize>() {
        return Err(format!("{name}: {} numbers for shape {shape:?}", values.len()).into());
    }
    Ok((shape, values))
}

fn write_npy(path: &Path, [rows, columns]: [usize; 2], values: &[f32]) -> std::io::Result<()> {
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let unpadded = 10 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    std::fs::write(path, bytes)
}
