//! What several seeds have in common, as a table.

use std::path::Path;

use aleator::SeedFindings;
use aleator::report::covariance::{SeedPair, Spread};
use aleator::report::table::columns;

use super::print::{NAME, measure_name, noise_name, signed};

/// The findings as text; on a terminal, names are cut to fit a line.
pub fn tables(dir: &Path, findings: &SeedFindings, terminal: bool) -> String {
    let SeedFindings { dirs, info, split, measure, all_pairs, consistent, pairs } = findings;
    let (runs, classes) = (dirs.len(), info.class_names.len());
    // Independent signs agree by chance in two of 2^runs cases.
    let by_chance = 100.0 * 2.0_f64.powi(1 - runs as i32);
    let mut out = format!(
        "{}: {runs} runs, {} split, {classes} classes; noise {}\n\
         {consistent} of {all_pairs} pairs of classes have the same sign in all {runs} runs; of \
         random signs {by_chance:.0} % would.\n",
        dir.display(),
        split.name(),
        noise_name(info.noise),
    );
    if pairs.is_empty() {
        return out;
    }
    out += &format!(
        "\nPairs by {}, mean ± standard deviation, those of one sign first\n",
        measure_name(*measure)
    );
    let name =
        |class: usize| columns::on_one_line(&info.class_names[class], terminal.then_some(NAME));
    let row = |pair: &SeedPair| {
        vec![
            name(pair.first),
            name(pair.second),
            spread(Some(pair.covariance)),
            spread(Some(pair.centred)),
            spread(pair.correlation),
            format!("{} of {runs}", pair.agreeing),
            pair.relation.name().to_string(),
        ]
    };
    let header =
        ["class A", "class B", "covariance", "centred", "corr.", "seeds agree", "relation"];
    let rows: Vec<Vec<String>> = pairs.iter().map(row).collect();
    for line in columns::lines(&header, &rows, &[0, 1, 6]) {
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn spread(spread: Option<Spread>) -> String {
    let Some(Spread { mean, std }) = spread else { return "–".to_string() };
    let std = std.map(signed).unwrap_or_default();
    format!("{} ± {}", signed(mean), std.trim_start_matches('+'))
}
