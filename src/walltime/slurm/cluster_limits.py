"""The limits on what runs at the same time that a Slurm cluster's accounting sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from walltime.machine.machine import Limit
from walltime.slurm.records import ClusterRecords, Record
from walltime.wording import harmless

BY = {"PU": ("user",), "PA": ("group",), "": ()}
"""What a quality of service counts by: each user's jobs, each account's (the column `group`), all."""
LIMITS = ("GrpJobs", "GrpTRES", "GrpTRESMins", "GrpTRESRunMins", "MaxJobs", "MaxTRES", "MaxTRESMins")
_NAMES = {"gpus": "gres/gpu", "mem_mb": "mem"}
"""What Slurm calls the second resource."""
_RUNNING = ("GrpJobs", "GrpTRES", "MaxJobsPU", "MaxTRESPU", "MaxJobsPA", "MaxTRESPA")
_NOT_MODELLED = ("GrpTRESMins", "GrpTRESRunMins", "MaxTRESMins")


def limits_of(told: ClusterRecords, partitions: Sequence[str], second: str, notes: list[str]) -> Iterator[Limit]:
    """The limits that partitions have by their quality of service, and those of the only one that there is; other limits are noted."""
    limited = sum(any(row.get(name) for name in LIMITS) for row in told.associations)
    rows = {row["Name"]: row for row in told.qos if row.get("Name")}
    enforced = told.settings.get("AccountingStorageEnforce", "").lower()
    if "settings" in told.known and not any(word in enforced for word in ("limits", "safe", "all")):
        some = limited + sum(any(row.get(name) for name in (*_RUNNING, *_NOT_MODELLED)) for row in rows.values())
        if some:
            notes.append(f"{some:,} associations and qualities of service have limits, which AccountingStorageEnforce does not enforce.")
        return
    if limited:
        notes.append(f"{limited:,} associations with limits of their own: not modelled.")
    partition_qos = {name: told.partitions.get(name, {}).get("QoS", "N/A") for name in partitions}
    for partition, qos in partition_qos.items():
        if qos in rows:
            yield from _of_qos(rows[qos], partition, second, notes)
        elif qos not in ("N/A", "(null)", ""):
            notes.append(f"{harmless(partition)} has the limits of {harmless(qos)}, which sacctmgr show qos does not tell.")
    others = [row for name, row in rows.items() if name not in partition_qos.values()]
    if len(others) == 1:
        yield from _of_qos(others[0], None, second, notes)
    else:
        partly = [harmless(row["Name"]) for row in others if any(row.get(name) for name in (*_RUNNING, *_NOT_MODELLED))]
        notes += [f"The limits of the quality of service {name}, for some of the jobs only, are not modelled." for name in partly]


def _of_qos(row: Record, partition: str | None, second: str, notes: list[str]) -> Iterator[Limit]:
    for which, by in BY.items():
        jobs, resources = (row.get(f"Max{what}{which}" if which else f"Grp{what}", "") for what in ("Jobs", "TRES"))
        most = {"jobs": _number(jobs), "procs": _resource(resources, "cpu"), "second": _resource(resources, _NAMES.get(second, second))}
        if any(value is not None for value in most.values()):
            yield Limit(by, partition, **most)
        left = [one for one in resources.split(",") if one and one.partition("=")[0] not in ("cpu", _NAMES.get(second, second))]
        if left:
            notes.append(f"{harmless(row['Name'])} limits {harmless(', '.join(left))}: not modelled.")
    others = [name for name in _NOT_MODELLED if row.get(name)]
    notes += [f"{name} of the quality of service {harmless(row['Name'])} is not modelled." for name in others]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 16 else None


def _resource(text: str, name: str) -> int | None:
    """The number of a resource in a text such as cpu=64,gres/gpu=4; memory in MB."""
    found = re.search(rf"(?:^|,){re.escape(name)}=(\d{{1,15}})([KMGTP]?)(?:\.\d+)?(?:,|$)", text)
    if found is None:
        return None
    factor = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}[found[2]]
    return int(int(found[1]) * factor)
