//! The predictions of a run for examples that it was not trained on.

use aleator_covariance::RateSums;
use aleator_metrics::classification::argmax;
use aleator_run::{ExampleRow, Field, Link, RunDir, RunError, Split, SplitReader};

use super::PageSettings;
use crate::audit::Answer;
use crate::confusion::{Confusions, add_expected};
use crate::covariance::LARGEST_MATRIX;

/// One split of a run, read once.
pub(crate) struct HeldOut {
    pub split: Split,
    /// How often each class is predicted (second) where another is given (first), `[K, K]`;
    /// empty for multilabel runs, and for too many classes.
    pub confusion: Vec<f64>,
    /// The confusions that the model expects; `None` for too many classes.
    pub expected: Option<Confusions>,
    /// Labels that the model contradicts, the most certain first.
    pub suspects: Vec<JudgedExample>,
    /// Examples about which the model is uncertain, the least certain first.
    pub ambiguous: Vec<JudgedExample>,
}

/// One example, or one class of it, and its predictions.
pub(crate) struct JudgedExample {
    pub row: ExampleRow,
    /// The given label.
    pub given: Option<Answer>,
    /// Answers with their probabilities, in the order in which they are shown.
    pub answers: Vec<(Answer, f64)>,
}

/// An example, or one class of it, that may be shown.
struct Candidate {
    score: f64,
    example: usize,
    class: usize,
}

impl HeldOut {
    /// `None` if the run has no examples in the split, or keeps no predictions of them.
    pub fn load(
        run: &RunDir,
        split: Split,
        limits: &PageSettings,
    ) -> Result<Option<Self>, RunError> {
        if run.info().examples.of(split) == 0 || run.keeps_no_predictions(split) {
            return Ok(None);
        }
        let mut reader = SplitReader::open(run, split)?;
        let classes = reader.file.classes();
        let link = run.info().link;
        let small = classes <= LARGEST_MATRIX;
        let confused = if small && link == Link::Softmax { classes * classes } else { 0 };
        let mut expected = small.then(|| RateSums::new(classes));
        let mut pass = Pass { confusion: vec![0.0; confused], suspects: vec![], ambiguous: vec![] };
        for rows in reader.pieces(classes, usize::MAX) {
            let log_probs = reader.read(Field::LogProbs, rows.clone())?;
            let mean = reader.read(Field::Mean, rows.clone())?;
            let numbers = log_probs.chunks_exact(classes).zip(mean.chunks_exact(classes));
            for (example, (log_probs, mean)) in rows.zip(numbers) {
                if let Some(sums) = &mut expected {
                    add_expected(sums, mean, log_probs);
                }
                let row = &reader.examples[example];
                match link {
                    Link::Softmax => pass.add_single(example, row, log_probs),
                    Link::Sigmoid => pass.add_entries(example, row, log_probs),
                }
            }
        }
        let mut judge = |candidates, limit, suspect| -> Result<Vec<JudgedExample>, RunError> {
            let judge = |Candidate { example, class, .. }: &Candidate| {
                let log_probs = reader.read(Field::LogProbs, *example..example + 1)?;
                let row = reader.examples[*example].clone();
                Ok(judged(row, *class, &log_probs, link, suspect))
            };
            strongest(candidates, limit).iter().map(judge).collect()
        };
        let suspects = judge(&mut pass.suspects, limits.suspects, true)?;
        let ambiguous = judge(&mut pass.ambiguous, limits.ambiguous, false)?;
        let (confusion, expected) = (pass.confusion, expected.map(Confusions::of));
        Ok(Some(Self { split, confusion, expected, suspects, ambiguous }))
    }
}

/// Counts and candidates from one pass over the examples.
struct Pass {
    confusion: Vec<f64>,
    suspects: Vec<Candidate>,
    ambiguous: Vec<Candidate>,
}

impl Pass {
    fn add_single(&mut self, example: usize, row: &ExampleRow, log_probs: &[f32]) {
        let predicted = argmax(log_probs);
        let entropy = |log_p: &f32| {
            let log_p = *log_p as f64;
            if log_p == f64::NEG_INFINITY { 0.0 } else { -log_p * log_p.exp() }
        };
        let score = log_probs.iter().map(entropy).sum();
        self.ambiguous.push(Candidate { score, example, class: predicted });
        let Some([given]) = row.label.as_deref() else { return };
        let given = *given as usize;
        if let Some(count) = self.confusion.get_mut(given * log_probs.len() + predicted) {
            *count += 1.0;
        }
        if given != predicted {
            let probability = |class: usize| (log_probs[class] as f64).exp();
            let score = probability(predicted) - probability(given);
            self.suspects.push(Candidate { score, example, class: given });
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
                self.suspects.push(Candidate { score: against, example, class });
            }
        }
        self.ambiguous.push(Candidate { score: entropy, example, class: 0 });
    }
}

/// Those with the largest scores; ties by the order of the data.
fn strongest(candidates: &mut [Candidate], limit: usize) -> &[Candidate] {
    candidates.sort_by(|a, b| {
        let order = b.score.total_cmp(&a.score);
        order.then((a.example, a.class).cmp(&(b.example, b.class)))
    });
    &candidates[..limit.min(candidates.len())]
}

fn judged(
    row: ExampleRow,
    class: usize,
    log_probs: &[f32],
    link: Link,
    suspect: bool,
) -> JudgedExample {
    let probability = |class: usize| (log_probs[class] as f64).exp().min(1.0);
    if link == Link::Sigmoid && suspect {
        let on = probability(class);
        let class = class as u32;
        let is_on = row.label.as_deref().is_some_and(|given| given.contains(&class));
        let both = [(Answer::On(class), on), (Answer::Off(class), 1.0 - on)];
        let (given, other) = if is_on { (both[0], both[1]) } else { (both[1], both[0]) };
        return JudgedExample { row, given: Some(given.0), answers: vec![other, given] };
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
    JudgedExample { row, given, answers }
}
