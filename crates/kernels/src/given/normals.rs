//! The draws behind given noise.

use core::ops::Range;

use rayon::prelude::*;

use super::{BLOCK, FeatureDraws, Signs};
use crate::draws::{Draws, Plan, PlaneShape, Sampling, TileAddress};
use crate::simd::{LANES, Level, Vectors};

/// Standard normals for noise of `width` numbers that has `rank` factors besides.
///
/// ```
/// use aleator_kernels::given::Normals;
/// use aleator_kernels::{Draws, NoiseKey, NoiseLaw, Sampling};
///
/// let key = NoiseKey { seed: 1, step: 0 };
/// let (draws, law) = (Draws::Antithetic, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[7], samples: 10, draws, law };
/// let normals = Normals::new(sampling, 3, 2);
/// let (mut own, mut factors) = (vec![0.0; 5 * 3], vec![0.0; 5 * 2]);
/// normals.fill(0, 0..5, &mut own, &mut factors); // five draws, each of two signs
/// assert!(own.iter().chain(&factors).all(|draw| *draw != 0.0));
/// ```
pub struct Normals<'a> {
    plan: Plan<'a>,
    level: Level,
    width: usize,
    rank: usize,
    /// All draws of an example.
    pub signs: Signs,
}

impl<'a> Normals<'a> {
    /// Of a sampling.
    pub fn new(sampling: Sampling<'a>, width: usize, rank: usize) -> Self {
        let signs = Signs::of(&sampling);
        // Draws are given once, whatever their signs.
        let draws = match sampling.draws {
            Draws::Antithetic => Draws::Independent,
            draws => draws,
        };
        let plan = Plan::new(Sampling { draws, ..sampling }, width, rank, true);
        Self { plan, level: Vectors::Detected.level(), width, rank, signs }
    }

    /// Some draws of some examples; ε_R Vᵀ is left empty.
    ///
    /// # Panics
    /// When the draws do not start with a block.
    pub fn draw(&self, rows: Range<usize>, draws: Range<usize>) -> FeatureDraws {
        let (width, rank) = (draws.len() * self.width, draws.len() * self.rank);
        let mut own = vec![0.0; rows.len() * width];
        let mut factors = vec![0.0; rows.len() * rank];
        let parts = own.par_chunks_mut(width.max(1)).zip(factors.par_chunks_mut(rank.max(1)));
        parts.zip(rows).for_each(|((own, factors), row)| {
            self.fill(row, draws.clone(), own, factors);
        });
        FeatureDraws { draws: draws.len(), own, factors, shared: vec![] }
    }

    /// Fills some draws of one example, from a multiple of [`BLOCK`] on.
    ///
    /// # Shapes
    /// - own: [n, width]
    /// - factors: [n, rank]
    ///
    /// # Panics
    /// When shapes do not match or the draws do not start with a block.
    pub fn fill(&self, row: usize, draws: Range<usize>, own: &mut [f32], factors: &mut [f32]) {
        assert!(draws.start.is_multiple_of(BLOCK), "draws must start with a block");
        assert_eq!(own.len(), draws.len() * self.width, "own must be [n, width]");
        assert_eq!(factors.len(), draws.len() * self.rank, "factors must be [n, rank]");
        let shape = |count: usize| PlaneShape::ClassLanes { count, rows: BLOCK };
        let (own_shape, factor_shape) = (shape(self.width), shape(self.rank));
        let (mut own_plane, mut factor_plane) =
            (vec![0.0; own_shape.len()], vec![0.0; factor_shape.len()]);
        for first_sample in draws.clone().step_by(BLOCK) {
            let samples = BLOCK.min(draws.end - first_sample);
            let tile = first_sample / BLOCK;
            let at = TileAddress { row, tile, first_sample, samples };
            let (own_part, factor_part) =
                ((own_shape, &mut own_plane[..]), (factor_shape, &mut factor_plane[..]));
            self.plan.fill(self.level, at, own_part, factor_part);
            let from = first_sample - draws.start;
            copy(own_shape, self.width, &own_plane, &mut own[from * self.width..], samples);
            copy(factor_shape, self.rank, &factor_plane, &mut factors[from * self.rank..], samples);
        }
    }
}

/// From a plane to rows of `width` numbers.
fn copy(shape: PlaneShape, width: usize, plane: &[f32], rows: &mut [f32], samples: usize) {
    for (sample, row) in rows.chunks_exact_mut(width.max(1)).take(samples).enumerate() {
        for (group, out) in row.chunks_mut(LANES).enumerate() {
            let at = shape.index(group * LANES, sample);
            out.copy_from_slice(&plane[at..at + out.len()]);
        }
    }
}
