//! Networks for images, by name.

/// A published network for images. All ResNets are of the second version (pre-activation).
///
/// ```
/// use aleator_vocabulary::ImageNetwork;
///
/// let network = ImageNetwork::from_name("resnet-152").unwrap();
/// assert_eq!((network.feature_dim(), network.smallest_image()), (2048, 32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageNetwork {
    /// Basic blocks 2, 2, 2, 2.
    ResNet18,
    /// Basic blocks 3, 4, 6, 3.
    ResNet34,
    /// Bottlenecks 3, 4, 6, 3.
    ResNet50,
    /// Bottlenecks 3, 4, 23, 3.
    ResNet101,
    /// Bottlenecks 3, 8, 36, 3; the paper's network for ImageNet.
    ResNet152,
    /// For small images: 16, 32, 64 channels, three basic blocks each.
    ResNet20,
    /// For small images: nine basic blocks each.
    ResNet56,
    /// For small images: 160, 320, 640 channels, four basic blocks each.
    WideResNet28x10,
    /// For small images: 32, 64, 128 channels.
    WideResNet28x2,
    /// The paper's network for WebVision.
    InceptionResNetV2,
    /// Small and fast; pretrained weights are easy to get.
    EfficientNetLite0,
}

impl ImageNetwork {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::ResNet18,
        Self::ResNet34,
        Self::ResNet50,
        Self::ResNet101,
        Self::ResNet152,
        Self::ResNet20,
        Self::ResNet56,
        Self::WideResNet28x10,
        Self::WideResNet28x2,
        Self::InceptionResNetV2,
        Self::EfficientNetLite0,
    ];

    /// Its name, how many features it gives, and the smallest height and width of its images.
    fn facts(self) -> (&'static str, usize, usize) {
        match self {
            Self::ResNet18 => ("resnet-18", 512, 32),
            Self::ResNet34 => ("resnet-34", 512, 32),
            Self::ResNet50 => ("resnet-50", 2048, 32),
            Self::ResNet101 => ("resnet-101", 2048, 32),
            Self::ResNet152 => ("resnet-152", 2048, 32),
            Self::ResNet20 => ("resnet-20", 64, 8),
            Self::ResNet56 => ("resnet-56", 64, 8),
            Self::WideResNet28x10 => ("wide-resnet-28-10", 640, 8),
            Self::WideResNet28x2 => ("wide-resnet-28-2", 128, 8),
            Self::InceptionResNetV2 => ("inception-resnet-v2", 1536, 75),
            Self::EfficientNetLite0 => ("efficientnet-lite0", 1280, 32),
        }
    }

    /// Its name in recipes and messages.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// The network of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|network| network.name() == name)
    }

    /// Features that it gives, before hidden layers.
    pub fn feature_dim(self) -> usize {
        self.facts().1
    }

    /// The smallest height and width, in pixels.
    pub fn smallest_image(self) -> usize {
        self.facts().2
    }
}

#[cfg(feature = "serde")]
mod serialization {
    use serde::de::{Deserialize, Deserializer, Error, Unexpected};
    use serde::ser::{Serialize, Serializer};

    use super::ImageNetwork;

    impl Serialize for ImageNetwork {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.name())
        }
    }

    impl<'de> Deserialize<'de> for ImageNetwork {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let name = String::deserialize(deserializer)?;
            let unknown = || {
                let expected = "the name of a network, as \"resnet-50\"";
                Error::invalid_value(Unexpected::Str(&name), &expected)
            };
            Self::from_name(&name).ok_or_else(unknown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_networks_have_one_order() {
        for (at, network) in ImageNetwork::ALL.into_iter().enumerate() {
            assert_eq!(network as usize, at);
            assert_eq!(ImageNetwork::from_name(network.name()), Some(network));
        }
        assert_eq!(ImageNetwork::WideResNet28x10.name(), "wide-resnet-28-10");
    }
}
