"""The environments of `walltime.learn` once more, in plain Python from their guide: lists of jobs, nothing kept that can be counted again.

An episode is a generator, which stops where somebody is to decide. It shares no code with the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.estimates import effective_times
from walltime.learn.batch import Rules
from walltime.learn.sources import Episode

COLUMNS = ("requested_memory", "user", "group", "executable")
WEEK, MONTH, DAY = 7 * 86_400, 30 * 86_400, 86_400
SCORES = {
    "fcfs": lambda job, now: 0,
    "sjf": lambda job, now: job.planned,
    "saf": lambda job, now: job.planned * job.procs,
    "wfp3": lambda job, now: -(math.prod([(now - job.submit) / job.planned] * 3) * job.procs),
    "unicep": lambda job, now: -(now - job.submit + 1e-20) / ((math.log2(job.procs) + 1e-20) * job.planned),
    "f1": lambda job, now: math.log10(job.planned) * job.procs + 870 * math.log10(max(job.submit, 0.1)),
    "f2": lambda job, now: math.sqrt(job.planned) * job.procs + 25_600 * math.log10(max(job.submit, 0.1)),
    "f3": lambda job, now: job.planned * job.procs + 6_860_000 * math.log10(max(job.submit, 0.1)),
    "f4": lambda job, now: job.planned * math.sqrt(job.procs) + 530_000 * math.log10(max(job.submit, 0.1)),
}
"""Formulas of zhang20; the lowest comes first, ties by arrival."""
COSTS = {
    "wait": lambda wait, runtime: wait,
    "response": lambda wait, runtime: wait + runtime,
    "slowdown": lambda wait, runtime: (wait + runtime) / max(runtime, 1),
    "bounded_slowdown": lambda wait, runtime: max(1, (wait + runtime) / max(runtime, 10)),
}


@dataclass(eq=False)
class Job:
    """A job; the first ones of a list are the first to arrive."""

    submit: int
    runtime: int
    planned: int
    procs: int
    columns: tuple[int, ...] = ()
    """memory, user, group, executable; -1 if unknown"""
    start: int | None = None

    @property
    def end(self) -> int:
        """Where it terminates."""
        assert self.start is not None
        return self.start + self.runtime

    @property
    def expected(self) -> int:
        """Where the scheduler expects it to end."""
        assert self.start is not None
        return self.start + self.planned


class Twin:
    """One environment. `decide` gives the state to decide in and takes a decision; `over` when all jobs have started."""

    def __init__(self, episode: Episode, rules: Rules, formulas: tuple[str, ...]):
        workload, self.rules, self.formulas = episode.workload, rules, formulas
        runtime, planned = effective_times(workload, rules.overrun)
        unknown = np.full(len(workload), -1)
        shown = [workload.columns.get(name, unknown).tolist() for name in COLUMNS]
        columns = (workload.submit.tolist(), runtime.tolist(), planned.tolist(), workload.procs.tolist(), zip(*shown, strict=True))
        self.jobs = [Job(*values) for values in zip(*columns, strict=True)]
        self.size, self.scales = workload.machine_procs, episode.scales
        self.now = episode.begin
        self.running = [Job(row[0], row[1], row[2], row[3], start=row[0]) for row in episode.running.tolist()]
        self.waiting, self.coming = self.jobs[: episode.waiting], self.jobs[episode.waiting :]
        self.theirs = rules.dialect == "rlscheduler"
        self.committed = self.theirs or bool(rules.committed)
        self.head: Job | None = None
        self.shadow: tuple[Job, int, int] | None = None
        self.filling = False
        self.formula, self.choose_at = "fcfs", self.now
        self.over = False
        self.owed = self._owed()
        self._going = self._episode()
        self._go(None)

    # ------------------------------------------------------------------------------------------------- what an agent sees

    @property
    def free(self) -> int:
        """Free processors."""
        return self.size - sum(job.procs for job in self.running)

    def shown(self) -> list[Job]:
        """The jobs in the slots."""
        count, queue = self.rules.shown, self.waiting
        if len(queue) <= count or not self.rules.alternates:
            return queue[:count]
        shortest = sorted(queue, key=lambda job: (job.planned, job.submit, job.procs))
        smallest = sorted(queue, key=lambda job: (job.procs, job.submit, job.planned))
        found: list[Job] = []
        for pair in zip(shortest, smallest, strict=True):
            found += [job for job in dict.fromkeys(pair) if job not in found]
        return found[:count]

    def mask(self) -> list[int]:
        """Which actions are allowed."""
        rules = self.rules
        if rules.decision == "formula" and not self.over:
            return [1] * len(self.formulas)
        if self.over:
            return [1] + [0] * (rules.actions - 1)
        found = [int(not self.filling or self._may_fill(job)) for job in self.shown()]
        found += [0] * (rules.shown - len(found))
        if rules.skips:
            found.append(int(rules.decision == "backfill" or bool(self.running or self.coming)))
        return found

    def observation(self) -> tuple[list[list[float]], list[float]]:
        """The rows of the slots, and the summary of the queue."""
        rows = [self._row(job) for job in self.shown()]
        padding = [0.0] * 7 if self.rules.observation == "compact" else [0.0] + [1.0] * 6 + [0.0]
        rows += [padding] * (self.rules.shown - len(rows))
        work = sum(job.planned * job.procs for job in self.waiting) / self.size
        told = [self.free / self.size, _share(len(self.waiting), 1024), _share(work, MONTH), 0.0, 0.0, self.now % DAY / DAY]
        if self.filling:
            _, shadow, extra = self.shadow
            told[3] = _share(max(shadow - self.now, 0), WEEK)
            told[4] = 0.0 if self.theirs else max(extra, 0) / self.size
        return rows, told

    def _row(self, job: Job) -> list[float]:
        wait, fits = self.now - job.submit, job.procs <= self.free
        if self.rules.observation == "compact":
            behind = float(self.filling and self._may_fill(job))
            return [
                *(1.0, _share(wait, WEEK), _share(job.planned, WEEK), job.procs / self.size, float(fits)),
                *(_share(wait / job.planned, 1000), behind),
            ]
        most = 0.99999
        shares = [wait / 43_200, job.planned / max(self.scales["runtime"], 1), job.procs / self.size]
        told = zip(COLUMNS, job.columns, strict=True)
        numbers = [1.0 if value < 0 else min(value / max(self.scales[name], 1), most) for name, value in told]
        return [*(min(share, most) for share in shares), *numbers, most if fits else 0.00001]

    # ------------------------------------------------------------------------------------------------------- what happens

    def decide(self, action: int) -> float:
        """Decide; returns the reward. What the mask forbids counts as the first action that it allows."""
        mask = self.mask()
        if action >= len(mask) or not mask[action]:
            action = mask.index(1)
        self._go(action)
        before, self.owed = self.owed, self._owed()
        return (before - self.owed) / len(self.jobs)

    def _go(self, action: int | None) -> None:
        try:
            self._going.send(action)
        except StopIteration:
            self.over = True

    def _owed(self) -> float:
        arrived = [job for job in self.jobs if job.start is not None or job in self.waiting]
        cost = COSTS.get(self.rules.reward, COSTS["bounded_slowdown"])
        return sum(cost((self.now if job.start is None else job.start) - job.submit, job.runtime) for job in arrived)

    def _episode(self) -> Generator[None, int, None]:
        while any(job.start is None for job in self.jobs):
            self._next_events()
            yield from self._pass()

    def _next_events(self) -> None:
        ends = [job.end for job in self.running]
        arrivals = [job.submit for job in self.coming]
        self.now = max(self.now, min(ends + arrivals))
        if self.theirs:  # one of them, an arrival before a termination
            if arrivals and arrivals[0] <= min(ends, default=arrivals[0]):
                self.waiting.append(self.coming.pop(0))
            else:
                self.running.remove(min(self.running, key=lambda job: job.end))
            return
        self.running = [job for job in self.running if job.end > self.now]
        self.waiting += [job for job in self.coming if job.submit <= self.now]
        self.coming = [job for job in self.coming if job.submit > self.now]

    def _pass(self) -> Generator[None, int, None]:
        while self.waiting:
            if self.head is None:
                yield from self._choose_head()
                if self.head is None:  # skipped
                    return
            if self.head.procs > self.free:
                break
            self._start(self.head)
            self.head = None
        if self.head is not None and self.rules.backfilling:
            self._reserve(self.head)
            yield from self._fill()
        if not self.committed:
            self.head = None

    def _choose_head(self) -> Generator[None, int, None]:
        rules = self.rules
        if rules.decision == "both" and not self.committed and all(job.procs > self.free for job in self.waiting):
            return  # whoever came next, nothing would happen
        if rules.decision in ("next", "both"):
            action = yield
            self.head = None if action == rules.shown else self.shown()[action]
            return
        if rules.decision == "formula" and self.now >= self.choose_at:
            action = yield
            self.formula, self.choose_at = self.formulas[action], self.now + rules.period
        self.head = self._best(self.waiting, self.formula)

    def _best(self, jobs: list[Job], formula: str) -> Job:
        return min(jobs, key=lambda job: SCORES[formula](job, self.now))

    def _reserve(self, head: Job) -> None:
        """When the head can start at the latest, if nobody outlives the plan, and what will be free then beside it."""
        if self.theirs and self.shadow is not None and self.shadow[0] is head:
            return
        for time in sorted({self.now, *(max(job.expected, self.now) for job in self.running)}):
            free = self.size - sum(job.procs for job in self.running if job.expected > time)
            if free >= head.procs:
                self.shadow = (head, time, free - head.procs)
                return

    def _may_fill(self, job: Job) -> bool:
        _, shadow, extra = self.shadow
        end = self.now + job.planned
        in_time = end < shadow if self.theirs else end <= shadow
        return job is not self.head and job.procs <= self.free and (in_time or (not self.theirs and job.procs <= extra))

    def _fill(self) -> Generator[None, int, None]:
        rules = self.rules
        while candidates := [job for job in self.waiting if self._may_fill(job)]:
            if rules.decision == "both" and not any(self._may_fill(job) for job in self.shown()):
                return
            if rules.decision in ("backfill", "both"):
                self.filling = True
                action = yield
                self.filling = False
                if action == rules.shown:
                    return
                job = self.shown()[action]
            else:
                job = self._best(candidates, "fcfs" if self.theirs else self.formula)
            head, shadow, extra = self.shadow
            if self.now + job.planned > shadow:
                self.shadow = (head, shadow, extra - job.procs)
            self._start(job)

    def _start(self, job: Job) -> None:
        job.start = self.now
        self.waiting.remove(job)
        self.running.append(job)


def _share(value: float, scale: float) -> float:
    return min(math.log1p(value) / math.log1p(scale), 1.0)


def options_of(draw: Any) -> dict[str, Any]:
    """Options of an environment, from a function that draws one of some values."""
    decision = draw(["next", "backfill", "formula", "both"])
    dialect = draw(["papers", "rlscheduler"])
    return {
        "decision": decision,
        "dialect": dialect,
        "committed": draw([None, True] if dialect == "rlscheduler" else [None, True, False]),
        "backfilling": decision in ("backfill", "both") or draw([True, False]),
        "skip": draw([True, False]),
        "period": draw([1, 3, 20]),
        "observation": draw(["compact", "published"]),
        "slots": draw([1, 2, 3, 5, 8, 40]),
        "selection": draw([None, "arrival", "published"]),
        "reward": draw(list(COSTS)),
        "overrun": draw(["kill", "extend", "continue"]),
    }
