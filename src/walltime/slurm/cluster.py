"""A Slurm cluster's own description as a machine: its pools, partitions, outages, limits, shares and settings."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from walltime.durations import seconds_of
from walltime.errors import LogError, WorkloadError
from walltime.machine.files import write_machine
from walltime.machine.machine import Limit, Machine, Outage, Partition, Pool, Qos, Share
from walltime.slurm.records import ClusterRecords, Record, expand, file_text, read_records
from walltime.slurm_values import gpus_of, resource_of
from walltime.wording import sanitize

KEPT_SETTINGS = re.compile(
    r"(Scheduler|Priority|SelectType|Preempt|DefMem|MaxMem|Topology)\w*|SLURM_VERSION|MaxArraySize|MaxJobCount|OverTimeLimit|KillWait|"
    r"CompleteWait|BatchStartTimeout|EnforcePartLimits|AccountingStorageEnforce|ResvOverRun|Licenses|OverSubscribe"
)
"""The settings that may matter to the schedule; they are kept as they are printed."""
NOTHING = frozenset({"", "(null)", "NONE", "None", "N/A", "NO", "ALL", "UNLIMITED", "INFINITE", "OFF", "0", "n/a"})
_READ = {"PartitionName", "Nodes", "Default", "MaxTime", "OverSubscribe", "Exclusive", "PriorityTier", "PriorityJobFactor", "State", "QoS"}
_NO_MATTER = {"TotalCPUs", "TotalNodes", "TRES", "NodeSets", "Hidden", "AllocNodes", "GraceTime", "DisableRootJobs", "MinNodes", "LLN"}
_FILTERS = {"AllowGroups", "AllowAccounts", "AllowQos", "DenyAccounts", "DenyQos", "RootOnly", "MaxNodes", "DefaultTime", "JobDefaults"}
"""What decides whether and with what request a job is taken at all: that is done before a job is in the log."""
_GONE = ("DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR")
_NEVER_THERE = ("FUTURE",)
_BY = {"PU": ("user",), "PA": ("group",), "": ()}
"""What a quality of service counts by: each user's jobs, each account's (the column `group`), all."""
_LIMITS = ("GrpJobs", "GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "MaxJobs", "MaxTRES", "MaxTRESMins")
_NAMES = {"gpus": "gres/gpu", "mem_mb": "mem"}
"""What Slurm calls the second resource."""
_RUNNING = ("GrpJobs", "GrpTRES", "MaxJobsPU", "MaxTRESPU", "MaxJobsPA", "MaxTRESPA")
_NOT_MODELLED = ("GrpTRESMins", "GrpTRESRunMins", "MaxTRESMins")


@dataclass(frozen=True)
class Cluster:
    """`machine`: the cluster, as far as a machine can express it. `notes`: what was left out or taken for something else, in sentences."""

    machine: Machine
    notes: tuple[str, ...]

    def text(self) -> str:
        """The text of a file like machine.toml, with the notes as comments at the top."""
        head = [f"# {note}" for note in ("Made by walltime slurm cluster from what Slurm says of the cluster.", *self.notes)]
        return "\n".join(head) + "\n\n" + write_machine(self.machine)


def read_cluster(*paths: str | os.PathLike[str]) -> Cluster:
    """The cluster that outputs of Slurm describe, of whatever kind, in any order, several in one file or each in its own.

    Read are `scontrol show config`, `show partition`, `show node` and `show reservation`, with `--oneliner` or without, `sinfo --json`
    of Slurm 22.05 to 26.05, and `sacctmgr --parsable2 show associations` and `show qos`; nodes are needed, the others are not. Raises
    LogError, in one line.
    """
    return cluster_of([(os.fspath(path), file_text(path)) for path in paths])


def cluster_of(texts: Sequence[tuple[str, str]]) -> Cluster:
    """The same of these texts, each with its name."""
    records = read_records(texts)
    try:
        return _Reading(records).cluster()
    except (WorkloadError, LogError) as error:
        raise LogError(f"{', '.join(where for where, _ in texts)}: {error}") from error


class _Reading:
    def __init__(self, records: ClusterRecords) -> None:
        self.records = records
        self.notes: list[str] = []
        self.pool_of: dict[str, str] = {}
        """The pool of each node."""
        if records.repeated:
            self.notes.append(f"{_count(records.repeated, 'record')} there twice; the first was taken.")
        if records.other_lines:
            self.notes.append(f"{_count(records.other_lines, 'line')} not understood and left out.")

    def cluster(self) -> Cluster:
        records = self.records
        if not records.nodes:
            raise LogError("no nodes; add the output of scontrol -o show node, or the JSON of sinfo")
        if "settings" not in records.known:
            self.notes.append("No scontrol show config: the settings of the scheduler are unknown, Slurm's own are assumed.")
        if "partitions" not in records.known:
            self.notes.append("No scontrol show partition: limits, tiers and the default of the partitions are unknown.")
        second = self._second()
        pools, members = self._pools(second)
        partitions = self._partitions(pools, members)
        used = {name for partition in partitions for name in partition.pools}
        machine = Machine(
            pools=tuple(pool for pool in pools if pool.name in used),
            partitions=tuple(partitions),
            outages=tuple(outage for outage in self._outages() if outage.pool in used),
            limits=tuple(_limits_of(records, [partition.name for partition in partitions], second, self.notes)),
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
            self.notes.append(f"SchedulerType={sanitize(scheduler)} is not modelled: taken as sched/backfill.")
        preempt = self.records.settings.get("PreemptType", "preempt/none")
        if preempt not in (*NOTHING, "preempt/none"):
            self.notes.append(f"PreemptType={sanitize(preempt)}: preemption is not modelled.")
        for name, what in (("Licenses", "licences are"), ("TopologyPlugin", "the topology is")):
            value = self.records.settings.get(name, "")
            if value not in (*NOTHING, "topology/none", "topology/default", "topology/flat"):
                self.notes.append(f"{name}={sanitize(value)}: {what} not modelled.")
        return "fcfs" if scheduler == "sched/builtin" else "slurm"

    def _second(self) -> str:
        """The second resource: GPUs where there are any, else memory where it is allocated to jobs."""
        memory = "MEMORY" in self.records.settings.get("SelectTypeParameters", "").upper()
        if any(gpus_of(node.get("Gres", "")) for node in self.records.nodes.values()):
            if memory:
                self.notes.append("Memory is allocated beside GPUs: only the GPUs are modelled.")
            return "gpus"
        return "mem_mb" if memory else "gpus"

    def _pools(self, second: str) -> tuple[list[Pool], dict[str, list[str]]]:
        """Nodes that are equal and of the same partitions are a pool; and the pools of each partition, those of the least weight first."""
        groups: dict[tuple[int, int, int, tuple[str, ...]], list[str]] = {}
        of_partition = _nodes_of_partitions(self.records)
        left = Counter[str]()
        for name, node in self.records.nodes.items():
            states = re.split(r"[+*~#!%$@^-]+", node.get("State", "").upper())
            partitions = tuple(sorted(of_partition.get(name, ())))
            procs = _whole(node, "CPUEfctv") or _whole(node, "CPUTot")
            if any(state in _NEVER_THERE for state in states) or not partitions or procs < 1:
                left["FUTURE" if states[0] in _NEVER_THERE else "in no partition" if not partitions else "without processors"] += 1
                continue
            units = gpus_of(node.get("Gres", "")) if second == "gpus" else _whole(node, "RealMemory") - _whole(node, "MemSpecLimit")
            groups.setdefault((_whole(node, "Weight"), procs, max(units, 0), partitions), []).append(name)
            other = {one.split(":")[0] for one in node.get("Gres", "").split(",")} - {"gpu"} - NOTHING
            left.update(f"with {sanitize(one)}, which is not modelled" for one in other)
        for what, count in left.items():
            counted = _count(count, "node", "is" if "with " not in what else "", "are" if "with " not in what else "")
            self.notes.append(f"{counted} {what}{'' if 'with ' in what else ', and left out'}.")
        pools: list[Pool] = []
        members: dict[str, list[str]] = {}
        for (_, procs, units, partitions), names in sorted(groups.items(), key=lambda item: item[0][0]):
            pool = Pool(_pool_name(names[0], [one.name for one in pools]), len(names), procs, units)
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
                self.notes.append(f"The partition {sanitize(name)} has no nodes, and is left out.")
                continue
            shares = record.get("OverSubscribe", "NO").upper()
            whole = shares == "EXCLUSIVE" or "NODE" in record.get("Exclusive", "").upper() or (linear and shares == "NO")
            exclusive = whole and len({size[pool] for pool in members[name]}) == 1
            if whole and not exclusive:
                self.notes.append(f"{sanitize(name)} gives whole nodes of several sizes: jobs get the processors that the log says.")
            if record.get("Exclusive", "NO").upper() not in ("NO", "NODE"):
                self.notes.append(
                    f"{sanitize(name)} is for one user or one block at a time (Exclusive={sanitize(record['Exclusive'])}): not modelled."
                )
            if shares.startswith(("YES", "FORCE")) and not shares.endswith(":1"):
                self.notes.append(f"{sanitize(name)} lets jobs share processors (OverSubscribe={sanitize(shares)}): not modelled.")
            if record.get("State", "UP") != "UP":
                self.notes.append(f"{sanitize(name)} is {sanitize(record['State'])}: taken as if it were up.")
            for key, value in record.items():
                if key not in _READ | _NO_MATTER and value not in NOTHING and not (key == "PreemptMode" or "MemPer" in key):
                    unread.setdefault(key, []).append(name)
            used = sum(pool.nodes for pool in pools if pool.name in members[name])
            if _whole(record, "TotalNodes") > used:
                self.notes.append(f"{sanitize(name)} has {_whole(record, 'TotalNodes'):,} nodes, of which {used:,} are used here.")
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
            does = "was applied before a job was in the log" if key in _FILTERS else "is not modelled"
            self.notes.append(f"{sanitize(key)} of {_listed(names)} {does}.")
        if partitions and all(other for other, _ in partitions) and len(partitions) > 1:
            self.notes.append("No partition is said to be the default: jobs without one go to the first.")
        return [partition for _, partition in sorted(partitions, key=lambda item: item[0])]

    def _outages(self) -> Iterator[Outage]:
        """Nodes that are down or drained are missing from the beginning; maintenance is known from the beginning."""
        gone = {name for name, node in self.records.nodes.items() if name in self.pool_of and _is_gone(node.get("State", ""))}
        if gone:
            self.notes.append(
                f"{_count(len(gone), 'node', 'is', 'are')} down or drained: missing from the beginning of the log; remove the outages if "
                "they were up then."
            )
        yield from self._missing(gone, 0, None, None)
        seen: list[tuple[datetime, datetime, set[str]]] = []
        for name, record in self.records.reservations.items():
            flags = record.get("Flags", "").upper().replace("+", ",").split(",")
            if "MAINT" not in flags:
                self.notes.append(f"The reservation {sanitize(name)} is not for maintenance: not modelled.")
                continue
            begin, end = _moment(record, "StartTime"), _moment(record, "EndTime")
            if any(flag in ("DAILY", "WEEKLY", "HOURLY", "WEEKDAY", "WEEKEND") for flag in flags):
                self.notes.append(f"The maintenance {sanitize(name)} repeats itself: only its next time is an outage.")
            nodes = {node for node in expand(record.get("Nodes", "")) if node in self.pool_of} - gone
            for other_begin, other_end, others in seen:
                if other_begin < end and begin < other_end and nodes & others:
                    same = _count(len(nodes & others), "node", "", "")
                    self.notes.append(
                        f"{same} of the maintenance {sanitize(name)} in another one at the same time: gone during the other only."
                    )
                    nodes -= others
            seen.append((begin, end, nodes))
            yield from self._missing(nodes, begin, end, 0)

    def _missing(self, nodes: set[str], begin: int | datetime, end: datetime | None, announced: int | None) -> Iterator[Outage]:
        for pool, count in Counter(self.pool_of[name] for name in sorted(nodes)).items():
            yield Outage(pool, begin, end, count, announced)

    def _shares(self) -> Iterator[Share]:
        seen: set[tuple[str, str]] = set()
        cluster = self.records.settings.get("ClusterName")
        left = Counter[str]()
        for row in self.records.associations:
            key = (row.get("Account", ""), row.get("User", ""))
            shares = row.get("Share", "1")
            if cluster and row.get("Cluster", cluster) != cluster:
                left["of another cluster"] += 1
            elif key in seen or not key[0]:
                left["listed for several partitions"] += 1
            else:
                if not shares.isdecimal():
                    left["with the share of their account, taken as 1"] += 1
                seen.add(key)
                yield Share(key[0], key[1] or None, row.get("ParentName") or None, int(shares) if shares.isdecimal() else 1)
        for what, count in left.items():
            self.notes.append(f"{_count(count, 'association', '', '')} {what}.")

    def _qos(self) -> Iterator[Qos]:
        for name in dict.fromkeys(row.get("Name", "") for row in self.records.qos):
            row = next(row for row in self.records.qos if row.get("Name", "") == name)
            if name:
                yield Qos(name, _whole(row, "Priority"))


def _nodes_of_partitions(records: ClusterRecords) -> dict[str, set[str]]:
    """The partitions of each node: as the node says, or else as the partitions say."""
    of: dict[str, set[str]] = {}
    for name, node in records.nodes.items():
        of[name] = {one for one in node.get("Partitions", "").split(",") if one not in NOTHING}
    if not any(of.values()):
        for partition, record in records.partitions.items():
            nodes = record.get("Nodes", "")
            for name in records.nodes if nodes == "ALL" else expand(nodes):
                if name in of:
                    of[name].add(partition)
    return of


def _is_gone(state: str) -> bool:
    """Whether a node in this state takes no jobs: `DOWN*`, `IDLE+DRAIN`, ...; one that is switched off to save power does."""
    words = re.split(r"[+*~#!%$@^-]+", state.upper())
    return any(word in _GONE for word in words)


def _whole(record: Record, name: str, otherwise: int = 0) -> int:
    text = record.get(name, "")
    if text in NOTHING:
        return otherwise if text != "0" else 0
    if not text.isdecimal() or len(text) > 15:
        raise LogError(f"{name} is {sanitize(text)!r}, it must be a whole number; print it again with scontrol show")
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
        raise LogError(f"{name} is {text!r}, it must be a time such as 2026-03-10T08:00:00; unset SLURM_TIME_FORMAT") from None


def _pool_name(node: str, taken: list[str]) -> str:
    """A name for a pool: its first node's without the number, and a number of its own if that is taken."""
    base = re.sub(r"[0-9\W_]+$", "", node) or "nodes"
    name, k = base, 2
    while name in taken:
        name, k = f"{base}-{k}", k + 1
    return name


