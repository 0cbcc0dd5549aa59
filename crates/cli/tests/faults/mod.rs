//! The program under faults of the file system and kills, at chosen file operations.
//!
//! Every job runs once without a fault, and its operations are listed. Then one of them fails, or
//! the program is killed in its place; what it leaves is looked at; and it is continued without
//! faults, which must come to the same bytes. A sample of the operations is tried, all of them
//! under `ALEATOR_SLOW`.

mod commands;
mod jobs;
mod kills;
mod review;
mod shim;

use std::collections::BTreeMap;
use std::env;

use shim::{Call, Errno, Fault};

/// SplitMix64: the same operations are chosen in every run.
fn random(seed: u64, below: usize) -> usize {
    let z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % below.max(1) as u64) as usize
}

fn is_slow() -> bool {
    env::var_os("ALEATOR_SLOW").is_some()
}

/// `count` of the wanted operations, of all kinds in turn; all of them under `ALEATOR_SLOW`.
fn sample(calls: &[Call], count: usize, wanted: impl Fn(&Call) -> bool) -> Vec<usize> {
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate().filter(|(_, call)| wanted(call)) {
        kinds.entry(&call.operation).or_default().push(at);
    }
    let mut kinds: Vec<Vec<usize>> = kinds.into_values().collect();
    if is_slow() {
        return kinds.concat();
    }
    let mut chosen = vec![];
    for number in 0..count {
        kinds.retain(|kind| !kind.is_empty());
        if kinds.is_empty() {
            break;
        }
        let kind = number % kinds.len();
        let of = random(number as u64, kinds[kind].len());
        chosen.push(kinds[kind].swap_remove(of));
    }
    chosen
}
