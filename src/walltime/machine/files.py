"""Machines as files: cluster.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from walltime.errors import LogError, WorkloadError
from walltime.machine.machine import MOST, Limit, Machine, Outage, Partition, Pool, Qos, Share

TABLES = {
    "pool": ("name", "nodes", "procs"),
    "partition": ("name", "pools", "exclusive", "tier", "max_time", "job_factor"),
    "outage": ("pool", "nodes", "begin", "end", "announced"),
    "limit": ("by", "partition", "jobs", "procs"),
    "share": ("account", "user", "parent", "shares"),
    "qos": ("name", "priority"),
}
"""The keys of each kind of table; those of pools and limits also have the name of the second resource."""


NEEDED = {
    "pool": ("name", "nodes", "procs"),
    "partition": ("name", "pools"),
    "outage": ("pool", "begin"),
    "limit": (),
    "share": ("account",),
    "qos": ("name",),
}
"""The keys that a table must have."""


def read_machine(path: str | os.PathLike[str]) -> Machine:
    """The machine that a file like cluster.toml describes; raises LogError, in one line, for a file that cannot be read or used."""
    where = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise LogError(f"{where}: cannot be read ({(error.strerror or str(error)).lower()}); name a file like cluster.toml") from error
    except UnicodeDecodeError as error:
        raise LogError(f"{where}: this is no TOML ({error}); see the guide on machines") from error
    return parse_machine(text, where)


def parse_machine(text: str, where: str) -> Machine:
    """The machine of a file with this content, named `where` in errors; raises LogError."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists thousands deep
        raise LogError(f"{where}: this is no TOML ({error}); see the guide on machines") from error
    try:
        return machine_of(found)
    except WorkloadError as error:
        raise LogError(f"{where}: {error}") from error


def machine_of(found: Mapping[str, Any]) -> Machine:
    """The machine of a parsed file; raises WorkloadError."""
    second = found.get("second", "gpus")
    if not isinstance(second, str) or not second.isidentifier():
        raise WorkloadError(f"second must be the name of a column, such as gpus, not {second!r}")
    unknown = sorted(set(found) - {"name", "second", "policy", "slurm", *TABLES})
    if unknown:
        tables = ", ".join(f"[[{name}]]" for name in TABLES)
        raise WorkloadError(f"unknown key {unknown[0]!r}; known are name, second, policy, [slurm], {tables}")
    policy = found.get("policy")
    if policy is not None and not isinstance(policy, str):
        raise WorkloadError(f"policy must be written as on the command line, such as 'easy', not {policy!r}")
    rows = {name: _rows(found, name, second) for name in TABLES}
    return Machine(
        pools=tuple(Pool(row["name"], row["nodes"], row["procs"], row.get(second, 0)) for row in rows["pool"]),
        partitions=tuple(
            Partition(
                row["name"],
                tuple(row["pools"]),
                bool(row.get("exclusive", False)),
                row.get("tier", 0),
                length_of(row.get("max_time")),
                row.get("job_factor", 1),
            )
            for row in rows["partition"]
        ),
        outages=tuple(
            Outage(row["pool"], _time(row["begin"]), _time(row.get("end")), row.get("nodes"), _time(row.get("announced")))
            for row in rows["outage"]
        ),
        limits=tuple(
            Limit(_names(row.get("by", "user")), row.get("partition"), row.get("jobs"), row.get("procs"), row.get(second))
            for row in rows["limit"]
        ),
        second=second,
        name=str(found.get("name", "machine")),
        policy=policy,
        slurm=_settings(found.get("slurm", {})),
        shares=tuple(Share(row["account"], row.get("user"), row.get("parent"), row.get("shares", 1)) for row in rows["share"]),
        qos=tuple(Qos(row["name"], row.get("priority", 0)) for row in rows["qos"]),
    )


