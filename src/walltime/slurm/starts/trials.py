"""Predict when jobs would start if they were submitted now; all trial jobs meet the same simulations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from walltime.declared import Field, nearest
from walltime.errors import PolicyError
from walltime.machine.constraints import satisfies
from walltime.machine.counted_limits import parse_licences
from walltime.policy import Policy
from walltime.predictors import Predictor
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import LARGEST_COUNT, NEVER_RULES, WAITING, SnapshotJob, never_rule
from walltime.slurm.starts.forecast import USUAL, Draws, Forecast
from walltime.slurm.starts.predicted import predict_snapshot_runtimes
from walltime.slurm.starts.start_times import start_quantiles, to_unix
from walltime.slurm_values import resource_of, seconds_of
from walltime.specification import Specification, Variant, read_options
from walltime.wording import counted, sanitize, shown
from walltime.workload import Array, Workload


@dataclass(frozen=True)
class StartTrial:
    """The predicted start of a job that is submitted at the time of the snapshot. Times are Unix times; None for never.

    `text`: the job's description. `early, median, late`: quantiles over the simulations, 5, 50 and 95 %. `by_limits`: the start if every
    job runs to its limit and none arrives. `never`: why the job never starts, a sentence; empty if it can.
    """

    text: str
    job: SnapshotJob
    early: int | None
    median: int | None
    late: int | None
    by_limits: int | None
    never: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON."""
        times = {name: getattr(self, name) for name in ("early", "median", "late", "by_limits")}
        return {"try": self.text, "job": self.job.as_dict(), **times} | ({"never": self.never} if self.never else {})


@dataclass(frozen=True)
class Trials:
    """The results for trial jobs, in the order given; `caveats`: sentences."""

    policy: str
    trials: Sequence[StartTrial]
    caveats: Sequence[str]


def _limit(text: str) -> int:
    """Parse a limit, and return it in s.

    >>> _limit("4h"), _limit("90s"), _limit("1-0"), _limit("00:30:00")
    (14400, 90, 86400, 1800)
    """
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    try:
        seconds = int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else seconds_of(text)
    except ValueError as error:
        raise PolicyError(f"cannot be {shown(text)}: {error}") from error
    if not 0 < seconds < LARGEST_COUNT:
        raise PolicyError(f"must be longer than 0 s, such as 4h, not {shown(text)}")
    return seconds


def _memory(text: str) -> int:
    """Parse an amount such as 64G, and return it in MB."""
    mb = resource_of(f"mem={text}", "mem")
    if not mb:
        raise PolicyError(f"must be an amount such as 64G, not {shown(text)}")
    return mb


@dataclass(frozen=True)
class TrialJob(Specification):
    """The description of a trial job, such as `procs=64,limit=4h`."""

    limit: Annotated[int, Field(read=_limit, label="a length of time such as 4h")]
    """90s, 30m, 4h, 2d, or in Slurm's form; stored in s"""
    procs: Annotated[int, Field(least=1, most=LARGEST_COUNT - 1)] = 1
    """processors"""
    nodes: Annotated[int | None, Field(least=1, most=LARGEST_COUNT - 1)] = None
    """minimum number of nodes; default: the fewest with enough processors"""
    gpus: Annotated[int, Field(least=0, most=LARGEST_COUNT - 1)] = 0
    """GPUs"""
    gpu_type: str = ""
    """type of the GPUs"""
    constraints: str = ""
    """features that its nodes must have, as in Slurm's `--constraint`"""
    licences: str = ""
    """licences, as in Slurm's `--licenses`, such as `matlab:2`"""
    memory: Annotated[int, Field(read=_memory, label="an amount such as 64G")] = 0
    """memory of the whole job; stored in MB"""
    partition: str = ""
    """its partition; required if the cluster has several"""
    qos: str = ""
    """its quality of service"""
    reservation: str = ""
    """the reservation in which it runs"""
    account: str = ""
    """the account that is charged"""
    user: str = ""
    """its user"""
    name: str = ""
    """its name"""


