"""Limits of QOS and associations as limits of a machine, with Slurm's precedence.

Only one limit of each kind applies, such as the processors of each user (manual of sacctmgr, acct_policy.c of Slurm 24.11). The partition's
QOS takes precedence over the job's QOS, unless the latter has the flag OverPartQOS, and both take precedence over the associations.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from walltime.machine.tables import COUNTED_RESOURCE, NUMBERS, Limit
from walltime.slurm.features import NOTHING
from walltime.slurm.json_records import Record
from walltime.slurm.records import ClusterRecords, with_parents
from walltime.slurm_values import resource_of
from walltime.wording import sanitize

SLURM_NAMES = {"gpus": "gres/gpu", "mem_mb": "mem"}
"""Slurm's names for the second resource."""
QOS_LIMITS = {
    ("user",): ("MaxJobsPU", "MaxTRESPU", "MaxTRESRunMinsPU"),
    ("group",): ("MaxJobsPA", "MaxTRESPA", "MaxTRESRunMinsPA"),
    (): ("GrpJobs", "GrpTRES", "GrpTRESRunMins"),
}
"""The limits of a QOS on jobs, resources and minutes of running jobs: for each user, each account (the column `group`), and all jobs."""
ASSOCIATION = ("group", "user")
LIMIT_FIELDS = ("MaxJobs", *(field for pair in QOS_LIMITS.values() for field in pair))


class Kind(NamedTuple):
    """The quantity that a limit counts, for each combination of the columns `by`: a field of `Limit` or Slurm's name of a resource."""

    by: tuple[str, ...]
    key: str


class Selection(NamedTuple):
    """The jobs to which a limit applies, by the values of their columns; None for all values."""

    by: tuple[str, ...]
    only: tuple[str, ...] = ()
    partition: tuple[str, ...] | None = None
    queue: tuple[str, ...] | None = None
    group: tuple[str, ...] | None = None
    user: tuple[str, ...] | None = None


