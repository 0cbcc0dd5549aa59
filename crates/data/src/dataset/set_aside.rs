//! Images that cannot be decoded, found before training and left out of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aleator_run::SetAside;
use rayon::prelude::*;

use super::{DataSet, Split};
use crate::error::DataError;

/// Most undecodable images of a split, in percent; more means broken data.
const MOST_PERCENT: usize = 1;

/// Images that an error lists at most.
const LISTED: usize = 20;

impl DataSet {
    /// Decodes every image of all splits on all threads, and returns those that cannot be decoded,
    /// sorted by split and id. `progress` is called with the number of images done and in all, and
    /// returns whether to continue; the result of a check that was stopped means nothing.
    ///
    /// Images that were decoded for the check of another division of the same
    /// [`Sources`](crate::Sources) are not decoded again, nor counted. At no time are more images
    /// in memory than there are threads. Features and files of raw pixels have nothing to decode.
    ///
    /// ```
    /// # use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
    /// # let validation = HeldOut::Fraction { fraction: 0.1, seed: 0 };
    /// # let data = Data::of(Source::of(InputSource::Digits), validation);
    /// let set = aleator_data::DataSet::open(&data, Link::Softmax)?;
    /// let set_aside = set.check_images(&|_done, _of| true)?;
    /// let set = set.leave_out(&set_aside)?;
    /// # assert_eq!(set.train.len() + set.validation.len(), 1797);
    /// # Ok::<(), aleator_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// When more than 1 % of a split cannot be decoded; the message lists the first of them.
    pub fn check_images(
        &self,
        progress: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> Result<Vec<SetAside>, DataError> {
        let stopped = AtomicBool::new(false);
        let unchecked =
            |split: &Split| split.rows.iter().filter(|row| !split.inputs.is_checked(**row)).count();
        let total = self.splits().map(unchecked).sum();
        let done = AtomicUsize::new(0);
        let mut set_aside = vec![];
        for split in self.splits().filter(|split| split.inputs.is_encoded()) {
            let check = |example: usize| {
                let row = split.rows[example];
                if !split.inputs.is_checked(row) {
                    if stopped.load(Ordering::Relaxed) {
                        return None;
                    }
                    split.inputs.check(row);
                    let goes_on = progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                    stopped.fetch_or(!goes_on, Ordering::Relaxed);
                }
                let reason = split.inputs.check(row)?;
                let id = split.ids.name(example).into_owned();
                Some(SetAside { split: split.name, id, reason })
            };
            let mut bad: Vec<SetAside> =
                (0..split.len()).into_par_iter().filter_map(check).collect();
            bad.sort_by(|a, b| a.id.cmp(&b.id));
            if bad.len() * 100 > split.len() * MOST_PERCENT {
                return Err(too_many(split, &bad));
            }
            set_aside.extend(bad);
        }
        set_aside.sort_by(|a, b| (a.split.name(), &a.id).cmp(&(b.split.name(), &b.id)));
        Ok(set_aside)
    }

    /// The data set without these examples. The fingerprint stays that of the files.
    ///
    /// # Errors
    /// When nothing would be left of a split.
    pub fn leave_out(self, set_aside: &[SetAside]) -> Result<Self, DataError> {
        let without = |split: &Arc<Split>| -> Result<Arc<Split>, DataError> {
            let of_split = set_aside.iter().filter(|out| out.split == split.name);
            let ids: BTreeSet<&str> = of_split.map(|out| out.id.as_str()).collect();
            if ids.is_empty() {
                return Ok(Arc::clone(split));
            }
            let stays = |example: &usize| !ids.contains(split.ids.name(*example).as_ref());
            let kept: Vec<usize> = (0..split.len()).filter(stays).collect();
            if kept.is_empty() {
                let message = "has no example left: all of its images are set aside";
                return Err(DataError::invalid(format!("data.{}", split.name.name()), message));
            }
            Ok(Arc::new(split.part(&kept)))
        };
        Ok(Self {
            train: without(&self.train)?,
            validation: without(&self.validation)?,
            test: self.test.as_ref().map(without).transpose()?,
            ..self
        })
    }

    fn splits(&self) -> impl Iterator<Item = &Split> {
        [Some(&self.train), Some(&self.validation), self.test.as_ref()]
            .into_iter()
            .flatten()
            .map(Arc::as_ref)
    }
}

fn too_many(split: &Split, bad: &[SetAside]) -> DataError {
    let (count, all) = (bad.len(), split.len());
    let share = 100.0 * count as f64 / all as f64;
    let mut message = format!(
        "{count} of {all} images ({share:.1} %) cannot be decoded; up to {MOST_PERCENT} % are left \
         out, more is refused. Replace or remove them, or take them out of the manifest:"
    );
    for SetAside { id, reason, .. } in bad.iter().take(LISTED) {
        message += &format!("\n  {id}: {reason}");
    }
    if count > LISTED {
        message += &format!("\n  and {} more", count - LISTED);
    }
    DataError::invalid(format!("data.{}", split.name.name()), message)
}
