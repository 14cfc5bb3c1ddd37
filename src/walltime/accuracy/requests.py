"""Suggest memory, processors and GPUs for a user's next job, from the recorded use of earlier jobs."""

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.estimates.suggestion import LEAST, allowed_kills, exceeded_by, share_at_most
from walltime.metrics.right_size import RISK, STEPS, needs, suggested_amounts
from walltime.metrics.weekly_interval import LogWeeks
from walltime.workload import Array, Workload


@dataclass(frozen=True)
class RequestAdvice:
    """A suggested amount of one resource, with a backtest in which each job gets the suggestion from the jobs before it.

    Memory is in MB for the whole job. A job is short of a resource if it needed more than the suggestion. Jobs that ran out of memory
    needed more than they were allocated.
    """

    resource: str
    risk: float
    """accepted risk that a job needs more than the suggestion, percent"""
    amount: int
    jobs: int
    """earlier jobs whose use is recorded"""
    median_request: float
    upper: float
    """95 % upper confidence bound on the risk, percent, as in `walltime.estimates.suggestion.Suggestion`"""
    short: float
    """percentage of the jobs that are short in the backtest; nan if unknown"""
    over: float
    """unused amounts in the backtest, as a percentage of the used amounts, over the jobs that are not short"""
    over_requests: float
    """the same for the recorded requests of these jobs"""
    lost: float
    """core-hours lost by jobs that are short of memory in the backtest, which fail, by assumption at their end, and run again; nan for
    processors and GPUs, because a lack of them only slows jobs down"""
    short_twice: float
    """percentage of the jobs that are short even with twice the suggested memory; nan for processors and GPUs"""
    saved: float
    """hours saved by the suggestions, as a percentage of the hours allocated by requests; failed runs, one retry with twice the memory, and
    a second retry with the request are subtracted"""

    @property
    def helps(self) -> bool:
        """Return whether the suggestions are closer to the needs than the requests, and save hours despite failed runs."""
        return not (self.over > self.over_requests or self.saved <= 0)


def suggest_requests(
    workload: Workload, jobs: Array, risk: float = 5.0, needed: Mapping[str, tuple[Array, Array, Array]] | None = None
) -> list[RequestAdvice]:
    """Return a suggestion for each resource with enough jobs (indices, int64) whose use is known, in the order of `STEPS`.

    The suggestion is the smallest amount, rounded up, that at most `risk` percent of the jobs exceeded. Needed memory is the peak, and
    needed processors are the mean number of busy ones. Needed GPUs have a mean utilization of at least 1 %; if only the mean over the job's
    GPUs is known, all or none are needed. `needed`: the result of `walltime.metrics.right_size.needs`, by default for this workload.

    >>> columns = {"used_mem_mb": np.arange(1, 21) * 100.0, "requested_mem_mb": np.full(20, 8192.0), "user": np.full(20, 7)}
    >>> jobs = Workload.from_arrays(submit=np.arange(20), runtime=np.full(20, 60), procs=np.ones(20, int), machine_procs=4, columns=columns)
    >>> [(one.resource, one.amount) for one in suggest_requests(jobs, np.arange(20), risk=10)]
    [('memory', 2048)]
    """
    found = []
    for resource, (used, cut, requested) in (needs(workload) if needed is None else needed).items():
        known = jobs[~np.isnan(used[jobs]) & (requested[jobs] > 0)]
        if len(known) >= LEAST:
            hours = workload.runtime[known] / 3600
            found.append(_advice(resource, risk, used[known], cut[known], requested[known], hours, hours * workload.procs[known]))
    return found


@dataclass(frozen=True)
class Judgement:
    """How well the requests, or the suggestions, of all jobs match their needs, with 90 % intervals under sampling of weeks."""

    resource: str
    risk: float
    """risk of the suggestions, percent; nan for the recorded requests"""
    jobs: int
    """number of jobs with a known need, a request and a suggestion"""
    under: float
    """percentage of these jobs that needed more"""
    under_low: float
    """ends of its interval; nan if the log is too short for one"""
    under_high: float
    over: float
    """unused amounts, as a percentage of the needed amounts, over the jobs that did not need more"""
    over_low: float
    """ends of its interval"""
    over_high: float


