"""Distinct rows, against numpy's own."""

import numpy as np
import pytest

from walltime.distinct import distinct_rows


@pytest.mark.parametrize("size", [0, 1, 300])
def test_distinct_rows__equal_numpys(size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        columns = [
            rng.integers(-2, 3, size),
            np.full(size, 7),
            rng.integers(0, 2**62, 5)[rng.integers(0, 5, size)],
            rng.random(size).round(1),
        ]
        columns = [columns[k] for k in rng.permutation(4)[: rng.integers(1, 5)]]
        rows, of = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        found, index = distinct_rows(columns)
        assert np.array_equal(found, rows)
        assert np.array_equal(index, of.ravel())
