//! Published numbers, as printed.

/// A mean with its spread, as in "76.5 ± 0.22 †".
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The mean.
    pub mean: Printed,
    /// The standard deviation, if printed.
    pub std: Option<Printed>,
    /// Whether it has a †.
    pub dagger: bool,
}

/// A number and its printed digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// The value; shares are in percent.
    pub value: f64,
    /// The printed text, such as "93.0".
    pub text: String,
}

impl Published {
    /// Reads "76.5 ± 0.22 †", where ± and † are optional; `None` for "–".
    ///
    /// ```
    /// use aleator_report::compare::Published;
    ///
    /// let cell = Published::parse("76.5 ± 0.22 †")?.unwrap();
    /// assert_eq!((cell.mean.value, cell.std.unwrap().value, cell.dagger), (76.5, 0.22, true));
    /// assert_eq!(Published::parse("–")?, None);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        if text == "–" {
            return Ok(None);
        }
        let refuse = || format!("expected a text as \"76.5 ± 0.22 †\" or \"–\", found {text:?}");
        let (numbers, dagger) = text.strip_suffix(" †").map_or((text, false), |rest| (rest, true));
        let (mean, std) = match numbers.split_once(" ± ") {
            Some((mean, std)) => (mean, Some(std)),
            None => (numbers, None),
        };
        let mean = Printed::parse(mean).ok_or_else(refuse)?;
        let std = std.map(|std| Printed::parse(std).ok_or_else(refuse)).transpose()?;
        Ok(Some(Self { mean, std, dagger }))
    }
}

impl Printed {
    /// Digits with at most one point: no sign, no exponent, no word.
    fn parse(text: &str) -> Option<Self> {
        let plain = text.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        let value: f64 = text.parse().ok()?;
        (plain && value.is_finite()).then(|| Self { value, text: text.to_string() })
    }

    /// The same number with its point two places to the left: what was printed in percent, as a
    /// share, without the error of a division.
    pub fn as_share(&self) -> String {
        let (whole, digits) = self.text.split_once('.').unwrap_or((&self.text, ""));
        let padded = format!("{whole:0>3}");
        let (left, right) = padded.split_at(padded.len() - 2);
        format!("{left}.{right}{digits}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_become_shares_digit_by_digit() {
        for (percent, share) in [
            ("76.5", "0.765"),
            ("0.22", "0.0022"),
            ("93.0", "0.930"),
            ("100", "1.00"),
            ("5", "0.05"),
        ] {
            let printed = Printed::parse(percent).unwrap();
            assert_eq!(printed.as_share(), share);
            assert_eq!(share.parse::<f64>().unwrap(), printed.value / 100.0);
        }
    }

    #[test]
    fn what_is_no_such_number_is_refused() {
        for text in ["", "76,5", "-1", "1e3", "nan", "inf", "76.5 ±", "76.5 † ± 0.1", "76.5†", "-"]
        {
            assert!(Published::parse(text).is_err(), "{text:?}");
        }
    }
}
