//! NumPy's `.npy`: a short header in Python's syntax, then the numbers.

use std::path::Path;

use super::element::{Element, Located};
use crate::error::DataError;
use crate::inputs::file_bytes::FileBytes;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Words longer than this are refused: nobody pads words to such a length on purpose.
const LONGEST_WORD: usize = 1 << 20;

/// The header of a matrix takes 128 bytes; this leaves room for records of many fields.
const LONGEST_HEADER: usize = 1 << 20;

/// Where the array of a `.npy` file lies, checked against the file's length.
pub(crate) fn locate(path: &Path, file: &FileBytes) -> Result<Located, DataError> {
    parse(&file.head(LONGEST_HEADER)?, file.len())
        .map_err(|message| DataError::invalid(path, message))
}

/// Where the array lies in a `.npy` file of `len` bytes, of which these are the first.
pub(super) fn parse(file: &[u8], len: usize) -> Result<Located, String> {
    let (header, start) = header(file)?;
    let Fields { descr, fortran, shape } = Fields::parse(header).map_err(|what| {
        let shown: String = header.chars().take(100).collect();
        format!("its .npy header {what}; save it again with numpy.save: {shown:?}")
    })?;
    let (element, big_endian) = element(&descr)?;
    if element == Element::Objects {
        // How long they are, only reading them shows.
        return Ok(Located { shape, element, big_endian, fortran, bytes: start..len });
    }
    Located::to_end((start, len), shape, (element, big_endian), fortran)
}

/// The header's text, and where the numbers start.
fn header(file: &[u8]) -> Result<(&str, usize), String> {
    let Some(rest) = file.strip_prefix(MAGIC) else {
        return Err("is not a .npy file: it does not begin with \\x93NUMPY".into());
    };
    let short = "ends within its .npy header";
    let (&[version, _], rest) = rest.split_first_chunk().ok_or(short)?;
    let size = match version {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(format!("has .npy format version {version}; 1, 2 and 3 are known")),
    };
    let (len, rest) = rest.split_at_checked(size).ok_or(short)?;
    let len = len.iter().rev().fold(0, |len, byte| len << 8 | usize::from(*byte));
    let header = rest.get(..len).ok_or_else(|| {
        let found = rest.len();
        format!("says that its header has {len} bytes; only {found} follow: the file is damaged")
    })?;
    let text = std::str::from_utf8(header).map_err(|_| "has a .npy header that is not text")?;
    Ok((text.trim_end(), MAGIC.len() + 2 + size + len))
}

/// The type of an element, and whether its highest byte comes first.
fn element(descr: &str) -> Result<(Element, bool), String> {
    let (big_endian, kind) = match descr.as_bytes().first() {
        Some(b'<' | b'=' | b'|') => (false, &descr[1..]),
        Some(b'>') => (true, &descr[1..]),
        _ => (false, descr),
    };
    let element = match kind {
        "?" => Element::Bool,
        "O" => Element::Objects,
        _ => Element::of_npy(kind).or_else(|| word(kind)).ok_or_else(|| {
            format!(
                "holds elements of type {descr:?}; known are bool, (u)int8 to 64, float16, 32 \
                 and 64, and words: convert with x.astype(np.float32)"
            )
        })?,
    };
    Ok((element, big_endian))
}

/// `U8` or `S8`: words of eight characters.
fn word(kind: &str) -> Option<Element> {
    let (letter, length) = kind.split_at_checked(1)?;
    let length = length.parse().ok().filter(|length| (1..=LONGEST_WORD).contains(length))?;
    match letter {
        "U" => Some(Element::Unicode(length)),
        "S" => Some(Element::Bytes(length)),
        _ => None,
    }
}

/// The header's three fields.
#[derive(Debug, PartialEq, Eq)]
struct Fields {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

impl Fields {
    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` in any order of fields.
    fn parse(header: &str) -> Result<Self, &'static str> {
        let mut rest = Scanner(header.trim());
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.expect("{")?;
        while !rest.skip("}") {
            let field = rest.quoted()?;
            rest.expect(":")?;
            match field {
                "descr" if rest.skip("[") => {
                    return Err("describes records with named fields, not one array of numbers");
                }
                "descr" => descr = Some(rest.quoted()?.to_string()),
                "fortran_order" => fortran = Some(rest.boolean()?),
                "shape" => shape = Some(rest.shape()?),
                _ => return Err("has a field that is not known"),
            }
            if !rest.skip(",") {
                rest.expect("}")?;
                break;
            }
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) => Ok(Self { descr, fortran, shape }),
            _ => Err("lacks one of descr, fortran_order and shape"),
        }
    }
}

/// What is left to read.
struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    fn skip(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start();
        let Some(rest) = self.0.strip_prefix(token) else { return false };
        self.0 = rest;
        true
    }

    fn expect(&mut self, token: &str) -> Result<(), &'static str> {
        if self.skip(token) { Ok(()) } else { Err("cannot be understood") }
    }

    fn quoted(&mut self) -> Result<&'a str, &'static str> {
        let quote = if self.skip("'") { '\'' } else { '"' };
        if quote == '"' {
            self.expect("\"")?;
        }
        let (text, rest) = self.0.split_once(quote).ok_or("has a quote that does not end")?;
        self.0 = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, &'static str> {
        match (self.skip("True"), self.skip("False")) {
            (false, false) => Err("has a fortran_order that is not a boolean"),
            (yes, _) => Ok(yes),
        }
    }

    fn shape(&mut self) -> Result<Vec<usize>, &'static str> {
        self.expect("(")?;
        let mut shape = vec![];
        while !self.skip(")") {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (digits, rest) = self.0.split_at(end);
            let dim = digits.parse().map_err(|_| "has a shape that cannot be understood")?;
            shape.push(dim);
            // Python 2 wrote long integers with an L.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if !self.skip(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_writers_are_understood() {
        let want = Fields { descr: "<f4".into(), fortran: false, shape: vec![3, 4] };
        for header in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }",
            "{\"shape\": (3,4), \"fortran_order\": False, \"descr\": \"<f4\"}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L)}",
        ] {
            assert_eq!(Fields::parse(header).as_ref(), Ok(&want), "{header}");
        }
        let scalar = Fields::parse("{'descr': '|b1', 'fortran_order': True, 'shape': ()}");
        assert_eq!(scalar, Ok(Fields { descr: "|b1".into(), fortran: true, shape: vec![] }));
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        for header in [
            "",
            "{",
            "{'descr'",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': 1, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (-3,)}",
            "{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (99999999999999999999,)}",
        ] {
            assert!(Fields::parse(header).is_err(), "{header}");
        }
    }
}
