"""The rule behind a published schedule of CQSim+: `python validation/cqsim.py LOG SCHEDULE` prints how many starts follow from it.

It is conservative backfilling, made again in order of arrival after every single event, the ends of an instant before its arrivals:

* A running job occupies its processors until its request, a waiting one is planned for its real runtime, at most the request.
* Jobs whose request ends now, and whose ends have not been handled, free their processors in a second step of the plan, at the same time.
  A job planned in this step does not start, but takes these processors from the jobs behind it.

As no scheduler knows real runtimes, this is not a dialect.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Sequence
from pathlib import Path

import walltime as wt

SUBMITTED, ENDED = 2, 1


def starts(submit: Sequence[int], runtime: Sequence[int], requested: Sequence[int], procs: Sequence[int], machine: int) -> list[int]:
    """Return the start of each job by the rule, s; the jobs are in order of arrival."""
    start, running, waiting, free = [-1] * len(submit), dict[int, int](), list[int](), machine
    events = [(moment, SUBMITTED, job) for job, moment in enumerate(submit)]
    heapq.heapify(events)
    while events:
        now, kind, job = heapq.heappop(events)
        if kind == SUBMITTED:
            waiting.append(job)
        else:
            free += procs[job]
            del running[job]
        planned_now, plan = [], list[list[int]]()
        for other in waiting:
            if not plan and procs[other] <= free:  # the heads of the queue start
                planned_now.append(other)
                free -= procs[other]
                running[other] = now + requested[other]
                continue
            plan = plan or _plan(now, free, running, procs)
            if _fits(plan, 0, procs[other], now + runtime[other]) and plan[0][1] >= procs[other]:
                planned_now.append(other)
                running[other] = now + requested[other]
            _reserve(plan, procs[other], runtime[other], machine)
        free = machine - sum(procs[other] for other in running)
        waiting = [other for other in waiting if other not in planned_now]
        for other in planned_now:
            start[other] = now
            heapq.heappush(events, (now + runtime[other], ENDED, other))
    return start


def _plan(now: int, free: int, running: dict[int, int], procs: Sequence[int]) -> list[list[int]]:
    """Return the steps of the running jobs: their times, and the processors that are free from then on."""
    plan = [[now, free]]
    for job in sorted(running, key=lambda one: running[one]):
        if len(plan) > 1 and plan[-1][0] == running[job]:
            plan[-1][1] += procs[job]
        else:
            plan.append([running[job], plan[-1][1] + procs[job]])
    return plan


def _fits(plan: list[list[int]], first: int, procs: int, end: int) -> bool:
    """Return whether processors are free from a step on until a time."""
    return all(free >= procs for moment, free in plan[first:] if moment < end)


def _reserve(plan: list[list[int]], procs: int, length: int, machine: int) -> None:
    """Take processors from the first step from which they are free for a length."""
    place = next(k for k, (moment, free) in enumerate(plan) if free >= procs and _fits(plan, k, procs, moment + length))
    end = plan[place][0] + length
    while place < len(plan) and plan[place][0] < end:
        plan[place][1] -= procs
        place += 1
    if place == len(plan):
        plan.append([end, machine])
    elif plan[place][0] != end:
        plan.insert(place, [end, plan[place - 1][1] + procs])


def equal_starts(log: Path, schedule: Path) -> tuple[int, int]:
    """Return how many starts of a schedule follow from the rule, and how many there are; columns: job, ..., start (8th), end."""
    jobs = wt.read(log)
    runtime = [min(ran, asked) for ran, asked in zip(jobs.runtime.tolist(), jobs.requested.tolist(), strict=True)]
    mine = starts(jobs.submit.tolist(), runtime, jobs.requested.tolist(), jobs.procs.tolist(), jobs.machine_procs)
    theirs = {int(row[0]): float(row[7]) for row in (line.split(";") for line in schedule.read_text().splitlines())}
    first = min(theirs.values()) - min(mine)
    pairs = zip(jobs.job_id.tolist(), mine, strict=True)
    return sum(theirs.get(number) == begin + first for number, begin in pairs), len(theirs)


if __name__ == "__main__":
    print("{} of {} starts are equal".format(*equal_starts(*map(Path, sys.argv[1:3]))))
