"""Snapshots of a cluster: its machine and its running and waiting jobs, read from Slurm or from a file."""

from __future__ import annotations

import json
import os
import re
import shlex
import time as clock
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from walltime.errors import LogError
from walltime.files import whole_file
from walltime.logs.anonymous import number_for
from walltime.machine import Machine, write_machine
from walltime.machine.machine import parse_machine
from walltime.permission import NotRunError
from walltime.slurm.client import CLUSTER, Client
from walltime.slurm.cluster import Cluster, parse_cluster
from walltime.slurm.json_records import value_at
from walltime.slurm.records import SlurmError, file_text, read_records
from walltime.slurm.snapshot_jobs import LARGEST_COUNT, RUNNING, SNAPSHOT_RULES, WAITING, SnapshotJob, never_rule
from walltime.slurm.squeue import BETWEEN, SQUEUE_JSON, SQUEUE_TEXT, read_squeue_json, read_squeue_text
from walltime.wording import counted, printable, sanitize

VERSION = 1
KIND = "walltime snapshot"
TIMEOUT = 120.0
"""Maximum time of a command, s."""
SINFO = ("sinfo", "--all", "--json")
"""The command for clusters whose scontrol cannot list the nodes."""
OPTIONAL = ("reservations", "associations", "qos")
"""Kinds of records that a snapshot can do without: sacctmgr may reject some users."""
_PLAIN = {"time": int, "time_zone": str, "slurm": str, "anonymous": bool, "counts": dict, "notes": list}
"""The fields of a snapshot that are stored unchanged in its file, and their JSON types."""
_QUOTES = re.compile(r"(Record|Line) |Left out: |The (reservation|maintenance) |.* in the maintenance |.*reservations in other forms")
"""Notes that may contain names of people, because they quote unreadable records, messages of commands, or names of reservations."""


