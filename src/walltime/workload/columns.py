"""All columns that a job can have, declared once for readers, the Parquet schema and the documentation."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from walltime.errors import WorkloadError

MISSING = -1
"""The value that means "unknown" in integer columns, as in the Standard Workload Format."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its content, and its position in a Standard Workload Format record."""

    name: str
    dtype: Literal["int64", "float64", "uint8"]
    unit: str
    meaning: str
    swf_field: int | None = None
    """Position in an SWF record, counted from 1; None for columns that are not part of the format."""
    groups: bool = False
    """Whether jobs can be grouped by it, as with `--by`."""


IDLE_GPU = 1.0
"""A GPU is idle below this mean use, percent."""

SWF_COLUMNS = (
    Column("job_id", "int64", "", "number of the job in its log", 1),
    Column("submit", "int64", "s", "time of submission, from the start of the log", 2),
    Column("wait", "int64", "s", "time between submission and start in the real schedule", 3),
    Column("runtime", "int64", "s", "wall-clock time that the job ran", 4),
    Column("allocated_procs", "int64", "processors", "processors allocated to the job", 5),
    Column("cpu_time", "float64", "s", "processor time used, averaged over the processors", 6),
    Column("memory", "float64", "KB", "memory used, averaged over the processors", 7),
    Column("requested_procs", "int64", "processors", "processors that the user requested", 8),
    Column("requested", "int64", "s", "runtime that the user requested: the estimate and the kill limit", 9),
    Column("requested_memory", "float64", "KB", "memory that the user requested, per processor", 10),
    Column("status", "int64", "", "1 completed, 0 failed, 5 cancelled; 2, 3, 4 parts of an interrupted job", 11),
    Column("user", "int64", "", "number of the user", 12),
    Column("group", "int64", "", "number of the user's group or project", 13, groups=True),
    Column("executable", "int64", "", "number of the program", 14),
    Column("queue", "int64", "", "number of the queue; 0 is interactive by convention", 15),
    Column("partition", "int64", "", "number of the partition", 16),
    Column("preceding_job", "int64", "", "number of the job that this one waited for", 17),
    Column("think_time", "int64", "s", "time between the end of the preceding job and this submission", 18),
)
"""The 18 fields of the Standard Workload Format 2.2, in order. -1 means unknown in all of them."""

BATCH_COLUMNS = (
    Column("held", "int64", "s", "time between the submission and the time from which the job waited for processors"),
    Column("held_in_hindsight", "int64", "s", "the part of that time from the machine file (`eligible`)"),
    Column("nodes", "int64", "nodes", "nodes allocated, or requested where the job did not start"),
    Column("requested_nodes", "int64", "nodes", "nodes requested (`node` of ReqTRES)"),
    Column("most_nodes", "int64", "nodes", "maximum number of nodes (`-N 2` or `-N 1-2`)"),
    Column("cpus_per_task", "int64", "processors", "processors of each task, all on one node (`-c`)"),
    Column("tasks_per_node", "int64", "", "tasks on each node (`--ntasks-per-node`)"),
    Column("node_list", "int64", "", "nodes on which the job ran, such as n[1-4] (named)"),
    Column("gpus", "int64", "GPUs", "GPUs allocated, or requested where none are"),
    Column("requested_gpus", "int64", "GPUs", "GPUs requested (ReqTRES, ReqGRES before Slurm 20.11, or SubmitLine)"),
    Column("gpus_per_node", "int64", "GPUs", "GPUs requested on each node (`--gres`, `--gpus-per-node`); 0 for a request in total (`-G`)"),
    Column("gpus_per_task", "int64", "GPUs", "GPUs requested for each task (`--gpus-per-task`)"),
    Column("gpu_type", "int64", "", "type of the allocated GPUs, such as a100, or a100:1+v100:2 for several (named)", groups=True),
    Column("requested_gpu_type", "int64", "", "type of the requested GPUs (named)", groups=True),
    Column("gpu_use", "float64", "%", "mean use of the allocated GPUs (`gres/gpuutil` of TRESUsageIn, jobstats, GPUsAverageUsage)"),
    Column("gpus_idle", "int64", "GPUs", "allocated GPUs with a mean use below 1 % (jobstats, tables of use)"),
    Column("gpu_mem_mb", "float64", "MB", "peak of the memory used on GPUs (`gres/gpumem` of TRESUsageInTot, jobstats)"),
    Column("mem_mb", "float64", "MB", "memory allocated to the whole job, or requested"),
    Column("requested_mem_mb", "float64", "MB", "memory requested for the whole job (`mem` of ReqTRES, or ReqMem)"),
    Column("mem_mb_per_node", "int64", "MB", "memory requested on each node (`--mem`)"),
    Column("mem_mb_per_cpu", "int64", "MB", "memory requested for each processor (`--mem-per-cpu`)"),
    Column(
        "used_mem_mb",
        "float64",
        "MB",
        "peak of the memory used (`mem` of TRESUsageInTot, MaxRSS, jobstats, resources_used.mem, maxRMem, maxvmem, MemoryUsage)",
    ),
    Column("max_rss_mb", "float64", "MB", "memory of the largest task of any step (MaxRSS)"),
    Column("ave_rss_mb", "float64", "MB", "mean memory of the tasks, the largest of the job's steps (AveRSS)"),
    Column("user_cpu_time", "int64", "s", "processor time of the job in user mode, over all processors (UserCPU)"),
    Column("energy", "float64", "J", "energy used (ConsumedEnergyRaw)"),
    Column("billing", "int64", "", "billing units of the allocation"),
    Column("earlier_runtime", "int64", "s", "time of the job's earlier runs, where they are joined (`--join-runs`)"),
    Column("array_job", "int64", "", "number of the task's job array"),
    Column("array_task", "int64", "", "index of the task in its array"),
    Column("array_limit", "int64", "", "maximum number of running tasks of the array (`--array=0-9%2`)"),
    Column("het_job", "int64", "", "number of the component's heterogeneous job"),
    Column("priority", "int64", "", "last priority in the batch system"),
    Column("nice", "int64", "", "amount by which the user lowered the priority (`--nice`)"),
    Column("site_factor", "int64", "", "amount by which the site raised the priority, as Slurm's SiteFactor"),
    Column("time_min", "int64", "s", "least runtime that the user accepts (`--time-min`), for which Slurm may start the job"),
    Column("exclusive", "int64", "", "1 if the job requested whole nodes (`--exclusive`), 2 nodes of its user alone (`--exclusive=user`)"),
    Column("spread", "int64", "", "1 if the job requested to be spread over many nodes (`--spread-job`)"),
    Column("restarts", "int64", "", "number of times that the job was put back into the queue"),
    Column("run_count", "int64", "", "number of times that PBS started the job"),
    Column("exit_code", "int64", "", "exit code of the job's script"),
    Column("exit_signal", "int64", "", "signal that ended it"),
    Column("sched_backfill", "int64", "", "1 started by Slurm's backfill scheduler, 0 by its main one"),
    Column("state", "int64", "", "last state of the job, as recorded, such as TIMEOUT, OUT_OF_MEMORY or NODE_FAIL (named)", groups=True),
    Column("reason", "int64", "", "last reason for which the job waited, such as Priority (named)"),
    Column("reservation", "int64", "", "reservation in which it ran (named)", groups=True),
    Column("constraints", "int64", "", "features of nodes that the job requested, such as skylake|icelake (named)", groups=True),
    Column("licences", "int64", "", "licences that the job requested (named)", groups=True),
    Column("cluster", "int64", "", "cluster, in logs of several (named)", groups=True),
    Column("machine", "int64", "", "machine of a job table of ALCF (named)"),
    Column("cores", "int64", "cores", "cores of the allocated nodes, in a job table of ALCF"),
    Column("eligible_wait", "int64", "s", "time for which the job was eligible to run, in a job table of ALCF"),
)
"""Additional columns of batch systems' logs; -1 is unknown."""

