"""The side-car on the cluster of `fake.py`, with failures at random, and what must hold all the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import walltime as wt
from tests.adjust.fake import BEGIN, FakeSlurm, Job, KilledError
from tests.traces import trace_path
from walltime.slurm.client import Client
from walltime.slurm.sidecar.host import Host
from walltime.slurm.sidecar.ledger import Entry, Event, Ledger, LedgerError
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.round import Sidecar
from walltime.slurm.sidecar.settings import SidecarSettings

EVERY = 60.0
GAMER = "gamer"
FAULTS = ("fail", "hang", "late", "lost", "killed before", "killed after")
MOST_RESTARTS = 3
"""So often a job is put back into the queue at most: the last one, of two days, would otherwise hardly ever end."""
MOST_DOWN = 180
"""Seconds for which the side-car, or slurmctld, is down at most."""


class FailingLedger(Ledger):
    """A ledger whose disk is full at times, and that the side-car is killed at."""

    full = False
    rng: random.Random
    risk = 0.0
    killed = 0

    def __init__(self, folder: Path):
        super().__init__(folder)
        self._base.execute("PRAGMA synchronous=OFF")  # what is killed here is a process, not the machine

    def write(self, entry: Entry, now: float, detail: str = "") -> None:
        self._fail()
        super().write(entry, now, detail)
        self._kill()

    def note(self, name: str, value: str) -> None:
        self._fail()
        super().note(name, value)
        self._kill()

    def remember(self, fact: Event) -> None:
        self._fail()
        super().remember(fact)
        self._kill()

    def _fail(self) -> None:
        self._kill()
        if self.full:
            raise LedgerError("database or disk is full")

    def _kill(self) -> None:
        if "rng" in vars(self) and self.rng.random() < self.risk:  # not while the ledger is opened
            self.killed += 1
            raise KilledError


class KeepingSidecar(Sidecar):
    """Planted: limits are not raised again."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.restorer._raise = lambda job, need, report, tasks: True


@dataclass
class Story:
    """What happened: `failures` by kind; `violations`: what must not have happened."""

    failures: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    adjusted: int = 0
    restored: int = 0
    backfilled: int = 0
    rounds: int = 0
    least_left: float = float("inf")
    said: list[str] = field(default_factory=list)

    def count(self, kind: str) -> None:
        self.failures[kind] = self.failures.get(kind, 0) + 1


def play(
    folder: Path,
    jobs: Sequence[Job],
    nodes: int,
    seed: int,
    risk: float,
    soft: bool = False,
    sidecar_class: type[Sidecar] = Sidecar,
    ledger_class: type[FailingLedger] = FailingLedger,
    prolog_fails: float | None = None,
    rounds: int = 20_000,
    hostile: bool = False,
) -> Story:
    """Run the jobs to their end, in so many rounds at most, with a side-car; `risk`: probability of a failure at each command and write.

    `prolog_fails`: that of the prolog, None without one. `hostile`: there are gamers, whose jobs use their whole limits and are predicted
    to take a hundredth of them, names made to be taken for others, slow answers, starts without a job log, and lost ledgers.
    """
    rng = random.Random(seed)
    cluster = FakeSlurm(nodes, [Job(**{**job.__dict__, "others": {}}) for job in jobs], soft=soft, grows=rng.random() < 0.5)
    cluster.rng = rng
    spool = folder / "spool"
    if prolog_fails is not None:
        spool.mkdir(parents=True)
        cluster.spool, cluster.prolog_fails = spool, prolog_fails
    story = Story()
    runtimes = {job.key: job.runtime for job in jobs}
    shares = {job.key: 0.01 if job.user == GAMER else rng.uniform(0.1, 1.3) for job in jobs}
    switch = Switch()
    faults = (*FAULTS, "slow") if hostile else FAULTS

    def fault(words: tuple[str, ...]) -> str | None:
        if rng.random() >= risk * switch.on:
            return None
        kind = rng.choice(faults)
        story.count(kind)
        if kind == "slow":
            cluster.advance(rng.uniform(1, 9))
            return None
        return kind

    def begin() -> Sidecar:
        switch.missing_until = cluster.clock.now
        if hostile and rng.random() < 0.3 * switch.on:
            story.count("no job log at the start")
            switch.missing_until += rng.uniform(0, 3600)
        ledger = ledger_class(folder)
        ledger.rng, ledger.risk, ledger.full = rng, risk / 4 * switch.on, switch.full
        switch.ledger = ledger
        return sidecar_class(
            Client(cluster, timeout=10),
            lambda job, now: runtimes[job.key] * shares[job.key] if job.key in runtimes else None,
            SidecarSettings(every=EVERY, floor=10, share=1.0),
            Host(
                cluster.clock,
                "sidecar",
                story.said.append,
                stopped=lambda: switch.stopped,
                blocked=lambda: "there is no job log" if cluster.clock.now < switch.missing_until else "",
            ),
            ledger,
            None if prolog_fails is None else Spool(spool),
        )

    cluster.fault = fault
    folder.mkdir(exist_ok=True)
    sidecar = begin()
    while cluster.coming or any(job.user != "sidecar" for job in (*cluster.waiting(), *cluster.running())):
        if story.rounds > rounds:
            story.violations.append("the queue does not end")
            break
        begun = cluster.clock.now
        try:
            tell(story, sidecar.round(), cluster)
        except KilledError:
            story.count("killed")
            switch.ledger.close()
            cluster.advance(rng.uniform(5, MOST_DOWN))
            while True:
                try:
                    sidecar = begin()
                    break
                except KilledError:
                    switch.ledger.close()
        if hostile and rng.random() < risk / 2 * switch.on and not cluster.soft:
            story.count("ledger lost")
            switch.ledger.close()
            for end in ("", "-wal", "-shm"):
                (folder / f"ledger.sqlite{end}").unlink(missing_ok=True)
            if rng.random() < 0.5:
                (folder / "ledger.sqlite").touch()
            while True:
                try:
                    sidecar = begin()
                    break
                except KilledError:
                    switch.ledger.close()
        happen(cluster, rng, risk, switch, story)
        cluster.advance(max(EVERY - (cluster.clock.now - begun), 1))
        story.rounds += 1
        if story.rounds % 400 == 0:
            check_calm(cluster, sidecar, switch, story)
    switch.ledger.close()
    story.violations += cluster.violations
    if risk:
        story.violations += [f"head {key} waited too long" for key in late_heads(cluster)]
    story.backfilled = len(cluster.backfilled)
    return story


