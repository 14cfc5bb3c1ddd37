"""Arrivals of jobs: jobs that wait for no other job, in order of submission, and jobs released by the ends of others."""

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.heap import pop
from walltime.engine.kernel.memory import NEVER


@kernel
def next_arrival(state, jobs, machine):
    """Return when the next job arrives, NEVER if none does."""
    time = NEVER
    if state.next_coming < machine.coming.size:
        time = jobs[machine.coming[state.next_coming]].submit
    if state.later > 0:
        time = min(time, machine.later[0].rank)
    return time


@kernel
def take_arrival(state, jobs, machine, now):
    """Return the next job, which arrives now, and count it; among jobs that arrive at the same time, the lowest number comes first."""
    coming, later, index = machine.coming, machine.later, np.int64(-1)
    if state.next_coming < coming.size and jobs[coming[state.next_coming]].submit == now:
        index = coming[state.next_coming]
    if state.later > 0 and later[0].rank == now and (index < 0 or later[0].job < index):
        index = pop(later, state.later)
        state.later -= 1
    else:
        state.next_coming += 1
    jobs[index].arrival = state.arrivals
    state.arrivals += 1
    return index
