//! A diagnosis as text.

use std::fmt::{self, Display, Formatter};

use super::{Diagnosis, FeatureReport, Group, ImageReport, ScaleReport};

/// Rows of a list that are shown at most.
const SHOWN: usize = 10;
/// Letters of a name that are shown at most.
const LETTERS: usize = 40;

impl Display for Diagnosis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.recognised)?;
        writeln!(f)?;
        for split in &self.splits {
            writeln!(f, "{:<11} {}", split.name, plural(split.examples, "example"))?;
        }
        self.print_classes(f)?;
        if let Some(images) = &self.images {
            print_images(f, images)?;
        }
        for features in &self.features {
            print_features(f, features)?;
        }
        self.print_duplicates(f)?;
        self.print_corrupt(f)?;
        self.advice.iter().try_for_each(|advice| writeln!(f, "\n{advice}"))
    }
}

impl Diagnosis {
    fn print_classes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        write!(f, "{}", plural(self.classes.len(), "class"))?;
        if let Some(balance) = &self.balance {
            let (smallest, largest, ratio) = (balance.smallest, balance.largest, balance.ratio);
            let times = if ratio < 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") };
            write!(
                f,
                "; the smallest has {}, the largest {largest} ({times} times as many)",
                plural(smallest, "training example")
            )?;
        }
        writeln!(f)?;
        let mut sorted: Vec<usize> = (0..self.classes.len()).collect();
        sorted.sort_by_key(|at| std::cmp::Reverse(self.classes[*at].train));
        // The largest and the smallest say most.
        let cut = sorted.len() > 2 * SHOWN;
        let head = if cut { SHOWN } else { sorted.len() };
        let held_out = self.splits.len() > 1;
        let line = |f: &mut Formatter<'_>, at: usize| {
            let class = &self.classes[at];
            write!(f, "  {:<LETTERS$} {:>9}", short(&class.name), class.train)?;
            if held_out { writeln!(f, " {:>9} held out", class.held_out) } else { writeln!(f) }
        };
        sorted[..head].iter().try_for_each(|at| line(f, *at))?;
        if cut {
            writeln!(f, "  … {} more …", sorted.len() - 2 * SHOWN)?;
            sorted[sorted.len() - SHOWN..].iter().try_for_each(|at| line(f, *at))?;
        }
        if !self.occur_once.is_empty() {
            let names = self.occur_once.iter().map(|name| short(name));
            let classes = agreeing(self.occur_once.len(), "class", ["occurs", "occur"]);
            writeln!(f, "{classes} once only: {}", listed(names, self.occur_once.len()))?;
        }
        Ok(())
    }

    fn print_duplicates(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        let found = &self.duplicates;
        if found.count == 0 {
            return writeln!(f, "no two examples are equal");
        }
        writeln!(
            f,
            "{} more than once; {} in different splits, {} with different labels",
            agreeing(found.count, "content", ["occurs", "occur"]),
            found.across_splits,
            found.different_labels
        )?;
        found.groups.iter().take(SHOWN).try_for_each(|group| print_group(f, group))?;
        print_rest(f, found.count)
    }

    fn print_corrupt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.images.is_none() && self.corrupt.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        if self.corrupt.is_empty() {
            return writeln!(f, "all images can be decoded");
        }
        writeln!(f, "{} cannot be decoded", plural(self.corrupt.len(), "image"))?;
        for corrupt in self.corrupt.iter().take(SHOWN) {
            writeln!(f, "  {} {}: {}", corrupt.split, corrupt.id, corrupt.reason)?;
        }
        print_rest(f, self.corrupt.len())
    }
}

/// How many of a list were not shown.
fn print_rest(f: &mut Formatter<'_>, count: usize) -> fmt::Result {
    match count.saturating_sub(SHOWN) {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more"),
    }
}

fn print_images(f: &mut Formatter<'_>, images: &ImageReport) -> fmt::Result {
    let size = |(width, height): (usize, usize)| format!("{width} × {height}");
    writeln!(f)?;
    match images.distinct_sizes {
        1 => writeln!(f, "all images are {} pixels", size(images.median))?,
        sizes => writeln!(
            f,
            "{sizes} sizes of images: from {} over {} in the middle to {} pixels",
            size(images.smallest),
            size(images.median),
            size(images.largest)
        )?,
    }
    writeln!(f, "{} in colour, {} grey", images.colour, images.grey)
}

