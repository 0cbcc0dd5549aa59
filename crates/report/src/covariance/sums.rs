//! Sums over the examples of a split: of its predictions, or those that its evaluation took.

use std::collections::BTreeMap;

use aleator_covariance::{Block, Entries, Gram, Moments, columns, examples_of_a_product, plan};
use aleator_run::{CovarianceFile, Field};

use super::open::Covariances;
use super::{Observer, Step};
use crate::confusion::flip_rates;
use crate::error::ReportError;

/// P(u_to > u_from) of each pair (from, to); `None` where no example has its largest mean in `from`.
pub(crate) type Flips = BTreeMap<(usize, usize), Option<f64>>;

impl Covariances {
    /// Whether [`for_each_block`](Self::for_each_block) gives the product of centred loadings.
    pub(super) fn blocks_are_centred(&self) -> bool {
        match &self.sums {
            Some(sums) => sums.info().centred,
            None => self.rank > 0 && self.shared.is_none(),
        }
    }

    /// What converts the numbers of blocks into those of Σ̄.
    pub(super) fn entries(&mut self, observer: Observer) -> Result<Entries, ReportError> {
        let (centred, units, total) = (self.blocks_are_centred(), self.units(), self.total);
        let mut moments = Moments::new(self.classes());
        if let Some(sums) = &mut self.sums {
            moments.examples = total;
            (moments.classes, moments.total) = sums.moments()?;
            return Ok(Entries::new(&moments, centred, units));
        }
        for rows in self.pieces() {
            let done = rows.end;
            moments.add(&self.noise(rows)?);
            observer(Step { what: "examples: variances", done, total });
        }
        Ok(Entries::new(&moments, centred, units))
    }

    /// Calls `visit` with all blocks of mean V Vᵀ, from the first class to the last.
    pub(super) fn for_each_block(
        &mut self,
        observer: Observer,
        mut visit: impl FnMut(&Block),
    ) -> Result<(), ReportError> {
        let (classes, total, rank) = (self.classes(), self.total, self.rank);
        let passes = plan(classes, self.memory);
        if let Some(sums) = &mut self.sums {
            for rows in passes.into_iter().flatten() {
                visit(&stored_block(sums, rows, classes)?);
            }
            return Ok(());
        }
        let steps = passes.len() * total;
        let is_shared = self.shared.is_some();
        let width = if is_shared { 1 } else { rank };
        let together = examples_of_a_product(width, is_shared);
        for (pass, rows) in passes.into_iter().enumerate() {
            let mut gram = Gram::new(rows, classes, width, is_shared);
            let mut read = 0;
            while rank > 0 && read < total {
                let rows = read..total.min(read + together);
                read = rows.end;
                if is_shared {
                    gram.add(&self.latent_reader()?.read(Field::LoadingScale, rows)?);
                } else {
                    gram.add(&columns(&self.noise(rows)?));
                }
                let done = pass * total + read;
                observer(Step { what: "examples: pairs of classes", done, total: steps });
            }
            gram.finish(total, self.shared.as_ref()).iter().for_each(&mut visit);
        }
        Ok(())
    }

    /// How often each class is taken for the other; none for labels that are on or off by
    /// themselves.
    pub(crate) fn flips(
        &mut self,
        pairs: impl IntoIterator<Item = (usize, usize)>,
        observer: Observer,
    ) -> Result<Flips, ReportError> {
        if !self.is_shift_free() {
            return Ok(pairs.into_iter().map(|pair| (pair, None)).collect());
        }
        match &mut self.sums {
            Some(sums) => stored_flips(sums, pairs),
            None => Ok(flip_rates(self.latent_reader()?, pairs, observer)?),
        }
    }
}

/// Some rows of the stored triangle as a block.
fn stored_block(
    sums: &mut CovarianceFile,
    rows: std::ops::Range<usize>,
    classes: usize,
) -> Result<Block, ReportError> {
    let stored = sums.pairs(rows.clone())?;
    let width = classes - rows.start;
    let mut values = vec![0.0; rows.len() * width];
    let mut rest = &stored[..];
    for (within, row) in values.chunks_exact_mut(width).enumerate() {
        let (own, later) = rest.split_at(width - within);
        row[within..].copy_from_slice(own);
        rest = later;
    }
    Ok(Block { rows, values })
}

fn stored_flips(
    sums: &mut CovarianceFile,
    pairs: impl IntoIterator<Item = (usize, usize)>,
) -> Result<Flips, ReportError> {
    let mut of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    pairs.into_iter().for_each(|(from, to)| of.entry(from).or_default().push(to));
    let mut flips = BTreeMap::new();
    for (from, others) in of {
        let found = sums.flips(from)?;
        let rate = |to: usize| {
            found.as_ref().filter(|(examples, _)| *examples > 0.0).map(|(all, it)| it[to] / all)
        };
        flips.extend(others.into_iter().map(|to| ((from, to), rate(to))));
    }
    Ok(flips)
}
