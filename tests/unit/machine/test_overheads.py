"""Overheads: time from a decision to the start, from the end until processors are free, and between two looks of the scheduler."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples
from walltime.errors import LogError, PolicyError
from walltime.machine import Limit, Machine, Outage, Overhead, Partition, Pool, Window, place, write_machine
from walltime.machine.machine import parse_machine

MONDAY = 4 * 86_400
POLICIES = [wt.NoBackfilling(), wt.Easy(), wt.Hybrid(depth=2), wt.Conservative(), wt.Conservative(variant="scratch")]


def jobs(submit, runtime, procs, requested=None, machine_procs=4, **columns):
    own = wt.Workload.from_arrays(
        submit=submit,
        runtime=runtime,
        procs=procs,
        requested=runtime if requested is None else requested,
        machine_procs=machine_procs,
        columns={name: np.array(values) for name, values in columns.items()},
    )
    return replace(own, origin=replace(own.origin, unix_start_time=MONDAY))


def machine(start=0, end=0, tick=1, **rest):
    return Machine((Pool("all", 4, 1),), (Partition("all", ("all",)),), overhead=Overhead(start, end, tick), clock=0, **rest)


def starts(workload, own, policy="easy", **options):
    schedule = wt.simulate(workload, policy, machine=own, **options)
    assert not schedule.audit().violations
    assert (schedule.end == schedule.start + schedule.runtime).all()
    return schedule.start.tolist()


def test_overhead__passes_before_the_start_and_after_the_end():
    # The first is decided at 0, starts at 30 and ends at 130; its processors are free at 140, and the second starts 30 s later.
    assert starts(jobs([0, 10], [100, 50], [4, 4]), machine(start=30, end=10)) == [30, 170]


def test_overhead__the_scheduler_sees_at_a_tick_what_has_happened():
    # Looks at 0, 60, 120: the job of 10 s ends at 70 (decided at 60), which is seen at 120.
    assert starts(jobs([5, 6], [10, 10], [4, 4]), machine(tick=60)) == [60, 120]


def test_overhead__all_three():
    # Decided at 60, starts at 75, ends at 100, is clean at 105, seen at 120; then 15 s until the start.
    assert starts(jobs([5, 6], [25, 10], [4, 4]), machine(15, 5, 60)) == [75, 135]


def test_overhead__plans_with_it():
    # The head (4 processors) is reserved for 110. One of 100 s would end at 10 + 100 + 10 = 120, and delay it; one of 90 s would not.
    own = machine(end=10)
    assert starts(jobs([0, 1, 10], [100, 10, 100], [3, 4, 1]), own) == [0, 110, 130]
    assert starts(jobs([0, 1, 10], [100, 10, 90], [3, 4, 1]), own) == [0, 110, 10]


def test_overhead__of_jobs_that_run_at_first_has_passed():
    workload = jobs([0, 0], [100, 10], [4, 4], running_since=[-50 + 50, -1])
    assert starts(workload, machine(start=30, end=10)) == [0, 140]


def test_overhead__users_react_to_the_end_and_not_to_the_clean_up():
    workload = jobs([0, 0], [100, 10], [4, 4], preceding_job=[-1, 1], think_time=[-1, 20]).with_feedback()
    schedule = wt.simulate(workload, "easy", machine=machine(start=30, end=10))
    assert schedule.submit.tolist() == [0, 150]
    assert not schedule.audit().violations


def test_overhead__jobs_seen_at_one_tick_stay_in_order_of_arrival():
    workload = jobs([5, 6], [10, 20], [4, 4])
    assert starts(replace(workload, job_id=np.array([2, 1])), machine(tick=60)) == [60, 120]


@given(st.integers(0, 10**6))
@examples(60)
def test_engines_and_auditor__agree_under_overheads(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(2, 20))
    runtime = draw.integers(1, 5_000, count)
    workload = jobs(
        np.sort(draw.integers(0, 20_000, count)),
        runtime,
        draw.integers(1, 5, count),
        requested=runtime + draw.integers(0, 2_000, count),
        user=draw.integers(1, 3, count),
    )
    own = machine(
        int(draw.integers(0, 200)),
        int(draw.integers(0, 200)),
        int(draw.choice([1, 7, 60])),
        outages=(Outage("all", 5_003, 6_001, 1, announced=4_000),) if seed % 3 == 0 else (),
        limits=(Limit(("user",), jobs=2),) if seed % 2 else (),
        windows=(Window("02:00", days=("mon",)),) if seed % 5 == 0 else (),
    )
    policy = POLICIES[seed % len(POLICIES)]
    overrun = ("kill", "extend")[seed % 2]
    compiled = wt.simulate(workload, policy, machine=own, overrun=overrun)
    assert compiled.start.tolist() == wt.simulate(workload, policy, machine=own, overrun=overrun, engine="reference").start.tolist()
    assert not compiled.audit().violations
    assert ((compiled.start - own.overhead.start) % own.overhead.tick == 0).all()


@given(st.integers(0, 10**6))
@examples(60)
def test_overhead__equals_first_come_first_served_second_by_second(seed):
    """A scheduler that looks at its clock every second, written down as the key's meaning says."""
    draw = np.random.default_rng(seed)
    count = int(draw.integers(1, 9))
    submit, runtime = np.sort(draw.integers(0, 200, count)), draw.integers(1, 60, count)
    procs = draw.integers(1, 5, count)
    start, end, tick = int(draw.integers(0, 20)), int(draw.integers(0, 20)), int(draw.integers(1, 15))
    begun, free_at, waiting, now = {}, {}, list(range(count)), 0
    while waiting:
        while now % tick == 0 and waiting:
            head = waiting[0]
            used = sum(int(procs[job]) for job, until in free_at.items() if until > now)
            if submit[head] > now or used + procs[head] > 4:
                break
            begun[head] = now + start
            free_at[head] = now + start + int(runtime[head]) + end
            waiting.pop(0)
        now += 1
    assert starts(jobs(submit, runtime, procs), machine(start, end, tick), "fcfs") == [begun[job] for job in range(count)]


