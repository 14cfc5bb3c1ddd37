"""The f-model: estimates that are a random or fixed multiple of the runtime, possibly truncated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.estimates.base import EstimateModel, whole_seconds
from walltime.workload import Array, Workload
from walltime.workload.draws import uniforms

STREAM_F = 1


@dataclass(frozen=True)
class FModel(EstimateModel):
    """Estimates between the runtime r and F r: uniformly random, or always F r.

    Estimates are drawn as real numbers and rounded to the nearest second, at least the runtime and at least 1 s; the rounding is our
    interpretation.

    Source: feitelson98, section 3.3; mualem01, section 4.2; tsafrir06, sections II (deterministic) and VII (truncated).

    >>> FModel(4).F, FModel.of_badness(3).F, str(FModel(4).twin())
    (4, 4, 'f:2.5,deterministic=yes')
    """

    positional: ClassVar[tuple[str, ...]] = ("F",)
    F: Annotated[float, Field(least=0, most=1_000_000)]
    """f in feitelson98 and mualem01, where 1 is perfect; the badness in tsafrir06 is f = F - 1"""
    deterministic: bool = field(default=False, kw_only=True)
    """whether the estimate is always F r"""
    truncated: Annotated[int | None, Field(least=1)] = field(default=None, kw_only=True)
    """the largest estimate E_max, s; longer jobs are killed there, because the model then sets the kill limit"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.F < 1:
            raise PolicyError(f"F must be at least 1 (perfect), not {self.F:g}; the badness f of tsafrir06 is F - 1", "number_out_of_range")
        if self.truncated is not None and self.limit == "user":
            raise PolicyError(
                "a truncated f-model sets the kill limit, so limit=user is not possible; leave limit out", "conflicting_options"
            )

    @classmethod
    def of_badness(cls, f: float, **options: Any) -> FModel:
        """Return the model of badness f (tsafrir06), from 0 (perfect): F = f + 1."""
        if not 0 <= f < 1e6:
            raise PolicyError(f"the badness of the f-model must be from 0 (perfect) to a million, not {f:g}", "number_out_of_range")
        return cls(f + 1, **options)

    @property
    def badness(self) -> float:
        """Return the f of tsafrir06."""
        return self.F - 1

    @property
    def random(self) -> bool:
        """Return whether the estimates depend on the seed: unless the model is deterministic or perfect."""
        return not self.deterministic and self.F > 1

    def twin(self) -> FModel:
        """Return the deterministic model with the same mean: factor (F + 1) / 2, badness f / 2 (tsafrir06, section II)."""
        return FModel((self.F + 1) / 2, deterministic=True, truncated=self.truncated, limit=self.limit)

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return estimates, int64 seconds; at least the runtime unless truncated, and then at most `truncated`."""
        runtime = self.runtime(workload)
        if self.truncated is not None:
            runtime = np.minimum(runtime, self.truncated)
        if self.deterministic:
            estimates = runtime * self.F
        else:
            share, _ = uniforms(seed, workload.job_id, STREAM_F)
            estimates = runtime * (1 + (self.F - 1) * share)
        estimates = whole_seconds(estimates, runtime)
        return estimates if self.truncated is None else np.minimum(estimates, self.truncated)


def wrong_order_probability(r1: float, r2: float, F: float) -> float:
    """Return the probability that the shorter job has the longer estimate in the random f-model: Pr(e1 > e2) for r1 < r2.

    The estimates are assumed not to be rounded. Source: tsafrir06, Fig. 10.

    >>> round(wrong_order_probability(1, 2, 4), 4), wrong_order_probability(1, 4, 3)
    (0.1111, 0.0)
    """
    if not 0 < r1 < r2:
        raise PolicyError(f"the runtimes must be positive and ascending, not {r1:g} and {r2:g}", "wrong_runtimes")
    overlap = F * r1 - r2
    return 0.0 if overlap <= 0 else 0.5 * overlap**2 / ((F - 1) * r1 * (F - 1) * r2)
