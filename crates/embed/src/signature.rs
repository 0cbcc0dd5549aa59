//! The inputs and outputs of a network: does it turn an image into an embedding?

use std::fmt;

/// Most images at once that a network may fix; batches are filled up to them.
const LARGEST_BATCH: usize = 4096;

/// A fixed or an open length.
pub type Length = Option<usize>;

/// The type of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floats.
    Float,
    /// The file does not specify it.
    Unsaid,
    /// Anything else, by its name.
    Other(String),
}

/// An input or output of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name in the file.
    pub name: String,
    /// `None` if the file does not specify it.
    pub shape: Option<Vec<Length>>,
    /// The type of its numbers.
    pub element: Element,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = match &self.element {
            Element::Float => "float32",
            Element::Unsaid => "numbers",
            Element::Other(name) => name,
        };
        write!(f, "{} ({element}", self.name)?;
        let Some(shape) = &self.shape else { return write!(f, ")") };
        let open = |length: &Length| length.map_or("?".to_string(), |length| length.to_string());
        write!(f, " [{}])", shape.iter().map(open).collect::<Vec<_>>().join(", "))
    }
}

/// The position of the channels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `[N, channels, height, width]`, as in PyTorch.
    ChannelsFirst,
    /// `[N, height, width, channels]`, as in TensorFlow.
    ChannelsLast,
}

/// The images that a network accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputSpec {
    /// The position of the channels.
    pub layout: Layout,
    /// 3 for colour, 1 for grey.
    pub channels: usize,
    /// Rows of pixels, if the network fixes them.
    pub height: Length,
    /// Columns of pixels, if the network fixes them.
    pub width: Length,
    /// The batch size, if the network fixes it.
    pub batch: Length,
}

impl InputSpec {
    /// The input of a network without fixed lengths: colour, channels first.
    pub const OPEN: Self =
        Self { layout: Layout::ChannelsFirst, channels: 3, height: None, width: None, batch: None };

    /// Reads it from the inputs of a network; the error is a phrase.
    pub fn of(inputs: &[Port]) -> Result<Self, String> {
        let [input] = inputs else {
            let count = inputs.len();
            return Err(format!(
                "has {count} inputs, expected one, the images; it has {}: export the image \
                 encoder alone",
                listed(inputs)
            ));
        };
        if let Element::Other(name) = &input.element {
            return Err(format!(
                "its input {} is of {name}, expected float32: export the network in float32, \
                 without steps that decode or quantise images",
                input.name
            ));
        }
        let Some(shape) = &input.shape else { return Ok(Self::OPEN) };
        let &[batch, second, third, fourth] = &shape[..] else {
            return Err(format!(
                "its input {input} has {} dimensions, expected images: [N, 3, height, width] or \
                 [N, height, width, 3]",
                shape.len()
            ));
        };
        let is_channels = |length: Length| matches!(length, Some(1 | 3));
        let (layout, channels, height, width) = match (second, fourth) {
            (first, _) if is_channels(first) => (Layout::ChannelsFirst, first, third, fourth),
            (_, last) if is_channels(last) => (Layout::ChannelsLast, last, second, third),
            (None, _) => (Layout::ChannelsFirst, Some(3), third, fourth),
            (Some(found), _) => {
                return Err(format!(
                    "its input {input} has {found} channels, expected 3 (colour) or 1 (grey)"
                ));
            }
        };
        if [batch, height, width].contains(&Some(0)) {
            return Err(format!("its input {input} has no pixels"));
        }
        if batch > Some(LARGEST_BATCH) {
            return Err(format!(
                "its input {input} is of more than {LARGEST_BATCH} images at once; export it with \
                 an open number"
            ));
        }
        Ok(Self { layout, channels: channels.unwrap_or(3), height, width, batch })
    }
}

/// The position of the named output, or of the only one; the error is a phrase.
pub fn choose_output(outputs: &[Port], name: Option<&str>) -> Result<usize, String> {
    let chosen = match (name, outputs) {
        (Some(name), _) => outputs
            .iter()
            .position(|port| port.name == name)
            .ok_or_else(|| format!("has no output {name:?}; it has {}", listed(outputs)))?,
        (None, [_]) => 0,
        (None, []) => return Err("has no output".into()),
        (None, _) => {
            return Err(format!(
                "has several outputs; choose one with --output NAME: {}",
                listed(outputs)
            ));
        }
    };
    let port = &outputs[chosen];
    if let Element::Other(name) = &port.element {
        let others = listed(outputs);
        return Err(format!(
            "its output {} is of {name}, expected float32; the outputs are {others}",
            port.name
        ));
    }
    if let Some(shape) = &port.shape {
        // An unknown dimension may be right.
        let shape: Vec<usize> = shape.iter().map(|length| length.unwrap_or(1)).collect();
        Reading::of(&shape, Layout::ChannelsFirst).map_err(|why| {
            format!("its output {port} {why}; the outputs are {}", listed(outputs))
        })?;
    }
    Ok(chosen)
}

