"""The answer of a what-if in sentences: the best change by gain minus cost, and whether the differences can be trusted."""

from collections.abc import Sequence

from walltime.whatif.calibration import Calibration
from walltime.whatif.effects import Effect
from walltime.whatif.simulations import ALL_CHANGES
from walltime.whatif.track_record import TrackRecord
from walltime.wording import counted, human_difference, human_percent, human_time, listed

WORTH_TELLING = 0.05
"""Smallest share of jobs with longer waits that is reported when the mean wait decreases."""
WORTH_MENTIONING = 5
"""Smallest difference, in percent, between the simulated and the recorded mean wait that is reported."""
LEAST = 0.5
"""Smallest change of the mean wait, in percent, that counts as a change."""
MANIFOLD = 300
"""Smallest increase, in percent, that is given as a multiple."""
MOST_NAMED, MOST_TOLD = 2, 3
"""Largest number of changes that are named in one sentence, and described one by one."""


def answer_of(effects: Sequence[Effect], calibration: Calibration | None = None) -> str:
    """Describe the effect and cost of the best change, and of all together if simulated, and whether the differences can be trusted.

    `effects`: one for each change alone, in descending order of gain minus cost, then possibly one for all changes together.
    """
    whole = effects[-1] if effects[-1].label == ALL_CHANGES else None
    each = [effect for effect in effects if effect is not whole]
    best = each[0]
    sentences = [f"{best.name}: {_outcome(best)}."]
    if len(each) > 1:
        worth = best.worth > 0 and not best.nothing
        sentences = [f"The best of {len(each)} changes is {best.name}: {_outcome(best)}."]
        if not worth:
            sentences = [f"None of the {len(each)} changes gains more than it costs; the first is {best.name}: {_outcome(best)}."]
    sentences += [f"If users {_otherwise(best)}."] if _matters(best) else []
    sentences += [] if whole is None else [f"{_together(each)}: {_outcome(whole)}{_harmful_change(each, whole)}."]
    return " ".join([*(f"{one[0].upper()}{one[1:]}" for one in sentences), *_trust(effects, calibration)])


def one_by_one(effects: Sequence[Effect]) -> list[str]:
    """Return a sentence on the effect of each change alone, in a list; an empty list for a single change."""
    each = [effect for effect in effects if effect.label != ALL_CHANGES]
    if len(each) < 2:
        return []
    largest = sorted(each, key=lambda one: -abs(one.differences["mean_wait"].difference))[:MOST_TOLD]
    shown = [f"{one.name} {_brief(one)}" for one in each if one in largest]
    some = "" if len(shown) == len(each) else f" ({len(shown)} of {len(each)})"
    return [f"Mean wait with each change alone{some}: {'; '.join(shown)}."]


def _together(alone: Sequence[Effect]) -> str:
    """Name the changes, and note if some shorten waits and others lengthen them."""
    names = listed([one.name for one in alone]) if len(alone) <= MOST_NAMED else f"all {len(alone)} changes"
    longer = {effect.percent > 0 for effect in alone if not effect.nothing and abs(effect.percent) >= LEAST}
    opposite = "one lengthens waits" if len(alone) == 2 else "some lengthen waits"
    return f"{names} together{f' ({opposite})' if len(longer) == 2 else ''}"


def _brief(effect: Effect) -> str:
    percent = effect.percent
    return f"{1 + percent / 100:.0f} times as long" if percent >= MANIFOLD else "no change" if effect.nothing else human_difference(percent)


def _outcome(effect: Effect) -> str:
    """Describe the mean wait under a change, and the jobs that it harms."""
    one = effect.differences["mean_wait"]
    if effect.nothing:
        return "no change"
    alone = effect.label != ALL_CHANGES
    interval = f"90 %: {effect.record.interval}; " if effect.record is not None and effect.is_known and alone else ""
    said = f"{_waits(effect)} ({interval}simulated mean {human_time(one.changed)} instead of {human_time(one.today)})"
    percent, harm = effect.percent, _harm(effect)
    if harm:
        harm.append(f"{human_percent(100 * effect.cost.work_lost)} of the work lost")
    elif percent < 0 and effect.gains.longer.jobs >= WORTH_TELLING * effect.jobs:
        harm.append(f"{100 * effect.gains.longer.jobs / effect.jobs:.0f} % of the jobs wait longer")
    return f"{said}, {'but' if percent < 0 else 'and'} {listed(harm)}" if harm else said


