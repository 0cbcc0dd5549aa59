//! What a run says of the examples that it did not learn from.

use std::path::Path;

use aleator_metrics::classification::argmax;
use aleator_metrics::probability_above_zero;
use aleator_run::{ExampleRow, Field, Link, PredictionsFile, RunDir, RunError, Split};

use crate::audit::Answer;
use crate::covariance::LARGEST_MATRIX;
use crate::error::ReportError;

/// Numbers of one tensor that are read at a time.
const BLOCK: usize = 1 << 22;

/// One split of a run, read once.
pub(crate) struct HeldOut {
    pub split: Split,
    pub classes: usize,
    /// How often each class is predicted (second) where another is given (first), `[K, K]`;
    /// empty where classes are on or off, and where they are too many for a matrix.
    pub confusion: Vec<f64>,
    /// The probability of each class, averaged over the examples whose utility has its largest
    /// mean in one class, `[K, K]`; empty where they are too many for a matrix.
    pub expected: Vec<f64>,
    /// Labels that the model contradicts, the surest first.
    pub suspects: Vec<Judged>,
    /// Examples that it cannot decide, the least sure first.
    pub ambiguous: Vec<Judged>,
}

/// One example, or one class of it, and what the model says.
pub(crate) struct Judged {
    pub row: ExampleRow,
    /// What the label says.
    pub given: Option<Answer>,
    /// Answers with their probabilities, to be shown in this order.
    pub answers: Vec<(Answer, f64)>,
}

struct Found {
    score: f64,
    example: usize,
    class: usize,
}

/// How many of each are kept.
pub(crate) struct Limits {
    pub suspects: usize,
    pub ambiguous: usize,
}

impl HeldOut {
    /// `None` where the run has no examples in the split.
    pub fn load(run: &RunDir, split: Split, limits: &Limits) -> Result<Option<Self>, ReportError> {
        let rows: Vec<ExampleRow> =
            run.read_examples()?.into_iter().filter(|row| row.split == split).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let path = run.predictions_path(split);
        if !path.exists() {
            let dir = run.path().to_path_buf();
            return Err(ReportError::NotEvaluated { dir, split: split.name() });
        }
        let classes = run.info().class_names.len();
        check_labels(&run.examples_path(), &rows, classes)?;
        let mut file = open(&path, rows.len(), classes)?;
        let mut pass = Pass::new(classes, run.info().link);
        for block in blocks(rows.len(), classes) {
            let start = block.start;
            let log_probs = file.read(Field::LogProbs, block.clone())?.unwrap_or_default();
            let mean = file.read(Field::Mean, block)?.unwrap_or_default();
            let pairs = log_probs.chunks_exact(classes).zip(mean.chunks_exact(classes));
            for (at, (log_probs, mean)) in pairs.enumerate() {
                pass.add(start + at, &rows[start + at], log_probs, mean);
            }
        }
        pass.finish(file, &rows, split, limits).map(Some)
    }
}

fn open(path: &Path, examples: usize, classes: usize) -> Result<PredictionsFile, RunError> {
    let file = PredictionsFile::open(path)?;
    if (file.examples(), file.classes()) != (examples, classes) {
        let message = format!(
            "holds {} examples of {} classes, expected {examples} of {classes}; `aleator eval` \
             writes it anew",
            file.examples(),
            file.classes()
        );
        return Err(RunError::Damaged { path: path.to_path_buf(), message });
    }
    Ok(file)
}

fn blocks(examples: usize, classes: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let size = (BLOCK / classes.max(1)).max(1);
    (0..examples).step_by(size).map(move |start| start..(start + size).min(examples))
}

fn check_labels(path: &Path, rows: &[ExampleRow], classes: usize) -> Result<(), RunError> {
    let known =
        |label: &Option<Vec<u32>>| label.iter().flatten().all(|class| (*class as usize) < classes);
    match rows.iter().find(|row| !known(&row.label) || !known(&row.clean_label)) {
        None => Ok(()),
        Some(row) => {
            let message = format!("example {:?} has a label that is not below {classes}", row.id);
            Err(RunError::Damaged { path: path.to_path_buf(), message })
        }
    }
}

/// What is gathered while the rows go by.
struct Pass {
    classes: usize,
    link: Link,
    confusion: Vec<f64>,
    expected: Vec<f64>,
    tops: Vec<usize>,
    suspects: Vec<Found>,
    ambiguous: Vec<Found>,
}

impl Pass {
    fn new(classes: usize, link: Link) -> Self {
        let matrix = |wanted: bool| {
            let size = if wanted && classes <= LARGEST_MATRIX { classes * classes } else { 0 };
            vec![0.0; size]
        };
        Self {
            classes,
            link,
            confusion: matrix(link == Link::Softmax),
            expected: matrix(true),
            tops: vec![0; classes],
            suspects: vec![],
            ambiguous: vec![],
        }
    }

    fn add(&mut self, example: usize, row: &ExampleRow, log_probs: &[f32], mean: &[f32]) {
        let classes = self.classes;
        let top = argmax(mean);
        self.tops[top] += 1;
        if let Some(sums) = self.expected.get_mut(top * classes..(top + 1) * classes) {
            sums.iter_mut().zip(log_probs).for_each(|(sum, log_p)| *sum += (*log_p as f64).exp());
        }
        match self.link {
            Link::Softmax => self.add_single(example, row, log_probs),
            Link::Sigmoid => self.add_entries(example, row, log_probs),
        }
    }

