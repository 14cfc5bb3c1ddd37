"""OAR's scheduling: its rules one by one on machines small enough to be worked by hand."""

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Limit, Machine, Outage, Partition, Pool, write_machine
from walltime.policy import Oar, parse_policy
from walltime.workload import Workload

ENGINES = ("kernel", "reference")


def single(nodes: int, procs: int = 1, **options) -> Machine:
    """Equal nodes in one partition."""
    return Machine((Pool("all", nodes, procs),), (Partition("main", ("all",)),), **options)


def run(machine: Machine, options: str, rows, **columns) -> wt.Schedule:
    """The schedule of jobs given as (submit, runtime, requested, procs), the same in both engines, and audited."""
    submit, runtime, requested, procs = map(list, zip(*rows, strict=True))
    workload = Workload.from_arrays(
        submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=machine.procs,
        columns={name: np.array(values) for name, values in columns.items()},
    )  # fmt: skip
    kernel, reference = (wt.simulate(workload, f"oar:{options}", machine=machine, engine=engine) for engine in ENGINES)
    for name in ("start", "end", "kind", "reserved_start"):
        np.testing.assert_array_equal(getattr(kernel, name), getattr(reference, name), err_msg=name)
    assert kernel.audit().ok, kernel.audit()
    return kernel


def nodes_of(schedule, job):
    return schedule.slots[1][schedule.slots[0] == job].tolist()


def test_the_same_nodes_must_be_free_all_the_time():
    """Nodes 0 and 1 are free in turns: one of them at any time, but neither for long enough."""
    jobs = [(0, 10, 10, 1), (0, 50, 50, 1), (1, 30, 30, 2), (2, 20, 20, 1)]
    found = run(single(2), "latencies=none,security-time=0", jobs)
    assert [nodes_of(found, k) for k in range(4)] == [[0], [1], [0, 1], [0]]
    assert found.start.tolist() == [0, 0, 50, 10]
    assert found.kind.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(("security_time", "planned"), [(60, [-1, 160, -1, 270]), (0, [-1, 100, -1, 150])])
def test_security_time__is_planned_beyond_each_request(security_time, planned):
    """The first job is planned to end at 160, the second for 110 s from then; at its real end, 100, the plan is made anew."""
    found = run(
        single(2), f"latencies=none,security-time={security_time}", [(0, 100, 100, 1), (1, 50, 50, 2), (2, 98, 98, 1), (3, 10, 10, 1)]
    )
    assert found.reserved_start.tolist() == planned
    assert found.start.tolist() == [0, 100, 2, 150]


@pytest.mark.parametrize(("slots", "planned"), [("2016", 50), ("2023", 70)])
def test_slots_of_2016__forget_who_ends_before_the_slot_that_is_reached(slots, planned):
    """Two jobs that end at 50 and 100 make slots up to 50, 100 and beyond; the third, which ends at 70, is taken out of the first only."""
    jobs = [(0, 50, 50, 1), (1, 99, 99, 1), (2, 68, 68, 1), (3, 10, 10, 2)]
    found = run(single(3), f"latencies=none,security-time=0,slots={slots}", jobs)
    assert found.reserved_start.tolist() == [-1, -1, -1, planned]
    assert found.start.tolist() == [0, 1, 2, 70]


def test_passes_take_time_and_jobs_start_a_second_after_the_clock():
    """A submission is noticed at most 1.05 s after its second, then come 0.32 s, and the next second: starts are 1 or 2 s later."""
    found = run(single(4), "seed=4", [(100 * k, 10, 10, 1) for k in range(60)])
    waits = (found.start - found.submit).tolist()
    assert set(waits) == {1, 2}
    assert 0.45 < np.mean(np.array(waits) == 1) < 0.8, "1 - (1.05 - 0.68) / 0.99 = 0.63 of them before the second is over"
    together = run(single(4), "seed=4", [(5, 10, 10, 1)] * 4).start
    assert together.max() > together.min(), "who is noticed while a pass runs must wait for the next"


def test_whole_nodes():
    found = run(single(4, 4), "latencies=none", [(0, 10, 10, 5), (0, 10, 10, 1), (0, 10, 10, 8)])
    assert found.workload.procs.tolist() == [8, 4, 8]
    assert [nodes_of(found, k) for k in range(3)] == [[0, 1], [2], [0, 1]]


@pytest.mark.parametrize(
    ("machine", "columns", "what"),
    [
        (single(2, limits=(Limit((), None, 1),)), {}, ("unsupported_policy", "limits")),
        (single(2, outages=(Outage("all", 5, 9, 1, None),)), {}, ("unsupported_policy", "outages")),
        (Machine((Pool("a", 1, 1), Pool("b", 1, 2)), (Partition("main", ("a", "b")),)), {}, ("mixed_nodes",)),
        (Machine((Pool("a", 1, 1),), (Partition("m", ("a",)), Partition("n", ("a",), tier=2))), {}, ("unsupported_policy", "tiers"))
    ]
)  # fmt: skip
def test_what_is_not_modelled_is_refused(machine, columns, what):
    jobs = Workload.from_arrays(submit=[0], runtime=[1], requested=[1], procs=[1], machine_procs=3, columns=columns)
    with raises((PolicyError, WorkloadError), *what):
        wt.simulate(jobs, "oar", machine=machine)


def test_predictions_are_refused():
    jobs = Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=3)
    with raises(PolicyError, "unsupported_policy"):
        wt.simulate(jobs, "oar:predictor=tsafrir07", machine=single(3))
    for engine in ENGINES:
        with raises(PolicyError, "unsupported_policy"):
            wt.simulate(jobs, "oar", engine=engine)


def test_specifications():
    assert parse_policy("oar") == Oar()
    policy = parse_policy("oar:security-time=30,slots=2023,latencies=none,seed=7")
    assert policy == Oar(security_time=30, slots="2023", latencies="none", seed=7)
    assert parse_policy(policy.label) == policy
    for wrong in ("security-time=-1", "slots=2020", "latencies=all", "seed=x", "order=sjf"):
        with pytest.raises(PolicyError):
            parse_policy(f"oar:{wrong}")


def test_from_the_command_line(golden, tmp_path, capsys):
    cluster, log, out = tmp_path / "machine.toml", tmp_path / "log.swf", tmp_path / "s.csv"
    cluster.write_text(write_machine(single(2)))
    rows = [(1, 0, 50, 1), (2, 1, 30, 2), (3, 2, 5, 1)]
    log.write_text("; MaxProcs: 2\n" + "".join(f"{k} {s} 0 {r} {p} -1 -1 {p} {r} -1 1 1 1 1 1 1 -1 -1\n" for k, s, r, p in rows))
    status, _, errors = call(capsys, "simulate", log, "--machine", cluster, "--policy", "oar", "--out", out)
    assert (status, errors) == (0, "")
    status, told, errors = call(capsys, "audit", log, out, "--machine", cluster, "--policy", "oar")
    assert status == 0, (told, errors)
    status, told, errors = call(capsys, "audit", log, out, "--machine", cluster, "--policy", "oar:seed=3")
    assert status == 1, "with another seed submissions are noticed at other moments"
    status, told, errors = call(capsys, "explain", log, "--job", 2, "--machine", cluster, "--policy", "oar")
    assert status == 0, errors
    assert "OAR" in told
    golden("simulate", one_line(*call(capsys, "simulate", log, "--policy", "oar")))
