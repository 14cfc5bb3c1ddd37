"""Infer the rules of a site from its log; a rule is accepted only if it also explains held-out months or weeks.

rule_trial.py judges rules; candidate_rules.py finds candidates from counts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from walltime.inference import candidate_rules
from walltime.inference.free_runs import free_runs
from walltime.inference.inference import Inference, MonthAgreement, preemption_note, unmodelled, unread_of
from walltime.inference.limit_search import inferred_limits, kind_of_jobs, limits_of_users
from walltime.inference.one_step import OneStep
from walltime.inference.queue_order import inferred_policy
from walltime.inference.rule_trial import LEAST_GAIN, RuleProposal, Rules, RuleTrial
from walltime.inference.step_agreement import agreement_by
from walltime.machine import NO_OVERHEAD, Machine, Overhead, Window
from walltime.machine.placing import may_preempt
from walltime.machine.tables import DAY
from walltime.wording import counted, human_time
from walltime.workload import Workload, check_workload

Array = np.ndarray
LONGEST_DELAY = 600
"""Longest delay of a start, s; a later job waited for something else."""
PROMPT = 30
"""Largest delay, s, of a prompt start when overheads are judged."""
USUAL = 0.5
"""An overhead is accepted only if more than this share of the matched starts are prompt."""
FEWEST_DELAYS = 50
"""Overheads are not estimated from fewer starts."""
TICKS = (10, 30, 60)
"""Periods of a scheduler that are tried, s."""


def inferred_overhead(search: RuleTrial) -> None:
    """Infer the scheduler's delays: from a decision to the start, from an end to the release, and between passes.

    The delays are judged by starts at most PROMPT s after the proposal, because the usual definition of prompt already allows for them.
    """
    best, overhead = search.answer, NO_OVERHEAD
    for name in ("start", "end", "tick"):
        for rules, answer in search.ask_all([search.rules._replace(overhead=own) for own in _candidates(search, name, best, overhead)]):
            if search.gain(answer, search.choose, PROMPT, old=best) > LEAST_GAIN and search.gain(answer, search.choose, old=best) >= 0:
                best, overhead = answer, rules.overhead
    if overhead == NO_OVERHEAD:
        return
    times = [f"{overhead.start} s from decision to start", f"{overhead.end} s after an end", f"a pass every {overhead.tick} s"]
    shown = [text for text, there in zip(times, (overhead.start, overhead.end, overhead.tick > 1), strict=True) if there]
    text = f"the scheduler has delays: {', '.join(shown)}"
    evidence = f"more starts are within {PROMPT} s of the policy's"
    score, fewer = best.score(search.judge, PROMPT), search.gain(best, search.judge) < 0
    if fewer or score.prompt <= USUAL * score.matched:
        but = f"fewer are within {search.within} s" if fewer else f"only {score.prompt:,} of {score.matched:,} are"
        search.notes.append(f"Left out: {text}. More starts are within {PROMPT} s of the policy's with it, but {but}.")
    else:
        search.keep(RuleProposal("overhead", text, evidence, search.rules._replace(overhead=overhead)), best, PROMPT)


def _candidates(search: RuleTrial, name: str, answer: OneStep, own: Overhead) -> list[Overhead]:
    """Return overheads with another value of the field `name`; `own`: the overheads of the proposals in `answer`.

    The candidates are low percentiles of the delays of jobs proposed at their submission (`start`) or at the end of another job (`end`);
    without enough such jobs, the list is empty. Half of the scheduler's period counts towards both delays.
    """
    if name == "tick":
        return [replace(own, start=max(own.start - tick // 2, 0), end=max(own.end - tick // 2, 0), tick=tick) for tick in TICKS]
    mine = search.choose & answer.matched & (answer.delay >= 0) & (answer.delay <= LONGEST_DELAY)
    proposed = np.maximum(search.log.start - own.start, search.w.submit) - answer.delay
    came = proposed == search.w.submit
    if name == "end":
        came = ~came & np.isin(proposed, search.log.end[search.log.known] + own.end)
    delays = answer.delay[mine & came]
    times = np.percentile(delays, [5, 25, 50]).astype(np.int64).tolist() if len(delays) >= FEWEST_DELAYS else []
    return [replace(own, **{name: time}) for time in sorted(set(times)) if time >= 1]


MOST_MISFITS = 0.05
"""If a larger share of the recorded starts has too few free processors, the log and the machine contradict each other."""
STARTS = 2
"""An outage must explain at least this many more starts near it, not counting the start that ends it."""
OUTAGES = (3600, 4 * 3600, 12 * 3600)
"""Shortest durations of idle intervals that are tried as outages, s."""
NOISE = 0.15
"""If the prompt agreement under all rules is lower, the record does not follow such a scheduler."""


def infer(
    workload: Workload,
    *,
    procs: int | None = None,
    machine: Machine | None = None,
    progress: Callable[[float], None] | None = None,
    step: Callable[[str], None] | None = None,
) -> Inference:
    """Infer the rules of a site from the recorded starts in its log.

    `procs`: size of the machine, by default from the log. `machine`: only its node size is used; a note lists its other contents.
    `progress` is called with the approximate share of the completed work, 0 to 1, and `step` with the name of each of the seven steps.
    Ctrl-C ends the search; the result so far is returned, with the interrupted step in `stopped`.

    Raises WorkloadError for a log without recorded waits or of less than two months, and for a machine with preemption if the log does not
    identify the jobs that may preempt others. Starts of such jobs depend on neither free processors nor the queue order, so rules are
    neither chosen nor judged by them; the runs of a preempted job should be separate jobs of the workload.
    """
    check_workload(workload)
    apart = may_preempt(workload, machine) if machine is not None and machine.preempts else None
    hidden, whole = unmodelled(workload), workload
    if "partition" in workload.columns:  # the inferred machine has other partitions
        workload = replace(workload, columns={name: values for name, values in workload.columns.items() if name != "partition"})
    nodes = {1} if machine is None else {pool.procs for pool in machine.pools}
    search = RuleTrial(workload, workload.machine_procs if procs is None else procs, min(nodes) if len(nodes) == 1 else 1, progress, apart)
    search.notes += [*workload.warnings, *unread_of(machine), *([] if apart is None else [preemption_note(workload, apart)])]
    if hidden:
        search.requests = whole
        search.notes.append(hidden)
    plain = search.answer
    misfits = float(plain.overcommitted[search.log.known].mean())
    result = partial(_result, search, plain, misfits)
    if misfits > MOST_MISFITS:
        refused = (
            f"{100 * misfits:.0f} % of the recorded starts need more processors than were free (of {search.size:,}), so the log is "
            "incomplete or the machine's size is wrong; nothing is inferred"
        )
        return result(refused=refused)
    at = ""
    try:
        for number, (what, (look, share)) in enumerate(STEPS.items(), 1):
            at = f"step {number} of {len(STEPS)}, {what}"
            search.until = search.done + share
            if step is not None:
                step(at)
            look(search)
            search.done = search.until
        return result(refused=_refused_as_noise(search, plain))
    except KeyboardInterrupt:
        search.notes.append(f"Stopped at {at}: rules of this and later steps may exist.")
        return result(stopped=at)


def _refused_as_noise(search: RuleTrial, plain: OneStep) -> str:
    """Drop all rules and return the reason if hardly any start follows the policy with them; otherwise return an empty string."""
    score = search.answer.score(search.judge, search.within)
    if score.prompt_f1 >= NOISE:
        return ""
    search.rules, search.answer, search.kept = Rules(), plain, []
    return (
        f"only {100 * score.followed_promptly:.0f} % of the policy's proposals led to a start within {search.within} s, even with all "
        "rules tried, so the starts follow neither the policy nor such rules; nothing is inferred"
    )


def _parts(search: RuleTrial) -> None:
    """Infer parts of the machine for small, short jobs, unless the log has partitions, which explain such parts."""
    if search.requests is not None and (names := len(np.unique(search.requests.columns.get("partition", ())))) > 1:
        search.notes.append(f"Parts of the machine are not tried: the log has {names} partitions, but not their sizes.")
        return
    while len(search.rules.parts) < 2:
        parts = [
            replace(part, procs=-(-part.procs // search.node) * search.node)
            for part in candidate_rules.candidate_parts(search.log, search.size)
        ]
        found = search.best([_with(search.rules, "parts", part) for part in parts], search.gain_of_run)
        if found is None:
            return
        # Limits on a few users may explain the small jobs better.
        limits = None if search.rules.at_once or search.rules.parts else limits_of_users(search)
        if limits is not None and search.gain(limits[1], search.choose, old=found[1]) > 0 and search.keep(*limits):
            continue
        rules, part, best = _with_period(search, "parts", found[0].parts[-1], found[1])
        sizes = f"{'' if part.widest == 1 else 'up to '}{counted(part.widest, 'processor')}"
        text = f"jobs of {sizes} and up to {human_time(part.longest)} run on a part of {counted(part.procs, 'processor')}"
        evidence = f"the {int((part.takes(search.w) & search.log.known).sum()):,} such jobs never use more together"
        if not search.keep(RuleProposal("part", text, evidence, rules, part.since, part.until), best):
            return


def _outages(search: RuleTrial) -> None:
    """Infer outages of the whole machine that were known in advance: intervals without jobs that explain the days around them.

    An inferred outage ends with a recorded start by definition, so this start neither chooses nor judges outages. The other starts near it
    must gain at least STARTS, because each of many intervals without jobs explains a few starts by chance.
    """
    rules, answer = search.rules, search.answer
    every_stretch = candidate_rules.stopped_stretches(search.log)
    others, by_start = np.ones(len(search.w), bool), np.argsort(search.log.start, kind="stable")
    others[by_start[np.searchsorted(search.log.start[by_start], [end for _, end in every_stretch])]] = False
    for least in OUTAGES:  # a machine that drains before an outage may be idle for hours
        stretches = [own for own in every_stretch if own[1] - own[0] >= least]
        alone = search.ask_all([rules._replace(outages=(own,)) for own in stretches])
        stretches = []
        for own, answer_alone in alone:
            (begin, end), start = own.outages[0], search.log.start
            near = others & search.log.known & (start >= begin - 2 * DAY) & (start < end + 2 * DAY)
            if search.gain(answer_alone, near) * int(near.sum()) >= STARTS:
                stretches.append((begin, end))
        if not stretches:
            continue
        these = search.rules._replace(outages=tuple(stretches))
        asked = search.ask(these)
        if search.gain(asked, others & search.choose, old=answer) > 0:
            rules, answer = these, asked
    stretches = list(rules.outages)
    every = candidate_rules.periods(stretches)
    text = f"{counted(len(stretches), 'outage')} of the whole machine, known in advance{f', {every}' if every else ''}"
    evidence = f"nothing runs for an hour or longer while jobs wait, {sum(b - a for a, b in stretches) / 3600:,.0f} h in total"
    if stretches and search.gain(answer, others & search.choose) > LEAST_GAIN / 5:
        search.keep(RuleProposal("outage", text, evidence, rules), answer, judge=others & search.judge)


def _windows(search: RuleTrial) -> None:
    """Infer windows (closed hours), one at a time."""
    if search.since is None:
        search.notes.append("The log has no start date, so windows cannot be inferred.")
        return
    tried: dict[int, _Tried] = {}
    for clock in _clocks(search.w):
        search.clock = clock
        held_since = np.where(search.answer.matched, search.log.start - search.answer.delay, search.log.start)
        several = candidate_rules.candidate_windows(search.log, search.since + clock) + candidate_rules.windows_of_few(
            search.log, search.since + clock, held_since
        )
        tried[clock] = _tried(search, list(dict.fromkeys(several)))
    search.clock = max(tried, key=lambda clock: tried[clock].gain)
    found = tried[search.clock]
    while found.window is not None and found.best is not None and found.gain > LEAST_GAIN:
        rules, window, best = _with_period(search, "windows", *_fitted(search, found.window, found.best))
        search.keep(RuleProposal("window", *_describe(window), rules, window.since, window.until), best)
        found = _tried(search, found.others)


class _Tried(NamedTuple):
    """The window with the largest gain, its proposals, and the other windows with a gain."""

    gain: float
    window: Window | None
    best: OneStep | None
    others: list[Window]


def _tried(search: RuleTrial, candidates: Sequence[Window]) -> _Tried:
    """Test each of these windows with the rules accepted so far."""
    found, worth = _Tried(-math.inf, None, None, []), []
    for rules, answer in search.ask_all([_with(search.rules, "windows", one) for one in candidates]):
        gain, window = search.gain_of_run(answer), rules.windows[-1]
        if gain > 0:
            worth.append(window)
        if gain > found.gain:
            found = _Tried(gain, window, answer, [])
    return found._replace(others=[one for one in worth if one != found.window])


def _fitted(search: RuleTrial, window: Window, best: OneStep) -> tuple[Window, OneStep]:
    """Shift the hours and days of a window so that they explain most starts in the folds that choose rules; instants are unchanged.

    Each adjustment must gain enough, because smaller gains may be chance.
    """
    while window.end is not None:
        gain, place = search.gain_of_run(best), window
        for rules, answer in search.ask_all([_with(search.rules, "windows", one) for one in candidate_rules.windows_near(window)]):
            own = search.gain_of_run(answer)
            if own > gain + LEAST_GAIN / 5:
                best, gain, place = answer, own, rules.windows[-1]
        if place == window:
            break
        window = place
    return window, best


def _clocks(workload: Workload) -> list[int]:
    """Return the offsets of the site's zone from UTC in winter and summer, s."""
    since = workload.origin.unix_start_time
    assert since is not None
    zone = workload.origin.tzinfo()
    year = datetime.fromtimestamp(since, UTC).year
    offsets = {datetime(year, month, 15, tzinfo=zone).utcoffset() or timedelta(0) for month in (1, 7)}
    return sorted(int(offset.total_seconds()) for offset in offsets)


