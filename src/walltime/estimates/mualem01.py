"""The uniform-accuracy model of user estimates."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from walltime.declared import Field
from walltime.estimates.base import EstimateModel
from walltime.workload import Array, Workload
from walltime.workload.draws import uniforms

STREAM_ACCURACY = 2


@dataclass(frozen=True)
class Mualem01(EstimateModel):
    """Estimates with a uniformly distributed accuracy (runtime / estimate), as the histograms of real logs suggest.

    With probability `under`, the estimate is `under_factor` r; otherwise it is r / u with u uniform in (0, 1], and
    `short_factor` times that for short jobs. All estimates are at most `cap`.

    The paper does not specify the rounding. Here overestimates are rounded up to whole seconds and underestimates down, so that
    the rounding does not turn one into the other; all are at least 1 s, so a job of 1 s is never underestimated.

    Source: mualem01, section 4.3; that `short_factor` does not apply to underestimates is our interpretation of its steps.

    >>> jobs = Workload.from_arrays(submit=[0], runtime=[1000], procs=[1], machine_procs=1)
    >>> Mualem01(under=1).draw(jobs).tolist(), Mualem01(under=0, cap=900).draw(jobs).tolist()
    ([990], [900])
    """

    under: Annotated[float, Field(least=0, most=1)] = 0.10
    """share of jobs with too short an estimate, which are killed shortly before their end"""
    under_factor: Annotated[float, Field(above=0, most=1)] = 0.99
    """factor of the runtime of such a job"""
    short: Annotated[int, Field(least=0)] = 90
    """jobs with a runtime below this, s, are short"""
    short_factor: Annotated[float, Field(least=1, most=1_000_000)] = 10.0
    """factor of the estimates of short jobs"""
    cap: Annotated[int, Field(least=1)] = 24 * 3600
    """the largest estimate, s; a job that runs longer is killed there (`walltime.estimates.cut_short` counts them)"""

    @property
    def random(self) -> bool:
        """Return whether the estimates depend on the seed: always."""
        return True

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return estimates, int64 seconds, from 1 to `cap`."""
        runtime = self.runtime(workload)
        which, accuracy = uniforms(seed, workload.job_id, STREAM_ACCURACY)
        accuracy = 1.0 - accuracy  # in (0, 1], to avoid division by 0
        over = np.where(runtime < self.short, self.short_factor, 1.0) * runtime / accuracy
        estimates = np.where(which < self.under, np.floor(self.under_factor * runtime), np.ceil(np.minimum(over, self.cap)))
        return np.clip(estimates.astype(np.int64), 1, self.cap)
