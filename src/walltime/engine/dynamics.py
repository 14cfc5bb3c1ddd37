"""What backfilling did to the heads of the queue, and how near it came to shortest job first, from a log of the starts.

The event loop only notes three things at each start, and only if asked: which job it was, how many jobs had arrived by then,
and over which head it was backfilled. The rest is worked out here afterwards, so that it costs nothing where nobody asks.

Source: P3 sections V and VI (SPEC A-08, A-09, Q-17).
"""

from __future__ import annotations

from walltime.engine.heap import drop_first, push
from walltime.engine.jit import kernel
from walltime.engine.memory import NEVER


@kernel
def replay_starts(submit_order, start, runtime, procs, machine_procs, log, scratch, found):
    """Go through the starts one by one, with the ends of the running jobs as they really were.

    `submit_order`: the jobs in order of arrival. `log`: which job started, how many had arrived, over which head. Fills
    `found`: whether each job was the shortest waiting one, and whether it was alone; whether its backfilling was wild; how
    many wild backfills a head suffered, and its real shadow before the first backfilling under it (-1 for none).
    """
    arrived = waiting = running = 0
    free = machine_procs
    head, shadow = -1, NEVER
    for k in range(log.job.size):
        job = log.job[k]
        now = start[job]
        while arrived < log.arrived[k]:
            newcomer = submit_order[arrived]
            push(scratch.length, scratch.rank, scratch.waiting, waiting, runtime[newcomer], arrived, newcomer)
            arrived += 1
            waiting += 1
        gone = 0
        while gone < running and scratch.end[gone] <= now:
            free += procs[scratch.running[gone]]
            gone += 1
        if gone > 0:
            running -= gone
            for i in range(running):
                scratch.end[i] = scratch.end[i + gone]
                scratch.running[i] = scratch.running[i + gone]

        found.alone[job] = arrived - k == 1
        found.shortest[job] = runtime[job] <= scratch.length[0]
        scratch.started[job] = True
        while waiting > 0 and scratch.started[scratch.waiting[0]]:
            drop_first(scratch.length, scratch.rank, scratch.waiting, waiting)
            waiting -= 1

        if log.head[k] < 0:
            head = -1  # this start came before the head in the queue's order and may delay it; that is not backfilling
        else:
            if head != log.head[k]:
                head = log.head[k]
                shadow = _real_shadow(scratch, procs, free, running, now, procs[head])
                if found.initial_shadow[head] < 0:
                    found.initial_shadow[head] = shadow
            shadow = max(shadow, now)

        end = now + runtime[job]
        free -= procs[job]
        i = running
        while i > 0 and scratch.end[i - 1] > end:
            scratch.end[i] = scratch.end[i - 1]
            scratch.running[i] = scratch.running[i - 1]
            i -= 1
        scratch.end[i] = end
        scratch.running[i] = job
        running += 1

        if head >= 0 and end > shadow:
            after = _real_shadow(scratch, procs, free, running, now, procs[head])
            if after > shadow:
                found.wild[job] = True
                found.suffered[head] += 1
                shadow = after


@kernel
def _real_shadow(scratch, procs, free, running, now, wanted):
    """When so many processors would be free if nothing else started, the running jobs sorted by their real ends."""
    shadow = now
    i = 0
    while free < wanted and i < running:
        free += procs[scratch.running[i]]
        shadow = scratch.end[i]
        i += 1
    return max(shadow, now)