def _describe(window: Window) -> tuple[str, str]:
    """Return the description of a window, and of its evidence in the log."""
    days = "every day" if len(window.days) == 7 else "-".join(dict.fromkeys((window.days[0], window.days[-1])))
    jobs = kind_of_jobs(window.wider_than, window.longer_than)
    if window.up_to is not None:
        jobs = f"jobs of up to {human_time(window.up_to)}"
    if window.narrower_than is not None:
        jobs = f"jobs of up to {counted(window.narrower_than - 1, 'processor')}"
    if window.end is None:
        text = f"no job is planned to run across {window.begin} ({days})"
        return text, "far fewer requests cross it than neighbouring half hours"
    into = ", nor are they planned to run into these hours" if window.drain else ""
    return (
        f"{jobs} do not start from {window.begin} to {window.end} ({days}){into}",
        "far fewer of them start than are submitted in these hours",
    )


def _with(rules: Rules, name: str, value: Any, since: int | None = None, until: int | None = None) -> Rules:
    """Return the rules with an additional window or part of the machine, which applies between two log times."""
    several: Any = (*getattr(rules, name), replace(value, since=since, until=until))
    return rules._replace(**{name: several})


def _with_period(search: RuleTrial, name: str, value: Any, best: OneStep) -> tuple[Rules, Any, OneStep]:
    """Limit a window or part to the period in which it explains most; return the rules with it, the window or part, and the proposals."""
    since, until, best = search.shortened(best, partial(_with, search.rules, name, value))
    rules = _with(search.rules, name, value, since, until)
    return rules, getattr(rules, name)[-1], best


