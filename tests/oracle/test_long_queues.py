"""Queues so long that the kernel searches them by an index: the schedules stay the same."""

import numpy as np
import pytest

import walltime as wt
from walltime.engine.index import LONG, SHORT
from walltime.engine.sizes import size_class


@wt.order
def all_the_same(procs):
    """Equal scores leave the order of arrival, but an order of one's own is searched place by place."""
    return procs * 0.0


def overloaded(seed: int, jobs: int) -> wt.Workload:
    """Far more work than the machine can do, so that the queue grows over the index's threshold and drains at the end."""
    random = np.random.Generator(np.random.Philox(seed))
    machine = int(random.choice([1, 7, 64, 1000]))
    runtime = random.integers(0, int(random.choice([5, 500, 5000])), jobs)
    believed = np.maximum(1, runtime * random.uniform(0.9, 3.0, jobs)).astype(np.int64)
    return wt.Workload.from_arrays(
        submit=np.sort(random.integers(0, int(jobs * random.choice([0.01, 1.0, 10.0])), jobs)),
        runtime=runtime,
        requested=np.maximum(runtime, 1),
        believed=believed,
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
    for name in ("start", "kind", "promised"):
        assert getattr(kernel, name).tolist() == getattr(reference, name).tolist(), name


def test_overloaded_workloads__do_cross_the_thresholds_of_the_index():
    longest = [longest_queue(wt.simulate(overloaded(seed, 3000), wt.Easy())) for seed in range(12)]
    assert sum(length > 2 * LONG for length in longest) >= 6
    assert SHORT < LONG


def test_size_class__begins_with_a_power_of_two():
    assert [size_class(procs) for procs in (1, 2, 3, 4, 7, 8, 1023, 1024)] == [0, 1, 1, 2, 2, 3, 9, 10]
