"""The result of a comparison of schedules, in one sentence."""

from collections.abc import Callable, Mapping, Sequence

from walltime.metrics import Summary, relative_difference
from walltime.schedule.schedule import Schedule
from walltime.simulation.spread import Spread
from walltime.wording import human_number, human_percent, human_time, listed, lower_first, on_log, time_form

ELSEWHERE = "These differences exceed the effect of small shifts of the submissions (input shaking) on this log; other logs may differ."
"""A sentence added to clear differences, which readers might otherwise take for general results."""
CLOSE = 5.0
"""Maximum difference, in percent, between means that count as close."""
MOST_IN_ONE_SENTENCE = 4
"""With more policies than this, the sentence names the best ones instead of all."""


SHOW: Mapping[str, tuple[Callable[[float], str], str]] = {
    "mean_wait": (human_time, "mean wait"),
    "mean_bounded_slowdown": (human_number, "mean bounded slowdown"),
}
"""The measures that the answer mentions: the function that formats each, and its name."""


def answer(
    log: str, names: Sequence[str], schedules: Sequence[Schedule], summaries: Sequence[Summary], spread: Spread | None = None
) -> str:
    """Return the result of the comparison, in one sentence; the first schedule is the baseline.

    `log`: the name of the workload. `names, schedules, summaries`: one of each per policy, in the same order. `spread`: the spread of the
    same schedules. A difference is called clear only if it exceeds the spread or, without one, at least 5 %.
    """
    first = summaries[0]
    if not first.measured_jobs:
        return f"{log} has no jobs, so there is nothing to compare."
    if len(summaries) == 1:
        half = f"at most {human_time(first.median_wait)}" if first.median_wait else "start immediately"
        return (
            f"Under {lower_first(names[0])}, jobs wait {human_time(first.mean_wait)} on average, and half of them {half}; the mean bounded "
            f"slowdown is {human_number(first.mean_bounded_slowdown)}{_share(schedules[0], first)}."
        )
    if len(summaries) > MOST_IN_ONE_SENTENCE:
        return _best(log, names, summaries, spread)
    others = [
        f"under {lower_first(name)}, these means are {human_time(s.mean_wait)} and {human_number(s.mean_bounded_slowdown)}"
        for name, s in zip(names[2:], summaries[2:], strict=True)
    ]
    return f"{on_log(log)}, {'; '.join([_second(names, summaries, spread), *others])}."


def scope(summaries: Sequence[Summary], spread: Spread | None) -> list[str]:
    """Return the sentence on the scope of clear differences, if any schedule clearly differs from the first."""
    clear = spread is not None and any(distinct(field, 0, k, summaries, spread) for field in SHOW for k in range(1, len(summaries)))
    return [ELSEWHERE] if clear else []


def distinct(field: str, a: int, b: int, summaries: Sequence[Summary], spread: Spread | None) -> bool:
    """Return whether two schedules differ in this measure by more than chance; equal printed values never do.

    The limit is the scatter of the difference in shaken copies, or 5 % without a spread.
    """
    before, after = getattr(summaries[a], field), getattr(summaries[b], field)
    show, _ = SHOW[field]
    if show(before) == show(after):
        return True
    return spread.clear(field, a, b) if spread is not None else abs(relative_difference(after, before)) >= CLOSE


