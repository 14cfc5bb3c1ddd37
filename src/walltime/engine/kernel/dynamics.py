"""The effects of backfilling on the heads of the queue, and its closeness to shortest job first, from a log of the starts.

The event loop records only three values at each start, and only on request: the job, how many jobs had arrived by then,
and over which head it was backfilled. The rest is computed here afterwards, so that it costs nothing when not needed.

Source: tsafrir06, sections V and VI.
"""

from __future__ import annotations

from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.jit import entry, kernel
from walltime.engine.kernel.memory import NEVER


@entry
def replay_starts(in_order, jobs, machine_procs, notes, scratch, found):
    """Go through the starts one by one, with the real ends of the running jobs.

    `in_order`: the jobs in order of arrival. `notes`: the started job, how many had arrived, over which head. Fills
    `found`: whether each job was the shortest waiting one, and whether it was alone; whether its backfilling was wild; how
    many wild backfills a head suffered, and its real shadow before the first job was backfilled over it (-1 for none).
    """
    waiting_jobs, runs = scratch.waiting, scratch.running
    arrived = waiting = running = 0
    free = machine_procs
    head, shadow = -1, NEVER
    for k in range(notes.size):
        note = notes[k]
        job = note.job
        now = jobs[job].start
        while arrived < note.arrived:
            newcomer = in_order[arrived]
            push(waiting_jobs, waiting, jobs[newcomer].runtime, arrived, newcomer)
            arrived += 1
            waiting += 1
        gone = 0
        while gone < running and runs[gone].expected <= now:
            free += runs[gone].procs
            gone += 1
        if gone > 0:
            running -= gone
            for i in range(running):
                runs[i] = runs[i + gone]

        found.alone[job] = arrived - k == 1
        found.shortest[job] = jobs[job].runtime <= waiting_jobs[0].rank
        scratch.started[job] = True
        while waiting > 0 and scratch.started[waiting_jobs[0].job]:
            drop_first(waiting_jobs, waiting)
            waiting -= 1

        if note.head < 0:
            head = -1  # this start came before the head in the queue's order and may delay it; that is not backfilling
        else:
            if head != note.head:
                head = note.head
                shadow = _real_shadow(runs, free, running, now, jobs[head].procs)
                if found.initial_shadow[head] < 0:
                    found.initial_shadow[head] = shadow
            shadow = max(shadow, now)

        end = now + jobs[job].runtime
        free -= jobs[job].procs
        i = running
        while i > 0 and runs[i - 1].expected > end:
            runs[i] = runs[i - 1]
            i -= 1
        runs[i].expected, runs[i].job, runs[i].procs = end, job, jobs[job].procs
        running += 1

        if head >= 0 and end > shadow:
            after = _real_shadow(runs, free, running, now, jobs[head].procs)
            if after > shadow:
                found.wild[job] = True
                found.suffered[head] += 1
                shadow = after


@kernel
def _real_shadow(runs, free, running, now, wanted):
    """When enough processors would be free if nothing else started; the running jobs are sorted by their real ends."""
    shadow = now
    i = 0
    while free < wanted and i < running:
        free += runs[i].procs
        shadow = runs[i].expected
        i += 1
    return max(shadow, now)