/// How an output is read as one vector for each image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// `[N, D]` or `[N, D, 1, 1]`: as it is.
    Vectors {
        /// D.
        width: usize,
    },
    /// `[N, C, H, W]` (or `[N, H, W, C]`): the mean over the positions.
    Pooled {
        /// C.
        width: usize,
        /// H · W.
        places: usize,
        /// The position of the channels.
        layout: Layout,
    },
}

impl Reading {
    /// Chosen by the shape of an output; the error is a phrase.
    pub fn of(shape: &[usize], layout: Layout) -> Result<Self, String> {
        match *shape {
            [_, width] => Ok(Self::Vectors { width }),
            [_, width, 1, 1] => Ok(Self::Vectors { width }),
            [_, first, second, third] => {
                let (width, places) = match layout {
                    Layout::ChannelsFirst => (first, second * third),
                    Layout::ChannelsLast => (third, first * second),
                };
                Ok(Self::Pooled { width, places, layout })
            }
            [_, _, _] => Err("has a vector for each token, expected one for each image: take \
                              the pooled output or export the network with pooling"
                .into()),
            _ => Err("is no embedding, expected [N, D] or a feature map [N, C, H, W]".into()),
        }
    }

    /// D.
    pub fn width(&self) -> usize {
        match *self {
            Self::Vectors { width } | Self::Pooled { width, .. } => width,
        }
    }

    /// The vectors of an output, `[N, D]`.
    pub fn vectors(&self, values: &[f32]) -> Vec<f32> {
        match *self {
            Self::Vectors { .. } => values.to_vec(),
            Self::Pooled { places, layout: Layout::ChannelsFirst, .. } => {
                let mean = |map: &[f32]| map.iter().sum::<f32>() / places as f32;
                values.chunks_exact(places).map(mean).collect()
            }
            Self::Pooled { width, places, layout: Layout::ChannelsLast } => {
                let mut out = vec![0.0; values.len() / places];
                for (out, map) in
                    out.chunks_exact_mut(width).zip(values.chunks_exact(width * places))
                {
                    for place in map.chunks_exact(width) {
                        out.iter_mut().zip(place).for_each(|(sum, value)| *sum += value);
                    }
                    out.iter_mut().for_each(|sum| *sum /= places as f32);
                }
                out
            }
        }
    }
}

/// The ports in one phrase.
pub(crate) fn listed(ports: &[Port]) -> String {
    match ports {
        [] => "none".into(),
        _ => ports.iter().map(Port::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(shape: &[i64]) -> Port {
        let shape = shape.iter().map(|&length| usize::try_from(length).ok()).collect();
        Port { name: "x".into(), shape: Some(shape), element: Element::Float }
    }

    #[test]
    fn the_layout_follows_the_channels() {
        let spec = |shape: &[i64]| InputSpec::of(&[port(shape)]);
        let first = spec(&[-1, 3, -1, 96]).unwrap();
        assert_eq!(
            (first.layout, first.height, first.width),
            (Layout::ChannelsFirst, None, Some(96))
        );
        let last = spec(&[8, 64, 32, 1]).unwrap();
        assert_eq!((last.layout, last.channels, last.batch), (Layout::ChannelsLast, 1, Some(8)));
        assert_eq!((last.height, last.width), (Some(64), Some(32)));
        assert_eq!(spec(&[-1, -1, -1, -1]).unwrap(), InputSpec::OPEN);
        assert!(spec(&[-1, 4, 32, 32]).unwrap_err().contains("4 channels"));
        assert!(spec(&[-1, 3]).unwrap_err().contains("2 dimensions"));
        assert!(spec(&[-1, 3, 0, 32]).unwrap_err().contains("no pixels"));
    }

    #[test]
    fn feature_maps_are_averaged_in_either_layout() {
        let first = Reading::of(&[1, 2, 1, 2], Layout::ChannelsFirst).unwrap();
        assert_eq!(first.vectors(&[1.0, 3.0, 10.0, 20.0]), [2.0, 15.0]);
        let last = Reading::of(&[2, 2, 1, 2], Layout::ChannelsLast).unwrap();
        assert_eq!(
            last.vectors(&[1.0, 10.0, 3.0, 20.0, 0.0, 0.0, 4.0, 2.0]),
            [2.0, 15.0, 2.0, 1.0]
        );
    }

    #[test]
    fn one_of_several_outputs_is_chosen_by_its_name() {
        let mut pooled = port(&[-1, 8]);
        pooled.name = "pooled".into();
        let both = [port(&[-1, 7, 8]), pooled];
        assert_eq!(choose_output(&both, Some("pooled")), Ok(1));
        assert!(choose_output(&both, None).unwrap_err().contains("pooled (float32 [?, 8])"));
        assert!(choose_output(&both, Some("x")).unwrap_err().contains("each token"));
        assert!(choose_output(&both, Some("y")).unwrap_err().contains("no output \"y\""));
    }
}
