"""A cluster without a Slurm: what scontrol, squeue and sbatch would answer, over a virtual clock, by rules simple enough to be read.

A node is one number, the queue is in order of submission, backfilling is EASY by time limits; a waiting job with a TimeMin is planned
by it, and shortened to it, or to what fits, when backfill starts it, unless limits are soft. Limits are enforced every 30 seconds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from walltime.adjust.commands import Answer

STEP = 10
BEGIN = 1_800_000_000
CONFIG = """Configuration data as of 2027-01-15T08:00:00
AccountingStorageEnforce = none
BOOT_TIME               = {boot}
ClusterName             = fake
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
        self._present.pop(job.key, None)

    def _schedule(self) -> None:
        now = self.clock.now
        free = self.nodes - sum(job.nodes for job in self.running())
        queue = [job for job in self.waiting() if not job.held]
        while queue and queue[0].nodes <= free and self._clear(now, queue[0].limit):
            free -= queue[0].nodes
            self._start(queue.pop(0))
        if not queue:
            return
        head, later = queue[0], free
        shadow, extra = float("inf"), 0
        for job in sorted(self.running(), key=lambda job: job.start + job.limit * 60):
            later += job.nodes
            if later >= head.nodes:
                shadow, extra = job.start + job.limit * 60, later - head.nodes
                break
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

    def _clear(self, now: float, minutes: int) -> bool:
        return all(now >= end or now + minutes * 60 <= start for _, start, end in self.reservations)

    def _start(self, job: Job) -> None:
        job.state, job.start = "RUNNING", int(self.clock.now)
        file = None if self.spool is None else self.spool / job.key
        if file is not None and file.exists() and job.time_min and self.rng.random() >= self.prolog_fails:
            job.limit = max(job.limit, int(file.read_text()))

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

    def __call__(self, words: Sequence[str], timeout: float) -> Answer:
        words = tuple(words)
        fault = self.fault(words)
        if fault == "killed before":
            raise KilledError
        if self.clock.now < self.down_until or fault == "fail":
            return Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
        if fault in ("hang", "late"):
            if fault == "late" and words[:2] == ("scontrol", "update"):
                self.late.append((self.clock.now + self.rng.randrange(0, 120), words))
            self.advance(timeout)
            return Answer(None, "", "no answer")
        answer = self._answer(words)
        if fault == "killed after":
            raise KilledError
        return Answer(1, "", "Zero Bytes were transmitted or received") if fault == "lost" else answer

    def _answer(self, words: tuple[str, ...]) -> Answer:
        if words[:3] == ("scontrol", "show", "config"):
            return Answer(0, CONFIG.format(boot=self.boot, soft=",time_min_as_soft_limit" if self.soft else ""), "")
        if words[0] == "scontrol" and words[-1] == "partition":
            return Answer(0, f"PartitionName=main Nodes=n[1-{self.nodes}] MaxTime=2-00:00:00 State=UP\n", "")
        if words[0] == "scontrol" and words[-1] == "reservation":
            lines = [
                f"ReservationName={name} StartTime={_iso(start)} EndTime={_iso(end)} Nodes=n[1-{self.nodes}]"
                for name, start, end in self.reservations
            ]
            return Answer(0, "\n".join(lines) or "No reservations in the system\n", "")
        if words[0] == "squeue":
            return Answer(0, json.dumps({"jobs": [record(job) for job in self._present.values()]}), "")
        if words[0] == "sacctmgr":
            return Answer(0, "Operator\n", "")
        if words[0] == "sbatch":
            self._next += 1
            minutes = next(int(word.partition("=")[2]) for word in words if word.startswith("--time="))
            seconds = int(words[-1].split()[-1])
            name = next(word.partition("=")[2] for word in words if word.startswith("--job-name="))
            job = Job(self._next, "sidecar", 1, seconds, minutes, int(self.clock.now), name, minutes, held=True)
            self._come(job)
            return Answer(0, f"{job.key}\n", "")
        if words[0] == "scancel":
            self._end(self.jobs[words[1]], "CANCELLED")
            return Answer(0, "", "")
        if words[:2] == ("scontrol", "release"):
            self.jobs[words[2]].held = False
            return Answer(0, "", "")
        assert words[:2] == ("scontrol", "update"), words
        return self._update(words)

    def _update(self, words: tuple[str, ...]) -> Answer:
        named = dict(word.split("=", 1) for word in words[2:])
        job = self.jobs.get(named["JobId"])
        if job is None or job.state not in ("PENDING", "RUNNING"):
            return Answer(1, "", "Invalid job id specified")
        self.updates.append(words)
        if "TimeMin" in named and job.state == "PENDING":
            if int(named["TimeMin"]) > job.limit:
                return Answer(1, "", "Invalid time-min specification")
            job.time_min = int(named["TimeMin"])
        if "TimeLimit" in named:
            job.limit = 10**7 if named["TimeLimit"] == "UNLIMITED" else int(named["TimeLimit"])
            if self.guard and job.state == "PENDING":
                job.time_min = 0
            if job.user == "sidecar":
                job.wanted = job.limit  # its own test is shortened on purpose
        return Answer(0, "", "")


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def record(job: Job) -> dict[str, object]:
    """A job in squeue --json, as Slurm 22.05 writes it."""
    return {
        "job_id": job.number,
        "array_job_id": 0,
        "array_task_id": None,
        "array_task_string": "",
        "job_state": job.state,
        "user_name": job.user,
        "account": job.account,
        "partition": "main",
        "qos": "normal",
        "name": job.name,
        "state_reason": "Resources",
        "time_limit": job.limit,
        "time_minimum": job.time_min,
        "submit_time": job.submit,
        "eligible_time": job.submit,
        "start_time": job.start,
        "restart_cnt": job.restarts,
        "cpus": job.nodes,
        "priority": 0 if job.held else 100,
        "deadline": 0,
        "licenses": "",
        "het_job_id": 0,
        "resv_name": "",
    } | job.others


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
