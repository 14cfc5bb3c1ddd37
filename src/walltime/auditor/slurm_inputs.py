"""Inputs of a walk along a schedule made by Slurm: the jobs' needs, the nodes that outages take, accounts and priorities."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.slurm_passes import NEVER, SLURM_RULES, Blocks
from walltime.machine import Machine, Placement
from walltime.machine.placing import qos_factors
from walltime.policy.slurm import SlurmSettings
from walltime.workload import Workload

Array = np.ndarray


class Needs(NamedTuple):
    """The jobs' needs, int64. `nodes`: the fewest; `whole`: 1 for whole nodes; `each`: the second resource needed on each node."""

    nodes: Array
    whole: Array
    each: Array


class Hardware(NamedTuple):
    """The nodes, numbered pool by pool.

    `capacity`: processors and second resource, shape (nodes, 2); `partitions`: the nodes of each partition in order; `outages`: nodes,
    begin, end, and the time from which each is known, s.
    """

    capacity: Array
    partitions: list[Array]
    outages: list[tuple[Array, int, int, int]]


def hardware(placement: Placement) -> Hardware:
    """Return the nodes of a machine. An outage takes the last nodes of its pool that are not out at its begin."""
    machine = placement.machine
    counts = [pool.nodes for pool in machine.pools]
    first = np.concatenate([[0], np.cumsum(counts)])
    capacity = np.array([(pool.procs, pool.second) for pool in machine.pools for _ in range(pool.nodes)], np.int64)
    partitions = [
        np.concatenate([np.arange(first[p], first[p + 1]) for p in map(machine.place_of, one.pools)]) for one in machine.partitions
    ]
    outages: list[tuple[Array, int, int, int]] = []
    for pool, procs, _, begin, end, known in sorted(placement.outages, key=lambda one: one[3]):
        gone = {int(n) for nodes, _, until, _ in outages if until > begin for n in nodes}
        own = list(range(int(first[pool + 1]) - 1, int(first[pool]) - 1, -1))
        chosen = [n for n in own if n not in gone] + [n for n in own if n in gone]
        outages.append((np.array(chosen[: procs // machine.pools[pool].procs], np.int64), begin, end, known))
    return Hardware(capacity, partitions, outages)


def needs(workload: Workload, placement: Placement, nodes: Hardware) -> Needs:
    """Return the jobs' needs on the nodes of their partitions."""
    machine, part = placement.machine, placement.partition
    count = len(workload)
    sizes = np.array([len(own) for own in nodes.partitions])[part]
    alike = np.array([len(np.unique(nodes.capacity[own, 0])) == 1 for own in nodes.partitions])[part]
    whole = np.array([one.exclusive for one in machine.partitions])[part]
    whole = whole | (alike & (workload.columns.get("exclusive", np.zeros(count)) == 1))
    wanted = np.minimum(workload.columns.get("nodes", np.ones(count, np.int64)), sizes)
    most = np.array([nodes.capacity[own].max(axis=0) for own in nodes.partitions])[part]
    second = placement.second
    wide = np.maximum(np.maximum(wanted, -(-workload.procs // most[:, 0])), -(-second // np.maximum(most[:, 1], 1)))
    shared = np.clip(np.where(second > 0, np.minimum(wanted, second), wanted), 1, workload.procs)
    fewest = np.where(whole, np.maximum(wide, 1), shared)
    each = np.where(second > 0, np.where(whole, -(-second // fewest), 1), 0)
    return Needs(fewest.astype(np.int64), whole.astype(np.int64), each.astype(np.int64))


def constant_priority(workload: Workload, placement: Placement, settings: SlurmSettings, fewest: Array, nodes: Hardware) -> Array:
    """Return the constant part of each job's priority, float64: for size, partition and quality of service."""
    procs, all_procs = workload.procs, int(nodes.capacity[:, 0].sum())
    if settings.flag("SMALL_RELATIVE_TO_TIME"):
        size = procs / np.maximum(workload.believed // 60, 1) / all_procs
    else:
        size = 0.5 * (fewest / len(nodes.capacity) + procs / all_procs)
    size = 1 - size if settings["priority_favor_small"] else size
    partitions = placement.machine.partitions
    highest = max([1, *(one.job_factor for one in partitions)])
    of_partition = np.array([one.job_factor / highest for one in partitions])[placement.partition]
    weighted = settings["priority_weight_job_size"] * size + settings["priority_weight_partition"] * of_partition
    return np.asarray(weighted + settings["priority_weight_qos"] * qos_factors(workload, placement.machine), np.float64)


def rules_of(settings: SlurmSettings) -> Any:
    """Return Slurm's parameters as one record for compiled code."""
    rules = np.zeros(1, SLURM_RULES).view(np.recarray)[0]
    for name in SLURM_RULES.names or ():
        rules[name] = settings.numbers[name]
    rules.most_started = rules.most_started or NEVER
    return rules


def new_blocks(nodes: Hardware, count: int) -> Blocks:
    """Return memory for the blocks of all outages, closed partitions, and `count` reservations."""
    out, width = sum(len(own) for own, *_ in nodes.outages), max(len(own) for own in nodes.partitions)
    more = count + len(nodes.partitions)
    size = len(nodes.outages) + more
    return Blocks(*(np.zeros(shape, np.int64) for shape in ((size, 4), out + more * width, size, size)))


class AccountTree:
    """Accounts and users, the root first, with their decayed usage and fair-share factors; `association`: the node of each job's user."""

    def __init__(self, workload: Workload, machine: Machine, settings: SlurmSettings):
        self.parent, self.shares, self.is_user = [-1], [1], [False]
        self._places: dict[tuple[str | None, str | None], int] = {(None, None): 0}
        self._accounts = {one.account: one for one in machine.shares if one.user is None}
        own: dict[tuple[str, str | None], int] = {(one.account, one.user): one.shares for one in machine.shares if one.user is not None}
        for name in self._accounts:
            self._account(name)
        group, user = (workload.columns.get(name, np.full(len(workload), -1)).tolist() for name in ("group", "user"))
        self.association = [self._user(workload, own, *numbers) for numbers in zip(group, user, strict=True)]
        self.decay, self.by_tree = settings.decay, not settings.flag("NO_FAIR_TREE")
        self.weighs = settings["priority_weight_fairshare"] > 0
        self.used, self._factors = [0.0] * len(self.parent), [0.0] * len(self.parent)
        self._is_ranked = False

    def _add(self, key: tuple[str | None, str | None], above: int, shares: int) -> int:
        self._places[key] = len(self.parent)
        self.parent.append(above)
        self.shares.append(shares)
        self.is_user.append(key[1] is not None)
        return self._places[key]

    def _account(self, name: str | None) -> int:
        if (name, None) not in self._places:
            one = self._accounts.get(name or "")
            above = self._account(one.parent) if one is not None and one.parent != name else 0
            self._add((name, None), above, 1 if one is None else one.shares)
        return self._places[name, None]

    def _user(self, workload: Workload, own: dict[tuple[str, str | None], int], group: int, user: int) -> int:
        name = workload.origin.name_of("user", user)
        account = workload.origin.name_of("group", group) if group >= 0 else None
        if account is None:
            known = [one for one, other in own if other == name]
            account = known[0] if len(known) == 1 else None
        if (account, name) not in self._places:
            self._add((account, name), self._account(account), own.get((account or "", name), 1))
        return self._places[account, name]

    def add(self, used: dict[int, int]) -> None:
        """End a period: decay the earlier usage and add the users' usage in the period (processor-seconds)."""
        self.used = [self.decay * self.used[k] + used.get(k, 0) if user else 0.0 for k, user in enumerate(self.is_user)]
        for k in range(len(self.parent) - 1, 0, -1):  # accounts precede their children
            self.used[self.parent[k]] += self.used[k]
        self._is_ranked = False

    @property
    def is_unused(self) -> bool:
        """Return whether no user has used anything yet."""
        return not any(self.used)

    def factor(self, association: int) -> float:
        """Return the fair-share factor of a user."""
        if self.weighs and not self._is_ranked:
            self._factors = self._by_tree() if self.by_tree else self._by_use()
            self._is_ranked = True
        return self._factors[association]

    def _by_tree(self) -> list[float]:
        """Return the factors of Fair Tree: rank users by the levels (shares / usage) of all accounts above them, then by their own.

        Below an account, users come before accounts of the same level; users with equal levels are tied. Source:
        https://slurm.schedmd.com/fair_tree.html.
        """
        paths: list[tuple[tuple[float, bool, int], ...]] = [()]
        for k in range(1, len(self.parent)):
            level = self.shares[k] and (self.shares[k] / self.used[k] if self.used[k] > 0 else math.inf)
            paths.append((*paths[self.parent[k]], (-level, not self.is_user[k], 0 if self.is_user[k] else k)))
        users = sorted(path for path, user in zip(paths, self.is_user, strict=True) if user)
        return [
            (len(users) - bisect_left(users, path)) / len(users) if user else 0.0 for path, user in zip(paths, self.is_user, strict=True)
        ]

    def _by_use(self) -> list[float]:
        """Return the factors of classic fair share: 2 ** -(effective usage / share), both as fractions of the whole.

        Source: https://slurm.schedmd.com/classic_fair_share.html.
        """
        siblings = [0] * len(self.parent)
        for k in range(1, len(self.parent)):
            siblings[self.parent[k]] += self.shares[k]
        share, use, factors = [1.0], [0.0], [0.0]
        for k, above in enumerate(self.parent[1:], 1):
            part = self.shares[k] / siblings[above] if siblings[above] else 0.0
            own = self.used[k] / self.used[0] if self.used[0] > 0 else 0.0
            use.append(own + (use[above] - own) * part if above else own)
            share.append(share[above] * part)
            factors.append(math.exp(-use[k] / share[k] * math.log(2)) if self.is_user[k] and share[k] > 0 else 0.0)
        return factors
