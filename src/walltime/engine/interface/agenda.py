"""The times at which outages and windows change on a machine of several pools, computed only as far ahead as the event loop needs them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from walltime.engine.kernel.memory import records
from walltime.engine.kernel.pools.memory import CHANGE, OPENS, SHUTS
from walltime.engine.machines import IDLE, NEVER, ShutHours

Array = np.ndarray
DAY = 86_400
AHEAD = 60 * DAY
"""Time span covered at first, s: until this long after the last submission, or after the first year of a longer log."""


class Agenda:
    """Changes of outages and windows up to a time that `extend` moves later.

    `known` is a pair: the changes, as sorted records of CHANGE that include the next change of each window, and the time up to which they
    are complete, s. Copies of a simulation share an agenda; since both values are one attribute, no copy combines a new time with old
    changes. Windows recur forever, so a loop runs up to that time, calls `extend`, and continues.

    `outages`: records of OUTAGE. `windows`: numbered as limits, from `first_limit` on. `first`, `last`: first and last submission, s.
    """

    def __init__(self, outages: Any, windows: Sequence[ShutHours], first_limit: int, first: int, last: int):
        self._windows, self._first_limit, self._begin = windows, first_limit, first
        self._outages = _changes_of(outages)
        self.quiet_from = max([first, *self._outages[0].tolist(), *(hours.settled for hours in windows)])
        """Time, s, after which only windows change, in the same way each week."""
        self._reach(min(last, first + 365 * DAY) + AHEAD)

    def extend(self, until: int) -> None:
        """Extend the known changes to twice this time, s, or as far as needed to show that jobs never start."""
        if self.known[1] <= until:
            self._reach(max(2 * until - self._begin, max(until, self.quiet_from) + IDLE))

    def _reach(self, until: int) -> None:
        times, numbers, phases = ([column] for column in self._outages)
        going_on = False
        for number, hours in enumerate(self._windows, self._first_limit):
            stretches = hours.until(until)
            going_on |= len(stretches.begin) > 0 and int(stretches.begin[-1]) > until
            lasting = stretches.begin[stretches.begin < stretches.end]
            times += [lasting, stretches.end]
            numbers.append(np.full(len(lasting) + len(stretches.end), number))
            phases += [np.full(len(lasting), SHUTS), np.full(len(stretches.end), OPENS)]
        columns = [np.concatenate(column) for column in (times, numbers, phases)]
        order = np.lexsort(columns[::-1])
        changes = records(CHANGE, len(order))
        changes.time, changes.outage, changes.phase = (column[order] for column in columns)
        self.known = changes, until if going_on else NEVER


def _changes_of(outages: Any) -> tuple[Array, Array, Array]:
    """Return the times (s) at which outages enter their phases, with the outage and the phase, int64."""
    changes = []
    for k, outage in enumerate(outages):
        known = min(int(outage.known), int(outage.begin))
        times = [(known, 1)] if known < outage.begin else []
        times += [(int(outage.begin), 2), (int(outage.end), 3)]
        changes += [(time, k, phase) for time, phase in times if time < NEVER]
    time, number, phase = np.array(changes, np.int64).reshape(-1, 3).T
    return time, number, phase
