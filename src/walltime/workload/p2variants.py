"""The variants of Feitelson's model that mimic a log: Fs, Fl and Fsl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from walltime.errors import WorkloadError
from walltime.workload.feitelson96 import Feitelson96
from walltime.workload.marginals import CLASSES, CTC_SP2, Marginals, size_class

Array = np.ndarray

VARIANTS = ("s", "l", "sl")


@dataclass(frozen=True)
class FeitelsonVariant(Feitelson96):
    """Feitelson'96 with the sizes (`variant` s), the runtimes (l) or both (sl) of a log; our construction.

    mualem01 describes the aims of its variants, but not their construction: Fs emphasizes small jobs, Fl long ones, and Fsl
    mimics the runtimes of the CTC SP2 for each size. Our interpretation: Fs draws sizes from the log; Fl maps each runtime of
    the model to the runtime of the log at the same quantile, so that the overall distribution is that of the log, and larger
    jobs still run longer; Fsl does both, the mapping within each class of sizes: 1, 2-4, 5-8, 9-16, 17-32, 33-64, more.

    `marginals`: the log's sizes and runtimes; the defaults were fitted from the CTC SP2. Jobs of the log that are wider than
    the machine are not submitted. Repetitions, arrivals and load are those of `Feitelson96`.

    Source: mualem01, section 3.3.

    >>> jobs = FeitelsonVariant(variant="sl").generate(jobs=1000, machine_procs=512, load=0.7, seed=1)
    >>> len(jobs), round(jobs.offered_load, 3)
    (1000, 0.7)
    """

    variant: Literal["s", "l", "sl"] = "sl"
    marginals: Marginals = CTC_SP2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in VARIANTS:
            raise WorkloadError(f"the variants of Feitelson'96 are {', '.join(VARIANTS)}, not {self.variant!r}")

    @property
    def name(self) -> str:
        """The model's name on the command line."""
        return f"feitelson96-f{self.variant}"

    def size_weights(self, machine_procs: int) -> tuple[Array, Array]:
        """The sizes (int64) and their probabilities (float64)."""
        if "s" not in self.variant:
            return super().size_weights(machine_procs)
        sizes, counts = self.marginals.fitting(machine_procs)
        return sizes, counts / counts.sum()

    def _raw_runtimes(self, procs: Array, machine_procs: int, random: np.random.Generator) -> Array:
        runtime = super()._raw_runtimes(procs, machine_procs, random)
        if "l" not in self.variant:
            return runtime
        sizes, weights = self.size_weights(machine_procs)
        if self.variant == "l":
            return self.marginals.quantile(self.runtime_cdf(runtime, float(sizes @ weights) / machine_procs), 0)
        mine, theirs = size_class(procs), size_class(sizes)
        for k in range(CLASSES):
            here, inside = mine == k, theirs == k
            if here.any():
                share = float(sizes[inside] @ weights[inside]) / float(weights[inside].sum()) / machine_procs
                runtime[here] = self.marginals.quantile(self.runtime_cdf(runtime[here], share), k + 1)
        return runtime
