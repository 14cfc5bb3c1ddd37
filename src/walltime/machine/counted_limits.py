"""Limits on the machine's licences, and on Slurm's nodes, memory, GPUs and GPU types."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from walltime.machine.machine import Machine
from walltime.machine.placing import NEVER, Placement, added, limit_groups
from walltime.ragged import Ragged
from walltime.wording import counted, sanitize
from walltime.workload import Array, Workload

FINEST = 1000
"""Maximum number of parts into which a limit is divided; a job's amount is rounded up to whole parts."""


class CountedLimit(NamedTuple):
    """A maximum that running jobs may have together: its description, the jobs' indices and amounts (int64), and the maximum.

    `of_nodes`: whether it is a limit on nodes.
    """

    words: str
    jobs: Array
    amounts: Array
    most: int
    of_nodes: bool = False


def with_counted_limits(workload: Workload, placement: Placement) -> tuple[Workload, Placement]:
    """Return the jobs, and their placement with limits on licences and on Slurm's resources.

    A limit is listed for a job once per part of its amount; a part is the greatest common divisor of the amounts. A job that needs more
    than the limit by itself is exempt from it (`over_limit`). Limits on nodes count each node of a group's running jobs once.
    """
    found = [*_licences(workload, placement.machine), *_resources(workload, placement)]
    if not found:
        return workload, placement
    over, limits, node_limits = np.zeros(len(workload), bool), list(placement.limits), [NEVER] * len(placement.limits)
    jobs, items = [], []
    for one in found:
        over[one.jobs[one.amounts > one.most]] = True
        counts = (one.amounts <= one.most) & (one.amounts > 0)
        amounts = one.amounts[counts]
        part = max(int(np.gcd.reduce(amounts, initial=0)), -(-one.most // FINEST), 1)
        times = np.where(one.of_nodes, 1, -(-amounts // part))
        jobs.append(np.repeat(one.jobs[counts], times))
        items.append(np.full(int(times.sum()), len(limits)))
        limits.append((NEVER if one.of_nodes else one.most // part, NEVER, NEVER))
        node_limits.append(one.most if one.of_nodes else NEVER)
    own = placement.limits_of
    limits_of = Ragged.of_pairs(len(workload), np.concatenate([*jobs, own.places]), np.concatenate([*items, own.items]))
    run_seconds = [*placement.run_seconds, *(NEVER for _ in found)] if placement.run_seconds else ()
    words, node_limits = [one.words for one in found], node_limits if min(node_limits) < NEVER else []
    placement = replace(placement, limits=limits, limits_of=limits_of, counted=words, run_seconds=run_seconds, node_limits=node_limits)
    origin = replace(workload.origin, changed=added(workload.origin.changed, {"over_limit": over}, over))
    return replace(workload, origin=origin), placement


def resource_amounts(workload: Workload, placement: Placement, name: str, nodes: Array) -> Array:
    """Return each job's amount of a resource, int64, by Slurm's name: cpu, node, mem (MB), gres/gpu, gres/gpu:TYPE or license/NAME.

    `nodes`: the number of nodes of each job. A GPU type counts only for the jobs that requested it.
    """
    zero, second = np.zeros(len(workload), np.int64), placement.machine.second
    kind, _, gpu_type = name.partition(":")
    if kind.startswith("license/"):
        return licences_of(workload, kind.removeprefix("license/"))
    if kind == "mem" and second != "mem_mb":
        return np.asarray(np.maximum(workload.columns.get("mem_mb", zero), 0))
    amounts = {"cpu": workload.procs, "node": nodes, "mem": placement.second}.get(kind, placement.second if second == "gpus" else zero)
    if gpu_type:
        numbers = workload.columns.get("requested_gpu_type", zero)
        typed = [k for k in np.unique(numbers[numbers > 0]) if workload.origin.name_of("requested_gpu_type", k).lower() == gpu_type.lower()]
        amounts = np.where(np.isin(numbers, typed), amounts, 0)
    return np.asarray(amounts)


def licences_of(workload: Workload, name: str) -> Array:
    """Return the number of licences of one name that each job requests, int64."""
    numbers = workload.columns.get("licences", np.zeros(len(workload), np.int64))
    needed = np.zeros(len(workload), np.int64)
    for number in np.unique(numbers[numbers > 0]).tolist():
        needed[numbers == number] = parse_licences(workload.origin.name_of("licences", number)).get(name, 0)
    return needed


def parse_licences(text: str) -> Counter[str]:
    """Return the number of requested licences by name; `text`: as for Slurm's `--licenses`.

    >>> dict(parse_licences("matlab:2,idl"))
    {'matlab': 2, 'idl': 1}
    """
    needed: Counter[str] = Counter()
    for one in re.split("[,;]", text):
        name, _, count = one.strip().partition(":")
        needed[name] += int(count) if count.isdecimal() and len(count) < 7 else 1
    return needed


def _licences(workload: Workload, machine: Machine) -> Iterator[CountedLimit]:
    """Yield the limits on the machine's licences, if the log shows which jobs request them."""
    if "licences" in workload.columns:
        for name, most in machine.licences.items():
            yield CountedLimit(_words(f"license/{name}", most), np.arange(len(workload)), licences_of(workload, name), most)


def _resources(workload: Workload, placement: Placement) -> Iterator[CountedLimit]:
    """Yield the limits on Slurm's resources, one for each group of jobs."""
    machine, partition = placement.machine, placement.partition
    if not any(limit.resources for limit in machine.limits):
        return
    sizes = np.array([max(machine.pools[machine.place_of(name)].procs for name in one.pools) for one in machine.partitions])
    one = np.ones(len(workload), np.int64)
    requested, allocated = (workload.columns.get(column, one) for column in ("requested_nodes", "nodes"))
    nodes = np.maximum(np.where(requested > 0, requested, allocated), -(-workload.procs // sizes[partition]))
    for limit in machine.limits:
        for name, most in limit.resources.items():
            jobs, group = limit_groups(workload, machine, partition, limit)
            amounts = resource_amounts(workload, placement, name, nodes)
            for number in np.unique(group[amounts[jobs] > 0]).tolist():
                mine = jobs[group == number]
                yield CountedLimit(_words(name, most), mine, amounts[mine], most, name == "node")


def _words(name: str, most: int) -> str:
    """Describe an amount of a resource, given by its Slurm name, in words."""
    kind, _, gpu_type = name.partition(":")
    what, _, of = kind.partition("/")
    if what == "license":
        return f"{counted(most, 'licence')} of {sanitize(of)}"
    if kind == "mem":
        return f"{most:,} MB of memory"
    words = {"node": counted(most, "node"), "cpu": counted(most, "processor")}.get(kind, counted(most, "GPU"))
    return f"{words} of the type {sanitize(gpu_type)}" if gpu_type else words
