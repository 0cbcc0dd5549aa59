//! Which classes a run confuses, and whose noise is correlated.

use std::collections::{BTreeMap, BTreeSet};

use aleator_run::{Link, RunDir, Split};

use super::held_out::HeldOut;
use super::table::{self, Cell, Extent};
use super::{Details, Figures, Section};
use crate::cluster::{Order, order};
use crate::confusion::{Confusions, Pair};
use crate::covariance::{
    ClassPair, Covariances, LARGEST_MATRIX, Measure, Relation, SeedNoise, SeedPair,
};
use crate::error::ReportError;
use crate::escape;
use crate::figure::Figure;
use crate::figure::heat::{HeatMap, NAMED};
use crate::number;

/// Most pairs in a table of confusions.
pub(super) const PAIRS: usize = 8;

/// Most pairs of positive correlation in a table, and of negative.
const CORRELATED: usize = 4;

/// Standard deviations above the mean that chance is given, as pairs are not independent.
const BY_CHANCE: f64 = 3.0;

/// Most pairs that are looked at for those.
const LISTED: usize = 4096;

/// The confusions of a run: as heat maps in one order, and as tables.
pub(super) fn of_run(
    details: &Details<'_>,
    figures: &mut Figures,
) -> Result<Option<Section>, ReportError> {
    let Some(unseen) = details.unseen() else { return Ok(None) };
    let run = &details.run.dir;
    let body = match details.names().len() {
        0 | 1 => return Ok(None),
        2..=LARGEST_MATRIX => maps_and_tables(details, unseen, figures)?,
        _ => most_tied(run, unseen.split)?,
    };
    let title = format!("Confusions on the {} split", unseen.split.name());
    Ok(Some(Section::new("confusions", title, body)))
}

fn maps_and_tables(
    details: &Details<'_>,
    unseen: &HeldOut,
    figures: &mut Figures,
) -> Result<String, ReportError> {
    let run = &details.run.dir;
    let (names, link) = (details.names(), run.info().link);
    let noise = shared_noise(details, unseen.split)?;
    let Some(expected) = &unseen.expected else { return Ok(String::new()) };
    let order = order(&distances(names.len(), |i, j| expected.rate(i, j)), names.len());
    let (mut maps, mut words) = (String::new(), String::new());
    let split = unseen.split.name();
    let labelled = link == Link::Softmax;
    let chance = noise.as_ref().and_then(only_chance);
    let drawn = noise.is_some() && chance.is_none();
    if labelled {
        let confusion = &unseen.confusion;
        let map = HeatMap {
            name: "confusion",
            title: &format!("Given and predicted labels, {split} split, %"),
            description: format!(
                "Share of the {split} examples of each given label that are predicted to be of \
                 each class; the largest share beside the diagonal is"
            ),
            rows: "given",
            columns: "predicted",
            class_names: names,
            order: &order,
            value: &shares(confusion, names.len()),
            percent: true,
        };
        maps += &figures.add(map.draw());
        words += &format!(
            "{} the {split} examples with a given label (row), the share that the model predicts \
             to be of each class (column); agreement, on the diagonal, is left grey. ",
            if drawn { "First map: of" } else { "Of" }
        );
    }
    // Where several classes may be on, none is taken for another.
    let flipping = noise.as_ref().filter(|_| drawn && labelled);
    let mut tables = vec![expected_table(run, unseen.split, expected, flipping)?];
    if let Some(noise) = noise.as_ref().filter(|_| drawn) {
        let shown = most_tied_classes(noise, &order);
        let seeds = if noise.runs() == 1 { ", one seed" } else { "" };
        let title = format!("Correlation of the learned noise, {split} split{seeds}");
        let value = |i: usize, j: usize| consistent_correlation(noise, i, j).unwrap_or(0.0);
        let map = correlation_map("noise-correlation", &title, &value, names, &shown);
        maps += &figures.add(map);
        words += &format!(
            "{}: how the noise that the model has learned goes together, as the mean over the \
             {split} examples{}. Blue classes rise together; orange ones are named in place of \
             each other. ",
            if labelled { "Second map" } else { "The map" },
            over_seeds(noise),
        );
        if shown.classes.len() < names.len() {
            words += &format!(
                "Of {} classes, the {} of the strongest pairs are shown. ",
                number::count(names.len()),
                shown.classes.len()
            );
        }
        tables.push(correlated_table(noise, names));
    }
    words += "Classes that the model confuses stand beside each other.";
    let tables: String = tables.iter().map(|table| format!("<div>{table}</div>\n")).collect();
    let chance = chance.map_or(String::new(), |words| format!("<p>{words}</p>\n"));
    Ok(format!("{}{chance}<div class=\"tables\">\n{tables}</div>\n", heat_figure(&maps, &words)))
}

