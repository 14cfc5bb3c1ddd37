"""One-step agreement: at every recorded instant, in the recorded state, what would the policy start?

A simulation that runs freely drifts away from what a machine did, whatever its policy. Here the machine's record is followed, and the
policy is asked at each instant: it makes its pass (passes/) in the state that the record has led to. Two shares say how well it explains
the record: of the starts that were recorded, those that it would have made; and of what it would have started, what was started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.decisions import STEPS, Decisions, RecordedJobs
from walltime.auditor.lowering import lowered
from walltime.auditor.passes import state as s
from walltime.auditor.passes.asked import ask_along
from walltime.errors import PolicyError, WorkloadError
from walltime.machine.windows import Hours
from walltime.policy import PAPERS, Dialect, Policy
from walltime.predictors import Prediction
from walltime.workload import Workload

__all__ = ["OneStep", "Score", "SiteRules", "one_step"]

Array = np.ndarray
LONGEST = np.iinfo(np.int64).max // 4
WINDOW = np.dtype([(name, np.int64) for name in ["next", "last", "crossing"]], align=True)
"""A window: which of the begins and ends comes next, where its own end, and whether jobs are not planned across its begins."""

_ASKED = "eligible user forbidden recorded since last episodes asked hit short delay"
ASKED = np.dtype([(name, np.int64) for name in _ASKED.split()], align=True)
"""A job. `eligible`: when it may start at the earliest. `user`: whose limit it counts in, -1 for none. `forbidden`: by which rule, at the
last instant. `recorded`: its recorded start. `since`: since when the policy has wished to start it, -1 if it does not. `last`: the instant
at which it gave up such a wish. `episodes`: how often such a wish began. `asked`: 1 once it has started. `hit`: 1 if the policy would have
started it then. `short`: 1 if it needed more processors than the record leaves. `delay`: from the beginning of the wish, s."""


class Asked(NamedTuple):
    """What the site's rules are, and what the policy has answered; `windows_of`: whether each window (row) holds for each job."""

    jobs: Any
    windows: Any
    windows_of: Array
    begins: Array
    ends: Array
    at_once: Array
    running_of: Array
    queue: Array
    line: Array
    back: Array
    running: Array


@dataclass(frozen=True)
class SiteRules:
    """What a site lets start when, besides its policy.

    `windows`: hours, and for which jobs (bool) they hold. `eligible`: the earliest start of each job, int64 s, None without. `at_once`: how
    many jobs of each user run at once, by the number in the log's column `user`, int64, 0 for no limit.
    """

    windows: Sequence[tuple[Hours, Array]] = ()
    eligible: Array | None = None
    at_once: Array | None = None


@dataclass(frozen=True)
class OneStep:
    """What a policy would have started along a record. One entry per job of the workload, in its order.

    `counted`: the jobs whose start is recorded. `made`: the policy would have made its start. `wishes`: how many times it began to wish to
    start the job. `delay`: from then to the recorded start, s, -1 where it was not made. `short`: jobs that started although the record
    leaves fewer processors than they need.
    """

    counted: Array
    made: Array
    wishes: Array
    delay: Array
    short: Array

    def score(self, chosen: Array | None = None) -> Score:
        """The shares over these jobs (bool, one entry per job), by default all."""
        mask = self.counted if chosen is None else self.counted & chosen
        jobs, made, wishes = int(mask.sum()), int(self.made[mask].sum()), int(self.wishes[mask].sum())
        return Score(jobs, made, wishes)


@dataclass(frozen=True)
class Score:
    """How well a policy explains the starts of some jobs: `made` of `jobs` starts, and `wishes` of which so many were followed."""

    jobs: int
    made: int
    wishes: int

    @property
    def at(self) -> float:
        """The share of the recorded starts that the policy would have made."""
        return self.made / self.jobs if self.jobs else float("nan")

    @property
    def precision(self) -> float:
        """The share of what the policy would have started that was started while it wished to."""
        return self.made / self.wishes if self.wishes else float("nan")

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.jobs + self.wishes
        return 2 * self.made / total if total else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """The counts and the shares, ready for JSON; an undefined share is None."""
        shares = {name: getattr(self, name) for name in ("at", "precision", "f1")}
        return asdict(self) | {name: None if np.isnan(value) else value for name, value in shares.items()}


