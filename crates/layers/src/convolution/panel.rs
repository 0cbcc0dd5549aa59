//! Pixels as the vectors of register tiles: where they are read and where results are written.

use crate::dense::tile::{Row, VECTORS, width};
use crate::shared::{SharedSlice, load};
use pulp::{Simd, bytemuck};

/// The pixels of one register tile.
pub(super) struct Panel<S: Simd> {
    lanes: [Lanes<S>; VECTORS],
    /// The largest position that is read.
    last: usize,
    targets: [Targets; VECTORS],
}

/// The positions from which one vector is read.
#[derive(Clone)]
enum Lanes<S: Simd> {
    /// Neighbours, from this position on.
    One(usize),
    /// Neighbours with one jump: lanes of two vectors, selected by a mask.
    Two(usize, usize, S::m32s),
    Many(Vec<usize>),
}

/// The positions to which the lanes of one vector are written.
enum Targets {
    /// A whole vector of neighbours.
    Neighbours(usize),
    /// Positions at equal distances.
    Steps {
        first: usize,
        step: usize,
        count: usize,
    },
    Many(Vec<usize>),
}

impl<S: Simd> Panel<S> {
    /// Lanes beyond the last pixel repeat it, and so does a second vector beyond the last; neither
    /// is written.
    #[inline(always)]
    pub fn of_block(simd: S, positions: &[usize], places: &[usize]) -> Vec<Self> {
        let mut panels = Vec::with_capacity(positions.len().div_ceil(width::<S>()));
        for (positions, places) in positions.chunks(width::<S>()).zip(places.chunks(width::<S>())) {
            let (first, second) = positions.split_at(S::F32_LANES.min(positions.len()));
            let lanes = Lanes::new(simd, first);
            let others = if second.is_empty() { lanes.clone() } else { Lanes::new(simd, second) };
            let (first, second) = places.split_at(S::F32_LANES.min(places.len()));
            panels.push(Self {
                lanes: [lanes, others],
                last: positions.iter().copied().max().unwrap_or(0),
                targets: [first, second].map(|places| Targets::new(places, S::F32_LANES)),
            });
        }
        panels
    }

    /// The start of both vectors, for rows of whole vectors.
    pub fn neighbours(&self) -> [usize; VECTORS] {
        self.lanes.each_ref().map(|lanes| match lanes {
            Lanes::One(at) => *at,
            _ => unreachable!("rows of whole vectors have neighbours in every vector"),
        })
    }

    /// Writes one row of a tile, at `base` plus the positions.
    ///
    /// # Safety
    /// No other task may write these positions.
    #[inline(always)]
    pub unsafe fn write(&self, out: &SharedSlice<'_>, base: usize, values: Row<S>) {
        for (targets, vector) in self.targets.iter().zip(values) {
            let values: &[f32] = bytemuck::cast_slice(std::slice::from_ref(&vector));
            match targets {
                Targets::Neighbours(first) => {
                    // SAFETY: by the caller's promise.
                    let out = unsafe { out.slice_mut(base + first, S::F32_LANES) };
                    let (out, _) = S::as_mut_simd_f32s(out);
                    out[0] = vector;
                }
                Targets::Steps { first, step, count } => {
                    let len = count.saturating_sub(1) * step + usize::from(*count > 0);
                    // SAFETY: by the caller's promise; positions in between are not written.
                    let out = unsafe { out.slice_mut(base + first, len) };
                    out.iter_mut().step_by(*step).zip(values).for_each(|(to, from)| *to = *from);
                }
                Targets::Many(places) => {
                    for (place, value) in places.iter().zip(values) {
                        // SAFETY: by the caller's promise.
                        unsafe { out.slice_mut(base + place, 1)[0] = *value };
                    }
                }
            }
        }
    }
}

