"""A cluster at one moment: its machine, and the jobs that run and wait; taken from Slurm, and kept in a file."""

from __future__ import annotations

import json
import os
import re
import shlex
import time as clock
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from walltime.errors import LogError
from walltime.files import whole_file
from walltime.logs.anonymous import number_for
from walltime.machine import Machine, write_machine
from walltime.machine.files import parse_machine
from walltime.permission import NotRunError
from walltime.slurm.client import CLUSTER, Client
from walltime.slurm.cluster import cluster_of
from walltime.slurm.records import SlurmError, file_text, read_records
from walltime.slurm.snapshot_jobs import RUNNING, SNAPSHOT_RULES, WAITING, SnapshotJob
from walltime.slurm.squeue import BETWEEN, SQUEUE_JSON, SQUEUE_TEXT, read_squeue_json, read_squeue_text
from walltime.wording import printable, sanitize

VERSION = 1
KIND = "walltime snapshot"
TIMEOUT = 120.0
"""Seconds that a command may take."""
SINFO = ("sinfo", "--json")
"""For a cluster whose nodes scontrol does not tell."""
MAY_FAIL = ("reservations", "associations", "qos")
"""Without these there is still a snapshot: sacctmgr may say no to some users."""
_QUOTES = re.compile(r"(Record|Line) |Left out: |The (reservation|maintenance) |.* of the maintenance ")
"""Notes that quote what may name people: what could not be read, what commands said, names of reservations."""
_TIMES = ("submit", "start", "eligible")


@dataclass(frozen=True)
class Snapshot:
    """A cluster at one moment.

    `time`: Unix time. `jobs`: in the order of the queue's output; those that a simulation cannot have say why in `left_out`. `counts`:
    records that were left out, by SNAPSHOT_RULES. `notes`: what else is to be known, in sentences. `time_zone`: of the dates in the
    machine's outages. `slurm`: the version of Slurm, empty if unknown.
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
        """The jobs that run."""
        return [job for job in self.jobs if job.state == RUNNING and not job.left_out]

    @property
    def waiting(self) -> list[SnapshotJob]:
        """The jobs that wait and start when there is room for them."""
        return [job for job in self.jobs if job.state == WAITING and not job.left_out]

    @property
    def apart(self) -> list[SnapshotJob]:
        """The jobs that are set apart: held, dependent, ..."""
        return [job for job in self.jobs if job.left_out]

    def totals(self) -> dict[str, int]:
        """How many jobs run, wait, are set apart or were left out, by rule."""
        apart = Counter(job.left_out for job in self.apart) + Counter(self.counts)
        return {"running": len(self.running), "waiting": len(self.waiting), **{rule: apart[rule] for rule in SNAPSHOT_RULES if apart[rule]}}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON that only its owner may read: it names people. Raises OutputError."""
        document = {
            "kind": KIND,
            "version": VERSION,
            "time": self.time,
            "time_zone": self.time_zone,
            "slurm": self.slurm,
            "anonymous": self.anonymous,
            "counts": dict(self.counts),
            "notes": list(self.notes),
            "machine": write_machine(self.machine),
            "jobs": [job.as_dict() for job in self.jobs],
        }
        with whole_file(path, private=True) as file:
            file.write((json.dumps(document, indent=1) + "\n").encode())

    def anonymised(self, key: bytes) -> Snapshot:
        """With numbers derived from the key in place of users, accounts and job names: those of `walltime convert --anonymise`."""

        def numbered(column: str, text: str) -> str:
            return str(number_for(column, text, key)) if text else ""

        def dependency(text: str) -> str:
            return "yes" if text else ""

        jobs = tuple(
            replace(
                job,
                user=numbered("user", job.user),
                account=numbered("group", job.account),
                name=numbered("executable", job.name),
                dependency=dependency(job.dependency),
            )
            for job in self.jobs
        )
        shares = tuple(
            replace(
                one,
                account=numbered("group", one.account),
                user=one.user and numbered("user", one.user),
                parent=one.parent and numbered("group", one.parent),
            )
            for one in self.machine.shares
        )
        notes = tuple(note for note in self.notes if not _QUOTES.match(note))
        return replace(self, jobs=jobs, machine=replace(self.machine, shares=shares), notes=notes, anonymous=True)


