"""Queues so long that the kernel searches them by an index: the schedules stay the same."""

import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.profiles import seeds
from tests.strategies import COINCIDENT, OVERRUN, crowded, examples
from walltime.engine.kernel.number import index
from walltime.engine.kernel.profile import size_class

pytestmark = pytest.mark.slow

LONG, SHORT = 512, 128
"""Thresholds of the index in these tests: under the usual ones, so that queues cross them that the reference can replay."""


@pytest.fixture(autouse=True)
def early_index(monkeypatch):
    monkeypatch.setattr(index, "LONG", LONG)
    monkeypatch.setattr(index, "SHORT", SHORT)


@wt.order
def all_the_same(procs):
    """Equal scores leave the order of arrival, but an order of one's own takes another way through the engine."""
    return procs * 0.0


@wt.order
def patience(wait, requested, procs):
    """Changes with time, and not at the same pace for all."""
    return (wait + 60.0) / requested - procs


@wt.order
def narrow(procs, submit):
    """Does not change with time."""
    return -procs - submit % 7


ORDERED = [
    wt.NoBackfilling(order=wt.SJF),
    wt.NoBackfilling(order=wt.WFP),
    wt.Easy(order=wt.SJF),
    wt.Easy(order=wt.WFP),
    wt.Easy(order=wt.policy.Wfp(exponent=2, threshold=0.75)),
    wt.Easy(order=narrow),
    wt.Easy(order=patience),
    wt.Easy(backfill_order=wt.SJF),
    wt.Easy(backfill_order=wt.WFP),
    wt.Easy(order=wt.WFP, backfill_order=wt.SJF),
    wt.Easy(order=wt.SJF, backfill_order=wt.FCFS),
    wt.Easy(order=narrow, backfill_order=patience),
    wt.Hybrid(depth=0, backfill_order=wt.SJF),
]


def overloaded(seed: int, jobs: int) -> wt.Workload:
    """Far more work than the machine can do, so that the queue grows over the index's threshold and drains at the end."""
    random = np.random.Generator(np.random.Philox(seed))
    machine = int(random.choice([1, 7, 64, 1000]))
    runtime = random.integers(0, int(random.choice([5, 500, 5000])), jobs)
    planned = np.maximum(1, runtime * random.uniform(0.9, 3.0, jobs)).astype(np.int64)
    return wt.Workload.from_arrays(
        submit=np.sort(random.integers(0, int(jobs * random.choice([0.01, 1.0, 10.0])), jobs)),
        runtime=runtime,
        requested=np.maximum(runtime, 1),
        planned=planned,
        procs=np.minimum(machine, 2 ** random.integers(0, 11, jobs) + random.integers(0, 2, jobs) * random.integers(0, 5, jobs)),
        machine_procs=machine,
    )


def longest_queue(schedule: wt.Schedule) -> int:
    from walltime.metrics import queue_length

    return int(queue_length(schedule.submit, schedule.start)[1].max(initial=0))


@pytest.mark.parametrize("coincident", ["batch", "sequential"])
@pytest.mark.parametrize("seed", range(12))
def test_indexed_queue__gives_the_schedule_of_a_plain_search(seed, coincident):
    jobs = overloaded(seed, 3000)
    for indexed, plain in ((wt.Easy(), wt.Easy(order=all_the_same)), (wt.Hybrid(depth=0), wt.Hybrid(depth=0, order=all_the_same))):
        a, b = (wt.simulate(jobs, policy, coincident=coincident) for policy in (indexed, plain))
        assert a.start.tolist() == b.start.tolist()
        assert a.kind.tolist() == b.kind.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_indexed_queue__equals_the_reference(seed):
    jobs = overloaded(seed, 900)
    kernel, reference = (wt.simulate(jobs, wt.Easy(), engine=engine) for engine in ("kernel", "reference"))
    assert longest_queue(kernel) > LONG
    for name in ("start", "kind", "reserved_start"):
        assert getattr(kernel, name).tolist() == getattr(reference, name).tolist(), name


