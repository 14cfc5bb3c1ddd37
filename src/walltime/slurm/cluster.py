"""Convert Slurm's description of a cluster to a machine: pools, partitions, outages, limits, shares and settings."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import Any

from walltime.errors import LogError, WorkloadError
from walltime.machine.machine import Machine, write_machine
from walltime.machine.tables import PREEMPT_MODES, Limit, Note, Outage, Partition, Pool, Qos, Reservation, Share
from walltime.slurm.cluster_limits import LIMIT_FIELDS, LimitReader
from walltime.slurm.features import NOTHING, Treatment, find_features
from walltime.slurm.json_records import Record
from walltime.slurm.node_records import (
    down_since,
    features_of,
    gpus_by_type,
    gres_of,
    integer,
    is_down,
    names_of,
    partitions_of_nodes,
    procs_of,
    states_of,
)
from walltime.slurm.records import ClusterRecords, expand, file_text, read_records
from walltime.slurm_values import gpus_of, seconds_of
from walltime.wording import sanitize

KEPT_SETTINGS = re.compile(
    r"(Scheduler|Priority|FairShare|SelectType|Preempt|DefMem|MaxMem|Topology)\w*|SLURM_VERSION|MaxArraySize|MaxJobCount|OverTimeLimit|KillWait|"
    r"CompleteWait|BatchStartTimeout|EnforcePartLimits|AccountingStorageEnforce|ResvOverRun|Licenses|OverSubscribe"
)
"""The settings that may affect the schedule; they are kept as Slurm prints them."""


UNCLEAR_FLAGS = {"WEEKDAY", "WEEKEND", "MAGNETIC", "ANY_NODES", "TIME_FLOAT"}
"""Flags of reservations that are not modelled: such reservations are noted."""
IN_NO_PARTITION, HIDDEN = "in no partition", "scontrol shows hidden partitions only with --all"
MOST_KINDS = 32
"""Features are left out if nodes have more different sets of features than this number and than a quarter of the number of nodes."""


@dataclass(frozen=True)
class Cluster:
    """A cluster as a machine, with properties that machine files do not describe.

    `node_memory`: the memory of each partition's largest node, MB; `nodes`: the names of each pool's nodes, in order.
    """

    machine: Machine
    node_memory: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences on features that are not modelled, left out or approximated."""
        return tuple(map(str, self.machine.notes))

    def text(self) -> str:
        """Return the text of a machine file, with the notes in its tables `[[note]]`."""
        return f"# Made by walltime slurm cluster from Slurm's description of the cluster.\n\n{write_machine(self.machine)}"


def read_cluster(*paths: str | os.PathLike[str]) -> Cluster:
    """Return the cluster that Slurm's output describes, in one file or several, in any order.

    Accepted outputs are `scontrol show config`, `show partition`, `show node` and `show reservation`, with `--oneliner` or without,
    `sinfo --json` of Slurm 22.05 to 26.05, and `sacctmgr --parsable2 show associations`, `show qos` and `show reservation`. Only the nodes
    are required. Raises LogError.
    """
    return parse_cluster([(os.fspath(path), file_text(path)) for path in paths])


def parse_cluster(texts: Sequence[tuple[str, str]], *, at_present: bool = False) -> Cluster:
    """Return the cluster that these texts describe, each with a name for messages; raises LogError.

    `at_present`: the cluster as it is now, so that nodes that are down are always missing. Otherwise they are missing from the time at
    which Slurm's reason was set until the time at which Slurm printed its settings; nodes without such a time are treated as up, and noted.
    """
    records = read_records(texts)
    try:
        return _ClusterBuilder(records, at_present).cluster()
    except (WorkloadError, LogError) as error:
        raise LogError(f"{', '.join(where for where, _ in texts)}: {error}") from error