def take_snapshot(client: Client | None = None) -> Snapshot:
    """The cluster of this machine's Slurm as it is now; runs commands that only read. Raises LogError."""
    begin = int(clock.time())
    try:
        texts, notes = _ask(client or Client(timeout=TIMEOUT))
    except SlurmError as error:
        raise LogError(f"{error}; run this where Slurm is, or give its outputs as files", "no_slurm") from error
    snapshot = _snapshot(texts, begin, UTC)
    return replace(snapshot, notes=(*notes, *snapshot.notes))


def shown_commands() -> list[str]:
    """All the commands, as one would type them; the last two only if the first or the node's fail."""
    text = shlex.join(SQUEUE_TEXT[:-1]), SQUEUE_TEXT[-1].removeprefix("--format=").replace(BETWEEN, "\\x1f")
    commands = [shlex.join(words) for words in (SQUEUE_JSON, *CLUSTER.values(), SINFO)]
    return [f"TZ=UTC {one}" for one in (*commands[:-1], f"SLURM_TIME_FORMAT=standard {text[0]} --format=$'{text[1]}'", commands[-1])]


def _ask(client: Client) -> tuple[list[tuple[str, str]], list[str]]:
    """What the commands print, with their names, and notes on those that failed and can be missed."""
    texts, notes = [], []
    try:
        queue = client.ask(*SQUEUE_JSON)
        if not queue.lstrip().startswith("{"):
            raise SlurmError("squeue --json printed no JSON")
    except SlurmError as error:
        try:
            queue = client.ask(*SQUEUE_TEXT)
        except SlurmError:
            raise error from None  # what it said at first tells more
        notes.append("squeue --json failed: its text form was read, which says nothing of least times.")
    texts.append(("squeue", queue))
    for kind, words in CLUSTER.items():
        try:
            texts.append((kind, client.ask(*words)))
        except SlurmError as error:
            if kind == "nodes":
                texts.append((kind, client.ask(*SINFO)))
            elif kind in MAY_FAIL:
                notes.append(f"Left out: {sanitize(str(error), 200)}.")
            else:
                raise
    return texts, notes


def snapshot_of(paths: Sequence[str | os.PathLike[str]], time: int | None = None, zone: tzinfo = UTC) -> Snapshot:
    """A snapshot of outputs of Slurm in these files, or in the files of these folders.

    They are those of `squeue --json` (or its text form), and what `walltime.slurm.read_cluster` reads; in a folder other files are left
    alone. `time`: when they were printed, by default what squeue says of that, else the latest time in them. `zone`: of local times.
    Raises LogError, in one line.
    """
    texts = []
    for path, of_folder in _files(paths):
        text = file_text(path)
        if not of_folder or _kind(text) != "other" or _tells_of_a_cluster(text):
            texts.append((printable(path), text))
    return _snapshot(texts, time, zone)


def _snapshot(texts: Sequence[tuple[str, str]], time: int | None, zone: tzinfo) -> Snapshot:
    queues = [(where, _kind(text), text) for where, text in texts if _kind(text) != "other"]
    about_cluster = [(where, text) for where, text in texts if _kind(text) == "other"]
    if len(queues) > 1:
        raise LogError(f"{queues[1][0]}: there is another output of squeue; give one")
    if not queues:
        raise LogError("there is no output of squeue --json among the files; see the guide on start times")
    if not about_cluster:
        raise LogError("nothing among the files tells of the cluster; see the guide on start times")
    cluster = cluster_of(about_cluster)
    [(_, kind, text)] = queues
    counts: Counter[str] = Counter()
    notes = [*cluster.notes]
    version, when = "", None
    if kind == "json":
        document = json.loads(text)
        jobs = read_squeue_json(document["jobs"], counts, notes)
        version, when = _version(document), _moment(document)
    else:
        jobs = read_squeue_text(text.split("\n"), counts, notes, zone)
    jobs = _once(jobs, counts)
    time = when if time is None else time
    if time is None:
        time = max((getattr(job, name) or 0 for job in jobs for name in _TIMES if not _later(job, name)), default=0)
        notes.append("The files do not say when they were printed: the latest time of a job was taken.")
    if time <= 0:
        raise LogError("the files do not say when they were printed; give the moment")
    return Snapshot(time, cluster.machine, tuple(_placed(jobs, cluster.machine, notes)), dict(counts), tuple(notes), str(zone), version)


