"""Hypothesis strategies for workloads and policies: small numbers, so that times collide and queues grow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import walltime as wt
from tests.profiles import examples as examples
from walltime.policy import Order, Policy
from walltime.policy.formulas import FORMULAS

COINCIDENT = ("batch", "sequential")
OVERRUN = ("kill", "extend", "continue")


# Orders of a user's own. Each operation is rounded in the same way by Python and by the compiler: whole numbers below 2**53,
# one division, comparisons.


@wt.order
def area_rate(wait, planned, procs):
    """Long waits and wide jobs first, long jobs last."""
    return wait * procs / planned


@wt.order
def last_come(submit):
    """Last come, first served."""
    return submit


@wt.order
def narrow_in_waves(wait, procs):
    """Narrow jobs first, but all jobs are equal in every third second of their wait: scores fall as well as rise."""
    if wait % 3 == 2:
        return 0
    return -procs


@wt.order
def by_queue(queue, procs, user):
    """Columns of the log, in another order than the log's; they do not change while a job waits."""
    return queue * 1000 - procs * 10 + user


@wt.order
def as_asked(group, requested, planned, executable, partition):
    """What was asked for beside what is planned; of the log's columns one is not known at all."""
    return requested - 2 * planned + group * 5 + executable - partition


@wt.order
def by_number(job_id):
    """Jobs with one and the same last digit are equal."""
    return job_id * 7 % 10


@wt.order
def by_the_clock(hour, weekday, procs, submit):
    """Something else in every hour, and on every day: the scores of waiting jobs change at once."""
    if hour % 4 == 1:
        return procs
    if hour % 4 == 3:
        return -procs
    if weekday % 2 == 0:
        return submit
    return -submit - 3 * (hour % 5) * procs


@wt.order
def nightly_share(wait, hour, user):
    """The clock, columns and waits together."""
    if hour < 3:
        return wait * (2 + user % 3)
    return wait - user


USER_ORDERS = (area_rate, last_come, narrow_in_waves, by_queue, as_asked, by_the_clock, nightly_share)
ORDERS_THAT_READ = (*USER_ORDERS[4:], by_number)
"""Orders that read columns of the log or the clock."""
LATER_ORDERS = (
    *map(wt.policy.parse_order, FORMULAS),
    *map(wt.policy.parse_order, ("f1:submit-weight=3", "f3:submit-weight=40,starvation=20")),
    *map(wt.policy.parse_order, ("sjf:starvation=5", "wfp:starvation=20", "lcfs:starvation=12", "lxf:starvation=0", "unicef:starvation=9")),
)
"""Orders of the later literature, and orders under which a job may starve."""
BUILT_IN_ORDERS = (wt.FCFS, wt.SJF, wt.WFP, wt.policy.Wfp(exponent=1), wt.policy.Wfp(exponent=2), wt.policy.Wfp(exponent=4), *LATER_ORDERS)

LATER_KINDS = ("relaxed", "los", "greedy", "selective", "multiqueue", "slack", "plan")
"""Policies of the later literature, and hybrids that backfill greedily."""
HYBRIDS = ("hybrid:0", "hybrid:1", "hybrid:few", "hybrid:many")
POLICY_KINDS = ("fcfs", "easy", "double", "conservative", "conservative-scratch", *HYBRIDS, *LATER_KINDS)
"""Every way in which a policy reserves; `few` and `many` stand for depths below and above the length of a usual queue."""


def orders(own: bool = True) -> st.SearchStrategy[Order]:
    """A queue order; half the time first come, first served, which has a path of its own through the engine."""
    others = BUILT_IN_ORDERS[1:] + (USER_ORDERS if own else ())
    return st.one_of(st.just(wt.FCFS), st.sampled_from(others))