def _drop_superseded(search: RuleTrial) -> None:
    """Drop rules that explain nothing in addition to later rules, on the folds that choose rules."""
    k = 0
    while k < len(search.kept) - 1:
        rules = search.rules.without(*search.changes[k])
        answer = search.ask(rules)
        within = PROMPT if search.kept[k].kind == "overhead" else None
        if search.gain(search.answer, search.choose, within, old=answer) > LEAST_GAIN / 5:
            k += 1
            continue
        search.notes.append(f"Left out: {search.kept[k].text}. The rules below explain as much without it.")
        search.rules, search.answer = rules, answer
        del search.kept[k], search.changes[k]


STEPS: dict[str, tuple[Callable[[RuleTrial], None], float]] = {
    "hours": (_windows, 0.4),
    "outages": (_outages, 0.05),
    "parts of the machine": (_parts, 0.1),
    "overheads": (inferred_overhead, 0.05),
    "limits": (inferred_limits, 0.1),
    "the policy": (inferred_policy, 0.25),
    "what others replace": (_drop_superseded, 0.05),
}
"""The steps of the search, with their approximate shares of the time."""


def _result(search: RuleTrial, plain: OneStep, misfits: float, *, refused: str = "", stopped: str = "") -> Inference:
    """Return the result; an interrupted or rejected search has no free runs and no agreement with eligible times."""
    current, brief = search.answer, bool(refused or stopped)
    eligible = search.w.submit if brief else candidate_rules.not_eligible_before(search.log)
    held = eligible - search.w.submit
    hindsight = current if brief else search.ask(search.rules, eligible)
    made = current.delay[current.matched & (current.delay >= 0) & (current.delay <= LONGEST_DELAY)]
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
        log=search.w.origin.site,
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
        held=dict(zip(search.w.job_id[held > 0].tolist(), held[held > 0].tolist(), strict=True)),
        order=search.order,
        free=() if brief else tuple(free_runs(search.w, search.judge, search.machine_of(Rules()), machine, eligible)),
    )
