"""Infer the scheduler's delays: from a decision to the start, from the end of a job to the release, and between passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from walltime.inference.one_step import OneStep
from walltime.inference.rule_trial import LEAST_GAIN, RuleProposal, RuleTrial
from walltime.machine import NO_OVERHEAD, Overhead

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

    They are judged by starts at most PROMPT s after the proposal, because the usual definition of prompt already allows for such delays.
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
