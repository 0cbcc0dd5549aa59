//! What a key may hold: functions for `#[serde(deserialize_with)]`.

use std::fmt;
use std::path::PathBuf;

use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Far above anything useful, and low enough that products of a few of them fit a machine.
pub(super) const MANY: u64 = 1 << 24;

/// Monte Carlo samples are counted in 32 bits.
pub(super) const SAMPLES: u64 = u32::MAX as u64;

/// An integer between bounds, both included.
#[derive(Deserialize)]
#[serde(transparent)]
struct Count<const LOW: u64, const HIGH: u64>(
    #[serde(deserialize_with = "integer::<LOW, HIGH, _>")] u64,
);

fn integer<'de, const LOW: u64, const HIGH: u64, D>(from: D) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    match u64::try_from(i128::deserialize(from)?) {
        Ok(value) if (LOW..=HIGH).contains(&value) => Ok(value),
        _ => Err(must_be(&format!("an integer from {LOW} to {HIGH}"))),
    }
}

/// The error for a value out of bounds; the deserializer knows the value.
fn must_be<E: Error>(expected: &str) -> E {
    E::invalid_value(Unexpected::Other("this"), &expected)
}

pub(super) fn count<'de, const LOW: u64, const HIGH: u64, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<usize>,
{
    integer::<LOW, HIGH, D>(from).map(|value| T::from(value as usize))
}

pub(super) fn seed<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    integer::<0, { u64::MAX }, D>(from)
}

/// A list that is not empty and not absurdly long.
fn list<'de, D, T>(from: D, most: usize) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::<T>::deserialize(from)?;
    if (1..=most).contains(&list.len()) {
        return Ok(list);
    }
    let found = list.len();
    Err(Error::custom(format!("must be a list of 1 to {most} values, found {found}")))
}

pub(super) fn seeds<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    let seeds = list::<D, Count<0, { u64::MAX }>>(from, 1000)?;
    Ok(seeds.into_iter().map(|seed| seed.0).collect())
}

/// Units or channels of each layer.
pub(super) fn widths<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<usize>, D::Error> {
    let widths = list::<D, Count<1, 65536>>(from, 64)?;
    Ok(widths.into_iter().map(|width| width.0 as usize).collect())
}

pub(super) fn epochs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    list(from, 1000)
}

/// The numbers that a key takes, in words and by a test.
pub(super) trait Range {
    const EXPECTED: &str;

    fn holds(value: f64) -> bool;
}

macro_rules! ranges {
    ($($name:ident: $expected:literal, $value:ident => $holds:expr;)*) => {$(
        #[doc = $expected]
        pub(super) struct $name;

        impl Range for $name {
            const EXPECTED: &str = $expected;

            fn holds($value: f64) -> bool {
                $holds
            }
        }
    )*};
}

ranges! {
    Positive: "a finite number above 0", value => value > 0.0 && value.is_finite();
    NotNegative: "a finite number of at least 0", value => value >= 0.0 && value.is_finite();
    BelowOne: "at least 0 and below 1", value => (0.0..1.0).contains(&value);
    Fraction: "above 0 and below 1", value => value > 0.0 && value < 1.0;
    Share: "above 0 and at most 1", value => value > 0.0 && value <= 1.0;
    UpToOne: "from 0 to 1", value => (0.0..=1.0).contains(&value);
    Strength: "from 0 to 10", value => (0.0..=10.0).contains(&value);
}

pub(super) fn number<'de, R: Range, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<f64>,
{
    let value = f64::deserialize(from)?;
    if R::holds(value) { Ok(T::from(value)) } else { Err(must_be(R::EXPECTED)) }
}

/// Pairs of classes.
pub(super) fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(usize, usize)>, D::Error> {
    struct Pair(usize, usize);
    impl<'de> Deserialize<'de> for Pair {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let pair = <(u32, u32)>::deserialize(from);
            let (from, to) = pair.map_err(|_| must_be("a pair of classes, as in [3, 5]"))?;
            Ok(Self(from as usize, to as usize))
        }
    }
    let pairs = Vec::<Pair>::deserialize(from)?;
    Ok(pairs.into_iter().map(|Pair(from, to)| (from, to)).collect())
}

/// The path of a file or folder.
pub(crate) fn path<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<String>,
{
    PathText::deserialize(from).map(|path| T::from(path.0))
}

/// A path where there may be none.
pub(crate) fn some_path<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: From<String>,
{
    path(from).map(Some)
}

/// The text of a path.
struct PathText(String);

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let path = String::deserialize(from).map_err(|_| {
            // A folder named 2024 is a number to TOML.
            D::Error::invalid_type(Unexpected::Other("this"), &"a path in quotes, as in \"x\"")
        })?;
        if path.is_empty() {
            return Err(Error::custom("must name a file or folder"));
        }
        if path.contains(char::is_control) {
            return Err(Error::custom(format!(
                "must not contain line breaks or other control characters, found {path:?}; in \
                 double quotes TOML takes \\n and \\t for such: put a path with \\ in single quotes"
            )));
        }
        Ok(Self(path))
    }
}

/// One path, or a list of them.
pub(super) fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    struct OneOrMany;
    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<PathText>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a path in quotes, as in \"x\", or a list of paths")
        }

        fn visit_str<E: Error>(self, path: &str) -> Result<Vec<PathText>, E> {
            use serde::de::IntoDeserializer;
            PathText::deserialize(path.into_deserializer()).map(|path| vec![path])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Vec<PathText>, A::Error> {
            list(serde::de::value::SeqAccessDeserializer::new(items), 1 << 16)
        }
    }
    let paths = from.deserialize_string(OneOrMany)?;
    Ok(paths.into_iter().map(|path| path.0.into()).collect())
}

/// The reverse of [`paths`]. A path that is not Unicode is refused where a recipe is checked.
pub(super) fn write_paths<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    let texts: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
    if let [only] = &texts[..] { only.serialize(to) } else { texts.serialize(to) }
}

/// Writes a path, as [`write_paths`] does.
pub(super) fn write_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// Whether a key says nothing that its absence does not.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
