//! Numbers and words as they lie in files, and where an array lies in one.

use std::ops::Range;
use std::path::Path;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use safetensors::tensor::Dtype;

use super::Values;
use crate::ending::Ending;
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
    /// Python objects in a pickle, of no fixed size.
    Objects,
}

/// The numbers of files, with their names in NumPy, in a `.npy` header and in `.safetensors`.
const NUMBERS: [(Element, &str, Option<&str>, Dtype); 13] = [
    (Element::Bool, "bool", Some("b1"), Dtype::BOOL),
    (Element::U8, "uint8", Some("u1"), Dtype::U8),
    (Element::U16, "uint16", Some("u2"), Dtype::U16),
    (Element::U32, "uint32", Some("u4"), Dtype::U32),
    (Element::U64, "uint64", Some("u8"), Dtype::U64),
    (Element::I8, "int8", Some("i1"), Dtype::I8),
    (Element::I16, "int16", Some("i2"), Dtype::I16),
    (Element::I32, "int32", Some("i4"), Dtype::I32),
    (Element::I64, "int64", Some("i8"), Dtype::I64),
    (Element::F16, "float16", Some("f2"), Dtype::F16),
    (Element::Bf16, "bfloat16", None, Dtype::BF16),
    (Element::F32, "float32", Some("f4"), Dtype::F32),
    (Element::F64, "float64", Some("f8"), Dtype::F64),
];

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
            Self::Objects => 0,
        }
    }

    pub(crate) fn is_number(self) -> bool {
        !matches!(self, Self::Unicode(_) | Self::Bytes(_) | Self::Objects)
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// NumPy's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unicode(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::Objects => "object",
            _ => NUMBERS.iter().find(|(element, ..)| *element == self).map_or("", |row| row.1),
        }
    }

    /// The number of this code in a `.npy` header, such as `f4`.
    pub(super) fn of_npy(code: &str) -> Option<Self> {
        NUMBERS.iter().find(|(_, _, npy, _)| *npy == Some(code)).map(|row| row.0)
    }

    /// The number of this type in a `.safetensors` file.
    pub(super) fn of_tensor(dtype: Dtype) -> Option<Self> {
        NUMBERS.iter().find(|(.., tensor)| *tensor == dtype).map(|row| row.0)
    }

    /// Bytes of an array of this shape; an error where they exceed any memory.
    pub(super) fn byte_len(self, shape: &[usize]) -> Result<usize, String> {
        let len = shape.iter().try_fold(self.size(), |len, &dim| len.checked_mul(dim));
        len.ok_or_else(|| format!("its header says shape {shape:?}, more than any memory holds"))
    }
}

impl Located {
    /// An array that fills the `len` bytes of a file from `start` on, or what is wrong.
    pub(super) fn to_end(
        (start, len): (usize, usize),
        shape: Vec<usize>,
        (element, big_endian): (Element, bool),
        fortran: bool,
    ) -> Result<Self, String> {
        let (needed, found) = (element.byte_len(&shape)?, len - start);
        if needed == found {
            return Ok(Self { shape, element, big_endian, fortran, bytes: start..len });
        }
        let kind = if found < needed { "cut short" } else { "too long" };
        Err(format!(
            "the file is {kind}: shape {shape:?} of {} needs {needed} bytes after the header, \
             found {found}; copy or save the file again",
            element.name()
        ))
    }
}

/// Numbers of any type as float32.
///
/// # Panics
/// If `element` is not a number or `bytes` is not as long as `out`.
pub(crate) fn numbers_into(element: Element, big_endian: bool, bytes: &[u8], out: &mut [f32]) {
    assert_eq!(bytes.len(), out.len() * element.size(), "bytes must fill out");
    match element {
        Element::F16 => half_into(bytes, big_endian, out),
        Element::Bf16 => each(bytes, big_endian, out, |b| bf16::from_le_bytes(b).to_f32()),
        Element::F32 => each(bytes, big_endian, out, f32::from_le_bytes),
        Element::F64 => each(bytes, big_endian, out, |b| f64::from_le_bytes(b) as f32),
        Element::Bool | Element::U8 => each(bytes, big_endian, out, |b: [u8; 1]| b[0].into()),
        Element::I8 => each(bytes, big_endian, out, |b| i8::from_le_bytes(b).into()),
        Element::U16 => each(bytes, big_endian, out, |b| u16::from_le_bytes(b).into()),
        Element::I16 => each(bytes, big_endian, out, |b| i16::from_le_bytes(b).into()),
        Element::U32 => each(bytes, big_endian, out, |b| u32::from_le_bytes(b) as f32),
        Element::I32 => each(bytes, big_endian, out, |b| i32::from_le_bytes(b) as f32),
        Element::U64 => each(bytes, big_endian, out, |b| u64::from_le_bytes(b) as f32),
        Element::I64 => each(bytes, big_endian, out, |b| i64::from_le_bytes(b) as f32),
        Element::Unicode(_) | Element::Bytes(_) | Element::Objects => {
            panic!("{} is not a number", element.name())
        }
    }
}

