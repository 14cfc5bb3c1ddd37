"""Read the events of the Slurm Simulator of the University at Buffalo: time, runtime and sbatch options of each submission.

Source: the tutorials of https://github.com/ubccr-slurm-simulator/slurm_sim_tools
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from walltime.logs.batch_systems import NO_LIMIT, RecordError, Run, Skip, read_runs, whole
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.rules import OTHER_EVENT
from walltime.logs.slurm.command_line import LIMITS, REQUESTS, given_options
from walltime.workload import MISSING

_HEAD = re.compile(rb"\A(?:#[^\n]*\n|\s*\n)*-dt [0-9.]+ -e [a-z_]+", re.ASCII)
_EVENT = re.compile(r"-dt ([0-9]{1,12})(?:\.[0-9]*)? -e ([a-z_]+)(?: \|(.*))?", re.ASCII)
_RUNTIME = re.compile(r" -sim-walltime (-1|[0-9]{1,9})(?:\.[0-9]*)?(?= )", re.ASCII)
_NAMES = {"user": "--uid", "group": "--account", "queue": "--qos", "partition": "--partition", "constraints": "--constraint"}


def _runs(line: str) -> Iterator[Run]:
    text = line.strip()
    if not text or text.startswith("#"):
        return
    event = _EVENT.fullmatch(text)
    if event is None:
        raise RecordError("not an event such as '-dt 0 -e submit_batch_job | OPTIONS SCRIPT'")
    if event[2] != "submit_batch_job":
        raise Skip(OTHER_EVENT)
    runtime = _RUNTIME.search(event[3] or "")
    if runtime is None:
        raise RecordError("has no runtime (-sim-walltime SECONDS, or -1 for a job that runs until its limit)")
    given = given_options("sbatch" + _RUNTIME.sub("", event[3]))
    values = dict.fromkeys((column for column, _, _ in REQUESTS), MISSING)
    for column, option, meaning in (*REQUESTS, LIMITS[0]):
        if option in given:
            values[column] = meaning(given[option])
    limit = values.pop("LIMIT", NO_LIMIT)
    number = re.search(r"[0-9]{1,15}$", given.get("--job-name", ""), re.ASCII)
    nodes, tasks_per_node, cpus = (max(values[name], 1) for name in ("most_nodes", "tasks_per_node", "cpus_per_task"))
    tasks = whole(given["--ntasks"], "--ntasks") if "--ntasks" in given else nodes * tasks_per_node
    if values["tasks_per_node"] > 0:
        nodes = max(nodes, -(-tasks // tasks_per_node))
    per_node, in_total = values["gpus_per_node"], max(values.pop("GPUS"), values["gpus_per_task"] * tasks, 0)
    memory = values["mem_mb_per_node"] * nodes if values["mem_mb_per_node"] > 0 else max(values["mem_mb_per_cpu"], 0) * tasks * cpus
    numbers = {
        "job_id": int(number[0]) if number else MISSING,
        "submit": int(event[1]),
        "start": MISSING,
        "runtime": limit if runtime[1] == "-1" else int(runtime[1]),
        "requested": limit if limit > 0 else NO_LIMIT,
        "allocated_procs": tasks * cpus,
        "requested_nodes": nodes if {"most_nodes", "tasks_per_node"} & {name for name, value in values.items() if value > 0} else MISSING,
        "gpus": nodes * per_node if per_node > 0 else in_total,
        "mem_mb": memory or MISSING,
        **values,
    }
    yield numbers, {column: given.get(option, "") for column, option in _NAMES.items()}, None


def _read(state: ReaderState) -> JobLog:
    return read_runs(state, "slurm-events", state.lines(), _runs, absolute=False)


SIMULATOR = LogFormat("slurm-events", "the events of the Slurm Simulator", (), _HEAD, _read)
"""A file of submissions; it has no starts."""
