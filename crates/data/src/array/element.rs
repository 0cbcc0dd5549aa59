//! Numbers and words as they lie in files, and where an array lies in one.

use std::ops::Range;
use std::path::Path;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Values;
use crate::error::DataError;

/// The type of an element in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
    /// UTF-32 of this many characters, padded with zeros.
    Unicode(usize),
    /// Text of this many bytes, padded with zeros.
    Bytes(usize),
}

/// Where an array lies in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub shape: Vec<usize>,
    pub element: Element,
    pub big_endian: bool,
    /// The first index moves fastest.
    pub fortran: bool,
    /// Within the file's length, and as long as shape and element say.
    pub bytes: Range<usize>,
}

impl Element {
    /// Bytes of one element.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Unicode(chars) => 4 * chars,
            Self::Bytes(len) => len,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// NumPy's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::Unicode(_) => "str",
            Self::Bytes(_) => "bytes",
        }
    }
}

/// Bytes of an array, `None` where they exceed any memory.
pub(crate) fn byte_len(shape: &[usize], element: Element) -> Option<usize> {
    shape.iter().try_fold(element.size(), |len, &dim| len.checked_mul(dim))
}

/// Floats of any width as float32.
///
/// # Panics
/// If `element` is not a float or `bytes` is not as long as `out`.
pub(crate) fn floats_into(element: Element, big_endian: bool, bytes: &[u8], out: &mut [f32]) {
    assert_eq!(bytes.len(), out.len() * element.size(), "bytes must fill out");
    match (element, big_endian) {
        (Element::F16, false) => half_into(bytes, out),
        (Element::F16, true) => each(bytes, out, |b| f16::from_be_bytes(b).to_f32()),
        (Element::Bf16, false) => each(bytes, out, |b| bf16::from_le_bytes(b).to_f32()),
        (Element::Bf16, true) => each(bytes, out, |b| bf16::from_be_bytes(b).to_f32()),
        (Element::F32, false) => each(bytes, out, f32::from_le_bytes),
        (Element::F32, true) => each(bytes, out, f32::from_be_bytes),
        (Element::F64, false) => each(bytes, out, |b| f64::from_le_bytes(b) as f32),
        (Element::F64, true) => each(bytes, out, |b| f64::from_be_bytes(b) as f32),
        _ => panic!("{} is not a float", element.name()),
    }
}

/// Many float16 at once: the processor converts eight in one instruction.
fn half_into(bytes: &[u8], out: &mut [f32]) {
    const AT_ONCE: usize = 256;
    let mut halves = [f16::ZERO; AT_ONCE];
    for (bytes, out) in bytes.chunks(2 * AT_ONCE).zip(out.chunks_mut(AT_ONCE)) {
        let halves = &mut halves[..out.len()];
        each(bytes, halves, f16::from_le_bytes);
        halves.convert_to_f32_slice(out);
    }
}

fn each<T, const SIZE: usize>(bytes: &[u8], out: &mut [T], convert: impl Fn([u8; SIZE]) -> T) {
    let (chunks, _) = bytes.as_chunks::<SIZE>();
    for (out, &chunk) in out.iter_mut().zip(chunks) {
        *out = convert(chunk);
    }
}

/// The elements in file order.
pub(crate) fn values(path: &Path, at: &Located, file: &[u8]) -> Result<Values, DataError> {
    let bytes = &file[at.bytes.clone()];
    let big = at.big_endian;
    Ok(match at.element {
        Element::Bool | Element::U8 => ints(bytes, big, |b: [u8; 1]| b[0].into()),
        Element::I8 => ints(bytes, big, |b| i8::from_le_bytes(b).into()),
        Element::U16 => ints(bytes, big, |b| u16::from_le_bytes(b).into()),
        Element::I16 => ints(bytes, big, |b| i16::from_le_bytes(b).into()),
        Element::U32 => ints(bytes, big, |b| u32::from_le_bytes(b).into()),
        Element::I32 => ints(bytes, big, |b| i32::from_le_bytes(b).into()),
        Element::I64 => ints(bytes, big, i64::from_le_bytes),
        Element::U64 => Values::Int(large(path, bytes, big)?),
        Element::F16 => floats(bytes, big, |b| f16::from_le_bytes(b).to_f64()),
        Element::Bf16 => floats(bytes, big, |b| bf16::from_le_bytes(b).to_f64()),
        Element::F32 => floats(bytes, big, |b| f32::from_le_bytes(b).into()),
        Element::F64 => floats(bytes, big, f64::from_le_bytes),
        Element::Unicode(chars) => Values::Text(unicode(path, bytes, chars, big)?),
        Element::Bytes(len) => Values::Text(ascii(path, bytes, len)?),
    })
}

