"""The formulas by which waiting jobs are ordered in the learning environment, and what jobs cost that wait (decisions.py)."""

from __future__ import annotations

from walltime.compiled.jit import kernel

# Formulas, in the order of `walltime.learn.FORMULAS`; the lowest score comes first, ties by arrival.
FCFS, SJF, SAF, WFP3, UNICEP, F1, F2, F3, F4 = range(9)
# Costs of a job.
WAIT, RESPONSE, SLOWDOWN, BOUNDED = range(4)
BOUND = 10
"""Runtimes below this count as this in bounded slowdowns, s."""


@kernel
def cost_of(kind, wait, runtime):
    """What a job costs that has waited so long, s."""
    if kind == WAIT:
        return float(wait)
    if kind == RESPONSE:
        return float(wait + runtime)
    if kind == SLOWDOWN:
        return (wait + runtime) / max(runtime, 1)
    return max(1.0, (wait + runtime) / max(runtime, BOUND))


@kernel
def score_of(formula, now, jobs, terms, job):
    """A formula of zhang20, with the waiting time as defined, or of carastan17; the lowest comes first.

    `terms`: see `walltime.learn.features`.
    """
    if formula == WFP3:
        ratio = (now - jobs[job].submit) / jobs[job].believed
        return -(ratio * ratio * ratio * jobs[job].procs)
    if formula == UNICEP:
        return -(now - jobs[job].submit + 1e-20) / terms[job, formula]
    return terms[job, formula]
