//! For one example: the classes whose noise is tied to that of one class.

use rayon::prelude::*;
use serde::Serialize;

use super::best::Best;
use super::low_rank::LowRank;
use super::moments::inverse_deviation;
use super::open::Covariances;
use super::{Measure, Observer, Step};
use crate::error::ReportError;

/// The classes that are tied most to the prediction of an example.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExampleTies {
    /// The row of the example in the split.
    pub row: usize,
    /// The class of the largest probability.
    pub predicted: usize,
    /// The strongest first.
    pub ties: Vec<Tie>,
}

/// The covariance of an example's prediction with another class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tie {
    /// The other class.
    pub class: usize,
    /// Σ(x) of both.
    pub covariance: f64,
    /// C Σ(x) C / τ² of both.
    pub centred: f64,
    /// The correlation of C Σ(x) C; `None` if a variance is only rounding.
    pub correlation: Option<f64>,
}

impl Tie {
    /// The value by one of the measures; an undefined correlation counts as zero.
    pub fn value(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Raw => self.covariance,
            Measure::Centred => self.centred,
            Measure::Correlation => self.correlation.unwrap_or(0.0),
        }
    }
}

/// The covariances of one class with all, of one example.
pub(super) struct ClassRow {
    class: usize,
    raw: Vec<f64>,
    /// The means of the rows of Σ(x), and their mean.
    rows: Vec<f64>,
    mean: f64,
    inverse: Vec<f64>,
    temperature: f64,
}

impl ClassRow {
    /// Of one class of an example, from V V_cᵀ and V Vᵀ 1 of the example, `[K]`.
    fn new(
        noise: &LowRank,
        example: usize,
        class: usize,
        mut raw: Vec<f64>,
        all: &[f64],
        temperature: f64,
        is_shift_free: bool,
    ) -> Self {
        let own: Vec<f64> = noise.diag_squares(example).collect();
        raw[class] += own[class];
        let k = noise.classes as f64;
        let row = |(own, all): (&f64, &f64)| if is_shift_free { (own + all) / k } else { 0.0 };
        let rows: Vec<f64> = own.iter().zip(all).map(row).collect();
        let mean = rows.iter().sum::<f64>() / k;
        let inverse = |other: usize| {
            inverse_deviation(own[other] + noise.square(example, other), rows[other], mean)
        };
        let inverse = (0..noise.classes).map(inverse).collect();
        Self { class, raw, inverse, rows, mean, temperature }
    }

    /// With another class.
    pub fn tie(&self, class: usize) -> Tie {
        let (at, covariance) = (self.class, self.raw[class]);
        let centred = covariance - self.rows[class] - self.rows[at] + self.mean;
        let inverse = self.inverse[class] * self.inverse[at];
        Tie {
            class,
            covariance,
            centred: centred / self.temperature.powi(2),
            correlation: (inverse > 0.0).then(|| (centred * inverse).clamp(-1.0, 1.0)),
        }
    }

    /// With all other classes.
    fn others(&self) -> impl Iterator<Item = Tie> {
        (0..self.raw.len()).filter(|class| *class != self.class).map(|class| self.tie(class))
    }

    /// The strongest ties.
    fn strongest(&self, measure: Measure, top: usize) -> Vec<Tie> {
        let mut best = Best::new(top);
        for tie in self.others() {
            let value = tie.value(measure);
            if value != 0.0 {
                best.offer(value.abs(), tie.class, tie);
            }
        }
        best.into_sorted().into_iter().map(|(.., tie)| tie).collect()
    }

    /// The rank of a class among all others by absolute value, 1 for the largest; ties go to the
    /// lower index.
    pub fn rank(&self, class: usize, measure: Measure) -> usize {
        let own = self.tie(class).value(measure).abs();
        let before = |tie: &Tie| {
            let value = tie.value(measure).abs();
            value > own || (value == own && tie.class < class)
        };
        1 + self.others().filter(before).count()
    }
}

