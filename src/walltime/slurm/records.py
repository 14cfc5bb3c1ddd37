"""Read records from Slurm's output: scontrol show config, partition, node, reservation; sinfo --json; tables of sacctmgr."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from walltime.errors import LogError, WalltimeError
from walltime.wording import printable

Record = dict[str, str]

KINDS = {"PartitionName": "partitions", "NodeName": "nodes", "ReservationName": "reservations"}
"""The kinds of scontrol's records, by their first key."""
MOST_NODES = 1_000_000
MOST_BYTES = 1 << 30
SEE_COMMANDS = "walltime slurm cluster-command prints the commands to run"
_SETTING = re.compile(r"([A-Za-z]\w*(?:\[[0-9]+\])?)\s*= (.*)")
_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w:/]*)=")
_HEADINGS = re.compile(
    r"No (reservations|partitions|nodes) in the system|Configuration data as of .*|\S*Slurmctld\(.*|.* (Plugins )?Configuration:"
)
_TABLES = {"associations": ("Account", "User", "Share"), "qos": ("Name", "Priority"), "past_reservations": ("Name", "TimeStart", "TimeEnd")}
"""Columns by which the tables of sacctmgr are recognised."""
_RANGE = re.compile(r"\[([0-9,-]*)\]")


class SlurmError(WalltimeError):
    """A command of Slurm failed, or its output is not as expected."""


@dataclass
class ClusterRecords:
    """Records by kind. `settings`: those of scontrol show config; `known`: the kinds that were found, some of them empty."""

    settings: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, Record] = field(default_factory=dict)
    nodes: dict[str, Record] = field(default_factory=dict)
    reservations: dict[str, Record] = field(default_factory=dict)
    associations: list[Record] = field(default_factory=list)
    qos: list[Record] = field(default_factory=list)
    past_reservations: list[Record] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    other_lines: int = 0
    repeated: int = 0


def file_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file with Slurm's output; raises LogError."""
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise LogError(f"{printable(path)}: too large for Slurm's description of a cluster; {SEE_COMMANDS}")
        return Path(path).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LogError(f"{printable(path)}: cannot be read ({reason}); name a file with Slurm's output") from error


def read_records(texts: Iterable[tuple[str, str]]) -> ClusterRecords:
    """Return the records in these outputs, each with its name, in any order, one or several in a text; raises LogError."""
    records, jsons = ClusterRecords(), []
    for where, text in texts:
        if text.lstrip().startswith("{"):
            jsons.append((where, text))
        elif not read_text(text, records):
            raise LogError(f"{where}: not a description of a cluster by Slurm; {SEE_COMMANDS}")
    for where, text in jsons:
        _read_json(text, where, records)
    return records


def read_text(text: str, records: ClusterRecords) -> bool:
    """Add the records of an output's lines, and return whether any line was understood."""
    understood = False
    kind = ""  # of the record that the lines belong to
    lines: list[str] = []
    heading: list[str] = []
    rows: list[Record] = []
    for line in [*text.splitlines(), ""]:
        if lines and not line.startswith((" ", "\t")):  # a line of blanks alone may stand within a record
            _add_record(records, kind, " ".join(lines))
            lines = []
        if not line.strip():
            heading = []
            continue
        key = line.partition("=")[0]
        if lines:
            lines.append(line.strip())
        elif key in KINDS:
            kind, lines, heading = KINDS[key], [line.strip()], []
        elif setting := _SETTING.fullmatch(line):
            records.settings.setdefault(setting[1], setting[2].strip())
            records.known.add("settings")
        elif (table := _table(line)) is not None:
            heading, rows = [name.strip() for name in line.split("|")], getattr(records, table)
            records.known.add(table)
        elif heading and line.count("|") + 1 == len(heading):
            rows.append(dict(zip(heading, line.split("|"), strict=True)))
        elif nothing := _HEADINGS.fullmatch(line.strip()):
            records.known.update([nothing[1]] if nothing[1] else [])
        else:
            records.other_lines += 1
            continue
        understood = True
    return understood


def _table(line: str) -> str | None:
    """Return the kind of the table of sacctmgr that has this heading; None for other lines."""
    names = line.split("|")
    return next((kind for kind, needed in _TABLES.items() if all(name in names for name in needed)), None)


def _add_record(records: ClusterRecords, kind: str, text: str) -> None:
    """Add a record of scontrol. The first value of a key counts, so that a comment, which comes last, cannot replace it."""
    record: Record = {}
    keys = list(_KEY.finditer(text))
    for key, after in zip(keys, [*keys[1:], None], strict=True):
        record.setdefault(key[1], text[key.end() : after.start() if after else None].strip())
    name = next(iter(record.values()))
    if name:
        _put(records, kind, name, record)
    else:
        records.other_lines += 1


def _put(records: ClusterRecords, kind: str, name: str, record: Record) -> None:
    records.known.add(kind)
    named: dict[str, Record] = getattr(records, kind)
    records.repeated += name in named
    named.setdefault(name, record)


# ------------------------------------------------------------------------------------------------------------------ sinfo --json


