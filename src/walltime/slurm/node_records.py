"""Read values from the records of nodes and from other records of a Slurm cluster."""

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from walltime.errors import LogError
from walltime.slurm.features import NOTHING
from walltime.slurm.json_records import Record
from walltime.slurm.records import ClusterRecords, expand
from walltime.wording import sanitize

_UNAVAILABLE = {"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR"}
_SET_AT = re.compile(r"\[[^\[\]@]*@([^\[\]@]+)\]$")
"""The end of the reason for a node's state: its author and time."""


def partitions_of_nodes(records: ClusterRecords) -> dict[str, set[str]]:
    """Return the partitions of each node, from the nodes' records or, without them, from the partitions' records."""
    found = {name: {one for one in node.get("Partitions", "").split(",") if one not in NOTHING} for name, node in records.nodes.items()}
    if not any(found.values()):
        for partition, record in records.partitions.items():
            nodes = record.get("Nodes", "")
            for name in records.nodes if nodes == "ALL" else expand(nodes):
                if name in found:
                    found[name].add(partition)
    return found


def states_of(node: Record) -> list[str]:
    """Return the words of a node's state such as `DOWN*` or `IDLE+DRAIN`."""
    return re.split(r"[+*~#!%$@^-]+", node.get("State", "").upper())


def is_down(node: Record) -> bool:
    """Return whether a node is down or drained."""
    return not _UNAVAILABLE.isdisjoint(states_of(node))


def down_since(node: Record) -> datetime | None:
    """Return the time at which the reason for a node's state was set, in the time zone of Slurm's output; None if it is unknown.

    >>> down_since({"Reason": "broken fan [root@2026-05-01T10:00:00]"})
    datetime.datetime(2026, 5, 1, 10, 0)
    """
    found = _SET_AT.search(node.get("Reason", ""))
    with suppress(ValueError):
        return datetime.fromisoformat(found[1]).replace(tzinfo=None) if found else None
    return None


def gres_of(text: str) -> Counter[str]:
    """Return the generic resources (GRES) of a node, by name and type.

    >>> gres_of("gpu:a100:4(S:0-1),gpu:a100:2,shard,mps:200")
    Counter({'mps': 200, 'gpu:a100': 6, 'shard': 1})
    """
    found = Counter[str]()
    for one in names_of(re.sub(r"\([^)]*\)", "", text)):
        name, _, number = one.rpartition(":")
        counted = number.isdecimal() and len(number) < 10
        found[name if counted else one] += int(number) if counted and name else 1
    return found


def gpus_by_type(nodes: Iterable[Record]) -> Counter[str]:
    """Return the number of GPUs of each type; GPUs without a type count as `gpu`."""
    totals = sum((gres_of(node.get("Gres", "")) for node in nodes), Counter[str]())
    return Counter({name.partition(":")[2] or "gpu": count for name, count in totals.items() if name.split(":")[0] == "gpu"})


def features_of(node: Record) -> list[str]:
    """Return the features of a node, sorted."""
    return sorted(names_of(node.get("ActiveFeatures") or node.get("AvailableFeatures", "")))


def procs_of(node: Record) -> int:
    """Return the number of processors of a node that jobs may use."""
    return integer(node, "CPUEfctv") or integer(node, "CPUTot")


def names_of(text: str) -> list[str]:
    """Split a list at commas, and return the names."""
    return [one.strip() for one in text.split(",") if one.strip() not in NOTHING]


def integer(record: Record, name: str, otherwise: int = 0) -> int:
    """Return a whole number of a record, or `otherwise` if it is not set; raises LogError."""
    text = record.get(name, "")
    if text in NOTHING:
        return otherwise if text != "0" else 0
    if not text.isdecimal() or len(text) > 15:
        raise LogError(f"{name} must be a whole number, not {sanitize(text)!r}; print it again with scontrol show")
    return int(text)
