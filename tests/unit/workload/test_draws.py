"""Counter-based random numbers: the published test vectors, and that a job's draw depends on its id only."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from walltime.workload.draws import philox, uniforms

LEVEL = 1e-3
"""Significance of every goodness-of-fit test here; seeds are fixed, so a test passes always or never."""


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        # known-answer tests that the authors of the generator publish with it, for Philox4x32 with 10 rounds
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox__gives_the_published_words(counter, key, words):
    out = philox(tuple(np.array([c], np.uint64) for c in counter), tuple(np.array(k, np.uint64) for k in key))
    assert tuple(int(word[0]) for word in out) == words


def test_uniforms__depend_on_the_id_and_not_on_its_place():
    ids = np.array([5, 1, 900_000_000_000, 7, 2])
    first, second = uniforms(seed=3, ids=ids)
    for place, number in enumerate(ids):
        alone = uniforms(seed=3, ids=np.array([number]))
        assert (alone[0][0], alone[1][0]) == (first[place], second[place])


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_uniforms__are_uniform_and_independent(seed):
    first, second = uniforms(seed, np.arange(1, 20_001))
    assert stats.kstest(first, "uniform").pvalue > LEVEL
    assert stats.kstest(second, "uniform").pvalue > LEVEL
    cells = np.histogram2d(first, second, bins=10, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(cells.ravel()).pvalue > LEVEL
    assert first.min() >= 0
    assert first.max() < 1


def test_uniforms__differ_between_seeds_and_streams():
    ids = np.arange(1000)
    base = uniforms(1, ids)[0]
    for other in (uniforms(2, ids)[0], uniforms(1, ids, stream=1)[0], uniforms(1 + 2**32, ids)[0]):
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.12
        assert not (base == other).any()
