"""The averages of a schedule, compiled, for thousands of schedules.

The definitions are those of `walltime.metrics.summarize`; tests compare the two.
"""

from __future__ import annotations

import math

from walltime.engine.kernel.jit import entry, kernel

# Places in the array of results, in the order of the fields of Summary.
FIELDS = 20
BOUND = 10
"""Threshold of the bounded slowdown, s (feitelson98, mualem01, tsafrir06)."""


@entry
def measure(submit, start, runtime, procs, kind, machine_procs, offered_load, trim_p3, skipped, values, result):
    """Fill `result` with the fields of Summary; returns how many jobs were measured.

    `skipped` (uint8) and `values` (int64) are working arrays, one entry per job; afterwards `skipped` marks the jobs that were
    not measured.
    """
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
    result[0] = jobs
    result[1] = count
    result[2] = wait_sum / count
    result[3] = response_sum / count
    result[4] = slowdown_sum / with_runtime
    result[5] = bounded_sum / count
    result[6] = area / (machine_procs * (last - first)) if last > first else math.nan
    result[7] = offered_load
    result[8] = 100.0 * (backfilled / count)
    result[9] = bounded_p1_sum / count
    result[10] = count - with_runtime
    result[11] = _percentile(values, count, 50.0)
    result[12] = _percentile(values, count, 90.0)
    result[13] = _percentile(values, count, 99.0)
    result[14] = longest
    result[15] = runtime_backfilled / backfilled
    result[16] = procs_backfilled / backfilled
    result[17] = runtime_others / others
    result[18] = procs_others / others
    result[19] = last - first
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
