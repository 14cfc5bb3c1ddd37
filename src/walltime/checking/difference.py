"""The first difference between two schedules of one log, the state of the machine at that time, and the rules behind each schedule.

Up to the first difference both schedules have the same machine and queue, and no scheduler sees the future. So each scheduler is tried on
the jobs submitted until then. It explains a file if its schedule equals the file's up to and including that instant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.checking.scheduler_trials import SchedulerTrial, SchedulerTrials, rule_of
from walltime.errors import WorkloadError
from walltime.estimates import effective_times
from walltime.machine import Machine, Placement
from walltime.machine.placing import amount_of
from walltime.policy import Dialect
from walltime.policy.easy import find_shadow
from walltime.simulation.run import placed_on
from walltime.tables import Facts
from walltime.wording import counted, human_time, listed
from walltime.workload import Array, Workload, check_workload
from walltime.workload.scaling import with_submits

Columns = Mapping[str, Array]
LISTED = 12
"""Maximum number of waiting jobs to name."""


@dataclass(frozen=True)
class PartitionState:
    """The jobs in a partition, and in the partitions that share pools with it, just before the first difference.

    * `partition`, `pools`: the partition of the first job that differs, and its pools
    * `partitions`: the names of the partition and of those that share pools with it
    * `running`: number of jobs that run in `partitions`
    * `resources`: the names of the machine's resources; the next three have one amount for each
    * `needs`: the request of the first job that differs; `size`: the capacity of `pools`
    * `used`: the usage of the running jobs, some of which may be in other pools
    """

    partition: str
    pools: tuple[str, ...]
    partitions: tuple[str, ...]
    running: int
    resources: tuple[str, ...]
    needs: tuple[int, ...]
    size: tuple[int, ...]
    used: tuple[int, ...]

    def text(self) -> str:
        """Return the state in words."""
        of = f"partition {self.partitions[0]}" if len(self.partitions) == 1 else f"the partitions {listed(self.partitions)}"
        size = f"{_amounts(self.resources, self.size)} in the {'pool' if len(self.pools) == 1 else 'pools'} {listed(self.pools)}"
        return f"{size}; {counted(self.running, 'running job')} of {of} used {_amounts(self.resources, self.used)}"


def _amounts(resources: Sequence[str], amounts: Sequence[int]) -> str:
    return listed([amount_of(amount, name) for name, amount in zip(resources, amounts, strict=True)])


@dataclass(frozen=True)
class FirstDifference:
    """The first instant at which two schedules differ, and the state just before it; times in s, jobs by their numbers.

    * `time`: the instant; `what`: `start`, or `end` if the first job that differs starts at the same time in both files
    * `job`, `submit`, `procs`, `requested`: the first job that differs; `starts`, `ends`: its start and end in both files
    * `free`: number of free processors before any start at `time`
    * `running`, `waiting`: the jobs just before `time`, the waiting ones by arrival
    * `started`: for each file, the jobs that start at `time` in this file only; `both`: the jobs that start then in both
    * `head`: the first job by arrival that starts at `time` in neither file
    * `shadow`: the latest start of `head` if running jobs end by their requests; `extra`: the extra processors at that time
    * `state`: the state of the job's partition; None without a machine

    `head`, `shadow` and `extra` are -1 without such a job, or on a machine.
    """

    time: int
    what: str
    job: int
    submit: int
    procs: int
    requested: int
    starts: tuple[int, int]
    ends: tuple[int, int]
    free: int
    running: tuple[int, ...]
    waiting: tuple[int, ...]
    started: tuple[tuple[int, ...], tuple[int, ...]]
    both: tuple[int, ...]
    head: int = -1
    shadow: int = -1
    extra: int = -1
    state: PartitionState | None = None


@dataclass(frozen=True, eq=False)
class Difference:
    """The differences between two schedules, and the rule behind the first one.

    * `names`: the names of both files; `starts`, `ends`: the times of their jobs, int64 s, in the workload's order
    * `jobs`: number of jobs in both files; `only`: for each file, the number of rows that the other file, or the log, lacks
    * `moved`: number of jobs that start at different times; `ended`: number of other jobs that end at different times
    * `first`: the first difference, None without one; `rule`: a sentence that explains it
    * `trials`: the schedulers that were tried, the best first; `untried`: the default schedulers left out because only the slow reference
      engine simulates them
    """

    workload: Workload
    names: tuple[str, str]
    jobs: int
    only: tuple[int, int]
    moved: int
    ended: int
    first: FirstDifference | None
    rule: str
    trials: tuple[SchedulerTrial, ...]
    untried: tuple[str, ...]
    starts: tuple[Array, Array]
    ends: tuple[Array, Array]

    @property
    def identical(self) -> bool:
        """Return whether both schedules have the same jobs, starts and ends."""
        return self.first is None and self.only == (0, 0)

    def texts(self) -> list[tuple[str, str]]:
        """Return the result in words: a headline without a label, then texts with labels."""
        a, b = self.names
        only = [(name, count) for name, count in zip(self.names, self.only, strict=True) if count]
        rows = [("only in one", f"{counted(count, 'job')} in {name}, or not in the log") for name, count in only]
        p = self.first
        if p is None:
            return [("", f"{a} and {b} are the same schedule: {counted(self.jobs, 'job')} with equal starts and ends"), *rows]
        ended = f", {self.ended:,} start at the same time but end at a different one" if self.ended else ""
        rows.insert(0, ("", f"{self.moved:,} of {self.jobs:,} jobs {'starts' if self.moved == 1 else 'start'} at a different time{ended}"))
        wanted = counted(p.procs, "processor")
        if p.state is not None and len(p.state.needs) > 1 and p.state.needs[1]:
            wanted += f" and {_amounts(p.state.resources[1:], p.state.needs[1:])}"
        size = f"{wanted}, {human_time(p.requested)} requested"
        rows.append(("first difference", f"job {p.job} ({size}), submitted at {self._at(p.submit)}"))
        times = p.ends if p.what == "end" else p.starts
        rows += [(f"{p.what} in {name}", self._at(time)) for name, time in zip(self.names, times, strict=True)]
        if p.what == "end":
            return [*rows, ("explanation", self.rule)]
        busy = f"{p.free:,} of {self.workload.machine_procs:,} processors free, {counted(len(p.running), 'job')} running"
        waiting = f", {len(p.waiting):,} waiting" + (f" ({_jobs(p.waiting)}, in order of arrival)" if p.waiting else "")
        rows.append(("just before", busy + waiting))
        if p.state is not None:
            rows.append((f"partition {p.state.partition}", p.state.text()))
        starts = [(own, f"only in {name}") for name, own in zip(self.names, p.started, strict=True)]
        started = [f"{'job' if len(own) == 1 else 'jobs'} {_jobs(own)} {where}" for own, where in (*starts, (p.both, "in both")) if own]
        rows.append(("started then", "; ".join(started) or "no job"))
        if p.head >= 0:
            latest = f"it starts at {self._at(p.shadow)} at the latest and leaves {counted(p.extra, 'extra processor')}"
            rows.append(("still waiting", f"job {p.head} is first in both queues; according to the requests, {latest}"))
        slow = (
            f"{', '.join(self.untried)}; only the slow engine simulates them on this machine. Name them to try them."
            if self.untried
            else ""
        )
        return [*rows, ("explanation", self.rule), *([("not tried", slow)] if slow else [])]

    def sentences(self) -> list[str]:
        """Return the result in words, a line each."""
        return [f"{label}: {text}" if label else text for label, text in self.texts()]

    def _at(self, seconds: int) -> str:
        """Return a time of the log, with its date if the log has dates."""
        origin = self.workload.origin
        return origin.when(seconds) + (f" ({seconds:,} s)" if origin.moment(seconds) else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the result, ready for JSON."""
        values = {"identical": self.identical, "files": list(self.names), "jobs": self.jobs, "only": list(self.only)}
        values |= {"moved": self.moved, "ended": self.ended, "first": None if self.first is None else asdict(self.first)}
        return values | {"rule": self.rule, "trials": [asdict(trial) for trial in self.trials], "untried": list(self.untried)}

    def __repr__(self) -> str:
        return f"<Difference: {self.moved:,} of {self.jobs:,} jobs start at a different time>"

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return Facts("Two schedules", [(str(k + 1), sentence) for k, sentence in enumerate(self.sentences())])._repr_html_()


