"""How far schedulers are behind the best: all at once, with the choice of the best inside."""

import numpy as np
import pytest
from scipy import stats

from walltime.benchmark.standings import behind_best

SUBJECTS = [name for name in "abcdef" for _ in range(5)]


def suite(behind: np.ndarray, seed: int, spread: float = 0.3) -> np.ndarray:
    """Costs of schedulers that are so far behind the best, on windows that all of them share."""
    random = np.random.default_rng(seed)
    return np.asarray(behind)[:, None] + 1.5 * random.normal(size=30) + random.normal(0, spread, (len(behind), 30))


def test_behind_best__of_two_is_nearly_students_t():
    costs = suite(np.array([0.0, 0.5]), 1)
    low, high = behind_best(costs, ["one"] * 30)
    theirs = stats.t.interval(0.90, 29, *(lambda d: (d.mean(), stats.sem(d)))(costs[1] - costs[0]))
    assert (low[1], high[1]) == pytest.approx(theirs, rel=0.05)
    assert (low[0], high[0]) == (0, 0), "nothing is ahead of the best"


@pytest.mark.slow
def test_behind_best__calls_none_of_twelve_equal_schedulers_behind():
    # Pairs with the lowest one by one: 79 % of suites call some behind.
    wrong = sum((behind_best(suite(np.zeros(12), seed), SUBJECTS)[0] > 0).any() for seed in range(60))
    assert stats.binomtest(wrong, 60, 0.10, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_behind_best__holds_all_at_once():
    truth = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 0.8])
    held = []
    for seed in range(60):
        low, high = behind_best(suite(truth, 1000 + seed), SUBJECTS)
        held.append(((low <= truth) & (truth <= high)).all())
    assert stats.binomtest(sum(held), 60, 0.90, alternative="less").pvalue > 1e-3
    assert low[-1] > 0


def test_behind_best__repeats_itself_and_takes_equal_rows():
    costs = suite(np.zeros(3), 2)
    both = np.vstack([costs, costs[0]])
    one, other = behind_best(both, SUBJECTS), behind_best(both, SUBJECTS)
    assert np.array_equal(one, other)
    assert one[0][0] == one[0][3]