def read_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot's file; raises LogError, in one line."""
    where = printable(path)
    try:
        document = json.loads(file_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, LogError):
            raise
        raise LogError(f"{where}: is no snapshot ({type(error).__name__}); make one with walltime slurm snapshot") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise LogError(f"{where}: is no snapshot; make one with walltime slurm snapshot", "not_a_snapshot")
    if document.get("version") != VERSION:
        raise LogError(
            f"{where}: is a snapshot of version {sanitize(str(document.get('version')))}, known is {VERSION}; take it again",
            "unknown_version",
        )
    try:
        jobs = tuple(SnapshotJob.of(one) for one in _of_kind(document, "jobs", list))
        counts = {str(name): int(value) for name, value in _of_kind(document, "counts", dict).items()}
        time = _of_kind(document, "time", int)
        if not 0 < time < 2**40:
            raise LogError(f"its time cannot be {time}; take the snapshot again")
        machine = parse_machine(_of_kind(document, "machine", str), where)
        known = {one.name for one in machine.partitions}
        return Snapshot(
            time,
            machine,
            tuple(one if one.left_out or one.partition in known else replace(one, left_out="other_partition") for one in jobs),
            counts,
            tuple(map(str, _of_kind(document, "notes", list))),
            _of_kind(document, "time_zone", str),
            _of_kind(document, "slurm", str),
            _of_kind(document, "anonymous", bool),
        )
    except NotRunError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise LogError(f"{where}: {sanitize(str(error).removeprefix(f'{where}: '), 200)}", "wrong_field") from error


def _of_kind(document: Mapping[str, Any], name: str, kind: type) -> Any:
    value = document.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise LogError(f"{name} is missing or of another kind; take the snapshot again")
    return value


def _files(paths: Sequence[str | os.PathLike[str]]) -> list[tuple[Path, bool]]:
    """The files, and whether each was found in a folder; raises LogError."""
    files: list[tuple[Path, bool]] = []
    for one in map(Path, paths):
        try:
            files += [(path, True) for path in sorted(one.iterdir()) if path.is_file()] if one.is_dir() else [(one, False)]
        except OSError as error:
            raise LogError(f"{printable(one)}: cannot be read ({(error.strerror or str(error)).lower()})") from error
    return files


def _kind(text: str) -> str:
    """`json` or `text` for an output of squeue, else `other`."""
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return "other"
        jobs = document.get("jobs")
        ended = isinstance(jobs, list) and any(isinstance(one, dict) and "time" in one for one in jobs[:1])  # those of sacct
        command = document.get("meta", {}).get("command") if isinstance(document.get("meta"), dict) else None
        others = isinstance(command, list) and command and not str(command[0]).endswith("squeue")  # scontrol show job has the same form
        return "json" if isinstance(jobs, list) and not ended and not others else "other"
    first = text.partition("\n")[0]
    return "text" if first.count(BETWEEN) > 10 and not first.startswith("JobIDRaw") else "other"


def _tells_of_a_cluster(text: str) -> bool:
    try:
        return bool(read_records([("", text)]).known)
    except LogError:
        return False


def _version(document: Mapping[str, Any]) -> str:
    meta = document.get("meta")
    slurm = (meta.get("slurm") or meta.get("Slurm")) if isinstance(meta, dict) else None
    return sanitize(str(slurm.get("release", ""))) if isinstance(slurm, dict) else ""


def _moment(document: Mapping[str, Any]) -> int | None:
    value = document.get("last_update")
    number = value.get("number") if isinstance(value, dict) and value.get("set") else value
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**40 else None


def _later(job: SnapshotJob, name: str) -> bool:
    """Whether a time of a job may lie in the future: a waiting one becomes eligible then."""
    return name == "eligible" and job.state == WAITING


def _once(jobs: Sequence[SnapshotJob], counts: Counter[str]) -> list[SnapshotJob]:
    """The jobs, each once."""
    kept: dict[str, SnapshotJob] = {}
    for job in jobs:
        if job.label in kept:
            counts["repeated"] += 1
        else:
            kept[job.label] = job
    return list(kept.values())


def _placed(jobs: Sequence[SnapshotJob], machine: Machine, notes: list[str]) -> list[SnapshotJob]:
    """The jobs, each in one partition that the machine has: of several that it may go to, the first; else it is left out."""
    known = {partition.name for partition in machine.partitions}
    placed, several = [], 0
    for job in jobs:
        names = [name for name in job.partition.split(",") if name in known]
        several += "," in job.partition
        if not names:
            placed.append(replace(job, left_out=job.left_out or "other_partition"))
        else:
            placed.append(job if names[0] == job.partition else replace(job, partition=names[0]))
    if several:
        notes.append(f"{several:,} jobs may go to several partitions: the first one was taken.")
    return placed
