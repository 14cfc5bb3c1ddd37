"""How backfilling delays the heads of the queue, and how often it starts the shortest job, computed from a log of the starts.

The event loop records only three values at each start, and only on request: the job, how many jobs had arrived by then, and the head over
which it was backfilled. Everything else is computed here afterwards. Source: tsafrir06, sections V and VI.
"""

from __future__ import annotations

from walltime.compiled.jit import entry
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.running import enter_running, find_shadow

EFFECT = record_dtype("shortest alone wild suffered initial_shadow started")
"""The effects of backfilling on a job; all fields but two are 0 or 1.

* `shortest`, `alone`: when it started, whether it was the shortest waiting job, and whether it was the only one
* `wild`: whether its backfilling delayed the real shadow time of the head
* `suffered`: for a head, the number of wild backfills over it
* `initial_shadow`: for a head, its real shadow time before the first backfill over it, s; -1 for none
* `started`: whether the job has been replayed"""


@entry
def replay_starts(in_order, jobs, machine_procs, notes, waiting_jobs, runs, effects):
    """Replay the starts one by one, with the real ends of the running jobs.

    `in_order`: the jobs in order of arrival. `notes`: for each start, the job, the number of jobs that had arrived, and the head over which
    it was backfilled. `waiting_jobs`: room for a heap of the waiting jobs by runtime; `runs`: room for a heap of the running jobs by end.
    Fills `effects`, by job.
    """
    effects.initial_shadow[:] = -1
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

        own = effects[job]
        own.alone = arrived - k == 1
        own.shortest = jobs[job].runtime <= waiting_jobs[0].rank
        own.started = 1
        while waiting > 0 and effects[waiting_jobs[0].job].started:
            pop(waiting_jobs, waiting)
            waiting -= 1

        if note.head < 0:
            head = -1  # the job that starts was ahead of the head in the queue: it may delay the head, but is not backfilled
        else:
            if head != note.head:
                head = note.head
                shadow = find_shadow(runs, running, now, free, jobs[head].procs)[0]
                if effects[head].initial_shadow < 0:
                    effects[head].initial_shadow = shadow
            shadow = max(shadow, now)

        end = now + jobs[job].runtime
        free -= jobs[job].procs
        enter_running(runs, running, end, job, jobs[job].procs)
        running += 1

        if head >= 0 and end > shadow:
            after = find_shadow(runs, running, now, free, jobs[head].procs)[0]
            if after > shadow:
                own.wild = 1
                effects[head].suffered += 1
                shadow = after
