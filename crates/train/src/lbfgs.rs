//! L-BFGS: quasi-Newton steps on the whole training split (Nocedal 1980).
//!
//! A step of training evaluates the objective and its gradient at one point. Where the objective
//! has fallen enough since the last accepted point, this one is accepted, and the next lies along a
//! new direction; otherwise the next is nearer, along the same direction. So a line search needs no
//! loop of its own, and a checkpoint can be made after every evaluation.

use aleator_model::params::Values;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::sum::CHUNK;

/// The share of the expected decrease that a point must reach (Armijo's condition).
const SUFFICIENT: f64 = 1e-4;
/// Differences below this share of the objective are rounding: losses are computed in f32.
const ROUNDING: f64 = 1e-7;
/// A pair of differences whose curvature is below this share is left out of the history, which
/// would otherwise no longer describe a convex function.
const CURVATURE: f64 = 1e-10;
/// Along a direction on which the objective does not fall even this near, it is at its minimum.
const NEAREST: f64 = 1e-6;

/// Accepted points after which the decrease is measured: a single small one may be followed by
/// larger ones where the objective is badly scaled.
const PERIOD: usize = 10;

/// Numbers of all parameters: one list for each.
pub(crate) type Vector = Vec<Values>;

/// The state of the search, apart from its vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Search {
    /// The objective at the accepted point; none before the first evaluation.
    accepted: Option<f64>,
    /// The derivative of the objective along the direction.
    slope: f64,
    /// How far along the direction the next evaluation is.
    distance: f64,
    /// Pairs of differences that were remembered so far, those that were overwritten included.
    pairs: usize,
    /// Points that were accepted so far.
    #[serde(default)]
    points: usize,
    /// The objective at the last of them whose number is a multiple of `PERIOD`.
    #[serde(default)]
    mark: f64,
    /// Whether the objective has stopped falling.
    pub converged: bool,
}

/// A search for the minimum of an objective.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lbfgs {
    /// A relative decrease below this, over `PERIOD` points, is convergence.
    tolerance: f64,
    pub search: Search,
    /// The accepted point, the gradient there and the direction from it; then the differences of
    /// points, and those of gradients, of the last accepted points.
    vectors: Vec<Vector>,
    memory: usize,
}

const POINT: usize = 0;
const GRADIENT: usize = 1;
const DIRECTION: usize = 2;
const MOVES: usize = 3;

impl Lbfgs {
    /// Remembers `memory` pairs of differences.
    pub fn new(memory: usize, tolerance: f64) -> Self {
        let vectors = vec![vec![]; MOVES + 2 * memory];
        Self { tolerance, search: Search::default(), vectors, memory }
    }

    /// Adds a parameter, at its first value. One that does not move has no numbers here.
    pub fn add(&mut self, start: Values) {
        let zeros = start.zeros_like();
        for (index, vector) in self.vectors.iter_mut().enumerate() {
            vector.push(if index == POINT { start.clone() } else { zeros.clone() });
        }
    }

    /// What is kept for a parameter.
    pub fn kept(&self, parameter: usize) -> impl Iterator<Item = &Values> {
        self.vectors.iter().map(move |vector| &vector[parameter])
    }

    /// [`Lbfgs::kept`], to be replaced by what was saved.
    pub fn kept_mut(&mut self, parameter: usize) -> impl Iterator<Item = &mut Values> {
        self.vectors.iter_mut().map(move |vector| &mut vector[parameter])
    }

    /// The numbers of a parameter at the point of the next evaluation; once converged, at the
    /// accepted point.
    pub fn next(&self, parameter: usize, out: &mut [f32]) {
        let point = self.vectors[POINT][parameter].read();
        let direction = self.vectors[DIRECTION][parameter].read();
        let distance = self.search.distance as f32;
        out.par_chunks_mut(CHUNK)
            .zip(point.par_chunks(CHUNK).zip(direction.par_chunks(CHUNK)))
            .for_each(|(out, (point, direction))| {
                for ((out, point), direction) in out.iter_mut().zip(point).zip(direction) {
                    *out = point + distance * direction;
                }
            });
    }

    /// The point of the next evaluation.
    fn next_point(&self) -> Vector {
        let mut next = self.vectors[POINT].clone();
        for (parameter, values) in next.iter_mut().enumerate() {
            values.change(|out| self.next(parameter, out));
        }
        next
    }

