//! What is recorded during an evaluation, against sums in plain f64.

use std::fs;

use aleator_covariance::CovarianceRecorder;
use aleator_run::{CovarianceFile, Predictions};

const EXAMPLES: usize = 41;
const CLASSES: usize = 5;

/// Numbers in (−1, 1) from a linear congruence.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Of examples that begin with row `first`; more rows do not change those before.
fn predictions(rows: std::ops::Range<usize>, rank: usize) -> Predictions {
    let part = |seed: u64, width: usize| {
        numbers(seed, EXAMPLES * width)[rows.start * width..rows.end * width].to_vec()
    };
    Predictions {
        classes: CLASSES,
        rank,
        temperature: 0.5,
        log_probs: part(1, CLASSES),
        log_probs_off: None,
        mean: part(2, CLASSES),
        diag_scale: Some(part(3, CLASSES)),
        loadings: Some(part(4, CLASSES * rank)),
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    }
}

fn recorded(rank: usize, batch: usize, threads: usize) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.covariance.safetensors");
    let first = predictions(0..batch.min(EXAMPLES), rank);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut recorder =
            CovarianceRecorder::create(&path, EXAMPLES, &first, true).unwrap().unwrap();
        for start in (0..EXAMPLES).step_by(batch) {
            recorder.push(&predictions(start..EXAMPLES.min(start + batch), rank)).unwrap();
        }
        assert!(!path.exists(), "before it is complete");
        recorder.commit().unwrap();
    });
    let bytes = fs::read(&path).unwrap();
    (folder, bytes)
}

/// A rank of 300 takes three examples a product, so that batches and products do not match.
#[test]
fn neither_batches_nor_threads_change_a_byte() {
    for rank in [2, 300] {
        let (_, expected) = recorded(rank, EXAMPLES, 1);
        for (batch, threads) in [(1, 2), (4, 1), (7, 3), (1000, 2)] {
            let (_, found) = recorded(rank, batch, threads);
            assert!(found == expected, "rank {rank}, batches of {batch}, {threads} threads");
        }
    }
}

#[test]
fn the_sums_are_those_of_the_definition() {
    let rank = 3;
    let (folder, _) = recorded(rank, 6, 2);
    let path = folder.path().join("test.covariance.safetensors");
    let mut file = CovarianceFile::open(&path).unwrap();
    let all = predictions(0..EXAMPLES, rank);
    let info = file.info();
    assert_eq!((info.examples, info.classes, info.rank), (EXAMPLES, CLASSES, rank));
    assert!(info.centred && info.flips && info.ties && info.temperature == 0.5);
    let loadings = all.loadings.as_ref().unwrap();
    let v = |n: usize, class: usize, factor: usize| {
        f64::from(loadings[(n * CLASSES + class) * rank + factor])
    };
    let product = |n: usize, i: usize, j: usize| -> f64 {
        (0..rank).map(|factor| v(n, i, factor) * v(n, j, factor)).sum()
    };
    let over_examples = |of: &dyn Fn(usize) -> f64| (0..EXAMPLES).map(of).sum::<f64>();
    let close = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{found} {expected}");
    };
    let diag = |n: usize, class: usize| {
        f64::from(all.diag_scale.as_ref().unwrap()[n * CLASSES + class]).powi(2)
    };
    let row = |n: usize, class: usize| (0..CLASSES).map(|j| product(n, class, j)).sum::<f64>();
    let (moments, total) = file.moments().unwrap();
    for (class, [diagonal, squares, sums]) in moments.iter().enumerate() {
        close(*diagonal, over_examples(&|n| diag(n, class)));
        close(*squares, over_examples(&|n| product(n, class, class)));
        close(*sums, over_examples(&|n| row(n, class)));
    }
    close(total, over_examples(&|n| (0..CLASSES).map(|class| row(n, class)).sum()));
    // Products of 32-bit floats, of terms below 2, are added up in f64.
    let mean = |n: usize, factor: usize| {
        (0..CLASSES).map(|class| v(n, class, factor)).sum::<f64>() / CLASSES as f64
    };
    let pairs = file.pairs(0..CLASSES).unwrap();
    assert_eq!(pairs.len(), CLASSES * (CLASSES + 1) / 2);
    let upper = (0..CLASSES).flat_map(|i| (i..CLASSES).map(move |j| (i, j)));
    for ((i, j), found) in upper.zip(&pairs) {
        let of = |n: usize| -> f64 {
            let away = |class: usize, factor: usize| v(n, class, factor) - mean(n, factor);
            (0..rank).map(|factor| away(i, factor) * away(j, factor)).sum()
        };
        let expected = over_examples(&of) / EXAMPLES as f64;
        assert!((found - expected).abs() < 1e-6, "{i}, {j}: {found} {expected}");
        assert_eq!(file.pairs(i..i + 1).unwrap()[j - i], *found);
    }
    let ties = file.ties(3..5).unwrap().unwrap();
    for (at, n) in (3..5).enumerate() {
        let class = ties.classes[at] as usize;
        let log_probs = &all.log_probs[n * CLASSES..(n + 1) * CLASSES];
        assert!(log_probs.iter().all(|it| *it <= log_probs[class]));
        let other = (class + 1) % CLASSES;
        let found = f64::from(ties.covariance[at * CLASSES + other]);
        assert!((found - product(n, class, other)).abs() < 1e-6);
        let own = f64::from(ties.covariance[at * CLASSES + class]);
        assert!((own - product(n, class, class) - diag(n, class)).abs() < 1e-6);
    }
    let counts = (0..CLASSES).map(|class| file.flips(class).unwrap().unwrap().0).sum::<f64>();
    assert_eq!(counts, EXAMPLES as f64);
    for class in 0..CLASSES {
        let (examples, flips) = file.flips(class).unwrap().unwrap();
        assert_eq!(flips[class], 0.0, "a class does not exceed itself");
        assert!(flips.iter().all(|sum| (0.0..=examples).contains(sum)));
    }
}

#[test]
fn without_a_noise_model_there_is_nothing_to_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut plain = predictions(0..2, 2);
    (plain.diag_scale, plain.loadings, plain.rank) = (None, None, 0);
    let path = folder.path().join("x");
    assert!(CovarianceRecorder::create(&path, 2, &plain, true).unwrap().is_none());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// 12 K² bytes stay within half a GiB.
#[test]
fn classes_are_bounded() {
    assert!(CovarianceRecorder::fits(1) && CovarianceRecorder::fits(6688));
    assert!(!CovarianceRecorder::fits(6689) && !CovarianceRecorder::fits(usize::MAX));
}
