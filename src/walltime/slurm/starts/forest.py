"""A forest of regression trees that predicts a distribution. For some outcomes, only a lower bound may be known."""

from __future__ import annotations

import numpy as np

from walltime.compiled.jit import entry
from walltime.workload import Array

LEVELS = np.arange(1, 200) / 200
"""The levels of the predicted quantiles: 0.005, 0.01, ..., 0.995."""
BINS = 64
"""Number of bins, by quantiles, into which the values of a feature are divided."""
MOST_ROWS = 8000
"""Maximum number of rows from which a tree grows."""


class Forest:
    """Trees that predict logarithmic outcomes: the distribution for a new row is the weighted outcomes of the rows that share its leaves.

    `features`: float64, shape (rows, features). `outcome`: float64, per row; `known`: bool, whether the value is the outcome itself, not a
    lower bound. `weight`: the relative probability that a row is drawn for a tree. `trees`: their number; `leaf`: the minimum number of
    rows in a leaf; `tried`: the number of features tried for each split. Sources: quantile regression forests, Meinshausen, JMLR 2006;
    outcomes that are not known yet, Kaplan & Meier, JASA 1958, with the forest's weights.
    """

    def __init__(self, features: Array, outcome: Array, known: Array, weight: Array, trees: int = 50, leaf: int = 10, tried: int = 10):
        levels = np.linspace(0, 1, BINS + 1)[1:-1]
        self._edges = [np.unique(np.quantile(column, levels)) for column in features.T]
        self._outcome, self._known = outcome, known
        binned = self._binned(features)
        random = np.random.default_rng(0)
        count, tried = min(max(int(0.6 * len(outcome)), 1), MOST_ROWS), min(tried, features.shape[1])
        nodes, rows = [], []
        spare = (np.zeros(BINS + 1), np.zeros(BINS + 1), np.zeros(count, np.int64), np.arange(features.shape[1]))
        for _ in range(trees):
            mine = random.choice(len(outcome), size=count, p=weight / weight.sum()).astype(np.int64)
            most = 2 * (count // leaf) + 3
            draws = random.integers(0, 2**31, size=(most, tried))
            table = np.zeros((most, 5), np.int64)
            used = _grow(binned, outcome, mine, draws, leaf, table, spare)
            nodes.append(table[:used])
            rows.append(mine)
        self._rows = np.stack(rows)
        self._nodes, self._first = np.concatenate(nodes), np.cumsum([0, *(len(table) for table in nodes)])[:-1]

    def _binned(self, features: Array) -> Array:
        return np.stack([np.searchsorted(edges, column) for edges, column in zip(self._edges, features.T, strict=True)], axis=1)

    def quantiles(self, features: Array) -> Array:
        """Return the quantiles at LEVELS for each row, shape (levels, rows)."""
        quantiles = np.zeros((len(features), len(LEVELS)))
        order = np.argsort(self._outcome, kind="stable")
        outcomes = (self._outcome, self._known, order, np.zeros(len(order)))
        _quantiles(self._binned(features), (self._nodes, self._first, self._rows), outcomes, LEVELS, quantiles)
        return quantiles.T


FEATURE, CUT, LEFT, FIRST, LAST = range(5)
"""The columns of a tree's table of nodes. A leaf has 0 in LEFT, and the rows from FIRST to LAST."""


@entry
def _grow(binned, outcome, rows, draws, leaf, table, spare):
    """Grow a tree from rows, sort them in the order of its leaves, and return the number of nodes filled in `table`."""
    counts, sums, aside, places = spare
    features = binned.shape[1]
    table[0, LAST] = len(rows)
    used, k = 1, 0
    while k < used:
        first, last = table[k, FIRST], table[k, LAST]
        count = last - first
        if count >= 2 * leaf and used + 2 <= len(table):
            total = 0.0
            for i in range(first, last):
                total += outcome[rows[i]]
            best, chosen, cut = 1e-9, -1, 0
            for t in range(draws.shape[1]):
                j = t + draws[k, t] % (features - t)
                places[t], places[j] = places[j], places[t]
                feature = places[t]
                for value in range(len(counts)):
                    counts[value] = sums[value] = 0.0
                for i in range(first, last):
                    value = binned[rows[i], feature]
                    counts[value] += 1
                    sums[value] += outcome[rows[i]]
                below, below_sum = 0.0, 0.0
                for value in range(BINS):
                    below += counts[value]
                    below_sum += sums[value]
                    if counts[value] == 0 or below < leaf:
                        continue
                    if count - below < leaf:
                        break
                    gain = below_sum**2 / below + (total - below_sum) ** 2 / (count - below) - total**2 / count
                    if gain > best:
                        best, chosen, cut = gain, feature, value
            if chosen >= 0:
                middle, others = first, 0
                for i in range(first, last):
                    row = rows[i]
                    if binned[row, chosen] <= cut:
                        rows[middle] = row
                        middle += 1
                    else:
                        aside[others] = row
                        others += 1
                for i in range(others):
                    rows[middle + i] = aside[i]
                table[k, FEATURE], table[k, CUT], table[k, LEFT] = chosen, cut, used
                table[used, FIRST], table[used, LAST] = first, middle
                table[used + 1, FIRST], table[used + 1, LAST] = middle, last
                used += 2
        k += 1
    return used


@entry
def _quantiles(binned, trees, outcomes, levels, quantiles):
    """Find the quantiles of each row from the rows that share its leaves, each weighted by its part of the leaf (product-limit)."""
    nodes, firsts, rows = trees
    outcome, known, order, weight = outcomes
    for place in range(len(binned)):
        for i in range(len(weight)):
            weight[i] = 0.0
        for tree in range(len(firsts)):
            k = firsts[tree]
            while nodes[k, LEFT] > 0:
                right = 0 if binned[place, nodes[k, FEATURE]] <= nodes[k, CUT] else 1
                k = firsts[tree] + nodes[k, LEFT] + right
            first, last = nodes[k, FIRST], nodes[k, LAST]
            for i in range(first, last):
                weight[rows[tree, i]] += 1.0 / (last - first)
        at_risk, remain, level, latest = float(len(firsts)), 1.0, 0, 0.0
        for i in range(len(order)):
            row = order[i]
            if weight[row] == 0.0:
                continue
            latest = outcome[row]
            if known[row]:
                remain *= max(0.0, 1.0 - weight[row] / max(at_risk, 1e-12))
            at_risk -= weight[row]
            while level < len(levels) and remain <= 1.0 - levels[level] + 1e-9:
                quantiles[place, level] = latest
                level += 1
            if level == len(levels):
                break
        while level < len(levels):
            quantiles[place, level] = latest
            level += 1
