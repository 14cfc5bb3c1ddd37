"""Records of a cluster from the JSON of sinfo, scontrol, sacctmgr and slurmrestd, with the keys of their text output."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from walltime.errors import LogError
from walltime.slurm_values import UNLIMITED, elements, members, number_of

Record = dict[str, str]
Json = Mapping[str, Any]
SEE_COMMANDS = "walltime slurm cluster-command prints the commands to run"
_PARENT = 0x7FFFFFFF
"""The number that Slurm stores for Fairshare=parent."""
_QOS_LIMITS = {
    "GrpJobs": "active_jobs/count", "MaxJobsPU": "jobs/active_jobs/per/user", "MaxJobsPA": "jobs/active_jobs/per/account",
    "GrpTRES": "tres/total", "GrpTRESMins": "tres/minutes/total", "GrpTRESRunMins": "tres/minutes/per/qos",
    "MaxTRESMins": "tres/minutes/per/job", "MaxTRESRunMinsPA": "tres/minutes/per/account", "MaxTRESRunMinsPU": "tres/minutes/per/user",
    "MaxTRES": "tres/per/job", "MaxTRESPA": "tres/per/account", "MaxTRESPU": "tres/per/user", "GrpWall": "wall_clock/per/qos",
    "MaxWall": "wall_clock/per/job",
}  # fmt: skip
_ASSOCIATION_LIMITS = {
    "GrpJobs": "jobs/per/count", "MaxJobs": "jobs/active", "GrpTRES": "tres/total", "GrpTRESMins": "tres/group/minutes",
    "GrpTRESRunMins": "tres/group/active", "MaxTRESMins": "tres/minutes/per/job", "MaxTRES": "tres/per/job",
    "GrpWall": "per/account/wall_clock", "MaxWall": "jobs/per/wall_clock",
}  # fmt: skip
"""The limits in sacctmgr's tables by their paths in `limits/max` of a QOS, and in `max` of an association."""


def json_records(text: str, where: str) -> dict[str, list[Record]]:
    """Return the records in a document, or in an array of records as `jq` prints it, by kind. Raises LogError.

    It reads the nodes, partitions, reservations, associations and QOS of data parsers 0.0.37 to 0.0.45.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LogError(f"{where}: not valid JSON; print it again") from error
    if isinstance(document, list):
        document = {_kind_of(document): document}
    lists = {kind: document[kind] for kind in _READERS if isinstance(document, dict) and isinstance(document.get(kind), list)}
    if not lists:
        raise LogError(f"{where}: not the description of a cluster in Slurm's JSON, such as the output of sinfo --json; {SEE_COMMANDS}")
    found: dict[str, list[Record]] = {}
    try:
        for kind, entries in lists.items():
            if kind == "sinfo":
                found["nodes"] = [node for group in entries for node in _nodes_of_group(group, where)]
                found["partitions"] = [_partition(group["partition"]) for group in entries]
            else:
                found[kind] = [_READERS[kind](one) for one in entries]
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, LogError):
            raise
        raise LogError(f"{where}: a value is missing or of another type ({error}); print Slurm's JSON again") from error
    if "nodes" in found:
        found["nodes"].sort(key=lambda node: _natural(node["NodeName"]))  # sinfo lists them by state
    return found


def _kind_of(entries: Sequence[Any]) -> str:
    """Return the kind of the records in an array, from the keys of the first one."""
    marks = {"associations": {"account", "max"}, "sinfo": {"partition"}, "nodes": {"real_memory"}, "partitions": {"maximums"}}
    marks |= {"reservations": {"node_list"}, "qos": {"limits"}}
    first = entries[0] if entries and isinstance(entries[0], dict) else {}
    return next((kind for kind, keys in marks.items() if keys <= first.keys()), "")


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which n2 comes before n10."""
    return [(int(part), "") if part.isdecimal() and len(part) < 20 else (-1, part) for part in re.split(r"([0-9]+)", name)]


