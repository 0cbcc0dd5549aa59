//! Escaping of text from users' files.

use std::fmt::Write;

/// Most characters of a name that are shown; longer ones have a tooltip.
const SHOWN: usize = 48;

/// Most characters of a tooltip.
const TOOLTIP: usize = 300;

/// Text inside HTML or SVG, between tags or in a quoted attribute.
///
/// Characters that XML forbids, and those that change the direction of text, become the
/// replacement character.
pub(crate) fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other if is_harmful(other) => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// Whether a character of a name could change how the text around it is shown.
pub(crate) fn is_harmful(character: char) -> bool {
    let layout = matches!(character, '\n' | '\t');
    (character.is_control() && !layout)
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

/// A name of a class, an example or an annotator in HTML: isolated from the direction of the text
/// around it, and cut if it is long.
pub(crate) fn name(raw: &str) -> String {
    if raw.trim().is_empty() {
        return "<i class=\"none\">(empty)</i>".to_string();
    }
    let shown = text(&shortened(raw, SHOWN));
    if raw.chars().count() <= SHOWN {
        return format!("<bdi>{shown}</bdi>");
    }
    format!("<bdi title=\"{}\">{shown}</bdi>", text(&shortened(raw, TOOLTIP)))
}

/// A name in a figure, on one line.
pub(crate) fn label(raw: &str, characters: usize) -> String {
    let line: String = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { "(empty)".to_string() } else { shortened(&line, characters) }
}

/// The beginning of a text that is too long.
pub(crate) fn shortened(raw: &str, characters: usize) -> String {
    if raw.chars().nth(characters).is_none() {
        return raw.to_string();
    }
    let mut out: String = raw.chars().take(characters.saturating_sub(1)).collect();
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// Bytes inside a document.
pub(crate) fn data_uri(media_type: &str, bytes: &[u8]) -> String {
    use base64::Engine;
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 40);
    // Writing to a string does not fail.
    let _ = write!(out, "data:{media_type};base64,");
    base64::engine::general_purpose::STANDARD.encode_string(bytes, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(text("</script>\"'&"), "&lt;/script&gt;&quot;&#39;&amp;");
        assert_eq!(text("]]>"), "]]&gt;");
        assert_eq!(text("a\u{0}\u{202e}b\u{2028}"), "a\u{fffd}\u{fffd}b\u{fffd}");
    }

    #[test]
    fn long_names_are_cut_and_empty_ones_are_seen() {
        assert!(name("").contains("(empty)"));
        assert_eq!(name("cat"), "<bdi>cat</bdi>");
        assert!(name(&"x".repeat(10_000)).len() < 500);
        assert_eq!(label(" a \n b ", 10), "a b");
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
