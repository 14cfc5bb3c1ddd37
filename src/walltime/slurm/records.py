"""What Slurm prints of a cluster, as records: scontrol show config, partition, node, reservation; sinfo --json; tables of sacctmgr."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from walltime.errors import LogError, WalltimeError
from walltime.wording import printable

Record = dict[str, str]

KINDS = {"PartitionName": "partitions", "NodeName": "nodes", "ReservationName": "reservations"}
"""What the records of scontrol begin with."""
MOST_NODES = 1_000_000
MOST_BYTES = 1 << 30
_SETTING = re.compile(r"([A-Za-z]\w*(?:\[[0-9]+\])?)\s*= (.*)")
_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w:/]*)=")
_HEADINGS = re.compile(
    r"No (reservations|partitions|nodes) in the system|Configuration data as of .*|\S*Slurmctld\(.*|.* (Plugins )?Configuration:"
)
_RANGE = re.compile(r"\[([0-9,-]*)\]")


class SlurmError(WalltimeError):
    """Slurm did not answer, or not what was expected."""


@dataclass
class ClusterRecords:
    """What the files say: records by kind. `settings`: of scontrol show config; `known`: the kinds that are in them, some of them empty."""

    settings: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, Record] = field(default_factory=dict)
    nodes: dict[str, Record] = field(default_factory=dict)
    reservations: dict[str, Record] = field(default_factory=dict)
    associations: list[Record] = field(default_factory=list)
    qos: list[Record] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    other_lines: int = 0
    repeated: int = 0


def file_text(path: str | os.PathLike[str]) -> str:
    """What Slurm printed into a file; raises LogError."""
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise LogError(f"{printable(path)}: is too large for what Slurm says of a cluster; see walltime slurm cluster-command")
        return Path(path).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LogError(f"{printable(path)}: cannot be read ({reason}); name a file with what Slurm has printed") from error


def read_records(texts: Iterable[tuple[str, str]]) -> ClusterRecords:
    """What these outputs say, each with its name, in any order, several of them in one text or each in its own; raises LogError."""
    records, jsons = ClusterRecords(), []
    for where, text in texts:
        if text.lstrip().startswith("{"):
            jsons.append((where, text))
        elif not read_text(text, records):
            raise LogError(f"{where}: is nothing that Slurm says of a cluster; walltime slurm cluster-command prints the commands to run")
    for where, text in jsons:
        _read_json(text, where, records)
    return records


def read_text(text: str, records: ClusterRecords) -> bool:
    """Add what the lines of an output say; returns whether it was anything."""
    before = (len(records.known), len(records.settings))
    anything = False
    kind: str | None = None  # of the record or table that the lines belong to
    lines: list[str] = []
    heading: list[str] = []
    for line in [*text.splitlines(), ""]:
        if lines and not line.startswith((" ", "\t")):  # a line of blanks alone may stand within a record
            assert kind is not None
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
        elif _is_heading(line):
            heading = [name.strip() for name in line.split("|")]
            records.known.add("associations" if "Account" in heading else "qos")
        elif heading and line.count("|") + 1 == len(heading):
            (records.associations if "Account" in heading else records.qos).append(dict(zip(heading, line.split("|"), strict=True)))
        elif nothing := _HEADINGS.fullmatch(line.strip()):
            records.known.update([nothing[1]] if nothing[1] else [])
        else:
            records.other_lines += 1
            continue
        anything = True
    return anything or before != (len(records.known), len(records.settings))


def _is_heading(line: str) -> bool:
    names = line.split("|")
    return ("Account" in names and "User" in names and "Share" in names) or ("Name" in names and "Priority" in names)


def _add_record(records: ClusterRecords, kind: str, text: str) -> None:
    """Add a record of scontrol: what stands first holds, so that a comment, which stands last, cannot say it anew."""
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
        raise LogError(f"{where}: is no JSON ({type(error).__name__}); print sinfo's JSON again") from error
    wanted = f"{where}: is no output of sinfo --json; walltime slurm cluster-command prints the commands to run"
    if not isinstance(document, dict):
        raise LogError(wanted)
    try:
        if isinstance(document.get("sinfo"), list):
            groups = [(one, _nodes_of_group(one, where)) for one in document["sinfo"]]
        elif isinstance(document.get("nodes"), list):
            groups = [(None, [_node(one)]) for one in document["nodes"]]
        else:
            raise LogError(wanted)
        for group, _ in groups:
            if group is not None:
                partition = _partition(group["partition"])
                records.known.add("partitions")
                records.partitions.setdefault(partition["PartitionName"], partition)
        for node in sorted((node for _, nodes in groups for node in nodes), key=lambda node: _natural(node["NodeName"])):
            _merge_node(records, node)  # sinfo has them by state
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, LogError):
            raise
        raise LogError(f"{where}: a value is missing or of another kind ({error}); print sinfo's JSON again") from error


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts n2 before n10."""
    return [(int(part), "") if part.isdecimal() and len(part) < 20 else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _merge_node(records: ClusterRecords, node: Record) -> None:
    """Add a node; what scontrol said of it holds, and one that sinfo names for each of its partitions is in all of them."""
    before = records.nodes.get(node["NodeName"])
    if before is None:
        _put(records, "nodes", node["NodeName"], node)
    elif before.get("sinfo") and node["Partitions"] not in before["Partitions"].split(","):
        before["Partitions"] += f",{node['Partitions']}"


def _node(one: Mapping[str, Any]) -> Record:
    """A node of sinfo --json of Slurm 22.05, or of scontrol show node --json."""
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
    """The nodes of an entry of sinfo --json since Slurm 23.02: those of a partition in the same state."""
    least, most = {}, {}
    for name in ("cpus", "memory", "weight"):
        least[name], most[name] = int(one[name]["minimum"]), int(one[name]["maximum"])
    names = [str(name) for name in one["nodes"]["nodes"]]
    if names and least["cpus"] != most["cpus"]:
        raise LogError(
            f"{where}: sinfo says of {len(names)} nodes together that they have {least['cpus']} to {most['cpus']} processors; "
            "add the output of scontrol -o show node, and leave this one out",
            "ambiguous_nodes",
        )
    return [
        {
            "NodeName": name,
            "CPUTot": str(most["cpus"]),
            "Gres": str(one["gres"]["total"] or ""),
            "RealMemory": str(least["memory"]),
            "State": "+".join(map(str, one["node"]["state"])).upper(),
            "Partitions": str(one["partition"]["name"]),
            "Weight": str(most["weight"]),
            "sinfo": "yes",
        }
        for name in names
    ]


def _partition(one: Mapping[str, Any]) -> Record:
    """A partition of sinfo --json, as scontrol would say it."""
    inner = one.get("partition", {})
    shared, exclusive = (str(inner.get(name) or "NO") for name in ("oversubscribe", "exclusive"))
    if "oversubscribe" not in inner and one["maximums"].get("oversubscribe", {}).get("jobs") == 0:
        exclusive = "NODE"  # before 26.05, where it is 0 of all partitions
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
    """A time limit of JSON, which is in minutes, as scontrol writes it."""
    if value.get("infinite") or not value.get("set"):
        return "UNLIMITED"
    minutes = int(value["number"])
    return f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00"


# ------------------------------------------------------------------------------------------------------------- lists of nodes


def expand(text: str) -> list[str]:
    """The names in a list of nodes.

    >>> expand("n[1-3,07-08],login"), expand("r[1-2]c[0-1]"), expand("(null)")
    (['n1', 'n2', 'n3', 'n07', 'n08', 'login'], ['r1c0', 'r1c1', 'r2c0', 'r2c1'], [])
    """
    if text in ("", "(null)", "N/A", "None"):
        return []
    names: list[str] = []
    for item in re.split(r",(?![^\[]*\])", text):
        names.extend(_expand_one(item, MOST_NODES - len(names)))
    return names


def _expand_one(item: str, most: int) -> Iterator[str]:
    """The names of one element such as `r[1-2]c[0-1]`."""
    match = _RANGE.search(item)
    if match is None:
        if "[" in item:
            raise LogError(f"{item[:40]!r} is no list of nodes; print it again with scontrol show")
        yield item
        return
    numbers: list[str] = []
    for part in match[1].split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 20:
            raise LogError(f"{item[:40]!r} is no list of nodes; print it again with scontrol show")
        low, high = int(first), int(last) if dash else int(first)
        if high - low >= most - len(numbers):
            raise LogError(f"{item[:40]!r} has more than {MOST_NODES:,} nodes; it must be a list of nodes of one cluster")
        numbers += [str(number).zfill(len(first)) for number in range(low, high + 1)]
    count = 0
    for number in numbers:
        for rest in _expand_one(item[match.end() :], most):
            count += 1
            if count > most:
                raise LogError(
                    f"{item[:40]!r} has more than {MOST_NODES:,} nodes; it must be a list of nodes of one cluster", "too_many_nodes"
                )
            yield item[: match.start()] + number + rest
