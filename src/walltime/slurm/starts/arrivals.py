"""Jobs that will be submitted: days of the recent past, of the same weekday and hour."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

WEEK, DAY = 7 * 86400, 86400
WEEKS = 8
"""So many of the last weeks are drawn from."""


class Arrivals:
    """Draws jobs to come from the history's submissions before `now`.

    `submit`: of the history's jobs, s, ascending; `horizon`: until when jobs are to come, s after `now`. Each day to come is a day of one
    of the last weeks, chosen at random, from the same weekday and hour on; where the history is shorter than a week, any day; where it is
    shorter than a day, no jobs come (`period` is 0).
    """

    def __init__(self, submit: Array, now: int, horizon: int):
        self.submit, self.now, self.horizon = submit, now, horizon
        known = now - int(submit[0]) if len(submit) else 0
        self.period = WEEK if known >= WEEK else DAY if known >= DAY else 0
        self.reach = known

    def draw(self, random: np.random.Generator) -> tuple[Array, Array]:
        """The jobs to come: their places in the history, and the s after `now` at which each is submitted, ascending."""
        places, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for begin in range(0, self.horizon if self.period else 0, DAY):
            length = min(DAY, self.horizon - begin)
            fewest = -(-(begin + length) // self.period)  # so many periods back, the day is over
            most = max(fewest, min(fewest + WEEKS * WEEK // self.period - 1, (self.reach + begin) // self.period))
            back = self.now + begin - self.period * int(random.integers(fewest, most + 1))
            first, last = np.searchsorted(self.submit, [back, back + length])
            places.append(np.arange(first, last))
            times.append(self.submit[first:last] - back + begin)
        return np.concatenate(places), np.concatenate(times)
