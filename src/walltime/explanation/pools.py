"""Explain a wait on a machine with several pools from the schedule: the parts of the wait by cause, and the jobs that overtook."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from walltime.estimates import effective_times
from walltime.explanation import sentences
from walltime.explanation.alternatives import alternatives
from walltime.explanation.node_room import shortages
from walltime.explanation.records import Change, Explanation, Overtaker, common_fields
from walltime.machine import NO_OVERHEAD, Machine, Placement
from walltime.machine.overheads import decision_times, release_times, scheduler_view
from walltime.machine.placing import NEVER, amount_of
from walltime.machine.tables import RESOURCES
from walltime.metrics import levels_at, steps
from walltime.node_demands import pool_needs
from walltime.schedule.schedule import Schedule
from walltime.wording import counted, human_time, listed, sanitize

Array = np.ndarray


@dataclass(frozen=True)
class Obstacles:
    """The parts of a job's wait, s, by cause.

    `window`: a window did not allow the job to start. `limit`: a limit of the site was reached. `outage`: too little was free
    because of an outage. `reservation`: the job fitted only on nodes reserved for other jobs, or not in its own reservation. `too_few`,
    `few_second`, `few_both`: too few processors were free, too little of the second resource, or both. `features`, `memory`, `resource`,
    `nodes`: enough was free in the pools, but not on single nodes: on nodes with the requested features or GPU type, with enough memory,
    with enough of the second resource, or in the requested distribution. `others`: enough was free, but reserved for other jobs or held
    back by the queue order, or no scheduler had run yet. `overhead`: the time until the scheduler ran, and from its decision to the start.
    """

    window: int = 0
    limit: int = 0
    outage: int = 0
    reservation: int = 0
    too_few: int = 0
    few_second: int = 0
    few_both: int = 0
    features: int = 0
    memory: int = 0
    resource: int = 0
    nodes: int = 0
    others: int = 0
    overhead: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineExplanation(Explanation):
    """The explanation of a job's wait on a machine with several pools; jobs are numbers in the log, times are simulated, s.

    `submit`: when it became eligible, after the jobs on which it depends. `pools`: the pools that it may use. `capacity`, `free`: their
    processors and second resource, in total and free at `submit`. `ahead`: number of waiting jobs then that had arrived earlier and use
    these pools. `overtaken_by`: jobs that arrived later, started earlier, and use these pools; their delays are unknown. `reservations`:
    its first reservation, if it had one.
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

    @property
    def short_of(self) -> str:
        """Return the resource that the job lacked for the longest time, as a column name: `procs`, the second resource, or `mem_mb`.

        If the job lacked none, return the second resource if the job needs it, because this resource is scarcer than processors.
        """
        placement, held = self.schedule.placement, self.held_back
        second = placement.machine.second if placement is not None and self.second else "procs"
        spans: dict[str, int] = {"procs": held.too_few + held.nodes}
        spans[second] = spans.get(second, 0) + held.few_second + held.few_both + held.resource + (held.features if self.second else 0)
        spans["mem_mb"] = spans.get("mem_mb", 0) + held.memory
        return max(spans, key=lambda name: spans[name]) if any(spans.values()) else second