    /// Takes the loss and its gradient at the point of this evaluation, and chooses the next. Each
    /// parameter has its own λ of λ/2 ‖w‖².
    pub fn evaluated(&mut self, loss: f64, gradient: &[Values], decays: &[f64]) {
        let here = self.next_point();
        let decay: f64 = here.iter().zip(decays).map(|(w, l2)| 0.5 * l2 * dot_one(w, w)).sum();
        let objective = loss + decay;
        let search = &mut self.search;
        if let Some(accepted) = search.accepted {
            let expected = search.distance * search.slope;
            let rounding = ROUNDING * accepted.abs();
            if objective > accepted + SUFFICIENT * expected + rounding {
                // The minimum of the parabola through both values and the slope.
                let excess = objective - accepted - expected;
                let share = (-0.5 * expected / excess).clamp(0.1, 0.5);
                search.distance *= share;
                search.converged = search.distance < NEAREST;
                if search.converged {
                    search.distance = 0.0;
                }
                return;
            }
        }
        if search.points.is_multiple_of(PERIOD) {
            let decrease = search.mark - objective;
            search.converged = search.points > 0 && decrease <= self.tolerance * objective.abs();
            search.mark = objective;
        }
        search.points += 1;
        search.accepted = Some(objective);
        let mut gradient_here = gradient.to_vec();
        for ((gradient, point), l2) in gradient_here.iter_mut().zip(&here).zip(decays) {
            add_one(gradient, *l2, point);
        }
        self.accept(here, gradient_here);
    }

    fn accept(&mut self, point: Vector, gradient: Vector) {
        let mut moved = point.clone();
        add(&mut moved, -1.0, &self.vectors[POINT]);
        let mut change = gradient.clone();
        add(&mut change, -1.0, &self.vectors[GRADIENT]);
        let curvature = dot(&moved, &change);
        if self.search.distance > 0.0 && curvature > CURVATURE * dot(&change, &change) {
            let slot = MOVES + self.search.pairs % self.memory;
            self.vectors[slot] = moved;
            self.vectors[slot + self.memory] = change;
            self.search.pairs += 1;
        }
        self.vectors[POINT] = point;
        self.vectors[GRADIENT] = gradient;
        self.search.distance = 0.0;
        if !self.search.converged {
            self.turn();
        }
    }

    /// Chooses the direction from the accepted point: minus the gradient times the approximate
    /// inverse of the Hessian that the remembered pairs imply.
    fn turn(&mut self) {
        let gradient = &self.vectors[GRADIENT];
        let pairs = self.search.pairs;
        let slots: Vec<usize> = (pairs.saturating_sub(self.memory)..pairs)
            .map(|pair| MOVES + pair % self.memory)
            .collect();
        let pair = |slot: usize| (&self.vectors[slot], &self.vectors[slot + self.memory]);
        let mut direction = gradient.clone();
        let mut shares = vec![];
        for slot in slots.iter().rev() {
            let (moved, change) = pair(*slot);
            let share = dot(moved, &direction) / dot(moved, change);
            add(&mut direction, -share, change);
            shares.push(share);
        }
        let scale = match slots.last() {
            Some(last) => {
                let (moved, change) = pair(*last);
                dot(moved, change) / dot(change, change)
            }
            // Nothing is known of the curvature: a first move of at most length one.
            None => 1.0 / dot(gradient, gradient).sqrt().max(1.0),
        };
        scale_by(&mut direction, scale);
        for (slot, share) in slots.iter().zip(shares.iter().rev()) {
            let (moved, change) = pair(*slot);
            let correction = share - dot(change, &direction) / dot(moved, change);
            add(&mut direction, correction, moved);
        }
        scale_by(&mut direction, -1.0);
        let slope = dot(&direction, gradient);
        if slope < 0.0 {
            self.vectors[DIRECTION] = direction;
            self.search = Search { slope, distance: 1.0, ..self.search };
        } else if pairs > 0 {
            // Rounding has spoilt the history.
            self.search.pairs = 0;
            self.turn();
        } else {
            self.search.converged = true;
        }
    }
}

/// The inner product, summed in f64 in a fixed order.
fn dot(left: &[Values], right: &[Values]) -> f64 {
    left.iter().zip(right).map(|(left, right)| dot_one(left, right)).sum()
}

