//! How the noise of a tile of samples is drawn, and where each draw is in memory.

use core::ops::Range;

pub use aleator_vocabulary::Draws;
use aleator_vocabulary::NoiseLaw;

use crate::key::{NoiseKey, Stream};
use crate::laws::{self, FillLaw};
use crate::normal::{BlockShape, FillNormals};
use crate::simd::{LANES, Level};
use crate::sobol::{self, Sobol};

/// Which noise to draw: the key, one id for each example, the number and kind of samples.
///
/// ```
/// use aleator_kernels::{Draws, NoiseKey, NoiseLaw, Sampling};
///
/// let ids = [12, 7]; // stable ids of the two examples of the batch
/// let sampling = Sampling {
///     key: NoiseKey { seed: 0, step: 0 },
///     ids: &ids,
///     samples: 1000,
///     draws: Draws::Independent,
///     law: NoiseLaw::Normal,
/// };
/// assert_eq!(sampling.ids.len(), 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sampling<'a> {
    /// Names the noise.
    pub key: NoiseKey,
    /// Stable example ids, `[B]`.
    pub ids: &'a [u64],
    /// S, the number of Monte Carlo samples.
    pub samples: usize,
    /// How they are drawn.
    pub draws: Draws,
    /// The distribution of ε_K; ε_R is always Normal.
    pub law: NoiseLaw,
}

/// The draws of one call: [`Sampling`] with the Sobol' sequence that it may need.
pub(crate) struct Plan<'a> {
    pub sampling: Sampling<'a>,
    classes: usize,
    /// Whether any utility depends on the draws.
    pub is_noisy: bool,
    sobol: Option<Sobol>,
    /// Whether the sequence also covers the classes, after the factors.
    sobol_classes: bool,
}

impl<'a> Plan<'a> {
    pub fn new(sampling: Sampling<'a>, classes: usize, rank: usize, is_noisy: bool) -> Self {
        let sobol_classes = rank + classes <= sobol::MAX_DIMENSIONS;
        let dimensions = if sobol_classes { rank + classes } else { rank };
        let fits = dimensions <= sobol::MAX_DIMENSIONS;
        let sobol = (sampling.draws == Draws::Sobol && fits).then(|| Sobol::new(dimensions));
        Self { sampling, classes, is_noisy, sobol, sobol_classes }
    }
}

/// The memory layout of draws, indexed by item (class or factor) and sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaneShape {
    /// [⌈count/16⌉, rows, 16]: the lanes of a vector are 16 classes of one sample.
    ClassLanes { count: usize, rows: usize },
    /// [count, stride]: the lanes are 16 samples of one class.
    SampleLanes { count: usize, stride: usize },
}

impl PlaneShape {
    pub fn len(self) -> usize {
        match self {
            Self::ClassLanes { count, rows } => count.div_ceil(LANES) * rows * LANES,
            Self::SampleLanes { count, stride } => count.next_multiple_of(2) * stride,
        }
    }

    pub fn index(self, item: usize, sample: usize) -> usize {
        match self {
            Self::ClassLanes { rows, .. } => (item / LANES * rows + sample) * LANES + item % LANES,
            Self::SampleLanes { stride, .. } => item * stride + sample,
        }
    }

    fn count(self) -> usize {
        match self {
            Self::ClassLanes { count, .. } | Self::SampleLanes { count, .. } => count,
        }
    }

    fn block(self, samples: usize) -> BlockShape {
        match self {
            Self::ClassLanes { count, rows } => BlockShape {
                outer: samples.div_ceil(2),
                outer_stride: 2 * LANES,
                inner: count.div_ceil(LANES),
                inner_stride: rows * LANES,
                pair_stride: LANES,
            },
            Self::SampleLanes { count, stride } => BlockShape {
                outer: samples.div_ceil(LANES),
                outer_stride: LANES,
                inner: count.div_ceil(2),
                inner_stride: 2 * stride,
                pair_stride: stride,
            },
        }
    }