def machine_explanation(schedule: Schedule, job: int, sooner: bool, progress: Callable[[int], None] | None) -> MachineExplanation:
    """Return the explanation of the wait of the job with this index; `sooner`: also try changes that may let it start sooner."""
    placement, given, w = schedule.placement, schedule.given, schedule.workload
    assert placement is not None, "single pools have another explanation"
    assert given is not None, "both engines record the jobs' pools"
    machine = placement.machine
    own = machine.partitions[placement.partition[job]]
    places = [machine.place_of(name) for name in own.pools]
    usable = places
    if schedule.simulated_on == "nodes":  # only these have the requested features and type of GPUs
        needs = pool_needs(w, placement)
        usable = [p for p in places if needs.sets[needs.members[job], p]] or places
    had = given[:, usable].sum(axis=1)
    sharing = had.any(axis=1)
    submit, start, index = schedule.submit, schedule.start, np.arange(len(w))
    earlier = (submit < submit[job]) | ((submit == submit[job]) & (index < job))
    overtakers = np.flatnonzero(sharing & ~earlier & (index != job) & (start < start[job]))
    waited = int(start[job]) > int(submit[job])
    seen = _by_decisions(schedule, placement)
    held = _held_back(*seen, job, places)
    held = replace(held, overhead=max(int(start[job] - submit[job]) - sum(vars(held).values()), 0))
    reserved = int(schedule.reserved_start[job])
    why = MachineExplanation(
        **common_fields(schedule, job),
        second=int(placement.second[job]),
        partition=own.name,
        pools=tuple(machine.pools[p].name for p in usable),
        capacity=tuple(_capacity(machine, usable).sum(axis=0).tolist()),
        free=_free_at_submission(*seen, job, usable),
        ahead=int((sharing & earlier & (start > submit[job])).sum()),
        depended=bool(placement.after[job]) and int(submit[job]) > int(w.submit[job]),
        held_back=held,
        reservations=(Change(int(submit[job]), "made", reserved),) if waited and reserved >= 0 else (),
        overtaken_by=tuple(
            Overtaker(int(w.job_id[k]), int(had[k, 0]), int(start[k]), int(w.planned[k]), int(schedule.runtime[k]), "", -1, 0)
            for k in overtakers[np.argsort(start[overtakers], kind="stable")].tolist()
        ),
        alternatives=tuple(alternatives(schedule, job, progress)) if sooner and waited else (),
    )
    return replace(why, texts=tuple(_texts(why)))


def _capacity(machine: Machine, places: list[int]) -> Array:
    """Return the processors and second resource of these pools, shape (pools, 2)."""
    return np.array([[machine.pools[p].nodes * machine.pools[p].procs, machine.pools[p].nodes * machine.pools[p].second] for p in places])


# ---------------------------------------------------------------------------------------------- what held it back