impl Covariances {
    /// Passes the classes that are tied most to the prediction of each example to `sink`; none with
    /// noise `"diagonal"`. `predicted` comes from [`predicted`](Self::predicted).
    ///
    /// ```no_run
    /// # use aleator_report::covariance::{Covariances, Measure};
    /// # let run = aleator_run::RunDir::open("run".as_ref())?;
    /// let mut covariances = Covariances::open(&run, aleator_run::Split::Test)?;
    /// let predicted = covariances.predicted(&mut |_| {})?;
    /// let mut strongest = vec![];
    /// covariances.ties(&predicted, Measure::Raw, 3, &mut |_| {}, &mut |example| {
    ///     strongest.extend(example.ties.first().map(|tie| (example.row, tie.class)));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), aleator_report::ReportError>(())
    /// ```
    ///
    /// # Panics
    /// When `predicted` has another number of examples.
    pub fn ties(
        &mut self,
        predicted: &[usize],
        measure: Measure,
        top: usize,
        observer: Observer,
        sink: &mut dyn FnMut(ExampleTies) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        assert_eq!(predicted.len(), self.reader.file.examples(), "a prediction for each example");
        if !self.has_factors() {
            return Ok(());
        }
        let rows: Vec<(usize, usize)> = predicted.iter().copied().enumerate().collect();
        let find = |row: usize, of: &ClassRow| ExampleTies {
            row,
            predicted: of.class,
            ties: of.strongest(measure, top),
        };
        self.map_rows(&rows, &find, observer, sink)
    }

    /// The covariance of two classes for each example, also with noise `"diagonal"`.
    ///
    /// # Panics
    /// When there is not one pair for each example.
    pub fn between(
        &mut self,
        pairs: &[(usize, usize)],
        observer: Observer,
    ) -> Result<Vec<Tie>, ReportError> {
        assert_eq!(pairs.len(), self.reader.file.examples(), "two classes for each example");
        let rows: Vec<(usize, usize)> =
            pairs.iter().enumerate().map(|(row, (class, _))| (row, *class)).collect();
        let mut ties = Vec::with_capacity(pairs.len());
        let find = |row: usize, of: &ClassRow| of.tie(pairs[row].1);
        self.map_rows(&rows, &find, observer, &mut |tie| {
            ties.push(tie);
            Ok(())
        })?;
        Ok(ties)
    }

    /// Calls `find` for each (row of the file, class) and passes the results to `sink` in order.
    /// Rows must ascend.
    pub(super) fn map_rows<T: Send>(
        &mut self,
        rows: &[(usize, usize)],
        find: &(impl Fn(usize, &ClassRow) -> T + Sync),
        observer: Observer,
        sink: &mut dyn FnMut(T) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let (temperature, shift_free) = (self.temperature(), self.is_shift_free());
        let mut done = 0;
        for piece in self.pieces() {
            let within = rows[done..].partition_point(|(row, _)| *row < piece.end);
            let wanted = &rows[done..done + within];
            let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else {
                continue;
            };
            let noise = self.noise(*first..last + 1)?;
            let (classes, rank) = (noise.classes, noise.rank);
            // V_c with the wanted class of each example; zero if there is none.
            let mut loadings = vec![0.0; noise.examples() * rank];
            for (row, class) in wanted {
                let example = row - first;
                loadings[example * rank..(example + 1) * rank]
                    .copy_from_slice(&noise.loading(example, *class));
            }
            // V V_cᵀ and V Vᵀ 1, `[n, K]`.
            let (with_class, with_all) = (noise.times(&loadings), noise.times(&noise.sums()));
            let found = |(row, class): &(usize, usize)| {
                let example = row - first;
                let span = example * classes..(example + 1) * classes;
                let (raw, all) = (with_class[span.clone()].to_vec(), &with_all[span]);
                find(
                    *row,
                    &ClassRow::new(&noise, example, *class, raw, all, temperature, shift_free),
                )
            };
            let found: Vec<T> = wanted.par_iter().map(found).collect();
            found.into_iter().try_for_each(&mut *sink)?;
            done += within;
            observer(Step { what: "examples: ties", done, total: rows.len() });
        }
        Ok(())
    }
}
