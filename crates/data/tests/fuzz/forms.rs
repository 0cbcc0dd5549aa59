//! What is known of the structure of a file, and damage that keeps it.

use serde_json::Value;

use super::bytes::NUMERALS;
use super::{Random, bytes, tree, wire};

/// The structure of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing is known.
    Bytes,
    /// Rows of cells with this between them.
    Table(char),
    Json,
    /// A JSON document in each line.
    JsonLines,
    /// Lines of `key = value`.
    Toml,
    /// The length of a header, the header as JSON, numbers.
    Safetensors,
    /// Blocks of 512 bytes, headers with a checksum.
    Tar,
    /// Chunks with a checksum each.
    Png,
    /// A message of Protocol Buffers.
    Wire,
}

/// One to three steps of damage; mostly such that the structure is still there.
pub fn damaged(form: Form, file: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..1 + random.below(3) {
        let keeps_form = form != Form::Bytes && random.below(4) > 0;
        if !keeps_form || step(form, &mut file, other, random).is_none() {
            bytes::damage(&mut file, other, random);
        }
    }
    file
}

/// One step that keeps the structure; none if it is not there any more.
fn step(form: Form, file: &mut Vec<u8>, other: &[u8], random: &mut Random) -> Option<()> {
    match form {
        Form::Bytes => return None,
        Form::Json => *file = json(file, random)?,
        Form::JsonLines => lines(file, random, |line, random| {
            json(line.as_bytes(), random).and_then(|line| String::from_utf8(line).ok())
        })?,
        Form::Table(between) => lines(file, random, |row, random| {
            let mut cells: Vec<String> = row.split(between).map(String::from).collect();
            damage_row(&mut cells, random);
            Some(cells.join(&between.to_string()))
        })?,
        Form::Toml => lines(file, random, |line, random| {
            let (key, value) = line.split_once('=')?;
            let value = match random.below(3) {
                0 => random.pick(&NUMERALS).to_string(),
                1 => random.pick(&["[]", "{}", "true", "\"\"", "[[1]]", "'x'", "-inf"]).to_string(),
                _ => {
                    let mut text = value.trim().trim_matches('"').to_string();
                    tree::damage_text(&mut text, random);
                    format!("{text:?}")
                }
            };
            Some(format!("{key}= {value}"))
        })?,
        Form::Safetensors => {
            let length = u64::from_le_bytes(*file.first_chunk()?);
            let end = usize::try_from(length).ok()?.checked_add(8)?;
            let header = json(file.get(8..end)?, random)?;
            let length = (header.len() as u64).to_le_bytes();
            file.splice(..end, length.into_iter().chain(header));
        }
        Form::Tar => tar(file, random)?,
        Form::Png => png(file, other, random)?,
        Form::Wire => wire::damage(file, other, random).then_some(())?,
    }
    Some(())
}

fn json(document: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut document: Value = serde_json::from_slice(document).ok()?;
    tree::damage(&mut document, random);
    serde_json::to_vec(&document).ok()
}

/// Changes, removes, doubles or moves a line.
fn lines(
    file: &mut Vec<u8>,
    random: &mut Random,
    change: impl FnOnce(&str, &mut Random) -> Option<String>,
) -> Option<()> {
    let text = std::str::from_utf8(file).ok()?;
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let at = random.below(lines.len());
    let line = lines.get(at)?.clone();
    match random.below(10) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(random.below(lines.len()), line),
        2 => {
            let to = random.below(lines.len());
            lines.swap(at, to);
        }
        3 => lines = vec![lines; 1 + random.below(20)].concat(),
        _ => lines[at] = change(&line, random).unwrap_or(line),
    }
    *file = (lines.join("\n") + "\n").into_bytes();
    Some(())
}

fn damage_row(cells: &mut Vec<String>, random: &mut Random) {
    let at = random.below(cells.len());
    match random.below(7) {
        0 => drop(cells.remove(at)),
        1 => cells.insert(at, cells[at].clone()),
        2 => cells[at] = format!("\"{}\"", cells[at]),
        3 => cells.reverse(),
        4 | 5 => cells[at] = random.pick(&NUMERALS).to_string(),
        _ => tree::damage_text(&mut cells[at], random),
    }
}

/// Changes a header of an archive and makes its checksum right.
fn tar(file: &mut [u8], random: &mut Random) -> Option<()> {
    let is_header = |at: &usize| file.get(at + 257..at + 262) == Some(&b"ustar"[..]);
    let headers: Vec<usize> = (0..file.len()).step_by(512).filter(is_header).collect();
    let at = *headers.get(random.below(headers.len()))?;
    let header = file.get_mut(at..at + 512)?;
    let (from, len) =
        random.pick(&[(0, 100), (124, 12), (124, 12), (156, 1), (157, 100), (345, 155)]);
    let field = &mut header[from..from + len];
    match random.below(4) {
        0 => field.fill(random.next() as u8),
        1 => field[random.below(len)] = random.next() as u8,
        2 => {
            let octal = format!("{:o}\0", random.next() >> random.below(60));
            let len = octal.len().min(len);
            field[..len].copy_from_slice(&octal.as_bytes()[..len]);
        }
        _ => field[0] = random.pick(b"\x80\xff05xgLKSD"),
    }
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(())
}

/// Changes the content of a chunk and makes its length and checksum right.
fn png(file: &mut Vec<u8>, other: &[u8], random: &mut Random) -> Option<()> {
    let mut chunks = vec![];
    let mut at = 8;
    while let Some(length) = file.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
        chunks.push((at, length));
        at = at.checked_add(length)?.checked_add(12)?;
    }
    let (at, length) = *chunks.get(random.below(chunks.len()))?;
    let kind: [u8; 4] = file.get(at + 4..at + 8)?.try_into().ok()?;
    let mut content = file.get(at + 8..at + 8 + length)?.to_vec();
    bytes::damage(&mut content, other, random);
    let mut sum = flate2::Crc::new();
    sum.update(&kind);
    sum.update(&content);
    let length_field = (content.len() as u32).to_be_bytes();
    let chunk = [&length_field[..], &kind, &content, &sum.sum().to_be_bytes()].concat();
    let end = (at + 12 + length).min(file.len());
    file.splice(at..end, chunk);
    Some(())
}