fn ints<const SIZE: usize>(bytes: &[u8], big: bool, from: impl Fn([u8; SIZE]) -> i64) -> Values {
    Values::Int(numbers(bytes, big, from))
}

fn floats<const SIZE: usize>(bytes: &[u8], big: bool, from: impl Fn([u8; SIZE]) -> f64) -> Values {
    Values::Float(numbers(bytes, big, from))
}

/// `from` takes little-endian bytes; big-endian ones are reversed first.
fn numbers<T, const SIZE: usize>(
    bytes: &[u8],
    big: bool,
    from: impl Fn([u8; SIZE]) -> T,
) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<SIZE>();
    let turned = chunks.iter().map(|&chunk| {
        let mut chunk = chunk;
        if big {
            chunk.reverse();
        }
        from(chunk)
    });
    turned.collect()
}

fn large(path: &Path, bytes: &[u8], big: bool) -> Result<Vec<i64>, DataError> {
    let values = numbers(bytes, big, u64::from_le_bytes);
    let convert = |(at, value): (usize, u64)| {
        i64::try_from(value).map_err(|_| {
            let message = format!("element {at} is {value}; the largest number read is 2⁶³ − 1");
            DataError::invalid(path, message)
        })
    };
    values.into_iter().enumerate().map(convert).collect()
}

fn unicode(path: &Path, bytes: &[u8], chars: usize, big: bool) -> Result<Vec<String>, DataError> {
    let codes = numbers(bytes, big, u32::from_le_bytes);
    let word = |(at, codes): (usize, &[u32])| {
        let used = codes.iter().rposition(|&code| code != 0).map_or(0, |last| last + 1);
        let word: Option<String> = codes[..used].iter().map(|&code| char::from_u32(code)).collect();
        word.ok_or_else(|| DataError::invalid(path, format!("element {at} is not valid Unicode")))
    };
    codes.chunks_exact(chars).enumerate().map(word).collect()
}

fn ascii(path: &Path, bytes: &[u8], len: usize) -> Result<Vec<String>, DataError> {
    let word = |(at, bytes): (usize, &[u8])| {
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let word = std::str::from_utf8(&bytes[..used]);
        word.map(str::to_string)
            .map_err(|_| DataError::invalid(path, format!("element {at} is not valid UTF-8")))
    };
    bytes.chunks_exact(len).enumerate().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float_width_and_byte_order_reads_the_same_numbers() {
        // All exact in bfloat16, the coarsest of the formats.
        let numbers: Vec<f32> = (0..600).map(|at| (at % 256) as f32 * 0.25 - 8.0).collect();
        let little: [(Element, Vec<u8>); 4] = [
            (Element::F16, numbers.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect()),
            (
                Element::Bf16,
                numbers.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
            ),
            (Element::F32, numbers.iter().flat_map(|x| x.to_le_bytes()).collect()),
            (Element::F64, numbers.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect()),
        ];
        for (element, little) in little {
            let big: Vec<u8> =
                little.chunks(element.size()).flat_map(|word| word.iter().rev().copied()).collect();
            for (bytes, big_endian) in [(&little, false), (&big, true)] {
                let mut out = vec![0.0; numbers.len()];
                floats_into(element, big_endian, bytes, &mut out);
                assert_eq!(out, numbers, "{} big-endian {big_endian}", element.name());
            }
        }
    }
}