class Switch:
    """What is set from outside the side-car."""

    on = True
    full = False
    stopped = False
    missing_until = 0.0
    ledger: FailingLedger


def late_heads(cluster: FakeSlurm) -> list[str]:
    """QueueHeads of the queue that started later than their reserved starts, the part of their wait, and the longest limit together allow.

    A day is added for reservations, outages, and jobs that were put back into the queue.
    """
    bounds, longest = SidecarSettings(), 2 * 86_400
    found = []
    for key, promised in cluster.promised.items():
        job = cluster.jobs[key]
        slip = max(bounds.slip * (promised - job.submit), bounds.floor * 60)
        if not job.restarts and cluster.begun.get(key, 0) > promised + slip + longest + 86_400:
            found.append(key)
    return found


def tell(story: Story, report: Report, cluster: FakeSlurm) -> None:
    story.adjusted += report.set_now
    story.restored += report.restored
    if report.least_left is not None and not cluster.clock.wrong:
        story.least_left = min(story.least_left, report.least_left)


def happen(cluster: FakeSlurm, rng: random.Random, risk: float, switch: Switch, story: Story) -> None:
    """What users, administrators and machines do between two rounds."""
    if not switch.on:
        return
    now = cluster.clock.now
    cluster.advance(rng.uniform(0, 30))  # so that it is not always at the same place between two rounds
    if rng.random() < risk * 8 and cluster.waiting():
        job = rng.choice(cluster.waiting())
        if job.user != "sidecar":
            story.count("user changes his limit")
            cluster.user_changes_limit(job, max(1, min(int(job.limit * rng.uniform(0.3, 3)), 2880)))
    if rng.random() < risk and cluster.running():
        job = rng.choice(cluster.running())
        if job.user != "sidecar" and job.restarts < MOST_RESTARTS:
            story.count("requeue")
            cluster.requeue(job)
    if rng.random() < risk:
        story.count("slurmctld restarts")
        cluster.boot += 1
        cluster.down_until = now + rng.uniform(5, MOST_DOWN)
    if rng.random() < risk:
        story.count("reservation")
        cluster.reservations = [("maintenance", now + rng.uniform(600, 12_000), now + 13_000)]
    if rng.random() < risk:
        story.count("disk full" if not switch.full else "disk has room")
        switch.full = not switch.full
        switch.ledger.full = switch.full
    if rng.random() < risk:
        story.count("clock is set")
        cluster.clock.wrong = rng.choice([0, 3600, -3600, 86400])
    if rng.random() < risk and (cluster.soft or cluster.boot < 0):
        story.count("option dropped")
        cluster.soft = False
    elif rng.random() < risk / 4:
        story.count("option set")
        cluster.soft = True