@dataclass(frozen=True)
class Snapshot:
    """The state of a cluster at one moment.

    `time`: Unix time. `jobs`: in the order of the queue's output; jobs that are not simulated have a reason in `left_out`. `counts`: the
    number of records left out, by the rules of SNAPSHOT_RULES. `notes`: sentences. `time_zone`: the time zone of the dates in the machine's
    outages. `slurm`: Slurm's version, empty if unknown.
    """

    time: int
    machine: Machine
    jobs: tuple[SnapshotJob, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    time_zone: str = "UTC"
    slurm: str = ""
    anonymous: bool = False

    @property
    def running(self) -> list[SnapshotJob]:
        """Return the running jobs."""
        return [job for job in self.jobs if job.state == RUNNING and not job.left_out]

    @property
    def waiting(self) -> list[SnapshotJob]:
        """Return the waiting jobs that can start when there is room for them."""
        return [job for job in self.jobs if job.state == WAITING and not job.left_out]

    @property
    def never(self) -> list[SnapshotJob]:
        """Return the waiting jobs that can never start."""
        return [job for job in self.jobs if job.never]

    @property
    def apart(self) -> list[SnapshotJob]:
        """Return the jobs that are not simulated, such as held or dependent jobs."""
        return [job for job in self.jobs if job.left_out]

    def checked(self) -> Snapshot:
        """Return the snapshot with the waiting jobs that can never start marked as left out."""
        jobs = (one if one.left_out else replace(one, left_out=never_rule(one, self.machine)) for one in self.jobs)
        return replace(self, jobs=tuple(jobs))

    def totals(self) -> dict[str, int]:
        """Return the numbers of running, waiting and left-out jobs, the last by rule."""
        apart = Counter(job.left_out for job in self.apart) + Counter(self.counts)
        return {"running": len(self.running), "waiting": len(self.waiting), **{rule: apart[rule] for rule in SNAPSHOT_RULES if apart[rule]}}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the snapshot as JSON to a file that only its owner may read, because it names people. Raises OutputError."""
        document = {"kind": KIND, "version": VERSION, **{name: getattr(self, name) for name in _PLAIN}}
        document |= {"machine": write_machine(self.machine), "jobs": [job.as_dict() for job in self.jobs]}
        with whole_file(path, private=True) as file:
            file.write((json.dumps(document, indent=1) + "\n").encode())

    def anonymised(self, key: bytes) -> Snapshot:
        """Return a copy with numbers in place of names of users, accounts and jobs, as in a log anonymised with the same key."""

        def numbered(values: Any, **columns: str) -> Any:
            texts = {name: getattr(values, name) for name in columns}
            return replace(values, **{n: text and str(number_for(columns[n], text, key)) for n, text in texts.items()})

        jobs = (numbered(job, user="user", account="group", name="executable", reservation="reservation") for job in self.jobs)
        shares = tuple(numbered(share, account="group", user="user", parent="group") for share in self.machine.shares)
        reservations = (replace(one, users=(), accounts=()) for one in self.machine.reservations)
        return replace(
            self,
            jobs=tuple(replace(job, dependency="yes" if job.dependency else "") for job in jobs),
            machine=replace(self.machine, shares=shares, reservations=tuple(numbered(one, name="reservation") for one in reservations)),
            notes=tuple(note for note in self.notes if not _QUOTES.match(note)),
            anonymous=True,
        )


def take_snapshot(client: Client | None = None) -> Snapshot:
    """Return the present state of this machine's Slurm cluster, from commands that only read. Raises LogError."""
    begin = int(clock.time())
    try:
        texts, notes = _outputs(client or Client(timeout=TIMEOUT))
    except SlurmError as error:
        raise LogError(f"{error}; run this on a machine with Slurm, or give its outputs as files", "no_slurm") from error
    snapshot = _snapshot(texts, begin, UTC)
    return replace(snapshot, notes=(*notes, *snapshot.notes))


def shown_commands() -> list[str]:
    """Return all commands as typed in a shell; the last two run only if the first one, or the one for the nodes, fails."""
    text = shlex.join(SQUEUE_TEXT[:-1]), SQUEUE_TEXT[-1].removeprefix("--format=").replace(BETWEEN, "\\x1f")
    commands = [shlex.join(words) for words in (SQUEUE_JSON, *CLUSTER.values(), SINFO)]
    return [f"TZ=UTC {one}" for one in (*commands[:-1], f"SLURM_TIME_FORMAT=standard {text[0]} --format=$'{text[1]}'", commands[-1])]


def _outputs(client: Client) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the outputs of the commands with their names, and notes on optional commands that failed."""
    texts, notes = [], []
    try:
        queue = client.output(*SQUEUE_JSON)
        if not queue.lstrip().startswith("{"):
            raise SlurmError("squeue --json printed no JSON; check that the command works on this machine")
    except SlurmError as error:
        try:
            queue = client.output(*SQUEUE_TEXT)
        except SlurmError:
            raise error from None  # the first error is more useful
        notes.append("squeue --json failed: its text form was read, which has no TimeMin.")
    texts.append(("squeue", queue))
    for kind, words in CLUSTER.items():
        try:
            texts.append((kind, client.output(*words)))
        except SlurmError as error:
            if kind == "nodes":
                texts.append((kind, client.output(*SINFO)))
            elif kind in OPTIONAL:
                notes.append(f"Left out: {sanitize(str(error), 200)}.")
            else:
                raise
    return texts, notes


def snapshot_from_files(paths: Sequence[str | os.PathLike[str]], time: int | None = None, zone: tzinfo = UTC) -> Snapshot:
    """Return a snapshot from Slurm's outputs in these files, or in the files of these folders.

    The files must include the output of `squeue --json` (or its text form), and outputs that `walltime.slurm.read_cluster` accepts; other
    files in a folder are ignored. `time`: when they were printed (Unix time), by default the time in squeue's output, else the latest time
    of a job. `zone`: the zone of local times. Raises LogError.
    """
    texts = []
    for path, from_folder in _files(paths):
        text = file_text(path)
        is_known = not from_folder or _queue(text) is not None
        with suppress(LogError):
            is_known = is_known or bool(read_records([("", text)]).known)
        if is_known:
            texts.append((printable(path), text))
    return _snapshot(texts, time, zone)


def _snapshot(texts: Sequence[tuple[str, str]], time: int | None, zone: tzinfo) -> Snapshot:
    found = [(where, text, _queue(text)) for where, text in texts]
    queues = [(where, queue) for where, _, queue in found if queue is not None]
    others = [(where, text) for where, text, queue in found if queue is None]
    if len(queues) > 1:
        raise LogError(f"{queues[1][0]}: this is a second output of squeue; give only one")
    if not queues:
        raise LogError("no file has the output of squeue --json; see docs/guides/start-times.md")
    if not others:
        raise LogError("none of the files describes the cluster; see docs/guides/start-times.md")
    cluster = parse_cluster(others, at_present=True)
    [(_, queue)] = queues
    counts: Counter[str] = Counter()
    notes = [*cluster.notes]
    version = ""
    if isinstance(queue, list):
        listed = read_squeue_text(queue, counts, notes, zone)
    else:
        listed = read_squeue_json(queue["jobs"], counts, notes)
        version = sanitize(str(value_at(queue, "meta/slurm/release") or value_at(queue, "meta/Slurm/release") or ""))
        time = _moment(queue) if time is None else time
    distinct: dict[str, SnapshotJob] = {}
    for job in listed:
        distinct.setdefault(job.label, job)
    jobs = list(distinct.values())
    if len(listed) > len(jobs):
        counts["repeated"] = len(listed) - len(jobs)
    if time is None:  # a waiting job may become eligible in the future
        time = max((max(job.submit or 0, job.start or 0, 0 if job.state == WAITING else job.eligible or 0) for job in jobs), default=0)
        notes.append("The files do not record when they were saved: the latest time of a job is used.")
    if time <= 0:
        raise LogError("the files do not record when they were saved; give the time")
    placed = tuple(_placed(jobs, cluster, notes))
    return Snapshot(time, cluster.machine, placed, dict(counts), tuple(notes), str(zone), version).checked()


def read_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot's file; raises LogError."""
    where, text = printable(path), file_text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LogError(f"{where}: not a snapshot (not valid JSON); make one with walltime slurm snapshot") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise LogError(f"{where}: not a snapshot; make one with walltime slurm snapshot", "not_a_snapshot")
    if document.get("version") != VERSION:
        version = sanitize(str(document.get("version")))
        raise LogError(f"{where}: snapshot version {version} is not supported, only {VERSION}; take it again", "unknown_version")

    def value(name: str, kind: type) -> Any:
        found = document.get(name)
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise LogError(f"{name} is missing or of another type; take the snapshot again")
        return found

    try:
        jobs = [SnapshotJob.of(one) for one in value("jobs", list)]
        machine = parse_machine(value("machine", str), where)
        plain = {name: value(name, kind) for name, kind in _PLAIN.items()}
        plain |= {"counts": {str(name): int(count) for name, count in plain["counts"].items()}, "notes": tuple(map(str, plain["notes"]))}
        if not 0 < plain["time"] < 2**40:
            raise LogError(f"time cannot be {plain['time']}; take the snapshot again")
        known = {one.name for one in machine.partitions}
        placed = tuple(one if one.left_out or one.partition in known else replace(one, left_out="other_partition") for one in jobs)
        return Snapshot(machine=machine, jobs=placed, **plain).checked()
    except NotRunError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise LogError(f"{where}: {sanitize(str(error).removeprefix(f'{where}: '), 200)}", "wrong_field") from error


def _files(paths: Sequence[str | os.PathLike[str]]) -> list[tuple[Path, bool]]:
    """Return each file, and whether it was found in a folder instead of named directly; raises LogError."""
    files: list[tuple[Path, bool]] = []
    for one in map(Path, paths):
        try:
            files += [(path, True) for path in sorted(one.iterdir()) if path.is_file()] if one.is_dir() else [(one, False)]
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise LogError(f"{printable(one)}: cannot be read ({reason}); check its name", "unreadable_file") from error
    return files


def _queue(text: str) -> Mapping[str, Any] | list[str] | None:
    """Return the document of squeue or slurmrestd, or the lines of squeue's text; None for other texts.

    The document may also be an array of its jobs, as `jq` prints it.
    """
    if not text.lstrip().startswith(("{", "[")):
        lines = text.split("\n")
        return lines if lines[0].count(BETWEEN) > 10 and not lines[0].startswith("JobIDRaw") else None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, list):
        document = {"jobs": document} if document and isinstance(document[0], dict) and "job_state" in document[0] else {}
    jobs = document.get("jobs")
    ended = isinstance(jobs, list) and any(isinstance(one, dict) and "time" in one for one in jobs[:1])  # as in sacct's documents
    command = value_at(document, "meta/command")
    others = isinstance(command, list) and command and not str(command[0]).endswith("squeue")  # scontrol show job has the same form
    return document if isinstance(jobs, list) and not ended and not others else None


