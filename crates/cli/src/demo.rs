//! `aleator demo`: the whole job on data that ships inside the program.

use std::path::{Path, PathBuf};
use std::time::Instant;

use aleator::metrics::Summary;
use aleator::report::audit::{Answer, Audit, Issue};
use aleator::report::compare::{
    Labels, Measure, Row, Score, Source, Spec, Test, View, compare_columns,
};
use aleator::report::table::Format;
use aleator::run::Split;
use aleator::{
    DEMO_AUDIT, DEMO_CORRECTED, DEMO_TRUE, Demo, LearnedConfusion, ReportSettings, Watch,
};
use anyhow::Result;
use clap::Args;

use crate::output::{line, scores, table, terminal};
use crate::progress::watched;
use crate::recipe_args::free_name;
use crate::train::print_written;

/// Arguments of `aleator demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Where the runs are written; must not exist [default: aleator-demo, or the first free
    /// name after it]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Suspects that are shown.
const SUSPECTS: usize = 5;

/// Confusions that are shown.
const CONFUSIONS: usize = 3;

/// The runs on the given labels that corrections are compared with.
const GIVEN: &str = "full";

/// `aleator demo`.
pub fn demo(args: &DemoArgs, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let out = args.out.clone().unwrap_or_else(|| free_name("aleator-demo".as_ref()));
    line(INTRODUCTION)?;
    let demo = watched(quiet, |watch| aleator::demo(&out, watch))?;
    print(&out, &demo)?;
    let (runs, seconds) = (demo.runs.len(), started.elapsed().as_secs_f64());
    line(format_args!("an audit and {runs} runs in {seconds:.0} s"))
}

const INTRODUCTION: &str = "\
1,797 handwritten digits of 8 × 8 pixels. Of four in five the labels are made partly wrong on purpose,
harder examples more often, toward the digits they resemble. The others keep their true labels and are
the test: neither the audit nor any training sees them.
";

/// What the audit finds, what corrections gain, the noise models, and what to do next.
pub fn print(out: &Path, demo: &Demo) -> Result<()> {
    print_audit(&demo.audit)?;
    print_gain(demo)?;
    print_noise_models(out)?;
    print_confusions(&demo.confusions)?;
    let (settings, audit) = (ReportSettings::inside(out), out.join(DEMO_AUDIT));
    aleator::report(&[out.to_path_buf(), audit.clone()], &settings, &mut Watch::silent())?;
    line(format_args!(
        "\nSee all of it:          {}\nCorrect the labels:     aleator review {}\nOn data of your own:    \
         aleator audit --data PATH --out audit",
        settings.page.display(),
        audit.display()
    ))?;
    print_written(out, &demo.runs)
}

/// What an audit finds, next to the truth, which is known here.
fn print_audit(audit: &Audit) -> Result<()> {
    let is_wrong = |issue: &&Issue| issue.truth.is_some_and(|truth| truth != issue.given);
    let suspects: Vec<&Issue> = audit.issues.iter().filter(|issue| issue.wrong).collect();
    let found = suspects.iter().copied().filter(is_wrong).count();
    let right = suspects.iter().filter(|issue| issue.truth == Some(issue.suggested)).count();
    let wrong = audit.issues.iter().filter(is_wrong).count();
    let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
    line("1. Which labels are wrong?")?;
    line(audit.summary.wrong_in_words())?;
    line(format_args!(
        "The truth, which only the demo knows: {wrong} are wrong ({:.1} %). Of the {} suspects {found} are \
         ({:.1} %),\nand the suggested label is right for {right} ({:.1} %). The most surely wrong:",
        share(wrong, audit.issues.len()),
        suspects.len(),
        share(found, suspects.len()),
        share(right, suspects.len()),
    ))?;
    let name = |answer: Answer| audit.summary.class_names[answer.class() as usize].clone();
    let row = |issue: &&Issue| {
        let truth = issue.truth.map_or(String::new(), name);
        vec![issue.id.clone(), name(issue.given), name(issue.suggested), truth]
    };
    let rows: Vec<Vec<String>> = suspects.iter().take(SUSPECTS).map(row).collect();
    table(&["example", "given", "suggested", "true"], &rows, &[])
}

