"""Features of Slurm: where its output shows them, and whether they are modelled, noted, applied before the log, or ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from walltime.slurm.records import ClusterRecords
from walltime.wording import sanitize

NOTHING = frozenset({"", "(null)", "NONE", "None", "N/A", "NO", "ALL", "UNLIMITED", "INFINITE", "OFF", "0", "n/a"})
"""Texts for a setting that is not used."""


class Treatment(StrEnum):
    """The treatment of a feature."""

    MODELLED = "modelled"
    NOTED = "not modelled, noted"
    BEFORE = "applied before the log"
    IGNORED = "ignored"


class Feature(NamedTuple):
    """A feature: the `keys` that show it in Slurm's output of a kind, and its treatment.

    `kind`: as in `client.CLUSTER`, or jobs for the log. `usual`: values without effect besides NOTHING; `word`: a pattern of the values
    that show it, if others do not.
    """

    name: str
    kind: str
    keys: tuple[str, ...]
    treatment: Treatment
    meaning: str = ""
    usual: tuple[str, ...] = ()
    word: str = ""

    def shown_by(self, value: str) -> str:
        """Return the part of a value that shows the feature; empty if it does not."""
        if self.word:
            found = re.search(self.word, value, re.IGNORECASE)
            return found[0] if found else ""
        return "" if value in NOTHING or value in self.usual else value


def _features(kind: str, treatment: Treatment, *rows: tuple[str, ...]) -> tuple[Feature, ...]:
    """Return features of one kind, each given as name, keys, meaning, usual values and pattern, the keys and values between blanks."""
    return tuple(
        Feature(name, kind, tuple(keys.split()), treatment, meaning, tuple(usual.split("|")) if usual else (), word)
        for name, keys, meaning, usual, word in ((*row, *[""] * (5 - len(row))) for row in rows)
    )


FEATURES = (
    *_features(
        "nodes",
        Treatment.MODELLED,
        ("nodes", "CPUEfctv CPUTot Partitions", "pools of equal nodes with the same partitions"),
        ("node weights", "Weight", "a partition's pools in order of weight"),
        ("nodes down or drained", "State", "outages from the beginning of the log"),
        ("GPUs", "Gres", "the second resource; several types are one"),
    ),
    *_features(
        "nodes",
        Treatment.NOTED,
        ("memory", "RealMemory", "the second resource where no node has GPUs; else not modelled"),
        ("GPU types", "Gres", "one pool for GPUs of all types"),
        ("MIG", "Gres", "a slice counts as a GPU"),
        ("cores bound to GPUs", "Gres", "any processor of the node"),
        ("other generic resources", "Gres", "not limited"),
        ("node features", "ActiveFeatures AvailableFeatures", "all nodes of a partition are equal"),
    ),
    *_features(
        "partitions",
        Treatment.MODELLED,
        ("partitions", "Nodes Default MaxTime PriorityTier PriorityJobFactor", "partitions"),
        ("whole nodes", "OverSubscribe Exclusive", "`exclusive`, where all nodes of the partition have one size"),
        ("QOS of a partition", "QoS", "limits on the jobs of the partition"),
    ),
    *_features(
        "partitions",
        Treatment.NOTED,
        ("least loaded nodes", "LLN", "nodes are chosen as in other partitions"),
        ("processors per node and partition", "MaxCPUsPerNode MaxCPUsPerSocket", "not limited"),
        ("processors shared by jobs", "OverSubscribe", "each processor has one job", "NO|NO:1|EXCLUSIVE|YES:1|FORCE:1"),
        ("nodes of one user", "Exclusive", "nodes are shared by all users", "NO|NODE"),
        ("billing weights", "TRESBillingWeights", "past use counts processors"),
        ("power saving", "SuspendTime PowerDownOnIdle", "idle nodes are ready"),
    ),
    *_features(
        "partitions",
        Treatment.BEFORE,
        ("access to partitions", "AllowGroups AllowAccounts AllowQos AllocNodes DenyAccounts DenyQos RootOnly ReqResv"),
        (
            "defaults and sizes of requests",
            "MinNodes MaxNodes DefaultTime JobDefaults DefMemPerCPU DefMemPerNode MaxMemPerCPU MaxMemPerNode",
        ),
    ),
    *_features(
        "partitions",
        Treatment.IGNORED,
        ("totals and visibility", "PartitionName State TotalCPUs TotalNodes TRES NodeSets Hidden DisableRootJobs Topology CpuBind"),
        ("preemption by partition", "PreemptMode GraceTime", "noted once, by PreemptType"),
        ("time over the limit", "OverTimeLimit", "see `--overrun`"),
        ("time to wake nodes", "ResumeTimeout SuspendTimeout", "noted once, by SuspendTime"),
    ),
    *_features("reservations", Treatment.MODELLED, ("maintenance", "Flags", "outages that are known in advance", "", "MAINT")),
    *_features("reservations", Treatment.NOTED, ("reservations", "Flags", "their nodes are free for all, their jobs are ordinary ones")),
    *_features(
        "qos",
        Treatment.MODELLED,
        ("priority of QOS", "Priority", "`[[qos]]`"),
        ("limits of QOS", "GrpJobs GrpTRES MaxJobsPU MaxTRESPU MaxJobsPA MaxTRESPA", "`[[limit]]` on jobs, processors, second resource"),
        ("precedence of QOS", "Flags", "limits of the job's QOS before those of the partition's", "", "OverPartQOS"),
    ),
    *_features(
        "qos",
        Treatment.NOTED,
        ("limits on used minutes", "GrpTRESMins GrpWall"),
        ("limits on minutes of running jobs", "GrpTRESRunMins MaxTRESRunMinsPA MaxTRESRunMinsPU"),
        ("limits on other resources", "GrpTRES MaxTRESPU MaxTRESPA", "nodes, memory, licences, types of GPUs", "", "(?!)"),
        ("use factors of QOS", "UsageFactor", "past use counts alike", "1|1.000000"),
        ("QOS without reservations", "Flags", "all jobs get reservations", "", "NoReserve"),
        ("QOS without decay of use", "Flags", "past use decays", "", "NoDecay"),
        ("thresholds of use", "Flags", "not limited", "", "EnforceUsageThreshold"),
        ("relative limits", "Flags", "numbers, not percentages", "", "Relative"),
    ),
    *_features(
        "qos",
        Treatment.BEFORE,
        ("limits of a job in a QOS", "MaxWall MaxTRES MaxTRESMins"),
        ("access to QOS", "Flags", "", "", "DenyOnLimit|RequiresReservation|Partition(?:MinNodes|MaxNodes|TimeLimit)"),
    ),
    *_features(
        "associations",
        Treatment.MODELLED,
        ("shares", "Share ParentName", "`[[share]]`"),
        ("limits of associations", "GrpJobs GrpTRES MaxJobs", "`[[limit]]`, where no QOS has such a limit"),
    ),
    *_features(
        "associations",
        Treatment.NOTED,
        ("limits on used minutes", "GrpTRESMins GrpWall"),
        ("limits on minutes of running jobs", "GrpTRESRunMins"),
    ),
    *_features("associations", Treatment.BEFORE, ("limits of a job in an association", "MaxWall MaxTRES MaxTRESMins")),
    *_features(
        "settings",
        Treatment.MODELLED,
        ("scheduler", "SchedulerType SchedulerParameters SelectType", "see [Slurm's scheduling](slurm-policy.md#parameters)"),
        ("priorities", "PriorityType PriorityWeight… PriorityMaxAge PriorityFlags", "see [Slurm's scheduling](slurm-policy.md#priorities)"),
        ("enforced limits", "AccountingStorageEnforce", "without `limits`, no limits"),
    ),
    *_features(
        "settings",
        Treatment.NOTED,
        ("preemption", "PreemptType", "jobs run to their end", "preempt/none"),
        ("gang scheduling", "PreemptMode", "jobs run without breaks", "", "GANG|SUSPEND"),
        ("licences", "Licenses", "not limited"),
        ("topology", "TopologyPlugin", "any nodes of the partition", "topology/none|topology/default|topology/flat"),
        ("burst buffers", "BurstBufferType", "not limited"),
        ("least loaded nodes", "SelectTypeParameters", "nodes are chosen as usual", "", "(?:CR_)?LLN"),
        ("packing of tasks", "SelectTypeParameters", "tasks are not placed", "", "CR_PACK_NODES"),
        ("one task per core", "SelectTypeParameters", "processors as in the log", "", "CR_ONE_TASK_PER_CORE"),
        ("power saving", "SuspendTime", "idle nodes are ready", "-1|NONE"),
        ("overrun of reservations", "ResvOverRun", "they end on time", "0 min"),
        ("fair-share dampening", "FairShareDampeningFactor", "a factor of 1", "1"),
        ("priority of associations", "PriorityWeightAssoc"),
        ("priority of resources", "PriorityWeightTRES"),
        ("site factor", "PrioritySiteFactorPlugin"),
        ("reset of past use", "PriorityUsageResetPeriod", "past use only decays"),
        ("delay after completing jobs", "CompleteWait", "no delay", "0 sec"),
        ("security labels of nodes", "MCSPlugin", "nodes are shared by all users", "mcs/none"),
    ),
    *_features("settings", Treatment.BEFORE, ("changes at submission", "JobSubmitPlugins"), ("checks at submission", "EnforcePartLimits")),
    *_features(
        "settings",
        Treatment.IGNORED,
        ("time over the limit", "OverTimeLimit KillWait", "see `--overrun`"),
        ("prologs and epilogs", "Prolog Epilog PrologSlurmctld EpilogSlurmctld", "take no time"),
        ("numbers of jobs", "MaxJobCount MaxArraySize MaxSubmitJobs"),
    ),
    *_features(
        "jobs",
        Treatment.MODELLED,
        ("processors, nodes and limits of jobs", "AllocCPUS NNodes TimelimitRaw", "see [Reading a cluster's log](cluster-logs.md)"),
        ("holds and dependencies", "Eligible", "jobs arrive when they become eligible"),
        ("minimum runtimes", "--time-min", "column `time_min`"),
    ),
    *_features(
        "jobs",
        Treatment.NOTED,
        ("memory", "ReqTRES", "as for nodes"),
        ("node features", "Constraints", "as for nodes"),
        ("licences", "Licenses", "as for settings"),
        ("reservations", "Reservation", "as for reservations"),
        ("heterogeneous jobs", "JobID", "each component is a job"),
        ("whole nodes of several sizes", "--exclusive", "the processors in the log"),
        ("lists of nodes", "ReqNodes", "any nodes of the partition"),
        ("nice values", "--nice", "priorities without them"),
        ("deadlines", "--deadline", "jobs start late"),
        ("spread jobs and switches", "--spread-job --switches", "nodes are chosen as usual"),
    ),
)
"""Every feature. The notes of `walltime slurm cluster`, the page, and the answers of simulations use these names."""
NAMES = frozenset(feature.name for feature in FEATURES)
_NOUNS = {"qos": "QOS", "associations": "associations", "partitions": "", "nodes": ""}


class Found(NamedTuple):
    """A feature that a cluster has, and the text that shows it."""

    feature: Feature
    text: str


def find_features(records: ClusterRecords, limits: bool) -> Iterator[Found]:
    """Return the features in a cluster's settings, partitions and limits that are noted or were applied before the log.

    `limits`: whether limits are enforced. Keys of partitions that no feature has are noted by themselves.
    """
    partitions: list[tuple[str, Mapping[str, str]]] = list(records.partitions.items())
    known = {key for feature in FEATURES if feature.kind == "partitions" for key in feature.keys}
    unknown = dict.fromkeys(key for _, record in partitions for key in record if key not in known)
    rows = (*FEATURES, *(Feature(sanitize(key), "partitions", (key,), Treatment.NOTED) for key in unknown))
    named: dict[str, list[tuple[str, Mapping[str, str]]]] = {
        "settings": [("", records.settings)],
        "partitions": partitions,
        "qos": [(row.get("Name", ""), row) for row in records.qos],
        "associations": [(row.get("User") or row.get("Account", ""), row) for row in records.associations] if limits else [],
    }
    for feature in rows:
        if feature.treatment not in (Treatment.NOTED, Treatment.BEFORE):
            continue
        found: dict[str, list[str]] = {}
        for name, record in named.get(feature.kind, ()):
            for key in feature.keys:
                value = feature.shown_by(record.get(key, ""))
                if value and (limits or key in ("Flags", "UsageFactor") or feature.kind != "qos"):
                    shown = f"{key}={value}" if feature.kind == "settings" else value if feature.word else key
                    found.setdefault(sanitize(shown), []).append(name)
        if found:
            yield Found(feature, "; ".join(shown + _of(feature.kind, names) for shown, names in found.items()))


def _of(kind: str, names: list[str]) -> str:
    """Return the bearers of a setting, such as ` of QOS long`."""
    if kind == "settings":
        return ""
    names = list(dict.fromkeys(names))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    noun = _NOUNS[kind]
    return " ".join(filter(None, (" of", noun, ", ".join(map(sanitize, names[:3])) + more)))
