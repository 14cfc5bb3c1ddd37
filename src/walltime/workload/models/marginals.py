"""Distributions of job size and runtime in a log, to which a model can be fitted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from walltime.errors import WorkloadError
from walltime.workload.models.model import values_of
from walltime.workload.workload import Workload

Array = np.ndarray

CLASS_ENDS = (1, 4, 8, 16, 32, 64)
"""The largest sizes of the classes 1, 2-4, 5-8, 9-16, 17-32 and 33-64; larger sizes are in the last class."""
CLASSES = len(CLASS_ENDS) + 1
QUANTILE_STEPS = 96


def size_class(procs: Array) -> Array:
    """Return the class, 0 to 6, of each size."""
    return np.searchsorted(CLASS_ENDS, procs, side="left")


@dataclass(frozen=True)
class Marginals:
    """Distributions of sizes and runtimes in a log.

    `sizes`: pairs of a size and its number of jobs. `runtimes`: a row for all jobs and one for each class of sizes; each holds
    quantiles in s, at equal steps of probability. `source`: the log.

    >>> CTC_SP2.quantile(np.array([0.0, 1.0]), 0).round(6).tolist()
    [1.0, 64800.0]
    """

    sizes: tuple[tuple[int, int], ...] = field(repr=False)
    runtimes: tuple[tuple[int, ...], ...] = field(repr=False)
    source: str

    @classmethod
    def fit(cls, workload: Workload, steps: int = QUANTILE_STEPS) -> Marginals:
        """Return the distributions of a log; classes without jobs get the runtimes of all jobs. Raises WorkloadError for an empty log."""
        if not len(workload):
            raise WorkloadError(f"{workload.origin.name} has no jobs from which to fit sizes and runtimes; use another log")
        sizes, counts = np.unique(workload.procs, return_counts=True)
        classes = size_class(workload.procs)
        groups = [workload.runtime, *(workload.runtime[classes == k] for k in range(CLASSES))]
        levels = np.linspace(0, 1, steps + 1)
        rows = [np.quantile(group if len(group) else workload.runtime, levels, method="inverted_cdf") for group in groups]
        runtimes = tuple(tuple(row.astype(np.int64).tolist()) for row in rows)
        return cls(tuple(zip(sizes.tolist(), counts.tolist(), strict=True)), runtimes, f"fitted from {workload.origin.name}")

    def fitting(self, machine_procs: int) -> tuple[Array, Array]:
        """Return the sizes that fit on a machine, and their frequencies; raises WorkloadError if there are none."""
        sizes, counts = np.array(self.sizes, np.int64).T
        fits = sizes <= machine_procs
        if not fits.any():
            raise WorkloadError(
                f"the smallest job of {self.source} has {sizes[0]} processors, but the machine has {machine_procs}; set more (procs=N)",
                "no_job_fits",
            )
        return sizes[fits], counts[fits]

    def quantile(self, probability: Array, row: int) -> Array:
        """Return the runtimes, float64 s, at these probabilities; row 0 is for all jobs, row 1 + k for class k.

        Between two quantiles, the logarithm of (runtime + 1 s) is interpolated linearly.
        """
        known = np.log1p(np.array(self.runtimes[row], np.float64))
        return np.expm1(np.interp(probability, np.linspace(0, 1, len(known)), known))


_FITTED = values_of("ctc_sp2")
CTC_SP2 = Marginals(
    tuple(map(tuple, _FITTED["sizes"])), tuple(map(tuple, _FITTED["quantiles"])), "fitted from CTC-SP2-1996-3.1-cln.recon, all jobs"
)
"""The distributions of the CTC SP2; `ctc_sp2.toml` describes the log."""
