"""Made-up sites whose answers to changes are known: how often does `what-if` give the right direction and size?

    python validation/change_bank.py bank.jsonl    # all sites, up to ten minutes each; continues where it was interrupted
    python validation/change_bank.py bank.jsonl --judge > docs/generators/changes.json

The second command computes the numbers of `walltime.whatif.track_record`. How good they are is judged with halves: numbers that half of
the sites choose are tried on the others.

Each site has a machine, a scheduler, users and, except a few, hidden rules: closed hours, holds, a limit, memory, another order, nodes that
fail, users who react to waits. The plain reference engine simulates it with the hidden rules, today and under each change; that is the
truth. `what-if` gets the log of today's schedule and a machine file without the hidden rules, and runs the compiled engine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import walltime as wt
from walltime import metrics
from walltime.machine import Failure, Limit, Machine, Partition, Pool, Window
from walltime.whatif import what_if
from walltime.whatif.effects import Effect
from walltime.whatif.track_record import LEAST_CHANGE
from walltime.workload import Workload

HOUR, DAY = 3600, 86_400
WEEKS = 6
MEMORY = 20_000
"""Megabytes of each node of sites with memory."""
LIMITS = np.array([0.5, 1, 2, 4, 6, 8, 12, 24, 48, 72]) * HOUR
SLURM = {"bf_interval": "bf_interval=300", "PriorityType": "priority/multifactor"}
FAIR_SHARE = {"PriorityWeightFairshare": "10000", "PriorityWeightAge": "1000"}
BY_SIZE = {"PriorityWeightJobSize": "10000", "PriorityWeightAge": "2000"}
POLICIES: dict[str, tuple[str, dict[str, str]]] = {
    "easy": ("easy", {}),
    "fair share": ("slurm", FAIR_SHARE),
    "size": ("slurm", BY_SIZE),
    "conservative": ("conservative-scratch", {}),
    "order": ("easy:order=f1", {}),
}


@dataclass(frozen=True)
class Site:
    """A made-up site."""

    number: int
    kind: str
    policy: str
    hidden: str
    load: float
    jobs: int
    judges: bool

    @property
    def name(self) -> str:
        """Its number and properties."""
        return f"{self.number}: {self.kind}, {self.policy}, load {self.load}, hidden {self.hidden}"


def sites() -> list[Site]:
    """Return the sites; of those with the same hidden rules, every second one judges, and the others choose the numbers."""
    plan = [
        ("pool", "easy", "nothing"), ("pool", "easy", "react"), ("pool", "fair share", "nothing"), ("pool", "fair share", "limit"),
        ("pool", "size", "failures"), ("pool", "easy", "windows"), ("pool", "easy", "holds"), ("pool", "conservative", "limit"),
        ("partitions", "easy", "limit"), ("partitions", "easy", "windows"), ("partitions", "fair share", "react"),
        ("partitions", "fair share", "holds"), ("partitions", "size", "nothing"), ("partitions", "size", "limit"),
        ("partitions", "conservative", "react"), ("partitions", "easy", "holds"), ("gpus", "easy", "nothing"), ("gpus", "easy", "react"),
        ("gpus", "fair share", "limit"), ("gpus", "fair share", "failures"), ("gpus", "size", "holds"), ("gpus", "conservative", "windows"),
        ("gpus", "easy", "order"), ("pool", "order", "nothing"), ("memory", "fair share", "memory"), ("memory", "easy", "memory"),
        ("memory", "size", "memory"), ("memory", "fair share", "failures"), ("pool", "easy", "order"), ("partitions", "easy", "order"),
        ("pool", "easy", "windows, react"), ("partitions", "fair share", "limit, holds"), ("gpus", "easy", "limit, react"),
        ("gpus", "fair share", "limit, react"), ("memory", "size", "memory, limit"), ("memory", "fair share", "memory, holds"),
        ("pool", "fair share", "limit, holds"), ("partitions", "easy", "windows, react"), ("pool", "fair share", "limit, react"),
        ("gpus", "easy", "limit, react"), ("memory", "easy", "memory, limit"), ("memory", "fair share", "memory, holds"),
    ]  # fmt: skip
    loads = (0.65, 0.55, 0.7, 0.6, 0.75, 0.5, 0.68)
    found = []
    for k, row in enumerate(plan):
        load = loads[k % len(loads)] * (1.4 if "react" in row[2] else 1)
        judges = sum(other[2] == row[2] for other in plan[:k]) % 2 == 1
        found.append(Site(k, *row, load=load, jobs=1200, judges=judges))
    return found


def machine_of(site: Site) -> Machine:
    """Return the machine as the operator describes it."""
    policy, settings = POLICIES[site.policy]
    more: dict[str, Any] = {"policy": policy, "name": f"site{site.number}"}
    if policy == "slurm":
        more["slurm"] = {"SchedulerParameters": SLURM["bf_interval"], "PriorityType": SLURM["PriorityType"], **settings}
    cpu, fat = Pool("cpu", 24, 4), Pool("fat", 8, 4)
    if site.kind in ("pool", "memory"):
        return Machine((Pool("cpu", 32, 4),), (Partition("all", ("cpu",)),), **more)
    if site.kind == "partitions":
        return Machine((cpu, fat), (Partition("long", ("cpu",)), Partition("short", ("fat", "cpu"), max_time=12 * HOUR)), **more)
    cpu, gpu = Pool("cpu", 20, 4), Pool("gpu", 12, 8, 4)
    return Machine((cpu, gpu), (Partition("cpu", ("cpu",)), Partition("gpu", ("gpu",))), **more)


def true_machine(site: Site, machine: Machine) -> Machine:
    """Return a machine with the site's hidden rules."""
    if "windows" in site.hidden:
        day, night = Window("08:00", "18:00", days="mon-fri", wider_than=8), Window("22:00", "06:00", longer_than=4 * HOUR)
        machine = replace(machine, windows=(day, night))
    if "limit" in site.hidden:
        machine = replace(machine, limits=(*machine.limits, Limit(("user",), procs=machine.procs // 6)))
    if "memory" in site.hidden:
        machine = replace(machine, pools=tuple(replace(pool, memory=MEMORY) for pool in machine.pools))
    if "failures" in site.hidden:
        machine = replace(machine, failures=tuple(Failure(pool.name, 120 * DAY, 8 * HOUR, seed=site.number) for pool in machine.pools))
    if "order" in site.hidden:
        machine = replace(machine, policy="easy:order=unicef")
    return machine


def workload_of(site: Site, machine: Machine) -> Workload:
    """Return the jobs of the site's users, in sessions with daily and weekly cycles, with all columns."""
    rng = np.random.default_rng(1000 + site.number)
    users = 25
    share = 1 / np.arange(1, users + 1) ** 0.8
    median, spread = HOUR * rng.lognormal(0, 1.2, users), rng.uniform(0.3, 1.0, users)
    width, factor = rng.integers(0, 5, users), rng.lognormal(1.0, 0.8, users)
    uses_second = rng.random(users) < 0.35
    rows: list[tuple[float, ...]] = []
    while len(rows) < site.jobs:
        user = int(rng.choice(users, p=share / share.sum()))
        while True:  # by day and on weekdays there are more
            submit = rng.uniform(0, WEEKS * 7 * DAY)
            busy = (1.0 if 8 <= submit % DAY / HOUR < 18 else 0.35) * (1.0 if submit // DAY % 7 < 5 else 0.4)
            if rng.random() < busy:
                break
        previous = -1
        for _ in range(int(rng.geometric(0.2))):
            runtime = float(np.clip(median[user] * rng.lognormal(0, spread[user]), 30, 60 * HOUR))
            procs = 2 ** int(np.clip(width[user] + rng.integers(-1, 2), 0, 5))
            think = float(rng.lognormal(5.5, 1.0))
            rows.append((submit, runtime, procs, user, previous, think, factor[user] * rng.lognormal(0, 0.3)))
            previous = len(rows) - 1
            submit += 0.3 * runtime + think
    submit, runtime, procs, user, before, think, over = map(np.array, zip(*rows, strict=True))
    user, procs = user.astype(np.int64), procs.astype(np.int64)
    columns = {"user": user + 1, "group": user % 5 + 1, "partition": np.ones(len(user), np.int64)}
    second = uses_second[user]
    share = procs / machine.procs  # of the scarcest resource of the machine, or of the job's pool
    if site.kind == "gpus":
        columns["partition"], columns["gpus"] = np.where(second, 2, 1), np.where(second, procs, 0)
        share = np.where(second, procs / machine.second_total, procs / (machine.procs - machine.second_total))
        procs = np.where(second, 2 * procs, procs)
    if site.kind == "memory":
        columns["mem_mb_per_cpu"] = np.where(second, 16_000, 2_000)
        columns["mem_mb"] = procs * columns["mem_mb_per_cpu"]
        share = np.maximum(share, columns["mem_mb"] / (MEMORY * sum(pool.nodes for pool in machine.pools)))
    for group in (second, ~second) if site.kind == "gpus" else (np.ones(len(user), bool),):
        runtime[group] *= site.load * WEEKS * 7 * DAY / float((share * runtime)[group].sum())
    runtime = np.maximum(runtime, 10)
    requested = LIMITS[np.searchsorted(LIMITS, np.minimum(runtime * np.maximum(over, 1.05), LIMITS[-1]))]
    runtime = np.minimum(runtime, requested - 1)
    if site.kind == "partitions":
        columns["partition"] = np.where(requested <= 12 * HOUR, 2, 1)
    held = np.where(rng.random(len(user)) < 0.15, rng.exponential(12 * HOUR, len(user)), 0) * ("holds" in site.hidden)
    columns["held"] = held.astype(np.int64)
    order = np.argsort(submit + held, kind="stable")
    place = np.argsort(order)
    columns["preceding_job"] = np.where(before >= 0, place[np.maximum(before, 0).astype(np.int64)] + 1, -1)
    columns["think_time"] = think.astype(np.int64)
    names = {"partition": tuple(one.name for one in machine.partitions)}
    jobs = Workload.from_arrays(
        submit=(submit + held)[order].astype(np.int64), runtime=runtime[order].astype(np.int64),
        requested=requested[order].astype(np.int64),
        procs=procs[order].astype(np.int64), machine_procs=machine.procs, job_id=np.arange(1, len(order) + 1),
        columns={name: values[order] for name, values in columns.items()},
    )  # fmt: skip
    return replace(jobs, origin=replace(jobs.origin, name=f"site{site.number}", names=names, unix_start_time=1_700_006_400))


@dataclass(frozen=True)
class World:
    """The jobs, machine and policy that the reference engine simulates, with the hidden rules."""

    jobs: Workload
    machine: Machine

    def schedule(self) -> wt.Schedule:
        """Return the schedule by the plain reference engine."""
        return wt.simulate(self.jobs, self.machine.policy, machine=self.machine, engine="reference")

    def with_pool(self, name: str, nodes: int) -> World:
        """Return the world with more, or fewer, nodes in a pool."""
        pools = tuple(replace(pool, nodes=pool.nodes + nodes) if pool.name == name else pool for pool in self.machine.pools)
        return replace(self, machine=replace(self.machine, pools=pools))

    def with_setting(self, name: str, value: str) -> World:
        """Return the world with a setting of Slurm."""
        return replace(self, machine=replace(self.machine, slurm={**self.machine.slurm, name: value}))

    def with_load(self, factor: float) -> World:
        """Return the world with submissions, and the times between them, divided by a factor."""
        jobs = self.jobs
        think = (jobs.columns["think_time"] / factor).astype(np.int64)
        return replace(
            self, jobs=replace(jobs, submit=(jobs.submit / factor).astype(np.int64), columns={**jobs.columns, "think_time": think})
        )

    def with_limit(self, **limit: int) -> World:
        """Return the world with a limit for each user."""
        return replace(self, machine=replace(self.machine, limits=(*self.machine.limits, Limit(("user",), **limit))))

    def with_max_time(self, name: str, seconds: int) -> World:
        """Return the world with a longest request in a partition."""
        partitions = tuple(replace(one, max_time=seconds) if one.name == name else one for one in self.machine.partitions)
        return replace(self, machine=replace(self.machine, partitions=partitions))

    def with_policy(self, policy: str) -> World:
        """Return the world under another policy."""
        return replace(self, machine=replace(self.machine, policy=policy))

    def with_exact_estimates(self) -> World:
        """Return the world in which the scheduler knows the runtimes."""
        return replace(self, jobs=self.jobs.with_planned(np.maximum(self.jobs.runtime, 1)))


def changes(site: Site, world: World) -> Iterator[tuple[str, World]]:
    """Yield changes as for `what-if`, each with the changed world."""
    pools, procs = [pool.name for pool in world.machine.pools], world.machine.procs
    yield "pool.cpu.nodes+=4", world.with_pool("cpu", 4)
    yield "pool.cpu.nodes-=3", world.with_pool("cpu", -3)
    if len(pools) > 1:
        yield f"pool.{pools[1]}.nodes+=2", world.with_pool(pools[1], 2)
    yield "load*=0.85", world.with_load(0.85)
    yield "load*=1.08", world.with_load(1.08)
    yield f"limit.new.by=user,procs={procs // 4}", world.with_limit(procs=procs // 4)
    yield "limit.new.by=user,jobs=8", world.with_limit(jobs=8)
    first = world.machine.partitions[0].name
    yield f"partition.{first}.max_time=12h", world.with_max_time(first, 12 * HOUR)
    yield "estimates=exact", world.with_exact_estimates()
    if POLICIES[site.policy][0] == "slurm":
        yield "PriorityWeightFairshare=0", world.with_setting("PriorityWeightFairshare", "0")
        yield "PriorityWeightJobSize=50000", world.with_setting("PriorityWeightJobSize", "50000")
        few = f"{SLURM['bf_interval']},bf_max_job_test=3"
        yield "SchedulerParameters+=bf_max_job_test=3", world.with_setting("SchedulerParameters", few)
    else:
        yield "policy=easy:order=sjf", world.with_policy("easy:order=sjf")
        yield "policy=easy:backfill-order=sjf", world.with_policy("easy:backfill-order=sjf")
        yield "policy=fcfs", world.with_policy("fcfs")


def recorded(world: World, schedule: wt.Schedule) -> Workload:
    """Return the log of a schedule, as a site has it: without holds, think times and memory."""
    jobs = schedule.workload
    held = jobs.columns["held"]
    submit = schedule.submit - held
    columns = {name: jobs.columns[name] for name in ("user", "group", "partition", "gpus") if name in jobs.columns}
    return replace(
        Workload.from_arrays(
            submit=submit, runtime=schedule.runtime, requested=jobs.requested, procs=jobs.procs, machine_procs=world.machine.procs,
            job_id=jobs.job_id, columns={**columns, "wait": schedule.start - submit},
        ),
        origin=replace(jobs.origin, changed={}, drops=()),
    )  # fmt: skip


def true_change(today: wt.Schedule, changed: wt.Schedule) -> float:
    """Return the change of the mean wait over the measured jobs that run in both, relative to today's."""
    measured = metrics.measured(today.end, today.last_submit, "tsafrir06")
    both = np.intersect1d(today.workload.job_id[measured], changed.workload.job_id)
    waits = []
    for one in (today, changed):
        places = one.workload.places_of(both)
        waits.append(float((one.wait + one.workload.columns["held"])[places].mean()))  # the record counts holds as waits
    return waits[1] / waits[0] - 1


def rows(site: Site) -> Iterator[dict[str, Any]]:
    """Yield each change of a site with the predicted and the true relative change of the mean wait, and what calibration measures."""
    machine = machine_of(site)
    world = World(workload_of(site, machine).with_feedback("react" in site.hidden), true_machine(site, machine))
    today = world.schedule()
    log = recorded(world, today)
    spelled = list(changes(site, world))
    found = what_if(log, machine, [text for text, _ in spelled], replications=0)
    assert found.calibration is not None
    every = found.calibration.overall
    for (text, changed), effect in zip(spelled, found.alone, strict=True):
        yield {
            "site": site.number, "name": site.name, "change": text,
            "predicted": effect.percent / 100, "true": true_change(today, changed.schedule()),
            "rank_correlation": every.rank_correlation, "bias": every.bias / every.mean_recorded, "mean_wait": every.mean_recorded,
            "jobs": every.jobs, "doubt": every.doubt, "lost": effect.cost.work_lost, "react": _if_they_react(effect),
        }  # fmt: skip


def _if_they_react(effect: Effect) -> float | None:
    """Return the predicted relative change if users react; None if no job waits."""
    other = effect.other_users
    return other.difference / other.today if other is not None and other.today else None


RANKS = (0.8, 0.5, -1.0)
"""The lowest rank correlation of each class of sites."""
SIZES = (0.05, 0.2, 100.0)
"""The largest predicted changes (absolute logarithm) of each class of changes."""


def predicted(row: dict[str, Any]) -> tuple[float, float, float]:
    """Return the logarithm of the expected change, and the lowest and highest one under both assumptions on users."""
    scale = min(1.0, 1 + row["bias"])
    one, other = (
        np.log(max(1 + scale * change, 1e-3)) for change in (row["predicted"], row["predicted"] if row["react"] is None else row["react"])
    )
    return float(one), float(min(one, other)), float(max(one, other))


def of_class(rows: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
    """Return the rows of sites in the kth class of agreement."""
    upper = [np.inf, *RANKS][k]
    return [row for row in rows if RANKS[k] <= row["rank_correlation"] < upper]


def misses(rows: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return how far the true change is outside the predicted ones, and the size of the predicted one."""
    values = [(*predicted(row), np.log(max(1 + row["true"], 1e-3))) for row in rows]
    one, low, high, true = np.array(values).T.reshape(4, len(rows))
    return np.maximum(np.maximum(low - true, true - high), 0), np.abs(one)


def fitted(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the floor and slope of the narrowest intervals that hold 90 % of the true changes."""
    miss, size = misses(rows)
    found = []
    for slope in np.arange(0, 1.55, 0.05):
        floor = float(np.quantile(miss - slope * size, 0.9, method="higher"))
        found.append((float(np.mean(max(floor, 0.01) + slope * size)), max(floor, 0.01), float(slope)))
    _, floor, slope = min(found)
    return round(floor, 3), round(slope, 2)


WELL = 0.5
"""Directions are counted in two classes of agreement, with rank correlations from this one on and below: one class alone has few cases."""
LEVEL = 0.05 / (2 * len(SIZES))
"""The level at which a class of agreement and size beats a coin, so that all do together at 5 %."""


def directions(rows: list[dict[str, Any]]) -> list[tuple[float, int, int]]:
    """Return the right directions, and all, for each size of predicted changes."""
    found = []
    for smallest, largest in zip((0.0, *SIZES), SIZES, strict=False):
        mine = [row for row in rows if max(smallest, np.log1p(LEAST_CHANGE)) < abs(predicted(row)[0]) <= largest]
        found.append((largest, sum(predicted(row)[0] * row["true"] > 0 for row in mine), len(mine)))
    return found


def like(rows: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
    """Return the rows of sites that count for directions in the kth class of agreement."""
    return [row for row in rows if (row["rank_correlation"] >= WELL) == (RANKS[k] >= WELL)]


def beats_a_coin(right: int, cases: int) -> bool:
    """Return whether a coin would rarely be right this often."""
    return bool(binom.sf(right - 1, cases, 0.5) < LEVEL)


def judge(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the classes of track_record.py, of all sites; `judged`: how numbers chosen on half of the sites do on the others."""
    judging = {site.number for site in sites() if site.judges}
    plain = {site.number for site in sites() if site.hidden == "nothing"}  # both engines agree there, so every prediction is right
    rows = [row for row in rows if row["site"] not in plain]
    choosing, judged = ([row for row in rows if (row["site"] in judging) == judges] for judges in (False, True))
    classes = []
    for k, least in enumerate(RANKS):
        chosen, tested = of_class(choosing, k), of_class(judged, k)
        floor, slope = fitted(chosen)
        miss, size = misses(tested)
        reported = [beats_a_coin(was, cases) for _, was, cases in directions(like(choosing, k))]
        pooled = [[largest, beats_a_coin(right, cases), right, cases] for largest, right, cases in directions(like(rows, k))]
        counts = [[tell, right, cases] for tell, (_, right, cases) in zip(reported, directions(tested), strict=True)]
        inside = int((miss <= floor + slope * size).sum())
        judgement = {"sites": len({row["site"] for row in tested}), "changes": len(tested), "inside": inside, "directions": counts}
        floor, slope = fitted([*chosen, *tested])
        classes.append({"least": least, "floor": floor, "slope": slope, "directions": pooled, "judged": judgement})
    ratios = list({row["site"]: 1 + row["bias"] for row in rows}.values())
    seen = [round(float(one), 2) for one in np.quantile(ratios, [0.05, 0.95])]
    return {"sites": len(ratios), "changes": len(rows), "seen": seen, "classes": classes}


def main() -> None:
    """Simulate the sites that the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", default="0/1", help="K/N: only every Nth site, from the Kth on")
    parser.add_argument("--judge", action="store_true", help="print the classes of track_record.py, and how they do")
    options = parser.parse_args()
    if options.judge:
        print(json.dumps(judge([json.loads(line) for line in options.file.read_text().splitlines()]), indent=1))
        return
    done = {json.loads(line)["site"] for line in options.file.read_text().splitlines()} if options.file.exists() else set()
    part, parts = map(int, options.part.split("/"))
    for site in sites()[part::parts]:
        if site.number not in done:
            found = list(rows(site))
            with options.file.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in found)
            print(site.name, len(found), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
