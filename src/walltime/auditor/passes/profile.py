"""Free processors over future time as a step function: find and reserve processors for jobs; compiled."""

from walltime.auditor.passes.places import expected_end
from walltime.compiled.jit import called_kernel, kernel


@called_kernel
def build(state, jobs, lists, profile):
    """Make the profile of the running jobs alone; overdue jobs are expected to end in a second."""
    profile.time[0], profile.free[0] = state.now, state.free
    state.points = 1
    for k in range(state.running):
        job = lists.running[k]
        end = expected_end(state, jobs, job, state.now + 1)
        last = state.points - 1
        if end == profile.time[last]:
            profile.free[last] += jobs[job].procs
        else:
            profile.time[last + 1], profile.free[last + 1] = end, profile.free[last] + jobs[job].procs
            state.points += 1


@called_kernel
def move_on(state, profile):
    """Drop the steps of the profile that have passed."""
    place = 0
    while place + 1 < state.points and profile.time[place + 1] <= state.now:
        place += 1
    if place > 0:
        for k in range(place, state.points):
            profile.time[k - place], profile.free[k - place] = profile.time[k], profile.free[k]
        state.points -= place
    profile.time[0] = state.now


@called_kernel
def anchor(state, profile, procs, length):
    """Return the anchor point: the earliest time from which `procs` processors are free for `length` s."""
    place = 0
    while True:
        while profile.free[place] < procs:
            place += 1
        begin, ahead = profile.time[place], place
        while ahead < state.points and profile.time[ahead] < begin + length and profile.free[ahead] >= procs:
            ahead += 1
        if ahead == state.points or profile.time[ahead] >= begin + length:
            return begin
        place = ahead


@kernel
def cut(state, profile, time):
    """Return the index of the step that begins at this time, inserting it if it is missing."""
    low, high = 0, state.points
    while low < high:
        middle = (low + high) // 2
        if profile.time[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < state.points and profile.time[low] == time:
        return low
    for k in range(state.points, low, -1):
        profile.time[k], profile.free[k] = profile.time[k - 1], profile.free[k - 1]
    profile.time[low] = time
    profile.free[low] = profile.free[low - 1]
    state.points += 1
    return low


@kernel
def join(state, profile, place):
    """Remove a step if it does not differ from the one before it."""
    if place == 0 or profile.free[place] != profile.free[place - 1]:
        return
    state.points -= 1
    for k in range(place, state.points):
        profile.time[k], profile.free[k] = profile.time[k + 1], profile.free[k + 1]


@called_kernel
def occupy(state, profile, begin, end, procs):
    """Take processors (release them, if negative) in [begin, end); `begin` is not in the past."""
    if end <= begin:
        return
    first = cut(state, profile, begin)
    last = cut(state, profile, end)
    for k in range(first, last):
        profile.free[k] -= procs
    join(state, profile, last)
    join(state, profile, first)


@kernel
def reserve(state, jobs, profile, job):
    """Make the earliest reservation for a job, and return its start, s."""
    begin = anchor(state, profile, jobs[job].procs, jobs[job].own)
    occupy(state, profile, begin, begin + jobs[job].own, jobs[job].procs)
    return begin
