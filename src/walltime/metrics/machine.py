"""Metrics of the machine: load, utilization, busy processors and waiting jobs over time."""

import numpy as np

from walltime.errors import PolicyError

Array = np.ndarray


def offered_load(submit: Array, runtime: Array, procs: Array, machine_procs: int) -> float:
    """Return the processor-seconds demanded divided by those available: `sum(n * r) / (N * (last submit - first submit))`.

    `submit, runtime`: int64 seconds, `procs`: int64 processors; each of shape (jobs,). NaN if all jobs arrive at the same time.

    Source: mualem01, section 3.1.

    >>> offered_load(np.array([0, 100]), np.array([50, 50]), np.array([4, 2]), 4)
    0.75
    """
    submit = np.asarray(submit)
    span = int(submit.max() - submit.min()) if len(submit) else 0
    return _area(np.asarray(procs), np.asarray(runtime)) / (machine_procs * span) if span else float("nan")


def utilization(start: Array, end: Array, procs: Array, machine_procs: int, window_begin: int, window_end: int) -> float:
    """Return the utilization of the machine in a window: the exact integral of busy processors, divided by `N * length`.

    `start, end`: int64 seconds, `procs`: int64 processors; each of shape (jobs,). `window_begin, window_end`: s. nan for a window of length
    0. Source: mualem01, Table 1, column "load".

    >>> utilization(np.array([0, 50]), np.array([100, 150]), np.array([2, 4]), 4, 0, 100)
    1.0
    """
    length = int(window_end) - int(window_begin)
    if length <= 0:
        return float("nan")
    overlap = np.minimum(end, window_end) - np.maximum(start, window_begin)
    return _area(np.asarray(procs), np.maximum(overlap, 0)) / (machine_procs * length)


def steps(begin: Array, end: Array, amount: Array | int = 1) -> tuple[Array, Array]:
    """Return the sum of `amount` over the intervals [begin, end) that contain a time, as a step function of time.

    `begin, end`: int64 seconds, shape (intervals,); `amount`: int64, the same shape or one number. Returns `times, levels`, int64, of equal
    length: from `times[k]` until `times[k + 1]` the sum is `levels[k]`; before the first time and at the end it is 0.

    >>> times, levels = steps(np.array([0, 5]), np.array([10, 20]), np.array([2, 3]))
    >>> times.tolist(), levels.tolist()
    ([0, 5, 10, 20], [2, 5, 3, 0])
    """
    begin, end = np.asarray(begin, np.int64), np.asarray(end, np.int64)
    amount = np.broadcast_to(np.asarray(amount, np.int64), begin.shape)
    moment = np.concatenate((begin, end))
    change = np.concatenate((amount, -amount))
    order = np.argsort(moment, kind="stable")
    moment, level = moment[order], np.cumsum(change[order])
    last = np.append(moment[1:] != moment[:-1], True) if len(moment) else np.zeros(0, bool)
    times, levels = moment[last], level[last]
    changed = np.diff(levels, prepend=0) != 0
    return times[changed], levels[changed]


def busy_processors(start: Array, end: Array, procs: Array) -> tuple[Array, Array]:
    """Return busy processors over time, as a step function (see `steps`). All arguments: int64, shape (jobs,); times in s.

    >>> busy_processors(np.array([0]), np.array([60]), np.array([4]))[1].tolist()
    [4, 0]
    """
    return steps(start, end, procs)


def queue_length(submit: Array, start: Array) -> tuple[Array, Array]:
    """Return the number of waiting jobs over time, as a step function (see `steps`). `submit, start`: int64 s, shape (jobs,).

    >>> queue_length(np.array([0, 1]), np.array([0, 9]))[0].tolist()
    [1, 9]
    """
    return steps(submit, start)


def levels_at(times: Array, levels: Array, moments: Array) -> Array:
    """Return the values of a step function (see `steps`) at some `moments`, s; int64, 0 before its first time.

    >>> levels_at(np.array([0, 10]), np.array([4, 0]), np.array([-1, 0, 9, 10])).tolist()
    [0, 4, 4, 0]
    """
    return np.concatenate(([0], levels))[np.searchsorted(times, moments, side="right")]


def _area(procs: Array, seconds: Array) -> int:
    """Return the exact sum of processors times seconds, computed with Python integers if an int64 could overflow."""
    if float(np.dot(procs.astype(np.float64), seconds.astype(np.float64))) < 2.0**62:
        return int(np.dot(procs.astype(np.int64), seconds.astype(np.int64)))
    return sum(p * s for p, s in zip(procs.tolist(), seconds.tolist(), strict=True))


FEW_WAITING = 10
"""Smallest mean number of waiting jobs of a long queue."""


def queue_stretches(submit: Array, start: Array, until: int) -> tuple[Array, Array]:
    """Return the stretches in which some job is always waiting: lengths up to `until`, s, and mean numbers of waiting jobs; float64.

    >>> lengths, means = queue_stretches(np.array([0, 0, 5, 20]), np.array([0, 10, 10, 20]), until=20)
    >>> lengths[lengths > 0].tolist(), means[lengths > 0].tolist()
    ([10.0], [1.5])
    """
    times, queued = queue_length(submit, start)
    length = np.diff(np.minimum(times, until), append=until)
    stretch = np.cumsum(queued == 0)  # the same number until the queue is empty again
    waiting = np.bincount(stretch, weights=length * (queued > 0))
    return waiting, np.bincount(stretch, weights=length * queued) / np.maximum(waiting, 1)


MOST_INTERVALS = 10_000_000


def timeline(*, submit: Array, start: Array, end: Array, procs: Array, requested: Array, interval: int | None = None) -> dict[str, Array]:
    """Return waiting jobs, their requested work, busy processors and running jobs over time.

    `submit, start, end, requested`: int64 seconds, `procs`: int64 processors; each of shape (jobs,). Returns arrays of equal length:
    `time` (int64 s), `queued_jobs`, `queued_work` (processor-seconds, `procs * requested` of the waiting jobs), `busy_procs`,
    `running_jobs`. Without an interval there is one int64 entry for each time of a change, valid until the next one; the last entry is 0
    everywhere. With `interval` (s) there is one float64 mean for each interval; intervals begin at multiples of their length. Raises
    PolicyError for an interval below 1 s, or so short that there are over 10 million.

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
        raise PolicyError(f"an interval of the timeline must be at least 1 s, not {interval}", "number_out_of_range")
    first, last = (int(submit.min()) // interval, -(-int(end.max()) // interval)) if len(submit) else (0, 0)
    if last - first > MOST_INTERVALS:
        too_many = f"a timeline in intervals of {interval} s has {last - first:,} entries; at most {MOST_INTERVALS:,} are allowed"
        raise PolicyError(f"{too_many}; use a longer interval", "too_many_intervals")
    edges = np.arange(first, last + 1, dtype=np.int64) * interval
    return {"time": edges[:-1]} | {name: means_between(*level, edges) for name, level in levels.items()}


def means_between(times: Array, levels: Array, edges: Array) -> Array:
    """Return the means of a step function (see `walltime.metrics.steps`) between neighbouring edges, float64, shape (intervals,).

    `edges`: increasing seconds, shape (intervals + 1,).

    >>> means_between(np.array([0, 10]), np.array([4, 0]), np.array([0, 5, 15])).tolist()
    [4.0, 2.0]
    """
    if not len(times):
        return np.zeros(max(len(edges) - 1, 0))
    area = np.concatenate(([0.0], np.cumsum(levels[:-1] * np.diff(times).astype(np.float64))))
    return np.diff(np.interp(edges, times, area)) / np.diff(edges)
