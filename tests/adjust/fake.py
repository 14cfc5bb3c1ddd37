"""A cluster without a Slurm: what scontrol, squeue and sbatch would answer, over a virtual clock, by rules simple enough to be read.

A node is one number, the queue is in order of submission, backfilling is EASY by time limits; a waiting job with a TimeMin is planned
by it, and shortened to it, or to what fits, when backfill starts it, unless limits are soft. Limits are enforced every 30 seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from walltime.slurm.client import CommandResult
from walltime.slurm.squeue_fields import FIELDS

STEP = 10
MIN_JOB_AGE = 300
"""Seconds for which a job is shown that has ended."""
BEGIN = 1_800_000_000
CONFIG = """Configuration data as of 2027-01-15T08:00:00
AccountingStorageEnforce = {enforce}
BOOT_TIME               = {boot}
ClusterName             = {name}
JobSubmitPlugins        = lua
SchedulerParameters     = bf_continue{soft}
SchedulerType           = sched/backfill
SlurmUser               = slurm(64030)
SLURM_VERSION           = 24.11.5
"""


class KilledError(BaseException):
    """The side-car is killed here; not an Exception, so that it cannot catch it."""


@dataclass
class Job:
    """A job; `limit`, `time_min`, `wanted` in minutes: `wanted` is the limit that its user has asked for last."""

    number: int
    user: str
    nodes: int
    runtime: int
    wanted: int
    submit: int
    name: str = "job"
    limit: int = 0
    time_min: int = 0
    start: int = 0
    end: int = 0
    restarts: int = 0
    state: str = "PENDING"
    held: bool = False
    account: str = "bio"
    others: dict[str, object] = field(default_factory=dict)
    """fields of squeue that differ from what they would be"""

    @property
    def key(self) -> str:
        return str(self.number)


class Clock:
    """The virtual time; `wrong` is how far the machine's clock is off."""

    def __init__(self) -> None:
        self.now = float(BEGIN)
        self.wrong = 0.0

    def time(self) -> float:
        return self.now + self.wrong

    def monotonic(self) -> float:
        return self.now - BEGIN