def _moment(document: Mapping[str, Any]) -> int | None:
    value = document.get("last_update")
    number = value.get("number") if isinstance(value, dict) and value.get("set") else value
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**40 else None


def _placed(jobs: Sequence[SnapshotJob], cluster: Cluster, notes: list[str]) -> list[SnapshotJob]:
    """Put each job into the first of its partitions in which it can start; jobs whose partitions the machine lacks are left out."""
    known = {partition.name for partition in cluster.machine.partitions}
    placed = []
    for job in jobs:
        mine = [replace(job, partition=name) for name in job.partition.split(",") if name in known]
        if cluster.node_memory and job.state == WAITING:
            least = max(job.node_memory_mb, job.cpu_memory_mb)
            rules = ["over_node_memory" * (least > cluster.node_memory.get(one.partition, LARGEST_COUNT)) for one in mine]
            mine = [replace(one, left_out=one.left_out or rule) for one, rule in zip(mine, rules, strict=True)]
        can_start = (one for one in mine if not (one.left_out or never_rule(one, cluster.machine)))
        placed.append(next(can_start, mine[0] if mine else replace(job, left_out=job.left_out or "other_partition")))
    if several := sum("," in job.partition for job in jobs):
        notes.append(f"{counted(several, 'job')} may go to several partitions: the first one is used.")
    return placed
