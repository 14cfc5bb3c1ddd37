"""Convert a Slurm cluster's own description to a machine: its pools, partitions, outages, limits, shares and settings."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from walltime.durations import seconds_of
from walltime.errors import LogError, WorkloadError
from walltime.machine.machine import Limit, Machine, Outage, Partition, Pool, Qos, Share, write_machine
from walltime.slurm.records import ClusterRecords, Record, expand, file_text, read_records
from walltime.slurm_values import gpus_of, resource_of
from walltime.wording import sanitize

KEPT_SETTINGS = re.compile(
    r"(Scheduler|Priority|SelectType|Preempt|DefMem|MaxMem|Topology)\w*|SLURM_VERSION|MaxArraySize|MaxJobCount|OverTimeLimit|KillWait|"
    r"CompleteWait|BatchStartTimeout|EnforcePartLimits|AccountingStorageEnforce|ResvOverRun|Licenses|OverSubscribe"
)
"""The settings that may affect the schedule; they are kept as Slurm prints them."""
NOTHING = frozenset({"", "(null)", "NONE", "None", "N/A", "NO", "ALL", "UNLIMITED", "INFINITE", "OFF", "0", "n/a"})
_READ = {"PartitionName", "Nodes", "Default", "MaxTime", "OverSubscribe", "Exclusive", "PriorityTier", "PriorityJobFactor", "State", "QoS"}
_IRRELEVANT = {"TotalCPUs", "TotalNodes", "TRES", "NodeSets", "Hidden", "AllocNodes", "GraceTime", "DisableRootJobs", "MinNodes", "LLN"}
_FILTERS = {"AllowGroups", "AllowAccounts", "AllowQos", "DenyAccounts", "DenyQos", "RootOnly", "MaxNodes", "DefaultTime", "JobDefaults"}
"""Settings that decide whether a job is accepted and with which request, which happens before the job is in the log."""
_UNAVAILABLE = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR"}
_COUNTED_BY = {"PU": ("user",), "PA": ("group",), "": ()}
"""What the limits of a quality of service are counted by: each user's jobs, each account's (the column `group`), all jobs."""
_ASSOCIATION_LIMITS = ("GrpJobs", "GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "MaxJobs", "MaxTRES", "MaxTRESMins")
_SLURM_NAMES = {"gpus": "gres/gpu", "mem_mb": "mem"}
"""Slurm's names of the second resource."""
_NOT_MODELLED = ("GrpTRESMins", "GrpTRESRunMins", "MaxTRESMins")
_QOS_LIMITS = ("GrpJobs", "GrpTRES", "MaxJobsPU", "MaxTRESPU", "MaxJobsPA", "MaxTRESPA", *_NOT_MODELLED)


@dataclass(frozen=True)
class Cluster:
    """A cluster as a machine, as far as a machine can express it, with `notes`: sentences on what was left out or approximated."""

    machine: Machine
    notes: tuple[str, ...]

    def text(self) -> str:
        """Return the text of a machine file, with the notes as comments at the top."""
        head = [f"# {note}" for note in ("Made by walltime slurm cluster from Slurm's description of the cluster.", *self.notes)]
        return "\n".join(head) + "\n\n" + write_machine(self.machine)


def read_cluster(*paths: str | os.PathLike[str]) -> Cluster:
    """Return the cluster that these outputs of Slurm describe, in any order, in one file or several.

    Accepted are `scontrol show config`, `show partition`, `show node` and `show reservation`, with `--oneliner` or without, `sinfo --json`
    of Slurm 22.05 to 26.05, and `sacctmgr --parsable2 show associations` and `show qos`. Only the nodes are required. Raises LogError.
    """
    return parse_cluster([(os.fspath(path), file_text(path)) for path in paths])


def parse_cluster(texts: Sequence[tuple[str, str]]) -> Cluster:
    """Return the cluster that these texts, each with its name, describe; raises LogError."""
    records = read_records(texts)
    try:
        return _ClusterBuilder(records).cluster()
    except (WorkloadError, LogError) as error:
        raise LogError(f"{', '.join(where for where, _ in texts)}: {error}") from error