def _jobs(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - LISTED:,} more" if len(numbers) > LISTED else ""
    return ", ".join(map(str, numbers[:LISTED])) + more


def diff(
    a: Columns,
    b: Columns,
    workload: Workload,
    *,
    names: tuple[str, str] = ("A", "B"),
    policies: Sequence[str] | None = None,
    dialects: Sequence[Dialect | str] | None = None,
    overrun: str = "kill",
    machine: Machine | None = None,
    progress: Callable[[int], None] | None = None,
) -> Difference:
    """Find the first difference between two schedules of a log, and the rule that explains it.

    `a`, `b`: columns from `walltime.read_schedule` or `Schedule.columns()`: `job_id, start, end`, int64 s; an equal `submit` in both
    replaces the log's. `policies`, `dialects`: schedulers and dialects to try, by default the usual schedulers, and every dialect and
    interpretation. `overrun`: as in `simulate`. `machine`: schedulers are tried on it, its own policy first; jobs that cannot run there are
    left out. `progress` is called with the number of trials done. Raises WorkloadError if the files and the log have no job in common,
    PolicyError for an unknown scheduler or dialect.

    >>> import walltime as wt
    >>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> found = diff(wt.simulate(jobs, "fcfs").columns(), wt.simulate(jobs, "easy").columns(), jobs)
    >>> found.first.time, found.first.job, found.rule.partition(",")[0]
    (2, 3, 'A matches a simulation of fcfs')
    """
    check_workload(workload)
    matched = _Matched(a, b, workload, machine)
    first = matched.first_difference()
    rule, trials, untried = "", [], []
    if first is not None and first.what == "end":
        rule = _explain_ends(matched, first, names)
    elif first is not None:
        several = SchedulerTrials(matched.workload, matched.start, matched.end, first.time, overrun, progress, machine)
        trials = several.run(policies, dialects)
        rule, untried = rule_of(trials, names, len(matched.workload)), several.untried
    jobs, starts, ends = matched.workload, matched.start, matched.end
    return Difference(jobs, names, len(jobs), matched.only, *matched.counts(), first, rule, tuple(trials), tuple(untried), starts, ends)


