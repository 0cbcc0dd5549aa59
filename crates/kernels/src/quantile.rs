//! The quantile function `Φ⁻¹` of the standard normal, at the cells of a 32-bit integer.
//!
//! Only integer operations and IEEE `+ − × √` are used, and no fused multiply-add, so the same
//! arguments give the same bits on every machine.

/// `Φ⁻¹((x + ½) / 2³²)`, within 1.2e-6 and, relative to the value, within 5e-7.
///
/// Both branches are computed and one is selected, so that loops over it vectorise. The
/// coefficients are minimax fits (Chebyshev least squares with Lawson's weights), made by
/// `tools/fit_inverse_normal.py`.
///
/// ```
/// # use aleator_kernels::quantile::inverse_normal_cdf;
/// assert!((inverse_normal_cdf(0) + 6.337958).abs() < 2e-6);
/// assert_eq!(inverse_normal_cdf(!5), -inverse_normal_cdf(5));
/// ```
#[inline(always)]
pub fn inverse_normal_cdf(x: u32) -> f32 {
    let upper_half = (x as i32 >> 31) as u32; // all bits, or none
    let cell = x ^ upper_half; // counted from the nearer end, below 2^31
    let magnitude = if cell < 5 << 27 { tail(cell) } else { centre(cell) };
    f32::from_bits(magnitude.to_bits() ^ (!upper_half & 1 << 31))
}

/// `−Φ⁻¹(u) = d·P(d²)` with `d = ½ − u`, for `u = (cell + ½) / 2³²` in `[5/32, ½]`.
#[inline(always)]
fn centre(cell: u32) -> f32 {
    const P: [[f32; 4]; 2] = [
        [2.5066283, 2.6250033, 5.7609825, 16.403112],
        [24.435333, 515.4525, -2582.9875, 13163.663],
    ];
    const CELL: f32 = 1.0 / (1u64 << 32) as f32;
    let d = ((0x7FFF_FFFF - cell as i32) as f32 + 0.5) * CELL;
    d * polynomial(&P, d * d)
}

/// `−Φ⁻¹(u)` as a polynomial in `√(−log₂ u)`, for `u = (cell + ½) / 2³²` in `(0, 5/32]`.
#[inline(always)]
fn tail(cell: u32) -> f32 {
    const LOG2: [[f32; 4]; 2] = [
        [0.5849628, 0.9617954, -0.32063234, 0.14254533],
        [-0.07058961, 0.037311293, -0.02512337, 0.015125351],
    ];
    const P: [[f32; 4]; 3] = [
        [2.6224968, 1.322684, -0.036865767, 0.01000899],
        [-0.0028295885, 0.00081618514, -0.00023734011, 7.550096e-5],
        [-2.7308124e-5, 8.466709e-6, -1.602889e-6, 1.2932091e-7],
    ];
    let bits = (cell as i32 as f32 + 0.5).to_bits();
    let mantissa = f32::from_bits(bits & 0x007F_FFFF | 0x3F80_0000); // in [1, 2)
    let minus_exponent = (127 + 32 - (bits >> 23) as i32) as f32;
    let minus_log2 = minus_exponent - polynomial(&LOG2, mantissa - 1.5);
    polynomial(&P, minus_log2.sqrt() - 2.8)
}

/// The polynomial with these coefficients, lowest power first.
///
/// Groups of four instead of Horner's rule, whose chain of dependent operations is twice as long.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[[f32; 4]; N], x: f32) -> f32 {
    let (x2, x4) = (x * x, (x * x) * (x * x));
    let group = |c: &[f32; 4]| (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2;
    let (highest, lower) = coefficients.split_last().expect("a polynomial has coefficients");
    lower.iter().rev().fold(group(highest), |sum, c| sum * x4 + group(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `for x in (...): print(x, scipy.special.ndtri((x + 0.5) / 2**32))`
    #[test]
    fn inverse_normal_cdf_equals_scipys() {
        for (x, expected) in [
            (0, -6.3379577545537895),
            (1, -6.166429517819751),
            (1 << 20, -3.48710397659169),
            (1 << 29, -1.150349379810483),
            (1 << 30, -0.6744897498297384),
            ((1 << 31) - (1 << 20), -0.0006119695399989287),
            ((1 << 31) - 1, -2.918099372916623e-10),
        ] {
            let z = inverse_normal_cdf(x);
            assert!((z as f64 / expected - 1.0f64).abs() < 5e-7, "{x}: {z}");
            assert_eq!(inverse_normal_cdf(!x), -z);
        }
    }
}
