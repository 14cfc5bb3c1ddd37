"""Estimates of the random f-model, drawn in the kernel: equal bit for bit to those of `walltime.estimates.FModel`.

Source: feitelson98, section 3.3; tsafrir06, sections II and VII; Philox4x32-10 as in `walltime.workload.draws`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import entry, kernel

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_UNUSED = np.uint64(11)
_MULTIPLY_A, _MULTIPLY_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_A, _WEYL_B = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


class RandomSource(NamedTuple):
    """The random numbers to draw: the two halves of the seed, and the stream; uint64 below 2**32."""

    seed_low: np.uint64
    seed_high: np.uint64
    stream: np.uint64


@entry
def draw_f_estimates(source, ids, runtime, factor, largest, longest, believed):
    """Fill `believed` with estimates uniform between r and `factor` r, both r and they truncated to `largest`; at least 1 s.

    `longest`: upper bound of all estimates, before rounding.
    """
    for job in range(ids.size):
        cut = min(runtime[job], largest)
        estimate = cut * (1.0 + (factor - 1.0) * _uniform(source, np.uint64(ids[job])))
        rounded = math.floor(min(estimate, longest) + 0.5)
        believed[job] = min(max(rounded, cut, 1), largest)


@kernel
def _uniform(source, number):
    """Return the first of the two numbers in [0, 1) of `draws.uniforms` for this seed, stream and id."""
    a, b, c, d = number & _LOW, number >> _HALF, source.stream, np.uint64(0)
    k0, k1 = source.seed_low, source.seed_high
    for _ in range(10):
        left, right = _MULTIPLY_A * a, _MULTIPLY_B * c
        a, b, c, d = (right >> _HALF) ^ b ^ k0, right & _LOW, (left >> _HALF) ^ d ^ k1, left & _LOW
        k0, k1 = (k0 + _WEYL_A) & _LOW, (k1 + _WEYL_B) & _LOW
    return float(((a << _HALF) | b) >> _UNUSED) * 2.0**-53
