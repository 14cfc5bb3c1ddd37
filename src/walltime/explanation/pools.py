"""Why a job waited on a machine of several pools, by the schedule: what it shared with others, and what held it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from walltime.estimates import effective_times
from walltime.explanation.alternatives import smaller_jobs
from walltime.explanation.records import Alternative, Change, Explanation, Overtaker
from walltime.explanation.sentences import at, count, more, owner, reserved_in_the_end, sooner_sentences, submitted
from walltime.machine import NO_OVERHEAD, Machine, Placement
from walltime.machine.overheads import decision_times, release_times, scheduler_view
from walltime.machine.placing import NEVER
from walltime.policy import Kind
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.wording import human_time, lower_first
from walltime.workload import Workload

Array = np.ndarray
POLICIES = ("fcfs", "easy", "conservative")
MOST_JOBS = 3
"""So many overtaking jobs are told one by one."""


@dataclass(frozen=True)
class Obstacles:
    """How long of its wait what held a job back, s.

    `window`: hours of the site in which such jobs do not start. `limit`: one of its limits. `outage`: too little was free because of an
    outage. `too_few`: too little was free. `others`: enough was free in its pools, but not for it: it was reserved for others, kept by the
    order of the queue, not on the nodes that it needs, or no scheduler had looked yet. `overhead`: until the scheduler looked, and from
    its decision to the start.
    """

    window: int = 0
    limit: int = 0
    outage: int = 0
    too_few: int = 0
    others: int = 0
    overhead: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineExplanation(Explanation):
    """What happened to one job on a machine of several pools; jobs are numbers of the log, times s of the simulation.

    `submit`: from when it waited, the ends of the jobs on which it depends considered. `pools`: those of its partition; `capacity`: their
    processors and second resource, `free`: what was free of these when it was submitted. `ahead`: how many jobs waited then that had
    arrived earlier and have processors of these pools. `overtaken_by`: jobs that arrived later, started earlier, and have processors of
    them; who delayed whom is not known. `reservations`: its first one, if it had one.
    """

    second: int
    partition: str
    pools: tuple[str, ...]
    capacity: tuple[int, int]
    free: tuple[int, int]
    ahead: int
    depended: bool
    held_back: Obstacles
    reservations: tuple[Change, ...]
    overtaken_by: tuple[Overtaker, ...]


def machine_explanation(schedule: Schedule, job: int, sooner: bool, progress: Callable[[int], None] | None) -> MachineExplanation:
    """The explanation of a job's wait, by its index; `sooner`: also simulate what would have let it start sooner."""
    placement, given, w = schedule.placement, schedule.given, schedule.workload
    assert placement is not None, "or it is told otherwise"
    assert given is not None, "both engines say what the jobs had"
    machine = placement.machine
    own = machine.partitions[placement.partition[job]]
    places = [machine.place_of(name) for name in own.pools]
    had = given[:, places].sum(axis=1)
    sharing = had.any(axis=1)
    submit, start, index = schedule.submit, schedule.start, np.arange(len(w))
    earlier = (submit < submit[job]) | ((submit == submit[job]) & (index < job))
    overtakers = np.flatnonzero(sharing & ~earlier & (index != job) & (start < start[job]))
    waited = int(start[job]) > int(submit[job])
    free, held = _held_back(*_by_decisions(schedule, placement), job, places)
    held = replace(held, overhead=max(int(start[job] - submit[job]) - sum(vars(held).values()), 0))
    reserved = int(schedule.reserved_start[job])
    why = MachineExplanation(
        job=int(w.job_id[job]),
        submit=int(submit[job]),
        start=int(start[job]),
        end=int(schedule.end[job]),
        procs=int(w.procs[job]),
        second=int(placement.second[job]),
        partition=own.name,
        pools=own.pools,
        requested=int(w.requested[job]),
        runtime=int(schedule.runtime[job]),
        kind=Kind(schedule.kind[job]).name.lower(),
        policy=schedule.label,
        capacity=_pair(_capacity(placement.machine, places).sum(axis=0)),
        free=free,
        ahead=int((sharing & earlier & (start > submit[job])).sum()),
        depended=bool(placement.after[job]) and int(submit[job]) > int(w.submit[job]),
        held_back=held,
        reservations=(Change(int(submit[job]), "made", reserved),) if waited and reserved >= 0 else (),
        overtaken_by=tuple(
            Overtaker(int(w.job_id[k]), int(had[k, 0]), int(start[k]), int(w.believed[k]), int(schedule.runtime[k]), "", -1, 0)
            for k in overtakers[np.argsort(start[overtakers], kind="stable")].tolist()
        ),
        alternatives=tuple(_alternatives(schedule, job, progress)) if sooner and waited else (),
        schedule=schedule,
    )
    object.__setattr__(why, "sentences", tuple(_sentences(why)))
    return why


