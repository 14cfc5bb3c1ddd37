"""When a job would start that is not submitted yet: sizes and limits beside each other, in the same simulations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from walltime.durations import seconds_of
from walltime.errors import PolicyError
from walltime.logs.slurm.values import resource_of
from walltime.policy import Policy
from walltime.simulation.specification import Scheduler
from walltime.slurm.jobs import MOST, WAITING, SnapshotJob
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.starts.forecast import Draws, Forecast
from walltime.slurm.starts.start_times import quantiles_of, unix
from walltime.wording import harmless
from walltime.workload import Workload

__all__ = ["Trial", "Trials", "parse_trial", "try_jobs"]

Array = np.ndarray

NUMBERS = {"procs": "cpus", "nodes": "nodes", "gpus": "gpus"}
NAMES = ("partition", "qos", "account", "user", "name")
KEYS = (*NUMBERS, "limit", "memory", *NAMES)
"""What can be said of a job to be tried."""
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Trial:
    """When a job would start if it were submitted at the time of the snapshot. Unix times; None for never.

    `text`: what was asked. `early, median, late`: quantiles over the simulations, 5, 50 and 95 %. `by_limits`: if every job ran to its
    limit and none came.
    """

    text: str
    job: SnapshotJob
    early: int | None
    median: int | None
    late: int | None
    by_limits: int | None

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        times = {name: getattr(self, name) for name in ("early", "median", "late", "by_limits")}
        return {"try": self.text, "job": self.job.as_dict(), **times}


@dataclass(frozen=True)
class Trials:
    """What came of jobs that were tried: in the order in which they were given; `caveats`, in sentences."""

    policy: str
    trials: Sequence[Trial]
    caveats: Sequence[str]


def parse_trial(text: str, snapshot: Snapshot) -> SnapshotJob:
    """The job described by a text such as `procs=64,limit=4h`, submitted at the time of the snapshot; its number is free in the queue.

    Keys are KEYS; `limit` (needed): 90s, 30m, 4h, 2d or as Slurm writes it, `memory` of the whole job, such as 64G. `partition` is needed
    where there are several. Raises PolicyError.
    """
    values = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if key not in KEYS or not equals or not value or key in values:
            raise PolicyError(f"{harmless(text)!r} describes no job; write procs=64,limit=4h, with any of {', '.join(KEYS)}")
        values[key] = value
    if "limit" not in values:
        raise PolicyError(f"{harmless(text)!r} has no limit; add one, such as limit=4h")
    partitions = {one.name: one for one in snapshot.machine.partitions}
    name = values.get("partition", next(iter(partitions)) if len(partitions) == 1 else "")
    if name not in partitions:
        raise PolicyError(f"{harmless(text)!r} needs a partition; known are {harmless(', '.join(partitions), 200)}")
    fields: dict[str, Any] = {own: values[own] for own in NAMES if own in values} | {"partition": name}
    for key, own in NUMBERS.items():
        if key in values:
            if not values[key].isdecimal() or not int(key != "gpus") <= int(values[key]) < MOST:
                raise PolicyError(f"{key} must be a whole number, not {harmless(values[key])!r}")
            fields[own] = int(values[key])
    if "memory" in values and not fields.setdefault("memory_mb", resource_of(f"mem={values['memory']}", "mem")):
        raise PolicyError(f"a memory is written 64G, not {harmless(values['memory'])!r}")
    on_node = snapshot.machine.pools[snapshot.machine.place_of(partitions[name].pools[0])].procs
    fields.setdefault("nodes", -(-fields.get("cpus", 1) // on_node))
    number = max((job.job for job in snapshot.jobs), default=0) + 1
    return SnapshotJob(job=number, state=WAITING, submit=snapshot.time, limit=_limit(values["limit"]), **fields)


def _limit(text: str) -> int:
    """Seconds of a limit.

    >>> _limit("4h"), _limit("90s"), _limit("1-0"), _limit("00:30:00")
    (14400, 90, 86400, 1800)
    """
    match = re.fullmatch(r"(\d{1,9})([smhd])", text)
    try:
        seconds = int(match[1]) * UNITS[match[2]] if match else seconds_of(text)
    except ValueError as error:
        raise PolicyError(f"limit: {error}") from error
    if not 0 < seconds < MOST:
        raise PolicyError(f"a limit must be longer than 0 s, such as 4h, not {harmless(text)!r}")
    return seconds


def try_jobs(
    snapshot: Snapshot,
    history: Workload,
    texts: Sequence[str],
    *,
    policy: str | Policy | Scheduler | None = None,
    samples: int = 200,
    arrivals: bool = True,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Trials:
    """When jobs would start that are not submitted yet, each alone beside the jobs of the snapshot; `texts`: see `parse_trial`.

    In each simulation all of them meet the same runtimes and the same jobs to come, so that their differences are due to what they ask for.
    A job comes behind all that wait; with Slurm's priorities it has what Slurm would give it, as far as that can be known. The other
    arguments are those of `start_times`. Raises PolicyError and WorkloadError.
    """
    own = [parse_trial(text, snapshot) for text in texts]
    own = [replace(job, job=job.job + k) for k, job in enumerate(own)]
    forecast = Forecast(replace(snapshot, jobs=(*snapshot.jobs, *own)), history, policy)
    projection = forecast.projection
    numbers = {job.job: k for k, job in enumerate(forecast.state.jobs) if job.start is None}
    for text, job in zip(texts, own, strict=True):
        if job.job not in numbers:
            raise PolicyError(f"{harmless(text)} does not fit the machine; compare its size with the partition's")
    places = [numbers[job.job] for job in own]

    def alone(*arguments: Any) -> Array:
        return np.array(
            [projection.run(*arguments, only=place, without=[one for one in places if one != place])[place] for place in places]
        )

    to_limits, starts = forecast.simulate(alone, Draws(samples, arrivals, seed), workers, progress)
    quantiles = quantiles_of(starts)
    trials = []
    for k, (text, job) in enumerate(zip(texts, own, strict=True)):
        trials.append(Trial(text, job, *(unix(float(time), snapshot.time) for time in (*quantiles[:, k], to_limits[k]))))
    return Trials(forecast.scheduler.label, trials, forecast.caveats())
