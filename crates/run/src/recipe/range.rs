//! What a key may hold: functions for `#[serde(deserialize_with)]`.

use std::fmt;
use std::path::PathBuf;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IntoDeserializer, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::KeptPredictions;

/// Far above anything useful, and low enough that products of a few of them fit a machine.
pub(crate) const MANY: u64 = 1 << 24;

/// Monte Carlo samples are counted in 32 bits.
pub(super) const SAMPLES: u64 = u32::MAX as u64;

/// An integer between bounds, both included.
fn integer<'de, D: Deserializer<'de>>(from: D, low: u64, high: u64) -> Result<u64, D::Error> {
    let value = u64::try_from(i128::deserialize(from)?).ok();
    let expected = || must_be(&format!("an integer from {low} to {high}"));
    value.filter(|value| (low..=high).contains(value)).ok_or_else(expected)
}

/// The error for a value out of bounds; the deserializer knows the value.
fn must_be<E: Error>(expected: &str) -> E {
    E::invalid_value(Unexpected::Other("this"), &expected)
}

/// A size between bounds, both included.
pub(super) fn count<'de, const LOW: u64, const HIGH: u64, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<usize>,
{
    integer(from, LOW, HIGH).map(|value| T::from(value as usize))
}

pub(super) fn seed<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    integer(from, 0, u64::MAX)
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
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Seed(#[serde(deserialize_with = "seed")] u64);
    let seeds: Vec<Seed> = list(from, 1000)?;
    Ok(seeds.into_iter().map(|seed| seed.0).collect())
}

/// Units or channels of each layer.
pub(super) fn widths<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Width(#[serde(deserialize_with = "count::<1, 65536, _, _>")] usize);
    let widths: Vec<Width> = list(from, 64)?;
    Ok(widths.into_iter().map(|width| width.0).collect())
}

pub(super) fn epochs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    list(from, 1000)
}

/// Three weights, of which the first is above 0.
pub(super) fn weights_of_three<'de, D: Deserializer<'de>>(from: D) -> Result<[f64; 3], D::Error> {
    let weights: Vec<f64> = list(from, 1000)?;
    match weights[..] {
        [first, second, third]
            if first > 0.0 && weights.iter().all(|it| it.is_finite() && *it >= 0.0) =>
        {
            Ok([first, second, third])
        }
        _ => Err(Error::custom(format!(
            "must be three numbers of at least 0, the first above 0, found {weights:?}"
        ))),
    }
}

/// Functions for numbers between bounds, each with its bounds in words and as a test.
macro_rules! ranges {
    ($($name:ident: $expected:literal, |$value:ident| $holds:expr;)*) => {$(
        #[doc = $expected]
        pub(super) fn $name<'de, D, T>(from: D) -> Result<T, D::Error>
        where
            D: Deserializer<'de>,
            T: From<f64>,
        {
            let $value = f64::deserialize(from)?;
            if $holds { Ok($value.into()) } else { Err(must_be($expected)) }
        }
    )*};
}

ranges! {
    positive: "a finite number above 0", |value| value > 0.0 && value.is_finite();
    not_negative: "a finite number of at least 0", |value| value >= 0.0 && value.is_finite();
    below_one: "at least 0 and below 1", |value| (0.0..1.0).contains(&value);
    fraction: "above 0 and below 1", |value| value > 0.0 && value < 1.0;
    share: "above 0 and at most 1", |value| value > 0.0 && value <= 1.0;
    up_to_one: "from 0 to 1", |value| (0.0..=1.0).contains(&value);
    strength: "from 0 to 10", |value| (0.0..=10.0).contains(&value);
}

/// Pairs of classes.
pub(super) fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(usize, usize)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Pair(#[serde(deserialize_with = "pair")] (u32, u32));
    fn pair<'de, D: Deserializer<'de>>(from: D) -> Result<(u32, u32), D::Error> {
        Deserialize::deserialize(from).map_err(|_| must_be("a pair of classes, as in [3, 5]"))
    }
    let pairs = Vec::<Pair>::deserialize(from)?;
    Ok(pairs.into_iter().map(|Pair((from, to))| (from as usize, to as usize)).collect())
}

/// Pairs of classes with the covariance of their noise.
pub(super) fn covariances<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<(usize, usize, f64)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Pair(#[serde(deserialize_with = "pair")] (u32, u32, f64));
    fn pair<'de, D: Deserializer<'de>>(from: D) -> Result<(u32, u32, f64), D::Error> {
        let expected = "two classes and a finite covariance, as in [3, 5, -1.5]";
        let pair: (u32, u32, f64) =
            Deserialize::deserialize(from).map_err(|_| must_be(expected))?;
        if pair.2.is_finite() { Ok(pair) } else { Err(must_be(expected)) }
    }
    let pairs = Vec::<Pair>::deserialize(from)?;
    Ok(pairs.into_iter().map(|Pair((a, b, c))| (a as usize, b as usize, c)).collect())
}

/// The path of a file or folder.
pub(crate) fn path<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<T, D::Error> {
    let path = String::deserialize(from).map_err(|_| {
        // A folder named 2024 is a number to TOML.
        D::Error::invalid_type(Unexpected::Other("this"), &"a path in quotes, as in \"x\"")
    })?;
    if path.is_empty() {
        return Err(Error::custom("must name a file or folder"));
    }
    if path.contains(char::is_control) {
        return Err(Error::custom(format!(
            "must not contain line breaks or other control characters, found {path:?}; in double \
             quotes TOML takes \\n and \\t for such: put a path with \\ in single quotes"
        )));
    }
    Ok(path.into())
}

/// A path where there may be none.
pub(crate) fn some_path<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: From<String>,
{
    path(from).map(Some)
}

/// One path, or a list of them.
pub(super) fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Item(#[serde(deserialize_with = "path")] PathBuf);
    struct OneOrMany;
    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<PathBuf>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a path in quotes, as in \"x\", or a list of paths")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<PathBuf>, E> {
            path(text.into_deserializer()).map(|path| vec![path])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Vec<PathBuf>, A::Error> {
            let items: Vec<Item> = list(SeqAccessDeserializer::new(items), 1 << 16)?;
            Ok(items.into_iter().map(|item| item.0).collect())
        }
    }
    from.deserialize_string(OneOrMany)
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
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads `evaluation.predictions`.
pub(super) struct AllNoneOrCount;

impl Visitor<'_> for AllNoneOrCount {
    type Value = KeptPredictions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"all\", \"none\" or an integer from 1 to {MANY}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<KeptPredictions, E> {
        match text {
            "all" => Ok(KeptPredictions::All),
            "none" => Ok(KeptPredictions::None),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<KeptPredictions, E> {
        match count {
            1..=MANY => Ok(KeptPredictions::Top(count as usize)),
            _ => Err(E::invalid_value(Unexpected::Unsigned(count), &self)),
        }
    }
}
