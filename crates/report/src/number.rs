//! Numbers for people: a true minus sign, thin spaces, few digits.

use aleator_metrics::significance::{mean, sample_std};

/// Does not break a line, and is narrower than a space.
const THIN: char = '\u{202f}';

/// A number with `digits` digits after the point.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "–".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_string();
    }
    let text = format!("{:.digits$}", value.abs());
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let text = grouped(&text);
    if value < 0.0 && !is_zero { format!("−{text}") } else { text }
}

/// A whole number, with thin spaces between its thousands.
pub(crate) fn count(value: usize) -> String {
    grouped(&value.to_string())
}

/// A share as a percentage.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    format!("{}{THIN}%", fixed(100.0 * share, digits))
}

/// Mean ± standard deviation; the value alone if there is only one.
pub(crate) fn spread(values: &[f64], digits: usize) -> String {
    let mean = mean(values).map_or("–".to_string(), |mean| fixed(mean, digits));
    match sample_std(values) {
        Some(deviation) => format!("{mean}{THIN}±{THIN}{}", fixed(deviation, digits)),
        None => mean,
    }
}

/// The same for shares, as percentages.
pub(crate) fn percent_spread(shares: &[f64], digits: usize) -> String {
    let percentages: Vec<f64> = shares.iter().map(|share| 100.0 * share).collect();
    format!("{}{THIN}%", spread(&percentages, digits))
}

/// Thin spaces between the thousands before the point, from five digits on.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    if whole.len() < 5 {
        return text.to_string();
    }
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(THIN);
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_set_with_a_true_minus_and_thin_spaces() {
        assert_eq!(fixed(-0.25, 2), "−0.25");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(f64::INFINITY, 2), "∞");
        assert_eq!(fixed(f64::NAN, 2), "–");
        assert_eq!(count(1797), "1797");
        assert_eq!(count(1_281_167), "1\u{202f}281\u{202f}167");
        assert_eq!(percent(0.8867, 1), "88.7\u{202f}%");
        assert_eq!(fixed(12345.678, 1), "12\u{202f}345.7");
    }

    #[test]
    fn one_value_has_no_spread() {
        assert_eq!(spread(&[0.5], 2), "0.50");
        assert_eq!(spread(&[1.0, 3.0], 1), "2.0\u{202f}±\u{202f}1.4");
        assert_eq!(spread(&[], 1), "–");
    }
}
