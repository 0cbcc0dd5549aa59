//! What networks compute, in both runtimes.

use crate::support;
use crate::support::onnx::{
    feature_map, mean_colours, mean_colours_channels_last, tokens_and_mean,
};
use crate::support::{Place, open};
use aleator_embed::{
    Extractor, Images, Layout, OnnxNetwork, Reading, Runtime, onnx_runtime_is_found,
};

/// Runs a check with every runtime that can be used here.
fn with_each(file: &[u8], output: Option<&str>, check: impl Fn(OnnxNetwork)) {
    let place = Place::new();
    let path = place.write("net.onnx", file);
    check(open(&path, Runtime::Rten, output).unwrap());
    if onnx_runtime_is_found() {
        check(open(&path, Runtime::OnnxRuntime, output).unwrap());
    } else {
        println!("ONNX Runtime is not found here: tested with rten only");
    }
}

/// `count` images of 2 × 2 pixels, channels first; channel c of image i is 10 i + c everywhere.
fn images(count: usize) -> Vec<f32> {
    let pixel = |at: usize| (10 * (at / 12) + at % 12 / 4) as f32;
    (0..12 * count).map(pixel).collect()
}

fn of(values: &[f32], count: usize) -> Images<'_> {
    Images { values, count, height: 2, width: 2 }
}

#[test]
fn a_network_computes_the_same_in_both_runtimes() {
    with_each(&mean_colours(-1, -1).file(), None, |mut network| {
        let features = network.extract(&of(&images(2), 2)).unwrap();
        // (r, g, b, r / 2 + g / 4 − b)
        assert_eq!(features, [0.0, 1.0, 2.0, -1.75, 10.0, 11.0, 12.0, -4.25]);
    });
}

#[test]
fn channels_may_come_last() {
    with_each(&mean_colours_channels_last().file(), None, |mut network| {
        assert_eq!(network.input().layout, Layout::ChannelsLast);
        let values: Vec<f32> = (0..4).flat_map(|_| [0.0, 1.0, 2.0]).collect();
        assert_eq!(network.extract(&of(&values, 1)).unwrap(), [0.0, 1.0, 2.0, -1.75]);
    });
}

#[test]
fn feature_maps_are_averaged() {
    with_each(&feature_map().file(), None, |mut network| {
        assert_eq!(network.extract(&of(&images(1), 1)).unwrap(), [0.0, 1.0, 2.0]);
        assert!(matches!(network.reading(), Some(Reading::Pooled { width: 3, places: 4, .. })));
    });
}

#[test]
fn one_output_of_several_is_computed_alone() {
    with_each(&tokens_and_mean().file(), Some("mean"), |mut network| {
        assert_eq!(network.extract(&of(&images(1), 1)).unwrap(), [0.0, 1.0, 2.0]);
    });
}

/// Networks that fix the size of a batch get whole ones; nobody sees the padding.
#[test]
fn fixed_batches_are_filled_up() {
    let free = |count: usize| {
        let place = Place::new();
        let path = place.write("net.onnx", mean_colours(-1, 2).file());
        support::rten(&path).unwrap().extract(&of(&images(count), count)).unwrap()
    };
    with_each(&mean_colours(4, 2).file(), None, |mut network| {
        assert_eq!(network.input().batch, Some(4));
        for count in [1, 3, 4, 5, 8, 10] {
            let features = network.extract(&of(&images(count), count)).unwrap();
            assert_eq!(features, free(count), "{count} images");
        }
    });
}
