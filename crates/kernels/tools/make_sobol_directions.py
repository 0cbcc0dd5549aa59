"""Makes src/sobol_directions.bin from the Joe-Kuo D6 table that scipy ships.

Run: python3 crates/kernels/tools/make_sobol_directions.py   (needs numpy and scipy)

The file is a stream of little-endian u16 words. Dimension 0 (van der Corput) is
implied; each later dimension, in order, is
    polynomial >> 1            the primitive polynomial without its constant 1
    m_1, ..., m_s              the initial direction integers, s = degree
A polynomial of degree s <= 16 fits its word because the constant term is left out.
"""

from pathlib import Path

import numpy as np
import scipy.stats
from scipy.stats import qmc

DIMENSIONS = 4096
BITS = 32
TABLE = Path(scipy.stats.__file__).parent / "_sobol_direction_numbers.npz"
OUTPUT = Path(__file__).parent.parent / "src" / "sobol_directions.bin"


def encode(polynomials, initial):
    words = []
    for polynomial, m in zip(polynomials[1:], initial[1:]):
        degree = int(polynomial).bit_length() - 1
        words += [int(polynomial) >> 1, *(int(x) for x in m[:degree])]
    return np.array(words, dtype="<u2").tobytes()  # raises if a word needs more than 16 bits


def decode(data):
    """The direction numbers [dimension, bit] as sobol.rs must expand them."""
    words = iter(np.frombuffer(data, dtype="<u2").tolist())
    rows = [[1 << (BITS - 1 - j) for j in range(BITS)]]
    for half in words:
        polynomial, degree = half << 1 | 1, half.bit_length()
        v = [next(words) << (BITS - 1 - j) for j in range(degree)]
        for j in range(degree, BITS):
            value = v[j - degree] >> degree
            for k in range(1, degree + 1):
                value ^= v[j - k] * (polynomial >> (degree - k) & 1)
            v.append(value)
        rows.append(v)
    return np.array(rows, dtype=np.uint32)


def first_points(directions, count):
    """Points 0..count of the sequence in Gray-code order, [point, dimension]."""
    points = np.zeros((count, len(directions)), dtype=np.uint32)
    for i in range(1, count):
        points[i] = points[i - 1] ^ directions[:, (i & -i).bit_length() - 1]
    return points


def main():
    table = np.load(TABLE)
    data = encode(table["poly"][:DIMENSIONS], table["vinit"][:DIMENSIONS])
    expected = qmc.Sobol(DIMENSIONS, scramble=False, bits=BITS).random(1024) * 2**BITS
    points = first_points(decode(data), 1024)
    assert (points == expected.astype(np.uint32)).all(), "differs from scipy.stats.qmc.Sobol"
    OUTPUT.write_bytes(data)
    print(f"{OUTPUT}: {len(data)} bytes, {DIMENSIONS} dimensions, 1024 points equal scipy's")


if __name__ == "__main__":
    main()