class _ClusterBuilder:
    """Builds a machine from records, and collects notes."""

    def __init__(self, records: ClusterRecords, at_present: bool) -> None:
        self.records, self.at_present = records, at_present
        self.notes: list[Note] = []
        self.pool_of: dict[str, str] = {}
        """The pool of each node."""
        self.gpus = gpus_by_type(records.nodes.values())
        self.has_memory = "MEMORY" in records.settings.get("SelectTypeParameters", "").upper()
        self.types = {name: dict(gpus_by_type([node])) for name, node in records.nodes.items()}
        """The GPUs of each node by type; `gpu` for those without one."""
        self.features = {name: tuple(features_of(node)) for name, node in records.nodes.items()}
        """The features of each node; empty for all nodes if almost all differ in their features."""
        self.too_many = len(set(self.features.values())) > max(MOST_KINDS, len(records.nodes) // 4)
        if self.too_many:
            self.features.clear()
        if records.repeated:
            self.note(f"{_count(records.repeated, 'record')} listed twice; the first was used.")
        if records.other_lines:
            self.note(f"{_count(records.other_lines, 'line')} not understood and left out.")

    def note(self, text: str, feature: str = "", above: Mapping[str, int] = MappingProxyType({})) -> None:
        """Add a note; the arguments are the fields of `walltime.machine.Note`."""
        self.notes.append(Note(text, feature, dict(above)))

    def cluster(self) -> Cluster:
        records = self.records
        if not records.nodes:
            raise LogError("no nodes; add the output of scontrol -o show node, or the JSON of sinfo")
        if "settings" not in records.known:
            self.note("The output of scontrol show config is missing, so Slurm's default settings are assumed.")
        if "partitions" not in records.known:
            self.note("The output of scontrol show partition is missing, so limits, tiers and the default partition are unknown.")
        second = "mem_mb" if self.has_memory and not self.gpus else "gpus"
        pools, members = self._pools(second)
        partitions = self._partitions(pools, members)
        used = {name for partition in partitions for name in partition.pools}
        outages = tuple(one for one in self._outages() if one.pool in used)
        reservations = tuple(one for one in self._reservations() if one.pool in used)
        enforced = records.settings.get("AccountingStorageEnforce", "").lower()
        limited = "settings" not in records.known or any(word in enforced for word in ("limits", "safe", "all"))
        limits: list[Limit] = []
        if limited:
            limits = LimitReader(records, [one.name for one in partitions], second, list(self.gpus), self.note).limits()
        elif any(row.get(name) for row in (*records.qos, *records.associations) for name in LIMIT_FIELDS):
            self.note("AccountingStorageEnforce does not enforce the limits of associations and QOS, which are left out.")
        self._note_features(limited)
        machine = Machine(
            pools=tuple(pool for pool in pools if pool.name in used),
            partitions=tuple(partitions),
            outages=outages,
            reservations=reservations,
            licences=_licences(records.settings.get("Licenses", ""), records.licences),
            limits=tuple(limits),
            second=second,
            name=records.settings.get("ClusterName") or "cluster",
            policy="fcfs" if records.settings.get("SchedulerType") == "sched/builtin" else "slurm",
            slurm={name: value for name, value in records.settings.items() if KEPT_SETTINGS.fullmatch(name)},
            shares=tuple(self._shares()),
            qos=tuple(self._qos()),
            notes=tuple(dict.fromkeys(self.notes)),
        )
        largest: dict[str, int] = {}
        for name, of_node in partitions_of_nodes(records).items():
            largest |= {one: max(largest.get(one, 0), integer(records.nodes[name], "RealMemory")) for one in of_node}
        nodes = {pool.name: tuple(name for name, own in self.pool_of.items() if own == pool.name) for pool in pools}
        return Cluster(machine, {name: most for name, most in largest.items() if most}, nodes)

    def _note_features(self, limited: bool) -> None:
        """Note the features of Slurm that are not modelled, and settings that Slurm applied before jobs entered the log."""
        nodes, before = self.records.nodes, list[str]()
        scheduler = self.records.settings.get("SchedulerType", "sched/backfill")
        if scheduler not in ("sched/backfill", "sched/builtin"):
            self.note(f"SchedulerType={sanitize(scheduler)}; sched/backfill is assumed", "other schedulers")
        gpus = [f"{sanitize(name)} ({count:,})" for name, count in self.gpus.items()]
        words = {name: frozenset(features_of(one)) for name, one in nodes.items()} if self.too_many else {}
        resources = dict.fromkeys(name for one in nodes.values() for name in gres_of(one.get("Gres", "")))
        bound = any("(S:" in one.get("Gres", "") for one in nodes.values())
        for feature, shown, mixed in (
            ("GPU types", gpus, self._mixed({name: frozenset(own) for name, own in self.types.items() if "gpu" in own}, most=1)),
            ("other generic resources", [name for name in resources if name.split(":")[0] != "gpu"], None),
            ("cores bound to GPUs", ["Gres=…(S:…)"] * bound, None),
            ("node features", sorted({word for own in words.values() for word in own}), self._mixed(words)),
        ):
            if shown and mixed != {}:
                self.note(_listed(shown), feature, mixed or {})
        for found, text in find_features(self.records, limited):
            if found.treatment is Treatment.NOTED:
                self.note(text, found.name)
            else:
                before.append(text)
        if before:
            self.note(f"Applied by Slurm at submission, so the log already reflects it: {'; '.join(before)}.")

    def _mixed(self, of_node: Mapping[str, frozenset[str]], most: int | None = None) -> dict[str, int]:
        """Return 0 for each partition whose nodes differ in these values, or have more than `most` of them."""
        values: dict[str, set[frozenset[str]]] = {}
        for name, partitions in partitions_of_nodes(self.records).items():
            for partition in sorted(partitions) if name in of_node and name in self.pool_of else ():
                values.setdefault(partition, set()).add(of_node[name])
        return {one: 0 for one, found in values.items() if len(found) > 1 or (most is not None and max(map(len, found)) > most)}

    def _pools(self, second: str) -> tuple[list[Pool], dict[str, list[str]]]:
        """Return pools of equal nodes in the same partitions, and the names of each partition's pools, by weight."""
        groups: dict[tuple[Pool, tuple[str, ...]], list[str]] = {}  # by kind of node and partitions
        partitions_of = partitions_of_nodes(self.records)
        left_out = Counter[str]()
        for name, node in self.records.nodes.items():
            states = states_of(node)
            partitions = tuple(sorted(partitions_of.get(name, ())))
            procs = procs_of(node)
            if "FUTURE" in states or not partitions or procs < 1:
                left_out["FUTURE" if states[0] == "FUTURE" else IN_NO_PARTITION if not partitions else "no processors"] += 1
                continue
            memory = max(integer(node, "RealMemory") - integer(node, "MemSpecLimit"), 0)
            types = self.types[name]
            units: Any = types if types and "gpu" not in types else gpus_of(node.get("Gres", ""))
            if second != "gpus":
                units, memory = memory, 0
            elif not self.has_memory:
                memory = 0
            kind = Pool("one", 1, procs, units, memory, integer(node, "Weight", 1), self.features.get(name, ()))
            groups.setdefault((kind, partitions), []).append(name)
        for reason, count in left_out.items():
            hint = f"; {HIDDEN}" if reason == IN_NO_PARTITION else ""
            self.note(f"{_count(count, 'node')} left out ({reason}){hint}.")
        pools: list[Pool] = []
        members: dict[str, list[str]] = {}
        for (kind, partitions), names in sorted(groups.items(), key=lambda item: item[0][0].weight):
            pool = replace(kind, name=_pool_name(names[0], [one.name for one in pools]), nodes=len(names))
            pools.append(pool)
            self.pool_of |= dict.fromkeys(names, pool.name)
            for partition in partitions:
                members.setdefault(partition, []).append(pool.name)
        if not pools:
            raise LogError("no node is in a partition; add the output of scontrol -o show partition")
        return pools, members

    def _partitions(self, pools: list[Pool], members: dict[str, list[str]]) -> list[Partition]:
        records = dict(self.records.partitions)
        unknown = [sanitize(name) for name in members if name not in records]
        if records and unknown:
            self.note(f"Not among the partitions, so limits and tiers are unknown: {', '.join(unknown)}; {HIDDEN}.")
        for name in members:
            records.setdefault(name, {"PartitionName": name})
        size = {pool.name: pool.procs for pool in pools}
        linear = "linear" in self.records.settings.get("SelectType", "")
        partitions: list[Partition] = []
        mixed: list[str] = []
        for name, record in records.items():
            if name not in members:
                self.note(f"Partition {sanitize(name)} has no nodes, and is left out.")
                continue
            about = f"Partition {sanitize(name)}"
            shares, users = record.get("OverSubscribe", "NO").upper(), record.get("Exclusive", "NO")
            whole = shares == "EXCLUSIVE" or "NODE" in users.upper() or (linear and shares == "NO")
            exclusive = whole and len({size[pool] for pool in members[name]}) == 1
            if whole and not exclusive:
                mixed.append(name)
            if record.get("State", "UP") != "UP":
                self.note(f"{about} is {sanitize(record['State'])}; it is treated as up.")
            used, total = sum(pool.nodes for pool in pools if pool.name in members[name]), integer(record, "TotalNodes")
            if total > used:
                self.note(f"{about} has {total:,} nodes; the machine file contains {used:,} of them.")
            partition = Partition(
                name=name,
                pools=tuple(members[name]),
                exclusive=exclusive,
                tier=integer(record, "PriorityTier"),
                max_time=None if record.get("MaxTime", "") in NOTHING else _length(record, "MaxTime"),
                job_factor=integer(record, "PriorityJobFactor", 1),
                preempt=self._preempt_mode(record.get("PreemptMode", "")) if self._preempts_by("partition_prio") else "off",
                grace=_grace(record) if self._preempts_by("partition_prio") else 0,
                least_loaded=record.get("LLN", "NO").upper() == "YES"
                or "LLN" in self.records.settings.get("SelectTypeParameters", "").upper(),
            )
            partitions.append(partition)
        if mixed:
            self.note(_listed(mixed), "whole nodes of several sizes")
        partitions.sort(key=lambda one: records[one.name].get("Default", "NO") != "YES")
        if len(partitions) > 1 and records[partitions[0].name].get("Default", "NO") != "YES":
            self.note("No partition is the default: jobs without a partition go to the first.")
        return partitions

    def _down(self) -> dict[str, tuple[datetime, datetime]]:
        """Return, by name, when each down or drained node went down (the time of Slurm's reason) and when Slurm's output was printed."""
        down = {name: node for name, node in self.records.nodes.items() if name in self.pool_of and is_down(node)}
        since = {name: datetime.min if self.at_present else down_since(node) for name, node in down.items()}
        until = datetime.max if self.at_present or self.records.printed is None else self.records.printed
        known = {name: (time, until if until > time else datetime.max) for name, time in since.items() if time is not None}
        if known:
            times = "" if self.at_present else " since the time in Slurm's Reason"
            self.note(f"{_count(len(known), 'node', 'is', 'are')} down or drained{times}: {_listed(list(known))}.")
        if unknown := [name for name in down if name not in known]:
            self.note(
                f"{_count(len(unknown), 'node', 'is', 'are')} down or drained for an unknown time: {_listed(unknown)}. "
                "The file has no [[outage]] for such nodes; add one if needed."
            )
        return known

    def _outages(self) -> Iterator[Outage]:
        """Yield outages for maintenance, known from the beginning of the log, and for nodes that are down or drained."""
        down = self._down()
        seen: list[tuple[datetime, datetime, set[str]]] = []
        for name, record in self._reserved(True):
            flags = _flags(record)
            begin, end = _moment(record, "StartTime"), _moment(record, "EndTime")
            if any(flag in ("DAILY", "WEEKLY", "HOURLY", "WEEKDAY", "WEEKEND") for flag in flags):
                self.note(f"The maintenance {sanitize(name)} is repeated: only its next time is an outage.")
            nodes = {node for node in expand(record.get("Nodes", "")) if node in self.pool_of}
            for node in nodes & down.keys():
                since, until = down[node]
                if since < end and begin < until:
                    down[node] = min(since, begin), max(until, end)
                    nodes.remove(node)
            for other_begin, other_end, others in seen:
                if other_begin < end and begin < other_end and nodes & others:
                    both = _count(len(nodes & others), "node", "is", "are")
                    self.note(
                        f"{both} in the maintenance {sanitize(name)!r} and in an overlapping earlier one; only the earlier one counts."
                    )
                    nodes -= others
            seen.append((begin, end, nodes))
            yield from self._missing(nodes, begin, end, 0)
        for since, until in sorted(set(down.values())):
            gone = {name for name, span in down.items() if span == (since, until)}
            end_of_all = None if until == datetime.max else until
            yield from self._missing(gone, 0 if since == datetime.min else since, end_of_all, None)

    def _reservations(self) -> Iterator[Reservation]:
        """Yield the reservations for users and accounts, known from the beginning of the log."""
        unclear: list[str] = []
        for name, record in self._reserved(False):
            flags, who = _flags(record), {key: tuple(names_of(record.get(key, ""))) for key in ("Users", "Accounts")}
            nodes = {node for node in expand(record.get("Nodes", "")) if node in self.pool_of}
            if not nodes or any(one.startswith("-") for names in who.values() for one in names) or not UNCLEAR_FLAGS.isdisjoint(flags):
                unclear.append(name)
            kept = tuple(flag for flag in ("FLEX", "HOURLY", "DAILY", "WEEKLY") if flag in flags)
            users, accounts = (tuple(one for one in names if not one.startswith("-")) for names in who.values())
            for outage in self._missing(nodes, _moment(record, "StartTime"), _moment(record, "EndTime"), 0):
                assert outage.end is not None, "a reservation has an end"
                yield Reservation(name, outage.pool, outage.begin, outage.end, outage.nodes, 0, users, accounts, kept)
        if unclear:
            self.note(_listed(list(dict.fromkeys(unclear))), "reservations in other forms")

    def _reserved(self, maintenance: bool) -> Iterator[tuple[str, Record]]:
        """Yield the reservations for maintenance, or all others: from scontrol, then others from sacctmgr, with scontrol's keys.

        The flags of recurring reservations are removed for sacctmgr, which has a row for each repetition.
        """
        found = list(self.records.reservations.items())
        known = {(name, record.get("StartTime")) for name, record in found}
        for row in self.records.past_reservations:
            name, begin = row["Name"], row["TimeStart"]
            if (name, begin) not in known:
                known.add((name, begin))
                flags = re.sub("HOURLY|DAILY|WEEKLY", "", row.get("Flags", "").upper())
                now = self.records.reservations.get(name, {})
                who: Record = {key: now[key] for key in ("Users", "Accounts") if key in now}
                nodes = next((row[title] for title in ("NodeNames", "NodeName", "Nodes") if title in row), "")
                found.append((name, {"StartTime": begin, "EndTime": row["TimeEnd"], "Flags": flags, "Nodes": nodes, **who}))
        yield from ((name, record) for name, record in found if ("MAINT" in _flags(record)) == maintenance)

    def _missing(self, nodes: set[str], begin: int | datetime, end: datetime | None, announced: int | None) -> Iterator[Outage]:
        """Yield an outage for each pool of these nodes: with their number if they are its last ones, else with their numbers."""
        for pool in dict.fromkeys(self.pool_of[name] for name in sorted(nodes)):
            own = [name for name, other in self.pool_of.items() if other == pool]
            gone = [name in nodes for name in own]
            count = sum(gone)
            yield Outage(pool, begin, end, count if all(gone[-count:]) else _spans(gone), announced)

    def _shares(self) -> Iterator[Share]:
        seen: set[tuple[str, str]] = set()
        cluster = self.records.settings.get("ClusterName")
        noted = Counter[tuple[str, str]]()
        for row in self.records.associations:
            key = (row.get("Account", ""), row.get("User", ""))
            shares = row.get("Share", "1")
            if cluster and row.get("Cluster", cluster) != cluster:
                noted["belongs to another cluster and is left out", "belong to another cluster and are left out"] += 1
            elif key in seen or not key[0]:
                noted["is listed again for another partition and counts once", "are listed again for other partitions and count once"] += 1
            else:
                if not shares.isdecimal():
                    noted["has Fairshare=parent and gets 1 share", "have Fairshare=parent and get 1 share each"] += 1
                seen.add(key)
                priority = integer(row, "Priority") if row.get("Priority") else None
                yield Share(key[0], key[1] or None, row.get("ParentName") or None, int(shares) if shares.isdecimal() else 1, priority)
        for reasons, count in noted.items():
            self.note(f"{_count(count, 'association', *reasons)}.")

    def _qos(self) -> Iterator[Qos]:
        rows: dict[str, Record] = {}
        for row in self.records.qos:
            rows.setdefault(row.get("Name", ""), row)
        lists = {name: tuple(one for one in names_of(row.get("Preempt", "")) if one in rows and one != name) for name, row in rows.items()}
        if not self._preempts_by("qos"):
            lists = {}
        preempted = {name for names in lists.values() for name in names}
        for name, row in rows.items():
            if name:
                factor = row.get("UsageFactor") or "1"
                if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]*)?", factor):
                    text = f"UsageFactor must be a number, not {sanitize(factor)!r}; print it again with sacctmgr show qos"
                    raise LogError(text, "wrong_value")
                exempt = _grace(row, "PreemptExemptTime") if row.get("PreemptExemptTime", "") not in NOTHING else None
                own = (self._preempt_mode(row.get("PreemptMode", "")), _grace(row), exempt) if name in preempted else ()
                priority, reserves_not = integer(row, "Priority"), "NoReserve" in row.get("Flags", "")
                yield Qos(name, priority, float(factor), reserves_not, lists.get(name, ()), *own)

    def _preempts_by(self, kind: str) -> bool:
        settings = self.records.settings
        return settings.get("PreemptType", "").endswith(f"/{kind}") and settings.get("PreemptMode", "OFF").upper() not in NOTHING

    def _preempt_mode(self, own: str) -> str:
        """Return the mode in which jobs of a partition or QOS are preempted: `own`, else the cluster's; suspension counts as off."""
        text = self.records.settings.get("PreemptMode", "") if own.upper() in (*NOTHING - {"OFF"}, "CLUSTER") else own
        return next((mode for mode in PREEMPT_MODES if mode.upper() in text.upper().split(",")), "off")


