"""The uniform-accuracy model of user estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.errors import PolicyError
from walltime.estimates.base import Array, EstimateModel
from walltime.workload import Workload
from walltime.workload.draws import uniforms

STREAM_ACCURACY = 2


@dataclass(frozen=True)
class Mualem01(EstimateModel):
    """Estimates whose accuracy r / e is uniform, as the histograms of real logs suggest.

    With probability `under` the estimate is `under_factor` r (such a job is killed shortly before its end) and final; otherwise
    it is r / u with u uniform in (0, 1], and `short_factor` times that for jobs shorter than `short` seconds. All estimates are
    at most `cap`, s; if the cap is below the runtime, the job is killed at the cap (`walltime.estimates.cut_short` counts both
    kinds).

    The paper does not specify the rounding. Here overestimates are rounded up to whole seconds and underestimates down, so that
    they remain such; all are at least 1 s, so a job of 1 s is never underestimated.

    Source: mualem01, section 4.3; that `short_factor` does not apply to underestimates is our interpretation of its steps.

    >>> jobs = Workload.from_arrays(submit=[0], runtime=[1000], procs=[1], machine_procs=1)
    >>> Mualem01(under=1).draw(jobs).tolist(), Mualem01(under=0, cap=900).draw(jobs).tolist()
    ([990], [900])
    """

    under: float = 0.10
    under_factor: float = 0.99
    short: int = 90
    short_factor: float = 10.0
    cap: int = 24 * 3600

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.under <= 1:
            raise PolicyError(f"the share of underestimates must be from 0 to 1, not {self.under:g}")
        if not 0 < self.under_factor <= 1:
            raise PolicyError(f"underestimates must be over 0 and up to 1 times the runtime, not {self.under_factor:g}")
        if not 1 <= self.short_factor <= 1e6:
            raise PolicyError(f"the factor for short jobs must be from 1 to a million, not {self.short_factor:g}")
        if self.cap < 1:
            raise PolicyError(f"the largest estimate must be at least 1 s, not {self.cap}")

    @property
    def random(self) -> bool:
        """Always."""
        return True

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Estimates, int64 seconds, from 1 to `cap`."""
        runtime = self.runtime(workload)
        which, accuracy = uniforms(seed, workload.job_id, STREAM_ACCURACY)
        accuracy = 1.0 - accuracy  # in (0, 1], to avoid division by 0
        over = np.where(runtime < self.short, self.short_factor, 1.0) * runtime / accuracy
        estimates = np.where(which < self.under, np.floor(self.under_factor * runtime), np.ceil(np.minimum(over, self.cap)))
        return np.clip(estimates.astype(np.int64), 1, self.cap)
