"""Backfilling of the best combination of jobs: LOS (Shmueli and Feitelson 2005), and Maui's greedy backfilling.

Jobs that end by the shadow time need free processors; the others need extra processors as well. So the best combination is the solution of
two knapsack problems, each solved with a table over processors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.heap import pop_candidate
from walltime.engine.kernel.memory import BY_PROCSECONDS, BY_SECONDS, BY_SLOWDOWN, Array, Records
from walltime.engine.kernel.number.index import collect_candidates

SLOWDOWNS = 2**40
"""More than any sum of slowdowns, in thousandths, of jobs that are considered together."""


class Window(NamedTuple):
    """Jobs that are considered together, and tables of their combinations; int64.

    * for each job: `place`: its place in the queue; `procs`; `worth`; `in_time`: whether it ends by the shadow time
    * `short`, `long`: by job and number of processors, the highest total worth of jobs from this one on, shape (jobs + 1, procs + 1);
      `short` counts jobs that end in time, `long` the others
    """

    place: Array
    procs: Array
    worth: Array
    in_time: Array
    short: Array
    long: Array


def new_window(rules: Records) -> Window:
    """Return memory for as many jobs as are considered together."""
    ahead, shape = int(rules.ahead), (int(rules.ahead) + 1, int(rules.procs) + 1)
    place, procs, worth, in_time = (np.zeros(ahead, np.int64) for _ in range(4))
    return Window(place, procs, worth, in_time, np.zeros(shape, np.int64), np.zeros(shape, np.int64))


@called_kernel
def choose_together(state, rules, jobs, line, candidates, window, first):
    """Choose the jobs to be backfilled now, from queue place `first` on; return their number, with their places in `window.place`.

    Only the first `rules.ahead` jobs, in backfill order, that could be backfilled alone are considered.
    """
    collect_candidates(state, rules, jobs, line, candidates, first)
    count = min(state.candidates, rules.ahead)
    for k in range(count):
        window.place[k] = pop_candidate(state, candidates)
    if count <= 1:
        return count
    unit = np.int64(0)  # the greatest common divisor of all requests, as machines are often allocated in blocks of processors
    for k in range(count):
        entry = line.queue[window.place[k]]
        window.procs[k] = entry.procs
        window.in_time[k] = 1 if entry.length <= state.shadow - state.now else 0
        window.worth[k] = _worth(state, rules, jobs, entry)
        rest = np.int64(entry.procs)
        while rest:
            unit, rest = rest, unit % rest
    free, extra = state.free // unit, min(state.free, state.extra) // unit
    for k in range(count):
        window.procs[k] //= unit
    _fill_table(window, window.short, count, free, 1)
    _fill_table(window, window.long, count, extra, 0)
    chosen = 0
    for k in range(count):
        best = _best(window, k, free, extra)
        procs = window.procs[k]
        left = extra if window.in_time[k] else extra - procs
        if procs <= free and left >= 0:
            if window.worth[k] + _best(window, k + 1, free - procs, left) == best:
                window.place[chosen] = window.place[k]
                chosen += 1
                free -= procs
                extra = left
    return chosen


@kernel
def _worth(state, rules, jobs, entry):
    """Return the worth of a job in a combination, an integer, so that sums are exact."""
    if rules.objective == BY_SECONDS:
        return entry.length
    if rules.objective == BY_PROCSECONDS:
        return entry.procs * entry.length
    if rules.objective == BY_SLOWDOWN:
        slowdown = 1000 * (state.now - jobs[entry.job].submit + entry.length) // entry.length
        return entry.procs * SLOWDOWNS + min(slowdown, np.int64(2**34))
    return np.int64(entry.procs)


@kernel
def _fill_table(window, table, count, most, in_time):
    """Fill the table for the jobs that end in time (1), or for the others (0), with up to `most` processors."""
    for room in range(most + 1):
        table[count, room] = 0
    for k in range(count - 1, -1, -1):
        procs, worth, counts = window.procs[k], window.worth[k], window.in_time[k] == in_time
        for room in range(most + 1):
            table[k, room] = table[k + 1, room]
            if counts and room >= procs:
                table[k, room] = max(table[k, room], worth + table[k + 1, room - procs])


@kernel
def _best(window, k, free, extra):
    """Return the highest worth of a combination of the jobs from this one on."""
    best = np.int64(0)
    for room in range(min(free, extra) + 1):
        best = max(best, window.long[k, room] + window.short[k, free - room])
    return best
