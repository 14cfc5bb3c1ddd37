"""The time that the scheduler takes, read off a log: from its decision to the start, from an end until it sees it, between two looks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walltime.inference.one_step import OneStep
from walltime.inference.rule_trial import LEAST_GAIN, RuleTrial, Suggestion
from walltime.machine import NO_OVERHEAD, Overhead

Array = np.ndarray
LONGEST_DELAY = 600
"""A job that starts so long after the policy would start it waited for something else, s."""
PROMPT = 30
"""Overheads are judged by starts that are at most so long after the policy's, s."""
USUAL = 0.5
"""An overhead is one only if more than this share of the policy's starts are as prompt."""
FEWEST_DELAYS = 50
"""Of fewer starts it is not said what the scheduler takes."""
TICKS = (10, 30, 60)
"""A scheduler may look every so many s."""


def inferred_overhead(search: RuleTrial, current: OneStep) -> OneStep:
    """The time that the scheduler takes: from its decision to the start, from an end until it sees it, and between two looks.

    Judged by the starts that the policy would have made at most PROMPT s before: what else counts as prompt leaves room for such times.
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
    suggestion = Suggestion("overhead", text, evidence, rules, lambda rules: rules._replace(overhead=NO_OVERHEAD))
    score, fewer = best.score(search.judge, PROMPT), search.gain(current, best, search.judge) < 0
    if fewer or score.prompt <= USUAL * score.made:
        but = f"fewer are within {search.within} s" if fewer else f"only {score.prompt:,} of {score.made:,} are"
        search.notes.append(f"Left out: {text}. More starts are within {PROMPT} s of the policy's with it, but {but}.")
        return current
    return best if search.keep(suggestion, current, best, PROMPT) else current


def _delays(search: RuleTrial, answer: OneStep, own: Overhead) -> tuple[Array, Array]:
    """Of starts that the policy would have made, how long it wished to: since the submission, and since the end of another job; s.

    `own`: the overheads with which it was asked.
    """
    mine = search.choose & answer.made & (answer.delay >= 0) & (answer.delay <= LONGEST_DELAY)
    wished = np.maximum(search.log.start - own.start, search.w.submit) - answer.delay
    came = wished == search.w.submit
    ended = np.isin(wished, search.log.end[search.log.known] + own.end)
    return answer.delay[mine & came], answer.delay[mine & ~came & ended]


def _start_overheads(search: RuleTrial, answer: OneStep, own: Overhead) -> list[Overhead]:
    """What passes between the submission and the start of a job that has room."""
    return [replace(own, start=time) for time in _usual(_delays(search, answer, own)[0])]


def _end_overheads(search: RuleTrial, answer: OneStep, own: Overhead) -> list[Overhead]:
    """What passes between an end and the decisions that follow it."""
    return [replace(own, end=time) for time in _usual(_delays(search, answer, own)[1])]


def _usual(delays: Array) -> list[int]:
    """Delays that may be what a scheduler takes, s; none where few are known."""
    times = np.percentile(delays, [5, 25, 50]).astype(np.int64).tolist() if len(delays) >= FEWEST_DELAYS else []
    return sorted({time for time in times if time >= 1})


def _ticks(search: RuleTrial, answer: OneStep, own: Overhead) -> list[Overhead]:
    """How often the scheduler may look; it takes half of that until it does, on average."""
    return [replace(own, start=max(own.start - tick // 2, 0), end=max(own.end - tick // 2, 0), tick=tick) for tick in TICKS]