def one_step(
    workload: Workload,
    start: Array,
    policy: Policy,
    *,
    end: Array | None = None,
    procs: int | None = None,
    chosen: Array | None = None,
    rules: SiteRules | None = None,
    dialect: Dialect | str = PAPERS,
    prediction: Prediction | str | None = None,
    progress: Callable[[int], None] | None = None,
) -> OneStep:
    """Ask a policy at every recorded instant what it would start.

    `start`: recorded starts, int64 s, one per job; jobs with a negative one are left out. `end`: by default `start` and the runtime.
    `procs`: size of the machine, by default the workload's; a wider job is never started. `chosen`: bool, the jobs of a part of the
    machine. Raises PolicyError for a policy whose passes are unknown here, and WorkloadError where no start is recorded.
    """
    rules, reading, own = rules or SiteRules(), Dialect.of(dialect), Prediction.of(prediction)
    counted = start >= 0 if chosen is None else (start >= 0) & chosen
    job = np.flatnonzero(counted)
    if not len(job):
        raise WorkloadError(f"{workload.origin.name} records no starts of these jobs; take a log with waits")
    size = workload.machine_procs if procs is None else procs
    lowering = lowered(reading.apply(policy), reading, own, size, False)
    if lowering is None:
        raise PolicyError(f"{policy.label} decides in ways of its own, so it cannot be asked; take one of the known policies")
    ended = start + workload.runtime if end is None else end
    estimate = np.maximum(workload.believed, 1)
    recorded = RecordedJobs(job, workload.submit[job], start[job], ended[job], (ended - start)[job], estimate[job], None, None)
    along = Decisions(workload, recorded, reading.apply(policy), reading, own, lowering)
    place = along.recorded.job
    asked = _asked(workload, rules, place)
    asked.jobs.eligible[workload.procs[place] > size] = LONGEST
    state = along.memory.state
    while True:
        status = ask_along(*along.memory, asked, STEPS // 20)
        if status == s.DONE:
            break
        if status == s.ASKS:
            along.answer()
        elif progress is not None:
            progress(int(state.started))
    made, wishes, delay, short = (np.zeros(len(workload), np.int64) for _ in range(4))
    for column, name in ((made, "hit"), (wishes, "episodes"), (delay, "delay"), (short, "short")):
        column[place] = asked.jobs[name]
    return OneStep(counted, made.astype(bool), wishes, delay, short.astype(bool))


def _asked(workload: Workload, rules: SiteRules, place: Array) -> Asked:
    """Memory for the answers."""
    jobs = np.zeros(len(place), ASKED).view(np.recarray)
    jobs.since = jobs.last = jobs.user = jobs.delay = -1
    jobs.eligible = -LONGEST if rules.eligible is None else rules.eligible[place]
    limited = rules.at_once is not None and "user" in workload.columns
    at_once = np.zeros(0, np.int64)
    if limited:
        assert rules.at_once is not None
        at_once, jobs.user = rules.at_once, workload.columns["user"][place]
    windows = np.zeros(len(rules.windows), WINDOW).view(np.recarray)
    bounds = np.cumsum([0, *(len(hours.begin) for hours, _ in rules.windows)])
    windows.next, windows.last = bounds[:-1], bounds[1:]
    windows.crossing = [int(hours.crossing) for hours, _ in rules.windows]
    begins, ends = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(hours, name) for hours, _ in rules.windows)]) for name in ("begin", "end")
    )
    windows_of = np.array([mask[place] for _, mask in rules.windows], np.uint8).reshape(len(windows), len(place))
    lists = (np.zeros(len(place), np.int64) for _ in range(4))
    return Asked(jobs, windows, windows_of, begins, ends, at_once, np.zeros(len(at_once), np.int64), *lists)
