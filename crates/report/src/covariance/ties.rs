//! For one example: the classes whose noise is tied to that of one class.

use std::ops::Range;

use aleator_covariance::{Measure, Tie, map_ties};
use aleator_run::{CovarianceFile, RunError, TieRows};
use rayon::prelude::*;
use serde::Serialize;

use super::best::Best;
use super::open::Covariances;
use super::{Observer, Step};
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

/// One class of an example with all classes.
pub(super) struct ClassRow<'a> {
    class: usize,
    /// `[K]`.
    ties: &'a [Tie],
}

impl ClassRow<'_> {
    /// With another class.
    pub fn tie(&self, class: usize) -> Tie {
        self.ties[class]
    }

    /// With all other classes.
    fn others(&self) -> impl Iterator<Item = Tie> {
        self.ties.iter().filter(|tie| tie.class != self.class).copied()
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
        assert_eq!(predicted.len(), self.total, "a prediction for each example");
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
        assert_eq!(pairs.len(), self.total, "two classes for each example");
        self.latent_reader()?;
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
        self.reader()?;
        let units = self.units();
        let mut done = 0;
        for piece in self.pieces() {
            let within = rows[done..].partition_point(|(row, _)| *row < piece.end);
            let wanted = &rows[done..done + within];
            let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else {
                continue;
            };
            let span = *first..last + 1;
            let found: Vec<T> = match &mut self.sums {
                Some(sums) => {
                    let stored = Stored::read(sums, span)?;
                    stored.check(wanted)?;
                    wanted
                        .par_iter()
                        .map(|(row, class)| {
                            find(*row, &ClassRow { class: *class, ties: &stored.ties(*row) })
                        })
                        .collect()
                }
                None => {
                    let noise = self.noise(span)?;
                    let within: Vec<(usize, usize)> =
                        wanted.iter().map(|(row, class)| (row - first, *class)).collect();
                    map_ties(&noise, &within, units, |at, ties| {
                        let (row, class) = wanted[at];
                        find(row, &ClassRow { class, ties })
                    })
                }
            };
            found.into_iter().try_for_each(&mut *sink)?;
            done += within;
            observer(Step { what: "examples: ties", done, total: rows.len() });
        }
        Ok(())
    }
}

/// The ties that the evaluation wrote, of some rows.
struct Stored<'a> {
    file: &'a CovarianceFile,
    first: usize,
    classes: usize,
    rows: TieRows,
}

impl<'a> Stored<'a> {
    fn read(file: &'a mut CovarianceFile, rows: Range<usize>) -> Result<Self, RunError> {
        let (first, classes) = (rows.start, file.info().classes);
        let rows = file.ties(rows)?;
        let file = &*file;
        let missing = || RunError::damaged(file.path(), "holds no covariances of single examples");
        Ok(Self { file, first, classes, rows: rows.ok_or_else(missing)? })
    }

    /// Each row must be of the class that the predictions name.
    fn check(&self, wanted: &[(usize, usize)]) -> Result<(), RunError> {
        let stored = |row: usize| self.rows.classes[row - self.first] as usize;
        match wanted.iter().find(|(row, class)| stored(*row) != *class) {
            None => Ok(()),
            Some((row, class)) => {
                let message = format!(
                    "row {row} is of class {}, and the predictions name class {class}: they are of \
                     another evaluation; `aleator eval` writes both again",
                    stored(*row)
                );
                Err(RunError::damaged(self.file.path(), message))
            }
        }
    }

    /// Of one row, `[K]`.
    fn ties(&self, row: usize) -> Vec<Tie> {
        let start = (row - self.first) * self.classes;
        let tie = |class: usize| {
            let [covariance, centred, correlation] =
                [&self.rows.covariance, &self.rows.centred, &self.rows.correlation]
                    .map(|values| f64::from(values[start + class]));
            let correlation = Some(correlation).filter(|it| !it.is_nan());
            Tie { class, covariance, centred, correlation }
        };
        (0..self.classes).map(tie).collect()
    }
}
