//! The temperature of a link.

use core::fmt;

/// The smoothing temperature τ of softmax and sigmoid; finite and positive by construction.
///
/// ```
/// use aleator_vocabulary::Temperature;
///
/// assert_eq!(Temperature::try_from(0.9).unwrap().get(), 0.9);
/// assert!(Temperature::try_from(0.0).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(f32);

impl Temperature {
    /// The value, > 0.
    pub fn get(self) -> f32 {
        self.0
    }
}

/// A temperature that is not a positive finite number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadTemperature(pub f32);

impl fmt::Display for BadTemperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "temperature must be a finite number above 0 (at least 1e-10), found {}", self.0)
    }
}

impl core::error::Error for BadTemperature {}

impl TryFrom<f32> for Temperature {
    type Error = BadTemperature;

    fn try_from(value: f32) -> Result<Self, BadTemperature> {
        // Far below any use; smaller ones would bring utilities over τ near the limits of f32.
        let valid = value.is_finite() && value >= 1e-10;
        if valid { Ok(Self(value)) } else { Err(BadTemperature(value)) }
    }
}

/// The temperature of a head.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
pub enum HeadTemperature {
    /// This one. In recipes `0.9`.
    Fixed(Temperature),
    /// Learned within bounds, from the middle: τ = low + (high − low) · sigmoid(t), t₀ = 0. In
    /// recipes `{ low = 0.3, high = 3.0 }`.
    Learned {
        /// Lower bound.
        low: Temperature,
        /// Upper bound.
        high: Temperature,
    },
}

#[cfg(feature = "serde")]
mod serialization {
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{self, IntoDeserializer, MapAccess, Unexpected};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{HeadTemperature, Temperature, fmt};

    impl Serialize for Temperature {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            // The f64 that reads as this number: 0.9, not 0.8999999761581421.
            let shortest = self.0.to_string().parse().unwrap_or(f64::from(self.0));
            serializer.serialize_f64(shortest)
        }
    }

    impl<'de> Deserialize<'de> for Temperature {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let value = f64::deserialize(deserializer)?;
            Self::try_from(value as f32).map_err(|_| {
                let expected = &"a number above 0, from 1e-10 to 3e38";
                de::Error::invalid_value(Unexpected::Float(value), expected)
            })
        }
    }

    impl<'de> Deserialize<'de> for HeadTemperature {
        /// Asks for a struct, so that a deserializer learns the names of the bounds; one that
        /// finds a number instead must offer the number.
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_struct("inline", &["low", "high"], NumberOrBounds)
        }
    }

    struct NumberOrBounds;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Bounds {
        low: Option<Temperature>,
        high: Option<Temperature>,
    }

    impl<'de> de::Visitor<'de> for NumberOrBounds {
        type Value = HeadTemperature;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number, or bounds as in { low = 0.3, high = 3.0 }")
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<HeadTemperature, E> {
            Temperature::deserialize(value.into_deserializer()).map(HeadTemperature::Fixed)
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<HeadTemperature, E> {
            self.visit_f64(value as f64)
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<HeadTemperature, E> {
            self.visit_f64(value as f64)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HeadTemperature, A::Error> {
            let Bounds { low, high } = Bounds::deserialize(MapAccessDeserializer::new(map))?;
            let missing = |bound| {
                let example = "{ low = 0.3, high = 3.0 }";
                de::Error::custom(format!(
                    "must have both bounds, as in {example}; {bound} is missing"
                ))
            };
            let low = low.ok_or_else(|| missing("low"))?;
            let high = high.ok_or_else(|| missing("high"))?;
            if low.get() < high.get() {
                return Ok(HeadTemperature::Learned { low, high });
            }
            Err(de::Error::invalid_value(Unexpected::Map, &"bounds with low below high"))
        }
    }
}