def test_audit__finds_a_start_that_comes_too_soon_after_an_end():
    workload = jobs([0, 10], [100, 50], [4, 4])
    plain = wt.simulate(workload, "easy", machine=machine())
    placed, placement = place(workload, machine(end=10))
    found = wt.audit(placed, {"job_id": placed.job_id, "start": plain.start, "end": plain.end}, wt.Easy(), placement=placement)
    assert {"pool_capacity"} <= {violation.rule for violation in found.violations}


def test_explain__says_what_the_scheduler_took(golden):
    schedule = wt.simulate(jobs([0], [100], [1]), "easy", machine=machine(start=30))
    why = wt.explain(schedule, 1, sooner=False)
    assert (why.held_back.overhead, why.wait) == (30, 30)
    golden("simulate", str(why))


def test_explain__alternatives_start_after_the_overhead_too():
    schedule = wt.simulate(jobs([0, 10], [100, 50], [3, 2]), "easy", machine=machine(start=30, end=10))
    other = next(one for one in wt.explain(schedule, 2).alternatives if (one.what, one.value) == ("procs", 1))
    assert other.start == 40


def test_predictions__are_of_runtimes_and_not_of_overheads():
    schedule = wt.simulate(jobs([0, 10], [100, 50], [4, 4]), "easy:predictor=exact", machine=machine(start=30, end=10))
    assert schedule.predictions.predicted.tolist() == [100, 50]
    assert not schedule.audit().violations