class _Matched:
    """The jobs in both files and in the log, with their placement, and `start` and `end` in each file in the workload's order (int64 s)."""

    def __init__(self, a: Columns, b: Columns, workload: Workload, machine: Machine | None):
        rows = []
        for columns in (a, b):
            order = np.argsort(columns["job_id"], kind="stable")
            ids = columns["job_id"][order]
            place = np.searchsorted(ids, workload.job_id).clip(max=max(len(ids) - 1, 0))
            known = ids[place] == workload.job_id if len(ids) else np.zeros(len(workload), bool)
            rows.append((columns, order, place, known))
        common = rows[0][3] & rows[1][3]
        if not common.any():
            raise WorkloadError("the two schedules and the log have no job in common; check the column job_id", "other_jobs")
        self.only = (len(a["job_id"]) - int(common.sum()), len(b["job_id"]) - int(common.sum()))
        own = [{name: columns[name][order][place[common]] for name in columns} for columns, order, place, _ in rows]
        if not common.all():
            workload = workload.take(common, "the jobs of both schedules")
        submit = [columns.get("submit") for columns in own]
        if submit[0] is not None and submit[1] is not None and (submit[0] == submit[1]).all() and (submit[0] != workload.submit).any():
            order = np.lexsort((workload.job_id, submit[0]))
            own = [{name: values[order] for name, values in of.items()} for of in own]
            workload = with_submits(workload, submit[0]).with_feedback(False)
        self.placement: Placement | None = None
        if machine is not None:
            jobs, self.placement = placed_on(workload, machine)
            places = workload.places_of(jobs.job_id)
            own, workload = [{name: values[places] for name, values in of.items()} for of in own], jobs
        self.workload = workload
        self.start: tuple[Array, Array] = (own[0]["start"], own[1]["start"])
        self.end: tuple[Array, Array] = (own[0]["end"], own[1]["end"])

    def counts(self) -> tuple[int, int]:
        """Return the number of jobs that start at different times, and of other jobs that end at different times."""
        moved = self.start[0] != self.start[1]
        return int(moved.sum()), int((~moved & (self.end[0] != self.end[1])).sum())

    def first_difference(self) -> FirstDifference | None:
        """Return the first difference; None if there is none."""
        w, moved = self.workload, self.start[0] != self.start[1]
        ended = ~moved & (self.end[0] != self.end[1])
        never = np.iinfo(np.int64).max
        when = np.where(moved, np.minimum(*self.start), np.where(ended, np.minimum(*self.end), never))
        if not (moved | ended).any():
            return None
        job = int(np.argmin(when))
        now = int(when[job])
        if moved[when == now].any():
            job = int(np.flatnonzero((when == now) & moved)[0])
        start, end = self.start[0], self.end[0]  # up to now both files have the same starts and ends
        running = (start < now) & (end > now)
        free = w.machine_procs - int(w.procs[running].sum())
        waiting = (w.submit <= now) & (np.minimum(*self.start) >= now)
        began = [s == now for s in self.start]
        left = waiting & ~began[0] & ~began[1]
        both = began[0] & began[1]
        head, shadow, extra = -1, -1, -1
        if left.any() and self.placement is None:
            first = int(np.flatnonzero(left)[0])
            head = int(w.job_id[first])
            expected = [(max(int(start[i] + w.planned[i]), now + 1), int(w.procs[i])) for i in np.flatnonzero(running)]
            expected += [(now + int(w.planned[i]), int(w.procs[i])) for i in np.flatnonzero(both)]
            shadow, extra = find_shadow(expected, free - int(w.procs[both].sum()), int(w.procs[first]), now)

        def numbers(mask: Array) -> tuple[int, ...]:
            return tuple(w.job_id[mask].tolist())

        return FirstDifference(
            time=now,
            what="start" if moved[job] else "end",
            job=int(w.job_id[job]),
            submit=int(w.submit[job]),
            procs=int(w.procs[job]),
            requested=int(w.requested[job]),
            starts=(int(self.start[0][job]), int(self.start[1][job])),
            ends=(int(self.end[0][job]), int(self.end[1][job])),
            free=free,
            running=numbers(running),
            waiting=numbers(waiting),
            started=(numbers(began[0] & ~began[1]), numbers(began[1] & ~began[0])),
            both=numbers(both),
            head=head,
            shadow=shadow,
            extra=extra,
            state=None if self.placement is None else _state_of(self.placement, w, job, running),
        )


