"""Records of averages, and which jobs are measured: warm-up and cool-down."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.tables import Facts, number

__all__ = ["TRIMS", "Averages", "measured"]


@dataclass(frozen=True)
class Averages:
    """A record of averages; undefined values are nan."""

    def as_dict(self) -> dict[str, Any]:
        """The fields in order, ready for JSON: undefined values are None."""
        values = asdict(self)
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}

    def _repr_html_(self) -> str:
        """A table in a notebook."""
        rows = [(name.replace("_", " "), number(value)) for name, value in self.as_dict().items()]
        return Facts(type(self).__name__, rows)._repr_html_()


Array = np.ndarray

TRIMS = ("none", "tsafrir06")
"""The known ways of excluding warm-up and cool-down."""


def measured(end: Array, last_submit: int, trim: str = "none", *, ignored: Array | None = None) -> Array:
    """Which jobs are included in the averages: a bool mask of shape (jobs,).

    `end`: int64 seconds, shape (jobs,), in order of arrival. `last_submit`: s. `trim="none"` includes every job. `trim="tsafrir06"`
    excludes the first floor(1 %) of all simulated jobs in order of termination (ties by arrival; none below 100 jobs) and every
    job that ends after the last arrival. `ignored` (bool, shape (jobs,)) marks jobs that are never measured; as in the pyss
    simulator, which ignores 1-processor jobs with an estimate of 1 s, each of them that ended earlier reduces the number of
    jobs of which the 1 % is taken. Raises PolicyError for an unknown trim.
    Source: tsafrir06, section II; that the 1 % is of
    all simulated jobs is an interpretation.

    >>> measured(np.array([10, 90, 50]), last_submit=60, trim="tsafrir06").tolist()
    [True, False, True]
    """
    if trim not in TRIMS:
        raise PolicyError(f"unknown trim {trim!r}; known are {', '.join(TRIMS)}")
    end = np.asarray(end)
    never = np.zeros(len(end), bool) if ignored is None else np.asarray(ignored, bool)
    if trim == "none":
        return ~never
    order = np.argsort(end, kind="stable")
    rank = np.arange(1, len(end) + 1)
    warm_up = rank <= (len(end) - np.cumsum(never[order])) // 100
    mask = (end <= last_submit) & ~never
    mask[order[warm_up]] = False
    return mask
