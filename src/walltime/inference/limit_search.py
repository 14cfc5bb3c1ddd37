"""Limits of running jobs, inferred from a log: for each user or group, for all jobs of a kind, and for single users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from walltime.inference.candidate_rules import EXCEPTIONS, FEWEST, candidate_limits, running_at_start
from walltime.inference.inference import period_of
from walltime.inference.one_step import OneStep
from walltime.inference.rule_trial import LEAST_GAIN, AtOnce, RuleProposal, RuleTrial
from walltime.wording import human_time

Array = np.ndarray
AT_ONCE = (1, 2, 3, 5, 10)
"""Limits of a user's running jobs that are tried."""
SHORTEST_PERIOD = 0.25
"""A limit that comes or goes holds for at least this part of a user's jobs."""


def inferred_limits(search: RuleTrial, current: OneStep) -> OneStep:
    """Infer limits of running jobs: for each user or group, or for all jobs of a kind; then for single users."""
    each = _limits_of_each(search, current)
    if each is not None and search.keep(each[0], current, each[1]):
        current = each[1]
    found = None if search.rules.at_once else limits_of_users(search, current)
    return found[1] if found is not None and search.keep(found[0], current, found[1]) else current


def _limits_of_each(search: RuleTrial, current: OneStep) -> tuple[RuleProposal, OneStep] | None:
    """Return the best limit for each user, each group, or all jobs together, of all jobs or of wide or long ones; or None.

    None is sought if the machine has parts.
    """
    limits = [] if search.rules.parts else candidate_limits(search.log)
    best, gain, chosen = None, LEAST_GAIN, None
    for rules, answer in search.ask_all([search.rules._replace(each=(limit,)) for limit in limits]):
        own = search.gain(current, answer, search.choose)
        if own > gain:
            best, gain, chosen = answer, own, rules
    if best is None or chosen is None:
        return None
    [limit] = chosen.each
    kind = "jobs"
    if limit.wider_than is not None:
        kind = f"jobs of over {processors(limit.wider_than)}"
    if limit.longer_than is not None:
        kind = f"jobs of over {human_time(limit.longer_than)}"
    text = f"at most {limit.jobs} {kind} run at once{f' for each {limit.by}' if limit.by else ''}"
    suggestion = RuleProposal("limit", text, "more of them wait while there is room", chosen, lambda rules: rules._replace(each=()))
    return suggestion, best


def limits_of_users(search: RuleTrial, current: OneStep) -> tuple[RuleProposal, OneStep] | None:
    """Return limits of single users that explain more, for each user the most significant one; or None.

    The record must keep to a limit. All users are limited at once to find candidates, then one after the other, because some only gained
    by the limits of others.
    """
    users, counts = np.unique(search.users[search.choose & (search.users >= 0)], return_counts=True)
    users = users[counts >= FEWEST]
    kinds: list[tuple[AtOnce, ...]] = []
    for alike in (False, True) if len(users) else ():
        running = running_at_start(search.log, search.alike if alike else search.users)
        for jobs in AT_ONCE:
            own = (_limit_of(search, AtOnce(user, jobs, alike), running) for user in users.tolist())
            kinds.append(tuple(one for one in own if one is not None))
    best: dict[int, tuple[float, AtOnce]] = {}
    for rules, answer in search.ask_all([search.rules._replace(at_once=every) for every in kinds if every]):
        for one in rules.at_once:
            mine = search.choose & (search.users == one.user)
            if search.is_sure(current, answer, mine):
                sure = search.gain(current, answer, mine) / max(search.error(current, answer, mine), 1e-9)
                if sure > best.get(one.user, (0.0,))[0]:
                    best[one.user] = sure, one
    chosen, answer = _one_after_the_other(search, current, [one for _, one in sorted(best.values(), reverse=True)])
    if not chosen or search.gain(current, answer, search.choose) <= LEAST_GAIN:
        return None
    rules = search.rules._replace(at_once=chosen)
    several = list(dict.fromkeys(one.kind for one in sorted(chosen, key=lambda one: one[1:3])))
    text = "; ".join(_limit_text([one for one in chosen if one.kind == kind], search.since) for kind in several)
    evidence = "more of their jobs wait while there is room"
    return RuleProposal("limit", text, evidence, rules, lambda rules: rules._replace(at_once=())), answer


def _one_after_the_other(search: RuleTrial, current: OneStep, limited: Sequence[AtOnce]) -> tuple[tuple[AtOnce, ...], OneStep]:
    """Return the limits that significantly explain the starts of their users in addition to earlier ones, and the proposals with them."""
    chosen: tuple[AtOnce, ...] = ()
    left = list(limited)
    while True:
        before = len(left)
        for one in tuple(left):
            answer = search.ask(search.rules._replace(at_once=(*chosen, one)))
            if (
                search.is_sure(current, answer, search.choose & (search.users == one.user))
                and search.gain(current, answer, search.choose) > 0
            ):
                chosen, current = (*chosen, one), answer
                left.remove(one)
        if len(left) == before:
            return chosen, current


def _limit_of(search: RuleTrial, limit: AtOnce, running: Array) -> AtOnce | None:
    """A limit while the record keeps to it, one start in a hundred aside: always, or until or from a time on; None where it never does."""
    mine = search.users == limit.user
    submit, over = search.w.submit[mine], running[mine] >= limit.jobs
    before, after = _kept_at_first(over), _kept_at_first(over[::-1])
    if before == len(over):
        return limit
    if max(before, after) < max(FEWEST, len(over) * SHORTEST_PERIOD):
        return None
    return limit._replace(until=int(submit[before])) if before >= after else limit._replace(since=int(submit[-after]))


def _kept_at_first(over: Array) -> int:
    """How many of these jobs, from the first one on, exceed a limit in one start of a hundred at most; `over`: whether each does."""
    kept = np.flatnonzero(np.cumsum(over) <= EXCEPTIONS * np.arange(1, len(over) + 1))
    return int(kept[-1]) + 1 if len(kept) else 0


def _limit_text(limited: Sequence[AtOnce], unix_start_time: int | None) -> str:
    """Users with the same limit, in words."""
    one = limited[0]
    whose = "jobs of one size and request" if one.alike else "jobs"
    times = {1: "one at a time", 2: "two at a time"}.get(one.jobs, f"at most {one.jobs} at a time")
    period = period_of(unix_start_time, one.since, one.until)
    return f"{len(limited)} user{'s' if len(limited) > 1 else ''} whose {whose} run {times}{period}"


def processors(count: int) -> str:
    """Return a number of processors in words."""
    return f"{count:,} processor{'' if count == 1 else 's'}"