def check_calm(cluster: FakeSlurm, sidecar: Sidecar, switch: Switch, story: Story) -> None:
    """Some rounds without failures, of which the last ones take everything back: no give-back may be left over then."""
    before = (switch.on, switch.full)
    switch.on, switch.full, switch.ledger.full, switch.ledger.risk = False, False, False, 0.0
    cluster.late.clear()
    cluster.advance(MOST_DOWN)
    for stopped in (False, True, True, True):
        switch.stopped = stopped
        tell(story, sidecar.round(), cluster)
        cluster.advance(1)
    lost = "ledger lost" in story.failures
    for job in cluster.running():
        entry = sidecar.entries.get(job.key)
        if entry is not None and entry.doubt and job.limit * 60 > cluster.clock.now - job.start + MOST_DOWN:
            continue  # what is in doubt is raised in steps
        if job.limit < job.wanted and job.user != "sidecar":  # a test of the prolog may be short
            story.violations.append(f"job {job.key} still has {job.limit} of {job.wanted} minutes")
    for job in cluster.waiting():
        if job.time_min and not (lost and job.key not in sidecar.entries):  # it is known for nobody's only once the guard was tested
            story.violations.append(f"job {job.key} still has TimeMin {job.time_min}")
        if job.limit < job.wanted:
            story.violations.append(f"waiting job {job.key} has {job.limit} of {job.wanted} minutes")
    switch.stopped = False
    switch.on, switch.full = before


def day(folder, jobs, nodes, kind=Sidecar, share=0.5, soft=False):
    """Run the jobs to their end with a side-car that predicts this share of the runtimes; returns the cluster."""
    cluster = FakeSlurm(nodes, jobs, soft=soft)
    runtimes = {job.key: job.runtime for job in jobs}
    ledger = Ledger(folder)
    ledger._base.execute("PRAGMA synchronous=OFF")
    one = kind(
        Client(cluster),
        lambda job, now: runtimes[job.key] * share if job.key in runtimes else None,
        SidecarSettings(share=1.0),
        Host(cluster.clock, "sidecar", lambda text: None),
        ledger,
    )
    while cluster.coming or any(job.user != "sidecar" for job in (*cluster.waiting(), *cluster.running())):
        one.round()
        cluster.advance(30)
    ledger.close()
    return cluster


def busy(count: int = 200, nodes: int = 32, seed: int = 1) -> list[Job]:
    """Made-up jobs of a busy cluster: many long limits, short runtimes."""
    rng = random.Random(seed)
    jobs, now = [], float(BEGIN)
    for number in range(1, count + 1):
        now += rng.expovariate(1 / 120)
        limit = rng.choice([15, 30, 60, 120, 180])
        runtime = int(limit * 60 * min(rng.choice([0.05, 0.2, 0.5, 0.9, 1.2]), 1.2))
        jobs.append(Job(number, f"u{number % 5}", rng.choice([1, 1, 2, 4, 8, 8, nodes]), max(runtime, 20), limit, int(now)))
    return jobs


def with_gamers(jobs: Sequence[Job], every: int = 15) -> list[Job]:
    """The same, one job in so many being a gamer's; some jobs have names that are meant to be taken for something else."""
    changed = []
    for job in jobs:
        if job.number % every == 0:
            job = replace(job, user=GAMER, runtime=job.wanted * 60)
        if job.number % 7 == 0:
            job = replace(job, name=f"walltime-self-test\n{job.number - 1}|PENDING|root|")
        changed.append(job)
    return changed


def kth(first: int, count: int, faster: int = 2) -> list[Job]:
    """A stretch of the KTH log, in a part of its time; its machine has 100 nodes."""
    log = wt.read(trace_path("KTH-SP2-1996-2"))
    jobs = []
    for number, k in enumerate(range(first, first + count), 1):
        limit = max(int(log.requested[k]) // 60, 1)
        submit = BEGIN + (int(log.submit[k]) - int(log.submit[first])) // faster
        user = f"u{log.columns['user'][k]}"
        jobs.append(Job(number, user, min(int(log.procs[k]), 100), max(int(log.runtime[k]), 10), min(limit, 2880), submit))
    return jobs
