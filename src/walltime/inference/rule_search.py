"""Which rules has a site, besides its policy? Read off its log, and kept only where they explain what was not used to find them.

How rules are judged stands in rule_trial.py; candidates are guesses from counts (candidate_rules.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np

from walltime.inference.candidate_rules import (
    InferredPool,
    candidate_parts,
    candidate_windows,
    not_eligible_before,
    periods,
    stopped_stretches,
    windows_near,
    windows_of_few,
)
from walltime.inference.free_runs import free_runs
from walltime.inference.inference import Inference, MonthAgreement, unread_of
from walltime.inference.limit_search import inferred_limits, limits_of_users, processors
from walltime.inference.one_step import OneStep
from walltime.inference.overhead_search import LONGEST_DELAY, PROMPT, inferred_overhead
from walltime.inference.queue_order import inferred_policy
from walltime.inference.rule_trial import LEAST_GAIN, Rules, RuleTrial, Suggestion
from walltime.inference.step_agreement import agreement_by
from walltime.machine import Machine, Window
from walltime.wording import human_time
from walltime.workload import Workload, check_workload

Array = np.ndarray
MOST_MISFITS = 0.05
"""From this share of starts on for which the record leaves too few processors, log and machine contradict each other."""
STARTS = 2
"""An outage must explain so many more starts near it, apart from the one that ends it."""
OUTAGES = (3600, 4 * 3600, 12 * 3600)
"""Stretches of at least so many s without jobs are tried as outages."""
NOISE = 0.15
"""Where less than this agrees promptly, with all rules, the record is not that of a scheduler that can be asked."""


def infer(
    workload: Workload,
    *,
    procs: int | None = None,
    machine: Machine | None = None,
    progress: Callable[[float], None] | None = None,
    step: Callable[[str], None] | None = None,
) -> Inference:
    """Infer a site's rules from the starts that its log records.

    `procs`: the machine's size, by default that of the log. `machine`: of it only the size of the nodes is taken; a note says what else it
    has. `progress` is told about which share of the work is done, from 0 to 1, and `step`, in words, which of the seven steps is at work.
    Ctrl-C ends the search: what was found until then is returned, and its `stopped` says where that was. Raises WorkloadError for a log
    without recorded waits or of under two months.
    """
    check_workload(workload)
    nodes = {1} if machine is None else {pool.procs for pool in machine.pools}
    search = RuleTrial(workload, workload.machine_procs if procs is None else procs, min(nodes) if len(nodes) == 1 else 1, progress)
    search.notes += unread_of(machine)
    plain = search.answer
    misfits = float(plain.short[plain.counted].mean())
    if misfits > MOST_MISFITS:
        refused = (
            f"{100 * misfits:.0f} % of the recorded starts need more processors than the record leaves of {search.size:,}: the log, or the "
            "machine's size, does not say what the scheduler saw; nothing is inferred"
        )
        return _result(search, plain, misfits, refused=refused)
    at = ""
    try:
        for number, (what, (look, share)) in enumerate(STEPS.items(), 1):
            at = f"step {number} of {len(STEPS)}, {what}"
            search.until = search.done + share
            if step is not None:
                step(at)
            look(search, search.answer)
            search.done = search.until
        return _result(search, plain, misfits, refused=_refused_as_noise(search, plain))
    except KeyboardInterrupt:
        search.notes.append(f"Stopped at {at}: what this step and those after it look for may be there all the same.")
        return _result(search, plain, misfits, stopped=at)


def _refused_as_noise(search: RuleTrial, plain: OneStep) -> str:
    """Why no rule is told where hardly any start is that of the policy with all rules; empty otherwise. Takes the rules back."""
    score = search.answer.score(search.judge, search.within)
    if score.prompt_f1 >= NOISE:
        return ""
    search.rules, search.answer, search.kept = Rules(), plain, []
    return (
        f"only {100 * score.followed_promptly:.0f} % of what the policy would start is started within {search.within} s, with every rule "
        "that was tried: the starts follow neither the policy nor such rules; nothing is inferred"
    )


def _parts(search: RuleTrial, current: OneStep) -> OneStep:
    """Parts of the machine for small, short jobs."""
    while len(search.rules.parts) < 2:
        best, best_gain, best_part = None, LEAST_GAIN, None
        parts = [replace(part, procs=-(-part.procs // search.node) * search.node) for part in candidate_parts(search.log, search.size)]
        for rules, answer in search.ask_all([search.rules._replace(parts=(*search.rules.parts, part)) for part in parts]):
            gain = search.gain_of_run(current, answer)
            if gain > best_gain:
                best, best_gain, best_part = answer, gain, rules.parts[-1]
        if best is None or best_part is None:
            return current
        # Small jobs may be those of a few limited users.
        limits = None if search.rules.at_once or search.rules.parts else limits_of_users(search, current)
        if limits is not None and search.gain(best, limits[1], search.choose) > 0 and search.keep(limits[0], current, limits[1]):
            current = limits[1]
            continue
        with_part = partial(_with, search.rules, "parts", best_part)
        since, until, best = search.shortened(current, best, with_part)
        best_part = replace(best_part, since=since, until=until)
        jobs = int((best_part.takes(search.w) & search.log.known).sum())
        sizes = "1 processor" if best_part.widest == 1 else f"up to {best_part.widest:,} processors"
        text = f"jobs of {sizes} and up to {human_time(best_part.longest)} run on a part of {processors(best_part.procs)}"
        evidence = f"the {jobs:,} such jobs never use more together"
        rules = search.rules._replace(parts=(*search.rules.parts, best_part))
        without = partial(_without, "parts", best_part)
        if not search.keep(Suggestion("part", text, evidence, rules, without), current, best, since=since, until=until):
            return current
        current = best
    return current


def _outages(search: RuleTrial, current: OneStep) -> OneStep:
    """Outages of the whole machine, known in advance: the stretches without jobs that explain the days around them.

    An outage ends, by definition, with a recorded start: that start says nothing for it, so it neither chooses nor judges outages. The
    others near it must gain at least STARTS, since each of many stretches without jobs explains one or other of them by chance.
    """
    rules, answer = search.rules, current
    every_stretch = stopped_stretches(search.log)
    others, by_start = np.ones(len(search.w), bool), np.argsort(search.log.start, kind="stable")
    others[by_start[np.searchsorted(search.log.start[by_start], [end for _, end in every_stretch])]] = False
    for least in OUTAGES:  # a machine that drains before an outage stands still for hours, too
        stretches = [own for own in every_stretch if own[1] - own[0] >= least]
        alone = search.ask_all([rules._replace(outages=(own,)) for own in stretches])
        stretches = [
            own.outages[0]
            for own, answer in alone
            if search.starts_gained(current, answer, others & search.jobs_near(*own.outages[0])) >= STARTS
        ]
        if not stretches:
            continue
        these = search.rules._replace(outages=tuple(stretches))
        asked = search.ask(these)
        if search.gain(answer, asked, others & search.choose) > 0:
            rules, answer = these, asked
    stretches = list(rules.outages)
    every = periods(stretches)
    text = f"{len(stretches)} outages of the whole machine, known in advance{f', {every}' if every else ''}"
    evidence = f"nothing runs for an hour and longer while jobs wait, {sum(b - a for a, b in stretches) / 3600:,.0f} h in all"
    suggestion = Suggestion("outage", text, evidence, rules, lambda rules: rules._replace(outages=()))
    better, worse = search.weeks_moved(current, answer, others & search.judge)
    few = better > 0 and worse == 0  # what stands still is seen; nothing but a few weeks of either kind can agree better
    if not stretches or search.gain(current, answer, others & search.choose) <= LEAST_GAIN / 5:
        return current
    return answer if search.keep(suggestion, current, answer, sure=few, judge=others & search.judge) else current


def _windows(search: RuleTrial, current: OneStep) -> OneStep:
    """Rules by the clock, one after the other."""
    if search.since is None:
        search.notes.append("The log does not say when it starts, so rules by the clock cannot be seen.")
        return current
    tried: dict[int, _Tried] = {}
    for clock in _clocks(search.w):
        search.clock = clock
        held_since = np.where(current.made, search.log.start - current.delay, search.log.start)
        several = candidate_windows(search.log, search.since + clock) + windows_of_few(search.log, search.since + clock, held_since)
        tried[clock] = _tried(search, current, list(dict.fromkeys(several)))
    search.clock = max(tried, key=lambda clock: tried[clock].gain)
    found = tried[search.clock]
    while found.window is not None and found.best is not None and found.gain > LEAST_GAIN:
        window, best = _fitted(search, current, found.window, found.best)
        since, until, best = search.shortened(current, best, partial(_with, search.rules, "windows", window))
        window = replace(window, since=since, until=until)
        rules = search.rules._replace(windows=(*search.rules.windows, window))
        text, evidence = _said(search, window)
        suggestion = Suggestion("window", text, evidence, rules, partial(_without, "windows", window))
        if search.keep(suggestion, current, best, since=since, until=until):
            current = best
        found = _tried(search, current, found.others)
    return current


class _Tried(NamedTuple):
    """Of windows that were tried the one that gains most, what it gains and what is asked with it, and the others that gain anything."""

    gain: float
    window: Window | None
    best: OneStep | None
    others: list[Window]


def _tried(search: RuleTrial, current: OneStep, candidates: Sequence[Window]) -> _Tried:
    """Try each of these windows beside the rules accepted so far."""
    found, worth = _Tried(-math.inf, None, None, []), []
    for rules, answer in search.ask_all([search.rules._replace(windows=(*search.rules.windows, one)) for one in candidates]):
        gain, window = search.gain_of_run(current, answer), rules.windows[-1]
        if gain > 0:
            worth.append(window)
        if gain > found.gain:
            found = _Tried(gain, window, answer, [])
    return found._replace(others=[one for one in worth if one != found.window])


def _fitted(search: RuleTrial, current: OneStep, window: Window, best: OneStep) -> tuple[Window, OneStep]:
    """The hours and days near those of a window that explain most of the months that choose; an instant stays as it is.

    Each move pays for itself: what gains less moves a rule from where the site has it by chance.
    """
    while window.end is not None:
        gain, place = search.gain_of_run(current, best), window
        for rules, answer in search.ask_all([search.rules._replace(windows=(*search.rules.windows, one)) for one in windows_near(window)]):
            own = search.gain_of_run(current, answer)
            if own > gain + LEAST_GAIN / 5:
                best, gain, place = answer, own, rules.windows[-1]
        if place == window:
            break
        window = place
    return window, best


def _clocks(workload: Workload) -> list[int]:
    """What the site's clock may be ahead of UTC, s: its zone's time in winter, and an hour more or less."""
    since = workload.origin.unix_start_time
    assert since is not None
    zone = workload.origin.tzinfo()
    year = datetime.fromtimestamp(since, UTC).year
    offsets = {datetime(year, month, 15, tzinfo=zone).utcoffset() or timedelta(0) for month in (1, 7)}
    return sorted(int(offset.total_seconds()) for offset in offsets)


def _said(search: RuleTrial, window: Window) -> tuple[str, str]:
    """A window in words, and what the log shows of it."""
    days = "every day" if len(window.days) == 7 else "-".join((window.days[0], window.days[-1])) if len(window.days) > 1 else window.days[0]
    who = "jobs"
    if window.longer_than is not None:
        who = f"jobs of over {human_time(window.longer_than)}"
    if window.wider_than is not None:
        who = f"jobs of over {processors(window.wider_than)}"
    if window.up_to is not None:
        who = f"jobs of up to {human_time(window.up_to)}"
    if window.narrower_than is not None:
        who = f"jobs of up to {processors(window.narrower_than - 1)}"
    if window.end is None:
        text = f"no job is planned to run across {window.begin} ({days})"
        return text, "far fewer requests cross it than the half hours beside it"
    into = ", nor are they planned to run into these hours" if window.drain else ""
    return f"{who} do not start from {window.begin} to {window.end} ({days}){into}", "far fewer of them start then than are submitted"


def _with(rules: Rules, name: str, value: InferredPool | Window, since: int | None, until: int | None) -> Rules:
    """The rules and one more, which holds between two times."""
    return rules._replace(**{name: (*getattr(rules, name), replace(value, since=since, until=until))})  # type: ignore[arg-type]


def _without(name: str, value: InferredPool | Window, rules: Rules) -> Rules:
    """The rules without one of them."""
    return rules._replace(**{name: tuple(one for one in getattr(rules, name) if one != value)})  # type: ignore[arg-type]


def _drop_superseded(search: RuleTrial, current: OneStep) -> OneStep:
    """Leave out rules that explain nothing beside those that were kept after them; by the months that choose."""
    k = 0
    while k < len(search.kept) - 1:
        rules = search.without[k](search.rules)
        answer = search.ask(rules)
        within = PROMPT if search.kept[k].kind == "overhead" else None
        if search.gain(answer, current, search.choose, within) > LEAST_GAIN / 5:
            k += 1
            continue
        search.notes.append(f"Left out: {search.kept[k].text}. The rules below explain as much without it.")
        search.rules, search.answer, current = rules, answer, answer
        del search.kept[k], search.without[k]
    return current


STEPS: dict[str, tuple[Callable[[RuleTrial, OneStep], OneStep], float]] = {
    "hours": (_windows, 0.4),
    "outages": (_outages, 0.05),
    "parts of the machine": (_parts, 0.1),
    "overheads": (inferred_overhead, 0.05),
    "limits": (inferred_limits, 0.1),
    "the policy": (inferred_policy, 0.25),
    "what others replace": (_drop_superseded, 0.05),
}
"""What is looked for, in this order, and about which share of the time it takes."""


def _held(workload: Workload, eligible: Array) -> dict[int, int]:
    """By job number how long it seems not to have been free to start, s; without the jobs that were free at once."""
    held = eligible - workload.submit
    late = held > 0
    return dict(zip(workload.job_id[late].tolist(), held[late].tolist(), strict=True))


def _result(search: RuleTrial, plain: OneStep, misfits: float, *, refused: str = "", stopped: str = "") -> Inference:
    """What was found; of a search that was stopped without what takes long: free runs, and agreement by hindsight."""
    current, brief = search.answer, bool(refused or stopped)
    eligible = search.w.submit if brief else not_eligible_before(search.log)
    hindsight = current if brief else search.ask(search.rules, eligible)
    made = current.delay[current.made & (current.delay >= 0) & (current.delay <= LONGEST_DELAY)]
    low, middle, high = np.percentile(made, [5, 50, 95]).tolist() if len(made) else (0.0, 0.0, 0.0)
    months = []
    for month in np.unique(search.month[search.judge]).tolist():
        mask = search.judge & (search.month == month)
        name = f"month {month + 1}"
        if search.since is not None:
            name = str(np.datetime64(int(search.since + search.log.start[mask].min()), "s").astype("datetime64[M]"))
        months.append(MonthAgreement(name, *(answer.score(mask, search.within) for answer in (plain, current))))
    machine = search.machine_of(search.rules)
    return Inference(
        log=search.w.origin.name,
        rules=search.kept,
        machine=machine,
        before=plain.score(search.judge, search.within),
        after=current.score(search.judge, search.within),
        hindsight=hindsight.score(search.judge, search.within),
        months=months,
        groups=[] if refused else agreement_by(search.w, current, search.log.end, eligible, search.judge, search.within, plain),
        delay=(low, middle, high),
        misfits=misfits,
        clock=search.clock,
        unix_start_time=search.since,
        notes=search.notes,
        refused=refused,
        stopped=stopped,
        held=_held(search.w, eligible),
        order=search.order,
        free=() if brief else tuple(free_runs(search.w, search.judge, search.machine_of(Rules()), machine, eligible)),
    )
