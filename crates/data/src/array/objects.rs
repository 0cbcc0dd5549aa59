//! Words that NumPy saved as Python objects, as pandas has them: a pickle, of which only the form
//! that such an array takes is read. Nothing in it is ever executed.

/// What pickles of such arrays name. The names are compared and never looked up.
const KNOWN: [(&str, &str); 4] = [
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
];

/// A word that is saved once may stand for many elements, at two bytes each. All words together
/// may have this many times the bytes of the file.
const LARGEST_RATIO: usize = 100;

/// Words may always have this many bytes together.
const SMALL: usize = 1 << 20;

/// What is on the pickle's stack.
#[derive(Clone, Copy)]
enum Item<'a> {
    Mark,
    Word(&'a str),
    Whole(i32),
    /// `None` or NaN.
    Missing,
    /// The list of the array's elements.
    Elements,
    /// A part of the array's type or shape.
    Other,
}

/// The words of an array of `count` elements, a missing one as the empty word; or what was found
/// in their place.
pub(super) fn words(pickle: &[u8], count: usize) -> Result<Vec<String>, String> {
    let mut reader = Reader { rest: pickle, stack: vec![], memo: vec![], elements: None };
    let read = reader.run()?;
    if !reader.rest.is_empty() || read.len() != count {
        return Err(format!("{} elements where its header says {count}", read.len()));
    }
    let bytes: usize =
        read.iter().map(|item| if let Item::Word(it) = item { it.len() } else { 0 }).sum();
    if bytes > pickle.len().saturating_mul(LARGEST_RATIO).max(SMALL) {
        return Err(format!("{bytes} bytes of words, which is too much for its size"));
    }
    let word = |item: Item| match item {
        Item::Word(word) => word.to_string(),
        Item::Whole(number) => number.to_string(),
        _ => String::new(),
    };
    Ok(read.into_iter().map(word).collect())
}

struct Reader<'a> {
    rest: &'a [u8],
    stack: Vec<Item<'a>>,
    memo: Vec<Item<'a>>,
    elements: Option<Vec<Item<'a>>>,
}

impl<'a> Reader<'a> {
    /// Reads up to the end of the pickle; returns the elements.
    fn run(&mut self) -> Result<Vec<Item<'a>>, String> {
        loop {
            let opcode = self.take(1)?[0];
            match opcode {
                // PROTO, FRAME
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'(' => self.stack.push(Item::Mark),
                b'N' => self.stack.push(Item::Missing),
                b'G' => {
                    let bytes = self.take(8)?.try_into().map_err(|_| SHORT)?;
                    let value = f64::from_be_bytes(bytes);
                    let missing = value.is_nan().then_some(Item::Missing);
                    self.stack.push(missing.ok_or_else(|| format!("the number {value}"))?);
                }
                b'K' | b'M' | b'J' => {
                    let size = match opcode {
                        b'K' => 1,
                        b'M' => 2,
                        _ => 4,
                    };
                    let number = self.number(size)? as u32;
                    self.stack.push(Item::Whole(number.cast_signed()));
                }
                // NEWTRUE, NEWFALSE, EMPTY_TUPLE
                0x88 | 0x89 | b')' => self.stack.push(Item::Other),
                // SHORT_BINBYTES
                b'C' => {
                    let len = self.number(1)?;
                    self.take(len)?;
                    self.stack.push(Item::Other);
                }
                // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
                0x8c => self.word(1)?,
                b'X' => self.word(4)?,
                0x8d => self.word(8)?,
                // GLOBAL, STACK_GLOBAL
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.known(module, name)?;
                }
                0x93 => match (self.pop()?, self.pop()?) {
                    (Item::Word(name), Item::Word(module)) => self.known(module, name)?,
                    _ => return Err(OTHER.into()),
                },
                b']' if self.elements.is_none() => {
                    self.elements = Some(vec![]);
                    self.stack.push(Item::Elements);
                }
                // APPEND, APPENDS
                b'a' => {
                    let item = self.pop()?;
                    self.append(&[item])?;
                }
                b'e' => {
                    let items = self.pop_to_mark()?;
                    self.append(&items)?;
                }
                // TUPLE, TUPLE1, TUPLE2, TUPLE3, REDUCE
                b't' => {
                    self.pop_to_mark()?;
                    self.stack.push(Item::Other);
                }
                0x85 => self.replace(1)?,
                0x86 | b'R' => self.replace(2)?,
                0x87 => self.replace(3)?,
                // BUILD
                b'b' => drop(self.pop()?),
                // MEMOIZE, BINPUT, LONG_BINPUT
                0x94 => self.remember(self.memo.len())?,
                b'q' => {
                    let at = self.number(1)?;
                    self.remember(at)?;
                }
                b'r' => {
                    let at = self.number(4)?;
                    self.remember(at)?;
                }
                // BINGET, LONG_BINGET
                b'h' | b'j' => {
                    let at = self.number(if opcode == b'h' { 1 } else { 4 })?;
                    self.stack.push(*self.memo.get(at).ok_or(OTHER)?);
                }
                b'.' => return self.elements.take().ok_or_else(|| OTHER.into()),
                _ => return Err(OTHER.into()),
            }
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, size: usize) -> Result<usize, String> {
        let bytes = self.take(size)?;
        let number = bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        usize::try_from(number).map_err(|_| SHORT.into())
    }

    fn word(&mut self, size: usize) -> Result<(), String> {
        let len = self.number(size)?;
        let word = std::str::from_utf8(self.take(len)?).map_err(|_| "a word that is not UTF-8")?;
        self.stack.push(Item::Word(word));
        Ok(())
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let len = self.rest.iter().position(|byte| *byte == b'\n').ok_or(SHORT)?;
        let line = self.take(len + 1)?;
        std::str::from_utf8(&line[..len]).map_err(|_| OTHER.into())
    }

    fn known(&mut self, module: &str, name: &str) -> Result<(), String> {
        if !KNOWN.contains(&(module, name)) {
            return Err(format!("objects made by {module}.{name}"));
        }
        self.stack.push(Item::Other);
        Ok(())
    }

    fn pop(&mut self) -> Result<Item<'a>, String> {
        self.stack.pop().ok_or_else(|| OTHER.into())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Item<'a>>, String> {
        let mark = self.stack.iter().rposition(|item| matches!(item, Item::Mark)).ok_or(OTHER)?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items)
    }

    /// Takes the last items away and puts one in their place.
    fn replace(&mut self, items: usize) -> Result<(), String> {
        let rest = self.stack.len().checked_sub(items).ok_or(OTHER)?;
        self.stack.truncate(rest);
        self.stack.push(Item::Other);
        Ok(())
    }

    fn append(&mut self, items: &[Item<'a>]) -> Result<(), String> {
        let (Some(Item::Elements), Some(elements)) = (self.stack.last(), &mut self.elements) else {
            return Err(OTHER.into());
        };
        let fits = |item: &Item| matches!(item, Item::Word(_) | Item::Whole(_) | Item::Missing);
        if !items.iter().all(fits) {
            return Err(OTHER.into());
        }
        elements.extend_from_slice(items);
        Ok(())
    }

    /// Writers number what they remember from 0 on.
    fn remember(&mut self, at: usize) -> Result<(), String> {
        let item = *self.stack.last().ok_or(OTHER)?;
        if at != self.memo.len() {
            return Err(OTHER.into());
        }
        self.memo.push(item);
        Ok(())
    }
}

