"""What jobs lack in the plan of backfill (plan.py), and what has become free since: whether a prospect or bound still holds.

A job cannot start before a time as long as fewer processors have become free for it than it lacked. What becomes free is so only until the
planned end of a job that has ended early, or of nodes that are no longer kept, mostly soon; so what a job lacks at first is kept apart from
what it lacks later on.
"""

from __future__ import annotations

from walltime.compiled.jit import called_kernel, kernel


@kernel
def note_lack(state, time, lack):
    """A job cannot start at a time before or at this one, since it lacks so many processors then."""
    if time < state.far:
        state.slack = min(state.slack, lack)
    else:
        state.slack_far = min(state.slack_far, lack)


@kernel
def gained_too_little(prospect):
    """Whether fewer processors have become free since than a job lacks."""
    return prospect.gained < prospect.slack and prospect.gained_far < prospect.slack_far


@kernel
def take_slack(state, known):
    """Go on from what a prospect or bound still lacks."""
    state.slack, state.slack_far, state.far = known.slack - known.gained, known.slack_far - known.gained_far, known.far


@kernel
def keep_slack(state, known):
    """Keep in a prospect or bound what the search has found lacking."""
    known.slack, known.slack_far, known.far, known.gained, known.gained_far = state.slack, state.slack_far, state.far, 0, 0


@kernel
def note_change(state, gain, gain_of_whole, until):
    """Note that so many processors have become free, or whole nodes of so many, and that nothing has changed after `until`."""
    state.gain += gain
    state.gain_of_whole += gain_of_whole
    state.changed_until = max(state.changed_until, until)


@called_kernel
def tell_prospects(state, plan):
    """Note in all prospects and bounds what has changed."""
    gain, gain_of_whole, until = state.gain, state.gain_of_whole, state.changed_until
    state.gain = state.gain_of_whole = state.changed_until = 0
    if until == 0:
        return
    for k in range(state.planned):
        prospect = plan.prospects[k]
        own = gain_of_whole if prospect.whole else gain
        prospect.gained += own
        prospect.gained_far += own * (until > prospect.far)
        prospect.unsettled = max(prospect.unsettled, until)
    left = 0
    for k in range(state.bounds):
        bound = plan.bounds[k]
        own = gain_of_whole if bound.whole or bound.each > 0 else gain
        bound.gained += own
        bound.gained_far += own * (until > bound.far)
        if bound.gained < bound.slack and bound.gained_far < bound.slack_far and bound.time > state.now:
            plan.bounds[left] = bound
            left += 1
    state.bounds = left