def _read_json(text: str, where: str, records: ClusterRecords) -> None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LogError(f"{where}: not valid JSON ({type(error).__name__}); print sinfo's JSON again") from error
    groups = document.get("sinfo") if isinstance(document, dict) else None
    single = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(groups, list) and not isinstance(single, list):
        raise LogError(f"{where}: not the output of sinfo --json; {SEE_COMMANDS}")
    try:
        if isinstance(groups, list):
            nodes = [node for group in groups for node in _nodes_of_group(group, where)]
            for partition in [_partition(group["partition"]) for group in groups]:
                records.known.add("partitions")
                records.partitions.setdefault(partition["PartitionName"], partition)
        else:
            nodes = [_node(one) for one in single or ()]
        for node in sorted(nodes, key=lambda node: _natural(node["NodeName"])):  # sinfo has them by state
            before = records.nodes.get(node["NodeName"])
            if before is None:
                _put(records, "nodes", node["NodeName"], node)
            elif before.get("sinfo") and node["Partitions"] not in before["Partitions"].split(","):
                before["Partitions"] += f",{node['Partitions']}"  # sinfo lists a node once for each partition; scontrol's record counts
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, LogError):
            raise
        raise LogError(f"{where}: a value is missing or of another type ({error}); print sinfo's JSON again") from error


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts n2 before n10."""
    return [(int(part), "") if part.isdecimal() and len(part) < 20 else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _node(one: Mapping[str, Any]) -> Record:
    """Return a node of sinfo --json of Slurm 22.05, or of scontrol show node --json."""
    states = [one["state"]] if isinstance(one["state"], str) else list(one["state"])
    return {
        "NodeName": str(one["name"]),
        "CPUTot": str(int(one["cpus"])),
        "CPUEfctv": str(int(one.get("effective_cpus") or one["cpus"])),
        "Gres": str(one.get("gres") or ""),
        "RealMemory": str(int(one["real_memory"])),
        "State": "+".join([*map(str, states), *map(str, one.get("state_flags", ()))]).upper(),
        "Partitions": ",".join(map(str, one["partitions"])),
        "Weight": str(int(one.get("weight", 1))),
    }


def _nodes_of_group(one: Mapping[str, Any], where: str) -> list[Record]:
    """Return the nodes of an entry of sinfo --json since Slurm 23.02: a partition's nodes in the same state."""
    cpus, most_cpus = (int(one["cpus"][bound]) for bound in ("minimum", "maximum"))
    common = {
        "CPUTot": str(most_cpus),
        "Gres": str(one["gres"]["total"] or ""),
        "RealMemory": str(int(one["memory"]["minimum"])),
        "State": "+".join(map(str, one["node"]["state"])).upper(),
        "Partitions": str(one["partition"]["name"]),
        "Weight": str(int(one["weight"]["maximum"])),
        "sinfo": "yes",
    }
    names = [str(name) for name in one["nodes"]["nodes"]]
    if names and cpus != most_cpus:
        raise LogError(
            f"{where}: sinfo lists {len(names)} nodes together that have {cpus} to {most_cpus} processors; add the output of "
            "scontrol -o show node, and leave this one out",
            "ambiguous_nodes",
        )
    return [{"NodeName": name, **common} for name in names]


def _partition(one: Mapping[str, Any]) -> Record:
    """Return a partition of sinfo --json as a record of scontrol."""
    inner = one.get("partition", {})
    shared, exclusive = (str(inner.get(name) or "NO") for name in ("oversubscribe", "exclusive"))
    if "oversubscribe" not in inner and one["maximums"].get("oversubscribe", {}).get("jobs") == 0:
        exclusive = "NODE"  # before 26.05, which has 0 for all partitions
    return {
        "PartitionName": str(one["name"]),
        "Nodes": str(one["nodes"]["configured"]),
        "Default": "YES" if "DEFAULT" in one.get("flags", ()) else "NO",
        "MaxTime": _minutes(one["maximums"]["time"]),
        "OverSubscribe": "EXCLUSIVE" if "NODE" in exclusive.upper().split(",") else shared,
        "PriorityTier": str(int(one["priority"]["tier"])),
        "PriorityJobFactor": str(int(one["priority"]["job_factor"])),
        "State": "+".join(map(str, inner.get("state") or ["UP"])),
        "QoS": str(one.get("qos", {}).get("assigned") or "N/A"),
    }


def _minutes(value: Mapping[str, Any]) -> str:
    """Return a time limit of JSON, which is in minutes, in scontrol's form."""
    if value.get("infinite") or not value.get("set"):
        return "UNLIMITED"
    minutes = int(value["number"])
    return f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00"


# ------------------------------------------------------------------------------------------------------------- lists of nodes


def expand(text: str) -> list[str]:
    """Return the names in a list of nodes; raises LogError.

    >>> expand("n[1-3,07-08],login"), expand("r[1-2]c[0-1]"), expand("(null)")
    (['n1', 'n2', 'n3', 'n07', 'n08', 'login'], ['r1c0', 'r1c1', 'r2c0', 'r2c1'], [])
    """
    if text in ("", "(null)", "N/A", "None"):
        return []
    names: list[str] = []
    for item in re.split(r",(?![^\[]*\])", text):
        parts = _RANGE.split(item)  # every second one is the inside of brackets
        if any("[" in part for part in parts[::2]):
            raise LogError(f"{item[:40]!r} is not a list of nodes; print it again with scontrol show")
        choices = [_numbers(part, item) if k % 2 else [part] for k, part in enumerate(parts)]
        if math.prod(map(len, choices)) > MOST_NODES - len(names):
            raise _too_many(item)
        names += map("".join, itertools.product(*choices))
    return names


def _numbers(text: str, item: str) -> list[str]:
    """Return the numbers in a list such as `1-3,07`, the inside of an `item`'s brackets."""
    numbers: list[str] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 20:
            raise LogError(f"{item[:40]!r} is not a list of nodes; print it again with scontrol show")
        low, high = int(first), int(last) if dash else int(first)
        if high - low >= MOST_NODES - len(numbers):
            raise _too_many(item)
        numbers += [str(number).zfill(len(first)) for number in range(low, high + 1)]
    return numbers


def _too_many(item: str) -> LogError:
    return LogError(f"{item[:40]!r} has more than {MOST_NODES:,} nodes; it must be a list of nodes of one cluster", "too_many_nodes")
