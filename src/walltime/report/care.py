"""Read with care: what about a run can mislead its reader, found from the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from walltime import metrics
from walltime.estimates import FModel, UserEstimates
from walltime.metrics import Summary
from walltime.report.text import human_percent, in_prose
from walltime.schedule.schedule import Schedule

Array = np.ndarray

FEW_JOBS = 1000
"""Averages over fewer jobs than this get a word of warning."""
HEAVY = 50.0
"""Percent of the summed bounded slowdown that 1 % of the jobs may make up before it is said."""
CLOSE = 5.0
"""Percent by which two mean waits may differ and still count as close."""
MANY_KILLED = 5.0
"""Percent of the jobs that may be killed at their estimates before it is said."""


def cautions(
    names: Sequence[str],
    schedules: Sequence[Schedule],
    summaries: Sequence[Summary],
    masks: Sequence[Array],
    trim: str,
    estimates: object = None,
) -> list[str]:
    """Sentences on what to keep in mind, the weightiest first.

    `names, schedules, summaries`: one of each per policy; `masks`: bool, shape (jobs,), the measured jobs of each.
    `estimates`: the model that the estimates come from or its name, None where nobody says.
    Source: the checklist of SPEC L-30.
    """
    workload = schedules[0].workload
    if not len(workload):
        return []
    found = []
    load = workload.offered_load
    if load >= 1:
        found.append(
            f"Saturated: the jobs ask for {human_percent(100 * load)} of what the machine can give. The queue grows for as long as "
            "jobs arrive, so the waits say more about the length of the log than about the policy."
        )
    growing = [in_prose(name) for name, s in zip(names, schedules, strict=True) if queue_keeps_growing(s)]
    if growing:
        found.append(
            f"Under {_list(growing)} the queue is longer in every quarter of the log than in the one before, and at its longest towards "
            "the end: this is not a steady state, and a longer log would give longer waits."
        )
    if not workload.origin.sha256 or any("synthetic" in line.lower() for line in workload.origin.header):
        found.append(
            "The workload is not the log of a real machine, or is not known to be: its source has no checksum or calls it synthetic."
        )
    if trim == "none":
        found.append(
            "Nothing is trimmed: the averages include the jobs that met an empty machine at the start and those that ended after the last "
            "arrival, when the machine ran dry."
        )
    if any(s.workload.feedback for s in schedules):
        found.append(
            "With feedback: jobs are submitted after the ends of the jobs that precede them. So they arrive at other times under another "
            "policy, and a policy that makes them wait gets less work in the same time."
        )
    found += _estimates(schedules, estimates)
    found += _killed(schedules)
    least = min(s.measured_jobs for s in summaries)
    if least < FEW_JOBS:
        found.append(f"Only {least:,} job{' is' if least == 1 else 's are'} measured: a few long waits can move such averages a good deal.")
    found += _tail(names, schedules, masks)
    zero = max(s.zero_runtime_jobs for s in summaries)
    if zero:
        found.append(
            f"{zero:,} job{' has' if zero == 1 else 's have'} a runtime of 0 s, for which no slowdown is defined: left out of the mean "
            "slowdown, counted in all other averages."
        )
    found += _close(names, summaries)
    return found


def queue_keeps_growing(schedule: Schedule) -> bool:
    """Whether the mean number of waiting jobs rises from each quarter of the arrivals to the next, to at least 10 and twice the second.

    >>> from walltime.policy import NoBackfilling
    >>> from walltime.workload import Workload
    >>> a = np.arange(100)
    >>> jobs = Workload.from_arrays(submit=a, runtime=a * 0 + 2, procs=a * 0 + 1, machine_procs=1)
    >>> late = Schedule(jobs, NoBackfilling(), start=2 * a, end=2 * a + 2, runtime=jobs.runtime, kind=a * 0, promised=a * 0 - 1)
    >>> queue_keeps_growing(late)
    True
    """
    submit = schedule.submit
    edges = np.linspace(submit.min(), submit.max(), 5)
    if edges[0] == edges[-1]:
        return False
    begin, end = submit[:, None].clip(edges[:-1], edges[1:]), schedule.start[:, None].clip(edges[:-1], edges[1:])
    quarters = (end - begin).sum(axis=0) / np.diff(edges)
    return bool((np.diff(quarters) > 0).all() and quarters[3] >= 10 and quarters[3] >= 2 * quarters[1])


def _estimates(schedules: Sequence[Schedule], estimates: object) -> list[str]:
    workload = schedules[0].workload
    name = "" if estimates is None else estimates.strip().lower() if isinstance(estimates, str) else repr(estimates)
    if isinstance(estimates, FModel) or name.startswith(("f:", "badness:")):
        return [
            f"The estimates are not the users' but drawn from the f-model ({name}), which gives unrealistically good results (P3, "
            "Tsafrir and Feitelson 2006): spread "
            "evenly above the runtimes they tell the scheduler which jobs are short, which real users' estimates hardly do."
        ]
    if name not in ("", "user") and not isinstance(estimates, UserEstimates):
        exact = np.array_equal(workload.believed, np.maximum(workload.runtime, 1))
        more = " Every one equals the runtime; real users guess worse." if exact else ""
        return [f"The scheduler does not plan with the users' estimates as they are in the log but with those of the model {name}.{more}"]
    if any(not np.array_equal(s.workload.believed, s.workload.requested) for s in schedules):
        return ["The scheduler plans with other runtimes than the users asked for (an estimate model or a predictor)."]
    if np.array_equal(workload.requested, np.maximum(workload.runtime, 1)):
        return ["Every estimate equals the runtime: the log has no users' estimates, or they were replaced. Real users guess worse."]
    return []


def _killed(schedules: Sequence[Schedule]) -> list[str]:
    workload = schedules[0].workload
    killed = int(np.count_nonzero(workload.runtime > workload.requested))
    share = 100 * killed / len(workload)
    if share <= MANY_KILLED or all(s.overrun != "kill" for s in schedules):
        return []
    return [
        f"{killed:,} job{' is' if killed == 1 else 's are'} killed at the estimate ({human_percent(share)} of all): "
        "their runtimes are cut, so the machine has less to do than in the log."
    ]


def _tail(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[Array]) -> list[str]:
    heavy = []
    for name, s, mask in zip(names, schedules, masks, strict=True):
        ratio = metrics.bounded_slowdown(s.wait[mask], s.runtime[mask])
        top = len(ratio) // 100
        share = 100 * float(np.partition(ratio, len(ratio) - top)[len(ratio) - top :].sum() / ratio.sum()) if top else 0.0
        if share > HEAVY:
            heavy.append(f"{human_percent(share)} under {in_prose(name)}")
    if not heavy:
        return []
    return [
        f"A few jobs decide the mean bounded slowdown: 1 % of them make up {_list(heavy)} of its sum. See the distribution before the mean."
    ]


def _close(names: Sequence[str], summaries: Sequence[Summary]) -> list[str]:
    ranked = sorted(zip((s.mean_wait for s in summaries), names, strict=True))
    pairs = [(a, b) for a, b in pairwise(ranked) if a[0] != b[0] and abs(metrics.relative_difference(b[0], a[0])) < CLOSE]
    if not pairs:
        return []
    told = [f"{in_prose(a[1])} and {in_prose(b[1])} differ by {human_percent(metrics.relative_difference(b[0], a[0]))}" for a, b in pairs]
    return [f"In mean wait {_list(told)}: on another log, or with arrivals shifted a little, so small a difference can turn round."]


def _list(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
