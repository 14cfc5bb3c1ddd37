"""The queue and the machine over time: at every change, or as means over equal intervals."""

from __future__ import annotations

import numpy as np

from walltime.errors import PolicyError
from walltime.metrics.machine import busy_processors, levels_at, queue_length, steps

Array = np.ndarray

MOST_INTERVALS = 10_000_000


def timeline(*, submit: Array, start: Array, end: Array, procs: Array, requested: Array, interval: int | None = None) -> dict[str, Array]:
    """Waiting jobs, the work that they ask for, busy processors and running jobs over time.

    `submit, start, end, requested`: int64 seconds, `procs`: int64 processors; each of shape (jobs,). Returns arrays of equal length:
    `time` (int64 s), `queued_jobs`, `queued_work` (processor-seconds, `procs * requested` of the waiting jobs), `busy_procs`,
    `running_jobs`. Without an interval there is one entry for each time at which something changes, int64, valid until the next one;
    the last entry is 0 everywhere. With `interval` (s) there is one for each interval, the float64 mean over it; intervals begin at
    multiples of their length. Raises PolicyError for an interval below 1 s, or so short that there are over 10 million.

    >>> found = timeline(submit=np.array([0, 0]), start=np.array([0, 4]), end=np.array([4, 8]), procs=np.array([2, 1]),
    ...                  requested=np.array([5, 6]))
    >>> {name: values.tolist() for name, values in found.items() if name != "running_jobs"}
    {'time': [0, 4, 8], 'queued_jobs': [1, 0, 0], 'queued_work': [6, 0, 0], 'busy_procs': [2, 1, 0]}
    """
    submit, start, end, procs, requested = (np.asarray(a, np.int64) for a in (submit, start, end, procs, requested))
    levels = {
        "queued_jobs": queue_length(submit, start),
        "queued_work": steps(submit, start, procs * requested),
        "busy_procs": busy_processors(start, end, procs),
        "running_jobs": steps(start, end),
    }
    if interval is None:
        times = np.unique(np.concatenate([moments for moments, _ in levels.values()]))
        return {"time": times} | {name: levels_at(*level, times) for name, level in levels.items()}
    if interval < 1:
        raise PolicyError(f"an interval of the timeline must be at least 1 s, not {interval}")
    first, last = (int(submit.min()) // interval, -(-int(end.max()) // interval)) if len(submit) else (0, 0)
    if last - first > MOST_INTERVALS:
        raise PolicyError(f"intervals of {interval} s are {last - first:,}, over {MOST_INTERVALS:,}; take longer ones")
    edges = np.arange(first, last + 1, dtype=np.int64) * interval
    return {"time": edges[:-1]} | {name: means_between(*level, edges) for name, level in levels.items()}


def means_between(times: Array, levels: Array, edges: Array) -> Array:
    """Mean of a step function (see `walltime.metrics.steps`) between neighbouring edges, exact up to rounding.

    `edges`: increasing seconds, shape (intervals + 1,). Returns float64, shape (intervals,).

    >>> means_between(np.array([0, 10]), np.array([4, 0]), np.array([0, 5, 15])).tolist()
    [4.0, 2.0]
    """
    if not len(times):
        return np.zeros(max(len(edges) - 1, 0))
    area = np.concatenate(([0.0], np.cumsum(levels[:-1] * np.diff(times).astype(np.float64))))
    return np.diff(np.interp(edges, times, area)) / np.diff(edges)
