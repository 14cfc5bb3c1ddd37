"""What stands at the time of a decision, for compiled orders that name it: who waits, their work, the free processors, and the machine.

What counts is how the scheduler finds queue and machine at an instant: what has ended or arrived by then does, what starts at it does not
yet. So the values do not depend on the order of the starts of an instant. Nothing is added to the loop: they are read from its memory when
an order asks for them, once for each instant, so orders that name none of them cost what they did.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.memory import ENTRY, JOB, NOTE, RUN, STATE, Memory, Records, record
from walltime.engine.kernel.words import address_of, records_at

_FIELDS = ["state", "jobs", "queue", "running", "notes", "now", "arrivals", "ended", "waiting", "queued", "free", "machine"]
OWN = np.dtype([(name, np.int64) for name in _FIELDS])
"""`state`, `jobs`, `queue`, `running`, `notes`: addresses of the loop's records; `now`, `arrivals`, `ended`: when the values were read, and
how many jobs had arrived and ended then; and the values: waiting jobs, their work by their estimates (processor seconds), and
free and all processors."""

_own_at, _state_at, _job_at, _entry_at, _run_at, _note_at = (records_at(kind) for kind in (OWN, STATE, JOB, ENTRY, RUN, NOTE))


@kernel
def standing_at(address, place, now):
    """The waiting jobs (0), their work (1), the free processors (2) or all of them (3), as of now."""
    own = _own_at(address, 0)
    state = _state_at(own.state, 0)
    if own.now != now or own.arrivals != state.arrivals or own.ended != state.started - state.running:
        _read(own, state, now)
    if place == 0:
        return own.waiting
    if place == 1:
        return own.queued
    return own.free if place == 2 else own.machine


@kernel
def _read(own, state, now):
    """Look at the queue, the running jobs, and those that have started now."""
    own.now, own.arrivals, own.ended = now, state.arrivals, state.started - state.running
    own.waiting, own.queued, own.free = 0, 0, own.machine
    for place in range(state.queue_first, state.queue_last):
        job = _job_at(own.jobs, np.int64(_entry_at(own.queue, place).job))
        if job.start < 0:
            own.waiting += 1
            own.queued += job.procs * job.believed
    for place in range(state.running):
        job = _job_at(own.jobs, _run_at(own.running, place).job)
        if job.start < now:
            own.free -= job.procs
    place = state.started - 1
    while place >= 0:
        job = _job_at(own.jobs, _note_at(own.notes, place).job)
        if job.start < now:
            break
        own.waiting += 1
        own.queued += job.procs * job.believed
        place -= 1


def new_standing() -> Records:
    """The record; what it points to is set by `bind_standing`."""
    return record(OWN, now=np.iinfo(np.int64).min)


def bind_standing(own: Records, memory: Memory) -> None:
    """Tell a record where the loop's memory is, and how large the machine."""
    tables: dict[str, Any] = {"jobs": memory.jobs, "queue": memory.queue}
    tables |= {"running": memory.machine.running, "notes": memory.machine.notes}
    for name, table in tables.items():
        own[name] = table.ctypes.data
    own.state, own.machine = address_of(memory.state), memory.rules.procs
