"""The answer of a what-if: one sentence with the result and its price, and one that says whether it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.whatif.effects import Effect
from walltime.wording import human_percent, human_time, listed

WORTH_TELLING = 0.05
"""From this share on jobs that wait longer are told beside shorter waits."""
LEAST = 0.5
"""Smaller changes of the mean wait, in percent, are none."""
MANIFOLD = 300
"""From this change on, in percent, waits are said to be so many times as long."""
MOST_TOLD = 3
"""Of more changes, those with the largest differences are told one by one."""


def answer_of(effects: Sequence[Effect], alone: bool = True) -> str:
    """What the changes do and what that costs, in one sentence, and in another whether it can be trusted.

    `effects`: of each change alone, and, if there are several, of all together as the last. `alone`: also what each does alone.
    """
    *each, whole = effects
    told = f"{_together(each)}{_outcome(whole)}{_whose_price(each, whole)}" if each else f"{whole.name}: {_outcome(whole)}"
    told += f"; if users {_otherwise(whole)}" if _matters(whole) else ""
    told += f"; {_one_by_one(each)}" if each and alone else ""
    return f"{told[0].upper()}{told[1:]}. {_trust(effects)}"


def one_by_one(effects: Sequence[Effect]) -> list[str]:
    """What each of several changes does without the others, in a sentence; none for a single one."""
    *each, _ = effects
    return [f"A{_one_by_one(each)[1:]}."] if each else []  # it begins with "alone"


def _together(alone: Sequence[Effect]) -> str:
    """What the changes are called, and whether one makes waits shorter and another longer."""
    names = listed([one.name for one in alone]) if len(alone) <= MOST_TOLD else f"the {len(alone)} changes"
    longer = {_percent(effect) > 0 for effect in alone if not effect.nothing and abs(_percent(effect)) >= LEAST}
    return f"{names} together{', which work against each other' if len(longer) == 2 else ''}: "


def _one_by_one(alone: Sequence[Effect]) -> str:
    """What each change does without the others, with its own price."""
    shown = _largest(alone)
    parts = []
    for effect in shown:
        price = _harm(effect)
        parts.append(f"{effect.name}, {_waits(effect)}" + (f" ({listed(price)})" if price else ""))
    return f"alone{'' if len(shown) == len(alone) else f' ({len(shown)} of {len(alone)})'}: {'; '.join(parts)}"


def _largest(effects: Sequence[Effect]) -> list[Effect]:
    """Those with the largest differences, in their order."""
    order = sorted(range(len(effects)), key=lambda k: -abs(effects[k].differences["mean_wait"].difference))[:MOST_TOLD]
    return [effects[k] for k in sorted(order)]


def _outcome(effect: Effect) -> str:
    """What a change does to the waits, and its price."""
    one = effect.differences["mean_wait"]
    if effect.nothing:
        return "no change"
    said = f"{_waits(effect)} (mean {human_time(one.changed)} instead of {human_time(one.today)}, simulated)"
    percent, price = _percent(effect), _harm(effect)
    if price:
        price.append(f"{human_percent(100 * effect.cost.work_lost)} of the work lost")
    elif percent < 0 and effect.gains.longer.jobs >= WORTH_TELLING * effect.jobs:
        price.append(f"{100 * effect.gains.longer.jobs / effect.jobs:.0f} % of the jobs wait longer")
    return f"{said}, {'but' if percent < 0 else 'and'} {listed(price)}" if price else said


def _waits(effect: Effect) -> str:
    """How much shorter or longer the waits become."""
    percent = _percent(effect)
    if effect.nothing or abs(percent) < LEAST:
        return "no change" if effect.nothing else "waits as long as today"
    if percent >= MANIFOLD:
        return f"waits {1 + percent / 100:.0f} times as long"
    return f"{abs(percent):.0f} % {'shorter' if percent < 0 else 'longer'} waits"


def _percent(effect: Effect) -> float:
    one = effect.differences["mean_wait"]
    return 100 * one.difference / one.today if one.today else 0.0


def _harm(effect: Effect) -> list[str]:
    """How many jobs are killed or have no room."""
    cost = effect.cost
    killed = f"{cost.cut_jobs:,} job{'' if cost.cut_jobs == 1 else 's'} killed at their limit"
    homeless = f"{cost.lost_jobs:,} job{'' if cost.lost_jobs == 1 else 's'} without room"
    return [said for said, count in ((killed, cost.cut_jobs), (homeless, cost.lost_jobs)) if count]


def _whose_price(alone: Sequence[Effect], whole: Effect) -> str:
    """Which one of several changes kills jobs or leaves them without room, where it is one."""
    harmful = [effect.name for effect in alone if _harm(effect)]
    return f" (the price of {harmful[0]})" if len(harmful) == 1 and _harm(whole) else ""


def _matters(effect: Effect) -> bool:
    """Whether the answer is another one if users do otherwise: by its sign, or by over a quarter of it and more than chance."""
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
    return f"{how}, {abs(percent):.0f} % {'shorter' if percent < 0 else 'longer'}"


def _trust(effects: Sequence[Effect]) -> str:
    """Which of these differences can be trusted, and why not the others."""
    those = [effect for effect in effects if not effect.nothing]
    solid = [effect.name for effect in those if not effect.doubts]
    if not those:
        return "No job starts earlier or later."
    several = len(those) > 1
    if len(solid) == len(those):
        return f"Nothing that could be checked speaks against {'these differences' if several else 'this difference'}."
    shared = [doubt for doubt in those[0].doubts if all(doubt in effect.doubts for effect in those)]
    if not solid:
        why = "; ".join(shared) or "each has something that speaks against it"
        return f"Do not trust {'these differences' if several else 'this'} yet: {why}."
    return f"Nothing that could be checked speaks against {listed(solid)}; do not trust the others yet."