/// The scores on true test labels of training on the given, the corrected and the true labels.
fn print_gain(demo: &Demo) -> Result<()> {
    let suspects = demo.audit.issues.iter().filter(|issue| issue.wrong).count();
    let tests = |setting: &str| -> Vec<&Summary> {
        let runs = demo.runs.iter();
        let runs = runs.filter(|run| run.name.split('/').next() == Some(setting));
        runs.filter_map(|run| Some(&run.evaluation.test.as_ref()?.given)).collect()
    };
    let scored = |setting: &str, measure: Measure| {
        let values: Option<Vec<f64>> =
            tests(setting).iter().map(|test| measure.read(test)).collect();
        values.and_then(|values| Score::alone(&values))
    };
    let shown = |score: Option<Score>, measure: Measure| match score {
        Some(Score { mean, std, .. }) if measure.is_share() => {
            format!("{:.1} ± {:.1} %", 100.0 * mean, 100.0 * std.unwrap_or(0.0))
        }
        Some(Score { mean, std, .. }) => format!("{mean:.3} ± {:.3}", std.unwrap_or(0.0)),
        None => "–".to_string(),
    };
    let measures = [Measure::Top1, Measure::Nll, Measure::Ece];
    let rows: Vec<Vec<String>> = [
        (GIVEN, "the labels as given".to_string()),
        (DEMO_CORRECTED, format!("{suspects} suggestions accepted")),
        (DEMO_TRUE, "true labels".to_string()),
    ]
    .into_iter()
    .map(|(setting, name)| {
        let scores = measures.map(|measure| shown(scored(setting, measure), measure));
        [name].into_iter().chain(scores).collect()
    })
    .collect();
    let examples = tests(GIVEN).first().map_or(0, |test| test.examples);
    line(format_args!(
        "\n2. What do corrections gain? The full noise model, three seeds, on {examples} true test labels:"
    ))?;
    table(&["trained on", "accuracy", "NLL", "ECE"], &rows, &[0])?;
    line(
        "The suggestions are accepted without looking; a review corrects what they get wrong. The last row \
         is\nthe most that there is to gain.",
    )
}

/// Mean ± standard deviation over the seeds of each noise model.
fn print_noise_models(out: &Path) -> Result<()> {
    let source = |name: &str| Source { name: Some(name.to_string()), dir: out.join(name) };
    let rows = Row::read(&["none", "diagonal", GIVEN].map(source))?;
    let spec = |heading: &str, measure| Spec {
        heading: heading.to_string(),
        measure,
        view: View { split: Split::Test, labels: Labels::Given, calibrated: false },
    };
    let specs =
        [spec("accuracy", Measure::Top1), spec("NLL", Measure::Nll), spec("ECE", Measure::Ece)];
    let mut table = compare_columns(&rows, &specs, Test::PairedBySeed)?;
    table.heading = "noise model".to_string();
    line(
        "\n3. Which noise model? On the labels as given, on the same test. Digits this small hardly tell \
         them\napart:",
    )?;
    scores(&table, Format::Terminal(terminal()))
}

/// The confusions in the labels, next to those that the noise model expects.
fn print_confusions(confusions: &[LearnedConfusion]) -> Result<()> {
    line(format_args!(
        "\nWhat the full model learned of the labels: their most frequent confusions, the mean \
         probability that\nit gives to them on test examples, and its rank among {} pairs:",
        confusions.len()
    ))?;
    let row = |confusion: &LearnedConfusion| {
        vec![
            format!("{} → {}", confusion.class, confusion.given),
            format!("{:.1} %", 100.0 * confusion.rate),
            format!("{:.1} %", 100.0 * confusion.expected),
            confusion.rank.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = confusions.iter().take(CONFUSIONS).map(row).collect();
    table(&["true → given", "in labels", "expected", "rank"], &rows, &[])
}