impl Targets {
    fn new(places: &[usize], lanes: usize) -> Self {
        let (first, count) = (places.first().copied().unwrap_or(0), places.len());
        let step = places.get(1).map_or(1, |second| second.abs_diff(first));
        let even = places.windows(2).all(|pair| pair[1] == pair[0] + step);
        match (even, step) {
            (true, 1) if count == lanes => Self::Neighbours(first),
            (true, _) => Self::Steps { first, step, count },
            _ => Self::Many(places.to_vec()),
        }
    }
}

impl<S: Simd> Lanes<S> {
    #[inline(always)]
    fn new(simd: S, positions: &[usize]) -> Self {
        let lanes = S::F32_LANES;
        let mut jumps = (1..positions.len()).filter(|at| positions[*at] != positions[at - 1] + 1);
        match (positions.len() == lanes, jumps.next(), jumps.next()) {
            (true, None, _) => Self::One(positions[0]),
            // The jump is forwards, so both vectors are between the first and the last position.
            (true, Some(jump), None) if positions[jump] > positions[jump - 1] => {
                let numbers: Vec<u32> = (0..lanes as u32).collect();
                let numbers = simd.partial_load_u32s(&numbers);
                let mask = simd.less_than_u32s(numbers, simd.splat_u32s(jump as u32));
                Self::Two(positions[0], positions[lanes - 1] + 1 - lanes, mask)
            }
            _ => {
                let last = positions[positions.len() - 1];
                let repeated = positions.iter().copied().chain(std::iter::repeat(last));
                Self::Many(repeated.take(lanes).collect())
            }
        }
    }
}

/// The input that a window sees: number k of pixel p is `source[offsets[k] + p]`.
pub(super) struct Right<'a> {
    source: &'a [f32],
    offsets: &'a [usize],
}

impl<'a> Right<'a> {
    /// Checks that all loads below are within the source.
    pub fn new<S: Simd>(source: &'a [f32], offsets: &'a [usize], panels: &[Panel<S>]) -> Self {
        let offset = offsets.iter().copied().max().unwrap_or(0);
        let place = panels.iter().map(|panel| panel.last).max().unwrap_or(0);
        assert!(offset + place < source.len(), "a window reaches outside of its images");
        Self { source, offsets }
    }

    /// The steps of a panel, from the positions of `Panel::neighbours`.
    #[inline(always)]
    pub fn vectors<S: Simd>(
        &self,
        [first, second]: [usize; VECTORS],
    ) -> impl Iterator<Item = Row<S>> + Clone {
        self.offsets.iter().map(
            #[inline(always)]
            move |offset| {
                // SAFETY: `new` has checked the positions of the last lanes.
                unsafe {
                    [
                        load::<S>(self.source, offset + first),
                        load::<S>(self.source, offset + second),
                    ]
                }
            },
        )
    }

    #[inline(always)]
    pub fn pack<S: Simd>(&self, simd: S, panel: &Panel<S>, packed: &mut [Row<S>]) {
        let source = self.source;
        for (vector, lanes) in panel.lanes.iter().enumerate() {
            let steps = packed.iter_mut().zip(self.offsets);
            match lanes {
                Lanes::One(at) => {
                    for (row, offset) in steps {
                        // SAFETY: `new` has checked the position of the last lane.
                        row[vector] = unsafe { load::<S>(source, offset + at) };
                    }
                }
                Lanes::Two(first, second, mask) => {
                    for (row, offset) in steps {
                        // SAFETY: both vectors end at or before the panel's last position.
                        let (first, second) = unsafe {
                            (load::<S>(source, offset + first), load::<S>(source, offset + second))
                        };
                        row[vector] = simd.select_f32s(*mask, first, second);
                    }
                }
                Lanes::Many(places) => {
                    for (row, offset) in steps {
                        let row: &mut [f32] = bytemuck::cast_slice_mut(&mut row[vector..=vector]);
                        for (to, at) in row.iter_mut().zip(places) {
                            *to = source[offset + at];
                        }
                    }
                }
            }
        }
    }
}
