"""Waiting jobs that can never start as they are: over the partition's time limit, or larger than any node or the whole partition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from walltime.machine import Machine
from walltime.slurm.snapshot_jobs import NEVER_RULES, WAITING, SnapshotJob

_REASONS = {
    "over_time_limit": re.compile(r"PartitionTimeLimit|(QOS|Association)TimeLimit|(QOS|Assoc)MaxWall\w*", re.ASCII),
    "against_limits": re.compile(
        r"PartitionNodeLimit|BadConstraints|Invalid(Account|QOS)|MaxMemPerLimit|(QOS|Assoc)(Max\w+Per(Job|Node)\w*|Min\w+)", re.ASCII
    ),
}
"""Slurm's reasons for waits that do not end by themselves."""


@dataclass(frozen=True)
class NeverStarts:
    """A job that never starts, and why, as a sentence."""

    job: SnapshotJob
    rule: str

    @property
    def reason(self) -> str:
        """The reason, as a sentence."""
        return NEVER_RULES[self.rule]

    def __str__(self) -> str:
        return f"Job {self.job.label} never starts: {self.reason[0].lower()}{self.reason[1:]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the job and the reason for JSON."""
        own = {name: getattr(self.job, name) for name in ("user", "partition", "cpus", "nodes", "gpus", "limit")}
        return {"job": self.job.label, **own, "rule": self.rule, "reason": self.reason}


def never_rule(job: SnapshotJob, machine: Machine) -> str:
    """Return the rule by which a waiting job can never start on a machine, a name of NEVER_RULES; empty if it can."""
    partition = next((one for one in machine.partitions if one.name == job.partition), None)
    if job.state != WAITING or partition is None:
        return ""
    pools = [machine.pools[machine.place_of(name)] for name in partition.pools]
    needs = {"gpus": ("over_node_gpus", job.gpus, job.node_gpus), "mem_mb": ("over_node_memory", job.memory_mb, job.node_memory_mb)}
    over_node, wanted, each = needs.get(machine.second, ("over_node_gpus", 0, 0)) if machine.second_total else ("over_node_gpus", 0, 0)
    too_much = job.cpus > sum(pool.nodes * pool.procs for pool in pools) or job.nodes > sum(pool.nodes for pool in pools)
    holds = {
        "over_time_limit": partition.max_time is not None and job.limit is not None and job.limit > partition.max_time,
        over_node: each > max(pool.second for pool in pools),
        "over_partition": too_much or wanted > sum(pool.nodes * pool.second for pool in pools),
    }
    by_slurm = next((rule for rule, pattern in _REASONS.items() if pattern.fullmatch(job.reason)), "")
    return next((rule for rule, is_so in holds.items() if is_so), by_slurm)


def never_starting(jobs: Sequence[SnapshotJob]) -> list[NeverStarts]:
    """Return the jobs that never start, of those that were set apart."""
    return [NeverStarts(job, job.left_out) for job in jobs if job.left_out in NEVER_RULES]