def test_overloaded_workloads__do_cross_the_thresholds_of_the_index():
    longest = [longest_queue(wt.simulate(overloaded(seed, 3000), wt.Easy())) for seed in range(12)]
    assert sum(length > 2 * LONG for length in longest) >= 6
    assert SHORT < LONG


@pytest.mark.parametrize("coincident", COINCIDENT)
@examples(100)
@given(data=st.data())
def test_index_from_the_first_job_on__equals_the_reference(coincident, data):
    jobs = data.draw(crowded(), label="workload")
    policy = data.draw(st.sampled_from([wt.Easy(), wt.Hybrid(depth=0), *ORDERED]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "LONG", data.draw(st.integers(0, 6), label="long"))
        patch.setattr(index, "SHORT", data.draw(st.integers(0, 3), label="short"))
        for overrun in OVERRUN:
            kernel, reference = (
                wt.simulate(jobs, policy, coincident=coincident, overrun=overrun, engine=e) for e in ("kernel", "reference")
            )
            for name in ("start", "kind", "reserved_start"):
                assert getattr(kernel, name).tolist() == getattr(reference, name).tolist(), name


@pytest.mark.sampled(2)
@pytest.mark.parametrize("coincident", ["batch", pytest.param("sequential", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "number",
    [pytest.param(k, marks=pytest.mark.nightly if "patience" in one.label else (), id=one.label) for k, one in enumerate(ORDERED)],
)
def test_ordered_queue_of_many_blocks__equals_the_reference(number, coincident, monkeypatch):
    # Some hundred waiting jobs: many blocks of ranks; indexed from 100 places on in every other one.
    workloads = (overloaded(seed, 350) for seed in itertools.count(10 * number))
    jobs = next(w for w in workloads if longest_queue(wt.simulate(w, wt.Easy())) > 120)
    if number % 2:
        monkeypatch.setattr(index, "LONG", 100)
        monkeypatch.setattr(index, "SHORT", 50)
    kernel, reference = (wt.simulate(jobs, ORDERED[number], coincident=coincident, engine=e) for e in ("kernel", "reference"))
    assert longest_queue(kernel) > 60
    for name in ("start", "kind", "reserved_start"):
        assert getattr(kernel, name).tolist() == getattr(reference, name).tolist(), name


@pytest.mark.parametrize("seed", range(12))
def test_usual_thresholds__give_the_schedule_of_a_plain_search(seed, monkeypatch):
    monkeypatch.undo()
    jobs = overloaded(seed, 8000)
    a, b = (wt.simulate(jobs, policy) for policy in (wt.Easy(), wt.Easy(order=all_the_same)))
    assert a.start.tolist() == b.start.tolist()
    assert index.SHORT < index.LONG < 8000


def test_size_class__begins_with_a_power_of_two():
    found = numba.njit(lambda procs: size_class(procs))
    assert [found(procs) for procs in (1, 2, 3, 4, 7, 8, 1023, 1024)] == [0, 1, 1, 2, 2, 3, 9, 10]


# ---------------------------------------------------------------------- over 1,000 waiting jobs, against the reference

SHAPES = ("blocked", "at once", "waves", "stream")
"""How the jobs come: while one job fills the machine, all in one instant, in a few instants, one after the other."""
ESTIMATES = ("exact", "factor", "round", "short", "planned")
"""What is requested and planned: the runtime; up to four times as much; a round number; too little at times; and something
else planned than requested."""
ROUND = np.array([60, 300, 900, 3600, 7200, 14_400, 64_800])


def crush(seed: int, grain: int = 1, early: float = 1.0) -> wt.Workload:
    """Some 1,100 jobs that come much faster than a machine can run them, and a few more while the queue drains.

    Shape and estimates go round with the seed. All times are multiples of `grain` seconds; of the jobs whose estimate is not
    their runtime, `early` is the share that keeps it.
    """
    random = np.random.Generator(np.random.Philox([seed, 1]))
    shape, estimates = SHAPES[seed % 4], ESTIMATES[seed // 4 % 5]
    machine = int(random.choice([1, 5, 5, 16, 16, 100, 100, 1024, 1024]))
    first, later = int(random.integers(1060, 1130)), int(random.integers(0, 70))
    jobs = first + later
    window = int(random.choice([40, 400, 4000]))

    runtime = np.minimum(1 + random.exponential(window * random.choice([1, 4]), jobs), 64_000).astype(np.int64)
    runtime[random.random(jobs) < random.choice([0.0, 0.05])] = 0
    widest = max(1, machine // int(random.choice([1, 2, 8])))
    procs = random.integers(int(random.choice([1, (widest + 1) // 2])), widest + 1, jobs)
    powers = random.random(jobs) < 0.5
    procs[powers] = 2 ** np.log2(procs[powers]).astype(np.int64)

    match shape:
        case "at once":
            submit = np.zeros(first, np.int64)
        case "waves":
            submit = np.sort(random.choice(random.integers(0, 20, 4), first))
        case "stream":
            submit = np.arange(first) * int(random.choice([1, 2])) // int(random.choice([1, 8, 40]))
            runtime[:first] += submit[-1]
        case "blocked":
            submit = np.sort(random.integers(0, window, first))
            submit[0], runtime[0], procs[0] = 0, window + 1, machine
    drain = int((runtime * procs).sum() / machine)
    submit = np.concatenate([submit, np.sort(random.integers(submit[-1], submit[-1] + drain, later))])

    exact = np.maximum(runtime, 1)
    match estimates:
        case "exact":
            requested = exact
        case "factor":
            requested = (exact * random.uniform(1, 4, jobs)).astype(np.int64)
        case "round" | "planned":
            requested = ROUND[np.minimum(np.searchsorted(ROUND, exact), len(ROUND) - 1)]
        case "short":
            requested = (exact * random.uniform(0.7, 2, jobs)).astype(np.int64)
    keeps = random.random(jobs) < early
    requested = np.where(keeps, requested, exact)
    planned = np.where(keeps, requested * random.uniform(0.3, 1.5, jobs), exact) if estimates == "planned" else requested
    submit, runtime = (-(-column // grain) * grain for column in (submit, runtime))
    requested, planned = (np.maximum(grain, -(-column.astype(np.int64) // grain) * grain) for column in (requested, planned))
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, planned=planned, procs=procs, machine_procs=machine)


def assert_engines_agree(jobs: wt.Workload, policy: wt.policy.Policy, coincident: str, overrun: str) -> None:
    kernel, reference = (wt.simulate(jobs, policy, coincident=coincident, overrun=overrun, engine=e) for e in ("kernel", "reference"))
    assert longest_queue(reference) > 1000
    for name in ("start", "kind", "reserved_start"):
        fast, slow = getattr(kernel, name), getattr(reference, name)
        assert np.array_equal(fast, slow), f"{name} of job {np.flatnonzero(fast != slow)[0] + 1}"


@pytest.mark.parametrize("seed", seeds(40))
def test_easy__with_over_a_thousand_waiting_jobs_equals_the_reference(seed):
    assert_engines_agree(crush(seed), wt.Easy(), COINCIDENT[seed // 20 % 2], OVERRUN[seed % 3])


@pytest.mark.parametrize("seed", seeds(20))
def test_fcfs__with_over_a_thousand_waiting_jobs_equals_the_reference(seed):
    assert_engines_agree(crush(seed), wt.NoBackfilling(), COINCIDENT[seed // 4 % 2], OVERRUN[seed % 3])


@pytest.mark.parametrize("seed", [3 * seed for seed in seeds(8)])  # eight have all shapes and all estimates
def test_conservative__with_over_a_thousand_waiting_jobs_equals_the_reference(seed):
    # The reference compresses a thousand jobs at every early end, so these are few, or the profile has few steps.
    grain, early = ((1, 0.02), (600, 0.1))[seed % 2]
    assert_engines_agree(crush(seed, grain, early), wt.Conservative(), COINCIDENT[seed // 4 % 2], "kill")
