"""When a job would start that is not submitted yet: sizes and limits beside each other, in the same simulations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from walltime.declared import Key, nearest
from walltime.durations import seconds_of
from walltime.errors import PolicyError
from walltime.policy import Policy
from walltime.predictors import Predictor
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import LARGEST_COUNT, WAITING, SnapshotJob
from walltime.slurm.starts.forecast import USUAL, Draws, Forecast
from walltime.slurm.starts.predicted import predicted_of_snapshot
from walltime.slurm.starts.start_times import quantiles_of, unix
from walltime.slurm_values import resource_of
from walltime.specification import Form, Specification, read_options
from walltime.wording import sanitize, shown
from walltime.workload import Workload

Array = np.ndarray

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class StartTrial:
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
    trials: Sequence[StartTrial]
    caveats: Sequence[str]


def _limit(text: str) -> int:
    """Seconds of a limit.

    >>> _limit("4h"), _limit("90s"), _limit("1-0"), _limit("00:30:00")
    (14400, 90, 86400, 1800)
    """
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    try:
        seconds = int(match[1]) * UNITS[match[2]] if match else seconds_of(text)
    except ValueError as error:
        raise PolicyError(f"cannot be {shown(text)}: {error}") from error
    if not 0 < seconds < LARGEST_COUNT:
        raise PolicyError(f"must be longer than 0 s, such as 4h, not {shown(text)}")
    return seconds


def _memory(text: str) -> int:
    """MB of an amount such as 64G."""
    mb = resource_of(f"mem={text}", "mem")
    if not mb:
        raise PolicyError(f"is an amount such as 64G, not {shown(text)}")
    return mb


@dataclass(frozen=True)
class TrialJob(Specification):
    """What is said of a job to be tried, such as `procs=64,limit=4h`."""

    limit: Annotated[int, Key(read=_limit, said="a length of time such as 4h")]
    """90s, 30m, 4h, 2d, or as Slurm writes it; kept in s"""
    procs: Annotated[int, Key(least=1, most=LARGEST_COUNT - 1)] = 1
    """processors"""
    nodes: Annotated[int | None, Key(least=1, most=LARGEST_COUNT - 1)] = None
    """the fewest; without it, as few as have so many processors"""
    gpus: Annotated[int, Key(least=0, most=LARGEST_COUNT - 1)] = 0
    """GPUs"""
    memory: Annotated[int, Key(read=_memory, said="an amount such as 64G")] = 0
    """of the whole job; kept in MB"""
    partition: str = ""
    """needed where there are several"""
    qos: str = ""
    """its quality of service"""
    account: str = ""
    """who pays"""
    user: str = ""
    """whose it is"""
    name: str = ""
    """what it is called"""


def parse_trial(text: str, snapshot: Snapshot) -> SnapshotJob:
    """The job described by a text such as `procs=64,limit=4h`, submitted at the time of the snapshot; its number is free in the queue.

    Keys are the fields of `TrialJob`. Raises PolicyError.
    """
    asked = TrialJob(**read_options(Form(TrialJob), text, f"the job {shown(text)}")[0])
    partitions = {one.name: one for one in snapshot.machine.partitions}
    name = asked.partition or (next(iter(partitions)) if len(partitions) == 1 else "")
    if name not in partitions:
        raise PolicyError(
            f"the job {shown(text)} needs a partition{nearest(name, partitions) or '.'} "
            f"Valid options: {sanitize(', '.join(partitions), 200)}",
            "unknown_partition",
        )
    on_node = snapshot.machine.pools[snapshot.machine.place_of(partitions[name].pools[0])].procs
    return SnapshotJob(
        job=max((job.job for job in snapshot.jobs), default=0) + 1,
        state=WAITING,
        user=asked.user,
        account=asked.account,
        partition=name,
        qos=asked.qos,
        name=asked.name,
        submit=snapshot.time,
        limit=asked.limit,
        nodes=-(-asked.procs // on_node) if asked.nodes is None else asked.nodes,
        cpus=asked.procs,
        gpus=asked.gpus,
        memory_mb=asked.memory,
    )


def try_jobs(
    snapshot: Snapshot,
    history: Workload,
    texts: Sequence[str],
    *,
    policy: str | Policy | Scheduler | None = None,
    predictor: str | Predictor | None = None,
    draws: Draws = USUAL,
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
    told = None if predictor is None else predicted_of_snapshot(predictor, snapshot, history)
    forecast = Forecast(replace(snapshot, jobs=(*snapshot.jobs, *own)), history, policy, told)
    projection = forecast.projection
    numbers = {job.job: k for k, job in enumerate(forecast.state.jobs) if job.start is None}
    for text, job in zip(texts, own, strict=True):
        if job.job not in numbers:
            raise PolicyError(f"{sanitize(text)} does not fit the machine; compare its size with the partition's", "no_job_fits")
    places = [numbers[job.job] for job in own]

    def alone(*arguments: Any) -> Array:
        return np.array(
            [projection.run(*arguments, only=place, without=[one for one in places if one != place])[place] for place in places]
        )

    to_limits, starts = forecast.simulate(alone, draws, workers, progress)
    quantiles = quantiles_of(starts)
    trials = []
    for k, (text, job) in enumerate(zip(texts, own, strict=True)):
        trials.append(StartTrial(text, job, *(unix(float(time), snapshot.time) for time in (*quantiles[:, k], to_limits[k]))))
    return Trials(forecast.scheduler.label, trials, forecast.caveats())
