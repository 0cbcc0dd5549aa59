//! The secret in the address of the page.
//!
//! The only randomness without a seed: no result depends on it.

use crate::error::ReviewError;

/// 128 random bits as hexadecimal digits.
#[derive(Clone, Debug)]
pub(crate) struct Token(String);

impl Token {
    pub fn new() -> Result<Self, ReviewError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(ReviewError::NoRandomness)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time, so that timing reveals nothing.
    pub fn is(&self, text: &str) -> bool {
        let bytes = self.0.bytes().zip(text.bytes());
        let different = bytes.fold(0, |different, (a, b)| different | (a ^ b));
        text.len() == self.0.len() && std::hint::black_box(different) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_it() {
        let token = Token::new().unwrap();
        let text = token.as_str().to_string();
        assert!(token.is(&text) && text.len() == 32);
        assert!(!token.is("") && !token.is(&text[1..]) && !token.is(&format!("{text}0")));
        assert!(!token.is(Token::new().unwrap().as_str()));
    }
}