class FakeSlurm:
    """The cluster; call it as a runner of commands. `fault`: is asked at each command for the fault to be made, None for none."""

    def __init__(self, nodes: int, jobs: Sequence[Job] = (), soft: bool = False, guard: bool = True, grows: bool = False):
        self.nodes, self.soft, self.guard, self.grows = nodes, soft, guard, grows
        self.spool: Path | None = None  # what its prolog reads; None without one
        self.prolog_fails = 0.0
        self.clock = Clock()
        self.jobs: dict[str, Job] = {}
        self._present: dict[str, Job] = {}  # those that wait or run
        self.coming = sorted(jobs, key=lambda job: job.submit)
        self.boot = 0
        self.down_until = 0.0
        self.reservations: list[tuple[str, float, float]] = []
        self.late: list[tuple[float, tuple[str, ...]]] = []
        self.violations: list[str] = []
        self.backfilled: list[str] = []
        self.updates: list[tuple[str, ...]] = []
        self.fault: Callable[[tuple[str, ...]], str | None] = lambda words: None
        self.rng = random.Random(0)
        self.slow: Callable[[tuple[str, ...]], float] = lambda words: 0.0  # seconds that a command takes
        self.blind = False  # it answers, and shows no job
        self.name, self.enforce = "fake", "none"
        self.partition = "PartitionName=main Nodes=n[1-{nodes}] MaxTime=2-00:00:00 State=UP"
        self.promised: dict[str, float] = {}  # the first start that was reserved for each job
        self.begun: dict[str, float] = {}
        self._past: dict[str, Job] = {}
        self._next = 900_000

    # ------------------------------------------------------------------------------------------------------------- the cluster

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(self.clock.now - (self.clock.now - BEGIN) % STEP + STEP, end)
            self._step()

    def _step(self) -> None:
        now = self.clock.now
        while self.coming and self.coming[0].submit <= now:
            job = self.coming.pop(0)
            job.limit = job.limit or job.wanted
            self._come(job)
        for job in self.running():  # slurmd ends jobs whether slurmctld is up or not
            if now >= job.start + job.runtime:
                self._end(job, "COMPLETED")
        if now < self.down_until:
            return
        for late in [late for late in self.late if late[0] <= now]:
            self.late.remove(late)
            self._update(late[1])
        if int(now) % 30 == 0:
            for job in self.running():
                if now >= job.start + job.limit * 60:
                    if now < job.start + job.wanted * 60:
                        self.violations.append(f"job {job.key} ended after {job.limit} of {job.wanted} minutes")
                    self._end(job, "TIMEOUT")
        self._schedule()

    def running(self) -> list[Job]:
        return [job for job in self._present.values() if job.state == "RUNNING"]

    def waiting(self) -> list[Job]:
        return [job for job in self._present.values() if job.state == "PENDING"]

    def _come(self, job: Job) -> None:
        self.jobs[job.key] = self._present[job.key] = job

    def _end(self, job: Job, state: str) -> None:
        job.state, job.end = state, int(self.clock.now)
        if self._present.pop(job.key, None) is not None:
            self._past[job.key] = job

    def _schedule(self) -> None:
        now = self.clock.now
        free = self.nodes - sum(job.nodes for job in self.running())
        queue = [job for job in self.waiting() if not job.held]
        while queue and queue[0].nodes <= free and self._clear(now, queue[0].limit):
            free -= queue[0].nodes
            self._start(queue.pop(0))
        if not queue:
            return
        head = queue[0]
        shadow, extra = self._reserve(head, free)
        if shadow < float("inf"):
            self.promised.setdefault(head.key, shadow)
        for job in queue[1:]:
            length = job.time_min or job.limit
            if job.nodes > free or not self._clear(now, length):
                continue
            if now + length * 60 > shadow:
                if job.nodes > extra:
                    continue
                extra -= job.nodes
            free -= job.nodes
            if job.time_min and not self.soft:
                fits = int((shadow - now) // 60) if self.grows and shadow < float("inf") else job.time_min
                job.limit = min(max(job.time_min, fits), job.limit)
            self.backfilled.append(job.key)
            self._start(job)

    def _reserve(self, head: Job, free: int) -> tuple[float, int]:
        """When the first job of the queue can start at the latest, and how many nodes are free then beside it."""
        for job in sorted(self.running(), key=lambda job: job.start + job.limit * 60):
            free += job.nodes
            if free >= head.nodes:
                return job.start + job.limit * 60, free - head.nodes
        return float("inf"), 0

    def _clear(self, now: float, minutes: int) -> bool:
        return all(now >= end or now + minutes * 60 <= start for _, start, end in self.reservations)

    def _start(self, job: Job) -> None:
        job.state, job.start = "RUNNING", int(self.clock.now)
        self.begun[job.key] = self.clock.now
        file = None if self.spool is None else self.spool / job.key
        if file is not None and file.exists() and job.time_min and self.rng.random() >= self.prolog_fails:
            known, longest = map(int, file.read_text().split())
            if job.limit < known:
                job.limit = max(job.limit, longest)

    # ---------------------------------------------------------------------------------------------------------------- its users

    def user_changes_limit(self, job: Job, minutes: int) -> None:
        """As `scontrol update TimeLimit=` of a waiting job by its user; the guard takes TimeMin away."""
        if minutes < job.time_min and not self.guard:
            return  # Slurm refuses it
        if self.guard:
            job.time_min = 0
        elif job.time_min > minutes:
            return
        job.limit = job.wanted = minutes

    def requeue(self, job: Job) -> None:
        """Put a running job back into the queue, with the limit that it has."""
        job.state, job.restarts, job.submit = "PENDING", job.restarts + 1, int(self.clock.now)

    # ------------------------------------------------------------------------------------------------------------- its commands

    def __call__(self, words: Sequence[str], timeout: float) -> CommandResult:
        words = tuple(words)
        fault = self.fault(words)
        if fault == "killed before":
            raise KilledError
        if self.clock.now < self.down_until or fault == "fail":
            return CommandResult(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
        if fault in ("hang", "late"):
            if fault == "late" and words[:2] == ("scontrol", "update"):
                self.late.append((self.clock.now + self.rng.randrange(0, 120), words))
            self.advance(timeout)
            return CommandResult(None, "", "no answer")
        self.advance(self.slow(words))
        answer = self._answer(words)
        if fault == "killed after":
            raise KilledError
        return CommandResult(1, "", "Zero Bytes were transmitted or received") if fault == "lost" else answer

    def _answer(self, words: tuple[str, ...]) -> CommandResult:
        if words[:3] == ("scontrol", "show", "config"):
            return CommandResult(
                0,
                CONFIG.format(boot=self.boot, soft=",time_min_as_soft_limit" if self.soft else "", name=self.name, enforce=self.enforce),
                "",
            )
        if words[0] == "scontrol" and words[-1] == "partition":
            return CommandResult(0, self.partition.format(nodes=self.nodes) + "\n", "")
        if words[0] == "scontrol" and words[-1] == "reservation":
            lines = [
                f"ReservationName={name} StartTime={_iso(start)} EndTime={_iso(end)} Nodes=n[1-{self.nodes}]"
                for name, start, end in self.reservations
            ]
            return CommandResult(0, "\n".join(lines) or "No reservations in the system\n", "")
        if words[0] == "squeue":
            return self._squeue(dict(word.partition("=")[::2] for word in words[1:]))
        if words[0] == "sacctmgr" and words[-1] == "format=AdminLevel":
            return CommandResult(0, "Operator\n", "")
        if words[0] == "sacctmgr":
            columns = words[-1].removeprefix("format=").split(",")
            of = {"Account": "bio", "ParentName": "root", "MaxTRESMins": "cpu=9", "Name": "normal"}
            return CommandResult(0, "\n".join("|".join(line) for line in (columns, [of.get(name, "") for name in columns])) + "\n", "")
        if words[0] == "sbatch":
            self._next += 1
            minutes = next(int(word.partition("=")[2]) for word in words if word.startswith("--time="))
            seconds = int(words[-1].split()[-1])
            name = next(word.partition("=")[2] for word in words if word.startswith("--job-name="))
            job = Job(self._next, "sidecar", 1, seconds, minutes, int(self.clock.now), name, minutes, held=True)
            self._come(job)
            return CommandResult(0, f"{job.key}\n", "")
        if words[0] == "scancel":
            self._end(self.jobs[words[1]], "CANCELLED")
            return CommandResult(0, "", "")
        if words[:2] == ("scontrol", "release"):
            self.jobs[words[2]].held = False
            return CommandResult(0, "", "")
        assert words[:2] == ("scontrol", "update"), words
        return self._update(words)

    def _squeue(self, options: dict[str, str]) -> CommandResult:
        """What squeue prints."""
        for key in [key for key, job in self._past.items() if self.clock.now - job.end > MIN_JOB_AGE]:
            del self._past[key]
        jobs = list(self._present.values())
        if options.get("--states") == "all":
            jobs += self._past.values()
        if "--name" in options:
            found = [job for job in jobs if job.user == options["--user"] and job.name in options["--name"].split(",")]
            return CommandResult(0, "".join(f"{job.key}|\n" for job in found), "")
        keys = options["--jobs"].split(",") if "--jobs" in options else None
        if keys is not None:
            jobs = [job for job in jobs if str(job.others.get("JobArrayID", job.key)) in keys]
            if len(keys) == 1 and not jobs:
                return CommandResult(1, "", "slurm_load_jobs error: Invalid job id specified")
        if self.blind:
            return CommandResult(0, "", "")
        queue = [job for job in self.waiting() if not job.held]
        start = self._reserve(queue[0], self.nodes - sum(job.nodes for job in self.running()))[0] if queue else float("inf")
        head = {} if start == float("inf") else {queue[0].key: start}
        return CommandResult(0, "".join(row(job, head.get(job.key, 0)) + "\n" for job in jobs), "")

    def _update(self, words: tuple[str, ...]) -> CommandResult:
        named = dict(word.split("=", 1) for word in words[2:])
        job = self.jobs.get(named["JobId"])
        if job is None or job.state not in ("PENDING", "RUNNING"):
            return CommandResult(1, "", "Invalid job id specified")
        self.updates.append(words)
        if "TimeMin" in named and job.state == "PENDING":
            if int(named["TimeMin"]) > job.limit:
                return CommandResult(1, "", "Invalid time-min specification")
            job.time_min = int(named["TimeMin"])
        if "TimeLimit" in named:
            job.limit = 10**7 if named["TimeLimit"] == "UNLIMITED" else int(named["TimeLimit"])
            if self.guard and job.state == "PENDING":
                job.time_min = 0
            if job.user == "sidecar":
                job.wanted = job.limit  # its own test is shortened on purpose
        return CommandResult(0, "", "")


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def row(job: Job, reserved: float = 0) -> str:
    """A job as squeue prints it in the fields of the side-car; `reserved`: when it is to start."""
    start = job.start if job.state != "PENDING" else reserved
    of: dict[str, object] = {
        "JobArrayID": job.key,
        "State": job.state,
        "UserName": job.user,
        "Account": job.account,
        "Partition": "main",
        "QOS": "normal",
        "Reason": "Resources",
        "TimeLimit": span(job.limit),
        "MinTime": span(job.time_min) if job.time_min else "0:00",
        "SubmitTime": _iso(job.submit),
        "EligibleTime": _iso(job.submit),
        "StartTime": _iso(start) if start else "N/A",
        "RestartCnt": job.restarts,
        "NumCPUs": job.nodes,
        "NumNodes": job.nodes,
        "PriorityLong": 0 if job.held else 100,
        "Deadline": "N/A",
        "HetJobID": "N/A",
        "Reservation": "(null)",
        "Licenses": "(null)",
    } | job.others
    return "".join(f"{of[name]}|" for name in FIELDS)


def span(minutes: int) -> str:
    """Minutes as Slurm prints them."""
    days, rest = divmod(minutes, 1440)
    return f"{days}-{rest // 60:02}:{rest % 60:02}:00" if days else f"{rest // 60}:{rest % 60:02}:00"


def sacct(cluster: FakeSlurm, flags: bool = True) -> str:
    """What sacct would print of the jobs that have ended; `flags`: with the field that says who started a job."""
    heading = "JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes"
    lines = [heading + "|Flags" * flags + "|JobName"]
    for job in cluster.jobs.values():
        if job.start and job.end:
            started = ("SchedBackfill" if job.key in cluster.backfilled else "SchedMain",) * flags
            known = (job.number, job.user, job.account, "main", job.state, job.submit, job.submit, job.start, job.end, job.end - job.start)
            lines.append("|".join(map(str, (*known, job.limit, job.nodes, job.nodes, *started, job.name))))
    return "\n".join(lines) + "\n"
