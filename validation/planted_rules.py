"""Twenty-two kinds of hidden rules, and starts at random, planted in generated logs: what `walltime infer` finds, misses and invents.

    python validation/planted_rules.py [--jobs 12000] [--seeds 2] [--only NAME ...] [--json]

Each log is generated, scheduled under EASY on a machine with one hidden rule, and given to `infer` with nothing but its starts. A rule is
found if an inferred rule of its kind agrees with it: a window in its time, a part in its size, limited users in most of their names, a
policy in its name. A rule that comes or goes must do so within a month of the true date. Any other inferred rule is invented, also one that
was kept in addition to the right one. Starts at random follow no rule, so every rule that is inferred there is invented.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import walltime as wt
from walltime.estimates import parse_estimates
from walltime.inference import infer
from walltime.inference.inference import Inference
from walltime.machine import Limit, Machine, Outage, Overhead, Partition, Pool, Window
from walltime.machine.tables import DAYS
from walltime.workload import Workload
from walltime.workload.models import MODELS
from walltime.workload.resampling import with_users

PROCS, LOAD, USERS, GROUPS = 64, 0.6, 40, 3
SLOWER = 4
"""Times are multiplied by it, so that few jobs fill months."""
SMALL, SHORT = 16, 4 * 3600
"""Processors of the part for small jobs, and their longest request, s."""
TAKES = Overhead(60, 120)
HOUR, DAY = 3600, 86_400
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri")
BEGIN = 4 * DAY
"""Midnight of a Monday, Unix time."""


@dataclass(frozen=True)
class Planted:
    """A hidden rule: the machine that has it, for a workload, and whether what was inferred says it.

    `policy` schedules jobs that are submitted in the second half of the log; in the first half `before` does, by default the same.
    """

    machine: Callable[[Workload], Machine]
    says: Callable[[Inference, Workload], bool]
    kind: str
    policy: str = "easy"
    before: str = ""


@dataclass(frozen=True)
class Outcome:
    """Result for a log: whether the hidden rule was inferred, other rules, and the held-out agreement before and after."""

    rule: str
    seed: int
    found: bool
    invented: tuple[str, ...]
    before: float
    after: float
    """F1 of prompt starts"""


def base(jobs: int, seed: int) -> Workload:
    """A log without a rule: of months, with users, and with round requests that are too long; it begins on a Monday."""
    drawn = with_users(MODELS["lublin99"].generate(jobs, PROCS, LOAD, seed), USERS, seed).with_estimates(parse_estimates("tsafrir05"), seed)
    times = {name: getattr(drawn, name) * SLOWER for name in ("submit", "runtime", "requested", "planned")}
    columns = {**drawn.columns, "group": drawn.columns["user"] % GROUPS + 1}
    origin = replace(drawn.origin, name=f"generated, seed {seed}", unix_start_time=BEGIN)
    return replace(drawn, **times, columns=columns, origin=origin)


def site(*windows: Window, **rest: Any) -> Machine:
    """One pool with these rules."""
    return Machine((Pool("all", PROCS, 1),), (Partition("all", ("all",)),), windows=windows, clock=0, **rest)


RANDOM: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "two hours": lambda draw, submit: draw.integers(0, 7200, len(submit)),
    "half an hour": lambda draw, submit: draw.integers(0, 1800, len(submit)),
    "ten minutes": lambda draw, submit: draw.integers(0, 600, len(submit)),
    "by number": lambda draw, submit: submit * 2_654_435_761 % 7919,
    "half at once": lambda draw, submit: draw.exponential(5000, len(submit)).astype(np.int64) * draw.integers(0, 2, len(submit)),
}
"""Waits, s, that no scheduler made: uniform up to a time, or anywhere from the submission on."""


def at_random(kind: str, jobs: int, procs: int = 16, seed: int = 1) -> Workload:
    """A log of months with few jobs at a time, whose starts follow no rule; it begins on a Monday."""
    draw = np.random.Generator(np.random.Philox(seed))
    submit = np.cumsum(draw.integers(1, 10_000, jobs))
    columns = {"wait": RANDOM[kind](draw, submit), "user": draw.integers(1, 11, jobs), "group": draw.integers(1, 4, jobs)}
    log = Workload.from_arrays(
        submit=submit,
        runtime=draw.integers(30, 3000, jobs),
        requested=np.full(jobs, 7200),
        procs=draw.choice([1, 2, 4, 8], jobs),
        machine_procs=procs,
        columns=columns,
    )
    return replace(log, origin=replace(log.origin, name=f"random, seed {seed}", unix_start_time=BEGIN))


def middle(workload: Workload) -> int:
    """When half of the jobs have been submitted, s."""
    return int(np.median(workload.submit))


def part(workload: Workload, since: int | None = None) -> Machine:
    """Small, short jobs have a part of the machine of their own; before `since` (s) they run anywhere."""
    pools = (Pool("part1", SMALL, 1), Pool("main", PROCS - SMALL, 1))
    small = Partition("part1", ("part1",), widest=4, longest=SHORT, since=since)
    rest = Partition("main", ("main",), widest=PROCS - SMALL, since=since)
    return Machine(pools, (small, rest, Partition("whole", ("main", "part1"))))


def outages(*begins: int) -> Callable[[Workload], Machine]:
    """The whole machine is out for a day from these days on, which is known long before."""
    return lambda workload: site(outages=tuple(Outage("all", day * DAY + 8 * HOUR, day * DAY + 32 * HOUR, announced=0) for day in begins))


def some_users(jobs: int, comes: bool = False) -> Callable[[Workload], Machine]:
    """Limit the users with most jobs to this many running jobs, always or in the second half of the log."""

    def limited(workload: Workload) -> Machine:
        since = middle(workload) if comes else None
        return site(limits=(Limit(("user",), only=tuple(map(str, busiest(workload))), jobs=jobs, since=since),))

    return limited


def wide_of_groups(workload: Workload) -> Machine:
    """Each group runs at most two jobs of over 4 processors at once; all jobs share one pool."""
    partitions = (Partition("narrow", ("all",), widest=4), Partition("wide", ("all",)))
    return Machine((Pool("all", PROCS, 1),), partitions, limits=(Limit(("group",), partition="wide", jobs=2),))


def says_wide_of_groups(inference: Inference, workload: Workload) -> bool:
    """Whether a limit of two jobs for each group was inferred, for jobs of more than 2 to 7 processors."""
    partitions = {one.name: one for one in inference.machine.partitions}
    limits = [one for one in inference.machine.limits if one.by == ("group",) and one.jobs == 2 and not one.only]
    narrower = max((one.widest or 0 for one in partitions.values()), default=0)
    return bool(limits) and 2 <= narrower < 8


def says_fair_share(inference: Inference, workload: Workload) -> bool:
    """Whether an order by what users have used was inferred."""
    return "-user_used" in (inference.machine.policy or "")


def busiest(workload: Workload, count: int = 3) -> list[int]:
    """The users with most jobs, by number."""
    users, jobs = np.unique(workload.columns["user"], return_counts=True)
    return sorted(users[np.argsort(-jobs, kind="stable")[:count]].tolist())


def says_window(begin: str, days: tuple[str, ...], **kind: int) -> Callable[[Inference, Workload], bool]:
    """Whether a window of this begin and these days was inferred, for jobs of such a kind."""

    def says(inference: Inference, workload: Workload) -> bool:
        own = inference.machine.windows
        return any(one.begin == begin and one.days == days and all(getattr(one, name) for name in kind) for one in own)

    return says


def says_part(inference: Inference, workload: Workload) -> bool:
    """Whether a part of at most half as many processors again was inferred."""
    return any(SMALL <= pool.nodes * pool.procs <= SMALL * 3 // 2 for pool in inference.machine.pools[:-1])


def says_limit(inference: Inference, workload: Workload) -> bool:
    """Return whether most of the limited users were inferred, and no others."""
    named = {int(user) for limit in inference.machine.limits for user in limit.only}
    wanted = set(busiest(workload))
    return len(named & wanted) > len(wanted) / 2 and named <= wanted


def says_overhead(inference: Inference, workload: Workload) -> bool:
    """Whether overheads within 15 s of these were inferred."""
    own = inference.machine.overhead
    return abs(own.start - TAKES.start) <= 15 and abs(own.end - TAKES.end) <= 15


def says_outages(inference: Inference, workload: Workload) -> bool:
    """Whether outages were inferred."""
    return bool(inference.machine.outages)


def says_policy(name: str) -> Callable[[Inference, Workload], bool]:
    """Whether this policy was inferred."""
    return lambda inference, workload: inference.machine.policy == name


def says_handicap(inference: Inference, workload: Workload) -> bool:
    """Whether the order of arrival was inferred, with wide jobs back by 2 to 8 h of waiting for each doubling of their processors."""
    numbers = re.fullmatch(r"easy:order=expr:-elapsed-(\d+)\*log\(procs\)", inference.machine.policy or "")
    return numbers is not None and 2 * HOUR <= int(numbers[1]) * math.log(2) <= 8 * HOUR


def says_since(kind: str, says: Callable[[Inference, Workload], bool]) -> Callable[[Inference, Workload], bool]:
    """Return whether a rule was inferred that begins in the middle of the log, within a month."""

    def both(inference: Inference, workload: Workload) -> bool:
        times = [one.since for one in inference.rules if one.kind == kind]
        times += [limit.since for limit in inference.machine.limits if kind == "limit"]
        return says(inference, workload) and any(time is not None and abs(time - middle(workload)) < 30 * DAY for time in times)

    return both


def nothing(inference: Inference, workload: Workload) -> bool:
    """Whether no rule was inferred."""
    return not inference.rules


RULES: dict[str, Planted] = {
    "none: plain EASY": Planted(lambda w: site(), nothing, ""),
    "no job is planned across 17:00 of a weekday": Planted(
        lambda w: site(Window("17:00", days=WEEKDAYS)), says_window("17:00", WEEKDAYS), "window"
    ),
    "... in the first half of the log only": Planted(
        lambda w: site(Window("08:00", days=WEEKDAYS, until=middle(w))), says_window("08:00", WEEKDAYS), "window"
    ),
    "long requests do not start by day": Planted(
        lambda w: site(Window("08:00", "17:00", days=WEEKDAYS, longer_than=SHORT)), says_window("08:00", WEEKDAYS, longer_than=1), "window"
    ),
    "long requests are not planned into the day": Planted(
        lambda w: site(Window("08:00", "17:00", days=WEEKDAYS, longer_than=SHORT, drain=True)),
        says_window("08:00", WEEKDAYS, longer_than=1, drain=1),
        "window",
    ),
    "wide jobs do not start by day": Planted(
        lambda w: site(Window("08:00", "17:00", days=WEEKDAYS, wider_than=32)), says_window("08:00", WEEKDAYS, wider_than=1), "window"
    ),
    "maintenance on every second Monday": Planted(lambda w: outages(*range(14, int(w.submit[-1]) // DAY, 14))(w), says_outages, "outage"),
    "three outages": Planted(outages(20, 45, 81), says_outages, "outage"),
    "a part of 16 processors for small, short jobs": Planted(part, says_part, "part"),
    "three users run one job at a time": Planted(some_users(1), says_limit, "limit"),
    "three users run two jobs at a time": Planted(some_users(2), says_limit, "limit"),
    "the scheduler takes 60 s, and 120 s after an end": Planted(lambda w: site(overhead=TAKES), says_overhead, "overhead"),
    "no backfilling": Planted(lambda w: site(), says_policy("fcfs"), "policy", policy="fcfs"),
    "reservations for all": Planted(lambda w: site(), says_policy("conservative"), "policy", policy="conservative"),
    "the smallest area first": Planted(lambda w: site(), says_policy("easy:order=saf"), "policy", policy="easy:order=saf"),
    "in order of arrival, wide jobs as if they had come later": Planted(
        lambda w: site(), says_handicap, "policy", policy=f"easy:order=expr:-elapsed-{4 * HOUR / math.log(2):.0f}*log(procs)"
    ),
    "a part for small, short jobs from the middle of the log on": Planted(
        lambda w: part(w, since=middle(w)), says_since("part", says_part), "part"
    ),
    "three users run one job at a time from the middle of the log on": Planted(
        some_users(1, comes=True), says_since("limit", says_limit), "limit"
    ),
    "the smallest area first from the middle of the log on": Planted(
        lambda w: site(), says_since("policy", says_policy("easy:order=saf")), "policy", policy="easy:order=saf", before="easy"
    ),
}


RULES |= {
    "no job starts in the lunch break of a weekday": Planted(
        lambda w: site(Window("12:00", "13:00", days=WEEKDAYS)), says_window("12:00", WEEKDAYS), "window"
    ),
    "small jobs do not start at night": Planted(
        lambda w: site(Window("22:00", "06:00", narrower_than=4)), says_window("22:00", DAYS, narrower_than=1), "window"
    ),
    "at most two wide jobs of a group": Planted(wide_of_groups, says_wide_of_groups, "limit"),
    "fair share with decay": Planted(lambda w: site(), says_fair_share, "policy", policy="easy:order=expr:-user_used,half-life=604800"),
}


def planted(rule: Planted, jobs: int, seed: int) -> Workload:
    """A generated log, scheduled under the hidden rule, with its waits as a record."""
    log = base(jobs, seed)
    late = log.submit >= (middle(log) if rule.before else 0)
    if rule.before:  # it begins on an empty machine, some days later
        first = wt.simulate(log.take(~late, ""), rule.before, machine=rule.machine(log))
        log = replace(log, submit=log.submit + late * (DAY * math.ceil((int(first.end.max()) - middle(log)) / DAY)))
    own = wt.simulate(log.take(late, ""), rule.policy, machine=rule.machine(log))
    both = [first, own] if rule.before else [own]
    runtime, wait = (
        np.concatenate(values) for values in zip(*((one.runtime, one.start - one.workload.submit) for one in both), strict=True)
    )
    return replace(log, runtime=runtime, columns={**log.columns, "wait": wait})


def trial(name: str, jobs: int, seed: int) -> Outcome:
    """Plant one rule, infer, compare; or let jobs start at random."""
    if name in RANDOM:
        inference = infer(at_random(name, jobs // 4, seed=seed))
        invented = tuple(one.text for one in inference.rules)
        return Outcome(name, seed, not invented, invented, inference.before.prompt_f1, inference.after.prompt_f1)
    rule = RULES[name]
    log = planted(rule, jobs, seed)
    inference = infer(log)
    found = rule.says(inference, log)
    others = [one.text for one in inference.rules if one.kind != rule.kind]
    others += [one.text for one in inference.rules if one.kind == rule.kind][int(found) :]
    return Outcome(name, seed, found, tuple(others), inference.before.prompt_f1, inference.after.prompt_f1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each rule and seed, and how many were found, missed and invented."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=12_000, help="jobs of each log (12,000)")
    parser.add_argument("--seeds", type=int, default=2, help="logs for each rule (2)")
    parser.add_argument("--only", nargs="+", choices=[*RULES, *RANDOM], metavar="NAME", help="rules to plant")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    given = parser.parse_args(arguments)
    outcomes = []
    for name in given.only or [*RULES, *RANDOM]:
        for seed in range(1, given.seeds + 1):
            outcomes.append(trial(name, given.jobs, seed))
            one = outcomes[-1]
            if not given.json:
                what = "found" if one.found else "MISSED"
                print(f"{name:50} {seed}  {what:7} {one.before:.3f} -> {one.after:.3f}  {'; '.join(one.invented)}", flush=True)
    if given.json:
        print(json.dumps([vars(one) for one in outcomes], indent=2))
    else:
        found, invented = sum(one.found for one in outcomes), sum(len(one.invented) for one in outcomes)
        print(f"{found} of {len(outcomes)} found, {len(outcomes) - found} missed, {invented} invented")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