const SHORT: &str = "a pickle that is cut short";
const OTHER: &str = "objects that are neither words nor whole numbers";

#[cfg(test)]
mod tests {
    use super::*;

    // import numpy, pickle
    // dog = "dog"
    // y = numpy.array(["cat", dog, dog, None, float("nan"), -7], dtype=object)
    // pickle.dumps(y, protocol=4), pickle.dumps(y, protocol=3)
    const PICKLES: [&[u8]; 2] = [
        b"\x80\x04\x95\xa7\x00\x00\x00\x00\x00\x00\x00\x8c\x16numpy._core.multiarray\x94\x8c\x0c\
          _reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07ndarray\x94\x93\x94K\x00\x85\x94C\x01b\
          \x94\x87\x94R\x94(K\x01K\x06\x85\x94h\x03\x8c\x05dtype\x94\x93\x94\x8c\x02O8\x94\x89\x88\
          \x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?t\x94b\x89]\x94(\
          \x8c\x03cat\x94\x8c\x03dog\x94h\x14NG\x7f\xf8\x00\x00\x00\x00\x00\x00J\xf9\xff\xff\xffet\
          \x94b.",
        b"\x80\x03cnumpy._core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nq\x01K\x00\x85q\x02C\
          \x01bq\x03\x87q\x04Rq\x05(K\x01K\x06\x85q\x06cnumpy\ndtype\nq\x07X\x02\x00\x00\x00O8q\x08\
          \x89\x88\x87q\tRq\n(K\x03X\x01\x00\x00\x00|q\x0bNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tq\
          \x0cb\x89]q\r(X\x03\x00\x00\x00catq\x0eX\x03\x00\x00\x00dogq\x0fh\x0fNG\x7f\xf8\x00\x00\
          \x00\x00\x00\x00J\xf9\xff\xff\xffetq\x10b.",
    ];

    #[test]
    fn words_of_either_protocol_are_read() {
        for pickle in PICKLES {
            assert_eq!(words(pickle, 6).unwrap(), ["cat", "dog", "dog", "", "", "-7"]);
        }
    }

    #[test]
    fn a_pickle_that_ends_early_or_goes_on_is_refused() {
        for pickle in PICKLES {
            for len in 0..pickle.len() {
                assert!(words(&pickle[..len], 6).is_err(), "{len} bytes");
            }
            assert!(words(&[pickle, b"."].concat(), 6).is_err());
            assert!(words(pickle, 5).unwrap_err().contains("6 elements"));
        }
    }

    #[test]
    fn a_call_of_anything_but_numpy_is_refused_by_name() {
        // What pickle.dumps writes for an object whose __reduce__ is (os.system, ("true",)).
        let call = b"\x80\x03cposix\nsystem\nX\x04\x00\x00\x00true\x85R.";
        assert_eq!(words(call, 1).unwrap_err(), "objects made by posix.system");
        let call = b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x85R.";
        assert_eq!(words(call, 1).unwrap_err(), "objects made by posix.system");
    }

    #[test]
    fn one_long_word_a_million_times_is_refused() {
        let mut pickle = b"\x80\x04](X\x00\x00\x01\x00".to_vec();
        pickle.extend(vec![b'a'; 1 << 16]);
        pickle.push(0x94);
        pickle.extend(b"h\x00".repeat(1 << 20));
        pickle.extend(b"e.");
        assert!(words(&pickle, (1 << 20) + 1).unwrap_err().contains("too much"));
    }
}