def value_at(one: Any, path: str) -> Any:
    """Return the value at a path such as `meta/slurm`; None if it does not exist."""
    for name in path.split("/"):
        one = one.get(name) if isinstance(one, Mapping) else None
    return one


def _whole(value: Any, otherwise: int = 0) -> int:
    """Return a number that is written plainly or as an object; return `otherwise` if it is unset or infinite."""
    number = number_of(value, "number")
    return otherwise if number is None or number == UNLIMITED else number


def _number(value: Any) -> str:
    number = number_of(value, "number")
    return "" if number is None or number < 0 else str(number)


def _words(value: Any, between: str = ",") -> str:
    return value if isinstance(value, str) else between.join(map(str, value or ()))


def _texts(one: Json, **places: str) -> Record:
    return {name: str(one.get(place) or "") for name, place in places.items()}


def _minutes(value: Any) -> str:
    """Return a time limit, given in minutes, in scontrol's form."""
    number = number_of(value, "time")
    if number is None or number < 0 or number >= 2**32 - 2:
        return "UNLIMITED"
    return f"{number // 1440}-{number // 60 % 24:02}:{number % 60:02}:00"


def _resources(value: Any) -> str:
    parts = []
    for entry in elements(value, "tres"):
        one = members(entry, "tres")
        name = f"{one['type']}/{one['name']}" if one.get("name") else str(one["type"])
        parts.append(f"{name}={_whole(one.get('count'))}{'M' * (name == 'mem')}")
    return ",".join(parts)


def _limits(one: Json, root: str, places: Mapping[str, str]) -> Record:
    limits = {}
    for name, place in places.items():
        value = value_at(one, f"{root}/{place}")
        limits[name] = _resources(value) if "TRES" in name else _minutes(value) if "Wall" in name else _number(value)
    return {name: "" if limit == "UNLIMITED" else limit for name, limit in limits.items()}


def _node(one: Json) -> Record:
    """Return a node of scontrol or slurmrestd, or of sinfo of Slurm 22.05."""
    states = [one["state"]] if isinstance(one["state"], str) else list(one["state"])
    return {
        "NodeName": str(one["name"]),
        "CPUTot": str(_whole(one["cpus"])),
        "CPUEfctv": str(_whole(one.get("effective_cpus")) or _whole(one["cpus"])),
        "Gres": str(one.get("gres") or ""),
        "RealMemory": str(_whole(one["real_memory"])),
        "MemSpecLimit": str(_whole(one.get("specialized_memory"))),
        "AvailableFeatures": _words(one.get("features")),
        "ActiveFeatures": _words(one.get("active_features")),
        "State": "+".join([*map(str, states), *map(str, one.get("state_flags", ()))]).upper(),
        "Partitions": _words(one["partitions"]),
        "Weight": str(_whole(one.get("weight"), 1)),
        "Reason": _reason(one.get("reason"), one.get("reason_changed_at")),
    }


