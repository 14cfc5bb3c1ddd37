"""Infer limits on running jobs: for each user or group, for all jobs of a class, and for single users."""

from collections.abc import Sequence

import numpy as np

from walltime.inference.candidate_rules import EXCEPTIONS, FEWEST, candidate_limits, running_at_start
from walltime.inference.inference import period_of
from walltime.inference.one_step import OneStep
from walltime.inference.rule_trial import LEAST_GAIN, AtOnce, RuleProposal, RuleTrial
from walltime.wording import counted, human_time

Array = np.ndarray
AT_ONCE = (1, 2, 3, 5, 10)
"""Limits on a user's running jobs that are tried."""
SHORTEST_PERIOD = 0.25
"""A limit that does not always apply must apply to at least this share of a user's jobs."""


def inferred_limits(search: RuleTrial) -> None:
    """Infer limits on running jobs: for each user or group, or for all jobs of a class; otherwise for single users."""
    _limits_of_each(search)
    found = None if search.rules.at_once else limits_of_users(search)
    if found is not None:
        search.keep(*found)


def _limits_of_each(search: RuleTrial) -> None:
    """Infer one limit for each user, each group or all jobs, possibly only for wide or long jobs; none if the machine has parts."""
    limits = [] if search.rules.parts else candidate_limits(search.log)
    found = search.best([search.rules._replace(each=(limit,)) for limit in limits], lambda answer: search.gain(answer, search.choose))
    if found is None:
        return
    [limit] = found[0].each
    jobs = kind_of_jobs(limit.wider_than, limit.longer_than)
    text = f"at most {limit.jobs} {jobs} run at once{f' for each {limit.by}' if limit.by else ''}"
    search.keep(RuleProposal("limit", text, "more of them wait while there is room", found[0]), found[1])


def limits_of_users(search: RuleTrial) -> tuple[RuleProposal, OneStep] | None:
    """Return the most significant limit of each user whose agreement a limit improves, and the proposals under them; None for no limit.

    The record must respect each limit. To find candidates, all users are limited at once; then limits are tested one by one, because some
    improve the agreement only together with the limits of other users.
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
            if search.is_sure(answer, mine):
                sure = search.gain(answer, mine) / max(search.error(answer, mine), 1e-9)
                if sure > best.get(one.user, (0.0,))[0]:
                    best[one.user] = sure, one
    chosen, answer = _one_after_the_other(search, [one for _, one in sorted(best.values(), reverse=True)])
    if not chosen or search.gain(answer, search.choose) <= LEAST_GAIN:
        return None
    rules = search.rules._replace(at_once=chosen)
    several = list(dict.fromkeys(one.kind for one in sorted(chosen, key=lambda one: one[1:3])))
    text = "; ".join(_limit_text([one for one in chosen if one.kind == kind], search.since) for kind in several)
    return RuleProposal("limit", text, "more of their jobs wait while there is room", rules), answer


def _one_after_the_other(search: RuleTrial, limited: Sequence[AtOnce]) -> tuple[tuple[AtOnce, ...], OneStep]:
    """Add the limits one at a time; return those that significantly improve the agreement for their user, and the proposals with them."""
    chosen: tuple[AtOnce, ...] = ()
    current, left, before = search.answer, list(limited), -1
    while len(left) != before:
        before = len(left)
        for one in tuple(left):
            answer, mine = search.ask(search.rules._replace(at_once=(*chosen, one))), search.choose & (search.users == one.user)
            if search.is_sure(answer, mine, old=current) and search.gain(answer, search.choose, old=current) > 0:
                chosen, current = (*chosen, one), answer
                left.remove(one)
    return chosen, current


def _limit_of(search: RuleTrial, limit: AtOnce, running: Array) -> AtOnce | None:
    """Return the limit with the period in which at most 1 % of the starts exceed it: always, until a time or from a time on; else None."""
    mine = search.users == limit.user
    submit, over = search.w.submit[mine], running[mine] >= limit.jobs
    before, after = _kept_at_first(over), _kept_at_first(over[::-1])
    if before == len(over):
        return limit
    if max(before, after) < max(FEWEST, len(over) * SHORTEST_PERIOD):
        return None
    return limit._replace(until=int(submit[before])) if before >= after else limit._replace(since=int(submit[-after]))


def _kept_at_first(over: Array) -> int:
    """Return the length of the longest initial run of jobs in which at most 1 % exceed a limit; `over`: whether each job exceeds it."""
    kept = np.flatnonzero(np.cumsum(over) <= EXCEPTIONS * np.arange(1, len(over) + 1))
    return int(kept[-1]) + 1 if len(kept) else 0


def _limit_text(limited: Sequence[AtOnce], unix_start_time: int | None) -> str:
    """Describe a limit, and name the users who have it."""
    one = limited[0]
    whose = "jobs of one size and request" if one.alike else "jobs"
    times = {1: "one at a time", 2: "two at a time"}.get(one.jobs, f"at most {one.jobs} at a time")
    period = period_of(unix_start_time, one.since, one.until)
    return f"{counted(len(limited), 'user')} whose {whose} run {times}{period}"


def kind_of_jobs(wider_than: int | None, longer_than: int | None) -> str:
    """Return "jobs", or "jobs of over ..." with the given number of processors or seconds."""
    over = human_time(longer_than) if longer_than is not None else counted(wider_than, "processor") if wider_than is not None else ""
    return f"jobs of over {over}" if over else "jobs"
