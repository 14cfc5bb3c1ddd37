"""The dynamics of backfilling: the jobs that it delays, and how close the order of starts comes to shortest job first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.metrics.jobs import mean
from walltime.metrics.summary import Averages

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Dynamics:
    """One entry per job of a schedule, in the workload's order of arrival.

    `wild`: bool, whether backfilling the job moved the real shadow of the head to a later time. The real shadow is the time at which the
    head would start if no other job started first, given the real ends of the running jobs. `suffered`: int64, the number of wild backfills
    while the job was the head with the reservation. `delay`: int64, s, for jobs that suffered: the time from the real shadow before the
    first backfill to the start; 0 for other jobs. Both exist only under EASY. `shortest`: bool, whether no waiting job had a shorter
    runtime when the job was chosen; `alone`: bool, whether no other job was waiting then. `sequence`: int64, the positions of the jobs in
    the order of starts.

    Source: tsafrir06, sections V and VI; that jobs alone in the queue count as shortest is an interpretation.
    """

    wild: Array
    suffered: Array
    delay: Array
    shortest: Array
    alone: Array
    sequence: Array


@dataclass(frozen=True)
class DynamicsSummary(Averages):
    """Averages of the dynamics over the measured jobs; nan if there is no such job."""

    wild_percent: float
    """wildly backfilled jobs, in percent of all (tsafrir06, Fig. 7)"""
    mean_runtime_wild: float
    """mean runtime of the wildly backfilled jobs, s (tsafrir06, Fig. 7)"""
    delayed_percent: float
    """jobs that suffered a wild backfill while they were the head, in percent of all (tsafrir06, Fig. 8)"""
    mean_delay: float
    """mean delay of these jobs, s (tsafrir06, Fig. 8)"""
    shadow_moves: int
    """number of times the real shadow of a measured job moved"""
    sjfness: float
    """jobs that were the shortest waiting job when chosen, in percent of all (tsafrir06, Fig. 9)"""
    sjfness_of_choices: float
    """the same in percent of the jobs that were not alone in the queue; our measure"""


def summarize_dynamics(dynamics: Dynamics, runtime: Array, measured: Array) -> DynamicsSummary:
    """Return averages over the measured jobs.

    `runtime`: int64 seconds, as simulated, `measured`: bool; each of shape (jobs,), in order of arrival. Source: tsafrir06, Figs. 7 to 9.

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
