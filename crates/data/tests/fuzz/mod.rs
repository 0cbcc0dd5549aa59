//! A seeded fuzzer that knows the structure of what it damages.
//!
//! A target has seeds, which are good files, and an attempt, which reads a file. Case n damages a
//! seed by random numbers of n and makes the attempt; an answer and an error are both right. A
//! panic, an abort, a signal, too much memory and too much time are not: cases run in a process of
//! their own, so that the case is known whatever ends it.
//!
//! The test command tries a fixed number of cases. `ALEATOR_SLOW=1` tries each target for an hour,
//! or for `ALEATOR_FUZZ_SECONDS`. `ALEATOR_FUZZ_SEED=N` repeats case N, or begins with it when it
//! is slow. These are settings of the tests; the program knows none of them.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

mod bytes;
mod forms;
mod isolation;
mod tree;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};

pub use forms::Form;

/// SplitMix64: the same damage in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// One of several; there must be one.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// A good file.
pub struct Seed {
    pub name: String,
    form: Form,
    bytes: Vec<u8>,
    /// What is around the damage, so that checksums are right.
    wrap: fn(&[u8]) -> Vec<u8>,
}

impl Seed {
    pub fn new(name: impl Into<String>, form: Form, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), form, bytes: bytes.into(), wrap: <[u8]>::to_vec }
    }

    /// Packed after it is damaged.
    pub fn inside(self, wrap: fn(&[u8]) -> Vec<u8>) -> Self {
        Self { wrap, ..self }
    }
}

/// A test that fuzzes.
pub struct Target {
    /// The path of the test, as the test program lists it after its own name.
    pub test: &'static str,
    /// How many cases the test command tries.
    pub cases: u64,
    pub seeds: Vec<Seed>,
}

/// A seed with damage.
pub struct Case<'a> {
    pub number: u64,
    pub name: &'a str,
    pub bytes: Vec<u8>,
    folder: &'a Path,
}

impl Case<'_> {
    /// Writes the file under the name of its seed.
    pub fn write(&self) -> PathBuf {
        let path = self.folder.join(self.name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, &self.bytes).expect("a file");
        path
    }
}

impl Target {
    /// Tries good files and damaged ones.
    pub fn run(&self, attempt: impl FnMut(&Case)) {
        match self.outcome(attempt) {
            Ok(tried) => println!("{}: {tried} cases", self.test),
            Err(reason) => panic!("{reason}"),
        }
    }

    /// How many cases were tried, or which of them failed and how.
    pub fn outcome(&self, mut attempt: impl FnMut(&Case)) -> Result<u64, String> {
        isolation::run(self.test, self.cases, |number, folder| {
            attempt(&self.case(number, folder));
        })
    }

    /// A seed with the damage of this number.
    pub fn case<'a>(&'a self, number: u64, folder: &'a Path) -> Case<'a> {
        let at = (number % self.seeds.len() as u64) as usize;
        let seed = &self.seeds[at];
        let mut random = Random(number);
        // The first case of each seed is the seed itself.
        let damaged = match number < self.seeds.len() as u64 {
            true => seed.bytes.clone(),
            false => {
                let others: Vec<&Seed> =
                    self.seeds.iter().filter(|other| other.form == seed.form).collect();
                let other = &random.pick(&others).bytes;
                forms::damaged(seed.form, &seed.bytes, other, &mut random)
            }
        };
        Case { number, name: &seed.name, bytes: (seed.wrap)(&damaged), folder }
    }
}

/// Makes a test of a target: its name, its number of cases, its seeds, its attempt.
macro_rules! fuzz_test {
    ($name:ident, $cases:expr, $seeds:expr, $attempt:expr) => {
        #[test]
        fn $name() {
            let test = concat!(module_path!(), "::", stringify!($name));
            $crate::fuzz::Target { test, cases: $cases, seeds: $seeds }.run($attempt);
        }
    };
}
pub(crate) use fuzz_test;