/// Many float16 at once: the processor converts eight in one instruction.
fn half_into(bytes: &[u8], big: bool, out: &mut [f32]) {
    const AT_ONCE: usize = 256;
    let mut halves = [f16::ZERO; AT_ONCE];
    for (bytes, out) in bytes.chunks(2 * AT_ONCE).zip(out.chunks_mut(AT_ONCE)) {
        let halves = &mut halves[..out.len()];
        each(bytes, big, halves, f16::from_le_bytes);
        halves.convert_to_f32_slice(out);
    }
}

fn each<T, const SIZE: usize>(
    bytes: &[u8],
    big: bool,
    out: &mut [T],
    from: impl Fn([u8; SIZE]) -> T,
) {
    out.iter_mut().zip(little(bytes, big)).for_each(|(out, bytes)| *out = from(bytes));
}

/// The bytes of each number, the lowest first.
fn little<const SIZE: usize>(bytes: &[u8], big: bool) -> impl Iterator<Item = [u8; SIZE]> {
    bytes.as_chunks().0.iter().map(move |&number| {
        let mut number: [u8; SIZE] = number;
        if big {
            number.reverse();
        }
        number
    })
}

/// The elements in file order, of the bytes where the array lies.
pub(crate) fn values(path: &Path, at: &Located, bytes: &[u8]) -> Result<Values, DataError> {
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
        Element::Objects => Values::Text(objects(path, bytes, &at.shape)?),
    })
}

fn ints<const SIZE: usize>(bytes: &[u8], big: bool, from: impl Fn([u8; SIZE]) -> i64) -> Values {
    Values::Int(little(bytes, big).map(from).collect())
}

fn floats<const SIZE: usize>(bytes: &[u8], big: bool, from: impl Fn([u8; SIZE]) -> f64) -> Values {
    Values::Float(little(bytes, big).map(from).collect())
}

fn large(path: &Path, bytes: &[u8], big: bool) -> Result<Vec<i64>, DataError> {
    let values = little(bytes, big).map(u64::from_le_bytes);
    let convert = |(at, value): (usize, u64)| {
        i64::try_from(value).map_err(|_| {
            let message = format!("element {at} is {value}; the largest number read is 2⁶³ − 1");
            DataError::invalid(path, message)
        })
    };
    values.enumerate().map(convert).collect()
}

fn unicode(path: &Path, bytes: &[u8], chars: usize, big: bool) -> Result<Vec<String>, DataError> {
    let codes: Vec<u32> = little(bytes, big).map(u32::from_le_bytes).collect();
    let word = |(at, codes): (usize, &[u32])| {
        let used = codes.iter().rposition(|&code| code != 0).map_or(0, |last| last + 1);
        let word: Option<String> = codes[..used].iter().map(|&code| char::from_u32(code)).collect();
        word.ok_or_else(|| DataError::invalid(path, format!("element {at} is not valid Unicode")))
    };
    codes.chunks_exact(chars).enumerate().map(word).collect()
}

fn objects(path: &Path, bytes: &[u8], shape: &[usize]) -> Result<Vec<String>, DataError> {
    let &[count] = shape else {
        let how = saved_as(path, "str");
        let message = format!("is an array of Python objects of shape {shape:?}; {how}");
        return Err(DataError::invalid(path, message));
    };
    super::objects::words(bytes, count).map_err(|found| {
        let how = saved_as(path, "str");
        DataError::invalid(path, format!("is an array of Python objects and holds {found}; {how}"))
    })
}

/// How to turn what a file or `file#name` holds into words or numbers.
pub(crate) fn saved_as(path: &Path, kind: &str) -> String {
    let file = path.display();
    match Ending::of(path) {
        Some(Ending::Npy) => format!(
            "convert it with numpy.save(\"{file}\", numpy.load(\"{file}\", \
             allow_pickle=True).astype({kind}))"
        ),
        _ => format!("save the file again with .astype({kind}) after this array"),
    }
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
                numbers_into(element, big_endian, bytes, &mut out);
                assert_eq!(out, numbers, "{} big-endian {big_endian}", element.name());
            }
        }
    }

    #[test]
    fn whole_numbers_keep_their_sign_as_floats() {
        for (element, bytes, number) in [
            (Element::Bool, vec![1], 1.0),
            (Element::U8, vec![200], 200.0),
            (Element::I8, vec![0xff], -1.0),
            (Element::U16, 40_000_u16.to_le_bytes().to_vec(), 40_000.0),
            (Element::I16, (-300_i16).to_le_bytes().to_vec(), -300.0),
            (Element::U32, u32::MAX.to_le_bytes().to_vec(), 4_294_967_296.0),
            (Element::I32, (-70_000_i32).to_le_bytes().to_vec(), -70_000.0),
            (Element::U64, (1_u64 << 63).to_le_bytes().to_vec(), 9_223_372_036_854_775_808.0),
            (Element::I64, (-(1_i64 << 40)).to_le_bytes().to_vec(), -1_099_511_627_776.0),
        ] {
            let mut out = [0.0];
            numbers_into(element, false, &bytes, &mut out);
            assert_eq!(out, [number], "{}", element.name());
        }
    }
}
