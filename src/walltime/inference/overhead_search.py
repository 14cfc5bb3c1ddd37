"""The time that the scheduler takes, read off a log: from its decision to the start, from an end until it sees it, between two looks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walltime.inference.one_step import OneStep
from walltime.inference.rule_trial import LEAST_GAIN, RuleProposal, RuleTrial
from walltime.machine import NO_OVERHEAD, Overhead

Array = np.ndarray
LONGEST_DELAY = 600
"""A job that starts so long after the policy would start it waited for something else, s."""
PROMPT = 30
"""Overheads are judged by starts that are at most so long after the policy's, s."""
USUAL = 0.5
"""An overhead is one only if more than this share of the policy's starts are as prompt."""
FEWEST_DELAYS = 50
"""Overheads are not estimated from fewer starts."""
TICKS = (10, 30, 60)
"""Periods of a scheduler that are tried, s."""


def inferred_overhead(search: RuleTrial, current: OneStep) -> OneStep:
    """Infer the scheduler's delays: from a decision to the start, from an end to its notice, and between two passes.

    They are judged by starts at most PROMPT s after the proposal, because the usual definition of prompt leaves room for such delays.
    """
    best, overhead = current, NO_OVERHEAD
    for stage in (_start_overheads, _end_overheads, _ticks):
        for rules, answer in search.ask_all([search.rules._replace(overhead=own) for own in stage(search, best, overhead)]):
            if search.gain(best, answer, search.choose, PROMPT) > LEAST_GAIN and search.gain(best, answer, search.choose) >= 0:
                best, overhead = answer, rules.overhead
    if overhead == NO_OVERHEAD:
        return current
    times = [f"{overhead.start} s from the decision to the start", f"{overhead.end} s after an end", f"a look every {overhead.tick} s"]
    shown = [text for text, there in zip(times, (overhead.start, overhead.end, overhead.tick > 1), strict=True) if there]
    text = f"the scheduler takes time: {', '.join(shown)}"
    evidence = f"more starts are within {PROMPT} s of the policy's"
    rules = search.rules._replace(overhead=overhead)
    suggestion = RuleProposal("overhead", text, evidence, rules, lambda rules: rules._replace(overhead=NO_OVERHEAD))
    score, fewer = best.score(search.judge, PROMPT), search.gain(current, best, search.judge) < 0
    if fewer or score.prompt <= USUAL * score.matched:
        but = f"fewer are within {search.within} s" if fewer else f"only {score.prompt:,} of {score.matched:,} are"
        search.notes.append(f"Left out: {text}. More starts are within {PROMPT} s of the policy's with it, but {but}.")
        return current
    return best if search.keep(suggestion, current, best, PROMPT) else current


def _delays(search: RuleTrial, answer: OneStep, own: Overhead) -> tuple[Array, Array]:
    """Return the delays of matched starts, s: of jobs proposed at their submission, and of jobs proposed at the end of another job.

    `own`: the overheads of these proposals.
    """
    mine = search.choose & answer.matched & (answer.delay >= 0) & (answer.delay <= LONGEST_DELAY)
    wished = np.maximum(search.log.start - own.start, search.w.submit) - answer.delay
    came = wished == search.w.submit
    ended = np.isin(wished, search.log.end[search.log.known] + own.end)
    return answer.delay[mine & came], answer.delay[mine & ~came & ended]


def _start_overheads(search: RuleTrial, answer: OneStep, own: Overhead) -> list[Overhead]:
    """Return overheads with a typical delay from submission to start of a job that fits."""
    return [replace(own, start=time) for time in _usual(_delays(search, answer, own)[0])]


def _end_overheads(search: RuleTrial, answer: OneStep, own: Overhead) -> list[Overhead]:
    """Return overheads with a typical delay from an end to the decisions that follow."""
    return [replace(own, end=time) for time in _usual(_delays(search, answer, own)[1])]


def _usual(delays: Array) -> list[int]:
    """Return low percentiles of delays, s; none if few are known."""
    times = np.percentile(delays, [5, 25, 50]).astype(np.int64).tolist() if len(delays) >= FEWEST_DELAYS else []
    return sorted({time for time in times if time >= 1})


def _ticks(search: RuleTrial, answer: OneStep, own: Overhead) -> list[Overhead]:
    """Return overheads with a period of the scheduler, which takes over half of itself from the other delays."""
    return [replace(own, start=max(own.start - tick // 2, 0), end=max(own.end - tick // 2, 0), tick=tick) for tick in TICKS]
