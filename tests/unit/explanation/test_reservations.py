"""What `explain` says of reservations, under every policy, is what the engine kept."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

import walltime as wt
from walltime.explanation.waits import Snapshot, snapshots
from walltime.policy import MultiQueue, Selective, Slack
from walltime.policy.registry import POLICIES, policy_variants

JOBS = 28


def crowd(seed: int) -> wt.Workload:
    """Jobs of many lengths on 8 processors, submitted faster than they can run, with requests of up to three times their runtimes."""
    draw = np.random.default_rng(seed)
    runtime = np.exp(draw.uniform(np.log(5), np.log(40_000), JOBS)).astype(np.int64)
    return wt.Workload.from_arrays(
        submit=np.sort(draw.integers(0, 60_000, JOBS)),
        runtime=runtime,
        requested=runtime * draw.integers(1, 4, JOBS),
        procs=draw.integers(1, 9, JOBS),
        machine_procs=8,
    )


def threshold(schedule: wt.Schedule, now: int) -> float:
    """Above which expansion factor a job has a reservation under selective reservations."""
    if schedule.policy.threshold != "adaptive":
        return schedule.policy.threshold
    ended = schedule.end <= now
    slowdown = np.maximum(1, (schedule.end - schedule.submit) / np.maximum(10, schedule.runtime))
    return float(slowdown[ended].mean()) if ended.any() else 1.0


def entitled(schedule: wt.Schedule, seen: Snapshot, in_order: Sequence[int]) -> set[int]:
    """Who has a reservation by the definition of the policy, of the jobs that wait, which are in the order of the queue."""
    policy, jobs = schedule.policy, schedule.workload
    match policy:
        case wt.Conservative() | Slack():
            return set(in_order)
        case wt.NoBackfilling():
            return set()
        case wt.Hybrid():
            return set(in_order[: policy.depth])
        case MultiQueue():
            queues = [sum(int(jobs.planned[one]) >= bound for bound in policy.bounds) for one in in_order]
            return {in_order[queues.index(queue)] for queue in set(queues)}
        case Selective():
            waited = {one: seen.now - int(schedule.submit[one]) for one in in_order}
            limit = threshold(schedule, seen.now)
            return {one for one in in_order if (waited[one] + int(jobs.planned[one])) / int(jobs.planned[one]) > limit}
    return set(in_order[:1])


def queue_of(schedule: wt.Schedule, seen: Snapshot) -> list[int]:
    """The jobs that wait, in the order of the queue, by the definition of its score."""
    jobs, order = schedule.workload, schedule.policy.order

    def standing(one: int) -> float:
        wait = seen.now - int(schedule.submit[one])
        elapsed = int(schedule.submit[one] - schedule.submit[0])
        score = order.score(wait, int(jobs.planned[one]), int(jobs.procs[one]), int(schedule.submit[one]), elapsed=elapsed)
        return -order.sort_key(score, wait)

    return sorted(seen.waiting, key=standing)


def may_wait(schedule: wt.Schedule, job: int) -> int:
    """How much later than its reservation a job may start: relaxed backfilling tells the latest time."""
    omega = getattr(schedule.policy, "omega", 0.0)
    return math.floor(omega * int(schedule.reserved_start[job] - schedule.submit[job])) if omega else 0


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text in policy_variants() if "order=" not in text or text.startswith("easy:order=sjf")])
def test_explain__says_of_reservations_what_the_engine_kept(text):
    without = 0
    schedule = wt.simulate(crowd(1), text)
    for job in np.flatnonzero(schedule.wait > 0).tolist():
        told = wt.explain(schedule, int(schedule.workload.job_id[job]), sooner=False)
        # What the engine kept: the first reservation that it noted, and who had one whenever this job waited.
        reserved, start = int(schedule.reserved_start[job]), int(schedule.start[job])
        if told.reservations:
            assert told.reservations[0].start == reserved + may_wait(schedule, job), job
        else:
            assert reserved in (-1, start), job  # one that was made in the pass in which it was used
        for seen in snapshots(schedule, job):
            assert set(seen.reserved) == entitled(schedule, seen, queue_of(schedule, seen)), (job, seen.now)
        says = "Reservation: none" in str(told)
        assert says == (not told.reservations)
        if says:
            without += 1
            assert f"Reservation: none: {schedule.policy.reservations.reason}." in str(told)
    assert without == 0 or schedule.policy.reservations.of != "all"


def test_explain__every_policy_of_the_registry_declares_its_reservations(golden):
    tried = {type(wt.policy.parse_policy(text)) for text in (*policy_variants(), "plan", "slurm", "oar")}
    assert tried == {form.loaded for form in POLICIES.variants.values()}
    assert all(wt.policy.parse_policy(text).reservations.of != "unknown" for text in policy_variants())
    assert wt.policy.parse_policy("slurm").reservations.of == "some"
    golden("explain", wt.policy.parse_policy("multiqueue").reservations.reason)