fn dot_one(left: &Values, right: &Values) -> f64 {
    let (left, right) = (left.read(), right.read());
    let parts: Vec<f64> = left
        .par_chunks(CHUNK)
        .zip(right.par_chunks(CHUNK))
        .map(|(left, right)| left.iter().zip(right).map(|(l, r)| *l as f64 * *r as f64).sum())
        .collect();
    parts.into_iter().sum()
}

/// `to += factor · other`.
fn add(to: &mut [Values], factor: f64, other: &[Values]) {
    to.iter_mut().zip(other).for_each(|(to, other)| add_one(to, factor, other));
}

fn add_one(to: &mut Values, factor: f64, other: &Values) {
    let (other, factor) = (other.read(), factor as f32);
    to.change(|to| {
        to.par_chunks_mut(CHUNK).zip(other.par_chunks(CHUNK)).for_each(|(to, other)| {
            to.iter_mut().zip(other).for_each(|(to, other)| *to += factor * other);
        });
    });
}

fn scale_by(vector: &mut [Values], factor: f64) {
    let factor = factor as f32;
    for values in vector {
        values.change(|values| values.par_iter_mut().for_each(|value| *value *= factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minimises from a start; the evaluations that it took, and where it ended.
    fn minimise(
        start: &[f32],
        decay: f64,
        objective: impl Fn(&[f32]) -> (f64, Vec<f32>),
    ) -> (usize, Vec<f32>) {
        let mut lbfgs = Lbfgs::new(5, 1e-9);
        lbfgs.add(Values::from(start.to_vec()));
        let mut point = start.to_vec();
        for evaluation in 1..=500 {
            let (loss, gradient) = objective(&point);
            lbfgs.evaluated(loss, &[Values::from(gradient)], &[decay]);
            lbfgs.next(0, &mut point);
            if lbfgs.search.converged {
                return (evaluation, point);
            }
        }
        panic!("it has not converged at {point:?}");
    }

    #[test]
    fn a_badly_scaled_parabola_is_minimised_exactly() {
        // Σ a_i/2 (w_i − c_i)² + λ/2 ‖w‖² has its minimum at a c / (a + λ).
        let (scales, centres, decay) = ([1.0f32, 100.0, 0.01], [1.0f32, -2.0, 3.0], 0.5);
        let (evaluations, found) = minimise(&[0.0; 3], decay, |w| {
            let terms = w.iter().zip(&scales).zip(&centres);
            let loss = terms.clone().map(|((w, a), c)| 0.5 * (a * (w - c) * (w - c)) as f64).sum();
            (loss, terms.map(|((w, a), c)| a * (w - c)).collect())
        });
        for ((found, a), c) in found.iter().zip(&scales).zip(&centres) {
            let expected = a * c / (a + decay as f32);
            assert!(
                (found - expected).abs() < 2e-3 * expected.abs().max(0.1),
                "{found} {expected}"
            );
        }
        assert!(evaluations < 40, "{evaluations}");
    }

    #[test]
    fn the_bend_of_rosenbrock_is_followed_to_its_end() {
        let (evaluations, found) = minimise(&[-1.2, 1.0], 0.0, |w| {
            let (x, y) = (w[0] as f64, w[1] as f64);
            let (bend, rest) = (y - x * x, 1.0 - x);
            let gradient = [-400.0 * x * bend - 2.0 * rest, 200.0 * bend];
            // One more than the usual form, so that a relative tolerance has a meaning at the end.
            (1.0 + 100.0 * bend * bend + rest * rest, gradient.map(|g| g as f32).to_vec())
        });
        assert!(found.iter().all(|w| (w - 1.0).abs() < 1e-2), "{found:?} in {evaluations}");
    }

    #[test]
    fn a_step_that_is_too_long_is_taken_back() {
        // The first move has length one, far beyond the minimum of a steep bowl.
        let (_, found) = minimise(&[0.5], 0.0, |w| {
            let x = w[0] as f64;
            (1.0 + 1e4 * x * x, vec![(2e4 * x) as f32])
        });
        assert!(found[0].abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn at_a_minimum_nothing_moves() {
        let (evaluations, found) = minimise(&[2.0, -1.0], 0.0, |_| (3.0, vec![0.0, 0.0]));
        assert_eq!((evaluations, found), (1, vec![2.0, -1.0]));
    }
}