    fn add_single(&mut self, example: usize, row: &ExampleRow, log_probs: &[f32]) {
        let predicted = argmax(log_probs);
        let entropy = |log_p: &f32| {
            let log_p = *log_p as f64;
            if log_p == f64::NEG_INFINITY { 0.0 } else { -log_p * log_p.exp() }
        };
        let score = log_probs.iter().map(entropy).sum();
        self.ambiguous.push(Found { score, example, class: predicted });
        let Some([given]) = row.label.as_deref() else { return };
        let given = *given as usize;
        if let Some(count) = self.confusion.get_mut(given * self.classes + predicted) {
            *count += 1.0;
        }
        if given != predicted {
            let probability = |class: usize| (log_probs[class] as f64).exp();
            let score = probability(predicted) - probability(given);
            self.suspects.push(Found { score, example, class: given });
        }
    }

    fn add_entries(&mut self, example: usize, row: &ExampleRow, log_probs: &[f32]) {
        let mut entropy = 0.0;
        for (class, log_p) in log_probs.iter().enumerate() {
            let on = (*log_p as f64).exp().min(1.0);
            let part = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
            entropy += part(on) + part(1.0 - on);
            let Some(given) = row.label.as_deref() else { continue };
            let is_on = given.contains(&(class as u32));
            let against = if is_on { 1.0 - on } else { on };
            if against > 0.5 {
                self.suspects.push(Found { score: against, example, class });
            }
        }
        self.ambiguous.push(Found { score: entropy, example, class: 0 });
    }

    fn finish(
        mut self,
        mut file: PredictionsFile,
        rows: &[ExampleRow],
        split: Split,
        limits: &Limits,
    ) -> Result<HeldOut, ReportError> {
        let classes = self.classes;
        for (row, count) in self.expected.chunks_exact_mut(classes).zip(&self.tops) {
            row.iter_mut().for_each(|sum| *sum /= (*count).max(1) as f64);
        }
        let suspects = strongest(&mut self.suspects, limits.suspects);
        let ambiguous = strongest(&mut self.ambiguous, limits.ambiguous);
        let mut judge = |found: &Found, suspect: bool| -> Result<Judged, ReportError> {
            let range = found.example..found.example + 1;
            let log_probs = file.read(Field::LogProbs, range)?.unwrap_or_default();
            let row = rows[found.example].clone();
            Ok(judged(row, found.class, &log_probs, self.link, suspect))
        };
        let suspects = suspects.iter().map(|it| judge(it, true)).collect::<Result<_, _>>()?;
        let ambiguous = ambiguous.iter().map(|it| judge(it, false)).collect::<Result<_, _>>()?;
        let (confusion, expected) = (self.confusion, self.expected);
        Ok(HeldOut { split, classes, confusion, expected, suspects, ambiguous })
    }
}

/// Those with the largest scores; ties by the order of the data.
fn strongest(found: &mut [Found], limit: usize) -> &[Found] {
    found.sort_by(|a, b| {
        let order = b.score.total_cmp(&a.score);
        order.then(a.example.cmp(&b.example)).then(a.class.cmp(&b.class))
    });
    &found[..limit.min(found.len())]
}

fn judged(row: ExampleRow, class: usize, log_probs: &[f32], link: Link, suspect: bool) -> Judged {
    let probability = |class: usize| (log_probs[class] as f64).exp().min(1.0);
    if link == Link::Sigmoid && suspect {
        let on = probability(class);
        let class = class as u32;
        let is_on = row.label.as_deref().is_some_and(|given| given.contains(&class));
        let both = [(Answer::On(class), on), (Answer::Off(class), 1.0 - on)];
        let (given, other) = if is_on { (both[0], both[1]) } else { (both[1], both[0]) };
        return Judged { row, given: Some(given.0), answers: vec![other, given] };
    }
    let given = match row.label.as_deref() {
        Some([given]) if link == Link::Softmax => Some(Answer::Class(*given)),
        _ => None,
    };
    let mut ranked: Vec<usize> = (0..log_probs.len()).collect();
    let rank = |class: usize| match link {
        Link::Softmax => -probability(class),
        Link::Sigmoid => (probability(class) - 0.5).abs(),
    };
    ranked.sort_by(|a, b| rank(*a).total_cmp(&rank(*b)).then(a.cmp(b)));
    let answer = |class: usize| match link {
        Link::Softmax => Answer::Class(class as u32),
        Link::Sigmoid => Answer::On(class as u32),
    };
    let mut answers: Vec<(Answer, f64)> =
        ranked.iter().take(2).map(|class| (answer(*class), probability(*class))).collect();
    if let Some(given) = given.filter(|given| !answers.iter().any(|(answer, _)| answer == given)) {
        answers.truncate(if suspect { 1 } else { 2 });
        answers.push((given, probability(given.class() as usize)));
    }
    Judged { row, given, answers }
}

/// How likely the utility of the second class is above that of the first, averaged over the
/// examples whose utility has its largest mean in the first; for each pair that is asked for.
pub(crate) fn flip_probabilities(
    run: &RunDir,
    split: Split,
    pairs: &[(usize, usize)],
) -> Result<Vec<Option<f64>>, ReportError> {
    let mut file = PredictionsFile::open(&run.predictions_path(split))?;
    if !file.has(Field::DiagScale) {
        return Ok(vec![None; pairs.len()]);
    }
    let mut sums = vec![(0.0, 0_usize); pairs.len()];
    let classes = file.classes();
    for block in blocks(file.examples(), classes * file.rank().max(1)) {
        let rows = file.rows(block)?;
        for (example, mean) in rows.mean.chunks_exact(classes).enumerate() {
            let top = argmax(mean);
            for (sum, (_, to)) in sums.iter_mut().zip(pairs).filter(|(_, (from, _))| *from == top) {
                let difference = rows.difference(example, *to, top);
                sum.0 += probability_above_zero(difference.mean, difference.variance);
                sum.1 += 1;
            }
        }
    }
    Ok(sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / count as f64)).collect())
}
