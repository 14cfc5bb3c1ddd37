"""What backfilling did: who was delayed by it, and how near the order of the starts came to shortest job first."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.metrics.jobs import mean

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Dynamics:
    """One entry per job of a schedule, in the workload's order of arrival.

    `wild`: bool, whether the job was backfilled such that the real shadow of the head became later. The real shadow is when
    the head would start if nothing else did, the running jobs ending when they really end. `suffered`: int64, how many wild
    backfills there were while the job was the head with the reservation. `delay`: int64 seconds by which a job that suffered
    any started after its first real shadow, the one before the first backfilling under it; 0 for the others. Both exist
    under EASY only. `shortest`: bool, whether no waiting job had a shorter runtime when this one was chosen; `alone`: bool,
    whether no other job was waiting then. `sequence`: int64, the jobs' places in the order in which they started.

    Source: P3 sections V and VI (SPEC A-08, A-09, Q-17).
    """

    wild: Array
    suffered: Array
    delay: Array
    shortest: Array
    alone: Array
    sequence: Array


@dataclass(frozen=True)
class DynamicsSummary:
    """Averages of the dynamics over the measured jobs; nan where there is no such job."""

    wild_percent: float
    """wildly backfilled jobs, in percent of all (P3 Fig. 7)"""
    mean_runtime_wild: float
    """mean runtime of the wildly backfilled jobs, s (P3 Fig. 7)"""
    delayed_percent: float
    """jobs that suffered a wild backfill while they were the head, in percent of all (P3 Fig. 8)"""
    mean_delay: float
    """mean delay of these, s (P3 Fig. 8)"""
    shadow_moves: int
    """how often the real shadow of a measured job moved"""
    sjfness: float
    """jobs that were the shortest waiting one when they were chosen, in percent of all (P3 Fig. 9)"""
    sjfness_of_choices: float
    """the same in percent of the jobs that were not alone in the queue (SPEC Q-17)"""

    def as_dict(self) -> dict[str, Any]:
        """The fields in their order, ready for JSON: what is not defined is None."""
        values = asdict(self)
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}


def summarize_dynamics(dynamics: Dynamics, runtime: Array, measured: Array) -> DynamicsSummary:
    """Averages over the measured jobs.

    `runtime`: int64 seconds that the jobs really ran, `measured`: bool; each of shape (jobs,), in order of arrival.
    Source: P3 Figs. 7 to 9 (SPEC A-08, A-09).

    >>> yes, no, zero = np.array([True]), np.array([False]), np.array([0])
    >>> one = Dynamics(wild=no, suffered=zero, delay=zero, shortest=yes, alone=yes, sequence=zero)
    >>> summarize_dynamics(one, runtime=np.array([10]), measured=yes).sjfness
    100.0
    """
    wild = dynamics.wild & measured
    delayed = (dynamics.suffered > 0) & measured
    shortest, chosen = dynamics.shortest[measured], ~dynamics.alone[measured]
    return DynamicsSummary(
        wild_percent=100.0 * mean(dynamics.wild[measured]),
        mean_runtime_wild=mean(runtime[wild]),
        delayed_percent=100.0 * mean(delayed[measured]),
        mean_delay=mean(dynamics.delay[delayed]),
        shadow_moves=int(dynamics.suffered[measured].sum()),
        sjfness=100.0 * mean(shortest),
        sjfness_of_choices=100.0 * mean(shortest[chosen]),
    )
