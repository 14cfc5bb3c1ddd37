"""Variations of a workload: its load, its period, its machine, and random shifts of submit times."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.wording import counted, human_time, seed_fault
from walltime.workload.draws import uniforms
from walltime.workload.drops import TOO_WIDE
from walltime.workload.workload import Workload

Array = np.ndarray
LOWEST_LOAD, HIGHEST_LOAD = 1e-6, 1.5
TOLERANCES = {"interarrival": 0.01, "runtime": 0.01, "machine": 0.1, "size": 0.1, "thin": 0.1, "users": 0.1}
"""Maximum relative deviation of the achieved from the requested load."""
WAYS = tuple(TOLERANCES)
"""The ways to change the load: see `scale_load`."""
MOST_COPIES = 100
"""Maximum number of copies of a job."""
LONGEST_SHAKE = 10**9

HOUR, WEEK = 3600, 7 * 86_400
STREAM_SHAKE, STREAM_THIN, STREAM_USERS = 101, 102, 103
STREAM_COPIES = 10_000
"""Copy k of a job draws from the stream with this number plus k."""


def scale_load(workload: Workload, load: float, by: str = "interarrival", seed: int = 0) -> Workload:
    """Return the workload at another offered load; the achieved load is recorded in `origin.steps`.

    Values of `by`: `interarrival` multiplies all interarrival times by (current load / wanted load); this is exact, but stretches the daily
    cycle (mualem01, section 3.1; tsafrir06, section III). `runtime` multiplies runtimes and requests by (wanted load / current load).
    `machine` changes the size of the machine, but not below the widest job. `size` changes the processors of each job, from 1 up to the
    size of the machine. `thin` removes random jobs, or adds copies of random jobs up to a week later (with new ids); times after the last
    submission wrap around to the first (our construction). `users` draws users with replacement, each with all jobs and shifted by whole
    weeks, until the load is as close as whole users allow (our construction). A user who is drawn again is shifted to another week or, once
    all weeks are used, by up to an hour. Jobs that would be submitted after the last job of the workload are dropped.

    `thin` and `users` keep chains of dependent jobs (`preceding_job`) together, with unchanged gaps.

    Raises PolicyError for a load outside 0.000001 to 1.5 and for an unknown method; WorkloadError for a load that the method
    cannot reach: within 1 % by `interarrival` and `runtime`, within 10 % by the others.
    """
    if not LOWEST_LOAD <= load <= HIGHEST_LOAD:
        raise PolicyError(f"the load must be from 0.000001 to {HIGHEST_LOAD}, not {_shown(load)}", "number_out_of_range")
    if by not in WAYS:
        raise PolicyError(f"the load cannot be changed by {by!r}. Valid methods: {', '.join(WAYS)}", "unknown_method")
    _check_seed(seed)
    now = workload.offered_load
    if not now > 0:
        raise WorkloadError(
            f"{workload.origin.name} has no load to scale: its jobs run 0 s or are all submitted at once; use another log", "no_load"
        )
    try:
        scaled = _scaled(workload, load / now, by, seed)
    except WorkloadError as error:
        raise WorkloadError(f"a load of {load:g} cannot be reached by {by!r}: {error}", "unreachable_load") from error
    achieved = scaled.offered_load
    if not abs(achieved - load) <= TOLERANCES[by] * load:
        got = "all jobs would be submitted at once" if np.isnan(achieved) else f"the result has a load of {achieved:.4g}"
        raise WorkloadError(f"a load of {load:g} cannot be reached by {by!r}: {got}; {_advice(workload, by)}", "unreachable_load")
    return replace(scaled, origin=workload.origin.after(f"load {load:g} by {by}, achieved {achieved:.4f}"))


def _scaled(workload: Workload, factor: float, by: str, seed: int) -> Workload:
    """Return the workload with its load multiplied by `factor`, as closely as the method allows."""
    match by:
        case "interarrival":
            return with_submits(workload, workload.submit[0] + _rounded((workload.submit - workload.submit[0]) / factor))
        case "runtime":
            requested = np.maximum(_rounded(workload.requested * factor), 1)
            same = workload.planned is workload.requested
            planned = requested if same else np.maximum(_rounded(workload.planned * factor), 1)
            return replace(workload, runtime=_rounded(workload.runtime * factor), requested=requested, planned=planned)
        case "machine":
            size = max(1, round(workload.machine_procs / factor))
            widest = int(workload.procs.max())
            if size < widest:
                raise WorkloadError(f"this needs a machine of {size} processors, but the widest job has {widest}; {_advice(workload, by)}")
            return workload.with_machine(size)
        case "size":
            return replace(workload, procs=np.clip(_rounded(workload.procs * factor), 1, workload.machine_procs))
    if factor > MOST_COPIES:
        raise WorkloadError(f"this needs over {MOST_COPIES} times the jobs of {workload.origin.name}; try interarrival")
    return _thinned(workload, factor, seed) if by == "thin" else _with_resampled_users(workload, factor, seed)


def _advice(workload: Workload, by: str) -> str:
    """Return the advice, as text, for a load that this method cannot reach."""
    highest = workload.offered_load * workload.machine_procs / int(workload.procs.max())
    advice = {
        "interarrival": "submit times are whole seconds; try runtime",
        "runtime": "runtimes are whole seconds; try interarrival",
        "machine": f"the highest load of this method is {highest:.4g}",
        "size": f"a job has from 1 to {workload.machine_procs} processors; try interarrival",
    }
    return advice.get(by, "try another seed, or interarrival")


def head(workload: Workload, jobs: int) -> Workload:
    """Return the first jobs, in order of arrival; raises PolicyError if there are fewer."""
    _check_count(workload, jobs)
    return workload.take(np.arange(jobs), f"first {counted(jobs, 'job')}")


def tail(workload: Workload, jobs: int) -> Workload:
    """Return the last jobs, in order of arrival; raises PolicyError if there are fewer."""
    _check_count(workload, jobs)
    return workload.take(np.arange(len(workload) - jobs, len(workload)), f"last {counted(jobs, 'job')}")


def window(workload: Workload, begin: int, end: int) -> Workload:
    """Return the jobs submitted in [begin, end), seconds from the start of the log; raises WorkloadError if there are none."""
    inside, span = (workload.submit >= begin) & (workload.submit < end), workload.origin.span(begin, end)
    if not inside.any():
        first, last = (workload.origin.when(time) for time in workload.submit[[0, -1]].tolist())
        raise WorkloadError(
            f"{workload.origin.name} has no job submitted from {span} ({human_time(end - begin)}); give a window between {first} "
            f"and {last}",
            "empty_window",
        )
    return workload.take(inside, f"submitted from {span}")


def resize(workload: Workload, machine_procs: int, too_wide: str = "drop") -> Workload:
    """Return the jobs on a machine of another size; wider jobs are dropped or clipped to it, and counted.

    Raises WorkloadError if no job fits the machine, PolicyError unless `too_wide` is drop or clip.
    """
    wide = workload.procs > machine_procs
    count = int(wide.sum())
    step = f"machine of {machine_procs} processors"
    if machine_procs < 1 or wide.all():
        raise WorkloadError(f"no job of {workload.origin.name} fits a machine of {machine_procs} processors; enlarge it", "no_job_fits")
    if too_wide == "clip":
        clipped = replace(workload, procs=np.minimum(workload.procs, machine_procs), machine_procs=machine_procs)
        return replace(clipped, origin=workload.origin.after(f"{step}, {counted(count, 'job')} clipped to it"))
    if too_wide != "drop":
        raise PolicyError(f"jobs wider than the machine must be dropped or clipped, not {too_wide!r}", "unknown_rule_of_width")
    return workload.without({"too_wide": wide}, TOO_WIDE, f"{step}, {counted(count, 'wider job')} dropped").with_machine(machine_procs)


def shake(workload: Workload, seconds: int = 30, seed: int = 0) -> Workload:
    """Shift each submit time by a random whole number of seconds from -`seconds` to `seconds`; the order may change.

    Jobs that follow each other (`preceding_job`) are shifted together, by the draw for the first one. A result that
    disappears under shaking is an artefact of the exact times. The same seed gives the same shake. No submit time becomes
    negative. Source: Tsafrir, Ouaknine, Feitelson, MASCOTS 2007; the defaults and the chains are an interpretation.

    Raises PolicyError unless `seconds` is a whole number from 0 to 10**9.
    """
    if not (isinstance(seconds, int | np.integer) and 0 <= seconds <= LONGEST_SHAKE):
        raise PolicyError(
            f"a shake must be a whole number of seconds from 0 to {LONGEST_SHAKE}, not {_shown(seconds)}", "number_out_of_range"
        )
    _check_seed(seed)
    width = int(seconds)
    draw, _ = uniforms(seed, workload.job_id, STREAM_SHAKE)
    moved = workload.submit + np.floor(draw * (2 * width + 1)).astype(np.int64) - width
    first, _ = _chains(workload)
    shaken = with_submits(workload, workload.submit + (np.maximum(moved, 0) - workload.submit)[first])
    return replace(shaken, origin=workload.origin.after(f"shaken by up to {width} s, seed {seed}"))


def held_until(workload: Workload, eligible: Array) -> Workload:
    """Return the jobs with their eligible times (int64 s) as submissions, where these are later.

    The difference is added to the column `held`, and subtracted from the recorded wait.
    """
    held = np.maximum(eligible - workload.submit, 0)
    columns = dict(workload.columns)
    columns["held"] = columns.get("held", 0) + held
    wait = workload.recorded_wait
    if wait is not None:
        columns["wait"] = np.where(wait >= 0, np.maximum(wait - held, 0), wait)
    later = with_submits(replace(workload, columns=columns), workload.submit + held)
    step = f"waits of {counted(int((held > 0).sum()), 'job')} count from eligible times known only in hindsight"
    return replace(later, origin=workload.origin.after(step))


def _check_count(workload: Workload, jobs: int) -> None:
    if not 1 <= jobs <= len(workload):
        raise PolicyError(
            f"{workload.origin.name} has {counted(len(workload), 'job')}; a part must have from 1 to {len(workload)}, not {_shown(jobs)}",
            "number_out_of_range",
        )


def _check_seed(seed: int) -> None:
    if fault := seed_fault(seed):
        raise PolicyError(fault, "number_out_of_range")


def _shown(number: float) -> str:
    try:
        return str(number) if abs(number) < 1e16 else f"{number:g}"
    except OverflowError:
        return "a number of over 300 digits"


def _chains(workload: Workload) -> tuple[Array, Array]:
    """Return the index of the first job of each job's chain, and of the job that it follows, -1 for none; int64.

    A job that follows no other is its own chain. A `preceding_job` that is not submitted before the job is ignored.
    """
    own = np.arange(len(workload))
    after, _ = workload.dependencies()
    after = np.where(after < own, after, -1)
    first = np.where(after >= 0, after, own)
    while not np.array_equal(further := first[first], first):
        first = further
    return first, after


def _rounded(values: Array) -> Array:
    """Round to whole numbers, int64, halves up; values too large for a workload become 2**62."""
    return np.minimum(np.floor(values + 0.5), 2.0**62).astype(np.int64)


def with_submits(workload: Workload, submit: Array) -> Workload:
    """Return the jobs with other submit times, in order of arrival."""
    order = np.lexsort((workload.job_id, submit))
    place = order if workload.order is None else workload.order[order]
    return replace(workload, **workload.picked(order) | {"submit": submit[order]}, order=place if (np.diff(place) < 0).any() else None)


def _thinned(workload: Workload, factor: float, seed: int) -> Workload:
    """Repeat each job `factor` times on average: whole copies, and another one with the probability of the remainder.

    Chains are kept together. Copies are within the period of the workload, as far as the length of a chain allows.
    """
    first, after = _chains(workload)
    draw, _ = uniforms(seed, workload.job_id, STREAM_THIN)
    count = np.floor(factor + draw).astype(np.int64)
    count[[0, first[-1]]] = np.maximum(count[[0, first[-1]]], 1)  # keep the span of submissions
    copies = count[first]
    start = np.cumsum(copies) - copies
    place = np.repeat(np.arange(len(workload)), copies)
    number = np.arange(len(place)) - start[place]

    begin, end = workload.submit[0], workload.submit[-1]
    length = np.zeros(len(workload), np.int64)
    np.maximum.at(length, first, workload.submit - workload.submit[first])
    submit = workload.submit[place]
    for k in range(1, int(copies.max()) + 1):
        mine = np.flatnonzero(number == k)
        chain = first[place[mine]]
        later, _ = uniforms(seed, workload.job_id[chain], STREAM_COPIES + k)
        moved = begin + (workload.submit[chain] - begin + _rounded(later * WEEK)) % (end - begin - length[chain] + 1)
        submit[mine] += moved - workload.submit[chain]
    followed = np.where(after[place] >= 0, start[after[place]] + number, -1)
    return copied(workload, place, submit, number == 0, {"preceding_job": followed})


def _with_resampled_users(workload: Workload, factor: float, seed: int) -> Workload:
    if "user" not in workload.columns:
        raise WorkloadError(f"{workload.origin.name} does not record users, so they cannot be resampled; try another method")
    first, after = _chains(workload)
    users, whose = np.unique(workload.columns["user"][first], return_inverse=True)
    jobs_of = np.split(np.argsort(whose, kind="stable"), np.cumsum(np.bincount(whose))[:-1])
    work = workload.procs * workload.runtime.astype(np.float64)
    begin, end = int(workload.submit[0]), int(workload.submit[-1])
    weeks = max(1, -(-(end - begin) // WEEK))
    picks, whens = uniforms(seed, np.arange(MOST_COPIES * len(users)), STREAM_USERS)
    wanted, have, places, submits, followed, made = factor * work.sum(), 0.0, [], [], [], 0
    drawn: dict[int, tuple[int, int]] = {}  # by user: the week to which the next jobs are shifted, and the number of draws so far
    for pick, when in zip(picks, whens, strict=True):
        user = int(pick * len(users))
        mine = jobs_of[user]
        week, times = drawn.get(user, (int(when * weeks), 0))
        drawn[user] = (week + 1) % weeks, times + 1
        shift = week * WEEK + (int(when * HOUR) if times >= weeks else 0)
        chain = workload.submit[first[mine]]
        submit = begin + (chain - begin + shift) % (weeks * WEEK) + workload.submit[mine] - chain
        mine, submit = mine[submit <= end], submit[submit <= end]
        more = float(work[mine].sum())
        if have and have + more - wanted > wanted - have:
            break
        where = np.full(len(workload), -1, np.int64)
        where[mine] = made + np.arange(len(mine))
        followed.append(np.where(after[mine] >= 0, where[after[mine]], -1))
        places.append(mine)
        submits.append(submit)
        made += len(mine)
        have += more
        if have >= wanted:
            break
    place = np.concatenate(places)
    return copied(workload, place, np.concatenate(submits), np.zeros(len(place), bool), {"preceding_job": np.concatenate(followed)})


def copied(workload: Workload, place: Array, submit: Array, original: Array, links: Mapping[str, Array]) -> Workload:
    """Return the jobs at these indices with these submit times; copies get new ids above the largest one.

    `links`: for columns of job ids, the index among these jobs of the job that each names, int64, -1 for none; used for copies.
    """
    columns = {name: values[place] for name, values in workload.columns.items()}
    ids = workload.job_id[place].copy()
    largest = max(int(array.max()) for array in (workload.job_id, columns.get("preceding_job", ids), ids) if len(array))
    ids[~original] = largest + 1 + np.arange(int((~original).sum()))
    for name in links:
        if name in columns:
            columns[name] = np.where(original, columns[name], np.where(links[name] >= 0, ids[links[name]], -1))
    arrival = np.lexsort((ids, submit))
    place = place[arrival]
    return Workload.from_arrays(
        submit=submit[arrival],
        runtime=workload.runtime[place],
        requested=workload.requested[place],
        planned=None if workload.planned is workload.requested else workload.planned[place],
        procs=workload.procs[place],
        job_id=ids[arrival],
        machine_procs=workload.machine_procs,
        columns={name: values[arrival] for name, values in columns.items()},
        origin=workload.origin,
        feedback=workload.feedback,
    )