def parse_trial(text: str, snapshot: Snapshot) -> SnapshotJob:
    """Return the job described by a text such as `procs=64,limit=4h`, submitted at the time of the snapshot.

    The keys are the fields of `TrialJob`; the job gets an unused number. Raises PolicyError.
    """
    trial = TrialJob(**read_options(Variant(TrialJob), text, f"the job {shown(text)}")[0])
    partitions = {one.name: one for one in snapshot.machine.partitions}
    name = trial.partition or (next(iter(partitions)) if len(partitions) == 1 else "")
    if name not in partitions:
        raise PolicyError(
            f"the job {shown(text)} needs a partition{nearest(name, partitions) or '.'} "
            f"Valid options: {sanitize(', '.join(partitions), 200)}",
            "unknown_partition",
        )
    pools = [snapshot.machine.pools[snapshot.machine.place_of(one)] for one in partitions[name].pools]
    if not any(trial.gpu_type in ("", *pool.by_type) and satisfies(pool.features, trial.constraints) for pool in pools):
        raise PolicyError(
            f"no node of partition {sanitize(name)} has the features and the GPU type of the job {shown(text)}; see the machine file",
            "unknown_features",
        )
    for licence, needed in parse_licences(trial.licences).items() if trial.licences else ():
        if needed > (has := snapshot.machine.licences.get(licence, 0)):
            raise PolicyError(
                f"the job {shown(text)} requests {counted(needed, 'licence')} of {sanitize(licence, 40)}, and the machine has {has:,}; "
                "see licences in the machine file",
                "too_many_licences",
            )
    return SnapshotJob(
        job=max((job.job for job in snapshot.jobs), default=0) + 1,
        state=WAITING,
        partition=name,
        **{name: getattr(trial, name) for name in ("user", "account", "qos", "reservation", "name", "gpu_type", "constraints", "licences")},
        submit=snapshot.time,
        limit=trial.limit,
        nodes=-(-trial.procs // pools[0].procs) if trial.nodes is None else trial.nodes,
        cpus=trial.procs,
        gpus=trial.gpus,
        memory_mb=trial.memory,
        node_gpus=0 if trial.nodes is None else -(-trial.gpus // trial.nodes),
        node_memory_mb=0 if trial.nodes is None else -(-trial.memory // trial.nodes),
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
    """Predict when jobs that are not submitted yet would start, each alone with the snapshot's jobs; `texts`: see `parse_trial`.

    All trial jobs meet the same runtimes and arrivals in a simulation, so that differences are due to their requests. A job joins the end
    of the queue; with Slurm's priorities it gets the priority that Slurm would give it, as far as that is known. The other arguments are as
    in `start_times`. Raises PolicyError and WorkloadError.
    """
    trials: dict[str, StartTrial] = {}
    for k, text in enumerate(texts):
        job = parse_trial(text, snapshot)
        never = NEVER_RULES.get(never_rule(job, snapshot.machine), "")
        trials[text] = StartTrial(text, replace(job, job=job.job + k), None, None, None, None, never)
    if all(trial.never for trial in trials.values()):
        return Trials("no policy, as no simulation is needed", [trials[text] for text in texts], [])
    snapshot, own = snapshot.checked(), [trial.job for trial in trials.values() if not trial.never]
    runtimes = None if predictor is None else predict_snapshot_runtimes(predictor, snapshot, history)
    forecast = Forecast(replace(snapshot, jobs=(*snapshot.jobs, *own)), history, policy, runtimes)
    projection = forecast.projection
    numbers = {job.job: k for k, job in enumerate(forecast.state.jobs) if job.start is None}
    for trial in trials.values():
        if not trial.never and trial.job.job not in numbers:
            raise PolicyError(f"{sanitize(trial.text)} does not fit the machine; compare its size with the partition's", "no_job_fits")
    places = [numbers[job.job] for job in own]

    def run(*drawn: Any) -> Array:
        return np.array([projection.run(*drawn, only=place, without=[one for one in places if one != place])[place] for place in places])

    to_limits, starts = forecast.simulate(run, draws, workers, progress)
    times = iter(np.vstack([start_quantiles(starts), to_limits]).T.tolist())
    for text, trial in trials.items():
        if not trial.never:
            early, median, late, by_limits = (to_unix(time, snapshot.time) for time in next(times))
            trials[text] = StartTrial(text, trial.job, early, median, late, by_limits)
    return Trials(forecast.scheduler.label, [trials[text] for text in texts], forecast.caveats())
