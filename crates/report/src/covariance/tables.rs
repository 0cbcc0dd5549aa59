//! The findings as CSV files.

use std::path::Path;

use aleator_run::{CsvFile, ExampleRow, RunError};

use super::open::truth;
use super::{Case, ExampleTies, Ranks, SeedPair, Tie, TopPairs};
use crate::spreadsheet::{class_cell, guarded};

/// The columns of a covariance, as [`Measure`](super::Measure) has them.
const MEASURES: [&str; 3] = ["covariance", "centred_covariance", "correlation"];

/// `pairs.csv`: the strongest pairs by each measure.
pub fn write_pairs(path: &Path, pairs: &TopPairs, names: &[String]) -> Result<(), RunError> {
    let classes = ["ranked_by", "position", "class_a", "class_b"];
    let relation = ["flip_a_to_b", "flip_b_to_a", "relation"];
    let header = [&classes[..], &MEASURES, &relation].concat();
    let rankings = [&pairs.by_covariance, &pairs.by_centred, &pairs.by_correlation];
    CsvFile::write(path, &header, |table| {
        for (ranking, pairs) in MEASURES.into_iter().zip(rankings) {
            for (at, pair) in pairs.iter().enumerate() {
                table.row(&[
                    ranking.to_string(),
                    (at + 1).to_string(),
                    class_cell(pair.first, names),
                    class_cell(pair.second, names),
                    number(pair.covariance),
                    number(pair.centred),
                    maybe(pair.correlation),
                    maybe(pair.flip),
                    maybe(pair.flip_back),
                    pair.relation.name().to_string(),
                ])?;
            }
        }
        Ok(())
    })
}

/// `pairs.csv` of several seeds.
pub fn write_seed_pairs(
    path: &Path,
    pairs: &[SeedPair],
    seeds: usize,
    names: &[String],
) -> Result<(), RunError> {
    let mut header = vec!["class_a".to_string(), "class_b".to_string()];
    header.extend(MEASURES.iter().flat_map(|it| [format!("{it}_mean"), format!("{it}_std")]));
    header.extend(["seeds_agree", "seeds", "relation"].map(String::from));
    CsvFile::write(path, &header, |table| {
        for pair in pairs {
            let spreads = [Some(pair.covariance), Some(pair.centred), pair.correlation];
            let mut cells = vec![class_cell(pair.first, names), class_cell(pair.second, names)];
            cells.extend(spreads.iter().flat_map(|it| {
                [maybe(it.map(|spread| spread.mean)), maybe(it.and_then(|spread| spread.std))]
            }));
            cells.extend([pair.agreeing.to_string(), seeds.to_string()]);
            cells.push(pair.relation.name().to_string());
            table.row(&cells)?;
        }
        Ok(())
    })
}

/// `examples.csv`: the ties of the examples that `fill` adds with the function that it gets.
pub fn write_ties<E: From<RunError>>(
    path: &Path,
    examples: &[ExampleRow],
    names: &[String],
    fill: impl FnOnce(&mut dyn FnMut(&ExampleTies) -> Result<(), RunError>) -> Result<(), E>,
) -> Result<(), E> {
    let header = [&["id", "predicted", "position", "class"][..], &MEASURES].concat();
    CsvFile::write(path, &header, |table| {
        fill(&mut |example| {
            for (at, tie) in example.ties.iter().enumerate() {
                let mut cells = vec![
                    guarded(&examples[example.row].id).into_owned(),
                    class_cell(example.predicted, names),
                    (at + 1).to_string(),
                    class_cell(tie.class, names),
                ];
                cells.extend(tie_numbers(tie));
                table.row(&cells)?;
            }
            Ok(())
        })
    })
}

/// `against.csv`: the examples where the run is right and the other one is wrong.
pub fn write_cases(
    path: &Path,
    cases: &[Case],
    examples: &[ExampleRow],
    names: &[String],
) -> Result<(), RunError> {
    let classes = ["id", "truth", "predicted", "other_predicted"];
    let header = [&classes[..], &MEASURES, &["rank"]].concat();
    CsvFile::write(path, &header, |table| {
        for case in cases {
            let example = &examples[case.row];
            let labels = truth(example).unwrap_or_default().iter();
            let labels: Vec<&str> =
                labels.filter_map(|label| names.get(*label as usize)).map(String::as_str).collect();
            let mut cells = vec![
                guarded(&example.id).into_owned(),
                guarded(&labels.join(";")).into_owned(),
                class_cell(case.predicted, names),
                class_cell(case.other.class, names),
            ];
            cells.extend(tie_numbers(&case.other));
            cells.push(case.rank.to_string());
            table.row(&cells)?;
        }
        Ok(())
    })
}

/// `ranks.csv`: how often the other's wrong class had each rank.
pub fn write_ranks(path: &Path, ranks: &Ranks) -> Result<(), RunError> {
    let header = ["rank", "examples", "share", "cumulative_share", "share_at_random"];
    let total = ranks.total().max(1) as f64;
    let random = (ranks.counts.len() as f64).recip();
    CsvFile::write(path, &header, |table| {
        let mut within = 0;
        for (at, count) in ranks.counts.iter().enumerate() {
            within += count;
            let shares = [*count as f64 / total, within as f64 / total, random].map(number);
            let [share, cumulative, random] = shares;
            table.row(&[(at + 1).to_string(), count.to_string(), share, cumulative, random])?;
        }
        Ok(())
    })
}

fn tie_numbers(tie: &Tie) -> [String; 3] {
    [number(tie.covariance), number(tie.centred), maybe(tie.correlation)]
}

/// Six digits, more than 32-bit floats are accurate to.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-4..1e6).contains(&value.abs()) {
        format!("{value:.6}")
    } else {
        format!("{value:.5e}")
    }
}

fn maybe(value: Option<f64>) -> String {
    value.map_or(String::new(), number)
}
