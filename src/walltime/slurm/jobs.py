"""The jobs of a cluster at one moment, as its queue shows them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from walltime.errors import LogError
from walltime.wording import harmless

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
MOST = 2**40
"""No number of a job may reach this: so are all sums and products of two exact."""
MOST_JOBS = 200_000
"""So many jobs of a queue are read at most, tasks of arrays counted one by one."""
_HELD = re.compile(r"JobHeld\w*|\w*requeued_held", re.ASCII)
_TASKS = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?")


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
                raise LogError(f"a job has an unknown value {harmless(str(name))!r}; take the snapshot again")
            right = {"str": str, "bool": bool}.get(kind, int)
            if value is None and "None" in kind:
                continue
            counted = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST
            if not isinstance(value, right) or (right is int and not counted):
                raise LogError(f"{name} of a job cannot be {harmless(str(value))!r}; take the snapshot again")
        if "job" not in values or values.get("state") not in (RUNNING, WAITING):
            raise LogError("a job has no number, or neither runs nor waits; take the snapshot again")
        found = cls(**values)
        if found.state == RUNNING and found.start is None:
            raise LogError(f"job {found.job} runs, and nobody knows since when; take the snapshot again")
        return found


def why_left_out(reason: str, dependency: str, priority: int | None, het: bool) -> str:
    """The rule by which a waiting job is not simulated; empty if it is.

    >>> why_left_out("JobHeldUser", "", 0, False), why_left_out("Priority", "", 5, False), why_left_out("Dependency", "afterok:3", 5, False)
    ('held', '', 'dependent')
    """
    if het:
        return "het"
    if reason.startswith("Dependency") or dependency not in ("", "(null)"):
        return "dependent"
    if priority == 0 or _HELD.fullmatch(reason):
        return "held"
    return ""


def tasks_of(text: str) -> tuple[list[int], int]:
    """The tasks that a pending array still has, and how many of them may run at a time, 0 for any number.

    >>> tasks_of("0-5%2"), tasks_of("1,3,7-11:2"), tasks_of("")
    (([0, 1, 2, 3, 4, 5], 2), ([1, 3, 7, 9, 11], 0), ([], 0))
    """
    text, _, most = text.strip().removeprefix("[").removesuffix("]").partition("%")
    if not text:
        return [], 0
    tasks: list[int] = []
    for part in text.split(","):
        found = _TASKS.fullmatch(part)
        if found is None:
            raise ValueError(f"{harmless(text, 40)!r} is no list of tasks")
        first = int(found[1])
        last, step = int(found[2] or first), int(found[3] or 1)
        if step < 1 or (last - first) // step >= MOST_JOBS - len(tasks):
            raise OverflowError(f"{harmless(text, 40)!r} has too many tasks")
        tasks.extend(range(first, last + 1, step))
    return tasks, int(most) if most.isdecimal() and len(most) < 10 else 0


def gpus_of(text: str) -> int:
    """The GPUs in a list of resources, such as gres/gpu=4, gres:gpu:a100:2 or gpu:2; typed ones only where there is no total.

    >>> gpus_of("cpu=8,mem=4G,node=1,gres/gpu=4,gres/gpu:a100=4"), gpus_of("gres:gpu:a100:2"), gpus_of("N/A"), gpus_of("gres/gpu:h100=3")
    (4, 2, 0, 3)
    """
    total, typed = 0, 0
    for one in text.split(","):
        found = re.fullmatch(r"(?:gres[/:])?gpu(:[^:=()]+)??(?:[:=](\d{1,9}))?(?:\(.*\))?", one.strip())
        if found is None:
            continue
        number = int(found[2] or 1)
        total, typed = (total, typed + number) if found[1] else (total + number, typed)
    return total or typed


def memory_of(text: str) -> int:
    """The memory in a list of resources, in MB.

    >>> memory_of("cpu=1,mem=4G,node=1"), memory_of("mem=500M"), memory_of("")
    (4096, 500, 0)
    """
    found = re.search(r"(?:^|,)mem=(\d{1,12}(?:\.\d+)?)([KMGTP]?)(?:,|$)", text)
    if found is None:
        return 0
    return min(int(float(found[1]) * {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}[found[2]]), MOST - 1)


def expanded(job: SnapshotJob, tasks: list[int], most: int) -> Iterator[SnapshotJob]:
    """The tasks of a record of a pending array, each as a job of its own; Slurm's expected start is only that of the first."""
    for k, task in enumerate(tasks):
        yield replace(job, task=task, array_limit=most, expected=job.expected if k == 0 else None)


def gather(
    what: str, records: Sequence[Any], jobs_of: Callable[[Any], list[SnapshotJob]], counts: Counter[str], notes: list[str]
) -> list[SnapshotJob]:
    """The jobs of these records; what is left out is counted by SNAPSHOT_RULES, and the first bad records are noted.

    `jobs_of` raises ValueError for a bad record, OverflowError for an array of too many tasks. `what`: the name of a record in notes.
    """
    found: list[SnapshotJob] = []
    for place, record in enumerate(records, 1):
        try:
            more = jobs_of(record)
        except ValueError as error:
            counts["bad_record"] += 1
            if counts["bad_record"] <= 3:
                notes.append(f"{what} {place} of squeue: {harmless(str(error), 200)}.")
            continue
        except OverflowError:
            counts["too_many_tasks"] += 1
            continue
        if len(found) + len(more) > MOST_JOBS:
            counts["too_many_tasks"] += len(more)
            continue
        found += more
    return found