    /// Makes sample `half + i` the reflection of sample `i`.
    fn mirror(self, half: usize, samples: usize, plane: &mut [f32], reflect: impl Fn(f32) -> f32) {
        let (run, lanes) = match self {
            Self::ClassLanes { rows, .. } => (rows * LANES, LANES),
            Self::SampleLanes { stride, .. } => (stride, 1),
        };
        for row in plane.chunks_exact_mut(run) {
            let (first, second) = row.split_at_mut(half * lanes);
            for (mirrored, drawn) in second.iter_mut().zip(&first[..(samples - half) * lanes]) {
                *mirrored = reflect(*drawn);
            }
        }
    }
}

/// One tile of samples of one example.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileAddress {
    /// The example's row in the batch.
    pub row: usize,
    /// Index of the tile within the example.
    pub tile: usize,
    /// Number of the tile's first sample.
    pub first_sample: usize,
    /// Samples in the tile.
    pub samples: usize,
}

impl Plan<'_> {
    /// Fills ε_K and ε_R of one tile; without noise they stay as they are.
    pub fn fill(
        &self,
        level: Level,
        at: TileAddress,
        (diag_shape, diag_draws): (PlaneShape, &mut [f32]),
        (factor_shape, factor_draws): (PlaneShape, &mut [f32]),
    ) {
        if !self.is_noisy {
            return;
        }
        let rank = factor_shape.count();
        match &self.sobol {
            Some(sobol) => {
                self.fill_sobol(sobol, NoiseLaw::Normal, at, 0..rank, factor_shape, factor_draws);
            }
            None => self.fill_random(level, at, Stream::Factor, factor_shape, factor_draws),
        }
        match &self.sobol {
            Some(sobol) if self.sobol_classes => {
                let dimensions = rank..rank + self.classes;
                let law = self.sampling.law;
                self.fill_sobol(sobol, law, at, dimensions, diag_shape, diag_draws);
            }
            _ => self.fill_random(level, at, Stream::Diagonal, diag_shape, diag_draws),
        }
    }

    fn fill_random(
        &self,
        level: Level,
        at: TileAddress,
        stream: Stream,
        shape: PlaneShape,
        plane: &mut [f32],
    ) {
        if shape.count() == 0 {
            return;
        }
        let Sampling { key, ids, draws, .. } = self.sampling;
        let law = if stream == Stream::Diagonal { self.sampling.law } else { NoiseLaw::Normal };
        let seed = key.block_seed(ids[at.row], stream, at.tile as u64);
        // If Sobol' points cover only the factors, the noise of the classes is independent.
        let antithetic = draws == Draws::Antithetic;
        let half = if antithetic { at.samples.div_ceil(2) } else { at.samples };
        let block = shape.block(half);
        match law {
            NoiseLaw::Normal => level.run(FillNormals { seed, shape: block, out: plane }),
            _ => level.run(FillLaw { law, seed, shape: block, out: plane }),
        }
        match law {
            _ if !antithetic => {}
            NoiseLaw::Gumbel => shape.mirror(half, at.samples, plane, laws::reflected_gumbel),
            _ => shape.mirror(half, at.samples, plane, |drawn| -drawn),
        }
    }

    fn fill_sobol(
        &self,
        sobol: &Sobol,
        law: NoiseLaw,
        at: TileAddress,
        dimensions: Range<usize>,
        shape: PlaneShape,
        plane: &mut [f32],
    ) {
        let Sampling { key, ids, .. } = self.sampling;
        let scramble = key.block_seed(ids[at.row], Stream::Scramble, 0);
        let count = dimensions.len();
        let mut points = vec![0.0; at.samples * count];
        let first = at.first_sample as u32;
        match law {
            NoiseLaw::Normal => {
                sobol.standard_normals(scramble, first, dimensions, count, &mut points);
            }
            _ => {
                let quantile = |cell| laws::quantile(law, cell);
                sobol.mapped(scramble, first, dimensions, count, quantile, &mut points);
            }
        }
        for (sample, point) in points.chunks_exact(count.max(1)).enumerate() {
            for (item, value) in point.iter().enumerate() {
                plane[shape.index(item, sample)] = *value;
            }
        }
    }
}
