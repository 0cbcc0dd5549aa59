//! An order of classes in which similar classes are neighbours.

use std::ops::Range;

/// An order and its groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The classes in their order.
    pub classes: Vec<usize>,
    /// Ranges of that order that belong together; they cover it.
    pub bands: Vec<Range<usize>>,
}

/// Two groups that were joined; numbers below K are classes, others earlier joins.
struct Join {
    parts: [usize; 2],
    size: usize,
}

/// Hierarchical clustering with average linkage; at every join the two groups are oriented so that
/// the classes that meet are as close as possible.
///
/// `distances` are `[K, K]` and symmetric. Ties go to the class with the lower index.
///
/// ```
/// use aleator_report::cluster::order;
///
/// let places = [0.0_f64, 9.0, 1.0, 10.0];
/// let distance = |i: usize, j: usize| (places[i] - places[j]).abs();
/// let distances: Vec<f64> = (0..16).map(|at| distance(at / 4, at % 4)).collect();
/// assert_eq!(order(&distances, 4).classes, [0, 2, 1, 3]);
/// ```
///
/// # Panics
/// When there are not K² distances.
pub fn order(distances: &[f64], classes: usize) -> Order {
    assert_eq!(distances.len(), classes * classes, "distances must be [K, K]");
    let joins = joined(distances.to_vec(), classes);
    let mut lists: Vec<Vec<usize>> = (0..classes).map(|class| vec![class]).collect();
    for join in &joins {
        let first = std::mem::take(&mut lists[join.parts[0]]);
        let second = std::mem::take(&mut lists[join.parts[1]]);
        lists.push(turned(first, second, |i, j| distances[i * classes + j]));
    }
    let classes_in_order = lists.pop().unwrap_or_default();
    let bands = bands(&joins, &classes_in_order, classes);
    Order { classes: classes_in_order, bands }
}

/// The joins of the nearest-neighbour chain, which takes K² steps and gives the same tree as
/// repeatedly joining the nearest pair.
fn joined(mut distances: Vec<f64>, classes: usize) -> Vec<Join> {
    let mut active: Vec<bool> = vec![true; classes];
    // The group that a row currently holds, and its number of classes.
    let mut group: Vec<(usize, usize)> = (0..classes).map(|class| (class, 1)).collect();
    let mut joins: Vec<Join> = vec![];
    let mut chain: Vec<usize> = vec![];
    while joins.len() + 1 < classes {
        if chain.is_empty() {
            chain.extend(active.iter().position(|active| *active));
        }
        let Some(&last) = chain.last() else { break };
        let before = chain.len().checked_sub(2).map(|at| chain[at]);
        let row = &distances[last * classes..(last + 1) * classes];
        // The previous element wins a tie; otherwise the chain could go in circles.
        let mut nearest = before;
        for other in (0..classes).filter(|other| active[*other] && *other != last) {
            if nearest.is_none_or(|nearest| row[other] < row[nearest]) {
                nearest = Some(other);
            }
        }
        let Some(nearest) = nearest else { break };
        if before != Some(nearest) {
            chain.push(nearest);
            continue;
        }
        chain.truncate(chain.len() - 2);
        let (kept, gone) = (last.min(nearest), last.max(nearest));
        average(&mut distances, classes, (kept, group[kept].1), (gone, group[gone].1));
        active[gone] = false;
        let size = group[kept].1 + group[gone].1;
        joins.push(Join { parts: [group[kept].0, group[gone].0], size });
        group[kept] = (classes + joins.len() - 1, size);
    }
    joins
}

/// Distances from the joined group: means over its classes.
fn average(distances: &mut [f64], classes: usize, kept: (usize, usize), gone: (usize, usize)) {
    let total = (kept.1 + gone.1) as f64;
    let (share, other_share) = (kept.1 as f64 / total, gone.1 as f64 / total);
    for other in 0..classes {
        let mean = share * distances[kept.0 * classes + other]
            + other_share * distances[gone.0 * classes + other];
        distances[kept.0 * classes + other] = mean;
        distances[other * classes + kept.0] = mean;
    }
}