def _licences(text: str, totals: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers of licences from the setting and from scontrol's list.

    >>> _licences("matlab:10,abaqus@server:5,idl", {"idl": "3"})
    {'matlab': 10, 'abaqus@server': 5, 'idl': 3}
    """
    shown = [f"{name}:{total}" for name, total in totals.items()]
    listed = (one.replace("*", ":").rpartition(":") for one in (*names_of(text), *shown))
    return {name or count: int(count) if name and count.isdecimal() else 1 for name, _, count in listed}


def _flags(record: Record) -> list[str]:
    return record.get("Flags", "").upper().replace("+", ",").split(",")


def _spans(chosen: list[bool]) -> str:
    """Return the numbers, from 1, of the chosen entries as ranges.

    >>> _spans([True, True, False, True])
    '1-2,4'
    """
    groups = groupby(enumerate(chosen, 1), key=lambda item: item[1])
    spans = [[number for number, _ in group] for is_chosen, group in groups if is_chosen]
    return ",".join(f"{one[0]}-{one[-1]}" if len(one) > 1 else str(one[0]) for one in spans)


def _length(record: Record, name: str) -> int:
    try:
        return seconds_of(record[name])
    except ValueError as error:
        raise LogError(
            f"{name} must be a length of time such as 1-12:00:00, not {sanitize(record[name])!r}; print it again with scontrol show"
        ) from error


def _grace(record: Record, name: str = "GraceTime") -> int:
    """Return a time of preemption, s, from a number of seconds or a duration as Slurm prints it."""
    text = record.get(name, "")
    return 0 if text in NOTHING else int(text) if text.isdecimal() and len(text) < 16 else _length(record, name)


def _moment(record: Record, name: str) -> datetime:
    try:
        return datetime.fromisoformat(record.get(name, "")).replace(tzinfo=None)  # Slurm prints local times
    except ValueError:
        text = sanitize(record.get(name, ""))
        raise LogError(f"{name} must be a time such as 2026-03-10T08:00:00, not {text!r}; unset SLURM_TIME_FORMAT") from None


def _pool_name(node: str, taken: list[str]) -> str:
    """Return a name for a pool: the first node's name without its number; if that name is taken, a new number is added."""
    base = re.sub(r"[0-9\W_]+$", "", node) or "nodes"
    return next(name for name in (base, *(f"{base}-{k}" for k in range(2, len(taken) + 3))) if name not in taken)


def _count(number: int, noun: str, one: str = "was", more: str = "were") -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'} {one if number == 1 else more}".rstrip()


def _listed(names: list[str]) -> str:
    shown = ", ".join(sanitize(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more"