def _count(number: int, what: str, one: str = "was", more: str = "were") -> str:
    return f"{number:,} {what if number == 1 else what + 's'} {one if number == 1 else more}".rstrip()


def _listed(names: list[str]) -> str:
    shown = ", ".join(sanitize(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more partitions"


def _limits_of(records: ClusterRecords, partitions: Sequence[str], second: str, notes: list[str]) -> Iterator[Limit]:
    """The limits that partitions have by their quality of service, and those of the only one that there is; other limits are noted."""
    limited = sum(any(row.get(name) for name in _LIMITS) for row in records.associations)
    rows = {row["Name"]: row for row in records.qos if row.get("Name")}
    enforced = records.settings.get("AccountingStorageEnforce", "").lower()
    if "settings" in records.known and not any(word in enforced for word in ("limits", "safe", "all")):
        some = limited + sum(any(row.get(name) for name in (*_RUNNING, *_NOT_MODELLED)) for row in rows.values())
        if some:
            notes.append(f"{some:,} associations and qualities of service have limits, which AccountingStorageEnforce does not enforce.")
        return
    if limited:
        notes.append(f"{limited:,} associations with limits of their own: not modelled.")
    partition_qos = {name: records.partitions.get(name, {}).get("QoS", "N/A") for name in partitions}
    for partition, qos in partition_qos.items():
        if qos in rows:
            yield from _of_qos(rows[qos], partition, second, notes)
        elif qos not in ("N/A", "(null)", ""):
            notes.append(f"{sanitize(partition)} has the limits of {sanitize(qos)}, which sacctmgr show qos does not tell.")
    others = [row for name, row in rows.items() if name not in partition_qos.values()]
    if len(others) == 1:
        yield from _of_qos(others[0], None, second, notes)
    else:
        partly = [sanitize(row["Name"]) for row in others if any(row.get(name) for name in (*_RUNNING, *_NOT_MODELLED))]
        notes += [f"The limits of the quality of service {name}, for some of the jobs only, are not modelled." for name in partly]


def _of_qos(row: Record, partition: str | None, second: str, notes: list[str]) -> Iterator[Limit]:
    for which, by in _BY.items():
        jobs, resources = (row.get(f"Max{what}{which}" if which else f"Grp{what}", "") for what in ("Jobs", "TRES"))
        most = {"jobs": _number(jobs), "procs": resource_of(resources, "cpu"), "second": resource_of(resources, _NAMES.get(second, second))}
        if any(value is not None for value in most.values()):
            yield Limit(by, partition, most["jobs"], most["procs"], most["second"])
        left = [one for one in resources.split(",") if one and one.partition("=")[0] not in ("cpu", _NAMES.get(second, second))]
        if left:
            notes.append(f"{sanitize(row['Name'])} limits {sanitize(', '.join(left))}: not modelled.")
    others = [name for name in _NOT_MODELLED if row.get(name)]
    notes += [f"{name} of the quality of service {sanitize(row['Name'])} is not modelled." for name in others]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 16 else None