class _ClusterBuilder:
    """Builds a machine from records, and collects notes."""

    def __init__(self, records: ClusterRecords) -> None:
        self.records = records
        self.notes: list[str] = []
        self.pool_of: dict[str, str] = {}
        """The pool of each node."""
        if records.repeated:
            self.notes.append(f"{_count(records.repeated, 'record')} listed twice; the first was used.")
        if records.other_lines:
            self.notes.append(f"{_count(records.other_lines, 'line')} not understood, and left out.")

    def cluster(self) -> Cluster:
        records = self.records
        if not records.nodes:
            raise LogError("no nodes; add the output of scontrol -o show node, or the JSON of sinfo")
        if "settings" not in records.known:
            self.notes.append("Without scontrol show config, the scheduler's settings are unknown; Slurm's defaults are assumed.")
        if "partitions" not in records.known:
            self.notes.append("Without scontrol show partition, limits, tiers and the default of the partitions are unknown.")
        second = self._second_resource()
        pools, members = self._pools(second)
        partitions = self._partitions(pools, members)
        used = {name for partition in partitions for name in partition.pools}
        machine = Machine(
            pools=tuple(pool for pool in pools if pool.name in used),
            partitions=tuple(partitions),
            outages=tuple(outage for outage in self._outages() if outage.pool in used),
            limits=tuple(_limits(records, [partition.name for partition in partitions], second, self.notes)),
            second=second,
            name=records.settings.get("ClusterName") or "cluster",
            policy=self._policy(),
            slurm={name: value for name, value in records.settings.items() if KEPT_SETTINGS.fullmatch(name)},
            shares=tuple(self._shares()),
            qos=tuple(self._qos()),
        )
        return Cluster(machine, tuple(self.notes))

    def _policy(self) -> str:
        scheduler = self.records.settings.get("SchedulerType", "sched/backfill")
        if scheduler not in ("sched/backfill", "sched/builtin"):
            self.notes.append(f"SchedulerType={sanitize(scheduler)} is not modelled; sched/backfill is assumed.")
        preempt = self.records.settings.get("PreemptType", "preempt/none")
        if preempt not in (*NOTHING, "preempt/none"):
            self.notes.append(f"PreemptType={sanitize(preempt)}: preemption is not modelled.")
        for name, subject in (("Licenses", "licences are"), ("TopologyPlugin", "the topology is")):
            value = self.records.settings.get(name, "")
            if value not in (*NOTHING, "topology/none", "topology/default", "topology/flat"):
                self.notes.append(f"{name}={sanitize(value)}: {subject} not modelled.")
        return "fcfs" if scheduler == "sched/builtin" else "slurm"

    def _second_resource(self) -> str:
        """Return the second resource: GPUs where there are any, else memory where it is allocated to jobs."""
        memory = "MEMORY" in self.records.settings.get("SelectTypeParameters", "").upper()
        if memory and not any(gpus_of(node.get("Gres", "")) for node in self.records.nodes.values()):
            return "mem_mb"
        if memory:
            self.notes.append("Memory and GPUs are allocated; only the GPUs are modelled.")
        return "gpus"

    def _pools(self, second: str) -> tuple[list[Pool], dict[str, list[str]]]:
        """Return pools of equal nodes with the same partitions, and the names of each partition's pools, the least weight first."""
        groups: dict[tuple[int, int, int, tuple[str, ...]], list[str]] = {}
        partitions_of = _partitions_of_nodes(self.records)
        left_out, other_resources = Counter[str](), Counter[str]()
        for name, node in self.records.nodes.items():
            states = _states(node)
            partitions = tuple(sorted(partitions_of.get(name, ())))
            procs = _whole(node, "CPUEfctv") or _whole(node, "CPUTot")
            if "FUTURE" in states or not partitions or procs < 1:
                left_out["FUTURE" if states[0] == "FUTURE" else "in no partition" if not partitions else "without processors"] += 1
                continue
            units = gpus_of(node.get("Gres", "")) if second == "gpus" else _whole(node, "RealMemory") - _whole(node, "MemSpecLimit")
            groups.setdefault((_whole(node, "Weight", 1), procs, max(units, 0), partitions), []).append(name)
            other_resources.update({one.split(":")[0] for one in node.get("Gres", "").split(",")} - {"gpu"} - NOTHING)
        self.notes += [f"{_count(count, 'node', 'is', 'are')} {reason}, and left out." for reason, count in left_out.items()]
        self.notes += [f"{_count(n, 'node', 'has', 'have')} {sanitize(one)}, which is not modelled." for one, n in other_resources.items()]
        pools: list[Pool] = []
        members: dict[str, list[str]] = {}
        for (weight, procs, units, partitions), names in sorted(groups.items(), key=lambda item: item[0][0]):
            pool = Pool(_pool_name(names[0], [one.name for one in pools]), len(names), procs, units, weight)
            pools.append(pool)
            self.pool_of |= dict.fromkeys(names, pool.name)
            for partition in partitions:
                members.setdefault(partition, []).append(pool.name)
        if not pools:
            raise LogError("no node is in a partition; add the output of scontrol -o show partition")
        return pools, members

    def _partitions(self, pools: list[Pool], members: dict[str, list[str]]) -> list[Partition]:
        records = dict(self.records.partitions)
        for name in members:
            records.setdefault(name, {"PartitionName": name})
        size = {pool.name: pool.procs for pool in pools}
        linear = "linear" in self.records.settings.get("SelectType", "")
        partitions: list[tuple[bool, Partition]] = []
        unread: dict[str, list[str]] = {}
        for name, record in records.items():
            if name not in members:
                self.notes.append(f"Partition {sanitize(name)} has no nodes, and is left out.")
                continue
            about = f"Partition {sanitize(name)}"
            shares, users = record.get("OverSubscribe", "NO").upper(), record.get("Exclusive", "NO")
            whole = shares == "EXCLUSIVE" or "NODE" in users.upper() or (linear and shares == "NO")
            exclusive = whole and len({size[pool] for pool in members[name]}) == 1
            if whole and not exclusive:
                self.notes.append(f"{about} allocates whole nodes of several sizes; jobs get the processors recorded in the log.")
            if users.upper() not in ("NO", "NODE"):
                self.notes.append(f"{about} is for one user or one block at a time (Exclusive={sanitize(users)}): not modelled.")
            if shares.startswith(("YES", "FORCE")) and not shares.endswith(":1"):
                self.notes.append(f"{about} lets jobs share processors (OverSubscribe={sanitize(shares)}): not modelled.")
            if record.get("State", "UP") != "UP":
                self.notes.append(f"{about} is {sanitize(record['State'])}; it is treated as up.")
            for key, value in record.items():
                if key not in _READ | _IRRELEVANT and value not in NOTHING and not (key == "PreemptMode" or "MemPer" in key):
                    unread.setdefault(key, []).append(name)
            used, total = sum(pool.nodes for pool in pools if pool.name in members[name]), _whole(record, "TotalNodes")
            if total > used:
                self.notes.append(f"{about}: {used:,} of {total:,} nodes are used here.")
            partition = Partition(
                name=name,
                pools=tuple(members[name]),
                exclusive=exclusive,
                tier=_whole(record, "PriorityTier"),
                max_time=None if record.get("MaxTime", "") in NOTHING else _length(record, "MaxTime"),
                job_factor=_whole(record, "PriorityJobFactor", 1),
            )
            partitions.append((record.get("Default", "NO") != "YES", partition))
        for key, names in unread.items():
            effect = "was applied before jobs entered the log" if key in _FILTERS else "is not modelled"
            self.notes.append(f"{sanitize(key)} of {_listed(names)} {effect}.")
        if partitions and all(other for other, _ in partitions) and len(partitions) > 1:
            self.notes.append("No partition is the default: jobs without a partition go to the first.")
        return [partition for _, partition in sorted(partitions, key=lambda item: item[0])]

    def _outages(self) -> Iterator[Outage]:
        """Return outages of nodes that are down or drained, from the beginning of the log on, and of maintenance, known from then on."""
        gone = {name for name, node in self.records.nodes.items() if name in self.pool_of and not _UNAVAILABLE.isdisjoint(_states(node))}
        if gone:
            down = _count(len(gone), "node", "is", "are")
            self.notes.append(f"{down} down or drained: missing from the beginning of the log; remove the outages if they were up then.")
        yield from self._missing(gone, 0, None, None)
        seen: list[tuple[datetime, datetime, set[str]]] = []
        for name, record in self.records.reservations.items():
            flags = record.get("Flags", "").upper().replace("+", ",").split(",")
            if "MAINT" not in flags:
                self.notes.append(f"The reservation {sanitize(name)} is not for maintenance: not modelled.")
                continue
            begin, end = _moment(record, "StartTime"), _moment(record, "EndTime")
            if any(flag in ("DAILY", "WEEKLY", "HOURLY", "WEEKDAY", "WEEKEND") for flag in flags):
                self.notes.append(f"The maintenance {sanitize(name)} is repeated: only its next time is an outage.")
            nodes = {node for node in expand(record.get("Nodes", "")) if node in self.pool_of} - gone
            for other_begin, other_end, others in seen:
                if other_begin < end and begin < other_end and nodes & others:
                    both = _count(len(nodes & others), "node", "is", "are")
                    self.notes.append(f"{both} in the maintenance {sanitize(name)} and in an overlapping one; only the other one counts.")
                    nodes -= others
            seen.append((begin, end, nodes))
            yield from self._missing(nodes, begin, end, 0)

    def _missing(self, nodes: set[str], begin: int | datetime, end: datetime | None, announced: int | None) -> Iterator[Outage]:
        for pool, count in Counter(self.pool_of[name] for name in sorted(nodes)).items():
            yield Outage(pool, begin, end, count, announced)

    def _shares(self) -> Iterator[Share]:
        seen: set[tuple[str, str]] = set()
        cluster = self.records.settings.get("ClusterName")
        noted = Counter[str]()
        for row in self.records.associations:
            key = (row.get("Account", ""), row.get("User", ""))
            shares = row.get("Share", "1")
            if cluster and row.get("Cluster", cluster) != cluster:
                noted["of another cluster left out"] += 1
            elif key in seen or not key[0]:
                noted["listed for several partitions"] += 1
            else:
                if not shares.isdecimal():
                    noted["with the account's share: 1 is used"] += 1
                seen.add(key)
                yield Share(key[0], key[1] or None, row.get("ParentName") or None, int(shares) if shares.isdecimal() else 1)
        self.notes += [f"{_count(count, 'association', '', '')} {reason}." for reason, count in noted.items()]

    def _qos(self) -> Iterator[Qos]:
        for name in dict.fromkeys(row.get("Name", "") for row in self.records.qos):
            row = next(row for row in self.records.qos if row.get("Name", "") == name)
            if name:
                yield Qos(name, _whole(row, "Priority"))