class LimitReader:
    """Reads the limits from a cluster's records; `note` is called with a text and the unmodelled feature that it shows, if any.

    `partitions`: their names; `second`: the second resource; `gpu_types`: the types of GPUs.
    """

    def __init__(
        self, records: ClusterRecords, partitions: Sequence[str], second: str, gpu_types: Sequence[str], note: Callable[..., None]
    ) -> None:
        self.records, self.partitions, self.note = records, tuple(partitions), note
        resource = SLURM_NAMES.get(second, second)
        only_type = [f"{resource}:{one}" for one in gpu_types] if len(gpu_types) == 1 else []
        self.resources = [("procs", "cpu"), *(("second", name) for name in (*only_type, resource))]
        self.qos = {row["Name"]: row for row in reversed(records.qos) if row.get("Name")}
        self.own = {name: self.values(row, QOS_LIMITS, f"QOS {sanitize(name)}") for name, row in self.qos.items()}
        self.qos_of = {one: records.partitions.get(one, {}).get("QoS", "") for one in self.partitions}
        names = [name for name in dict.fromkeys(row.get("Name", "") for row in records.qos) if name]
        self.job_qos = tuple(name for name in names if name not in self.qos_of.values()) or tuple(names)
        self.found: dict[Selection, dict[str, int]] = {}

    def limits(self) -> list[Limit]:
        """Return the limits, first the limits of partitions."""
        for one, qos in self.qos_of.items():
            if qos not in self.qos and qos not in NOTHING:
                self.note(f"Partition {sanitize(one)} has the limits of QOS {sanitize(qos)}, which sacctmgr show qos does not list.")
        for qos in dict.fromkeys(self.qos_of.values()):
            for kind, value in self.own.get(qos, {}).items():
                mine = tuple(one for one in self.partitions if self.qos_of[one] == qos)
                before = {one for one in self.job_qos if kind in self.own[one] and self.over(one)}
                queues = self.others(self.job_qos, before)
                self.add(kind.key, value, Selection(kind.by, partition=mine, queue=queues))
        alone = len(self.job_qos) == 1
        for qos in self.job_qos:
            for kind, value in self.own[qos].items():
                in_partition = {one for one in self.partitions if kind in self.own.get(self.qos_of[one], {}) and not self.over(qos)}
                rest = self.others(self.partitions, in_partition)
                by, only = (kind.by, ()) if alone else (("queue", *kind.by), (qos,))
                self.add(kind.key, value, Selection(by, only, rest))
        self.add_associations()
        return [_limit(selection, most) for selection, most in self.found.items()]

    def over(self, qos: str) -> bool:
        """Return whether the limits of a job's QOS take precedence over the limits of the partition's QOS."""
        return "OverPartQOS" in self.qos[qos].get("Flags", "")

    @staticmethod
    def others(names: Sequence[str], excluded: Container[str]) -> tuple[str, ...] | None:
        """Return the names that are not excluded; None if none is excluded."""
        rest = tuple(name for name in names if name not in excluded)
        return None if len(rest) == len(names) else rest

    def add(self, key: str, value: int, selection: Selection) -> None:
        """Add a limit, unless it applies to no jobs."""
        if () not in selection[2:]:
            most = self.found.setdefault(selection, {})
            most[key] = min(value, most.get(key, value))

    def values(self, row: Record, fields: Mapping[tuple[str, ...], tuple[str, str, str]], whose: str) -> dict[Kind, int]:
        """Return the limits in a row by kind, and note limits on other resources."""
        values: dict[Kind, int] = {}
        for by, (jobs, resources, minutes) in fields.items():
            if (text := row.get(jobs, "")).isdecimal() and len(text) < 16:
                values[Kind(by, "jobs")] = int(text)
            for key, resource in self.resources:
                if (most := resource_of(row.get(resources, ""), resource)) is not None:
                    values[Kind(by, key)] = most
            if (most := resource_of(row.get(minutes, ""), "cpu")) is not None:
                values[Kind(by, "run_minutes")] = most
            names = [one.partition("=")[0] for one in row.get(resources, "").split(",")]
            known = [name for _, name in self.resources]
            others = [one for one in names if COUNTED_RESOURCE.fullmatch(one) and one not in known]
            counts = {one: resource_of(row[resources], one) for one in others}
            values |= {Kind(by, one): most for one, most in counts.items() if most is not None and most < NUMBERS}
            for field, names in ((resources, [*known, *counts]), (minutes, ["cpu"])):
                if unknown := [one for one in row.get(field, "").split(",") if one and one.partition("=")[0] not in names]:
                    self.note(f"{field} {sanitize(','.join(unknown))} of {whose}", "limits on other resources")
        return values

    def add_associations(self) -> None:
        """Add the limits of users' associations, which inherit MaxJobs from their accounts, and the group limits of accounts."""
        cluster = self.records.settings.get("ClusterName")
        rows = [row for row in self.records.associations if row.get("Account") and (not cluster or row.get("Cluster", cluster) == cluster)]
        accounts = {row["Account"]: row for row in rows if not row.get("User")}
        users = {(row.get("Partition", ""), row["Account"], row["User"]): row for row in reversed(rows) if row.get("User")}
        parents = {account: row.get("ParentName", "") for account, row in accounts.items()}
        above = {account: [one for one in with_parents(account, parents) if one in accounts] for account in accounts}
        for partition in dict.fromkeys(partition for partition, _, _ in users):
            values: dict[str, dict[tuple[str, str], int]] = {}
            for (where, account, user), row in reversed(users.items()):
                if where == partition:
                    own = self.values(row, {ASSOCIATION: QOS_LIMITS[()]}, f"{sanitize(user)} in {sanitize(account)}")
                    jobs = next((one["MaxJobs"] for one in (row, *(accounts[a] for a in above.get(account, ()))) if one.get("MaxJobs")), "")
                    each = {"MaxJobs": int(jobs)} if jobs.isdecimal() and len(jobs) < 16 else {}
                    for key, value in ({kind.key: value for kind, value in own.items()} | each).items():
                        values.setdefault(key, {})[account, user] = value
            everyone = {(account, user) for where, account, user in users if where == partition}
            for key, of_pairs in values.items():
                for value, groups, names in _compact(of_pairs, everyone):
                    selection = Selection(ASSOCIATION, partition=(partition,) if partition else None, group=groups, user=names)
                    self.add_below(key, value, selection)
        for account, row in accounts.items():
            below = tuple(one for one in accounts if account in above[one])
            everything = len(below) == len(accounts)
            for kind, value in self.values(row, {(): QOS_LIMITS[()]}, f"the account {sanitize(account)}").items():
                self.add_below(kind.key, value, Selection((), group=None if everything else below))

    def add_below(self, key: str, value: int, selection: Selection) -> None:
        """Add a limit of associations for jobs whose QOS have no limit of the kind (for MaxJobs: per user or per account)."""
        kinds = {Kind(("user",), "jobs"), Kind(("group",), "jobs")} if key == "MaxJobs" else {Kind((), key)}
        queues = self.others(self.job_qos, {one for one in self.job_qos if not kinds.isdisjoint(self.own[one])})
        excluded = {one for one in self.partitions if not kinds.isdisjoint(self.own.get(self.qos_of[one], {}))}
        rest = self.others(selection.partition or self.partitions, excluded)
        selection = selection._replace(queue=queues, partition=selection.partition if rest is None else rest)
        self.add("jobs" if key == "MaxJobs" else key, value, selection)


Names = tuple[str, ...] | None


def _compact(values: Mapping[tuple[str, str], int], everyone: set[tuple[str, str]]) -> Iterator[tuple[int, Names, Names]]:
    """Yield each value with the accounts and users that have it; None for all accounts, or for all users of the accounts."""
    size = Counter(account for account, _ in everyone)
    for value in dict.fromkeys(values.values()):
        users: dict[str, list[str]] = {}
        for (account, user), own in values.items():
            if own == value:
                users.setdefault(account, []).append(user)
        whole = tuple(account for account, names in users.items() if len(names) == size[account])
        if len(whole) == len(size):
            yield value, None, None
        else:
            yield from [(value, whole, None)] if whole else []
            yield from ((value, (account,), tuple(names)) for account, names in users.items() if account not in whole)


def _limit(selection: Selection, most: Mapping[str, int]) -> Limit:
    among = {name: values for name, values in selection._asdict().items() if name not in ("by", "only") and values}
    single = among.pop("partition")[0] if len(among.get("partition", ())) == 1 else None
    resources = {key: value for key, value in most.items() if COUNTED_RESOURCE.fullmatch(key)}
    plain: dict[str, Any] = {key: value for key, value in most.items() if key not in resources}
    return Limit(selection.by, single, only=selection.only, among=among, **plain, resources=resources)