def _by_decisions(schedule: Schedule, placement: Placement) -> tuple[Schedule, Placement]:
    """Return schedule and placement as the scheduler sees them: a job holds processors from its start decision until their release."""
    own = placement.machine.overhead
    if own == NO_OVERHEAD:
        return schedule, placement
    workload, seen = scheduler_view(schedule.workload, placement)
    submitted = None if schedule.submitted is None else -(-schedule.submitted // own.tick) * own.tick
    start, end = decision_times(schedule.start, placement), release_times(own, schedule.end)
    return replace(schedule, workload=workload, start=start, end=end, submitted=submitted), seen


def _free_at_submission(schedule: Schedule, placement: Placement, job: int, places: list[int]) -> Any:
    """Return the free processors and second resource of these pools just before the job's submission."""
    time, given = int(schedule.submit[job]), schedule.given
    assert given is not None
    before = np.flatnonzero((schedule.start < time) & (schedule.end > time))
    free = _capacity(placement.machine, places) - given[before][:, places].sum(axis=0, dtype=np.int64)
    for pool, procs, second, since, until, _ in placement.outages:
        if pool in places and since <= time < until:
            free[places.index(pool)] -= procs, second
    return tuple(np.maximum(free, 0).sum(axis=0).tolist())


def _held_back(schedule: Schedule, placement: Placement, job: int, places: list[int]) -> Obstacles:
    begin, end, given = int(schedule.submit[job]), int(schedule.start[job]), schedule.given
    assert given is not None
    capacity = _capacity(placement.machine, places)
    need = np.array([schedule.workload.procs[job], placement.second[job]])
    limits = placement.limits_of[job]
    mates = [np.array([k for k, own in enumerate(placement.limits_of) if limit in own]) for limit in limits]
    near = (schedule.start < end) & (schedule.end > begin) & (schedule.end > schedule.start)
    near[job] = False
    length = int(schedule.workload.planned[job])
    changes = [begin]
    for first, last, known in (*(one[3:] for one in placement.outages), *(one[1:] for one in placement.reservations)):
        changes += [first, last, max(known, first - length + 1)]  # the last: from then on, the job's planned end is after `first`
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
        times = np.array([placement.limits_of[k].count(limit) for k in of.tolist()], np.int64)
        amounts = np.stack([times, schedule.workload.procs[of], placement.second[of]], axis=1)
        own = np.array([limits.count(limit), *need])
        over |= (_running(schedule, of, amounts, moments) + own > np.array(placement.limits[limit], np.float64)).any(axis=1)
        if placement.node_limits and placement.node_limits[limit] < NEVER:
            over |= _nodes(schedule, of, moments) + _nodes(schedule, np.array([job]), np.array([end])) > placement.node_limits[limit]
        if placement.run_seconds:
            over |= _run_seconds(schedule, of, moments) + need[0] * length > placement.run_seconds[limit]
    shut = placement.shut(job, int(effective_times(schedule.workload, schedule.overrun)[1][job]), moments)
    lengths = np.diff(np.append(moments, max(end, begin)))
    fits, would_fit = (with_outages >= need).all(axis=1), (without >= need).all(axis=1)
    spans = {"window": shut, "limit": over & ~shut}
    over |= shut
    rooms = shortages(schedule, job, moments, ~over & fits)
    waits = ~over & fits & ~np.any(list(rooms.values()), axis=0)
    rooms["outage"] |= ~over & ~fits & would_fit
    spans |= {**rooms, "others": waits}
    short = ~over & ~would_fit
    procs, second = (without < need).T
    spans |= {"too_few": short & ~second, "few_second": short & ~procs, "few_both": short & procs & second}
    return Obstacles(**{name: int(lengths[mask].sum()) for name, mask in spans.items()})


def _run_seconds(schedule: Schedule, jobs: Array, moments: Array) -> Array:
    """Return the processor-seconds that remain until the limits of the jobs running at each moment, int64."""
    start, end, planned = schedule.start[jobs], schedule.end[jobs], schedule.workload.planned[jobs]
    limits = planned if schedule.limit is None else np.minimum(schedule.limit[jobs], planned)
    left = np.maximum(0, (start + limits)[:, None] - moments) * ((start[:, None] <= moments) & (moments < end[:, None]))
    return np.asarray(schedule.workload.procs[jobs] @ left)


def _nodes(schedule: Schedule, jobs: Array, moments: Array) -> Array:
    """Return the number of different nodes on which these jobs run at each moment, int64."""
    assert schedule.slots is not None
    of, node = (np.asarray(column) for column in schedule.slots[:2])
    mine = np.isin(of, jobs)
    node, start, end = node[mine], schedule.start[of[mine]], schedule.end[of[mine]]
    return np.array([len(np.unique(node[(start <= moment) & (moment < end)])) for moment in moments.tolist()], np.int64)


def _moments(placement: Placement, window: int, begin: int, end: int) -> list[int]:
    """Return the times in [begin, end) at which a window opens or closes."""
    hours = placement.windows[window].until(end)
    times = np.concatenate([hours.begin, hours.end])
    return [int(time) for time in times[(times >= begin) & (times < end)]]


def _running(schedule: Schedule, jobs: Array, amounts: Array, moments: Array) -> Array:
    """Return the amounts in use by these jobs at each moment, shape (moments, kinds); `amounts`: of each job, shape (jobs, kinds)."""
    start, end = schedule.start[jobs], schedule.end[jobs]
    return np.stack([levels_at(*steps(start, end, column), moments) for column in amounts.T], axis=1)


# ---------------------------------------------------------------------------------------------- in words


def _texts(why: MachineExplanation) -> sentences.Texts:
    second = why.schedule.placement.machine.second if why.schedule.placement is not None else ""
    also = f" and {amount_of(why.second, second)}" if why.second else ""
    yield "", sentences.headline(why, f"{counted(why.procs, 'processor')}{also} of the partition {why.partition}")
    yield from sentences.recorded(why)
    if why.wait:
        yield "reason", f"{_obstacles(why)}; {sentences.overtook_it(len(why.overtaken_by))}"
    if why.depended:
        when = why.schedule.workload.origin.when(why.submit)
        yield "held", f"eligible at {when}, when the jobs that it depends on had ended; its wait counts from then"
    else:
        yield from sentences.eligible(why)
    pools = f"pool {why.pools[0]}" if len(why.pools) == 1 else f"pools {listed(why.pools)}"
    free = f"in the {pools}, {why.free[0]:,} of {counted(why.capacity[0], 'processor')}"
    free += f" and {why.free[1]:,} of {amount_of(why.capacity[1], second)}" if why.second else ""
    yield "at submission", f"{free} free; {sentences.ahead_of_it(why.ahead)}"
    yield from sentences.interrupted(why)
    if why.reservations:
        yield "start", sentences.from_reservation(why.reservations[0].start, why)
    if why.overtaken_by:
        yield "overtaken by", _overtaking(why)
    yield from sentences.sooner(why)


def _obstacles(why: MachineExplanation) -> str:
    held, placement = why.held_back, why.schedule.placement
    second = placement.machine.second if placement is not None else ""
    node = ", or no scheduler had run yet" if why.policy.startswith("slurm") else ""
    words = {
        "too_few": "too few processors were free",
        "few_second": f"too few {RESOURCES.get(second, second)} were free" if second != "mem_mb" else "too little memory was free",
        "few_both": f"too few processors and too {'little' if second == 'mem_mb' else 'few'} {RESOURCES.get(second, second)} were free",
        "features": f"enough resources were free, but not on nodes with {_wanted(why)}",
        "memory": "enough processors were free, but without enough memory on the same nodes",
        "resource": f"enough processors were free, but without enough {RESOURCES.get(second, second)} on the same nodes",
        "nodes": "enough processors were free, but not in the requested distribution over nodes",
        "outage": "too few resources were free because of an outage",
        "reservation": _reserved(why) if held.reservation else "",
        "window": "the site was closed to such jobs",
        "limit": f"a limit held it back ({_limits(why)})",
        "others": f"enough resources were free, but reserved for other jobs or for jobs ahead of it in the queue{node}",
        "overhead": "the scheduler had not run yet, or the job was being started",
    }
    spans = [(getattr(held, name), text) for name, text in words.items() if getattr(held, name)]
    if len(spans) == 1:
        return f"for the whole wait, {spans[0][1]}"
    return "; ".join(f"for {human_time(seconds)}, {text}" for seconds, text in sorted(spans, key=lambda one: -one[0]))


def _wanted(why: MachineExplanation) -> str:
    """Describe the features and the type of GPUs that the job requests."""
    w, names = why.schedule.workload, []
    for column, what in (("constraints", "the features"), ("requested_gpu_type", "GPUs of the type")):
        number = int(w.columns[column][why.index]) if column in w.columns else -1
        names += [f"{what} {w.origin.name_of(column, number)}"] if number > 0 else []
    return listed(names or ["its features"])


def _reserved(why: MachineExplanation) -> str:
    """Describe the job's own reservation, or the reservations of other jobs that kept it from nodes."""
    placement = why.schedule.placement
    assert placement is not None
    tables, own = placement.machine.reservations, int(placement.reservation[why.index])
    names = list(dict.fromkeys(one.name for one in tables))
    if own:
        return f"its reservation {sanitize(names[own - 1])} had not begun, or its nodes were in use"
    until = why.start + int(why.schedule.workload.planned[why.index])
    near = [tables[k].name for k, begin, end, _ in placement.reservations if end > why.submit and begin < until]
    kept = listed([sanitize(name) for name in dict.fromkeys(near)])
    return f"it had room only on nodes that were kept for {'reservation' if len(set(near)) == 1 else 'reservations'} {kept}"


def _limits(why: MachineExplanation) -> str:
    """Describe the limits that apply to the job."""
    placement = why.schedule.placement
    assert placement is not None
    return f"at most {', or '.join(dict.fromkeys(limit_words(placement, limit) for limit in placement.limits_of[why.index]))} at a time"


def limit_words(placement: Placement, limit: int, used: Sequence[int] = ()) -> str:
    """Describe a limit, such as "64 processors"; `limit`: its index; `used`: the amounts in use, which are then added."""
    if limit >= len(placement.limits) - len(placement.counted):
        return placement.counted[limit - len(placement.limits)]
    jobs, procs, second = placement.limits[limit]
    texts = counted(jobs, "job"), counted(procs, "processor"), amount_of(second, placement.machine.second)
    limited = [k for k, most in enumerate(placement.limits[limit]) if most < NEVER]
    named = [texts[k] + (f" ({used[k]:,} in use)" if used else "") for k in limited]
    minutes = placement.run_seconds[limit] // 60 if placement.run_seconds and placement.run_seconds[limit] < NEVER else None
    return " and ".join([*named, *([] if minutes is None else [f"{minutes:,} processor-minutes until their limits"])])


def _overtaking(why: MachineExplanation) -> str:
    largest = sorted(why.overtaken_by, key=lambda one: -one.procs * one.runtime)[: sentences.MOST_LISTED]
    each = [f"job {one.job} ({counted(one.procs, 'processor')}, {human_time(one.runtime)})" for one in largest]
    return f"{counted(len(why.overtaken_by), 'later job')}: {', '.join(each)}{sentences.more(len(why.overtaken_by))}"