PROCS = Column("procs", "int64", "processors", "processors that the simulated job occupies: allocated if known, else requested")
PLANNED = Column("planned", "int64", "s", "runtime that the scheduler plans with; the user's request unless an estimate model replaces it")

LIMIT = Column("limit", "int64", "s", "limit under which the job ran, in schedules in which Slurm has shortened limits")

INTERRUPTED = Column("interrupted", "int64", "", "1 if the run ended early (preemption, node failure); requeued jobs have a row per run")

SCHEDULE_COLUMNS = (
    SWF_COLUMNS[0],
    SWF_COLUMNS[1],
    Column("start", "int64", "s", "time at which the job started"),
    Column("end", "int64", "s", "time at which the job ended"),
    PROCS,
    SWF_COLUMNS[8],
    SWF_COLUMNS[3],
    PLANNED,
    Column("kind", "uint8", "", "how the job started: 0 immediate, 1 reserved, 2 backfilled"),
    Column("reserved_start", "int64", "s", "first reserved start of the job; -1 if it never had a reservation"),
)
"""The columns of a schedule file, in order; files from other simulators need only the first four."""

GROUPED_COLUMNS = ("partition", "queue")
"""The groupings on every page that compares groups."""

GROUPING_COLUMNS = (*GROUPED_COLUMNS, *(column.name for column in (*SWF_COLUMNS, *BATCH_COLUMNS) if column.groups))
"""The columns by which `--by` groups jobs."""

SWF_BY_NAME = {column.name: column for column in SWF_COLUMNS}


IDENTITIES = ("user", "group", "executable", "queue", "partition")
"""Columns whose numbers stand for names."""


def numbered(name: str, values: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a column as numbers, and the names of the numbers 1, 2, ... if its values are texts.

    Raises WorkloadError if only some values are texts, and if a column of identities has a number that is not whole.
    """
    if values.dtype.kind in "OUT":
        listed = values.tolist()
        place: dict[str, int] = {}
        if not all(isinstance(one, str) for one in listed):
            wrong = next(one for one in listed if not isinstance(one, str))
            raise WorkloadError(f"the column {name} must have a number or a string for each job, not {wrong!r}", "wrong_type")
        return np.array([place.setdefault(one, len(place) + 1) for one in listed], np.int64), tuple(place)
    if name in IDENTITIES and values.dtype.kind == "f":
        if not np.isfinite(values).all() or (values != np.floor(values)).any():
            raise WorkloadError(f"the column {name} must have a whole number or a string for each job, -1 if unknown", "wrong_type")
        return values.astype(np.int64), ()
    return values, ()
