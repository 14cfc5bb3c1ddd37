"""Caveats of simulations, derived from their schedules."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from walltime import metrics
from walltime.comparison.answers import CLOSE, distinct
from walltime.estimates import EstimateModel, FModel, UserEstimates, parse_estimates
from walltime.machine import HINDSIGHT, hindsight_note, omission_sentences, placing_notes
from walltime.machine.tables import PERIODS, REPEATED_FOR
from walltime.metrics import Summary
from walltime.metrics.intervals import shown_level
from walltime.predictors import PlainPredictor, below_remark
from walltime.schedule.schedule import Schedule, labels
from walltime.simulation.spread import Spread
from walltime.wording import counted, human_percent, human_time, listed, lower_first

FEW_JOBS = 1000
"""Averages over fewer jobs than this get a caveat."""
HEAVY = 50.0
"""If 1 % of the jobs have more than this percentage of the total bounded slowdown, there is a caveat."""
LONG_QUEUE = 0.3
"""A permanent queue during more than this share of the arrival period gets a caveat. On eight real logs, FCFS reaches 0.32 to 0.92 where
it is saturated, backfilling at most 0.25.
"""
MANY_POLICIES = 5
"""Smallest number of policies with a caveat on selection bias."""
MANY_KILLED = 5.0
"""If more than this percentage of jobs are killed at their estimates, there is a caveat."""


def caveats_of(
    schedules: Sequence[Schedule],
    trim: str,
    estimates: object = None,
    spread: Spread | None = None,
    *,
    names: Sequence[str] | None = None,
    masks: Sequence[np.ndarray] | None = None,
) -> list[str]:
    """Return the caveats of these schedules as sentences, the most important first.

    `trim`: the measured jobs, as in `Schedule.summary`. `estimates`: the model that the estimates come from or its name, None if unknown.
    `spread`: the spread of these schedules, None if unknown. `names`: the names of the policies, by default their labels; `masks`: bool,
    shape (jobs,), the measured jobs of each, by default by `trim`. Source: the pitfalls of Frachtenberg and Feitelson, JSSPP 2005.
    """
    workload = schedules[0].workload
    if not len(workload):
        return []
    names, summaries = names or labels(schedules), [s.summary(trim) for s in schedules]
    masks = masks or [s.measured(trim) for s in schedules]
    sentences = [*_left_out(schedules), *_held(schedules)]
    load = schedules[0].offered_load
    if load >= 1:
        sentences.append(
            f"Saturated: the offered load is {human_percent(100 * load)} of the capacity, so the queue grows as long as "
            "jobs arrive, and waits depend more on the length of the log than on the policy."
        )
    if len(schedules) >= MANY_POLICIES:
        sentences.append(f"The best of {len(schedules)} policies is partly lucky (selection bias), which the intervals do not cover.")
    for name, schedule in zip(names, schedules, strict=True):
        queued, share = longest_queue(schedule)
        if share >= LONG_QUEUE:
            sentences.append(
                f"{name} is saturated: for {human_time(queued)} ({human_percent(100 * share)} of the time) its queue is never empty, so "
                "its waits depend on the length of the log."
            )
    growing = [lower_first(name) for name, s in zip(names, schedules, strict=True) if queue_keeps_growing(s)]
    if growing:
        sentences.append(
            f"Under {listed(growing)}, the queue is longer in every quarter of the log than in the previous one: this is not a steady "
            "state, and a longer log would give longer waits."
        )
    if not workload.origin.sha256 or any("synthetic" in line.lower() for line in workload.origin.header):
        sentences.append(
            "The workload may not come from a real machine: its source has no checksum, or its header contains the word synthetic."
        )
    if trim == "none":
        sentences.append("Averages include the beginning and end of the log, when the machine fills and empties; trimming leaves them out.")
    if any(s.workload.feedback for s in schedules):
        sentences.append(
            "With feedback, jobs are submitted after the ends of their preceding jobs, so a policy with longer waits receives less work in "
            "the same time."
        )
    sentences += _estimates(schedules, estimates)
    sentences += _predictions(schedules)
    sentences += _killed(schedules)
    least = min(s.measured_jobs for s in summaries)
    if least < FEW_JOBS:
        sentences.append(
            f"Only {least:,} job{' is' if least == 1 else 's are'} measured: a few long waits can change these averages considerably."
        )
    sentences += _tail(names, schedules, masks)
    zero = max(s.zero_runtime_jobs for s in summaries)
    if zero:
        sentences.append(f"The mean slowdown excludes {counted(zero, 'job')} with a runtime of 0 s.")
    sentences += _close(names, summaries, spread)
    return sentences


def _left_out(schedules: Sequence[Schedule]) -> list[str]:
    """Return sentences on the jobs left out, if they had much of the work, and on features of the machine that are not modelled."""
    notes = [note for s in schedules if s.placement is not None for note in placing_notes(s.workload, s.placement.machine)]
    notes += [placement_note(s) for s in schedules if s.simulated_on == "nodes" and not s.policy.plans_nodes]
    notes += [note for s in schedules for note in s.interruption_notes]
    notes += [note for s in schedules if (note := _beyond_reservations(s))]
    notes += omission_sentences(s.workload for s in schedules)
    return list(dict.fromkeys([*(sentence for s in schedules for sentence in s.workload.warnings), *notes]))


def _beyond_reservations(schedule: Schedule) -> str:
    """Return a sentence on jobs that start after the last modelled repetition of reservations; empty without any."""
    repeated = schedule.placement is not None and any(set(one.flags) & set(PERIODS) for one in schedule.placement.machine.reservations)
    late = int(np.sum(schedule.start > schedule.last_submit + REPEATED_FOR)) if repeated else 0
    return f"Reservations repeat until four weeks after the last submission; {counted(late, 'job')} started after that." if late else ""


def placement_note(schedule: Schedule) -> str:
    """Return a sentence on how jobs are placed on individual nodes by first fit, and by which of their requests."""
    assert schedule.placement is not None
    machine, columns = schedule.placement.machine, schedule.workload.columns
    found = {
        "GPUs" if machine.second == "gpus" else machine.second: machine.second_total > 0,
        "memory": any(pool.memory for pool in machine.pools) and any(name.startswith("mem_mb") for name in columns),
        "types of GPUs": any(pool.by_type for pool in machine.pools) and "requested_gpu_type" in columns,
        "features": any(pool.features for pool in machine.pools) and "constraints" in columns,
    }
    nodes = counted(sum(pool.nodes for pool in machine.pools), "node")
    requests = listed(["processors", *(name for name, is_used in found.items() if is_used)])
    return f"Each job is placed on the first of the {nodes} in the machine file that satisfy its requests for {requests}."


def _held(schedules: Sequence[Schedule]) -> list[str]:
    """Return the note on data from the machine file that are known only in hindsight."""
    known = [s.workload for s in schedules if HINDSIGHT in s.workload.columns]
    most = max(known, key=lambda workload: np.count_nonzero(workload.columns[HINDSIGHT]), default=None)
    return [] if most is None else list(filter(None, [hindsight_note(most)]))


def longest_queue(schedule: Schedule) -> tuple[float, float]:
    """Return the length (s) and share of the longest stretch, up to the last arrival, with a permanent queue of on average 10 jobs or more.

    The share is relative to the time from the first to the last arrival; both are 0 without such a stretch.
    """
    if not len(schedule.submit):
        return 0.0, 0.0
    last, first = schedule.last_submit, int(schedule.submit.min())
    lengths, means = metrics.queue_stretches(schedule.submit, schedule.start, last)
    longest = float(np.max(lengths * (means >= metrics.FEW_WAITING), initial=0.0))
    return longest, longest / (last - first) if last > first else 0.0


def queue_keeps_growing(schedule: Schedule) -> bool:
    """Return whether the mean queue length rises in each quarter of the arrivals, to at least 10 and twice the second quarter.

    >>> from walltime.policy import NoBackfilling
    >>> from walltime.workload import Workload
    >>> a = np.arange(100)
    >>> jobs = Workload.from_arrays(submit=a, runtime=a * 0 + 2, procs=a * 0 + 1, machine_procs=1)
    >>> late = Schedule(jobs, NoBackfilling(), start=2 * a, end=2 * a + 2, runtime=jobs.runtime, kind=a * 0, reserved_start=a * 0 - 1)
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
    model = parse_estimates(estimates) if isinstance(estimates, str | EstimateModel) else UserEstimates()
    name = str(estimates)
    if isinstance(model, FModel):
        return [
            f"The estimates come from the f-model ({name}). Its results are unrealistically good, because these estimates, unlike users' "
            "requests, reveal which jobs are short (tsafrir06)."
        ]
    if not isinstance(model, UserEstimates):
        exact = np.array_equal(workload.planned, np.maximum(workload.runtime, 1))
        more = " Each estimate equals the runtime; real requests are less accurate." if exact else ""
        return [f"The scheduler plans with estimates of the model {name} instead of the users' requests.{more}"]
    if any(not np.array_equal(s.workload.planned, s.workload.requested) for s in schedules):
        return ["The scheduler plans with an estimate model or a predictor instead of the users' requests."]
    if np.array_equal(workload.requested, np.maximum(workload.runtime, 1)):
        return ["Every request equals the runtime: the log has no requests, or they were replaced. Real requests are less accurate."]
    return []


