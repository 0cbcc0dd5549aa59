//! What the arguments of several commands are parsed by.

use std::ops::RangeInclusive;

use aleator::report::audit::Acceptance;
use aleator::run::Split;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A value by its name on the command line, with its line of help.
pub type Choice<T> = (&'static str, T, &'static str);

/// The splits that models are judged on.
pub const HELD_OUT: [Choice<Split>; 2] = [
    ("validation", Split::Validation, "The examples that chose the weights"),
    ("test", Split::Test, "The examples that were only measured"),
];

/// Parses the name of one of some values.
pub fn choice<T: Copy + Send + Sync + 'static>(
    values: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let names = values.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|text| {
        let named = values.iter().find(|(name, ..)| *name == text);
        named.map(|(_, value, _)| *value).ok_or("not one of the names")
    })
}

/// Parses the least probability of suggestions to accept.
pub fn threshold(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| Acceptance::is_threshold(*value));
    value.ok_or_else(|| format!("must be {}", Acceptance::RANGE))
}

/// Parses a whole number in a range.
pub fn whole(
    range: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| match (text.parse(), *range.end()) {
        (Ok(number), _) if range.contains(&number) => Ok(number),
        (_, usize::MAX) => Err(format!("must be a whole number of at least {}", range.start())),
        (_, end) => Err(format!("must be a whole number from {} to {end}", range.start())),
    }
}
