"""Estimates that a system makes from what the same user did before with the same program."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from walltime.errors import PolicyError
from walltime.workload import MISSING, Workload

Array = np.ndarray
WEEK = 7 * 86_400
KEYS = ("executable", "user", "procs")


@dataclass
class Moments:
    """How many runs there were, the sum of their runtimes and of their squares, and the end of the last one, s."""

    runs: int = 0
    total: float = 0.0
    squares: float = 0.0
    last: int = -1
    recent: deque[tuple[int, int]] = field(default_factory=deque)
    """end and runtime of single runs, kept for a sliding window only"""

    def add(self, runtime: int, end: int, sign: int = 1) -> None:
        """Count a run, or take one back."""
        self.runs += sign
        self.total += sign * runtime
        self.squares += sign * float(runtime) * runtime
        self.last = max(self.last, end)

    def bound(self, deviations: float, sample: bool) -> float:
        """Mean plus so many standard deviations; the deviation of one run is 0."""
        mean = self.total / self.runs
        degrees = self.runs - 1 if sample else self.runs
        spread = max(self.squares - self.runs * mean * mean, 0.0) / degrees if degrees > 0 else 0.0
        return mean + deviations * math.sqrt(spread)


@dataclass(frozen=True)
class History:
    """What was estimated for each job: `estimate` int64 s, `known` bool, whether there was history of its own; shape (jobs,)."""

    estimate: Array
    known: Array


@dataclass(frozen=True)
class HistoryEstimates:
    """Mean plus `deviations` standard deviations of earlier runs of the same program by the same user on as many processors.

    Without such runs, the same of all runs so far; before anything has ended, the user's request. History too old is
    forgotten, by one of these rules (SPEC Q-10): `reset` forgets a key whose last run ended more than a week before the
    submission, as three stored numbers allow it; `sliding` counts the runs of the last week only; `weekly` forgets all keys
    whenever a week of the log is over; `never`. `least`: runs that a key needs. `sample`: whether the standard deviation
    divides by the runs less one. Estimates are rounded up to whole seconds.

    Source: P2 section 4.4 (SPEC T-06, Q-10).
    """

    deviations: float = 1.5
    forget: Literal["reset", "sliding", "weekly", "never"] = "reset"
    least: int = 1
    sample: bool = False

    def __post_init__(self) -> None:
        if self.forget not in ("reset", "sliding", "weekly", "never"):
            raise PolicyError(f"history is forgotten by reset, sliding, weekly or never, not {self.forget!r}")
        if self.least < 1 or self.deviations < 0:
            raise PolicyError("estimates from history need at least 1 run and 0 or more standard deviations")

    @staticmethod
    def keys(workload: Workload) -> list[str]:
        """The columns that tell which runs are alike, of those that the log has."""
        columns = workload.columns
        return [name for name in KEYS if name == "procs" or (name in columns and bool((columns[name] != MISSING).any()))]

    def replay(self, workload: Workload, end: Array, counted: Array | None = None) -> History:
        """Estimates at the submission of each job, from the jobs that had ended by then.

        `end`: int64 s, when each job ended in some schedule; `counted`: bool, which jobs become history (default: all); each of
        shape (jobs,).

        >>> jobs = Workload.from_arrays(submit=[0, 10, 20], runtime=[5, 7, 9], procs=[1, 1, 1], machine_procs=4)
        >>> HistoryEstimates().replay(jobs, np.array([5, 17, 29])).estimate.tolist()
        [5, 5, 8]
        """
        runtime = np.minimum(workload.runtime, workload.requested).tolist()
        ends, submit, requested = end.tolist(), workload.submit.tolist(), workload.requested.tolist()
        labels = list(
            zip(*((workload.procs if name == "procs" else workload.columns[name]).tolist() for name in self.keys(workload)), strict=True)
        )
        counts = [True] * len(workload) if counted is None else counted.tolist()
        estimate, known = [0] * len(workload), [False] * len(workload)
        by_key: dict[tuple[int, ...], Moments] = defaultdict(Moments)
        everything = Moments()
        running: list[tuple[int, int]] = []
        week = 0
        for job, now in enumerate(submit):
            while running and running[0][0] <= now:
                ended, other = heapq.heappop(running)
                self._observe(by_key, labels[other], runtime[other], ended)
                everything.add(runtime[other], ended)
            if self.forget == "weekly" and now // WEEK != week:
                week = now // WEEK
                by_key.clear()
            mine = self._current(by_key, labels[job], now)
            known[job] = mine is not None
            source = mine or (everything if everything.runs else None)
            bound = requested[job] if source is None else math.ceil(source.bound(self.deviations, self.sample) - 1e-9)
            estimate[job] = max(bound, 1)
            if counts[job]:
                heapq.heappush(running, (ends[job], job))
        return History(np.array(estimate, np.int64), np.array(known, bool))

    def _observe(self, by_key: dict[tuple[int, ...], Moments], label: tuple[int, ...], runtime: int, end: int) -> None:
        mine = by_key[label]
        if self.forget == "reset" and mine.runs and end - mine.last > WEEK:
            mine = by_key[label] = Moments()
        mine.add(runtime, end)
        if self.forget == "sliding":
            mine.recent.append((end, runtime))

    def _current(self, by_key: dict[tuple[int, ...], Moments], label: tuple[int, ...], now: int) -> Moments | None:
        """What is known of a key now, None if it is too old or too little."""
        mine = by_key.get(label)
        if mine is None:
            return None
        if self.forget == "reset" and now - mine.last > WEEK:
            del by_key[label]
            return None
        while mine.recent and now - mine.recent[0][0] > WEEK:
            end, runtime = mine.recent.popleft()
            mine.add(runtime, end, -1)
        return mine if mine.runs >= self.least else None