def _predictions(schedules: Sequence[Schedule]) -> list[str]:
    """Return remarks on external predictions and users' own predictors, each once."""
    made = {s.predictions.prediction.predictor.label: s for s in schedules if s.predictions is not None}
    told = []
    for label, s in made.items():
        assert s.predictions is not None
        if isinstance(s.predictions.prediction.predictor, PlainPredictor):
            told += below_remark(label, s.predictions.basis)
        told += s.predictions.prediction.predictor.remarks(s.workload, s.workload.requested, s.workload.runtime)
    return told


def _killed(schedules: Sequence[Schedule]) -> list[str]:
    workload = schedules[0].workload
    killed = int(np.count_nonzero(workload.runtime > workload.requested))
    share = 100 * killed / len(workload)
    if share <= MANY_KILLED or all(s.overrun != "kill" for s in schedules):
        return []
    return [
        f"{killed:,} job{' is' if killed == 1 else 's are'} killed at the requested time ({human_percent(share)} of all), "
        "which makes the load lower than in the log."
    ]


def _tail(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[np.ndarray]) -> list[str]:
    heavy = []
    for name, s, mask in zip(names, schedules, masks, strict=True):
        ratio = metrics.bounded_slowdown(s.wait[mask], s.runtime[mask])
        top = len(ratio) // 100
        share = 100 * float(np.partition(ratio, len(ratio) - top)[len(ratio) - top :].sum() / ratio.sum()) if top else 0.0
        if share > HEAVY:
            heavy.append(f"{human_percent(share)} under {lower_first(name)}")
    if not heavy:
        return []
    return [f"A few jobs dominate the mean bounded slowdown: the top 1 % contribute {listed(heavy)}. Look at the distribution first."]