def write_machine(machine: Machine) -> str:
    """The text of a file that describes this machine."""
    lines = [f"name = {_text(machine.name)}", f"second = {_text(machine.second)}"]
    lines += [f"policy = {_text(machine.policy)}"] if machine.policy is not None else []
    if machine.slurm:
        lines += ["", "[slurm]", *(f"{_text(name)} = {_text(value)}" for name, value in machine.slurm.items())]
    for pool in machine.pools:
        lines += ["", "[[pool]]", f"name = {_text(pool.name)}", f"nodes = {pool.nodes}", f"procs = {pool.procs}"]
        lines += [f"{machine.second} = {pool.second}"] if pool.second else []
    for partition in machine.partitions:
        lines += ["", "[[partition]]", f"name = {_text(partition.name)}", f"pools = [{', '.join(map(_text, partition.pools))}]"]
        lines += ["exclusive = true"] if partition.exclusive else []
        lines += [f"tier = {partition.tier}"] if partition.tier else []
        lines += [f"max_time = {partition.max_time}"] if partition.max_time is not None else []
        lines += [f"job_factor = {partition.job_factor}"] if partition.job_factor != 1 else []
    for outage in machine.outages:
        lines += ["", "[[outage]]", f"pool = {_text(outage.pool)}"]
        values = (("nodes", outage.nodes), ("begin", outage.begin), ("end", outage.end), ("announced", outage.announced))
        lines += [f"{name} = {value.isoformat() if isinstance(value, datetime) else value}" for name, value in values if value is not None]
    for limit in machine.limits:
        lines += ["", "[[limit]]", f"by = [{', '.join(map(_text, limit.by))}]"]
        lines += [f"partition = {_text(limit.partition)}"] if limit.partition is not None else []
        most = (("jobs", limit.jobs), ("procs", limit.procs), (machine.second, limit.second))
        lines += [f"{name} = {value}" for name, value in most if value is not None]
    for share in machine.shares:
        lines += ["", "[[share]]", f"account = {_text(share.account)}"]
        lines += [f"{name} = {_text(value)}" for name, value in (("user", share.user), ("parent", share.parent)) if value is not None]
        lines += [f"shares = {share.shares}"] if share.shares != 1 else []
    for qos in machine.qos:
        lines += ["", "[[qos]]", f"name = {_text(qos.name)}", f"priority = {qos.priority}"]
    return "\n".join(lines) + "\n"


def _settings(found: Any) -> dict[str, str]:
    """The table [slurm]: settings by name, as text."""
    if not isinstance(found, dict):
        raise WorkloadError("slurm must be written as a table, [slurm], with settings such as SchedulerParameters")
    for name, value in found.items():
        if not isinstance(value, (str, int, float)):
            raise WorkloadError(f"[slurm]: {name} must be a text or a number, not {value!r}")
    return {name: {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value) for name, value in found.items()}


def _rows(found: Mapping[str, Any], name: str, second: str) -> list[dict[str, Any]]:
    rows = found.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise WorkloadError(f"{name} must be written as [[{name}]], once for each")
    known = [*TABLES[name], *([second] if name in ("pool", "limit") else [])]
    needed = NEEDED[name]
    for k, row in enumerate(rows, 1):
        for key in row:
            if key not in known:
                raise WorkloadError(f"[[{name}]] number {k}: unknown key {key!r}; known are {', '.join(known)}")
        for key in needed:
            if key not in row:
                raise WorkloadError(f"[[{name}]] number {k}: {key} is missing")
        for key, value in row.items():
            _check(name, k, key, value)
    return rows


def _check(name: str, number: int, key: str, value: Any) -> None:
    """Whether the value of a key is of its kind."""
    texts = ("name", "pool", "partition", "account", "user", "parent")
    numbers = ("nodes", "procs", "jobs", "tier", "job_factor", "shares", "priority")
    right = not (isinstance(value, int) and abs(value) > MOST)
    if not right:
        pass
    elif key in texts:
        right = isinstance(value, str) and bool(value)
    elif key in numbers:
        right = isinstance(value, int) and not isinstance(value, bool)
    elif key in ("pools", "by"):
        right = isinstance(value, list) and all(isinstance(one, str) for one in value)
        right |= key == "by" and isinstance(value, str)
    elif key == "exclusive":
        right = isinstance(value, bool)
    if not right:
        raise WorkloadError(f"[[{name}]] number {number}: {key} cannot be {value!r}")


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def length_of(value: Any) -> int | None:
    """Seconds of a length, a number of seconds or as Slurm writes it, days-hours:minutes:seconds.

    >>> length_of("1-12:00:00"), length_of("30:00"), length_of(90), length_of("45")
    (129600, 1800, 90, 2700)
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    days, dash, rest = str(value).rpartition("-")
    try:
        parts = [int(part) for part in rest.split(":")]
        if dash:
            hours, minutes, seconds = [*parts, 0, 0][:3]
        elif len(parts) == 1:
            hours, minutes, seconds = 0, parts[0], 0
        else:
            hours, minutes, seconds = ([0, *parts] if len(parts) == 2 else parts)[:3]
        return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds
    except ValueError:
        raise WorkloadError(f"max_time must be seconds, or as in '1-12:00:00', not {value!r}") from None


def _time(value: Any) -> Any:
    if value is None or isinstance(value, datetime) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise WorkloadError(f"a time must be a date and time, or seconds from the start of the log, not {value!r}")


def _text(value: str) -> str:
    """A string of a TOML file."""
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else "\\" + c if c in '"\\' else c for c in value)
    return f'"{escaped}"'