def _partitions_of_nodes(records: ClusterRecords) -> dict[str, set[str]]:
    """Return the partitions of each node, from the nodes' records or else from the partitions' records."""
    found = {name: {one for one in node.get("Partitions", "").split(",") if one not in NOTHING} for name, node in records.nodes.items()}
    if not any(found.values()):
        for partition, record in records.partitions.items():
            nodes = record.get("Nodes", "")
            for name in records.nodes if nodes == "ALL" else expand(nodes):
                if name in found:
                    found[name].add(partition)
    return found


def _states(node: Record) -> list[str]:
    """Return the words of a node's state such as `DOWN*` or `IDLE+DRAIN`."""
    return re.split(r"[+*~#!%$@^-]+", node.get("State", "").upper())


def _whole(record: Record, name: str, otherwise: int = 0) -> int:
    text = record.get(name, "")
    if text in NOTHING:
        return otherwise if text != "0" else 0
    if not text.isdecimal() or len(text) > 15:
        raise LogError(f"{name} must be a whole number, not {sanitize(text)!r}; print it again with scontrol show")
    return int(text)


def _length(record: Record, name: str) -> int:
    try:
        return seconds_of(record[name])
    except ValueError as error:
        raise LogError(f"{name} is {sanitize(record[name])!r}, {error}; print it again with scontrol show") from error