def _close(names: Sequence[str], summaries: Sequence[Summary], spread: Spread | None) -> list[str]:
    """Return caveats on policies with similar mean waits, within the scatter of shaken copies or close."""
    ranked = sorted(range(len(names)), key=lambda k: (summaries[k].mean_wait, names[k]))
    waits = [s.mean_wait for s in summaries]
    pairs = [(a, b) for a, b in pairwise(ranked) if waits[a] != waits[b]]
    sentences = []

    def differ(a: int, b: int, size: str) -> str:
        return f"{lower_first(names[a])} and {lower_first(names[b])} differ by {size}"

    unclear = [(a, b) for a, b in pairs if spread is not None and not distinct("mean_wait", a, b, summaries, spread)]
    if unclear and spread is not None and len(names) > 2:  # the answer describes the difference of the first two
        told = [differ(a, b, " ± ".join(map(human_time, spread.difference("mean_wait", a, b)))) for a, b in unclear]
        sentences.append(
            f"No clear difference in mean wait: {listed(told)} (mean over the log and {spread.copies} copies with submissions shifted by "
            f"up to {spread.seconds} s; {shown_level(spread.level)} prediction interval for one more copy)."
        )
    close = [(a, b) for a, b in pairs if (a, b) not in unclear and abs(metrics.relative_difference(waits[b], waits[a])) < CLOSE]
    if close:
        told = [differ(a, b, human_percent(metrics.relative_difference(waits[b], waits[a]))) for a, b in close]
        where = "on another log" if spread is not None else "on another log or with slightly shifted submissions"
        sentences.append(f"In mean wait, {listed(told)}; such a small difference may be reversed {where}.")
    if spread is None and len(names) > 1:
        sentences.append("No intervals are shown: shaken copies of the log were switched off, or would take too long to simulate.")
    return sentences
