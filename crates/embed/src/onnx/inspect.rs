//! One pass over an ONNX file before a runtime sees it, so that a damaged or hostile file ends in
//! a message.
//!
//! After it, every number has at most ten bytes, every length stays within what contains it,
//! nesting is bounded, no tensor says that it is larger than its bytes, nothing loops, and the
//! names of files with weights stay inside the directory.

use std::collections::BTreeMap;
use std::path::{Component, Path};

/// Messages inside messages; the usual readers of Protocol Buffers stop at 100. A subgraph in a
/// subgraph takes three.
const DEEPEST: usize = 64;

/// Nodes of the network, with those of its functions at every place where they are called. Runtimes
/// order them by recursion, so their number bounds the stack; large networks have some thousands.
const MOST_NODES: u64 = 50_000;

/// Nodes of one subgraph, which rten orders on threads with small stacks.
const MOST_IN_SUBGRAPH: usize = 1_000;

/// They run as often as the file says, which may be for ever.
const LOOPS: [&[u8]; 3] = [b"Loop", b"Scan", b"SequenceMap"];

/// A file of weights and the bytes of it that some tensor needs at least.
pub(super) type ExternalFiles = BTreeMap<String, u64>;

/// Checks a file and returns the files of weights that it names; the error is a phrase.
pub(super) fn inspect(file: &[u8]) -> Result<ExternalFiles, String> {
    let mut inspection = Inspection::default();
    inspection.message(Part::Model, Cursor { file, at: 0, end: file.len() }, 0)?;
    inspection.count_nodes()?;
    Ok(inspection.external)
}

/// The messages of the format that contain others or are checked, and what fields may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Model,
    Training,
    Function,
    Graph,
    Node,
    Attribute,
    Tensor,
    Sparse,
    Value,
    Type,
    TensorType,
    ElementType,
    MapType,
    Shape,
    /// A message without messages.
    Flat,
    /// Whole numbers one after the other.
    Numbers,
    /// Text, floats, or a field that no runtime reads.
    Bytes,
}

impl Part {
    /// What a field of this message holds, if it has a length.
    fn field(self, number: u64) -> Self {
        match (self, number) {
            (Self::Model, 7) | (Self::Training, 1 | 2) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Model, 20) => Self::Training,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Node, 5) | (Self::Function, 11) => Self::Attribute,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::Sparse, 1 | 2) => Self::Tensor,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::Sparse,
            (Self::Graph, 11..=13) | (Self::Function, 12) => Self::Value,
            (Self::Value, 2)
            | (Self::Attribute, 14 | 15)
            | (Self::ElementType, 1)
            | (Self::MapType, 2) => Self::Type,
            (Self::Type, 1 | 8) => Self::TensorType,
            (Self::Type, 4 | 9) => Self::ElementType,
            (Self::Type, 5) => Self::MapType,
            (Self::TensorType, 2) => Self::Shape,
            (Self::Shape, 1)
            | (Self::Tensor, 13)
            | (Self::Model, 8 | 14)
            | (Self::Graph, 16)
            | (Self::Node, 9)
            | (Self::Function, 9 | 14) => Self::Flat,
            (Self::Tensor, 1 | 5 | 7 | 11) | (Self::Attribute, 8) | (Self::Sparse, 3) => {
                Self::Numbers
            }
            _ => Self::Bytes,
        }
    }
}

#[derive(Default)]
struct Inspection<'a> {
    external: ExternalFiles,
    /// How often each operator is called by the message that is read, subgraphs included.
    calls: BTreeMap<Operator<'a>, u64>,
    functions: BTreeMap<Operator<'a>, BTreeMap<Operator<'a>, u64>>,
}

/// Domain and name.
type Operator<'a> = (&'a [u8], &'a [u8]);

