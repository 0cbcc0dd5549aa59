//! How the noise of two classes goes together, averaged over examples.

use aleator_run::{Field, Link, PredictionsFile, RunError};

use crate::page::blocks;

/// The correlation of the mean covariance diag(d²) + V Vᵀ, `[K, K]`; under softmax of C Σ C with
/// C = I − 11ᵀ/K, since adding a constant to all utilities changes nothing. `None` without a
/// noise model.
pub(crate) fn noise_correlation(
    file: &mut PredictionsFile,
    link: Link,
) -> Result<Option<Vec<f64>>, RunError> {
    if !file.has(Field::DiagScale) || file.examples() == 0 {
        return Ok(None);
    }
    let (classes, rank) = (file.classes(), file.rank());
    let mut sum = vec![0.0; classes * classes];
    for block in blocks(file.examples(), classes * rank.max(1)) {
        let rows = file.rows(block)?;
        for (example, diag) in
            rows.diag_scale.iter().flat_map(|all| all.chunks_exact(classes)).enumerate()
        {
            let loading = |class: usize, factor: usize| {
                let at = example * classes + class;
                match (&rows.loadings, &rows.loading_scale, &rows.shared_loadings) {
                    (Some(all), _, _) => all[at * rank + factor] as f64,
                    (None, Some(scale), Some(shared)) => {
                        scale[at] as f64 * shared[class * rank + factor] as f64
                    }
                    _ => 0.0,
                }
            };
            let loadings: Vec<f64> =
                (0..classes * rank).map(|at| loading(at / rank, at % rank)).collect();
            for i in 0..classes {
                sum[i * classes + i] += (diag[i] as f64).powi(2);
                for j in 0..classes {
                    let both = loadings[i * rank..(i + 1) * rank]
                        .iter()
                        .zip(&loadings[j * rank..(j + 1) * rank]);
                    sum[i * classes + j] += both.map(|(a, b)| a * b).sum::<f64>();
                }
            }
        }
    }
    if link == Link::Softmax {
        center(&mut sum, classes);
    }
    let scale: Vec<f64> = (0..classes).map(|class| sum[class * classes + class].sqrt()).collect();
    let both = |at: usize| scale[at / classes] * scale[at % classes];
    let correlation = |(at, value): (usize, &f64)| match both(at) {
        0.0 => 0.0,
        both => value / both,
    };
    Ok(Some(sum.iter().enumerate().map(correlation).collect()))
}

fn center(matrix: &mut [f64], classes: usize) {
    let count = classes as f64;
    let means: Vec<f64> =
        matrix.chunks_exact(classes).map(|row| row.iter().sum::<f64>() / count).collect();
    let all = means.iter().sum::<f64>() / count;
    for (at, value) in matrix.iter_mut().enumerate() {
        *value += all - means[at / classes] - means[at % classes];
    }
}
