"""Choose the interval of a schedule for a Gantt chart, and the processors on which its jobs are drawn."""

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from walltime import metrics
from walltime.errors import WorkloadError
from walltime.schedule.schedule import Schedule

Array = np.ndarray

JOBS = 150
"""Number of jobs that a Gantt chart can show clearly."""
STARTED = JOBS // 2
"""Smallest number of these jobs that start inside the interval, even if hundreds of jobs run at once."""
VISIBLE = 300
"""A job is visible if it uses at least 1 / VISIBLE of the machine."""
MOST_SHOWN = 10 * JOBS
"""An interval with this many jobs of any size is long enough."""


def choose_stretch(schedules: Sequence[Schedule], jobs: int = JOBS) -> tuple[int, int]:
    """Return begin and end, s, of the most informative interval that contains at least `jobs` jobs of each schedule.

    It is centred on the time at which the shortest of the schedules' queues is longest, so that every policy has jobs to choose from. If no
    such queue exists, it is centred on the longest queue of the first schedule; if no job waits, on the time with the most busy processors.
    A workload with at most `jobs` jobs is shown completely.
    """
    first = schedules[0]
    submit = first.workload.submit
    if not len(submit):
        return 0, 1
    whole = int(submit[0]), max(int(s.end.max()) for s in schedules)
    if len(submit) <= jobs:
        return whole[0], max(whole[1], whole[0] + 1)
    middle = _moment(schedules)
    runs = [_Running(s, s.runtime > 0) for s in schedules]
    wide = [_Running(s, (s.runtime > 0) & (s.workload.procs * VISIBLE >= s.workload.machine_procs)) for s in schedules]

    def window(half: int) -> tuple[int, int]:
        """Return an interval of this half width around the middle, shifted to lie inside the schedules."""
        begin = min(max(middle - half, whole[0]), max(whole[1] - 2 * half, whole[0]))
        return begin, max(min(begin + 2 * half, whole[1]), begin + 1)

    def enough(half: int) -> bool:
        span = window(half)
        if max(r.shown(*span) for r in runs) >= MOST_SHOWN:
            return True
        return min(r.shown(*span) for r in wide) >= jobs and min(r.started(*span) for r in wide) >= STARTED

    low, high = 30, max(whole[1] - whole[0], 31)
    while high - low > 1:
        half = (low + high) // 2
        low, high = (low, half) if enough(half) else (half, high)
    return window(high)


class _Running:
    """Count the jobs of a schedule that run or start within an interval."""

    def __init__(self, schedule: Schedule, which: Array) -> None:
        self._start, self._end = np.sort(schedule.start[which]), np.sort(schedule.end[which])

    def shown(self, begin: int, end: int) -> int:
        return int(np.searchsorted(self._start, end) - np.searchsorted(self._end, begin, side="right"))

    def started(self, begin: int, end: int) -> int:
        return int(np.searchsorted(self._start, end) - np.searchsorted(self._start, begin))


def _moment(schedules: Sequence[Schedule]) -> int:
    first = schedules[0]
    queues = [metrics.queue_length(s.submit, s.start) for s in schedules]
    moments = np.unique(np.concatenate([times for times, _ in queues]))
    shared = np.min([metrics.levels_at(times, levels, moments) for times, levels in queues], axis=0)
    if shared.any():
        return int(moments[np.argmax(shared)])
    times, levels = queues[0] if len(queues[0][0]) else metrics.busy_processors(first.start, first.end, first.workload.procs)
    return int(times[np.argmax(levels)]) if len(times) else int(first.workload.submit[0])


def assign_processors(start: Array, end: Array, procs: Array, machine_procs: int) -> tuple[Array, Array, Array]:
    """Assign processor numbers to jobs, to draw a Gantt chart.

    In order of start, each job gets the lowest free block that is large enough, otherwise the lowest free processors in several pieces.
    `start, end`: int64 seconds, `procs`: int64; each of shape (jobs,). Returns `job, first, count`, int64, one entry per strip:
    the processors `first` to `first + count - 1` belong to the job with index `job`. Jobs with a runtime of 0 have no strip.
    Raises WorkloadError if the jobs need more processors than the machine has.

    >>> job, first, count = assign_processors(np.array([0, 0, 5]), np.array([5, 9, 9]), np.array([1, 2, 2]), 4)
    >>> job.tolist(), first.tolist(), count.tolist()
    ([0, 1, 2, 2], [0, 1, 0, 3], [1, 2, 1, 1])
    """
    lows, highs = [0], [machine_procs]  # free blocks in ascending order: first processor, and one past the last
    running: list[tuple[int, int]] = []
    held: dict[int, list[tuple[int, int]]] = {}
    strips: list[tuple[int, int, int]] = []
    starts, ends, wanted = start.tolist(), end.tolist(), procs.tolist()
    for job in np.argsort(start, kind="stable").tolist():
        now = starts[job]
        while running and running[0][0] <= now:
            for low, high in held.pop(heappop(running)[1]):
                _free(lows, highs, low, high)
        if ends[job] <= now:
            continue
        pieces = _take(lows, highs, wanted[job])
        if pieces is None:
            raise WorkloadError(
                f"at {now} s the schedule needs more than the {machine_procs} processors of the machine; audit it first", "overfull_machine"
            )
        held[job] = pieces
        heappush(running, (ends[job], job))
        strips += [(job, low, high - low) for low, high in pieces]
    job, first, count = np.array(strips, np.int64).reshape(-1, 3).T
    return job, first, count


def _take(lows: list[int], highs: list[int], wanted: int) -> list[tuple[int, int]] | None:
    """Take the lowest free block that is large enough, otherwise the lowest free processors in pieces; None if too few are free."""
    for k, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if high - low >= wanted:
            lows[k] = low + wanted
            if lows[k] == high:
                del lows[k], highs[k]
            return [(low, low + wanted)]
    pieces = []
    while wanted and lows:
        low, high = lows[0], min(highs[0], lows[0] + wanted)
        pieces.append((low, high))
        wanted -= high - low
        if high == highs[0]:
            del lows[0], highs[0]
        else:
            lows[0] = high
    return None if wanted else pieces


def _free(lows: list[int], highs: list[int], low: int, high: int) -> None:
    """Release a block, and merge it with adjacent free blocks."""
    k = bisect_left(lows, low)
    if k < len(lows) and lows[k] == high:
        high = highs[k]
        del lows[k], highs[k]
    if k and highs[k - 1] == low:
        highs[k - 1] = high
    else:
        lows.insert(k, low)
        highs.insert(k, high)