def _state_of(placement: Placement, w: Workload, job: int, running: Array) -> PartitionState:
    """Return the state of the partition of a job; `running`: which jobs run just before the difference (bool)."""
    machine, own = placement.machine, placement.machine.partitions[placement.partition[job]]
    sharing = [k for k, one in enumerate(machine.partitions) if set(one.pools) & set(own.pools)]
    there = running & np.isin(placement.partition, sharing)
    pools = [machine.pools[machine.place_of(name)] for name in own.pools]
    amounts = [("processors", w.procs, [pool.procs for pool in pools])]
    if machine.second_total:
        amounts.append((machine.second, placement.second, [pool.second for pool in pools]))
    return PartitionState(
        partition=own.name,
        pools=own.pools,
        partitions=tuple(machine.partitions[k].name for k in sharing),
        running=int(there.sum()),
        resources=tuple(name for name, _, _ in amounts),
        needs=tuple(int(needed[job]) for _, needed, _ in amounts),
        size=tuple(sum(pool.nodes * each for pool, each in zip(pools, sizes, strict=True)) for _, _, sizes in amounts),
        used=tuple(int(needed[there].sum()) for _, needed, _ in amounts),
    )


def _explain_ends(matched: _Matched, first: FirstDifference, names: tuple[str, str]) -> str:
    """Return words for the overrun rule that gives the end in each file."""
    w = matched.workload
    job = int(np.flatnonzero(w.job_id == first.job)[0])
    each = []
    for name, start, end in zip(names, first.starts, first.ends, strict=True):
        ran, fits = end - start, []
        for overrun, words in (("kill", "ends at its requested time"), ("continue", "runs as long as in the log")):
            if ran == int(effective_times(w, overrun)[0][job]):
                fits.append(words)
        each.append(f"in {name} it {' and '.join(fits) if fits else f'runs for {ran:,} s, which no rule for overruns gives'}")
    return f"the job's runtime is {int(w.runtime[job]):,} s in the log; " + ", ".join(each)
