"""The jobs of a snapshot of a cluster, and the rules by which waiting jobs can never start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from walltime.errors import LogError
from walltime.machine import Machine
from walltime.wording import sanitize
from walltime.workload import MISSING, Workload

RUNNING, WAITING = "running", "waiting"

NEVER_RULES = {
    "over_time_limit": "The time limit exceeds the longest time that its partition or quality of service allows.",
    "over_node_gpus": "It needs more GPUs on one node than any node of its partition has.",
    "over_node_memory": "It needs more memory on one node than any node of its partition has.",
    "over_partition": "It needs more than its whole partition has.",
    "against_limits": "Slurm reports a limit or constraint that the job can never meet.",
}
"""Reasons why waiting jobs can never start as they are."""
SNAPSHOT_RULES = {
    "ended": "The job has ended or is ending.",
    "suspended": "The job is suspended: it has no processors, and its resumption is unknown.",
    "held": "The job is held and starts only after its release.",
    "dependent": "The job depends on other jobs.",
    "closed": "Its partition is closed; when it opens is unknown.",
    "het": "The job is a part of a heterogeneous job; its parts start together, which is not modelled.",
    "other_partition": "The machine does not have the job's partition.",
    "too_many_tasks": "The array has more tasks than can be read.",
    "bad_record": "The record cannot be read.",
    "repeated": "The job is listed twice; the first record is used.",
    **NEVER_RULES,
}
"""Reasons why records of a queue are not simulated, or left out."""
LARGEST_COUNT = 2**40
"""Upper bound on all numbers of a job, so that sums, and products of two, are exact."""


@dataclass(frozen=True)
class SnapshotJob:
    """A running or waiting job. Times are Unix times, durations are in s, and unknown values are None.

    `job`: its number, or the array's number for a task that Slurm has not split off. `array`, `task`: the numbers of the array and the
    task. `reservation`: the reservation that it requests. `limit`: None for no limit. `nodes`: the minimum number. `start`: when a running
    job started. `expected`: when Slurm expects a waiting job to start. `node_gpus`, `node_memory_mb`: needed on each node, 0 if the
    distribution does not matter; `cpu_memory_mb`: needed for each processor, 0 if the request is a total. `gpu_type`: type of its GPUs;
    `constraints`: on the features of nodes, as in Slurm; `licences`: such as `matlab:2`. `array_limit`: maximum number of running tasks of
    the array, 0 for no maximum. `left_out`: why the job is not simulated, a name of SNAPSHOT_RULES; empty if it is.
    """

    job: int
    state: str
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    reservation: str = ""
    name: str = ""
    submit: int | None = None
    eligible: int | None = None
    start: int | None = None
    expected: int | None = None
    limit: int | None = None
    time_min: int = 0
    nodes: int = 1
    cpus: int = 1
    gpus: int = 0
    memory_mb: int = 0
    node_gpus: int = 0
    node_memory_mb: int = 0
    cpu_memory_mb: int = 0
    gpu_type: str = ""
    constraints: str = ""
    licences: str = ""
    exclusive: bool = False
    priority: int | None = None
    dependency: str = ""
    reason: str = ""
    array: int | None = None
    task: int | None = None
    array_limit: int = 0
    left_out: str = ""

    @property
    def label(self) -> str:
        """Return the job's number in Slurm's form, `27_3` for a task of an array."""
        return str(self.job) if self.array is None or self.task is None else f"{self.array}_{self.task}"

    @property
    def never(self) -> str:
        """Return why the job can never start, as a sentence; empty if it may start."""
        return NEVER_RULES.get(self.left_out, "")

    def as_dict(self) -> dict[str, Any]:
        """Return the job as a dictionary for JSON, without fields that have their default values."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SnapshotJob:
        """Return the job with these field values after checking them; raises LogError."""
        if not isinstance(values, Mapping):
            raise LogError("a job is not an object; take the snapshot again")
        types = {one.name: str(one.type) for one in fields(cls)}
        for name, value in values.items():
            if name not in types:
                raise LogError(f"a job has an unknown field {sanitize(str(name))!r}; take the snapshot again")
            fits = type(value) is {"str": str, "bool": bool}.get(types[name], int) or (value is None and "None" in types[name])
            if not fits or (type(value) is int and not 0 <= value < LARGEST_COUNT):
                raise LogError(f"{name} of a job cannot be {sanitize(str(value))!r}; take the snapshot again")
        if "job" not in values or values.get("state") not in (RUNNING, WAITING):
            raise LogError("a job has no number, or its state is neither running nor waiting; take the snapshot again")
        job = cls(**values)
        if job.state == RUNNING and job.start is None:
            raise LogError(f"the running job {job.job} has no start; take the snapshot again", "missing_start")
        return job


_REASONS = {
    "over_time_limit": re.compile(r"PartitionTimeLimit|(QOS|Association)TimeLimit|(QOS|Assoc)MaxWall\w*", re.ASCII),
    "against_limits": re.compile(
        r"PartitionNodeLimit|BadConstraints|Invalid(Account|QOS)|MaxMemPerLimit|(QOS|Assoc)(Max\w+Per(Job|Node)\w*|Min\w+)", re.ASCII
    ),
}
"""Slurm's reasons for waits that do not end without a change of the job."""


def labels_of(log: Workload) -> list[str]:
    """Return the numbers of a log's jobs in Slurm's form, `27_3` for a task of an array."""
    unknown = [MISSING] * len(log)
    array, task = (log.columns[name].tolist() if name in log.columns else unknown for name in ("array_job", "array_task"))
    return [f"{a}_{t}" if a >= 0 and t >= 0 else str(job) for job, a, t in zip(log.job_id.tolist(), array, task, strict=True)]


def never_rule(job: SnapshotJob, machine: Machine) -> str:
    """Return the name in NEVER_RULES of the rule by which a waiting job can never start on a machine; empty if it can."""
    partition = next((one for one in machine.partitions if one.name == job.partition), None)
    if job.state != WAITING or partition is None:
        return ""
    pools = [machine.pools[machine.place_of(name)] for name in partition.pools]
    second = {machine.second: [pool.second for pool in pools]} if machine.second_total else {}
    gpus = second.get("gpus", [LARGEST_COUNT] * len(pools))
    memory = second.get("mem_mb", [pool.memory or LARGEST_COUNT for pool in pools])
    sizes = [(job.cpus, [pool.procs for pool in pools]), (job.nodes, [1] * len(pools)), (job.gpus, gpus), (job.memory_mb, memory)]
    holds = {
        "over_time_limit": partition.max_time is not None and job.limit is not None and job.limit > partition.max_time,
        "over_node_gpus": job.node_gpus > max(gpus),
        "over_node_memory": max(job.node_memory_mb, job.cpu_memory_mb) > max(memory),
        "over_partition": any(size > sum(pool.nodes * unit for pool, unit in zip(pools, units, strict=True)) for size, units in sizes),
    }
    by_slurm = (rule for rule, pattern in _REASONS.items() if pattern.fullmatch(job.reason))
    return next((rule for rule, is_so in holds.items() if is_so), next(by_slurm, ""))
