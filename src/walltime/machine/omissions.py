"""Requests that the simulation of a machine does not model or does not apply, with their shares of the jobs or of the work."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from walltime.machine.machine import Machine
from walltime.machine.tables import RESOURCES
from walltime.wording import human_percent, sanitize
from walltime.workload import Array, Workload

REQUESTS = {
    "memory": "mem_mb",
    "GPU types": "requested_gpu_type",
    "node features": "constraints",
    "licences": "licences",
    "reservations": "reservation",
    "heterogeneous jobs": "het_job",
    "whole nodes of several sizes": "exclusive",
}
"""The columns in which jobs request a feature; values above 0 are requests."""
SHOWN = {"site factor": "site_factor"}
"""Features that are modelled if the log has the column."""
BY_MACHINE = ("memory", "GPU types", "whole nodes of several sizes")
"""Features that are missing only if a note of the machine names them. On machines with Slurm, node features are such a feature too."""
RUN_MINUTES = "limits on minutes of running jobs"
OTHER_LIMITS = "limits on other resources"
BY_NODES = ("node features", "GPU types", "memory", "reservations", "licences", RUN_MINUTES, OTHER_LIMITS)
"""Features that are modelled on individual nodes but not on pools."""
LOST_JOBS = "jobs that end with their nodes"
LONGEST = 500
"""Maximum length, in characters, of the list of features with unknown shares."""
LIMITED = {"mem": "mem_mb", "gpu:": "requested_gpu_type", "license/": "licences"}
"""Parts of Slurm's resource names, and the columns that show the jobs' amounts of these resources."""
COUNTED = ("user", "group", "queue")
"""Columns whose values a limit counts separately, and which a log may lack."""


def omissions(workload: Workload, machine: Machine, partition: Array) -> dict[str, float | None]:
    """Return the features that are not modelled, with the share of the work that requests them, 0 to 1; None if the log does not show it.

    `partition`: the number of each job's partition.
    """
    work = workload.procs * workload.runtime.astype(np.float64)
    noted = {note.feature: note for note in machine.notes if note.feature and SHOWN.get(note.feature) not in workload.columns}
    of_pools = {"node features": any(pool.features for pool in machine.pools), "GPU types": any(pool.by_type for pool in machine.pools)}
    of_pools["memory"] = any(pool.memory for pool in machine.pools)
    found: dict[str, float | None] = {}
    for feature in dict.fromkeys((*noted, *REQUESTS)):
        column = workload.columns.get(REQUESTS.get(feature, ""))
        if column is None:
            found |= {feature: None} if feature in noted else {}
        elif feature in noted or of_pools.get(feature) or not (feature in BY_MACHINE or (machine.slurm and feature == "node features")):
            least = np.zeros(len(workload))
            if feature in noted and noted[feature].above:
                above = [noted[feature].above.get(one.name, np.inf) for one in machine.partitions]
                least = np.array(above)[partition] * workload.procs
            share = float(work[column > least].sum() / max(work.sum(), 1.0))
            name = f"{feature} beyond the processors' share" if feature == "memory" and feature in noted else feature
            found |= {name: share} if share else {}
    found |= {"preemption": None} if machine.preempts else {}
    found |= {LOST_JOBS: None} if machine.loses_jobs else {}
    found |= slurm_limits(machine)
    counted = {name for limit in machine.limits for name in (*limit.by, *limit.among)}
    kinds = dict.fromkeys(name for limit in machine.limits for name in limit.resources)
    columns = {name: next((column for part, column in LIMITED.items() if part in name), "procs") for name in kinds}
    lacking = [f"limits by {name}, which the log lacks" for name in COUNTED if name in counted - workload.columns.keys()]
    lacking += [f"limits on {name}, which the log lacks" for name, column in columns.items() if column not in {"procs", *workload.columns}]
    return found | dict.fromkeys(lacking)


def slurm_limits(machine: Machine) -> dict[str, float | None]:
    """Return the kinds of a machine's limits that only Slurm's scheduling applies, with unknown shares."""
    minutes = any(one.run_minutes is not None for one in machine.limits)
    resources = any(one.resources for one in machine.limits)
    return dict.fromkeys([*([RUN_MINUTES] if minutes else []), *([OTHER_LIMITS] if resources else [])])


def with_settings(
    found: Mapping[str, float | None], machine: Machine, settings: Sequence[str], preempts: bool = False
) -> dict[str, float | None]:
    """Return the features that a policy for individual nodes does not model.

    These include `settings`, Slurm's settings that are not modelled, unless a note of the machine names them, but not BY_NODES. `preempts`:
    whether the policy ends jobs early, by preemption and with their nodes.
    """
    known, noted = {note.text for note in machine.notes}, {note.feature for note in machine.notes}
    lacks = {"reservations": not machine.reservations, "licences": not machine.licences}
    modelled = [name for name in BY_NODES if not lacks.get(name)]
    left = {name: share for name, share in found.items() if name not in modelled or name in noted}
    if preempts and machine.preempts:
        left.pop("preemption", None)
    if preempts:
        left.pop(LOST_JOBS, None)
    return {**left, **dict.fromkeys(text for text in settings if text not in known)}


def omission_sentences(workloads: Iterable[Workload]) -> list[str]:
    """Return one line on the features that are not modelled for these jobs, the largest share of the work first; nothing without them."""
    found = {name: share for workload in workloads for name, share in workload.origin.omissions.items()}
    known = sorted((-share, feature) for feature, share in found.items() if share is not None)
    shares = ", ".join(f"{sanitize(feature)} ({human_percent(-100 * share)} of the work)" for share, feature in known)
    unknown = sanitize(", ".join(feature for feature, share in found.items() if share is None), LONGEST)
    rest = unknown and f"{'; share unknown: ' if shares else ''}{unknown}"
    return [f"Not modelled: {shares}{rest}."] if shares or rest else []


def placing_notes(workload: Workload, machine: Machine) -> list[str]:
    """Return sentences on the jobs that do not fit the machine as described, with their number and share, and on their treatment."""
    notes = {
        "not_limited": f"No pool has {RESOURCES.get(machine.second, machine.second)}, which {{}} of the jobs need; no limit applies.",
        "outside_windows": "The machine's windows would never let {} of the jobs start: the windows for which the request is too long do "
        "not apply to them (outside_windows).",
        "over_limit": "{} of the jobs exceed a limit of the machine by themselves, but ran; the limit does not apply to them (over_limit).",
        "over_partition_limit": "{} of the jobs request more time than their partition allows; the request is cut (over_partition_limit).",
        "unknown_features": "No node has the features or the type of GPUs that {} of the jobs request; they may use any node of their "
        "partition (unknown_features).",
        "unknown_gpu_type": "The log gives no known type for the GPUs of {} of the jobs; on nodes with several types, they get the first "
        "one (unknown_gpu_type).",
        "unknown_reservation": "The machine lacks the reservation of {} of the jobs; it does not apply to them (unknown_reservation).",
    }
    counts = {rule: workload.origin.changed[rule] for rule in notes if workload.origin.changed.get(rule)}
    return [notes[rule].format(f"{count:,} ({human_percent(100 * count / len(workload))})") for rule, count in counts.items()]
