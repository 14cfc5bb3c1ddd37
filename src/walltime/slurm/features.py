"""Features of Slurm: where its output shows them, and whether they are modelled, noted, ignored, or already reflected in the log."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from walltime.slurm.records import ClusterRecords
from walltime.wording import sanitize

NOTHING = frozenset({"", "(null)", "NONE", "None", "N/A", "NO", "ALL", "UNLIMITED", "INFINITE", "OFF", "0", "n/a"})
"""Texts that mean that a setting is not used."""


class Treatment(StrEnum):
    """How a feature is treated."""

    MODELLED = "modelled"
    NOTED = "not modelled, noted"
    BEFORE = "applied before the log"
    IGNORED = "ignored"


class Feature(NamedTuple):
    """A feature, the keys (separated by spaces) that show it in an output of Slurm, and its treatment.

    `kind`: as in `client.CLUSTER`, or `jobs` for the log. `usual`: values, separated by |, that have no effect, in addition to NOTHING;
    `word`: a pattern for the values that show it, if not all others do.
    """

    name: str
    kind: str
    keys: str
    treatment: Treatment
    meaning: str = ""
    usual: str = ""
    word: str = ""

    def shown_by(self, value: str) -> str:
        """Return the part of a value that shows the feature; empty if it does not."""
        if self.word:
            found = re.search(self.word, value, re.IGNORECASE)
            return found[0] if found else ""
        return "" if value in NOTHING or value in self.usual.split("|") else value


MODELLED, NOTED, BEFORE, IGNORED = Treatment
FEATURES = (
    Feature("nodes", "nodes", "CPUEfctv CPUTot Partitions", MODELLED, "equal nodes with the same partitions form a pool"),
    Feature("node weights", "nodes", "Weight", MODELLED, "a partition's pools are used in order of weight"),
    Feature("nodes down or drained", "nodes", "State Reason", MODELLED, "outages from the reason's time; without it, up and noted"),
    Feature("GPUs", "nodes", "Gres", MODELLED, "the second resource"),
    Feature("memory", "nodes", "RealMemory", MODELLED, "`memory` of pools; if no node has GPUs, the second resource"),
    Feature("GPU types", "nodes", "Gres", MODELLED, "`gpu_type` or `gpu_types` of pools; MIG profiles are types"),
    Feature("cores bound to GPUs", "nodes", "Gres", NOTED, "jobs may use any processors of the node"),
    Feature("other generic resources", "nodes", "Gres", NOTED, "not limited"),
    Feature("node features", "nodes", "ActiveFeatures AvailableFeatures", MODELLED, "`features` of pools; noted if most nodes differ"),
    Feature("partitions", "partitions", "Nodes Default MaxTime PriorityTier PriorityJobFactor", MODELLED, "`[[partition]]`"),
    Feature("whole nodes", "partitions", "OverSubscribe Exclusive", MODELLED, "`exclusive` of partitions, if their nodes have one size"),
    Feature("QOS of a partition", "partitions", "QoS", MODELLED, "limits on the jobs of the partition"),
    Feature("least loaded nodes", "partitions", "LLN", MODELLED, "`least_loaded` of partitions"),
    Feature("processors per node and partition", "partitions", "MaxCPUsPerNode MaxCPUsPerSocket", NOTED, "not limited"),
    Feature("processors shared by jobs", "partitions", "OverSubscribe", NOTED, "a processor runs one job", word="(?:YES|FORCE)(?!:1$).*"),
    Feature("nodes of one user", "partitions", "Exclusive", NOTED, "nodes are shared by all users", usual="NO|NODE"),
    Feature("billing weights", "partitions", "TRESBillingWeights", NOTED, "past use counts only processors"),
    Feature("power saving", "partitions", "SuspendTime PowerDownOnIdle", NOTED, "idle nodes are ready at once"),
    Feature("access to partitions", "partitions", "AllowGroups AllowAccounts AllowQos AllocNodes DenyAccounts DenyQos RootOnly", BEFORE),
    Feature("sizes of requests", "partitions", "MinNodes MaxNodes DefaultTime JobDefaults ReqResv", BEFORE),
    Feature(
        "totals and visibility", "partitions", "PartitionName State TotalCPUs TotalNodes TRES NodeSets Hidden DisableRootJobs", IGNORED
    ),
    Feature("memory of requests", "partitions", "DefMemPerCPU DefMemPerNode MaxMemPerCPU MaxMemPerNode", BEFORE),
    Feature("binding and topology of partitions", "partitions", "CpuBind Topology", IGNORED),
    Feature("preemption by partition", "partitions", "PreemptMode GraceTime", MODELLED, "`preempt` and `grace` of partitions"),
    Feature("suspension", "partitions", "PreemptMode", NOTED, "these jobs are never preempted", word="SUSPEND"),
    Feature("time over the limit", "partitions", "OverTimeLimit", IGNORED, "see `--overrun`"),
    Feature("time to wake nodes", "partitions", "ResumeTimeout SuspendTimeout", IGNORED, "noted with SuspendTime"),
    Feature("maintenance", "reservations", "Flags", MODELLED, "outages that are known in advance", word="MAINT"),
    Feature("reservations", "reservations", "Users Accounts Nodes", MODELLED, "`[[reservation]]`, for jobs that request them"),
    Feature(
        "reservations in other forms",
        "reservations",
        "Flags",
        NOTED,
        "they occur once, for jobs that request them",
        word="WEEKDAY|WEEKEND|MAGNETIC|ANY_NODES|TIME_FLOAT",
    ),
    Feature("priority of QOS", "qos", "Priority", MODELLED, "`[[qos]]`"),
    Feature("preemption by QOS", "qos", "Preempt PreemptMode GraceTime PreemptExemptTime", MODELLED, "`preempts` of `[[qos]]`"),
    Feature("suspension", "qos", "PreemptMode", NOTED, "these jobs are never preempted", word="SUSPEND"),
    Feature("limits of QOS", "qos", "GrpJobs GrpTRES MaxJobsPU MaxTRESPU MaxJobsPA MaxTRESPA", MODELLED, "`[[limit]]`"),
    Feature("precedence of QOS", "qos", "Flags", MODELLED, "limits of the job's QOS before those of the partition's", word="OverPartQOS"),
    Feature("limits on used minutes", "qos", "GrpTRESMins GrpWall", NOTED, "not limited; they count use before the log"),
    Feature(
        "limits on minutes of running jobs",
        "qos",
        "GrpTRESRunMins MaxTRESRunMinsPA MaxTRESRunMinsPU",
        MODELLED,
        "`run_minutes` of `[[limit]]`, for processors",
    ),
    Feature("limits on other resources", "qos", "GrpTRES MaxTRESPU MaxTRESPA", NOTED, "not limited: `bb`, `billing`, ...", word="(?!)"),
    Feature("use factors of QOS", "qos", "UsageFactor", MODELLED, "`usage_factor` of `[[qos]]`"),
    Feature("QOS without reservations", "qos", "Flags", MODELLED, "`no_reserve` of `[[qos]]`", word="NoReserve"),
    Feature("QOS without decay of use", "qos", "Flags", NOTED, "past use decays nevertheless", word="NoDecay"),
    Feature("thresholds of use", "qos", "Flags", NOTED, "not limited", word="EnforceUsageThreshold"),
    Feature("relative limits", "qos", "Flags", NOTED, "read as numbers, not percentages", word="Relative"),
    Feature("limits of a job in a QOS", "qos", "MaxWall MaxTRES MaxTRESMins", BEFORE),
    Feature("access to QOS", "qos", "Flags", BEFORE, word="DenyOnLimit|RequiresReservation|Partition(?:MinNodes|MaxNodes|TimeLimit)"),
    Feature("shares", "associations", "Share ParentName", MODELLED, "`[[share]]`"),
    Feature("limits of associations", "associations", "GrpJobs GrpTRES MaxJobs", MODELLED, "`[[limit]]`, where no QOS has such a limit"),
    Feature("limits on used minutes", "associations", "GrpTRESMins GrpWall", NOTED, "not limited; they count use before the log"),
    Feature("limits on minutes of running jobs", "associations", "GrpTRESRunMins", MODELLED, "`run_minutes` of `[[limit]]`"),
    Feature("limits of a job in an association", "associations", "MaxWall MaxTRES MaxTRESMins", BEFORE),
    Feature(
        "scheduler", "settings", "SchedulerType SchedulerParameters SelectType", MODELLED, "see [Parameters](slurm-policy.md#parameters)"
    ),
    Feature(
        "priorities",
        "settings",
        "PriorityType PriorityWeight… PriorityMaxAge PriorityFlags",
        MODELLED,
        "see [Priorities](slurm-policy.md#priorities)",
    ),
    Feature("enforced limits", "settings", "AccountingStorageEnforce", MODELLED, "without its value `limits`, no limits hold"),
    Feature("preemption", "settings", "PreemptType PreemptMode PreemptParameters PreemptExemptTime", MODELLED, "running jobs end early"),
    Feature("gang scheduling", "settings", "PreemptMode", NOTED, "jobs run without breaks", word="GANG|SUSPEND"),
    Feature("licences", "settings", "Licenses", MODELLED, "`licences` of the machine"),
    Feature("topology", "settings", "TopologyPlugin", NOTED, "jobs may get any of the nodes", word="topology/(?!none|default|flat).+"),
    Feature("burst buffers", "settings", "BurstBufferType", NOTED, "not limited"),
    Feature("least loaded nodes", "settings", "SelectTypeParameters", MODELLED, "`least_loaded` of all partitions", word="(?:CR_)?LLN"),
    Feature("packing of tasks", "settings", "SelectTypeParameters", NOTED, "tasks are not placed", word="CR_PACK_NODES"),
    Feature("one task per core", "settings", "SelectTypeParameters", NOTED, "processors as in the log", word="CR_ONE_TASK_PER_CORE"),
    Feature("power saving", "settings", "SuspendTime", NOTED, "idle nodes are ready at once", usual="-1|NONE"),
    Feature("overrun of reservations", "settings", "ResvOverRun", NOTED, "reservations end on time", usual="0 min"),
    Feature("fair-share dampening", "settings", "FairShareDampeningFactor", MODELLED, "applied with `NO_FAIR_TREE`"),
    Feature("priority of associations", "settings", "PriorityWeightAssoc", MODELLED, "`priority` of `[[share]]`"),
    Feature("priority of resources", "settings", "PriorityWeightTRES", MODELLED, "for processors, nodes, memory and GPUs"),
    Feature("site factor", "settings", "PrioritySiteFactorPlugin", NOTED, "0, unless the log has the column `site_factor`"),
    Feature("reset of past use", "settings", "PriorityUsageResetPeriod", NOTED, "past use only decays"),
    Feature("delay after completing jobs", "settings", "CompleteWait", NOTED, "no delay", usual="0 sec"),
    Feature("security labels of nodes", "settings", "MCSPlugin", NOTED, "nodes are shared by all users", usual="mcs/none"),
    Feature("changes at submission", "settings", "JobSubmitPlugins", BEFORE),
    Feature("checks at submission", "settings", "EnforcePartLimits", BEFORE),
    Feature("time over the limit", "settings", "OverTimeLimit KillWait", IGNORED, "see `--overrun`"),
    Feature("prologs and epilogs", "settings", "Prolog Epilog PrologSlurmctld EpilogSlurmctld", IGNORED, "take no time"),
    Feature("numbers of jobs", "settings", "MaxJobCount MaxArraySize MaxSubmitJobs", IGNORED),
    Feature(
        "sizes and limits of jobs", "jobs", "AllocCPUS NNodes TimelimitRaw", MODELLED, "see [Reading a cluster's log](cluster-logs.md)"
    ),
    Feature("holds and dependencies", "jobs", "Eligible", MODELLED, "jobs arrive when they become eligible"),
    Feature("minimum runtimes", "jobs", "--time-min", MODELLED, "column `time_min`"),
    Feature("memory", "jobs", "ReqTRES", MODELLED, "on each node, or for each processor"),
    Feature("node features", "jobs", "Constraints", MODELLED, "jobs get nodes with these features"),
    Feature("GPU types", "jobs", "ReqTRES", MODELLED, "jobs get nodes with this type"),
    Feature(
        "resources of nodes and tasks",
        "jobs",
        "--mem --mem-per-cpu --gres --gpus-per-task -c --ntasks-per-node",
        MODELLED,
        "see [Reading a cluster's log](cluster-logs.md)",
    ),
    Feature("running tasks of arrays", "jobs", "--array", MODELLED, "column `array_limit`"),
    Feature("licences", "jobs", "Licenses", MODELLED, "column `licences`"),
    Feature("reservations", "jobs", "Reservation", MODELLED, "jobs run in their `[[reservation]]`"),
    Feature("heterogeneous jobs", "jobs", "JobID", NOTED, "each component is a job"),
    Feature("whole nodes of several sizes", "jobs", "--exclusive", MODELLED, "jobs get all processors of their nodes"),
    Feature("nodes of one user", "jobs", "--exclusive=user", MODELLED, "jobs get nodes without jobs of other users"),
    Feature("lists of nodes", "jobs", "ReqNodes", NOTED, "jobs may get any nodes of the partition"),
    Feature("nice values", "jobs", "--nice", MODELLED, "column `nice`, with `priority/multifactor`"),
    Feature("deadlines", "jobs", "--deadline", NOTED, "jobs may start after them"),
    Feature("spread jobs", "jobs", "--spread-job", MODELLED, "jobs get nodes in order of weight"),
    Feature("switches", "jobs", "--switches", NOTED, "nodes are chosen as usual"),
)
"""Every feature. The notes of `walltime slurm cluster`, the documentation and the results of simulations use these names."""
NAMES = frozenset(feature.name for feature in FEATURES)
_NOUNS = {"qos": "QOS", "associations": "associations", "partitions": "", "nodes": ""}


def find_features(records: ClusterRecords, limits: bool) -> Iterator[tuple[Feature, str]]:
    """Yield the features in a cluster's settings, partitions and limits that are noted or already reflected in the log, with texts.

    `limits`: whether limits are enforced. Keys of partitions that belong to no feature are noted separately.
    """
    partitions: list[tuple[str, Mapping[str, str]]] = list(records.partitions.items())
    known = {key for feature in FEATURES if feature.kind == "partitions" for key in feature.keys.split()}
    unknown = dict.fromkeys(key for _, record in partitions for key in record if key not in known)
    rows = (*FEATURES, *(Feature(sanitize(key), "partitions", key, NOTED) for key in unknown))
    named: dict[str, list[tuple[str, Mapping[str, str]]]] = {
        "settings": [("", records.settings)],
        "partitions": partitions,
        "qos": [(row.get("Name", ""), row) for row in records.qos],
        "associations": [(row.get("User") or row.get("Account", ""), row) for row in records.associations] if limits else [],
    }
    for feature in rows:
        if feature.treatment not in (NOTED, BEFORE):
            continue
        found: dict[str, list[str]] = {}
        for name, record in named.get(feature.kind, ()):
            for key in feature.keys.split():
                value = feature.shown_by(record.get(key, ""))
                if value and (limits or key in ("Flags", "UsageFactor") or feature.kind != "qos"):
                    shown = f"{key}={value}" if feature.kind == "settings" else value if feature.word else key
                    found.setdefault(sanitize(shown), []).append(name)
        if found:
            yield feature, "; ".join(shown + _of(feature.kind, names) for shown, names in found.items())


def _of(kind: str, names: list[str]) -> str:
    """Return the names of the records that have a setting, in words such as ` of QOS long`."""
    if kind == "settings":
        return ""
    names = list(dict.fromkeys(names))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    noun = _NOUNS[kind]
    return " ".join(filter(None, (" of", noun, ", ".join(map(sanitize, names[:3])) + more)))