def _waits(effect: Effect) -> str:
    """Describe the expected change of the mean wait or, without a track record, the simulated change."""
    percent = effect.percent if effect.record is None else 100 * effect.record.expected
    if effect.nothing or abs(percent) < LEAST:
        return "no change" if effect.nothing else "waits as long as today"
    if percent >= MANIFOLD:
        return f"waits {1 + percent / 100:.0f} times as long"
    about = "about " if effect.record is not None else ""
    return f"{about}{abs(percent):.0f} % {'shorter' if percent < 0 else 'longer'} waits"


def _harm(effect: Effect) -> list[str]:
    """Return the numbers of jobs that are killed, left out or out of memory, in words."""
    cost = effect.cost
    outcomes = ((cost.cut_jobs, "killed at their limit"), (cost.lost_jobs, "left out"), (cost.short_jobs, "out of memory at first"))
    return [f"{counted(jobs, 'job')} {outcome}" for jobs, outcome in outcomes if jobs]


def _harmful_change(alone: Sequence[Effect], whole: Effect) -> str:
    """Name the change that harms jobs, if it is the only one; otherwise return an empty string."""
    harmful = [effect.name for effect in alone if _harm(effect)]
    return f" (because of {harmful[0]})" if len(harmful) == 1 and _harm(whole) else ""


def _matters(effect: Effect) -> bool:
    """Return whether the other assumption on users reverses the effect, or changes its size by over a quarter and by more than chance."""
    other, one = effect.other_users, effect.differences["mean_wait"]
    if other is None or not (other.today and one.today):
        return False
    share = one.difference / one.today
    away = abs(other.difference / other.today - share)
    return effect.turns_round or (away > abs(share) / 4 and not away * one.today <= one.scatter)


def _otherwise(effect: Effect) -> str:
    assert effect.other_users is not None
    other = effect.other_users
    percent = 100 * other.difference / other.today if other.today else 0.0
    how = "react" if other.react else "submit as they did"
    return f"{how}, waits are {abs(percent):.0f} % {'shorter' if percent < 0 else 'longer'}"


def _trust(effects: Sequence[Effect], calibration: Calibration | None) -> list[str]:
    """Return sentences on how often such predictions are right, on effects of unknown direction, and on the accuracy of simulated hours."""
    those = [effect for effect in effects if not effect.nothing]
    if not those:
        return ["No job starts earlier or later."]
    doubted = [effect for effect in those if not effect.is_known]
    if calibration is None or len(doubted) == len(those):
        why = "the simulation is not calibrated" if calibration is None else _why_doubted(those[0])
        return [f"Do not trust {'these differences' if len(those) > 1 else 'this difference'} yet: {why}."]
    best, said = next(effect for effect in those if effect.is_known), []
    if best.record is not None and best.record.claims:
        why = _how_often(best.record)
        said.append(f"{why[0].upper()}{why[1:]}.")
    if doubted:
        names = listed([effect.name for effect in doubted])
        subject = f"The directions of {names} are" if len(doubted) > 1 else f"The direction of {names} is"
        said.append(f"{subject} not known: {_why_doubted(doubted[0])}.")
    every = calibration.overall
    off = 100 * every.bias / every.mean_recorded if every.mean_recorded else 0.0
    if abs(off) >= WORTH_MENTIONING:
        rest = "above the record" if off > 0 else "below the record; changes are assumed not to affect the rest"
        said.append(f"The hours are less certain: today's simulated mean wait is {abs(off):.0f} % {rest}.")
    return said


def _how_often(record: TrackRecord) -> str:
    return f"on comparable synthetic sites, {record.right} of {record.cases} changes of this size had the predicted direction"


def _why_doubted(effect: Effect) -> str:
    """Return the reason why the direction of an effect is unknown, as a clause."""
    if effect.record is None:
        return "the simulated waits cannot be compared with the recorded ones"
    if effect.is_chance:
        return "small shifts of the submissions change the mean wait as much"
    return _how_often(effect.record)
