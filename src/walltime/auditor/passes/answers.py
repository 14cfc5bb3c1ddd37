"""What a site's rules are, and what a policy has answered at each instant of a record; beside the passes, whose compiled code takes it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["ASKED", "BY_CLOCK", "BY_HOLD", "BY_LIMIT", "BY_OUTAGE", "FREE_TO_START", "WINDOW", "Asked"]

Array = np.ndarray
FREE_TO_START, BY_CLOCK, BY_LIMIT, BY_HOLD, BY_OUTAGE = range(5)
"""Whether a job may start now, and what forbids it."""
WINDOW = np.dtype([(name, np.int64) for name in ["next", "last", "crossing", "kind"]], align=True)
"""A window: which of the begins and ends comes next, where its own end, whether jobs are not planned across its begins, and what forbids
a job to start in it: BY_CLOCK or BY_OUTAGE."""

_ASKED = "eligible user forbidden barred recorded since last episodes asked hit short delay"
ASKED = np.dtype([(name, np.int64) for name in _ASKED.split()], align=True)
"""A job. `eligible`: when it may start at the earliest. `user`: the group whose limit it counts in, -1 for none. `forbidden`: by which
rule, at the last instant; `barred`: 1 while a pass reaches the limit of its group. `recorded`: its recorded start. `since`: since when the
policy has wished to start it, -1 if it does not. `last`: the instant at which it gave up such a wish. `episodes`: how often such a wish
began. `asked`: 1 once it has started. `hit`: 1 if the policy would have started it then. `short`: 1 if it needed more processors than the
record leaves. `delay`: from the beginning of the wish, s."""


class Asked(NamedTuple):
    """What the site's rules are, and what the policy has answered; `windows_of`: whether each window (row) holds for each job."""

    jobs: Any
    windows: Any
    windows_of: Array
    begins: Array
    ends: Array
    at_once: Array
    running_of: Array
    queue: Array
    line: Array
    back: Array
    running: Array
