//! Nearest neighbours against plain loops in f64.

use aleator_layers::neighbours::{Neighbours, exact, nearest, projected};

use crate::support::Random;

/// All distances in f64, sorted.
fn reference(points: &[f32], width: usize, count: usize) -> Neighbours {
    let rows: Vec<&[f32]> = points.chunks_exact(width).collect();
    let (mut indices, mut distances) = (vec![], vec![]);
    let count = count.min(rows.len() - 1);
    for (at, own) in rows.iter().enumerate() {
        let distance = |other: &[f32]| {
            let squares =
                own.iter().zip(other).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let others = (0..rows.len()).filter(|other| *other != at);
        let mut all: Vec<(f64, u32)> =
            others.map(|other| (distance(rows[other]), other as u32)).collect();
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        indices.extend(all[..count].iter().map(|(_, index)| *index));
        distances.extend(all[..count].iter().map(|(distance, _)| *distance));
    }
    Neighbours { count, indices, distances, compared: rows.len() }
}

fn assert_same(found: &Neighbours, expected: &Neighbours) {
    assert_eq!(found.count, expected.count);
    assert_eq!(found.compared, expected.compared);
    for (found, expected) in found.distances.iter().zip(&expected.distances) {
        // The order of summation of f64 differs.
        assert!((found - expected).abs() <= 1e-12 * (1.0 + expected), "{found} for {expected}");
    }
    assert_eq!(found.indices, expected.indices);
}

/// Points around a few centres, with little variation in most dimensions.
fn clustered(random: &mut Random, total: usize, width: usize) -> Vec<f32> {
    let centres = random.vector(8 * width, -3.0, 3.0);
    let spread: Vec<f32> = (0..width).map(|at| 0.97f32.powi(at as i32)).collect();
    let point = |_| {
        let centre = random.within(0..8) * width;
        let noise = random.vector(width, -1.0, 1.0);
        let values = noise.into_iter().zip(&spread).zip(&centres[centre..]);
        values.map(|((noise, spread), centre)| (centre + noise) * spread).collect::<Vec<f32>>()
    };
    (0..total).flat_map(point).collect()
}

#[test]
fn neighbours_are_those_of_plain_loops_at_any_size() {
    let mut random = Random(1);
    for (total, width, count) in
        [(1, 3, 5), (2, 1, 5), (7, 2, 3), (97, 13, 10), (700, 70, 10), (1100, 5, 20)]
    {
        let points = clustered(&mut random, total, width);
        let expected = reference(&points, width, count);
        assert_same(&nearest(&points, width, count), &expected);
        assert_same(&exact(&points, width, count), &expected);
    }
}

#[test]
fn candidates_in_fewer_dimensions_hold_nearly_all_neighbours() {
    let points = clustered(&mut Random(2), 3000, 200);
    let (found, expected) = (projected(&points, 200, 10), reference(&points, 200, 10));
    let pairs = found.indices.chunks(10).zip(expected.indices.chunks(10));
    let shared: usize =
        pairs.map(|(found, own)| found.iter().filter(|index| own.contains(index)).count()).sum();
    assert!(shared as f64 > 0.97 * expected.indices.len() as f64, "{shared}");
    // No distance is below that of the true neighbour.
    let both = found.distances.iter().zip(&expected.distances);
    assert!(both.clone().all(|(found, own)| *found >= own * (1.0 - 1e-12)));
}

#[test]
fn ranking_candidates_roughly_at_first_loses_no_neighbour() {
    // Fewer points than candidates, so that all are ranked; the width fills no vector.
    let points = clustered(&mut Random(5), 125, 203);
    assert_same(&projected(&points, 203, 10), &reference(&points, 203, 10));
}

#[test]
fn equal_and_almost_equal_points_are_found_far_from_the_origin_too() {
    let (total, width) = (2000, 150);
    let mut points = clustered(&mut Random(3), total, width);
    points.iter_mut().for_each(|value| *value += 1000.0);
    let (copies, rest) = points.split_at_mut(40 * width);
    copies.copy_from_slice(&rest[..40 * width]);
    // The first twenty differ from their originals in one coordinate.
    copies.chunks_exact_mut(width).take(20).for_each(|copy| copy[7] += 0.001);
    for found in [exact(&points, width, 3), projected(&points, width, 3)] {
        for at in 0..40 {
            assert_eq!(found.indices[at * 3], at as u32 + 40);
            let distance = found.distances[at * 3];
            assert!(if at < 20 { distance > 0.0 && distance < 0.002 } else { distance == 0.0 });
        }
    }
}

#[test]
fn points_that_are_all_equal_have_the_first_as_neighbours() {
    let found = projected(&[2.5; 300 * 80], 80, 4);
    assert!(found.distances.iter().all(|distance| *distance == 0.0));
    assert_eq!(found.indices[..8], [1, 2, 3, 4, 0, 2, 3, 4]);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let points = clustered(&mut Random(4), 1000, 90);
    let in_pool = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (exact(&points, 90, 10), projected(&points, 90, 10)))
    };
    assert_eq!(in_pool(1), in_pool(3));
}