def _second(names: Sequence[str], summaries: Sequence[Summary], spread: Spread | None) -> str:
    """Compare the second schedule with the first: the clear changes, then the measures without a clear difference."""
    first, second = map(lower_first, names[:2])
    unclear = [field for field in SHOW if not distinct(field, 0, 1, summaries, spread)]
    equal = [name for name, (show, _) in SHOW.items() if name not in unclear and len({show(getattr(s, name)) for s in summaries[:2]}) == 1]
    changed = [field for field in SHOW if field not in unclear and field not in equal]
    parts = [f"{second} {_changes(changed, summaries)}, compared with {first}"] if changed else []
    changes = "; ".join(parts + ([f"{_equal(equal, summaries)} the same under {first} and {second}"] if equal else []))
    if not unclear:
        return changes

    measures = []
    for k, field in enumerate(unclear):
        show, what = SHOW[field]
        under = ["", ""] if k else [f" under {first}", f" under {second}"]
        values = " and ".join(show(getattr(summary, field)) + name for summary, name in zip(summaries, under, strict=False))
        if spread is not None:
            change = " ± ".join(map(show, spread.difference(field, 0, 1)))
            values += f"; {'' if k else 'with slightly shifted submissions, the change is '}{change}"
        measures.append(f"{what} ({values})")
    why = "" if spread is not None else f"; a difference below {CLOSE:.0f} % may be chance, and its spread was not measured"
    if len(unclear) == len(SHOW):
        return f"there is no clear difference between {first} and {second} in the {' or in the '.join(measures)}{why}"
    return f"{changes}; there is no clear difference in the {measures[0]}{why}"


def _equal(fields: Sequence[str], summaries: Sequence[Summary]) -> str:
    """Name the measures with equal printed values, with a verb and, unless the exact values are equal, the word practically."""
    exact = all(getattr(summaries[0], field) == getattr(summaries[1], field) for field in fields)
    values = listed([f"the {SHOW[field][1]} ({SHOW[field][0](getattr(summaries[1], field))})" for field in fields])
    return f"{values} {'is' if len(fields) == 1 else 'are'}{'' if exact else ' practically'}"


def _changes(fields: Sequence[str], summaries: Sequence[Summary]) -> str:
    """Describe the changes of these measures from the first to the second schedule; equal verbs are not repeated."""
    text, last = "", ""
    for field in fields:
        show, what = SHOW[field]
        before, after = (getattr(summary, field) for summary in summaries[:2])
        verb = "cuts" if after < before else "raises"
        joint = "" if not text else " but " if {last, verb} == {"cuts", "raises"} else " and "
        text += f"{joint}{'' if verb == last else f'{verb} '}the {what} {_move(before, after, show)}"
        last = verb
    return text


def _share(schedule: Schedule, summary: Summary) -> str:
    if not schedule.policy.passes.backfills:
        return ""
    share = "no job" if summary.backfilled_percent == 0 else f"{human_percent(summary.backfilled_percent)} of the jobs"
    return f", and {share} {'are' if share.endswith('jobs') else 'is'} backfilled"


def _move(before: float, after: float, show: Callable[[float], str]) -> str:
    if show is human_time:
        show = time_form([before, after])
    return f"from {show(before)} to {show(after)}"


def _best(log: str, names: Sequence[str], summaries: Sequence[Summary], spread: Spread | None) -> str:
    waits = [s.mean_wait for s in summaries]
    ratios = [s.mean_bounded_slowdown for s in summaries]
    a, b = waits.index(min(waits)), ratios.index(min(ratios))
    wait, ratio = human_time(waits[a]), human_number(ratios[b])
    if human_time(max(waits)) == wait and human_number(max(ratios)) == ratio:
        return f"{on_log(log)}, all {len(names)} policies have a mean wait of {wait} and a mean bounded slowdown of {ratio}."
    wait += _like("mean_wait", a, names, summaries, spread)
    ratio += _like("mean_bounded_slowdown", b, names, summaries, spread)
    start = f"{on_log(log)}, {lower_first(names[a])} has the shortest mean wait of {len(names)} policies ({wait}) and "
    middle = (
        f"the lowest mean bounded slowdown ({ratio})" if a == b else f"{lower_first(names[b])} the lowest mean bounded slowdown ({ratio})"
    )
    if 0 in (a, b):
        return f"{start}{middle}."
    return f"{start}{middle}; under the baseline, {lower_first(names[0])}, they are {human_time(waits[0])} and {human_number(ratios[0])}."


def _like(field: str, best: int, names: Sequence[str], summaries: Sequence[Summary], spread: Spread | None) -> str:
    """Return the names of the policies that are not clearly worse than the best policy."""
    others = [lower_first(name) for k, name in enumerate(names) if k != best and not distinct(field, best, k, summaries, spread)]
    return f", not clearly different from {listed(others)}" if others else ""
