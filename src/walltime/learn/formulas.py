"""The formulas that order the queue: those of zhang20, with the waiting time as defined, and of carastan17."""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray
FORMULAS = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "f2", "f3", "f4")
"""The formulas that the decision `formula` chooses from, in this order, and the baselines: those of zhang20 (`walltime.papers.zhang20`)
and F2 to F4 of carastan17; the submission counts from the start of the log."""


def formula_terms(submit: Array, planned: Array, procs: Array) -> Array:
    """What does not change in a formula's score of a job while the job waits, float64, a column for each formula.

    That is the score itself, for `unicep` what the wait is divided by, and for `wfp3` nothing. Logarithms take longer than all else that
    a decision needs, so they are taken once; and not by numpy, whose last digit differs from that of other orders.
    """
    submitted = np.array([math.log10(max(time, 0.1)) for time in submit.tolist()])
    length = np.array([math.log10(time) for time in planned.tolist()])
    size = np.array([math.log2(count) for count in procs.tolist()])
    columns = {
        "fcfs": np.zeros(len(submit)),
        "sjf": planned,
        "saf": planned.astype(float) * procs,
        "wfp3": np.zeros(len(submit)),
        "unicep": (size + 1e-20) * planned,
        "f1": length * procs + 870.0 * submitted,
        "f2": np.sqrt(planned) * procs + 25_600.0 * submitted,
        "f3": planned.astype(float) * procs + 6.86e6 * submitted,
        "f4": planned * np.sqrt(procs) + 5.30e5 * submitted,
    }
    return np.column_stack([columns[name] for name in FORMULAS]).astype(np.float64)