def test_predictions__are_outlived_at_a_tick():
    # The user's first two jobs occupy 60 and 120 s, so the third, which starts at 180, is predicted to run for 90: until 300 to a scheduler
    # that looks at 240 and 300. So the one of 60 s that comes at 240 is gone when the machine is expected to be free for the head.
    workload = jobs([0, 1, 170, 181, 240], [60, 120, 240, 60, 60], [4, 4, 3, 4, 1], [60, 120, 600, 60, 60], user=[1, 1, 1, 2, 3])
    own = machine(tick=60)
    schedule = wt.simulate(workload, "easy:predictor=tsafrir07", machine=own)
    assert schedule.start.tolist() == [0, 60, 180, 420, 240]
    assert schedule.predictions.predicted.tolist() == [60, 120, 120, 60, 60]
    assert schedule.predictions.corrections.tolist() == [0, 0, 2, 0, 0]
    assert not schedule.audit().violations


CORRECTIONS = ["tsafrir07", "estimate", "double", "half", "soft", "none", "double:uncapped", "tsafrir07:elapsed"]


@pytest.mark.slow
@given(st.integers(0, 10**6))
@examples(100)
def test_predictions__engines_and_auditor_agree_and_nothing_starts_between_ticks(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(2, 30))
    runtime, submit = draw.integers(1, 5_000, count), np.sort(draw.integers(0, 20_000, count))
    since = np.full(count, -1)
    if seed % 3 == 0:
        submit[0], since[0] = 0, -int(draw.integers(2, 500))
    if seed % 6 == 0:
        submit[1] = since[1] = int(draw.integers(0, submit[2])) if count > 2 else submit[1]
    workload = jobs(
        submit,
        runtime,
        np.append([2, 2], draw.integers(1, 5, count))[:count],
        requested=runtime + draw.integers(0, 4_000, count) * draw.integers(0, 2, count),
        user=draw.integers(1, 3, count),
        running_since=since,
    )
    windows = (Window("02:00", days=("mon",)),) if seed % 2 else ()
    own = machine(int(draw.integers(0, 200)), int(draw.integers(0, 200)), int(draw.choice([7, 60, 400])), windows=windows)
    prediction = wt.Prediction(("tsafrir07", "tsafrir07:k=1")[draw.integers(2)], correction=CORRECTIONS[draw.integers(len(CORRECTIONS))])
    policy = POLICIES[seed % len(POLICIES)]
    compiled = wt.simulate(workload, policy, machine=own, prediction=prediction)
    plain = wt.simulate(workload, policy, machine=own, prediction=prediction, engine="reference")
    assert compiled.start.tolist() == plain.start.tolist()
    assert compiled.predictions.predicted.tolist() == plain.predictions.predicted.tolist()
    assert compiled.predictions.corrections.tolist() == plain.predictions.corrections.tolist()
    assert not compiled.audit().violations
    assert ((compiled.start - own.overhead.start)[since == -1] % own.overhead.tick == 0).all()


def test_plain_policy__is_woken_at_a_tick():
    class Later(wt.PlainPolicy):
        """Starts a job a while after it has come."""

        def choose(self, now, waiting, running, free):
            ready = [job for job in waiting if now >= job.submit + 10]
            return wt.policy.Choice(ready, wake_at=None if ready or not waiting else now + 10)

    for own in (machine(tick=60), machine(tick=60, limits=(Limit(("user",), jobs=2),))):
        schedule = wt.simulate(jobs([5], [100], [1], user=[1]), Later(), machine=own)
        assert schedule.start.tolist() == [120]


def test_file__overheads_are_read_and_written():
    own = machine(30, 60, 10)
    text = write_machine(own)
    assert "[overhead]\nstart = 30\nend = 60\ntick = 10" in text
    assert parse_machine(text, "here") == own


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("start = -1", ("wrong_value", "overhead.start")),
        ("tick = 0", ("wrong_value", "overhead.tick")),
        ("stop = 3", ("unknown_key", "'stop'")),
    ],
)
def test_file__a_wrong_overhead_is_one_line(line, message):
    head = write_machine(machine())
    with raises(LogError, *message):
        parse_machine(f"{head}\n[overhead]\n{line}\n", "here")


def test_slurm__has_overheads_of_its_own():
    with raises(PolicyError, "unsupported_policy", "overheads"):
        wt.simulate(jobs([0], [1], [1]), "slurm", machine=machine(start=3))
