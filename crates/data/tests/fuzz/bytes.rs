//! Damage to bytes of which nothing is known but that they may hold numbers.

use super::Random;

/// The most that one step makes a file longer.
const LONGEST_ADDITION: usize = 4096;

/// Numbers at which sizes, counts and offsets go wrong.
pub const EXTREMES: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x4000_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Numbers as text.
pub const NUMERALS: [&str; 20] = [
    "0",
    "-1",
    "1",
    "2",
    "255",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "1e308",
    "1e999",
    "5e-324",
    "nan",
    "inf",
    "-0.0",
    "",
    "999999999999999999999999999999999999999999999999999999999999999999999999",
];

/// One step of damage; `other` is a file of the same kind.
pub fn damage(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(file.len());
    let len = (1 + random.below(16)).min(file.len() - at);
    match random.below(13) {
        0 if !file.is_empty() => file[at] = random.next() as u8,
        1 if !file.is_empty() => file[at] ^= 1 << random.below(8),
        2 if !file.is_empty() => file[at] = file[at].wrapping_add([1, 255][random.below(2)]),
        3 | 4 => write_extreme(file, at, random),
        5 => drop(file.drain(at..at + len)),
        6 => {
            let piece = file[at..at + len].to_vec();
            file.splice(at..at, piece);
        }
        7 => file.truncate(at),
        8 => extend(file, random),
        9 => {
            file.truncate(at);
            file.extend(&other[random.below(other.len()).min(other.len())..]);
        }
        10 => replace_numeral(file, random),
        // A block that was never written, or erased.
        11 => {
            let end = (at + 4 * len).min(file.len());
            file[at..end].fill(random.pick(&[0, 0xff]));
        }
        _ => {
            let from = random.below(other.len());
            let piece = &other[from..(from + len).min(other.len())];
            let end = (at + piece.len()).min(file.len());
            file.splice(at..end, piece.iter().copied());
        }
    }
}

/// A number of one, two, four or eight bytes in either order.
fn write_extreme(file: &mut [u8], at: usize, random: &mut Random) {
    let width = 1 << random.below(4);
    // Fields of headers often lie at multiples of their width.
    let at = if random.below(2) == 0 { at / width * width } else { at };
    let number = random.pick(&EXTREMES);
    let little = number.to_le_bytes();
    let big: Vec<u8> = little[..width].iter().rev().copied().collect();
    let field = if random.below(2) == 0 { &little[..width] } else { &big };
    let end = (at + width).min(file.len());
    file[at..end].copy_from_slice(&field[..end - at]);
}

fn extend(file: &mut Vec<u8>, random: &mut Random) {
    let len = 1 + random.below(LONGEST_ADDITION);
    match random.below(3) {
        0 => file.extend(std::iter::repeat_n(0, len)),
        1 => file.extend_from_within(..len.min(file.len())),
        _ => file.extend((0..len).map(|_| random.next() as u8)),
    }
}

/// Replaces a run of digits.
fn replace_numeral(file: &mut Vec<u8>, random: &mut Random) {
    let begins =
        |at: &usize| file[*at].is_ascii_digit() && (*at == 0 || !file[*at - 1].is_ascii_digit());
    let runs: Vec<usize> = (0..file.len()).filter(begins).collect();
    if runs.is_empty() {
        return;
    }
    let from = random.pick(&runs);
    let len = file[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    file.splice(from..from + len, random.pick(&NUMERALS).bytes());
}
