"""Counter-based random numbers: the draws for a job depend only on the seed and the job's id.

The draws do not depend on job order, thread or machine, and replication k can be run alone. The generator is Philox4x32-10.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import numpy as np

from walltime.errors import WorkloadError
from walltime.wording import seed_fault

Array = np.ndarray

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLY = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10


def philox(counter: tuple[Array, Array, Array, Array], key: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
    """Return four words of 32 random bits for each counter; the words in and out are uint64 below 2**32.

    >>> zero = np.zeros(1, np.uint64)
    >>> [f"{int(word[0]):08x}" for word in philox((zero, zero, zero, zero), (zero, zero))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        left, right = _MULTIPLY[0] * a, _MULTIPLY[1] * c
        a, b, c, d = (right >> _HALF) ^ b ^ k0, right & _LOW, (left >> _HALF) ^ d ^ k1, left & _LOW
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return a, b, c, d


def uniforms(seed: int, ids: Array, stream: int = 0) -> tuple[Array, Array]:
    """Return two independent numbers, uniform in [0, 1), for each id; float64 of the shape of `ids`.

    `seed`: a whole number from 0 to 2**64 - 1. `ids`: int64 job ids. `stream`: different streams give different numbers for the
    same job; each model has streams of its own. Raises WorkloadError for an invalid seed.
    """
    if fault := seed_fault(seed):
        raise WorkloadError(fault, "wrong_type")
    low = np.asarray(ids, np.int64).view(np.uint64)
    key = np.array(seed & 0xFFFFFFFF, np.uint64), np.array(seed >> 32, np.uint64)
    words = philox((low & _LOW, low >> _HALF, np.full(low.shape, stream, np.uint64), np.zeros(low.shape, np.uint64)), key)
    first, second = (words[0] << _HALF) | words[1], (words[2] << _HALF) | words[3]
    scale = 2.0**-53
    return (first >> np.uint64(11)).astype(np.float64) * scale, (second >> np.uint64(11)).astype(np.float64) * scale


def whole_numbers(seed: int, ids: Array, stream: int, *spans: tuple[int, int]) -> tuple[Array, ...]:
    """Return one or two uniform whole numbers for each id, one from each half-open span, int64; see `uniforms`."""
    drawn = uniforms(seed, ids, stream)
    return tuple((low + (high - low) * one).astype(np.int64) for one, (low, high) in zip(drawn, spans, strict=False))
