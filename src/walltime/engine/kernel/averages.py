"""The averages of a schedule, compiled, for thousands of schedules.

The definitions are those of `walltime.metrics.summarize`; tests compare the two.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import entry, kernel

_WHOLE = ("jobs", "measured_jobs", "zero_runtime_jobs")
_FIELDS = (
    "jobs measured_jobs mean_wait mean_response mean_slowdown mean_bounded_slowdown utilization offered_load backfilled_percent "
    "mean_bounded_slowdown_p1 zero_runtime_jobs median_wait p90_wait p99_wait max_wait mean_runtime_backfilled "
    "mean_procs_backfilled mean_runtime_others mean_procs_others makespan"
)
AVERAGES = np.dtype([(name, np.int64 if name in _WHOLE else np.float64) for name in _FIELDS.split()])
"""The fields of `walltime.metrics.Summary`."""
BOUND = 10
"""Threshold of the bounded slowdown, s (feitelson98, mualem01, tsafrir06)."""


class Columns(NamedTuple):
    """A schedule, one entry per job: times in s and processors (int64), and how each started (uint8)."""

    submit: Any
    start: Any
    runtime: Any
    procs: Any
    kind: Any


class Scratch(NamedTuple):
    """Working arrays, one entry per job: `skipped` (uint8), afterwards whether a job was not measured, and `values` (int64)."""

    skipped: Any
    values: Any


@entry
def measure(columns, machine_procs, trim_p3, scratch, result):
    """Fill `result`, a record of AVERAGES, but for its offered load; returns how many jobs were measured."""
    submit, start, runtime, procs, kind = columns
    skipped, values = scratch
    jobs = submit.size
    first, last_submit, last, area = submit[0], submit[0], start[0], 0
    for job in range(jobs):
        first = min(first, submit[job])
        last_submit = max(last_submit, submit[job])
        last = max(last, start[job] + runtime[job])
        area += procs[job] * runtime[job]
        skipped[job] = 0
    if trim_p3:
        _trim(start, runtime, last_submit, skipped, values)

    count = wait_sum = response_sum = with_runtime = backfilled = 0
    longest = 0
    slowdown_sum = bounded_sum = bounded_p1_sum = 0.0
    runtime_backfilled = procs_backfilled = runtime_others = procs_others = 0
    for job in range(jobs):
        if skipped[job]:
            continue
        wait, run = start[job] - submit[job], runtime[job]
        values[count] = wait
        count += 1
        wait_sum += wait
        response_sum += wait + run
        longest = max(longest, wait)
        if run > 0:
            with_runtime += 1
            slowdown_sum += (wait + run) / run
        bounded = (wait + run) / max(run, BOUND)
        bounded_p1_sum += bounded
        bounded_sum += max(bounded, 1.0)
        if kind[job] == 2:
            backfilled += 1
            runtime_backfilled += run
            procs_backfilled += procs[job]
        else:
            runtime_others += run
            procs_others += procs[job]
    others = count - backfilled
    result.jobs = jobs
    result.measured_jobs = count
    result.mean_wait = wait_sum / count
    result.mean_response = response_sum / count
    result.mean_slowdown = slowdown_sum / with_runtime
    result.mean_bounded_slowdown = bounded_sum / count
    result.utilization = area / (machine_procs * (last - first)) if last > first else math.nan
    result.backfilled_percent = 100.0 * (backfilled / count)
    result.mean_bounded_slowdown_p1 = bounded_p1_sum / count
    result.zero_runtime_jobs = count - with_runtime
    result.median_wait = _percentile(values, count, 50.0)
    result.p90_wait = _percentile(values, count, 90.0)
    result.p99_wait = _percentile(values, count, 99.0)
    result.max_wait = longest
    result.mean_runtime_backfilled = runtime_backfilled / backfilled
    result.mean_procs_backfilled = procs_backfilled / backfilled
    result.mean_runtime_others = runtime_others / others
    result.mean_procs_others = procs_others / others
    result.makespan = last - first
    return count


@kernel
def _trim(start, runtime, last_submit, skipped, ends):
    """Skip the first 1 % of all jobs by end, ties by arrival, and the jobs that end after the last arrival (tsafrir06, section II)."""
    jobs = start.size
    warm_up = jobs // 100
    for job in range(jobs):
        ends[job] = start[job] + runtime[job]
        skipped[job] = ends[job] > last_submit
    if warm_up == 0:
        return
    threshold = _select(ends, 0, jobs, warm_up - 1)
    left = warm_up
    for job in range(jobs):
        if start[job] + runtime[job] < threshold:
            skipped[job] = 1
            left -= 1
    for job in range(jobs):
        if left == 0:
            return
        if start[job] + runtime[job] == threshold:
            skipped[job] = 1
            left -= 1


@kernel
def _percentile(values, count, percent):
    """The percentile of values[:count] with linear interpolation, as in numpy; changes the order of the values."""
    if count == 0:
        return math.nan
    exact = (count - 1) * (percent / 100.0)
    below = math.floor(exact)
    share = exact - below
    low = _select(values, 0, count, below)
    high = low
    if below + 1 < count:
        high = values[below + 1]
        for i in range(below + 2, count):
            high = min(high, values[i])
    if share >= 0.5:
        return high - (high - low) * (1.0 - share)
    return low + (high - low) * share


@kernel
def _select(values, first, last, place):
    """The value that sorting values[first:last] would put at this place; smaller ones are moved before it (quickselect)."""
    low, high = first, last - 1
    while low < high:
        a, b, c = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]
