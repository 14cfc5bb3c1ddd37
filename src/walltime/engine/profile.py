"""The profile: free processors over future time, as a step function (P2 section 2.1).

Step i holds from `profile_time[i]` until the next one; the last holds for ever. Neighbouring steps differ, and the first
one covers the present.
"""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.memory import FREE, NOW, PROFILE_FIRST, PROFILE_LAST, RUNNING


@kernel
def anchor_point(memory, believed, procs):
    """Earliest time from now on at which so many processors stay free for so long (P2 section 2.1, step 1)."""
    state, time, free = memory.state, memory.profile_time, memory.profile_free
    start = state[NOW]
    last = state[PROFILE_LAST]
    i = state[PROFILE_FIRST]
    while i < last and time[i] < start + believed:
        if free[i] < procs:
            start = time[i + 1]  # the last step has all processors free, so there is a next one
        i += 1
    return start


@kernel
def earlier_anchor_point(memory, reservation, believed, procs):
    """Earliest time at which a job with a reservation could start, its own reservation not standing in its way.

    From its reservation on it needs only its own processors; so the profile matters up to there.
    """
    state, time, free = memory.state, memory.profile_time, memory.profile_free
    start = state[NOW]
    last = state[PROFILE_LAST]
    i = state[PROFILE_FIRST]
    while i < last and time[i] < reservation and time[i] < start + believed:
        if free[i] < procs:
            if i + 1 == last or time[i + 1] >= reservation:
                return reservation
            start = time[i + 1]
        i += 1
    return start


@kernel
def fits_now(memory, believed, procs):
    """Whether so many processors stay free for so long from now on."""
    state, time, free = memory.state, memory.profile_time, memory.profile_free
    end = state[NOW] + believed
    i = state[PROFILE_FIRST]
    while i < state[PROFILE_LAST] and time[i] < end:
        if free[i] < procs:
            return False
        i += 1
    return True


@kernel
def occupy(memory, begin, end, procs):
    """Take processors (give back, if negative) in [begin, end), which does not begin before the first step."""
    free = memory.profile_free
    _make_room(memory)
    first = _step_at(memory, begin)
    last = _step_at(memory, end)
    for i in range(first, last):
        free[i] -= procs
    _merge(memory, last)
    _merge(memory, first)


@kernel
def profile_of_running(jobs, memory):
    """Make the profile afresh from the running jobs; one that is overdue is held to end in a second (SPEC Q-28)."""
    state, time, free = memory.state, memory.profile_time, memory.profile_free
    now = state[NOW]
    time[0] = now
    free[0] = state[FREE]
    last = 0
    for i in range(state[RUNNING]):
        end = max(memory.running_expected[i], now + 1)
        if time[last] < end:
            last += 1
            time[last] = end
            free[last] = free[last - 1]
        free[last] += jobs.procs[memory.running_job[i]]
    state[PROFILE_FIRST] = 0
    state[PROFILE_LAST] = last + 1


@kernel
def forget_past(memory):
    """Drop the steps that ended by now."""
    state, time = memory.state, memory.profile_time
    while state[PROFILE_FIRST] + 1 < state[PROFILE_LAST] and time[state[PROFILE_FIRST] + 1] <= state[NOW]:
        state[PROFILE_FIRST] += 1


@kernel
def _step_at(memory, when):
    """Index of the step that begins at this time, after splitting one if need be."""
    state, time, free = memory.state, memory.profile_time, memory.profile_free
    low, high = state[PROFILE_FIRST], state[PROFILE_LAST]
    while low < high:
        middle = (low + high) // 2
        if time[middle] < when:
            low = middle + 1
        else:
            high = middle
    if low < state[PROFILE_LAST] and time[low] == when:
        return low
    for i in range(state[PROFILE_LAST], low, -1):
        time[i] = time[i - 1]
        free[i] = free[i - 1]
    time[low] = when
    free[low] = free[low - 1]
    state[PROFILE_LAST] += 1
    return low


@kernel
def _merge(memory, i):
    """Drop a step that does not differ from the one before it."""
    state, time, free = memory.state, memory.profile_time, memory.profile_free
    if i > state[PROFILE_FIRST] and free[i] == free[i - 1]:
        for k in range(i, state[PROFILE_LAST] - 1):
            time[k] = time[k + 1]
            free[k] = free[k + 1]
        state[PROFILE_LAST] -= 1


@kernel
def _make_room(memory):
    """Move the profile to the front of its arrays when it has reached their end."""
    state, time, free = memory.state, memory.profile_time, memory.profile_free
    if state[PROFILE_LAST] + 2 > time.size:
        first = state[PROFILE_FIRST]
        for i in range(first, state[PROFILE_LAST]):
            time[i - first] = time[i]
            free[i - first] = free[i]
        state[PROFILE_LAST] -= first
        state[PROFILE_FIRST] = 0
