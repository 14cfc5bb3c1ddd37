"""The result of a comparison of schedules, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from walltime.metrics import Summary, relative_difference
from walltime.metrics.intervals import SHOWN_LEVEL
from walltime.schedule.schedule import Schedule
from walltime.simulation.spread import Spread
from walltime.wording import human_number, human_percent, human_time, lower_first, time_form

ELSEWHERE = "These differences are clear in shaken copies of this log; other logs may differ."
"""Added to clear differences, which readers might take for general results."""
CLOSE = 5.0
"""Largest difference in percent between close means."""
MOST_IN_ONE_SENTENCE = 4
"""With more policies than this, the sentence names the best ones instead of all."""


SHOW: Mapping[str, tuple[Callable[[float], str], str]] = {
    "mean_wait": (human_time, "mean wait"),
    "mean_bounded_slowdown": (human_number, "mean bounded slowdown"),
}
"""The measures of the answer: format and name."""


def answer(
    log: str, names: Sequence[str], schedules: Sequence[Schedule], summaries: Sequence[Summary], spread: Spread | None = None
) -> str:
    """Return the result of the comparison, in one sentence; the first schedule is the baseline.

    `log`: the name of the workload. `names, schedules, summaries`: one of each per policy, in the same order. `spread`: of the same
    schedules. A difference is called clear only if it exceeds the spread or, without one, at least 5 %.
    """
    first = summaries[0]
    if not first.measured_jobs:
        return f"{log} holds no jobs, so there is nothing to compare."
    if len(summaries) == 1:
        return (
            f"Under {lower_first(names[0])}, jobs wait {human_time(first.mean_wait)} on average, half of them "
            f"{_at_most(first.median_wait)}, and have a mean bounded slowdown of {human_number(first.mean_bounded_slowdown)}"
            f"{_share(schedules[0], first)}."
        )
    if len(summaries) > MOST_IN_ONE_SENTENCE:
        return _best(log, names, summaries, spread)
    second = summaries[1]
    unclear = [field for field in SHOW if not distinct(field, 0, 1, summaries, spread)]
    if unclear:
        told = f"On {log}, {_no_clear(unclear, names, summaries, spread)}"
    else:
        told = f"On {log}, {lower_first(names[1])} {_change(first, second, names[0])}"
    others = [
        f"{lower_first(name)} comes to {human_time(s.mean_wait)} and {human_number(s.mean_bounded_slowdown)}"
        for name, s in zip(names[2:], summaries[2:], strict=True)
    ]
    return f"{'; '.join([told, *others])}."


def scope(summaries: Sequence[Summary], spread: Spread | None) -> list[str]:
    """Return the sentence on the scope of clear differences, if any schedule has one to the first."""
    clear = spread is not None and any(distinct(field, 0, k, summaries, spread) for field in SHOW for k in range(1, len(summaries)))
    return [ELSEWHERE] if clear else []


def distinct(field: str, a: int, b: int, summaries: Sequence[Summary], spread: Spread | None) -> bool:
    """Return whether two schedules differ in this measure by more than chance, or look equal anyway.

    The limit is the scatter of the difference in shaken copies, or 5 % without a spread.
    """
    before, after = getattr(summaries[a], field), getattr(summaries[b], field)
    show, _ = SHOW[field]
    if show(before) == show(after):
        return True
    return spread.clear(field, a, b) if spread is not None else abs(relative_difference(after, before)) >= CLOSE


def _no_clear(unclear: Sequence[str], names: Sequence[str], summaries: Sequence[Summary], spread: Spread | None) -> str:
    """Describe measures that do not differ clearly."""
    first, second = summaries[0], summaries[1]
    both = f"between {lower_first(names[0])} and {lower_first(names[1])}"
    values = [f"{SHOW[f][0](getattr(first, f))} against {SHOW[f][0](getattr(second, f))}" for f in unclear]
    why = ""
    if spread is None:
        why = f"; a difference below {CLOSE:.0f} % may be chance, and its spread is not known"
    else:
        moved = [f"±{SHOW[field][0](spread.difference(field, 0, 1)[1])}" for field in unclear]
        copies = f"in copies of the log shaken by {spread.seconds} s, {SHOWN_LEVEL}"
        values = [
            f"{value}; {by}{f' {copies}' if field == unclear[-1] else ''}" for field, value, by in zip(unclear, values, moved, strict=True)
        ]
    said_of = [f"{SHOW[field][1]} ({value})" for field, value in zip(unclear, values, strict=True)]
    if len(unclear) == len(SHOW):
        return f"there is no clear difference {both}, neither in the {' nor in the '.join(said_of)}{why}"
    field = next(f for f in SHOW if f not in unclear)
    show, said = SHOW[field]
    before, after = getattr(first, field), getattr(second, field)
    verb = _verb(before, after, show)
    change = f"{lower_first(names[1])} {verb} the {said} {_move(verb, before, after, show)}, compared with {lower_first(names[0])}"
    return f"{change}; there is no clear difference in the {said_of[0]}{why}"


def _at_most(median: float) -> str:
    return "not at all" if median == 0 else f"at most {human_time(median)}"


def _share(schedule: Schedule, summary: Summary) -> str:
    if not schedule.policy.passes.backfills:
        return ""
    share = "no job" if summary.backfilled_percent == 0 else f"{human_percent(summary.backfilled_percent)} of the jobs"
    return f", with {share} backfilled"


def _change(first: Summary, second: Summary, baseline: str) -> str:
    wait = _verb(first.mean_wait, second.mean_wait, human_time)
    ratio = _verb(first.mean_bounded_slowdown, second.mean_bounded_slowdown, human_number)
    values = [(first.mean_wait, second.mean_wait, human_time), (first.mean_bounded_slowdown, second.mean_bounded_slowdown, human_number)]
    (w, r) = (_move(verb, *v) for verb, v in zip((wait, ratio), values, strict=True))
    under = f", compared with {lower_first(baseline)}"
    if wait == ratio:
        return f"{wait} the mean wait {w} and the mean bounded slowdown {r}{under}"
    joint = "but" if {wait, ratio} == {"cuts", "raises"} else "and"
    return f"{wait} the mean wait {w} {joint} {ratio} the mean bounded slowdown {r}{under}"


def _verb(before: float, after: float, show: Callable[[float], str]) -> str:
    if show(before) == show(after):
        return "leaves"
    return "cuts" if after < before else "raises"


def _move(verb: str, before: float, after: float, show: Callable[[float], str]) -> str:
    if show is human_time:
        show = time_form([before, after])
    if verb != "leaves":
        return f"from {show(before)} to {show(after)}"
    return f"at {show(after)}" if before == after else f"practically unchanged at {show(after)}"


def _best(log: str, names: Sequence[str], summaries: Sequence[Summary], spread: Spread | None) -> str:
    waits = [s.mean_wait for s in summaries]
    ratios = [s.mean_bounded_slowdown for s in summaries]
    a, b = waits.index(min(waits)), ratios.index(min(ratios))
    wait, ratio = human_time(waits[a]), human_number(ratios[b])
    if human_time(max(waits)) == wait and human_number(max(ratios)) == ratio:
        return f"On {log}, all {len(names)} policies come to a mean wait of {wait} and a mean bounded slowdown of {ratio}."
    wait += _like("mean_wait", a, names, summaries, spread)
    ratio += _like("mean_bounded_slowdown", b, names, summaries, spread)
    start = f"On {log}, {lower_first(names[a])} has the shortest mean wait of {len(names)} policies ({wait}) and "
    middle = (
        f"the lowest mean bounded slowdown ({ratio})" if a == b else f"{lower_first(names[b])} the lowest mean bounded slowdown ({ratio})"
    )
    if 0 in (a, b):
        return f"{start}{middle}."
    return f"{start}{middle}; the baseline, {lower_first(names[0])}, comes to {human_time(waits[0])} and {human_number(ratios[0])}."


def _like(field: str, best: int, names: Sequence[str], summaries: Sequence[Summary], spread: Spread | None) -> str:
    """Name the policies that are not clearly worse than the best one."""
    others = [lower_first(name) for k, name in enumerate(names) if k != best and not distinct(field, best, k, summaries, spread)]
    return f", with no clear difference to {' and '.join(others)}" if others else ""