/// Joins two lists, each possibly reversed.
fn turned(
    mut first: Vec<usize>,
    mut second: Vec<usize>,
    distance: impl Fn(usize, usize) -> f64,
) -> Vec<usize> {
    let ends = |list: &[usize]| (list[0], list[list.len() - 1]);
    let ((a, b), (c, d)) = (ends(&first), ends(&second));
    let choices =
        [(b, c, false, false), (b, d, false, true), (a, c, true, false), (a, d, true, true)];
    let best = choices.into_iter().min_by(|x, y| distance(x.0, x.1).total_cmp(&distance(y.0, y.1)));
    if best.is_some_and(|(.., turn_first, _)| turn_first) {
        first.reverse();
    }
    if best.is_some_and(|(.., turn_second)| turn_second) {
        second.reverse();
    }
    first.append(&mut second);
    first
}

/// The wanted number of groups.
const BANDS: usize = 12;

/// Groups below this share of the classes are too small to be named.
const SMALLEST: f64 = 0.02;

/// Cuts the tree at its largest groups until enough groups are not small.
fn bands(joins: &[Join], order: &[usize], classes: usize) -> Vec<Range<usize>> {
    let size = |node: usize| if node < classes { 1 } else { joins[node - classes].size };
    let mut nodes: Vec<usize> = match joins.len() {
        0 => (0..classes).collect(),
        count => vec![classes + count - 1],
    };
    let smallest = (SMALLEST * classes as f64).ceil() as usize;
    while nodes.iter().filter(|node| size(**node) >= smallest).count() < BANDS {
        let largest = (0..nodes.len()).max_by_key(|at| (size(nodes[*at]), usize::MAX - at));
        let Some(at) = largest.filter(|at| size(nodes[*at]) > smallest) else { break };
        let parts = joins[nodes[at] - classes].parts;
        nodes.splice(at..=at, parts);
    }
    let mut band = vec![None; classes + joins.len()];
    nodes.into_iter().for_each(|node| band[node] = Some(node));
    for (at, join) in joins.iter().enumerate().rev() {
        join.parts.iter().for_each(|part| band[*part] = band[*part].or(band[classes + at]));
    }
    let mut bands: Vec<Range<usize>> = vec![];
    let mut end = 0;
    for group in order.chunk_by(|a, b| band[*a] == band[*b]) {
        let start = end;
        end += group.len();
        match bands.last_mut() {
            // Small groups are joined to the previous one.
            Some(last) if group.len() < smallest || last.len() < smallest => last.end = end,
            _ => bands.push(start..end),
        }
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three groups, mixed up.
    fn distances(classes: usize) -> Vec<f64> {
        let place = |class: usize| (class % 3) as f64 * 100.0 + (class / 3) as f64;
        let all = (0..classes * classes).map(|at| (at / classes, at % classes));
        all.map(|(i, j)| (place(i) - place(j)).abs()).collect()
    }

    #[test]
    fn those_that_are_alike_stand_together_in_their_order() {
        let order = order(&distances(12), 12);
        let places: Vec<usize> = order.classes.iter().map(|class| class % 3).collect();
        let changes = places.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 2, "{:?}", order.classes);
        let jumps = order.classes.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 3).count();
        assert_eq!(jumps, 9, "{:?}", order.classes);
    }

    #[test]
    fn any_number_of_classes_is_ordered_once_each() {
        for classes in [0, 1, 2, 3, 50] {
            for same in [true, false] {
                let distances =
                    if same { vec![1.0; classes * classes] } else { distances(classes) };
                let order = order(&distances, classes);
                let mut sorted = order.classes.clone();
                sorted.sort();
                assert_eq!(sorted, (0..classes).collect::<Vec<_>>());
                let covered: usize = order.bands.iter().map(|band| band.len()).sum();
                assert_eq!(covered, classes);
            }
        }
    }
}