impl<'a> Inspection<'a> {
    fn message(&mut self, part: Part, from: Cursor<'a>, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!(
                "nests its parts more than {DEEPEST} deep, which no network needs"
            ));
        }
        let outside = (part == Part::Function).then(|| std::mem::take(&mut self.calls));
        let mut cursor = from;
        let mut tensor = TensorBytes::default();
        let mut nodes = 0;
        let [mut domain, mut operator, mut name]: [&[u8]; 3] = Default::default();
        while let Some(Field { number, value }) = cursor.next()? {
            if part == Part::Tensor {
                tensor.add(number, value)?;
            }
            let Value::Bytes(inside) = value else { continue };
            match (part, number) {
                (Part::Graph, 1) => nodes += 1,
                (Part::Node, 4) => operator = inside.bytes(),
                (Part::Node, 7) | (Part::Function, 10) => domain = inside.bytes(),
                (Part::Function, 1) => name = inside.bytes(),
                _ => {}
            }
            match part.field(number) {
                Part::Bytes => {}
                Part::Numbers => inside.check_numbers()?,
                child => self.message(child, inside, depth + 1)?,
            }
        }
        match part {
            Part::Node if LOOPS.contains(&operator) => {
                let operator = String::from_utf8_lossy(operator);
                return Err(format!(
                    "has the operator {operator}, which may run for ever, and networks for images \
                     need no loops"
                ));
            }
            Part::Node => *self.calls.entry((domain, operator)).or_default() += 1,
            Part::Tensor => tensor.check(&mut self.external)?,
            // The network's own graph is a part of the model, one level down.
            Part::Graph if depth > 1 && nodes > MOST_IN_SUBGRAPH => {
                return Err(format!(
                    "has a subgraph of {nodes} nodes; at most {MOST_IN_SUBGRAPH} are read"
                ));
            }
            _ => {}
        }
        if let Some(outside) = outside {
            let calls = std::mem::replace(&mut self.calls, outside);
            // Of two functions of one name a runtime may take either.
            let known = self.functions.entry((domain, name)).or_default();
            calls.into_iter().for_each(|(call, count)| *known.entry(call).or_default() += count);
        }
        Ok(())
    }

    /// Refuses functions that call themselves or multiply beyond all measure.
    fn count_nodes(&self) -> Result<(), String> {
        let mut known = BTreeMap::new();
        let nodes = self.expanded(&self.calls, &mut known, 0)?;
        if nodes > MOST_NODES {
            return Err(format!("has {nodes} nodes; at most {MOST_NODES} are read"));
        }
        Ok(())
    }

    fn expanded(
        &self,
        calls: &BTreeMap<Operator<'a>, u64>,
        known: &mut BTreeMap<Operator<'a>, u64>,
        depth: usize,
    ) -> Result<u64, String> {
        if depth > DEEPEST {
            return Err("has functions that call themselves or nest too deeply".into());
        }
        let mut nodes = 0_u64;
        for (operator, count) in calls {
            let inside = match (known.get(operator), self.functions.get(operator)) {
                (Some(&inside), _) => inside,
                (None, None) => 0,
                (None, Some(function)) => {
                    let inside = self.expanded(function, known, depth + 1)?;
                    known.insert(*operator, inside);
                    inside
                }
            };
            nodes = nodes.saturating_add(count.saturating_mul(inside.saturating_add(1)));
        }
        Ok(nodes)
    }
}

/// What a tensor says about its size, and the bytes that it has.
#[derive(Default)]
struct TensorBytes {
    shape: Vec<u64>,
    held: u64,
    is_external: bool,
    location: Option<String>,
    offset: u64,
    length: Option<u64>,
}

impl TensorBytes {
    fn add(&mut self, field: u64, value: Value) -> Result<(), String> {
        match (field, value) {
            (1, Value::Number(length)) => self.shape.push(length),
            (1, Value::Bytes(mut lengths)) => {
                while !lengths.is_at_end() {
                    self.shape.push(lengths.number()?);
                }
            }
            // A number or a text takes at least a byte with its tag.
            (4..=7 | 9..=11, Value::Bytes(bytes)) => self.held += 1 + bytes.bytes().len() as u64,
            (4..=7 | 9..=11, _) => self.held += 1,
            (13, Value::Bytes(entry)) => self.entry(entry)?,
            // Readers take the lower 32 bits.
            (14, Value::Number(place)) => self.is_external = place as u32 == 1,
            _ => {}
        }
        Ok(())
    }

