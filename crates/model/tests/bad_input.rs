//! Every mistake is named before any work is done.

use crate::support;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::{config, device, matrix, tau};
use aleator_model::{HeadTemperature, HetLinearConfig, Labels, Link, Noise, Temperature};
use burn::tensor::{Int, Tensor};

#[track_caller]
fn refuses<T>(words: &[&str], work: impl FnOnce() -> T) {
    let error = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(_) => panic!("nothing was refused; expected a message with {words:?}"),
        Err(error) => error,
    };
    let message = error
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| error.downcast_ref::<&str>().map(|text| text.to_string()))
        .expect("a message");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

#[test]
fn sizes_of_zero_are_refused() {
    let base = config(Noise::LowRank { rank: 2 }, Link::Softmax);
    let device = device();
    let init = |config: HetLinearConfig| config.init(&device);
    refuses(&["classes", "at least 1"], || init(HetLinearConfig { classes: 0, ..base.clone() }));
    refuses(&["feature_dim"], || init(HetLinearConfig { feature_dim: 0, ..base.clone() }));
    refuses(&["samples"], || init(HetLinearConfig { samples: 0, ..base.clone() }));
    for noise in [
        Noise::LowRank { rank: 0 },
        Noise::SharedLowRank { rank: 0 },
        Noise::OnFeatures { rank: 0 },
    ] {
        refuses(&["rank", "Diagonal"], || init(HetLinearConfig { noise, ..base.clone() }));
    }
    let temperature = HeadTemperature::Learned { low: tau(2.0), high: tau(1.0) };
    refuses(&["temperature bounds"], || init(HetLinearConfig { temperature, ..base.clone() }));
}

#[test]
fn a_temperature_that_is_not_positive_cannot_be_held() {
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY, -0.0, 1e-42] {
        let error = Temperature::try_from(value).unwrap_err().to_string();
        assert!(error.contains("above 0"), "{error}");
    }
}

#[test]
fn features_of_another_width_or_not_finite_are_refused() {
    let device = device();
    let layer = config(Noise::Diagonal, Link::Softmax).init(&device);
    refuses(&["features", "[B, 5]", "[3, 6]"], || layer.forward(matrix(3, 6, 1, &device)));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let x = matrix(3, 5, 1, &device);
        let x = x.slice_assign([2..3, 4..5], Tensor::from_floats([[bad]], &device));
        refuses(&["features must be finite"], || layer.forward(x.clone()));
        #[cfg(not(feature = "wgpu"))]
        refuses(&["example 2", "feature 4"], || layer.forward(x));
    }
}

#[test]
fn labels_out_of_range_are_refused_by_example() {
    let device = device();
    for link in [Link::Softmax, Link::Sigmoid] {
        let layer = config(Noise::Diagonal, link).init(&device);
        for bad in [4, -1] {
            let labels = Tensor::<1, Int>::from_ints([0, bad, 1], &device);
            let found = bad.to_string();
            refuses(&["label of example 1", &found], || {
                layer.loss(matrix(3, 5, 1, &device), labels)
            });
        }
        let short = Tensor::<1, Int>::from_ints([0, 1], &device);
        refuses(&["labels must be"], || layer.loss(matrix(3, 5, 1, &device), short));
        let narrow = Labels::Dense(Tensor::zeros([3, 3], &device));
        refuses(&["labels must be [3, 4]"], || layer.loss(matrix(3, 5, 1, &device), narrow));
    }
}

#[test]
fn dense_labels_that_are_no_probabilities_are_refused_by_example_and_class() {
    let device = device();
    for (link, bad) in [
        (Link::Softmax, f32::NAN),
        (Link::Softmax, -0.5),
        (Link::Sigmoid, f32::NAN),
        (Link::Sigmoid, 2.0),
        (Link::Sigmoid, -0.1),
    ] {
        let layer = config(Noise::Diagonal, link).init(&device);
        let bad = Tensor::from_floats([[bad]], &device);
        let labels = Tensor::<2>::zeros([3, 4], &device).slice_assign([1..2, 2..3], bad);
        refuses(&["label of example 1, class 2"], || layer.loss(matrix(3, 5, 1, &device), labels));
    }
}

#[test]
fn ids_that_do_not_fit_the_batch_are_refused() {
    let device = device();
    for link in [Link::Softmax, Link::Sigmoid] {
        let layer = config(Noise::Diagonal, link).init(&device);
        let noise = support::noise(2, 8, aleator_model::Draws::Independent);
        refuses(&["example ids", "3"], || layer.forward_with(matrix(3, 5, 1, &device), &noise));
    }
}

/// A weight that diverged must not vanish in a maximum.
#[test]
#[cfg(not(feature = "wgpu"))]
fn a_latent_that_is_not_finite_is_refused_by_example_and_class() {
    use aleator_kernels::{Covariance, Latent, Vectors, fused};
    for bad in [f32::NAN, f32::INFINITY] {
        let mean = [0.0, 1.0, 2.0, 0.0, 1.0, bad];
        let latent = Latent { batch: 2, classes: 3, mean: &mean, covariance: Covariance::None };
        let noise = support::noise(2, 8, aleator_model::Draws::Independent);
        let sampling = aleator_kernels::Sampling {
            key: noise.key,
            ids: &noise.ids,
            samples: 8,
            draws: noise.draws,
            law: aleator_kernels::NoiseLaw::Normal,
        };
        refuses(&["mean", "example 1", "class 2"], || {
            fused::predict(&latent, tau(1.0), &sampling, Vectors::Detected)
                .unwrap_or_else(|error| panic!("{error}"))
        });
    }
}

#[test]
fn an_empty_batch_is_refused_where_a_mean_is_asked_for() {
    let device = device();
    let layer = config(Noise::Diagonal, Link::Softmax).init(&device);
    let labels = Tensor::<1, Int>::zeros([0], &device);
    refuses(&["at least 1 example"], || layer.loss(Tensor::zeros([0, 5], &device), labels));
}

#[test]
fn an_example_that_is_not_there_has_no_covariance() {
    let device = device();
    let layer = config(Noise::Diagonal, Link::Softmax).init(&device);
    let prediction = layer.predict(matrix(3, 5, 1, &device));
    refuses(&["example must be below 3"], || prediction.latent.covariance(3));
}