@st.composite
def policies(draw, kind: str | None = None, own: bool = True) -> Policy:
    """A policy of this kind (default: any), with any order and, where it backfills, any backfill order."""
    kind = kind or draw(st.sampled_from(POLICY_KINDS))
    order = draw(orders(own))
    match kind.partition(":"):
        case "fcfs", _, _:
            return wt.NoBackfilling(order=order)
        case "conservative", _, _:
            return wt.Conservative(order=order)
        case "conservative-scratch", _, _:
            return wt.Conservative(order=order, variant="scratch")
    backfill_order = draw(st.one_of(st.none(), orders(own)))
    if kind in ("easy", "double"):
        return (wt.Easy if kind == "easy" else wt.policy.Double)(order=order, backfill_order=backfill_order)
    if kind == "plan":
        searches = {"iterations": st.sampled_from((0, 1, 8, 20)), "lookahead": st.sampled_from((1, 2, 4, 100)), "seed": st.integers(0, 2)}
        return draw(st.builds(wt.policy.PlanBased, objective=st.sampled_from(("square", "sum")), **searches))
    if kind == "slack":
        return wt.policy.Slack(factor=draw(st.sampled_from((0, 0.5, 1, 3))), recent=draw(st.sampled_from((1, 2, 5, 100))))
    if kind in LATER_KINDS:
        return draw(_later(kind, order, backfill_order))
    depths = {"0": st.just(0), "1": st.just(1), "few": st.integers(2, 4), "many": st.integers(5, 100)}
    return wt.Hybrid(order=order, backfill_order=backfill_order, depth=draw(depths[kind.partition(":")[2]]))


def _later(kind: str, order: Order, backfill_order: Order | None) -> st.SearchStrategy[Policy]:
    """A policy of the later literature."""
    orders = {"order": st.just(order), "backfill_order": st.just(backfill_order)}
    depths, metrics = st.integers(0, 1), st.sampled_from(("procs", "seconds", "procseconds"))
    match kind:
        case "relaxed":
            return st.builds(wt.policy.Relaxed, **orders, omega=st.sampled_from((0.0, 0.1, 0.5, 1.0, 2.5)))
        case "los":
            ways = st.sampled_from((("head", "procs"), ("slowdown", "procs"), ("head", "procseconds")))
            los = {"lookahead": st.sampled_from((1, 2, 3, 50))}
            return ways.flatmap(
                lambda way: st.builds(wt.policy.Lookahead, **orders, **los, ties=st.just(way[0]), objective=st.just(way[1]))
            )
        case "greedy":
            return st.builds(wt.Hybrid, **orders, depth=depths, fit=st.just("greedy"), metric=metrics)
        case "selective":
            return st.builds(wt.policy.Selective, **orders, threshold=st.sampled_from((0.0, 1.0, 1.5, 2.0, 4.0, "adaptive")))
    return st.builds(
        wt.policy.MultiQueue, **orders, bounds=st.sampled_from(((100, 1000, 10_000), (3,), (2, 5, 9), (1, 2, 3, 4, 5, 6, 7, 8)))
    )


GAPS = (0, 0, 0, 0, 1, 1, 2, 3, 5, 8, 13, 30)
RUNTIMES = (0, 0, 1, 1, 2, 3, 4, 5, 6, 8, 10, 15, 24, 60)


@dataclass(frozen=True)
class Estimates:
    """How what is requested and planned relates to the runtime."""

    perfect: bool = False
    """requested and planned are the runtime, which is at least 1 s, as estimates are"""
    upper_bounds: bool = False
    """no job runs, or is planned to run, for longer than planned"""


ANY = Estimates()
PERFECT = Estimates(perfect=True, upper_bounds=True)
UPPER_BOUNDS = Estimates(upper_bounds=True)