def _utc(value: Any) -> str:
    """Return a Unix time in UTC, in the form in which scontrol prints local times."""
    return datetime.fromtimestamp(_whole(value), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _reason(text: Any, time: Any) -> str:
    """Return the reason for a node's state, and the time at which it was set, in scontrol's form."""
    return f"{text or ''} [@{_utc(time)}]" if _whole(time) > 0 else str(text or "")


def _nodes_of_group(one: Json, where: str) -> list[Record]:
    """Return the nodes of an entry of sinfo --json since Slurm 23.02, which has a partition's nodes in the same state."""
    cpus, most_cpus = (_whole(one["cpus"][bound]) for bound in ("minimum", "maximum"))
    common = {
        "CPUTot": str(most_cpus),
        "Gres": str(one["gres"]["total"] or ""),
        "RealMemory": str(_whole(one["memory"]["minimum"])),
        "AvailableFeatures": _words(value_at(one, "features/total")),
        "State": "+".join(map(str, one["node"]["state"])).upper(),
        "Partitions": str(one["partition"]["name"]),
        "Weight": str(_whole(one["weight"]["maximum"])),
        "Reason": _reason(value_at(one, "reason/description"), value_at(one, "reason/time")),
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


def _partition(one: Json) -> Record:
    """Return a partition; up to data parser 0.0.38, the keys are not nested."""
    if "maximums" not in one:
        return {
            "PartitionName": str(one["name"]),
            "Nodes": str(one["nodes"] or ""),
            "Default": "YES" if "DEFAULT" in _words(one.get("flags")).upper().split(",") else "NO",
            "MaxTime": _minutes(one.get("max_time_limit")),
            "DefaultTime": _minutes(one.get("default_time_limit")),
            "PriorityTier": str(_whole(one.get("priority_tier"))),
            "PriorityJobFactor": str(_whole(one.get("priority_job_factor"))),
            "State": str(one.get("state") or "UP").upper(),
            "QoS": str(one.get("qos") or "N/A"),
        }
    inner = one.get("partition", {})
    shared, exclusive = (str(inner.get(name) or "NO") for name in ("oversubscribe", "exclusive"))
    if "oversubscribe" not in inner and one["maximums"].get("oversubscribe", {}).get("jobs") == 0:
        exclusive = "NODE"  # before Slurm 26.05; from then on, it is 0 for all partitions
    return {
        "PartitionName": str(one["name"]),
        "Nodes": str(one["nodes"]["configured"]),
        "Default": "YES" if "DEFAULT" in one.get("flags", ()) else "NO",
        "MaxTime": _minutes(one["maximums"]["time"]),
        "DefaultTime": _minutes(value_at(one, "defaults/time")),
        "OverSubscribe": "EXCLUSIVE" if "NODE" in exclusive.upper().split(",") else shared,
        "PriorityTier": str(_whole(one["priority"]["tier"])),
        "PriorityJobFactor": str(_whole(one["priority"]["job_factor"])),
        "State": "+".join(map(str, inner.get("state") or ["UP"])),
        "QoS": str(one.get("qos", {}).get("assigned") or "N/A"),
    }


def _reservation(one: Json) -> Record:
    """Return a reservation; its absolute times are printed in UTC."""
    return {
        "ReservationName": str(one["name"]),
        "StartTime": _utc(one.get("start_time")),
        "EndTime": _utc(one.get("end_time")),
        "NodeCnt": _number(one.get("node_count")),
        "CoreCnt": _number(one.get("core_count")),
        "Flags": _words(one.get("flags")),
        **_texts(one, Nodes="node_list", Features="features", PartitionName="partition", Users="users", Accounts="accounts"),
    }


def _qos(one: Json) -> Record:
    factor = value_at(one, "usage_factor/number") if isinstance(one.get("usage_factor"), Mapping) else one.get("usage_factor")
    return {
        "Name": str(one["name"]),
        "Priority": _number(one.get("priority")),
        "Flags": _words(one.get("flags")),
        "UsageFactor": "" if factor is None else f"{float(factor):f}",
        "Preempt": _words(value_at(one, "preempt/list")),
        "PreemptMode": _words(value_at(one, "preempt/mode")),
        "PreemptExemptTime": _number(value_at(one, "preempt/exempt_time")),
        "GraceTime": _number(value_at(one, "limits/grace_time")),
        **_limits(one, "limits/max", _QOS_LIMITS),
    }


def _association(one: Json) -> Record:
    shares = _whole(one.get("shares_raw"), 1)
    return {
        "Account": str(one["account"]),
        **_texts(one, Cluster="cluster", User="user", Partition="partition", ParentName="parent_account"),
        "Share": "parent" if shares == _PARENT else str(shares),
        **_limits(one, "max", _ASSOCIATION_LIMITS),
    }


_READERS: Mapping[str, Callable[[Json], Record]] = {
    "sinfo": _partition,
    "nodes": _node,
    "partitions": _partition,
    "reservations": _reservation,
    "associations": _association,
    "qos": _qos,
}
"""The functions that convert a record, by the key of the list in a document."""
