//! One path that means many: `train-{0000..0099}.tar`, `{a,b}.parquet`, `*.tar`.

use std::path::{Path, PathBuf};

use super::folder;
use crate::array::split_spec;
use crate::error::DataError;

/// The most files that one pattern may name; more is a typing error.
const MOST_FILES: usize = 100_000;

/// What a recipe's path means: files or one folder, and what follows the `#`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub paths: Vec<PathBuf>,
    pub fragment: Option<String>,
}

/// The files that a path means, sorted. One that exists as it stands means itself.
pub(crate) fn expand(spec: &Path) -> Result<Selection, DataError> {
    expand_at_most(spec, MOST_FILES)
}

fn expand_at_most(spec: &Path, most: usize) -> Result<Selection, DataError> {
    let Some(text) = spec.to_str() else {
        return Ok(Selection { paths: vec![spec.to_path_buf()], fragment: None });
    };
    let (path, fragment) = split_spec(text);
    let fragment = fragment.map(str::to_string);
    let pattern = path.to_str().unwrap_or(text);
    if !pattern.contains(['*', '{']) || path.exists() {
        return Ok(Selection { paths: vec![path], fragment });
    }
    let mut paths = vec![];
    let texts = braces(pattern, most).map_err(|message| DataError::invalid(spec, message))?;
    for text in texts {
        if text.contains('*') {
            paths.extend(stars(Path::new(&text))?)
        } else {
            paths.push(PathBuf::from(text))
        }
        if paths.len() > most {
            return Err(DataError::invalid(spec, too_many(most)));
        }
    }
    if paths.is_empty() {
        let message = "matches no file; * stands for any part of one name, {000..099} for numbers \
                       and {a,b} for words";
        return Err(DataError::invalid(spec, message));
    }
    paths.sort();
    paths.dedup();
    Ok(Selection { paths, fragment })
}

fn too_many(most: usize) -> String {
    format!("means more than {most} files; name fewer, or the folder that holds them")
}

/// Every text that the first brace can mean, and those after it.
fn braces(pattern: &str, most: usize) -> Result<Vec<String>, String> {
    let inner = pattern.find('{').and_then(|open| {
        let close = open + pattern[open..].find('}')?;
        Some((&pattern[..open], &pattern[open + 1..close], &pattern[close + 1..]))
    });
    let Some((before, inside, after)) = inner else { return Ok(vec![pattern.to_string()]) };
    let (rest, words) = (braces(after, most)?, words(inside, most)?);
    if words.len().saturating_mul(rest.len()) > most {
        return Err(too_many(most));
    }
    let with_rest = |word| rest.iter().map(move |rest| format!("{before}{word}{rest}"));
    Ok(words.iter().flat_map(with_rest).collect())
}

/// What stands between braces: numbers from … to, as wide as the first; words; or itself.
fn words(inside: &str, most: usize) -> Result<Vec<String>, String> {
    if let Some((from, to)) = inside.split_once("..") {
        let number = |text: &str| -> Result<u64, String> {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let parsed = text.parse().ok().filter(|_| digits);
            parsed.ok_or_else(|| format!("{{{inside}}} is not {{number..number}}"))
        };
        let (first, last) = (number(from)?, number(to)?);
        if last < first {
            return Err(format!("{{{inside}}} counts downwards; write {{{to}..{from}}}"));
        }
        if last - first >= most as u64 {
            return Err(too_many(most));
        }
        let width = from.len();
        return Ok((first..=last).map(|number| format!("{number:0width$}")).collect());
    }
    if inside.contains(',') {
        Ok(inside.split(',').map(str::to_string).collect())
    } else {
        Ok(vec![format!("{{{inside}}}")])
    }
}

/// Everything visible whose path fits, `*` being any part of one name.
fn stars(pattern: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = component.as_os_str().to_string_lossy();
        if !name.contains('*') {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        }
        let mut next = vec![];
        for folder in found {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
            if !here.is_dir() {
                continue;
            }
            let entries = folder::entries(here)?.into_iter().filter(|e| fits(&name, &e.name));
            next.extend(entries.map(|entry| folder.join(entry.name)));
        }
        found = next;
    }
    found.retain(|path| path.exists());
    Ok(found)
}

/// Whether a name is what the pattern says: its parts in order, first and last at the ends.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let mut inner = name.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    for part in middle.split('*') {
        inner = inner.and_then(|inner| Some(inner.split_once(part)?.1));
    }
    inner.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(pattern: &str) -> Result<Vec<String>, String> {
        braces(pattern, 1_000)
    }

    #[test]
    fn braces_are_numbers_of_one_width_or_words() {
        assert_eq!(
            expanded("t-{008..011}.tar").unwrap().join(" "),
            "t-008.tar t-009.tar t-010.tar t-011.tar"
        );
        assert_eq!(expanded("{a,b}{1..2}").unwrap(), ["a1", "a2", "b1", "b2"]);
        assert_eq!(expanded("a{b}c").unwrap(), ["a{b}c"]);
        assert_eq!(expanded("a{b").unwrap(), ["a{b"]);
    }

    #[test]
    fn braces_that_mean_nothing_or_too_much_are_refused() {
        assert!(expanded("{5..3}").unwrap_err().contains("{3..5}"));
        assert!(expanded("{a..c}").unwrap_err().contains("number"));
        for much in ["{0..1000}", "{0..99}{0..99}", "{0..18446744073709551615}"] {
            assert!(expanded(much).unwrap_err().contains("more than 1000"), "{much}");
        }
    }

    #[test]
    fn a_star_is_any_part_of_a_name() {
        for (pattern, name, expected) in [
            ("*.tar", "a.tar", true),
            ("*.tar", ".tar", true),
            ("*.tar", "a.tar.gz", false),
            ("train-*-of-*.parquet", "train-0-of-5.parquet", true),
            ("train-*-of-*.parquet", "train-05.parquet", false),
            ("a*a", "a", false),
            ("*", "anything", true),
            ("**", "anything", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_find_what_is_there_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b/train-1.tar", "a/train-0.tar", "a/test-0.tar", "a/.train-9.tar"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let names = |pattern: &str| -> Vec<String> {
            let found = expand(&folder.path().join(pattern)).unwrap().paths;
            let short = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap().to_owned();
            found.iter().map(|path| short(path).display().to_string()).collect()
        };
        assert_eq!(names("*/train-*.tar"), ["a/train-0.tar", "b/train-1.tar"]);
        assert_eq!(names("{b,a}/t*.tar"), ["a/test-0.tar", "a/train-0.tar", "b/train-1.tar"]);
        let nothing = expand(&folder.path().join("*.zip")).unwrap_err().to_string();
        assert!(nothing.contains("*.zip") && nothing.contains("matches no file"), "{nothing}");
        let many = expand_at_most(&folder.path().join("*/t*"), 2).unwrap_err().to_string();
        assert!(many.contains("more than 2 files"), "{many}");
    }
}
