"""Place jobs on a machine: their partitions, needs, dependencies, limits and windows."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from walltime.declared import LARGEST_INTEGER
from walltime.errors import WorkloadError
from walltime.machine.failures import with_outages
from walltime.machine.held import apply_eligible_times
from walltime.machine.machine import Machine
from walltime.machine.omissions import omissions, with_settings
from walltime.machine.tables import PERIODS, REPEATED_FOR, Limit, Outage, Partition, Qos, Reservation, numbers_of
from walltime.machine.windows import ShutHours, hours_of, seconds_of
from walltime.ragged import Ragged
from walltime.wording import counted
from walltime.workload import MISSING, Array, Workload

NEVER = np.iinfo(np.int64).max

PLACING_RULES = {
    "unknown_partition": ("drop", "The machine lacks the job's partition; scontrol shows hidden partitions only with --all."),
    "too_wide_for_partition": ("drop", "The job needs more processors or nodes than its partition has, or than it may use there."),
    "too_many_gpus": ("drop", "The job needs more GPUs than its partition has, or more per node than its nodes have."),
    "too_much_memory": ("drop", "The job needs more memory than its partition has, or more per node than its nodes have."),
    "too_much_second": ("drop", "The job needs more of the second resource than its partition has, or than its nodes have."),
    "fits_no_node": ("drop", "No nodes of the partition combine what the job requests, such as its memory and its GPUs."),
    "depends_on_failed": ("drop", "The job depends on the success of a job that failed, was cancelled or is missing."),
    "first_partition": ("change", "The log has no partition of the job: it goes to the first partition that accepts such jobs."),
    "whole_nodes": ("change", "The partition allocates whole nodes: the job's processors are rounded up."),
    "not_limited": ("change", "The machine does not describe the second resource, which the job needs: it is not limited."),
    "got_whole_nodes": ("change", "The job got all processors of its nodes, more than it requested: it gets whole nodes."),
    "unknown_features": (
        "change",
        "No node has the features, or the type of GPUs, that the job requested: it may use any node of its partition.",
    ),
    "unknown_gpu_type": (
        "change",
        "Some nodes have GPUs of several types, and neither the job's request nor its allocation names one: it gets the first type.",
    ),
    "unknown_reservation": (
        "change",
        "The machine has no such reservation for the job, or a smaller one: it is scheduled as a job without a reservation.",
    ),
    "outside_windows": ("change", "The site's windows would never let the job start: those for which it is too long are ignored."),
    "over_limit": ("change", "The job exceeds a limit on running jobs by itself, but ran: that limit does not apply to it."),
    "over_partition_limit": ("change", "The job requested more time than its partition allows: its request is cut."),
}
"""The rules of placing, each with its effect and meaning, as in `walltime.logs.RULES`."""
TOO_MUCH = {"gpus": "too_many_gpus", "mem_mb": "too_much_memory"}
"""The rules for jobs that need more of the second resource than there is, by its name; other names have the rule too_much_second."""
PLACING_REASONS = {name: meaning for name, (_, meaning) in PLACING_RULES.items()}
COMPLETED = 1


@dataclass(frozen=True, eq=False)
class Placement:
    """The needs of a workload's jobs on a machine, other than processors.

    Fields with one entry per job, in order of arrival:

    * `partition`: the number of its partition, int64; `second`: its units of the second resource, int64
    * `since`: the start (int64 s) of a job that is already running at the beginning, NEVER for other jobs
    * `after`: the indices of the jobs that must end first; `limits_of`, `windows_of`: the limits and windows that apply to it
    * `reservation`: the number of the reservation that it requests, from 1 on in the machine's order of names; 0 for none

    Fields of the machine:

    * `limits`: for each limit, the maximum number of jobs, of processors, and of units of the second resource
    * `counted`: descriptions of those limits, at the end of `limits`, towards which a job counts several times
    * `run_seconds`: for each limit, the maximum of the remaining processor-seconds of its running jobs; empty if no limit has one
    * `node_limits`: for each limit, the maximum of the nodes of its running jobs, each counted once; empty if no limit has one
    * `outages`: for each outage, its pool, processors, second resource, start, end, and the time from which it is known (s)
    * `windows`: hours in which jobs do not start
    * `reservations`: for each period of each table, the table's number, start, end, and the time from which it is known (s)
    """

    machine: Machine
    partition: Array
    second: Array
    since: Array
    after: Ragged
    limits_of: Ragged
    limits: Sequence[tuple[int, int, int]]
    outages: Sequence[tuple[int, int, int, int, int, int]]
    windows: Sequence[ShutHours]
    windows_of: Ragged
    reservation: Array
    reservations: Sequence[tuple[int, int, int, int]] = ()
    counted: Sequence[str] = ()
    run_seconds: Sequence[int] = ()
    node_limits: Sequence[int] = ()

    def shut(self, job: int, request: int, moments: Array) -> Array:
        """Return whether the windows forbid the start of the job with this index at each of these times (int64 s), bool; `request`: s."""
        shut = np.zeros(len(moments), bool)
        for k in self.windows_of[job]:
            shut |= self.windows[k].until(int(moments.max(initial=0))).shut(moments, request)
        return shut


def place(workload: Workload, machine: Machine, extends: bool = False) -> tuple[Workload, Placement]:
    """Return the jobs that can run on this machine, as they run there, and their needs.

    `extends`: whether jobs that run longer than requested are planned for their runtime.

    The function reads the column of the second resource, `partition` (by the log's names, else by the number as a name), `depends_on`
    and `depends_on_success` (job numbers), and `singleton` (1: after all earlier jobs of the same user and executable). It also reads
    `array_job`, `array_limit` (the maximum of running tasks), and `running_since` (s; the job runs at the beginning). Dropped and changed
    jobs are counted in `origin`, by PLACING_RULES.
    """
    workload = apply_eligible_times(workload, machine)
    machine = with_outages(workload, machine)
    partition, known = _partitions(workload, machine)
    wanted = np.maximum(workload.columns.get(machine.second, np.zeros(len(workload), np.int64)), 0).astype(np.int64)
    machine, second = _limited(machine, wanted)
    capacity = np.array([[pool.nodes * pool.procs, pool.nodes * pool.second] for pool in machine.pools], np.int64)
    sums = np.array([capacity[[machine.place_of(p) for p in one.pools]].sum(axis=0) for one in machine.partitions])
    node = np.array([machine.pools[machine.place_of(one.pools[0])].procs for one in machine.partitions])
    exclusive = np.array([one.exclusive for one in machine.partitions])[partition]
    whole = np.where(exclusive, -(-workload.procs // node[partition]) * node[partition], workload.procs)
    longest = np.array([NEVER if one.max_time is None else one.max_time for one in machine.partitions])[partition]
    wide, much = whole > sums[partition, 0], second > sums[partition, 1]
    impossible = _impossible(workload, known & ~wide & ~much)
    kept = known & ~wide & ~much & ~impossible
    changed = {
        "not_limited": (wanted > 0) & (machine.second_total == 0),
        "first_partition": (workload.columns.get("partition", np.full(len(workload), MISSING)) < 0) & (len(machine.partitions) > 1),
        "whole_nodes": whole != workload.procs,
        "over_partition_limit": workload.requested > longest,
    }
    drops = {"unknown_partition": ~known, "too_wide_for_partition": wide, TOO_MUCH.get(machine.second, "too_much_second"): much}
    drops["depends_on_failed"] = impossible
    if not kept.any():
        raise no_job_fits(workload, machine, {rule: int(dropped.sum()) for rule, dropped in drops.items()})
    chosen = workload.without(drops, PLACING_REASONS)
    origin = replace(chosen.origin, changed=added(workload.origin.changed, changed, kept))
    same, most = chosen.planned is chosen.requested, longest[kept]
    requested = np.minimum(chosen.requested, most)
    placed = replace(
        chosen,
        procs=whole[kept],
        requested=requested,
        planned=requested if same else np.minimum(chosen.planned, most),
        machine_procs=machine.procs,
        origin=origin,
    )
    whole_nodes = _got_whole_nodes(placed, machine, partition[kept])
    if whole_nodes.any():
        placed = replace(
            placed, columns={**placed.columns, "exclusive": np.where(whole_nodes, 1, placed.columns.get("exclusive", MISSING))}
        )
    limits_of, limits, run_seconds = _limits(placed, machine, partition[kept])
    limits_of, over = possible(placed, limits_of, limits, placed.procs, second[kept], run_seconds)
    reservation, unknown = _reservation_of(placed, machine, partition[kept])
    changed = {"over_limit": over, "got_whole_nodes": whole_nodes, "unknown_reservation": unknown}
    changes = added(origin.changed, changed, over | whole_nodes | unknown)
    placed = replace(placed, origin=replace(origin, changed=changes, omissions=omissions(placed, machine, partition[kept])))
    running_since = placed.columns.get("running_since", np.full(len(placed), MISSING))
    since = np.where(running_since != MISSING, running_since, NEVER)
    planned = machine.overhead.occupied(np.maximum(placed.planned, placed.runtime) if extends else placed.planned)
    planned[since < NEVER] = 0  # windows forbid starts, and a running job has started
    windows, windows_of, outside = hours_of(placed, machine, partition[kept], planned)
    if outside:
        placed = replace(placed, origin=replace(placed.origin, changed={**placed.origin.changed, "outside_windows": outside}))
    placement = Placement(
        machine=machine,
        partition=partition[kept],
        second=second[kept],
        since=since,
        after=_after(placed, since == NEVER),
        limits_of=limits_of,
        limits=limits,
        run_seconds=run_seconds,
        outages=[_outage(placed, machine, one) for one in machine.outages],
        windows=windows,
        windows_of=windows_of,
        reservation=np.where(since == NEVER, reservation, 0),
        reservations=[time for k, one in enumerate(machine.reservations) for time in _times(placed, one, k)],
    )
    return placed, placement


def over_limits(workload: Workload, placement: Placement) -> Array:
    """Return a mask (bool) of the placed jobs that exceed a limit by themselves; a site with this limit would never start them."""
    limits_of, limits, run_seconds = _limits(workload, placement.machine, placement.partition)
    return np.asarray(possible(workload, limits_of, limits, workload.procs, placement.second, run_seconds)[1])


def no_job_fits(workload: Workload, machine: Machine, drops: Mapping[str, int]) -> WorkloadError:
    """Return the error for a workload whose jobs are all dropped; `drops`: the number of jobs by each rule."""
    why = " ".join(f"{rule} ({count:,}): {PLACING_REASONS[rule]}" for rule, count in drops.items() if count)
    none = f"none of the {counted(len(workload), 'job')} of {workload.origin.name} can run on {machine.name}"
    return WorkloadError(f"{none}; compare their partitions and sizes. {why}", "no_job_fits")


def with_omissions(workload: Workload, machine: Machine | None) -> Workload:
    """Return the jobs with the features that the machine's nodes do not model in `origin.omissions`, without placing them."""
    if machine is None:
        return workload
    found, preempts = omissions(workload, machine, _partitions(workload, machine)[0]), (machine.policy or "").startswith("slurm")
    found = with_settings(found, machine, (), preempts)
    return replace(workload, origin=replace(workload.origin, omissions=found))


def _partitions(workload: Workload, machine: Machine) -> tuple[Array, Array]:
    """Return the number of each job's partition, and whether the machine has the partition that the log names.

    A job without a partition in the log goes to the first one that accepts its size, request and submission, else to the last one.
    """
    numbers = workload.columns.get("partition", np.full(len(workload), MISSING, np.int64))
    names = getattr(workload.origin, "names", {}).get("partition", ())
    places = {one.name: k for k, one in enumerate(machine.partitions)}
    place = np.full(len(workload), len(machine.partitions) - 1)
    for k, one in reversed(list(enumerate(machine.partitions))):
        widest, longest = (NEVER if most is None else most for most in (one.widest, one.longest))
        place[(workload.procs <= widest) & (workload.requested <= longest) & _submitted_while(workload, one, "a partition")] = k
    known = np.ones(len(workload), bool)
    for number in np.unique(numbers[numbers >= 0]).tolist():
        name = names[number - 1] if 0 < number <= len(names) else str(number)
        mine = numbers == number
        if name in places:
            place[mine] = places[name]
        elif len(machine.partitions) > 1:
            known[mine] = False
    return place, known


def _submitted_while(workload: Workload, rule: Partition | Limit, what: str) -> Array:
    """Return a mask (bool, shape (jobs,)) of the jobs submitted while a rule is valid."""
    since, until = (None if time is None else seconds_of(workload, time, what) for time in (rule.since, rule.until))
    return (workload.submit >= (-NEVER if since is None else since)) & (workload.submit < (NEVER if until is None else until))


def amount_of(number: int, resource: str) -> str:
    """Return an amount of a resource in words: of `processors`, or of a machine's second resource by its column.

    >>> amount_of(1, "processors"), amount_of(2, "gpus"), amount_of(2000, "mem_mb")
    ('1 processor', '2 GPUs', '2,000 MB of memory')
    """
    noun = {"processors": "processor", "gpus": "GPU"}.get(resource)
    if noun is not None:
        return counted(number, noun)
    return f"{number:,} MB of memory" if resource == "mem_mb" else f"{number:,} {resource}"


def _limited(machine: Machine, second: Array) -> tuple[Machine, Array]:
    """Return the machine, and the units of the second resource that each job needs on it, int64.

    A resource that no pool has is not described, so it is unlimited. Jobs then need none of it; if a limit counts it, each node gets enough
    of it for all jobs.
    """
    if machine.second_total or not second.any():
        return machine, second
    if all(limit.second is None for limit in machine.limits):
        return machine, np.zeros_like(second)
    units = min(int(second.sum()), LARGEST_INTEGER // sum(pool.nodes for pool in machine.pools))
    return replace(machine, pools=tuple(replace(pool, second=units) for pool in machine.pools)), second


_LASTING = frozenset({"first_partition", "not_limited", "over_limit"})
"""Changes that leave no trace in the jobs, so placing the jobs again repeats them."""


def added(counts: Mapping[str, int], masks: Mapping[str, Array], among: Array) -> dict[str, int]:
    """Return the counts plus the number of jobs in each mask, without changes already counted when the jobs were placed before."""
    more = {name: int(np.count_nonzero(mask & among)) for name, mask in masks.items()}
    together = {name: max if name in _LASTING else operator.add for name in more}
    return dict(counts) | {name: together[name](counts.get(name, 0), count) for name, count in more.items() if count}


def _impossible(workload: Workload, kept: Array) -> Array:
    """Return a mask of the jobs that depend on the success of a job that failed or will not run."""
    wanted = workload.columns.get("depends_on_success")
    impossible = np.zeros(len(workload), bool)
    if wanted is None:
        return impossible
    others = workload.places_of(wanted).tolist()
    status = workload.columns.get("status", np.full(len(workload), COMPLETED))
    for job in np.flatnonzero(wanted >= 0).tolist():  # in order of arrival, so that jobs that depend on dropped jobs are dropped too
        other = others[job]
        impossible[job] = other < 0 or not kept[other] or impossible[other] or status[other] not in (COMPLETED, MISSING)
    return impossible


def _after(workload: Workload, waits: Array) -> Ragged:
    """Return the jobs that must end before each job of the mask `waits` (bool); jobs that are not in the log count as ended."""
    if not any(name in workload.columns for name in ("depends_on", "depends_on_success", "singleton")):
        return Ragged.empty(len(workload))
    after: list[list[int]] = [[] for _ in range(len(workload))]
    unknown = np.full(len(workload), MISSING)
    for name in ("depends_on", "depends_on_success"):
        named = workload.columns.get(name, unknown)
        others = workload.places_of(named).tolist()
        for job in np.flatnonzero(named >= 0).tolist():
            if others[job] >= 0 and others[job] != job and others[job] not in after[job]:
                after[job].append(others[job])
    alone = workload.columns.get("singleton")
    if alone is not None:
        users, programs = (workload.columns.get(name, unknown).tolist() for name in ("user", "executable"))
        earlier: dict[tuple[int, int], list[int]] = {}
        for job in range(len(workload)):
            mine = earlier.setdefault((users[job], programs[job]), [])
            if alone[job] == 1:
                after[job] += [other for other in mine if other not in after[job]]
                mine.clear()  # later jobs wait for this one, which waits for those
            mine.append(job)
    return Ragged.of([others if waiting else [] for others, waiting in zip(after, waits.tolist(), strict=True)])


def limit_groups(workload: Workload, machine: Machine, partition: Array, limit: Limit) -> tuple[Array, Array]:
    """Return the indices of the jobs under a limit, and the number of each job's group, from 0 on; both int64.

    A group has the same values in the columns `by`. `partition`: the number of each job's partition. No job is under a limit by columns
    that the log lacks.
    """
    columns = {**workload.columns, "partition": partition, "procs": workload.procs, "requested": workload.requested}
    if any(name not in columns for name in (*limit.by, *limit.among)):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    chosen = _submitted_while(workload, limit, "a limit")
    for name, named in limit.selected:
        chosen &= np.isin(columns[name], _numbers_of(workload, machine, name, named))
    for name in limit.by:
        chosen &= columns[name] >= 0
    group = np.zeros(np.count_nonzero(chosen), np.int64)
    for name in limit.by:  # groups are ordered by the values of the first column, then of the next
        values = np.unique(columns[name][chosen], return_inverse=True)[1].ravel()
        group = np.unique(group * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].ravel()
    return np.flatnonzero(chosen), group


def _limits(workload: Workload, machine: Machine, partition: Array) -> tuple[Ragged, list[tuple[int, int, int]], list[int]]:
    """Return the limits of each job, the values of all limits (one limit per group that is counted separately), and `run_seconds`."""
    limits: list[tuple[int, int, int]] = []
    run_seconds: list[int] = []
    jobs, own_limits = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for limit in machine.limits:
        if (limit.jobs, limit.procs, limit.second, limit.run_minutes) == (None,) * 4:
            continue  # only `resources`: machine/counted_limits.py
        chosen, group = limit_groups(workload, machine, partition, limit)
        jobs.append(chosen)
        own_limits.append(len(limits) + group)
        most_jobs, most_procs, most_second = (NEVER if value is None else value for value in (limit.jobs, limit.procs, limit.second))
        limits += [(most_jobs, most_procs, most_second)] * (int(group.max()) + 1 if len(group) else 0)
        run_seconds += [NEVER if limit.run_minutes is None else 60 * limit.run_minutes] * (len(limits) - len(run_seconds))
    arrays, most = workload.columns.get("array_job"), workload.columns.get("array_limit")
    if arrays is not None and most is not None:
        for number in np.unique(arrays[(arrays >= 0) & (most > 0)]).tolist():
            mine = np.flatnonzero((arrays == number) & (most > 0))
            jobs.append(mine)
            own_limits.append(np.full(len(mine), len(limits)))
            limits.append((int(most[mine[0]]), NEVER, NEVER))
    run_seconds += [NEVER] * (len(limits) - len(run_seconds))
    own = Ragged.of_pairs(len(workload), np.concatenate(jobs), np.concatenate(own_limits))
    return own, limits, run_seconds if min(run_seconds, default=NEVER) < NEVER else []


def possible(
    workload: Workload,
    limits_of: Ragged,
    limits: Sequence[tuple[int, int, int]],
    procs: Array,
    second: Array,
    run_seconds: Sequence[int] = (),
) -> tuple[Ragged, Array]:
    """Return the limits of each job except limits that it exceeds by itself, and a mask (bool) of the jobs that exceed one.

    The waiting jobs of a snapshot keep all limits: unlike jobs of a log, they have not run in spite of a limit.
    """
    job, alone = limits_of.places, np.zeros(len(procs), bool)
    waiting = workload.columns.get("running_since", np.zeros(len(procs))) == MISSING
    waiting &= workload.columns.get("wait", np.full(len(procs), MISSING)) < 0
    needs = np.stack([np.ones(len(procs), np.int64), procs, second], axis=1)[job]
    exceeded = (needs > np.array(limits, np.int64).reshape(-1, 3)[limits_of.items]).any(axis=1)
    if len(run_seconds):
        exceeded |= (procs * np.maximum(workload.planned, workload.runtime))[job] > np.array(run_seconds, np.int64)[limits_of.items]
    exceeded &= ~waiting[job]
    alone[job[exceeded]] = True
    return Ragged.of_pairs(len(procs), job[~exceeded], limits_of.items[~exceeded]), alone


def _got_whole_nodes(workload: Workload, machine: Machine, partition: Array) -> Array:
    """Return a mask (bool) of the jobs without a recorded `exclusive` that got all processors of their nodes, more than they requested."""
    if not {"allocated_procs", "requested_procs", "nodes"} <= set(workload.columns):
        return np.zeros(len(workload), bool)
    got, requested, nodes = (workload.columns[name] for name in ("allocated_procs", "requested_procs", "nodes"))
    sizes = [[machine.pools[machine.place_of(name)].procs for name in one.pools] for one in machine.partitions]
    each, rest = np.divmod(got, np.maximum(nodes, 1))
    whole = (got > requested) & (requested > 0) & (nodes > 0) & (rest == 0) & (workload.columns.get("exclusive", np.zeros(len(got))) != 1)
    for k in np.unique(partition[whole]).tolist():
        whole &= (partition != k) | np.isin(each, sizes[k])
    return whole


def _numbers_of(workload: Workload, machine: Machine, column: str, values: Sequence[str]) -> list[int]:
    """Return the numbers of a column's values, which are given by their names or numbers in the log."""
    if column == "partition":
        return [[one.name for one in machine.partitions].index(name) for name in values]
    names = getattr(workload.origin, "names", {}).get(column, ())
    return [names.index(name) + 1 if name in names else int(name) if name.isdecimal() else MISSING for name in values]


def _outage(workload: Workload, machine: Machine, outage: Outage) -> tuple[int, int, int, int, int, int]:
    pool = machine.pools[machine.place_of(outage.pool)]
    nodes = len(numbers_of(outage.nodes, pool))
    return machine.place_of(outage.pool), nodes * pool.procs, nodes * pool.second, *_time(workload, outage, "an outage")


def _time(workload: Workload, one: Outage | Reservation, what: str) -> tuple[int, int, int]:
    """Return the start and the end of an outage or a reservation, and the time from which it is known; s."""
    begin = seconds_of(workload, one.begin, what)
    end = NEVER if one.end is None else seconds_of(workload, one.end, what)
    if end <= begin:
        raise WorkloadError(f"{what} of the pool {one.pool!r} must end after it begins; correct begin or end", "wrong_outage")
    return begin, end, begin if one.announced is None else min(seconds_of(workload, one.announced, what), begin)


def _times(workload: Workload, one: Reservation, number: int) -> list[tuple[int, int, int, int]]:
    """Return each repetition of a reservation, up to four weeks after the last submission: its number, start, end and time known, s."""
    begin, end, known = _time(workload, one, "a reservation")
    period = next((PERIODS[flag] for flag in one.flags if flag in PERIODS), 0)
    if period and end - begin > period:
        flag = next(flag for flag in one.flags if flag in PERIODS)
        raise WorkloadError(f"the {flag} reservation {one.name!r} must end before it begins again; correct begin or end", "wrong_outage")
    last = int(workload.submit.max(initial=0)) + REPEATED_FOR
    shifts = range(0, max(1, last - begin), period) if period else [0]
    return [(number, begin + shift, end + shift, known) for shift in shifts]


def _reservation_of(workload: Workload, machine: Machine, partition: Array) -> tuple[Array, Array]:
    """Return the number of each job's reservation, 0 for none, and a mask of the jobs whose reservation the machine lacks."""
    numbers = workload.columns.get("reservation")
    found = np.zeros(len(workload), np.int64)
    if numbers is None or not machine.reservations:
        return found, np.zeros(len(workload), bool)
    names = list(dict.fromkeys(one.name for one in machine.reservations))
    for number in np.unique(numbers[numbers > 0]).tolist():
        name = workload.origin.name_of("reservation", number)
        for k in np.flatnonzero(numbers == number).tolist() if name in names else ():
            tables = [one for one in machine.reservations if one.name == name and one.pool in machine.partitions[partition[k]].pools]
            procs = sum(len(numbers_of(one.nodes, pool)) * pool.procs for one in tables for pool in machine.pools if pool.name == one.pool)
            found[k] = (names.index(name) + 1) * (procs >= workload.procs[k] and all(_admits(one, workload, k) for one in tables))
    return found, (numbers > 0) & (found == 0)


def _admits(one: Reservation, workload: Workload, job: int) -> bool:
    """Return whether the users and accounts of a reservation admit a job."""
    columns = {"user": one.users, "group": one.accounts}
    of_job = {name: workload.origin.name_of(name, int(workload.columns[name][job])) for name in columns if name in workload.columns}
    return not any(columns.values()) or any(of_job.get(name) in names for name, names in columns.items())


def may_preempt(workload: Workload, machine: Machine) -> Array:
    """Return a mask (bool) of the jobs that may preempt others: by the tier of their partition, or by their quality of service.

    Raises WorkloadError if the log does not name the partitions or the qualities of service that decide this.
    """
    by_qos = any(one.preempts for one in machine.qos)
    column, what = ("queue", "qualities of service") if by_qos else ("partition", "partitions")
    if column not in workload.columns:
        raise WorkloadError(
            f"{workload.origin.name} does not name the {what} of its jobs, so the jobs that may preempt others are unknown; use a log with "
            "this column, or a machine file without preemption",
            "missing_column",
        )
    if by_qos:
        return qos_values(workload, machine, lambda one: float(bool(one.preempts)), 0.0) > 0
    weak = [one for one in machine.partitions if one.preempt != "off"]
    strong = [any(one.tier > other.tier and {*one.pools} & {*other.pools} for other in weak) for one in machine.partitions]
    return np.array(strong)[_partitions(workload, machine)[0]]


def qos_factors(workload: Workload, machine: Machine) -> Array:
    """Return the factor, 0 to 1, of each job's quality of service (the column `queue` in Slurm's logs); 0 where it is unknown."""
    most = max([1, *(one.priority for one in machine.qos)])
    return qos_values(workload, machine, lambda one: one.priority / most, 0.0)


def qos_values(workload: Workload, machine: Machine, value: Callable[[Qos], float], otherwise: float) -> Array:
    """Return a value of each job's quality of service (the column `queue` in Slurm's logs); `otherwise` where it is unknown."""
    numbers = workload.columns.get("queue", np.full(len(workload), MISSING))
    values = {one.name: value(one) for one in machine.qos}
    of = {number: values.get(workload.origin.name_of("queue", number), otherwise) for number in np.unique(numbers).tolist()}
    return np.array([of[number] for number in numbers.tolist()])
