"""Waiting jobs that can never start as they are: over the partition's time limit, or larger than any node or the whole partition."""

from __future__ import annotations

import re

from walltime.machine import Machine
from walltime.slurm.snapshot_jobs import WAITING, SnapshotJob

_REASONS = {
    "over_time_limit": re.compile(r"PartitionTimeLimit|(QOS|Association)TimeLimit|(QOS|Assoc)MaxWall\w*", re.ASCII),
    "against_limits": re.compile(
        r"PartitionNodeLimit|BadConstraints|Invalid(Account|QOS)|MaxMemPerLimit|(QOS|Assoc)(Max\w+Per(Job|Node)\w*|Min\w+)", re.ASCII
    ),
}
"""Slurm's reasons for waits that do not end by themselves."""


def never_rule(job: SnapshotJob, machine: Machine) -> str:
    """Return the rule by which a waiting job can never start on a machine, a name of NEVER_RULES; empty if it can."""
    partition = next((one for one in machine.partitions if one.name == job.partition), None)
    if job.state != WAITING or partition is None:
        return ""
    pools = [machine.pools[machine.place_of(name)] for name in partition.pools]
    needs = {"gpus": ("over_node_gpus", job.gpus, job.node_gpus), "mem_mb": ("over_node_memory", job.memory_mb, job.node_memory_mb)}
    over_node, wanted, each = needs.get(machine.second if machine.second_total else "", ("over_node_gpus", 0, 0))
    sizes = [(job.cpus, [pool.procs for pool in pools]), (job.nodes, [1] * len(pools)), (wanted, [pool.second for pool in pools])]
    holds = {
        "over_time_limit": partition.max_time is not None and job.limit is not None and job.limit > partition.max_time,
        over_node: each > max(pool.second for pool in pools),
        "over_partition": any(size > sum(pool.nodes * unit for pool, unit in zip(pools, units, strict=True)) for size, units in sizes),
    }
    by_slurm = (rule for rule, pattern in _REASONS.items() if pattern.fullmatch(job.reason))
    return next((rule for rule, is_so in holds.items() if is_so), next(by_slurm, ""))
