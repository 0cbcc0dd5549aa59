//! Damaged networks: refused or run, within the memory and the time of a test.

use aleator_embed::{Extractor, Images, OnnxNetwork, OnnxOptions, Runtime};

use crate::fuzz::{Case, Form, Seed, fuzz_test};
use crate::onnx::{feature_map, mean_colours, mean_colours_channels_last, tokens_and_mean};

fn seeds() -> Vec<Seed> {
    let networks = [
        mean_colours(-1, -1),
        mean_colours(2, 4),
        mean_colours_channels_last(),
        feature_map(),
        tokens_and_mean(),
    ];
    networks.iter().map(|network| Seed::new("net.onnx", Form::Wire, network.file())).collect()
}

fn embed_two_images(case: &Case) {
    let output = case.number.is_multiple_of(2).then_some("mean");
    let options = OnnxOptions { runtime: Runtime::Rten, library: None, output, threads: 1 };
    let Ok(mut network) = OnnxNetwork::open(&case.write(), &options, &mut |_| ()) else { return };
    let input = network.input();
    // As large as the network asks for, if that is no larger than a picture of a test.
    let [height, width] = [input.height, input.width].map(|length| length.unwrap_or(4).min(64));
    let values = vec![0.5; 2 * input.channels * height * width];
    let images = Images { values: &values, count: 2, height, width };
    drop(network.extract(&images));
}

fuzz_test!(damaged_networks, 1500, seeds(), embed_two_images);
