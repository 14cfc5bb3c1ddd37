"""A binary heap of jobs by time, on flat arrays; those of one time come in the order of their keys."""

from __future__ import annotations

from walltime.engine.jit import kernel


@kernel
def _before(time_a, key_a, time_b, key_b):
    return time_a < time_b or (time_a == time_b and key_a < key_b)


@kernel
def push(times, keys, jobs, size, time, key, job):
    """Put a job into a heap that holds `size` of them."""
    i = size
    while i > 0:
        parent = (i - 1) // 2
        if not _before(time, key, times[parent], keys[parent]):
            break
        times[i], keys[i], jobs[i] = times[parent], keys[parent], jobs[parent]
        i = parent
    times[i], keys[i], jobs[i] = time, key, job


@kernel
def drop_first(times, keys, jobs, size):
    """Remove the first job of a heap that holds `size` of them."""
    last = size - 1
    time, key, job = times[last], keys[last], jobs[last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and _before(times[child + 1], keys[child + 1], times[child], keys[child]):
            child += 1
        if not _before(times[child], keys[child], time, key):
            break
        times[i], keys[i], jobs[i] = times[child], keys[child], jobs[child]
        i = child
    times[i], keys[i], jobs[i] = time, key, job