@st.composite
def workloads(draw, estimates: Estimates = ANY, max_size: int = 12, min_size: int = 1, machine: int | None = None) -> wt.Workload:
    """A workload: equal submits, zero runtimes, jobs as wide as the machine, machines of one processor; any estimates.

    Unless `estimates` says otherwise some jobs outlive their request, and what is planned may be more or less than either. Some
    columns are known of some jobs. The log begins a quarter of a minute before the clocks at the site are put forward.
    """
    procs_of_machine = machine or draw(st.one_of(st.just(1), st.integers(2, 8), st.sampled_from((16, 100))))
    widths = st.one_of(st.integers(1, procs_of_machine), st.just(procs_of_machine), st.just(1), st.just(max(1, procs_of_machine // 2)))
    # What is requested and planned: exactly the runtime, so much more, so much less, a round number, or any small number,
    # by which a job may be overdue for a long time, while others become so as well.
    ways = ("exact", "more", "twice", "round", *(() if estimates.upper_bounds else ("less", "half", "small", "small")))
    job = st.tuples(
        st.sampled_from(GAPS),
        st.sampled_from(RUNTIMES),
        widths,
        st.sampled_from(("exact",) if estimates.perfect else ways),
        st.sampled_from(("requested",) if estimates.perfect else ("requested", "requested", *ways)),
        st.integers(1, 6),
    )
    rows = draw(st.lists(job, min_size=min_size, max_size=max_size))
    now = draw(st.sampled_from((0, 0, 7)))
    submit, runtime, requested, planned, procs = [], [], [], [], []
    for gap, length, width, way, way_planned, by in rows:
        now += gap
        length = max(length, 1) if estimates.perfect else length
        asked = _estimate(way, length, by)
        submit.append(now)
        runtime.append(length)
        procs.append(width)
        requested.append(asked)
        planned.append(asked if way_planned == "requested" else _estimate(way_planned, length, by))
    return wt.Workload.from_arrays(
        submit=submit,
        runtime=runtime,
        requested=requested,
        planned=planned,
        procs=procs,
        machine_procs=procs_of_machine,
        columns=_columns(len(rows)),
        origin=wt.workload.Origin(records=len(rows), unix_start_time=CLOCKS_FORWARD - 15, time_zone="Europe/Stockholm"),
    )


CLOCKS_FORWARD, CLOCKS_BACK = 1_679_792_400, 1_698_541_200
"""When the clocks of Europe/Stockholm changed in 2023, both times on a Sunday, s since 1970 UTC."""


def _columns(count: int) -> dict[str, np.ndarray]:
    """Some columns of a log; not drawn, so that examples stay small."""
    number = np.arange(count)
    return {"queue": number // 2 % 3, "user": number * number % 5 - 1, "group": number % 2, "executable": number * 7 % 4 - 1}


def _estimate(way: str, runtime: int, by: int) -> int:
    """An estimate of at least 1 s."""
    values = {
        "exact": runtime,
        "more": runtime + by,
        "twice": 2 * runtime,
        "round": next(limit for limit in (5, 10, 60) if limit >= runtime),
        "less": runtime - by,
        "half": runtime // 2,
        "small": by,
    }
    return max(values[way], 1)


def crowded(estimates: Estimates = ANY, max_size: int = 50) -> st.SearchStrategy[wt.Workload]:
    """Larger workloads on a machine of 4 to 6 processors, with queues of dozens of jobs."""
    return st.integers(4, 6).flatmap(lambda machine: workloads(estimates, max_size=max_size, min_size=20, machine=machine))


def real_and_planned(workload: wt.Workload, overrun: str) -> tuple[np.ndarray, np.ndarray]:
    """How long each job really runs, and what the scheduler plans with, in seconds, int64."""
    match overrun:
        case "kill":
            return np.minimum(workload.runtime, workload.requested), workload.planned
        case "extend":
            return workload.runtime, np.maximum(workload.planned, workload.runtime)
    return workload.runtime, workload.planned


def shrunk(workload: wt.Workload) -> str:
    """The workload as a call, to copy from a failure's message into a golden test."""
    names = ("submit", "runtime", "requested", "planned", "procs")
    columns = ", ".join(f"{name}={getattr(workload, name).tolist()}" for name in names)
    return f"wt.Workload.from_arrays({columns}, machine_procs={workload.machine_procs})"


DAY = 86400
BITS = tuple(f"{n:03b}" for n in range(8))
SHORT_INCREMENTS = (1, 2, 5, 9)
CORRECTIONS = (
    wt.predictors.Correction("estimate"),
    wt.predictors.Correction("double"),
    wt.predictors.Correction("half"),
    wt.predictors.Correction("double", capped=False),
    wt.predictors.Correction("none"),
    wt.predictors.Correction(),
    wt.predictors.Correction(relative="elapsed"),
    wt.predictors.Correction(increments=SHORT_INCREMENTS),
    wt.predictors.Correction(relative="elapsed", increments=SHORT_INCREMENTS),
)


def predictors(again: bool = True) -> st.SearchStrategy[wt.predictors.Predictor]:
    """A built-in predictor that soon has enough history to say something."""
    keys = st.sampled_from(("all", "user", "project", "double", "triple", "request", "program"))
    return st.one_of(
        st.just(wt.predictors.ExactRuntime()),
        st.builds(wt.predictors.UserRequest, factor=st.integers(1, 3)),
        st.builds(wt.predictors.LastRun, key=keys),
        st.builds(wt.predictors.Similar15, min_jobs=st.integers(1, 3), last=st.integers(0, 3)),
        st.builds(
            wt.predictors.Quantile, percent=st.integers(1, 100), key=keys, last=st.sampled_from((0, 3, 4)), min_jobs=st.integers(1, 3)
        ),
        st.builds(wt.predictors.Tsafrir07, k=st.integers(1, 3), key=keys, recompute=st.booleans() if again else st.just(False)),
        st.builds(
            wt.predictors.Tang13,
            key=keys,
            statistic=st.sampled_from(("max", "p95", "p85", "p70", "median", "p10")),
            window=st.sampled_from((None, 1, 2)),
            threshold=st.sampled_from((0.0, 0.0, 0.5)),
            min_jobs=st.integers(1, 4),
            rank=st.sampled_from(("nearest", "nearest", "cobalt")),
            refresh=st.sampled_from((1, 1, 5, 1800)),
        ),
        st.builds(
            wt.predictors.Mualem01History,
            key=keys,
            deviations=st.sampled_from((0.0, 1.5, 3.0)),
            week=st.sampled_from(("key", "sliding", "global", "none")),
            min_jobs=st.integers(1, 2),
            sample=st.booleans(),
        ),
        st.builds(
            wt.predictors.Gaussier15,
            over=st.sampled_from(("square", "abs", "exp")),
            under=st.sampled_from(("square", "abs", "exp")),
            threshold=st.sampled_from((0.0, 60.0)),
            weight=st.sampled_from(("one", "log_rn", "log_r_over_n", "log_n_over_r", "log_one_over_rn")),
            eta=st.sampled_from((1.0, 5000.0)),
            l2=st.sampled_from((0.0, 1.0, 4e9)),
        ),
    )


@st.composite
def with_users(draw, source: st.SearchStrategy[wt.Workload]) -> wt.Workload:
    """A workload of few users, groups and programs, some of them unknown; its times in seconds, or in units of up to days.

    Now and then it tells how long the jobs waited in the log.
    """
    w = draw(source)
    unit = draw(st.sampled_from((1, 1, 1, 60, 5 * DAY)))
    names = {"user": (1, 2, 2, 3), "group": (1, 1, 2, -1), "executable": (1, 2, -1)}
    columns = {name: np.array(draw(st.lists(st.sampled_from(of), min_size=len(w), max_size=len(w)))) for name, of in names.items()}
    columns["wait"] = np.array(draw(st.lists(st.sampled_from((0, 1, 2, 7, -1)), min_size=len(w), max_size=len(w)))) * unit
    columns["wait"][0] = unit
    times = {name: getattr(w, name) * unit for name in ("submit", "runtime", "requested", "planned")}
    return wt.Workload.from_arrays(**times, procs=w.procs, machine_procs=w.machine_procs, columns=columns, origin=w.origin)


ZONES = ("Europe/Stockholm", "Europe/Stockholm", "Australia/Lord_Howe", "Asia/Kolkata", "-12600", "UTC")


@st.composite
def dated(draw, source: st.SearchStrategy[wt.Workload]) -> wt.Workload:
    """A workload whose times go from seconds to months, in a zone, around the time at which its clocks change if they do."""
    w = draw(source)
    unit = draw(st.sampled_from((1, 60, 600, 1800, 3600, 5 * DAY)))
    begin = draw(st.sampled_from((CLOCKS_FORWARD, CLOCKS_BACK, 1_680_361_200, -1_000_000_000, 0))) - draw(st.integers(0, 30)) * unit
    times = {name: getattr(w, name) * unit for name in ("submit", "runtime", "requested", "planned")}
    origin = wt.workload.Origin(unix_start_time=begin, time_zone=draw(st.sampled_from(ZONES)))
    return wt.Workload.from_arrays(**times, procs=w.procs, machine_procs=w.machine_procs, columns=w.columns, origin=origin)