/// Says so where the noise of classes shows nothing that chance would not.
fn only_chance(noise: &SeedNoise) -> Option<String> {
    let (runs, pairs) = (noise.runs(), noise.pairs());
    if runs == 1 {
        // Few enough pairs are shown as what they are: those of one seed.
        let many = pairs > NAMED * (NAMED - 1) / 2;
        return many.then(|| {
            format!(
                "Which classes share noise is not shown: this is one seed, and among {} pairs of \
                 classes the strongest of one seed may be chance. Several seeds tell, as with \
                 <code>--set seeds=[0,1,2]</code>.",
                number::count(pairs)
            )
        });
    }
    // Independent signs agree by chance in two of 2^runs cases.
    let chance = 2.0_f64.powi(1 - runs as i32);
    let (consistent, expected) = (noise.consistent(), pairs as f64 * chance);
    let deviation = (expected * (1.0 - chance)).sqrt();
    (consistent as f64 <= expected + BY_CHANCE * deviation).then(|| {
        format!(
            "Which classes share noise is not shown: of {} pairs of classes {} have the same sign in \
             all {runs} seeds, and of random signs {} would.",
            number::count(pairs),
            number::count(consistent),
            number::fixed(expected, 0)
        )
    })
}

/// The covariances of a split, if its classes share noise.
fn covariances(run: &RunDir, split: Split) -> Result<Option<Covariances>, ReportError> {
    match Covariances::open(run, split) {
        Ok(covariances) => Ok(Some(covariances).filter(Covariances::has_factors)),
        Err(ReportError::NoCovariance { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The noise of a run and of its other seeds, if its classes share noise.
fn shared_noise(details: &Details<'_>, split: Split) -> Result<Option<SeedNoise>, ReportError> {
    for run in &details.seeds {
        if covariances(run, split)?.is_none() {
            return Ok(None);
        }
    }
    SeedNoise::of(&details.seeds, split, &mut |_| {}).map(Some)
}

/// The mean correlation of two classes, if it has the same sign in all runs and an effect.
fn consistent_correlation(noise: &SeedNoise, i: usize, j: usize) -> Option<f64> {
    let pair = (i != j).then(|| noise.pair(i, j)).filter(SeedPair::is_consistent)?;
    pair.correlation.map(|correlation| correlation.mean)
}

fn over_seeds(noise: &SeedNoise) -> String {
    match noise.runs() {
        1 => String::new(),
        runs => format!(" and {runs} seeds; pairs whose sign differs between seeds are left blank"),
    }
}

/// All classes, or where these are too many to be named, those of the strongest pairs.
fn most_tied_classes(noise: &SeedNoise, order: &Order) -> Order {
    if order.classes.len() <= NAMED {
        return order.clone();
    }
    let mut kept = BTreeSet::new();
    let strongest = noise.strongest(Measure::Centred, NAMED * NAMED);
    for pair in strongest.iter().filter(|pair| pair.is_consistent()) {
        let both = [pair.first, pair.second];
        let new = both.iter().filter(|class| !kept.contains(*class)).count();
        if kept.len() + new <= NAMED {
            kept.extend(both);
        }
    }
    let classes = order.classes.iter().copied().filter(|class| kept.contains(class)).collect();
    Order { classes, bands: vec![] }
}

/// The pairs of strongest correlation, for runs with too many classes for a matrix.
fn most_tied(run: &RunDir, split: Split) -> Result<String, ReportError> {
    let names = &run.info().class_names;
    let mut rows = vec![];
    if let Some(mut covariances) = covariances(run, split)? {
        let row = |pair: &ClassPair| {
            let names = [pair.first, pair.second].map(|class| names[class].as_str());
            pair_row(names, pair.relation.name(), pair.correlation)
        };
        let pairs = covariances.top_pairs(2 * CORRELATED, &mut |_| {})?;
        rows.extend(pairs.by_centred.iter().map(row));
    }
    if rows.is_empty() {
        let classes = number::count(LARGEST_MATRIX);
        return Ok(format!("<p>With more than {classes} classes no maps are drawn.</p>\n"));
    }
    let caption = format!(
        "With more than {} classes no maps are drawn: these are the pairs whose noise is tied most.",
        number::count(LARGEST_MATRIX)
    );
    Ok(table::html(Extent::Short, &PAIR_COLUMNS, &rows, &caption))
}

const PAIR_COLUMNS: [&str; 3] = ["Pair", "Kind", "Correlation"];

fn pair_row(names: [&str; 2], relation: &str, correlation: Option<f64>) -> Vec<Cell> {
    let pair = names.map(escape::name).join(" · ");
    vec![Cell::Html(pair), Cell::Html(relation.to_string()), Cell::fixed(correlation, 2)]
}

pub(super) fn heat_figure(maps: &str, words: &str) -> String {
    if maps.is_empty() {
        return String::new();
    }
    format!(
        "<figure><div class=\"row wide\">\n{maps}</div><figcaption>{words}</figcaption></figure>\n"
    )
}

/// Distances between classes: rare confusions are far apart.
pub(super) fn distances(classes: usize, rate: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    /// Below this all confusions count as equally rare.
    const RAREST: f64 = 1e-9;
    let at = |i: usize, j: usize| (rate(i, j) + rate(j, i)) / 2.0;
    let distance = |i: usize, j: usize| if i == j { 0.0 } else { -at(i, j).max(RAREST).ln() };
    (0..classes * classes).map(|index| distance(index / classes, index % classes)).collect()
}

pub(super) fn shares(counts: &[f64], classes: usize) -> impl Fn(usize, usize) -> f64 {
    let totals: Vec<f64> = counts.chunks_exact(classes).map(|row| row.iter().sum()).collect();
    move |i, j| if totals[i] > 0.0 { counts[i * classes + j] / totals[i] } else { 0.0 }
}

pub(super) fn correlation_map(
    name: &str,
    title: &str,
    value: &dyn Fn(usize, usize) -> f64,
    names: &[String],
    order: &Order,
) -> Figure {
    let map = HeatMap {
        name,
        title,
        description: "Correlation of the noise on the utilities of two classes; the strongest is"
            .to_string(),
        rows: "class",
        columns: "class",
        class_names: names,
        order,
        value,
        percent: false,
    };
    map.draw()
}

/// The pairs that the model expects to be confused most often.
fn expected_table(
    run: &RunDir,
    split: Split,
    expected: &Confusions,
    noise: Option<&SeedNoise>,
) -> Result<String, ReportError> {
    let names = &run.info().class_names;
    let top: Vec<Pair> = expected.pairs().into_iter().take(PAIRS).collect();
    let flips = match noise {
        Some(_) => {
            let pairs = top.iter().map(|pair| (pair.from, pair.to));
            Covariances::open(run, split)?.flips(pairs, &mut |_| {})?
        }
        None => BTreeMap::new(),
    };
    let row = |Pair { from, to, rate }: &Pair| {
        let mut row =
            vec![Cell::Html(arrow(&names[*from], &names[*to])), Cell::percent(Some(*rate))];
        if let Some(noise) = noise {
            row.push(Cell::percent(flips[&(*from, *to)]));
            row.push(Cell::fixed(consistent_correlation(noise, *from, *to), 2));
        }
        row
    };
    let rows: Vec<Vec<Cell>> = top.iter().map(row).collect();
    let mut columns = vec!["Looks like → is labelled", "Expected"];
    let mut caption = format!(
        "The pairs that the model expects to be confused most, on the {} examples. Expected: the \
         mean probability of the second class where the first is most plausible.",
        split.name()
    );
    if noise.is_some() {
        columns.extend(["Flip", "Correlation"]);
        caption += " Flip: how likely noise alone lifts the second above the first.";
    }
    Ok(table::html(Extent::Short, &columns, &rows, &caption))
}

/// The pairs that substitute each other most, and those that go together most.
fn correlated_table(noise: &SeedNoise, names: &[String]) -> String {
    let count = CORRELATED.min(noise.pairs() / 2).max(1);
    let strongest = noise.strongest(Measure::Centred, LISTED);
    let mut rows = vec![];
    for (kind, relation) in
        [("substitutes", Relation::Substitutes), ("together", Relation::CoOccurring)]
    {
        let of_kind = strongest.iter().filter(|pair| pair.relation == relation).take(count);
        rows.extend(of_kind.map(|pair| {
            let names = [pair.first, pair.second].map(|class| names[class].as_str());
            pair_row(names, kind, pair.correlation.map(|correlation| correlation.mean))
        }));
    }
    if rows.is_empty() {
        return String::new();
    }
    let seeds = match noise.runs() {
        1 => {
            " One run alone finds some pairs by chance; several seeds tell them apart.".to_string()
        }
        runs => format!(" Only pairs that all {runs} seeds agree on are listed."),
    };
    let caption = format!(
        "The strongest pairs. Substitutes: when one class gains, the other loses, as where \
         annotators choose between them. Together: both gain and lose at once. Correlations are \
         of the noise without what all classes have in common, since that changes no \
         probability.{seeds}"
    );
    table::html(Extent::Short, &PAIR_COLUMNS, &rows, &caption)
}

pub(super) fn arrow(from: &str, to: &str) -> String {
    format!("{} → {}", escape::name(from), escape::name(to))
}