def _capacity(machine: Machine, places: list[int]) -> Array:
    """Processors and second resource of these pools, a row each."""
    return np.array([[machine.pools[p].nodes * machine.pools[p].procs, machine.pools[p].nodes * machine.pools[p].second] for p in places])


def _pair(values: Any) -> tuple[int, int]:
    return int(values[0]), int(values[1])


# ---------------------------------------------------------------------------------------------- what held it back


def _by_decisions(schedule: Schedule, placement: Placement) -> tuple[Schedule, Placement]:
    """The schedule and the jobs' needs as the scheduler saw them: jobs have their processors from the decision until these are free."""
    own = placement.machine.overhead
    if own == NO_OVERHEAD:
        return schedule, placement
    workload, seen = scheduler_view(schedule.workload, placement)
    submitted = None if schedule.submitted is None else -(-schedule.submitted // own.tick) * own.tick
    start, end = decision_times(schedule.start, placement), release_times(own, schedule.end)
    return replace(schedule, workload=workload, start=start, end=end, submitted=submitted), seen


def _held_back(schedule: Schedule, placement: Placement, job: int, places: list[int]) -> tuple[tuple[int, int], Obstacles]:
    """What was free in these pools when the job was submitted, just before any job started then, and what held it back how long."""
    begin, end, given = int(schedule.submit[job]), int(schedule.start[job]), schedule.given
    assert given is not None
    capacity = _capacity(placement.machine, places)
    need = np.array([schedule.workload.procs[job], placement.second[job]])
    limits = placement.limits_of[job]
    mates = [np.array([k for k, own in enumerate(placement.limits_of) if limit in own]) for limit in limits]
    near = (schedule.start < end) & (schedule.end > begin) & (schedule.end > schedule.start)
    near[job] = False
    changes = [begin, *(moment for outage in placement.outages for moment in outage[3:5])]
    changes += [moment for k in (placement.windows_of[job] if placement.windows else ()) for moment in _moments(placement, k, begin, end)]
    moments = np.unique(np.concatenate([schedule.start[near], schedule.end[near], np.array(changes, np.int64)]))
    moments = moments[(moments >= begin) & (moments < max(end, begin + 1))]
    jobs = np.flatnonzero(near)
    used = np.stack([_running(schedule, jobs, given[jobs][:, p].astype(np.int64), moments) for p in places])
    missing = np.zeros_like(used)
    for pool, procs, second, since, until, _ in placement.outages:
        if pool in places:
            missing[places.index(pool), (moments >= since) & (moments < until)] += (procs, second)
    with_outages = np.maximum(capacity[:, None] - used - missing, 0).sum(axis=0)
    without = np.maximum(capacity[:, None] - used, 0).sum(axis=0)
    over = np.zeros(len(moments), bool)
    for limit, of in zip(limits, mates, strict=True):
        of = of[near[of]]
        amounts = np.stack([np.ones(len(of), np.int64), schedule.workload.procs[of], placement.second[of]], axis=1)
        own = np.array([1, *need])
        over |= (_running(schedule, of, amounts, moments) + own > np.array(placement.limits[limit], np.float64)).any(axis=1)
    shut = placement.shut(job, int(effective_times(schedule.workload, schedule.overrun)[1][job]), moments)
    lengths = np.diff(np.append(moments, max(end, begin)))
    fits, would_fit = (with_outages >= need).all(axis=1), (without >= need).all(axis=1)
    spans = {"window": shut, "limit": over & ~shut}
    over |= shut
    spans |= {"outage": ~over & ~fits & would_fit, "too_few": ~over & ~would_fit, "others": ~over & fits}
    held = Obstacles(**{name: int(lengths[mask].sum()) for name, mask in spans.items()})
    before = jobs[schedule.start[jobs] < begin]
    at_first = np.stack([_running(schedule, before, given[before][:, p].astype(np.int64), np.array([begin])) for p in places])
    return _pair(np.maximum(capacity - at_first[:, 0] - missing[:, 0], 0).sum(axis=0)), held


def _moments(placement: Placement, window: int, begin: int, end: int) -> list[int]:
    """When a window begins and ends in a stretch of time."""
    hours = placement.windows[window].until(end)
    times = np.concatenate([hours.begin, hours.end])
    return [int(time) for time in times[(times >= begin) & (times < end)]]


def _running(schedule: Schedule, jobs: Array, amounts: Array, moments: Array) -> Array:
    """What these jobs use together from each moment on; `amounts`: a row per job. Shape (moments, kinds of amounts)."""
    by_start, by_end = np.argsort(schedule.start[jobs], kind="stable"), np.argsort(schedule.end[jobs], kind="stable")
    zero = np.zeros((1, amounts.shape[1]), np.int64)
    come = np.concatenate([zero, np.cumsum(amounts[by_start], axis=0)])
    gone = np.concatenate([zero, np.cumsum(amounts[by_end], axis=0)])
    begun = np.searchsorted(schedule.start[jobs][by_start], moments, side="right")
    ended = np.searchsorted(schedule.end[jobs][by_end], moments, side="right")
    return come[begun] - gone[ended]


# ---------------------------------------------------------------------------------------------- what would have helped


def _alternatives(schedule: Schedule, job: int, progress: Callable[[int], None] | None) -> Iterator[Alternative]:
    """Shorter requests, fewer processors, other partitions and other policies, each with the start of the job that it gives."""
    was, number = int(schedule.start[job]), schedule.workload.job_id[job]
    placement = schedule.placement
    assert placement is not None
    for done, (what, value, workload, scheduler) in enumerate(_changes(schedule, placement, job)):
        alive = None if progress is None else partial(_tell, progress, done)
        other = run_of(workload, scheduler, overrun=schedule.overrun, machine=placement.machine)
        engine = other.engine(schedule.engine)
        engine.run(alive)
        place = np.flatnonzero(other.workload.job_id == number)
        if len(place):  # it may be too wide for another partition
            start = engine.start_of(int(place[0])) + placement.machine.overhead.start
            yield Alternative(what, value, start, was - start)


def _tell(progress: Callable[[int], None], done: int, _started: int) -> None:
    progress(done)


def _changes(schedule: Schedule, placement: Placement, job: int) -> Iterator[tuple[str, int | str, Workload, Scheduler]]:
    """What is changed, to which value, and the workload and the scheduler with it."""
    w, scheduler = schedule.workload, Scheduler.of_schedule(schedule)
    for what, value, workload in smaller_jobs(schedule, job):
        yield what, value, workload, scheduler
    for k, partition in enumerate(placement.machine.partitions):
        if k != placement.partition[job] and (number := w.origin.number_of("partition", partition.name)) >= 0 and "partition" in w.columns:
            column = w.columns["partition"].copy()
            column[job] = number
            yield "partition", partition.name, replace(w, columns={**w.columns, "partition": column}), scheduler
    for text in POLICIES:
        other = parse_scheduler(text)
        if other.policy != scheduler.policy:
            yield "policy", text, w, Scheduler(other.policy, scheduler.prediction)


# ---------------------------------------------------------------------------------------------- in words


def _sentences(why: MachineExplanation) -> Iterator[str]:
    second = why.schedule.placement.machine.second if why.schedule.placement is not None else ""
    asked = f"Job {why.job}{owner(why)} asked for {count(why.procs, 'processor')}"
    asked += f" and {why.second:,} {second}" if why.second else ""
    asked += f" of the partition {why.partition} for {human_time(why.requested)}, and ran for {human_time(why.runtime)}"
    waited = f"it waited {human_time(why.wait)} and started at {at(why, why.start)}" if why.wait else "it started at once"
    came = f"able to run, after those on which it depends, at {at(why, why.submit)}" if why.depended else submitted(why)
    yield f"{asked}. Under {lower_first(why.schedule.title)}, {came}, {waited}."
    whose = f"of the pool {why.pools[0]}" if len(why.pools) == 1 else f"of the pools {', '.join(why.pools)}"
    ahead = f"{count(why.ahead, 'job')} waited ahead of it for these" if why.ahead else "nobody waited ahead of it for these"
    free = f"{why.free[0]:,} of {count(why.capacity[0], 'processor')} {whose} were free"
    free += f", {why.free[1]:,} of {why.capacity[1]:,} {second}" if why.second else ""
    yield f"Just before it came, {free}, and {ahead}."
    if why.wait == 0:
        return
    yield _holding(why)
    told = _overtaking(why)
    yield (f"{reserved_in_the_end(why.reservations[0].start, why)} " if why.reservations else "") + told
    if helped := " ".join(sooner_sentences(why)):
        yield helped


def _holding(why: MachineExplanation) -> str:
    held = why.held_back
    node = "; it may not have been on the nodes that it needs, or no scheduler had looked yet" if why.policy.startswith("slurm") else ""
    words = {
        "too_few": "too little was free",
        "outage": "too little was free because of an outage",
        "window": "the site's windows did not let it start at that hour",
        "limit": f"a limit held it back ({_limits(why)})",
        "others": f"enough was free, but reserved for others or kept by the order of the queue{node}",
        "overhead": "the scheduler had not looked yet, or the job was being started",
    }
    spans = [(getattr(held, name), text) for name, text in words.items() if getattr(held, name)]
    if len(spans) == 1:
        return f"All the time that it waited, {spans[0][1]}."
    return f"Of its wait, {', '.join(f'for {human_time(seconds)} {text}' for seconds, text in sorted(spans, key=lambda one: -one[0]))}."


def _limits(why: MachineExplanation) -> str:
    """The limits that the job counts towards, in words."""
    placement = why.schedule.placement
    assert placement is not None
    job = int(np.flatnonzero(why.schedule.workload.job_id == why.job)[0])
    limits = []
    for limit in placement.limits_of[job]:
        amounts = zip(placement.limits[limit], ("jobs", "processors", placement.machine.second), strict=True)
        limits.append(" and ".join(f"{most:,} {what}" for most, what in amounts if most < NEVER))
    return f"at most {', or '.join(dict.fromkeys(limits))} at a time"


def _overtaking(why: MachineExplanation) -> str:
    if not why.overtaken_by:
        return "No job that arrived later started before it there."
    largest = sorted(why.overtaken_by, key=lambda one: -one.procs * one.runtime)[:MOST_JOBS]
    each = [f"job {one.job} ({count(one.procs, 'processor')}, {human_time(one.runtime)})" for one in largest]
    return (
        f"{count(len(why.overtaken_by), 'job')} that arrived later started before it there: {', '.join(each)}{more(len(why.overtaken_by))}."
    )
