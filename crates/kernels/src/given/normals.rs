//! The draws behind given noise.

use core::ops::Range;

use rayon::prelude::*;

use super::{BLOCK, Signs};
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

    /// Fills some draws of some examples, from a multiple of [`BLOCK`] on.
    ///
    /// # Shapes
    /// - own: [b, n, width]
    /// - factors: [b, n, rank]
    ///
    /// # Panics
    /// When shapes do not match or the draws do not start with a block.
    pub fn draw(
        &self,
        rows: Range<usize>,
        draws: Range<usize>,
        own: &mut [f32],
        factors: &mut [f32],
    ) {
        let (width, rank) = (draws.len() * self.width, draws.len() * self.rank);
        assert_eq!(own.len(), rows.len() * width, "own must be [b, n, width]");
        assert_eq!(factors.len(), rows.len() * rank, "factors must be [b, n, rank]");
        let parts = own.par_chunks_mut(width.max(1)).zip(factors.par_chunks_mut(rank.max(1)));
        parts.zip(rows).for_each_init(
            || Planes::new(self, draws.len()),
            |planes, ((own, factors), row)| self.fill_by(planes, row, draws.clone(), own, factors),
        );
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
        self.fill_by(&mut Planes::new(self, draws.len()), row, draws, own, factors);
    }

    fn fill_by(
        &self,
        planes: &mut Planes,
        row: usize,
        draws: Range<usize>,
        own: &mut [f32],
        factors: &mut [f32],
    ) {
        assert!(draws.start.is_multiple_of(BLOCK), "draws must start with a block");
        assert_eq!(own.len(), draws.len() * self.width, "own must be [n, width]");
        assert_eq!(factors.len(), draws.len() * self.rank, "factors must be [n, rank]");
        let [(own_shape, own_plane), (factor_shape, factor_plane)] = &mut planes.0;
        for first_sample in draws.clone().step_by(BLOCK) {
            let samples = BLOCK.min(draws.end - first_sample);
            let tile = first_sample / BLOCK;
            let at = TileAddress { row, tile, first_sample, samples };
            let (own_part, factor_part) =
                ((*own_shape, &mut own_plane[..]), (*factor_shape, &mut factor_plane[..]));
            self.plan.fill(self.level, at, own_part, factor_part);
            let from = first_sample - draws.start;
            copy(*own_shape, self.width, own_plane, &mut own[from * self.width..], samples);
            copy(*factor_shape, self.rank, factor_plane, &mut factors[from * self.rank..], samples);
        }
    }
}

/// Where a block of draws is filled, of the noise itself and of the factors.
struct Planes([(PlaneShape, Vec<f32>); 2]);

impl Planes {
    fn new(normals: &Normals<'_>, draws: usize) -> Self {
        // Normals come in pairs.
        let rows = BLOCK.min(draws.next_multiple_of(2));
        Self([normals.width, normals.rank].map(|count| {
            let shape = PlaneShape::ClassLanes { count, rows };
            (shape, vec![0.0; shape.len()])
        }))
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
