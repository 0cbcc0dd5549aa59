//! Damage to messages of Protocol Buffers that keeps the lengths right.

use super::bytes::EXTREMES;
use super::{Random, bytes};

/// A field: its key, which has its number and its kind, and its content.
struct Field {
    key: u64,
    content: Content,
}

enum Content {
    Number(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
}

/// Changes one field at any depth; false if the bytes are no message.
pub fn damage(message: &mut Vec<u8>, other: &[u8], random: &mut Random) -> bool {
    let Some(mut fields) = parse(message) else { return false };
    let at = random.below(fields.len());
    let key = fields[at].key;
    match random.below(10) {
        0 => drop(fields.remove(at)),
        1 => {
            let copy = write(&fields[at..=at]);
            fields.extend(parse(&copy).into_iter().flatten());
        }
        2 => fields[at].key = fields[at].key.wrapping_add(random.pick(&[1, 2, 8, 16])),
        _ => match &mut fields[at].content {
            Content::Number(number) => *number = random.pick(&EXTREMES),
            Content::Fixed(bytes) => bytes::damage(bytes, other, random),
            Content::Bytes(inner) => match random.below(8) {
                // A message inside itself, again and again.
                0 => {
                    for _ in 0..50 {
                        let content = Content::Bytes(std::mem::take(inner));
                        *inner = write(&[Field { key, content }]);
                    }
                }
                1 => bytes::damage(inner, other, random),
                _ if damage(inner, other, random) => {}
                _ => bytes::damage(inner, other, random),
            },
        },
    }
    *message = write(&fields);
    true
}

fn parse(mut rest: &[u8]) -> Option<Vec<Field>> {
    let mut fields = vec![];
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let content = match key & 7 {
            0 => Content::Number(varint(&mut rest)?),
            1 => Content::Fixed(take(&mut rest, 8)?),
            5 => Content::Fixed(take(&mut rest, 4)?),
            2 => {
                let len = varint(&mut rest)?;
                Content::Bytes(take(&mut rest, usize::try_from(len).ok()?)?)
            }
            _ => return None,
        };
        fields.push(Field { key, content });
    }
    (!fields.is_empty()).then_some(fields)
}

fn take(rest: &mut &[u8], len: usize) -> Option<Vec<u8>> {
    let (piece, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(piece.to_vec())
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn write(fields: &[Field]) -> Vec<u8> {
    let mut out = vec![];
    for Field { key, content } in fields {
        write_varint(&mut out, *key);
        match content {
            Content::Number(number) => write_varint(&mut out, *number),
            Content::Fixed(bytes) => out.extend(bytes),
            Content::Bytes(bytes) => {
                write_varint(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
        }
    }
    out
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
