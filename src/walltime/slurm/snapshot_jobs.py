"""The jobs of a cluster at one moment, as its queue shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from walltime.errors import LogError
from walltime.wording import sanitize

RUNNING, WAITING = "running", "waiting"

SNAPSHOT_RULES = {
    "ended": "The job has ended, or is ending, and waits for nothing.",
    "suspended": "The job is suspended: it has no processors, and nobody knows until when.",
    "held": "The job is held: it starts when somebody lets it go.",
    "dependent": "The job waits for others that it depends on.",
    "het": "The job is a part of a heterogeneous job, whose parts start together; that is not modelled.",
    "other_partition": "The machine does not have the job's partition.",
    "too_many_tasks": "The array has more tasks than are read.",
    "bad_record": "The record cannot be read.",
    "repeated": "The job is there twice; the first was taken.",
}
"""Why records of a queue are set apart or left out."""
LARGEST_COUNT = 2**40
"""No number of a job may reach this: so are all sums and products of two exact."""


@dataclass(frozen=True)
class SnapshotJob:
    """A job that runs or waits. Times are Unix times, lengths s; None for what is not known.

    `job`: its number; of a task of an array that has not been split off, that of the array. `array`, `task`: the array and the task's
    number. `limit`: None for no limit. `nodes`: the fewest. `start`: when a running job started. `expected`: when Slurm expects a waiting
    one to start. `array_limit`: the most tasks of the array that run at a time, 0 for any number. `left_out`: why it is not simulated, a
    name of SNAPSHOT_RULES; empty for those that are.
    """

    job: int
    state: str
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
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
        """Its number as Slurm writes it, `27_3` for a task of an array."""
        return str(self.job) if self.array is None or self.task is None else f"{self.array}_{self.task}"

    def as_dict(self) -> dict[str, Any]:
        """What is known of it, ready for JSON; what has its usual value is left out."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        usual = {one.name: one.default for one in fields(self)}
        return {name: value for name, value in values.items() if value != usual[name]}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SnapshotJob:
        """The job with these values, which are checked; raises LogError."""
        if not isinstance(values, Mapping):
            raise LogError("a job is no object; take the snapshot again")
        kinds = {one.name: str(one.type) for one in fields(cls)}
        for name, value in values.items():
            kind = kinds.get(name)
            if kind is None:
                raise LogError(f"a job has an unknown value {sanitize(str(name))!r}; take the snapshot again")
            right = {"str": str, "bool": bool}.get(kind, int)
            if value is None and "None" in kind:
                continue
            counted = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT
            if not isinstance(value, right) or (right is int and not counted):
                raise LogError(f"{name} of a job cannot be {sanitize(str(value))!r}; take the snapshot again")
        if "job" not in values or values.get("state") not in (RUNNING, WAITING):
            raise LogError("a job has no number, or neither runs nor waits; take the snapshot again")
        job = cls(**values)
        if job.state == RUNNING and job.start is None:
            raise LogError(f"job {job.job} runs, and nobody knows since when; take the snapshot again", "missing_start")
        return job