def _moment(record: Record, name: str) -> datetime:
    try:
        return datetime.fromisoformat(record.get(name, "")).replace(tzinfo=None)  # Slurm prints local times
    except ValueError:
        text = sanitize(record.get(name, ""))
        raise LogError(f"{name} must be a time such as 2026-03-10T08:00:00, not {text!r}; unset SLURM_TIME_FORMAT") from None


def _pool_name(node: str, taken: list[str]) -> str:
    """Return a name for a pool: its first node's name without the number, with another number if that name is taken."""
    base = re.sub(r"[0-9\W_]+$", "", node) or "nodes"
    return next(name for name in (base, *(f"{base}-{k}" for k in range(2, len(taken) + 3))) if name not in taken)


def _count(number: int, noun: str, one: str = "was", more: str = "were") -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'} {one if number == 1 else more}".rstrip()


def _listed(names: list[str]) -> str:
    shown = ", ".join(sanitize(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more partitions"


def _limits(records: ClusterRecords, partitions: Sequence[str], second: str, notes: list[str]) -> Iterator[Limit]:
    """Return the limits of the partitions' qualities of service, and of the only other one; note the rest."""
    limited = sum(any(row.get(name) for name in _ASSOCIATION_LIMITS) for row in records.associations)
    rows = {row["Name"]: row for row in records.qos if row.get("Name")}
    limited_qos = {name for name, row in rows.items() if any(row.get(limit) for limit in _QOS_LIMITS)}
    enforced = records.settings.get("AccountingStorageEnforce", "").lower()
    if "settings" in records.known and not any(word in enforced for word in ("limits", "safe", "all")):
        if some := limited + len(limited_qos):
            notes.append(f"{some:,} associations and qualities of service have limits, which AccountingStorageEnforce does not enforce.")
        return
    if limited:
        notes.append(f"{limited:,} associations with limits of their own: not modelled.")
    partition_qos = {name: records.partitions.get(name, {}).get("QoS", "N/A") for name in partitions}
    for partition, qos in partition_qos.items():
        if qos in rows:
            yield from _qos_limits(rows[qos], partition, second, notes)
        elif qos not in ("N/A", "(null)", ""):
            notes.append(f"Partition {sanitize(partition)} has the limits of {sanitize(qos)}, which sacctmgr show qos does not list.")
    others = [name for name in rows if name not in partition_qos.values()]
    if len(others) == 1:
        yield from _qos_limits(rows[others[0]], None, second, notes)
    else:
        some_jobs = [sanitize(name) for name in others if name in limited_qos]
        notes += [f"The limits of the quality of service {name} hold for only some of the jobs: not modelled." for name in some_jobs]


def _qos_limits(row: Record, partition: str | None, second: str, notes: list[str]) -> Iterator[Limit]:
    resource = _SLURM_NAMES.get(second, second)
    for suffix, by in _COUNTED_BY.items():
        jobs, resources = (row.get(f"Max{kind}{suffix}" if suffix else f"Grp{kind}", "") for kind in ("Jobs", "TRES"))
        most_jobs = int(jobs) if jobs.isdecimal() and len(jobs) < 16 else None
        most = (most_jobs, resource_of(resources, "cpu"), resource_of(resources, resource))
        if any(value is not None for value in most):
            yield Limit(by, partition, *most)
        others = [one for one in resources.split(",") if one and one.partition("=")[0] not in ("cpu", resource)]
        if others:
            notes.append(f"{sanitize(row['Name'])} limits {sanitize(', '.join(others))}: not modelled.")
    notes += [f"{name} of the quality of service {sanitize(row['Name'])} is not modelled." for name in _NOT_MODELLED if row.get(name)]
