"""Which waiting jobs a learning environment shows where there are more of them than slots (`walltime.learn`)."""

from __future__ import annotations

from walltime.compiled.jit import kernel


@kernel
def sort_waiting(orders, kept, sorted_before, arrived, jobs, start):
    """Bring both sorted lists of waiting jobs up to date; returns how many there are.

    `orders` (int64, 2 x jobs): waiting jobs by length, and by size. `kept`: how many it has; `sorted_before` and `arrived`: how many jobs
    had arrived when it was made, and have now. Sorting when somebody looks, and not at each arrival and start, costs the others nothing.
    """
    count = 0
    for k in range(2):
        order, count = orders[k], 0
        for i in range(kept):
            if start[order[i]] == -1:
                order[count] = order[i]
                count += 1
        for job in range(sorted_before, arrived):
            if start[job] != -1:
                continue
            i = count
            while i > 0 and _comes_after(jobs, k, order[i - 1], job):
                order[i] = order[i - 1]
                i -= 1
            order[i] = job
            count += 1
    return count


@kernel
def _comes_after(jobs, k, one, other):
    """Whether a job is longer (0) or larger (1) than another one."""
    return jobs[one].by_length > jobs[other].by_length if k == 0 else jobs[one].by_size > jobs[other].by_size


@kernel
def take_turns(orders, jobs, queue, waiting, slots):
    """Fill the slots with the shortest job, the smallest one, the next shortest, the next smallest, and so on, each job once (zhang20).

    `slots` (int64): places in the queue, which is in order of arrival. There are more jobs than slots.
    """
    shortest, smallest, shown, i = orders[0], orders[1], 0, 0
    while shown < slots.size:
        if jobs[shortest[i]].by_size >= jobs[smallest[i]].by_size:  # else it came before, as one of the smallest
            slots[shown] = _place(queue, waiting, shortest[i])
            shown += 1
        if shown < slots.size and jobs[smallest[i]].by_length > jobs[shortest[i]].by_length:
            slots[shown] = _place(queue, waiting, smallest[i])
            shown += 1
        i += 1


@kernel
def _place(queue, waiting, job):
    """Where a job is in the queue, which is sorted."""
    low, high = 0, waiting - 1
    while low < high:
        middle = (low + high) // 2
        if queue[middle] < job:
            low = middle + 1
        else:
            high = middle
    return low