def judge_requests(workload: Workload, risks: Sequence[float] = (RISK,)) -> list[Judgement]:
    """Compare the requests of each resource and the suggestions for it with the needs of the same jobs.

    Each job's suggestion comes from the jobs that ended before its submission (`walltime.metrics.right_size.suggested_amounts`); a resource
    without requests is judged by suggestions alone. Intervals are nan for logs shorter than 20 weeks.
    """
    wait, found = workload.recorded_wait, []
    weeks = LogWeeks.of(workload.submit, (workload.submit, workload.submit + (0 if wait is None else np.maximum(wait, 0))))
    for resource, (needed, cut, requested) in needs(workload).items():
        if np.isnan(needed).all():
            continue
        amounts = {math.nan: requested} if (requested > 0).any() else {}
        amounts |= {risk: suggested_amounts(workload, resource, risk) for risk in risks}
        jobs = np.flatnonzero(np.logical_and.reduce([~np.isnan(one) for one in (needed, *amounts.values())]))
        for risk, amount in amounts.items() if len(jobs) else ():
            short = np.where(cut, amount <= needed, amount < needed)[jobs]
            enough = jobs[~short & ~cut[jobs]]
            used, unused = needed[enough], (amount - needed)[enough]
            over, total = [math.nan] * 3, float(used.sum())
            if total:
                over = [
                    _over(total + float(unused.sum()), total),
                    *(100 * len(enough) * end / total for end in weeks.ends(unused, enough, used)),
                ]
            under = [100 * end for end in (float(short.mean()), *weeks.ends(short, jobs))]
            found.append(Judgement(resource, risk, len(jobs), *under, *over))
    return found


def sbatch_line(walltime: str, advice: Sequence[RequestAdvice], one_node: bool, procs: int | None = None) -> str:
    """Return the command line with a walltime such as 1:00:00 and the suggested amounts.

    `one_node`: whether the jobs run on one node. Otherwise, memory is by processor, and the line has no number of processors, because the
    recorded CPU time may be of one node only. `procs`: processors of each job, if they are the same.
    """
    words = {"memory": "--mem={}M", "cores": "--cpus-per-task={}", "gpus": "--gpus={}"}
    amounts = {one.resource: one.amount for one in advice if one_node or one.resource != "cores"}
    if not one_node and "memory" in amounts:
        words["memory"], amounts["memory"] = "--mem-per-cpu={}M", -(-amounts["memory"] // procs) if procs else 0
    return " ".join(["sbatch", f"--time={walltime}", *(words[name].format(amount) for name, amount in amounts.items() if amount)])


def _advice(resource: str, risk: float, needed: Array, cut: Array, requested: Array, hours: Array, core_hours: Array) -> RequestAdvice:
    """Return the suggestion that follows from these jobs, which are in order of submission."""
    step, whole = STEPS[resource], np.ceil(needed).astype(np.int64)
    lengths = np.where(cut, whole + 1, whole).tolist()
    ordered: list[int] = sorted(lengths[:LEAST])
    later = np.zeros(len(lengths) - LEAST, np.int64)
    for k, own in enumerate(lengths[LEAST:]):
        later[k] = exceeded_by(risk, ordered, step)
        insort(ordered, own)
    short = np.array(lengths[LEAST:]) > later
    again = np.array(lengths[LEAST:]) > 2 * later
    fails, requests, hours = resource == "memory", requested[LEAST:], hours[LEAST:]
    held = later + (np.where(short, 2 * later, 0) + np.where(again, requests, 0) if fails else 0)
    before = float((requests * hours).sum())
    enough = ~short & ~cut[LEAST:]
    used = float(needed[LEAST:][enough].sum())
    return RequestAdvice(
        resource=resource,
        risk=risk,
        amount=0 if not any(lengths) else exceeded_by(risk, sorted(lengths), step),
        jobs=len(lengths),
        median_request=float(np.median(requested)),
        upper=100 * share_at_most(allowed_kills(risk, len(lengths)), len(lengths)),
        short=100 * float(short.mean()) if len(short) else math.nan,
        over=_over(float(later[enough].sum()), used),
        over_requests=_over(float(requests[enough].sum()), used),
        lost=float((core_hours[LEAST:] * (short.astype(int) + again)).sum()) if fails else math.nan,
        short_twice=100 * float(again.mean()) if fails and len(again) else math.nan,
        saved=100 * (1 - float((held * hours).sum()) / before) if before > 0 else math.nan,
    )


def _over(amount: float, used: float) -> float:
    return 100 * (amount - used) / used if used > 0 else math.nan
