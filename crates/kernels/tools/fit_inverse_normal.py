"""Fits the coefficients of inverse_normal_cdf in src/quantile.rs, and checks them.

Run: python3 crates/kernels/tools/fit_inverse_normal.py   (needs numpy and scipy)

Prints the three polynomials as Rust constants, lowest power first, in groups of four:
    centre::P     z / d in powers of d^2, with d = 1/2 - u, for u in [5/32, 1/2]
    tail::LOG2    log2(m) in powers of m - 1.5, for a mantissa m in [1, 2]
    tail::P       z in powers of r - 2.8, with r = sqrt(-log2 u), for u in [2^-33, 5/32]
where z = -Phi^-1(u). Each is near minimax: Chebyshev least squares with Lawson's weights.
Then prints the errors of the f32 arithmetic of quantile.rs against scipy, per range of cells.
The last digits of the coefficients can depend on the linear algebra library of numpy.
"""

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.polynomial import Polynomial
from scipy.special import ndtri

SPLIT = 5 / 32  # u below is the tail, above is the centre
SPLIT_CELL = 5 << 27  # the same, as a cell
TAIL_MIDDLE = 2.8
MANTISSA_MIDDLE = 1.5

NODES = 3000
LAWSON_STEPS = 300
UNIT_NODES = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)  # Chebyshev nodes in (-1, 1)


def minimax(x, y, degree, weight, origin):
    """The polynomial in x - origin with the smallest max |weight (p(x) - y)|, and that error."""
    half, middle = (x.max() - x.min()) / 2, (x.max() + x.min()) / 2
    basis = chebyshev.chebvander((x - middle) / half, degree) * weight[:, None]
    target = weight * y
    lawson = np.ones(len(x))
    best_error, best = np.inf, None
    for _ in range(LAWSON_STEPS):
        root = np.sqrt(lawson)
        fit = np.linalg.lstsq(basis * root[:, None], target * root, rcond=None)[0]
        error = abs(basis @ fit - target)
        if error.max() < best_error:
            best_error, best = error.max(), fit
        lawson = np.maximum(lawson * error / (lawson * error).sum(), 1e-14)
    to_unit = Polynomial([(origin - middle) / half, 1 / half])
    return Polynomial(chebyshev.cheb2poly(best))(to_unit).coef, best_error


def fit_centre():
    d_squared = (0.5 - SPLIT) ** 2 * (1 + UNIT_NODES) / 2 + 1e-14
    d = np.sqrt(d_squared)
    ratio = -ndtri(0.5 - d) / d
    return minimax(d_squared, ratio, 7, 1 / ratio, 0.0)


def fit_log2():
    mantissa = 1.5 + 0.5 * UNIT_NODES
    return minimax(mantissa, np.log2(mantissa), 7, np.ones(NODES), MANTISSA_MIDDLE)


def fit_tail():
    low, high = np.sqrt(-np.log2(SPLIT)), np.sqrt(33.0)
    r = (low + high) / 2 + (high - low) / 2 * UNIT_NODES
    z = -ndtri(2.0 ** (-r * r))
    return minimax(r, z, 11, 1 / z, TAIL_MIDDLE)


def polynomial(coefficients, x):
    """As `polynomial` in quantile.rs."""
    c, x2 = coefficients.astype(np.float32), x * x
    x4 = x2 * x2
    groups = [
        (c[i] + c[i + 1] * x) + (c[i + 2] + c[i + 3] * x) * x2 for i in range(0, len(c), 4)
    ]
    total = groups[-1]
    for group in groups[-2::-1]:
        total = total * x4 + group
    return total


def lower_half(cell, centre, log2, tail):
    """As `inverse_normal_cdf` in quantile.rs, for cells below 2^31."""
    f32 = np.float32
    d = ((0x7FFFFFFF - cell).astype(f32) + f32(0.5)) * f32(2**-32)
    z_centre = d * polynomial(centre, d * d)
    bits = (cell.astype(f32) + f32(0.5)).view(np.uint32)
    mantissa = (bits & 0x007FFFFF | 0x3F800000).view(f32)
    minus_exponent = (127 + 32 - (bits >> 23).astype(np.int32)).astype(f32)
    minus_log2 = minus_exponent - polynomial(log2, mantissa - f32(MANTISSA_MIDDLE))
    z_tail = polynomial(tail, np.sqrt(minus_log2) - f32(TAIL_MIDDLE))
    return -np.where(cell < SPLIT_CELL, z_tail, z_centre)


def print_rust(name, coefficients, error):
    print(f"{name}  (error of the exact polynomial {error:.1e})")
    for group in coefficients.astype(np.float32).reshape(-1, 4):
        print("    [" + ", ".join(str(c) for c in group) + "],")


def main():
    (centre, centre_error), (log2, log2_error), (tail, tail_error) = (
        fit_centre(),
        fit_log2(),
        fit_tail(),
    )
    print_rust("centre::P", centre, centre_error)
    print_rust("tail::LOG2", log2, log2_error)
    print_rust("tail::P", tail, tail_error)

    bounds = [0, 1 << 20, SPLIT_CELL, 3 << 28, (1 << 31) - (1 << 20), 1 << 31]
    for low, high in zip(bounds, bounds[1:]):
        cell = np.unique(np.linspace(low, high - 1, 1 << 20).astype(np.int64))
        exact = ndtri((cell + 0.5) / 2**32)
        error = abs(lower_half(cell, centre, log2, tail) - exact)
        print(
            f"cells {low:#x}..{high:#x}:"
            f" error {error.max():.2e}, relative {(error / abs(exact)).max():.2e}"
        )


if __name__ == "__main__":
    main()
