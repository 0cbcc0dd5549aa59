"""Weights and images by a formula that the Rust tests compute too."""

import numpy as np


def units(name, count):
    """`count` numbers in [-1, 1) that look random, from a name: FNV-1a, then murmur3's finish."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 % 2**32
    word = (np.arange(count, dtype=np.uint64) * 2654435761 + seed) % 2**32
    for shift, factor in [(16, 2246822507), (13, 3266489909)]:
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor) % 2**32
    word ^= word >> np.uint64(16)
    return (word >> np.uint64(8)).astype(np.float64) / 2**23 - 1


def weight(key, shape):
    """The weights of a key: convolutions as He et al. start, norms near the identity."""
    unit = units(key, int(np.prod(shape)))
    if len(shape) == 4:
        values = unit * np.sqrt(6 / np.prod(shape[1:]))
    elif key.endswith("weight"):
        values = 1 + 0.2 * unit
    elif key.endswith("running_var"):
        values = 1 + 0.5 * unit
    else:
        values = 0.2 * unit
    return values.astype(np.float32).reshape(shape)


def images(batch, height, width):
    values = units("images", batch * 3 * height * width).astype(np.float32)
    return values.reshape(batch, 3, height, width)
