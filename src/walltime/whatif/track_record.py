"""Track record of predicted changes of the mean wait, from synthetic sites with known true changes.

validation/change_bank.py makes the sites; docs/validation/coverage.md tests these numbers on other sites.
"""

import math
from dataclasses import dataclass

from walltime.metrics.recorded import FEW_JOBS, Agreement
from walltime.metrics.summary import Averages

LEAST_CHANGE = 0.02
"""Smaller changes of the mean wait count as none, and their directions are not predicted."""


@dataclass(frozen=True)
class SiteClass:
    """Synthetic sites with similar agreement between the simulation and the log.

    `least`: their lowest rank correlation of simulated and recorded waits. `floor`, `slope`: the half width of the interval of the true
    change is floor + slope * |predicted change|, all as logarithms of ratios. `directions`: for predicted changes up to each size
    (absolute logarithm), whether the direction is reported because it was right significantly more often than by chance, and the numbers
    of right directions and of cases.
    """

    least: float
    floor: float
    slope: float
    directions: tuple[tuple[float, bool, int, int], ...]

    @property
    def right(self) -> str:
        """Return how often the predicted directions were right, as a clause."""
        right, cases = (sum(counts[k] for _, known, *counts in self.directions if known) for k in range(2))
        return f"on comparable synthetic sites, {right} of {cases} were right"


CLASSES = (
    SiteClass(0.8, 0.167, 0.05, ((0.05, False, 12, 21), (0.2, True, 47, 55), (math.inf, True, 142, 146))),
    SiteClass(0.5, 0.261, 0.15, ((0.05, False, 12, 21), (0.2, True, 47, 55), (math.inf, True, 142, 146))),
    SiteClass(-1.0, 0.506, 0.1, ((0.05, True, 23, 26), (0.2, True, 25, 29), (math.inf, True, 23, 24))),
)
"""The classes of sites, in descending order of agreement."""
SEEN = (0.02, 1.6)
"""The 5th and 95th percentiles of the ratio of simulated to recorded mean waits over these sites."""


@dataclass(frozen=True)
class TrackRecord(Averages):
    """The expected relative change of the mean wait (0.1: 10 % longer), its 90 % interval, and the record of such predictions.

    `is_known`: whether the direction is reported; on sites with similar agreement, it was right in `right` of `cases` cases.
    """

    expected: float
    low: float
    high: float
    is_known: bool
    right: int
    cases: int

    @property
    def claims(self) -> bool:
        """Return whether the expected change is large enough for its direction to be predicted."""
        return abs(self.expected) >= LEAST_CHANGE

    @property
    def interval(self) -> str:
        """Return the interval as text, such as `11 to 27 % shorter`."""
        low, high = (round(100 * one) for one in (self.low, self.high))
        if low * high <= 0:
            return f"{percent_words(low)} to {percent_words(high)}"
        ends = sorted((abs(low), abs(high)))
        return f"{ends[0]} to {percent_words(math.copysign(ends[1], low))}"


def percent_words(percent: float) -> str:
    """Return a change in percent as text.

    >>> percent_words(-12), percent_words(3), percent_words(0)
    ('12 % shorter', '3 % longer', '0 %')
    """
    whole = round(abs(percent))
    return f"{whole:,} % {'shorter' if percent < 0 else 'longer'}" if whole else "0 %"


def class_of(agreement: Agreement) -> SiteClass | None:
    """Return the class of synthetic sites with similar agreement; None if all sites agreed better, or there are too few jobs."""
    ratio = agreement.mean_simulated / agreement.mean_recorded if agreement.mean_recorded else math.nan
    if agreement.jobs < FEW_JOBS or not SEEN[0] <= ratio <= SEEN[1]:
        return None
    return next((one for one in CLASSES if agreement.rank_correlation >= one.least), None)


def track_record(change: float, if_users_react: float | None, agreement: Agreement) -> TrackRecord | None:
    """Return the expected change of the mean wait and its track record; None if all synthetic sites agreed better with their logs.

    `change`: the simulated relative change; `if_users_react`: the same if users react, None if unknown. Waits that the simulation does not
    explain are assumed not to change: if the simulated mean wait is below the recorded one, the change is relative to the recorded one.
    """
    found = class_of(agreement)
    if found is None:
        return None
    scale = min(1.0, agreement.mean_simulated / agreement.mean_recorded)
    both = [math.log(max(1 + scale * one, 1e-3)) for one in (change, change if if_users_react is None else if_users_react)]
    reach = found.floor + found.slope * abs(both[0])
    known, right, cases = next(counts for largest, *counts in found.directions if abs(both[0]) <= largest)
    return TrackRecord(math.expm1(both[0]), math.expm1(min(both) - reach), math.expm1(max(both) + reach), bool(known), right, cases)