fn print_features(f: &mut Formatter<'_>, report: &FeatureReport) -> fmt::Result {
    writeln!(f)?;
    writeln!(
        f,
        "{}: {} of {} ({})",
        report.split,
        plural(report.rows, "row"),
        plural(report.width, "number"),
        report.stored
    )?;
    match report.non_finite_rows {
        0 => writeln!(f, "  all numbers are finite")?,
        count => {
            let rows = agreeing(count, "row", ["has", "have"]);
            let places = listed(report.non_finite.iter().map(usize::to_string), count);
            writeln!(f, "  {rows} numbers that are not finite: {places}")?;
        }
    }
    print_columns(
        f,
        report.constant_columns,
        &report.constant,
        ["is", "are"],
        "the same in all rows",
    )?;
    report.scales.iter().try_for_each(|scales| print_scales(f, scales))
}

fn print_scales(f: &mut Formatter<'_>, scales: &ScaleReport) -> fmt::Result {
    let (low, high) = (&scales.narrowest, &scales.widest);
    let (count, names) = (scales.mostly_one_value_columns, &scales.mostly_one_value);
    print_columns(f, count, names, ["has", "have"], "one value in at least half of the rows")?;
    writeln!(
        f,
        "  standard deviations from {} (column {}) to {} (column {}), a factor of {}",
        significant(low.deviation),
        short(&low.column),
        significant(high.deviation),
        short(&high.column),
        significant(high.deviation / low.deviation)
    )?;
    let (count, names) = (scales.heavy_tailed_columns, &scales.heavy_tailed);
    print_columns(f, count, names, ["has", "have"], "heavy tails")?;
    match &scales.tried[..] {
        [only] => writeln!(f, "  aleator train takes {}", only.in_words()),
        tried => {
            writeln!(f, "  aleator train tries, and chooses by the loss on held-out examples:")?;
            tried.iter().try_for_each(|kind| writeln!(f, "    {}", kind.in_words()))
        }
    }
}

/// A line on some columns, if there are any.
fn print_columns(
    f: &mut Formatter<'_>,
    count: usize,
    names: &[String],
    verb: [&str; 2],
    what: &str,
) -> fmt::Result {
    if count == 0 {
        return Ok(());
    }
    let names = listed(names.iter().map(|name| short(name)), count);
    writeln!(f, "  {} {what}: {names}", agreeing(count, "column", verb))
}

/// Three significant digits.
fn significant(value: f64) -> String {
    if !(1e-3..1e6).contains(&value) {
        return format!("{value:.2e}");
    }
    let digits = (2.0 - value.log10().floor()).clamp(0.0, 5.0) as usize;
    format!("{value:.digits$}")
}

fn print_group(f: &mut Formatter<'_>, group: &Group) -> fmt::Result {
    let names = group.copies.iter().map(|copy| format!("{} {}", copy.split, copy.id));
    let flag = match (group.across_splits, group.different_labels) {
        (true, true) => " [different splits and labels]",
        (true, false) => " [different splits]",
        (false, true) => " [different labels]",
        (false, false) => "",
    };
    writeln!(f, "  {}{flag}", listed(names, group.copies.len()))
}

/// The first few of `count` names, and how many more there are.
fn listed(names: impl Iterator<Item = String>, count: usize) -> String {
    const FEW: usize = 5;
    let more = count.saturating_sub(FEW);
    let list = names.take(FEW).collect::<Vec<_>>().join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

/// A number of things and the verb in that number.
fn agreeing(count: usize, word: &str, [singular, many]: [&str; 2]) -> String {
    format!("{} {}", plural(count, word), if count == 1 { singular } else { many })
}

fn plural(count: usize, word: &str) -> String {
    match (count, word) {
        (1, _) => format!("1 {word}"),
        (_, "class") => format!("{count} classes"),
        _ => format!("{count} {word}s"),
    }
}

fn short(name: &str) -> String {
    if name.chars().count() > LETTERS {
        name.chars().take(LETTERS - 1).chain(['…']).collect()
    } else {
        name.to_string()
    }
}
