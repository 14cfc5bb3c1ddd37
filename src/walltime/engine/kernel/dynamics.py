"""Effects of backfilling on the heads of the queue, and its closeness to shortest job first, computed from a log of the starts.

The event loop records only three values at each start, and only on request: the job, how many jobs had arrived by then, and the head over
which it was backfilled. Everything else is computed here afterwards. Source: tsafrir06, sections V and VI.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import entry
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.memory import ITEM, NEVER, RUN, records
from walltime.engine.kernel.running import enter_running, find_shadow


class Scratch(NamedTuple):
    """Working arrays: a heap of the waiting jobs by runtime, the jobs that started, the running jobs by end."""

    waiting: Any
    started: Any
    running: Any


class Effects(NamedTuple):
    """Results, one entry per job: see `replay_starts`."""

    shortest: Any
    alone: Any
    wild: Any
    suffered: Any
    initial_shadow: Any


def new_scratch(jobs: int, machine_procs: int) -> Scratch:
    """Return working arrays for an empty queue and machine."""
    return Scratch(records(ITEM, jobs), np.zeros(jobs, np.bool_), records(RUN, min(jobs, 2 * machine_procs) + 1))


def new_effects(jobs: int) -> Effects:
    """Return arrays for the results."""
    shortest, alone, wild = (np.zeros(jobs, np.bool_) for _ in range(3))
    return Effects(shortest, alone, wild, np.zeros(jobs, np.int64), np.full(jobs, -1, np.int64))


@entry
def replay_starts(in_order, jobs, machine_procs, notes, scratch, effects):
    """Go through the starts one by one, with the real ends of the running jobs.

    `in_order`: the jobs in order of arrival. `notes`: the started job, how many had arrived, over which head. Fills `effects`: whether each
    job was the shortest waiting one, whether it was the only one, and whether its backfilling was wild. For heads: the number of wild
    backfills over it, and its real shadow time before the first job was backfilled over it (-1 for none).
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

        effects.alone[job] = arrived - k == 1
        effects.shortest[job] = jobs[job].runtime <= waiting_jobs[0].rank
        scratch.started[job] = True
        while waiting > 0 and scratch.started[waiting_jobs[0].job]:
            pop(waiting_jobs, waiting)
            waiting -= 1

        if note.head < 0:
            head = -1  # this start came before the head in the queue's order and may delay it; that is not backfilling
        else:
            if head != note.head:
                head = note.head
                shadow = find_shadow(runs, running, now, free, jobs[head].procs)[0]
                if effects.initial_shadow[head] < 0:
                    effects.initial_shadow[head] = shadow
            shadow = max(shadow, now)

        end = now + jobs[job].runtime
        free -= jobs[job].procs
        enter_running(runs, running, end, job, jobs[job].procs)
        running += 1

        if head >= 0 and end > shadow:
            after = find_shadow(runs, running, now, free, jobs[head].procs)[0]
            if after > shadow:
                effects.wild[job] = True
                effects.suffered[head] += 1
                shadow = after
