"""Recorded and simulated waits: what a perfect log gives, what is missing in others, and files of calibrations."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.sites import MACHINE, ONE_POOL, jobs_of, recorded_as
from walltime.errors import LogError, PolicyError, WorkloadError
from walltime.machine import Machine, Partition, Pool
from walltime.whatif import calibrate, machine_digest, read_calibration, stretch
from walltime.whatif.wait_causes import pool_groups


@pytest.fixture(scope="module")
def jobs():
    return recorded_as(jobs_of(MACHINE, jobs=3000), MACHINE, "easy")


def test_calibration__of_the_very_policy_is_exact(jobs):
    found = wt.calibrate(jobs, MACHINE)
    assert found.policy == "easy"
    assert found.overall.bias == 0
    assert found.overall.within == (1, 1, 1)
    assert found.overall.rank_correlation == pytest.approx(1)
    assert found.utilization[0].recorded == pytest.approx(found.utilization[0].simulated)
    assert {row.by for row in found.rows} == {"all jobs", "class", "user", "size", "partition", "queue"}
    assert found.evidence.hints == []


def test_calibration__counts_a_constant_bias(golden, jobs):
    late = replace(jobs, columns=dict(jobs.columns) | {"wait": jobs.columns["wait"] + 500})
    found = calibrate(late, MACHINE)
    assert found.overall.bias == -500
    assert found.overall.threshold == pytest.approx(500)
    assert found.overall.within == (0, 1, 1)
    assert not found.overall.doubt
    assert [found.trusts("all jobs", "all jobs", off) for off in (501, -501, 499, -499)] == [True, True, False, False]
    assert not found.trusts("class", "no such class", 1e9)
    golden("calibrate", found.verdict)


def test_calibration__under_another_policy_is_off_and_says_how_far(jobs):
    found = calibrate(jobs, MACHINE, "fcfs")
    assert found.policy == "fcfs"
    assert found.overall.bias > 0
    assert np.isnan(found.overall.low), "an interval under sampling of weeks needs 20 weeks"
    assert found.overall.bias <= found.overall.threshold


def test_calibration__finds_who_waited_while_the_machine_was_free():
    empty = wt.Workload.from_arrays(
        submit=[0, 10_000], runtime=[100, 100], procs=[8, 8], machine_procs=128, columns={"wait": np.array([0, 3600])}
    )
    rows = calibrate(empty, ONE_POOL, trim="none").evidence.rows
    assert [(row.jobs, row.recorded_hours, row.simulated_hours) for row in rows] == [(1, 1, 0), (1, 1, 0)]


def test_calibration__reads_what_the_log_says_of_reasons(golden):
    names = {"reason": ("AssocGrpCpuLimit", "Priority", "Dependency", "QOSMaxJobsPerUserLimit", "New\x1bReason"), "reservation": ("maint",)}
    columns = {
        "wait": np.array([100, 200, 300, 400, 500, -1]),
        "reason": np.array([1, 2, 3, 4, 5, -1]),
        "held": np.array([0, 60, 0, 0, 0, 0]),
        "reservation": np.array([-1, -1, -1, -1, 1, -1]),
        "sched_backfill": np.array([0, 1, 1, 1, -1, -1]),
    }
    six = wt.Workload.from_arrays(
        submit=[0, 1, 2, 3, 4, 5],
        runtime=[9] * 6,
        procs=[1] * 6,
        machine_procs=128,
        columns=columns,
        origin=wt.workload.Origin(names=names),
    )
    found = calibrate(six, ONE_POOL, trim="none").evidence
    said = {row.what: row.jobs for row in found.rows}
    assert said["waited last for a limit of the user, account or QOS"] == 2
    assert said["waited last for another job"] == 1
    assert said["waited last for New\\x1bReason"] == 1
    assert said["ran in a reservation"] == 1
    assert not any("its turn" in what for what in said)
    assert [count for what, count in said.items() if what.startswith("could not start at first")] == [1]
    assert (found.backfilled_recorded, found.backfilled_simulated) == (75, 0)
    golden("calibrate", list(found.hints))


def test_calibration__hints_that_the_machine_is_larger_or_smaller_than_its_file(jobs):
    small = replace(
        MACHINE, pools=(Pool("thin", 12, 8), Pool("fat", 2, 16)), partitions=(Partition("main", ("thin",)), Partition("big", ("fat",)))
    )
    narrow = jobs.take(jobs.procs <= 32, "")
    assert any("too few processors" in hint for hint in calibrate(narrow, small).evidence.hints)
    large = replace(MACHINE, pools=(Pool("thin", 120, 8), Pool("fat", 2, 16)))
    assert any("too many" in hint for hint in calibrate(jobs, large).evidence.hints)


def test_calibration__is_a_file_and_is_of_one_log_machine_and_policy(jobs, tmp_path):
    found = calibrate(jobs, MACHINE)
    read = read_calibration(found.write(tmp_path / "calibration.json"))
    assert read.as_dict() == found.as_dict()
    assert read.table().equals(found.table())
    read.check(jobs, MACHINE, "easy")
    for log, machine, policy, what in (
        (jobs.take(slice(0, 500), ""), MACHINE, "easy", "log"),
        (jobs, ONE_POOL, "easy", "machine"),
        (jobs, MACHINE, "fcfs", "policy"),
    ):
        with raises(WorkloadError, "other_calibration", what):
            read.check(log, machine, policy)
    assert machine_digest(MACHINE) != machine_digest(ONE_POOL)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"log": 1}'])
def test_calibration__another_file_is_refused(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with raises(LogError, "not_a_calibration"):
        read_calibration(path)
    with raises(LogError, "unreadable_file"):
        read_calibration(tmp_path / "missing.json")


def test_calibration__needs_waits_a_policy_and_jobs(jobs):
    waits = {name: column for name, column in jobs.columns.items() if name != "wait"}
    with raises(WorkloadError, "missing_waits"):
        calibrate(replace(jobs, columns=waits), MACHINE)
    with raises(PolicyError, "missing_policy"):
        calibrate(jobs, replace(MACHINE, policy=None))
    with raises(WorkloadError, "no_measured_jobs"):
        calibrate(replace(jobs, columns=dict(jobs.columns) | {"wait": np.arange(len(jobs)) - len(jobs) + 2}), MACHINE)


def test_stretch__begins_with_the_jobs_of_that_time():
    jobs = recorded_as(jobs_of(ONE_POOL, load=1.1), ONE_POOL, "easy")
    half = int(jobs.submit[len(jobs) // 2])
    part = stretch(jobs, ONE_POOL, half, 2**40)
    carried = part.columns["carried_over"] == 1
    assert carried.any()
    assert (part.columns["running_since"][~carried] == -1).all()
    whole = wt.simulate(jobs, "easy", machine=ONE_POOL)
    again = wt.simulate(part, "easy", machine=ONE_POOL)
    place = np.searchsorted(jobs.job_id, again.workload.job_id)
    assert np.array_equal(jobs.job_id[place], again.workload.job_id)
    assert np.array_equal(again.start, whole.start[place]), "EASY has no memory, so it goes on as it did"
    found = calibrate(part, ONE_POOL, trim="none")
    assert found.overall.jobs == int((~carried).sum())
    assert found.overall.bias == 0


def test_stretch__of_several_pools_finds_room_for_those_that_run(jobs):
    half = int(jobs.submit[len(jobs) // 2])
    part = stretch(jobs, MACHINE, half, 2**40)
    assert len(wt.simulate(part, "easy", machine=MACHINE)) == len(part)
    small = replace(MACHINE, pools=(Pool("thin", 2, 8), Pool("fat", 1, 16)))
    assert len(wt.simulate(stretch(jobs, small, half, 2**40), "easy", machine=small))


def test_stretch__of_the_beginning_is_a_part_and_of_nothing_is_refused(jobs):
    assert "carried_over" not in stretch(jobs, MACHINE, 0, 100_000).columns
    with raises(PolicyError, "empty_window"):
        stretch(jobs, MACHINE, 2**40, 2**41)


@given(st.data())
def test_least_free__is_that_of_every_second(data):
    count = data.draw(st.integers(1, 12))
    draw = st.lists(st.integers(0, 30), min_size=count, max_size=count)
    start, length, procs = (np.array(data.draw(draw)) for _ in range(3))
    procs, length = procs % 4 + 1, length % 9
    machine = Machine((Pool("a", 10, 1),), (Partition("m", ("a",)),))
    (island,) = pool_groups(machine, np.zeros(count, np.int64), procs, start, start + length)
    begin = np.array(data.draw(draw))
    end = begin + np.array(data.draw(draw)) + 1
    busy = np.array([procs[(start <= t) & (t < start + length)].sum() for t in range(100)])
    wanted = [10 - busy[a:b].max() for a, b in zip(begin, end, strict=True)]
    assert island.least_free(begin, end).tolist() == wanted


def test_islands__are_what_no_partition_crosses():
    pools = tuple(Pool(name, 1, 4) for name in "abcd")
    machine = Machine(pools, (Partition("x", ("a", "b")), Partition("y", ("b", "c")), Partition("z", ("d",))))
    one = np.array([0, 1, 2])
    found = pool_groups(machine, one, one + 1, one * 0, one * 0 + 5)
    assert [(island.pools, island.procs, island.jobs.tolist()) for island in found] == [(("a", "b", "c"), 12, [0, 1]), (("d",), 4, [2])]


def test_calibration__json_has_no_undefined_numbers(jobs):
    text = json.dumps(calibrate(jobs.take(slice(0, 300), ""), MACHINE).as_dict(), allow_nan=False)
    assert "verdict" in json.loads(text)