    /// One property of a file of weights.
    fn entry(&mut self, mut entry: Cursor) -> Result<(), String> {
        let [mut key, mut text]: [&[u8]; 2] = Default::default();
        while let Some(Field { number, value }) = entry.next()? {
            match (number, value) {
                (1, Value::Bytes(bytes)) => key = bytes.bytes(),
                (2, Value::Bytes(bytes)) => text = bytes.bytes(),
                _ => {}
            }
        }
        let text = std::str::from_utf8(text).unwrap_or_default();
        let number = || text.parse().map_err(|_| format!("has external data at {text:?}"));
        match key {
            b"location" => {
                check_location(text)?;
                self.location = Some(text.to_string());
            }
            b"offset" => self.offset = number()?,
            b"length" => self.length = Some(number()?),
            _ => {}
        }
        Ok(())
    }

    fn check(self, external: &mut ExternalFiles) -> Result<(), String> {
        let shape = &self.shape;
        let elements = shape.iter().try_fold(1_u64, |all, &length| all.checked_mul(length));
        // The smallest elements take half a byte each.
        let needed = elements.map(|elements| elements.div_ceil(2));
        let too_large = |held: u64| {
            format!("has a tensor of shape {shape:?} with only {held} bytes: the file is damaged")
        };
        if !self.is_external {
            return match needed {
                Some(needed) if needed <= self.held => Ok(()),
                _ => Err(too_large(self.held)),
            };
        }
        let location = self.location.ok_or("has a tensor in a file without a name")?;
        let length = self.length.or(needed).unwrap_or(u64::MAX);
        if needed.is_none_or(|needed| needed > length) {
            return Err(too_large(length));
        }
        let end = self.offset.saturating_add(length);
        let most = external.entry(location).or_default();
        *most = end.max(*most);
        Ok(())
    }
}

/// Weights are read from files in the directory of the network or below it.
fn check_location(location: &str) -> Result<(), String> {
    let is_plain = |part| matches!(part, Component::Normal(_));
    if !location.is_empty() && Path::new(location).components().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "keeps weights in {location:?}; only files in the directory of the network are read"
    ))
}

/// A field of a message.
struct Field<'a> {
    number: u64,
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(Cursor<'a>),
    /// Four or eight bytes.
    Fixed,
}

/// A part of the file that is read from its beginning.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    fn bytes(&self) -> &'a [u8] {
        &self.file[self.at..self.end]
    }

    /// The next field of a message.
    fn next(&mut self) -> Result<Option<Field<'a>>, String> {
        if self.is_at_end() {
            return Ok(None);
        }
        let start = self.at;
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(format!("is damaged or not an ONNX file, at byte {start}")),
        };
        Ok(Some(Field { number: tag >> 3, value }))
    }

    /// The next whole number: seven bits a byte, at most ten bytes.
    fn number(&mut self) -> Result<u64, String> {
        let start = self.at;
        let mut number = 0;
        for (index, &byte) in self.bytes().iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                if index == 9 && byte > 1 {
                    break;
                }
                self.at += index + 1;
                return Ok(number);
            }
        }
        Err(format!("is damaged or not an ONNX file: no whole number at byte {start}"))
    }

    /// The next bytes as a part of their own.
    fn take(&mut self, length: u64) -> Result<Self, String> {
        let at = self.at;
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
        let end = end.filter(|end| *end <= self.end).ok_or_else(|| {
            format!("is damaged or cut short: {length} bytes at byte {at} do not fit")
        })?;
        self.at = end;
        Ok(Self { file: self.file, at, end })
    }

    fn check_numbers(mut self) -> Result<(), String> {
        while !self.is_at_end() {
            self.number()?;
        }
        Ok(())
    }
}
