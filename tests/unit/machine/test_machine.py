"""Machines as data: files, and what placing does to jobs, worked by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.errors import LogError, PolicyError, WorkloadError
from walltime.machine import (
    PLACING_RULES,
    Limit,
    Machine,
    Outage,
    Partition,
    Pool,
    Qos,
    Share,
    place,
    placing_notes,
    read_machine,
    write_machine,
)
from walltime.machine.machine import parse_machine

TEXT = """
name = "two kinds"
policy = "easy:order=sjf"
[slurm]
SchedulerParameters = "bf_interval=30"
PriorityWeightAge = 1000
[[pool]]
name = "thin"
nodes = 2
procs = 4
[[pool]]
name = "fat"
nodes = 1
procs = 8
gpus = 2
[[partition]]
name = "1"
pools = ["thin"]
exclusive = true
max_time = "1:00"
[[partition]]
name = "2"
pools = ["fat", "thin"]
tier = 1
[[outage]]
pool = "thin"
nodes = 1
begin = 2001-09-09T01:50:00Z
end = 2001-09-09T02:00:00+00:00
announced = 10
[[limit]]
by = ["user", "partition"]
jobs = 2
gpus = 3
[[share]]
account = "physics"
shares = 3
[[share]]
account = "physics"
user = "ann"
[[share]]
account = "optics"
parent = "physics"
[[qos]]
name = "high"
priority = 10
"""


def jobs(**columns):
    count = len(next(iter(columns.values())))
    known = {name: np.array(columns.pop(name)) for name in list(columns) if name not in ("procs", "requested", "submit", "runtime")}
    given = {"submit": [0] * count, "runtime": [10] * count, "procs": [1] * count} | columns
    origin = wt.workloads.Origin("log", unix_start_time=10**9)
    return wt.Workload.from_arrays(machine_procs=99, columns=known, origin=origin, **given)


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(TEXT)
    return read_machine(path)


def test_file__read_and_written(machine, tmp_path):
    assert machine.pools == (Pool("thin", 2, 4), Pool("fat", 1, 8, 2))
    assert machine.partitions == (Partition("1", ("thin",), True, 0, 60), Partition("2", ("fat", "thin"), False, 1))
    assert machine.limits == (Limit(("user", "partition"), None, 2, None, 3),)
    assert (machine.procs, machine.second_total, machine.second) == (16, 2, "gpus")
    assert (machine.policy, machine.slurm) == ("easy:order=sjf", {"SchedulerParameters": "bf_interval=30", "PriorityWeightAge": "1000"})
    assert machine.shares == (Share("physics", shares=3), Share("physics", "ann", None), Share("optics", None, "physics"))
    assert machine.qos == (Qos("high", 10),)
    (tmp_path / "again.toml").write_text(write_machine(machine))
    assert read_machine(tmp_path / "again.toml") == machine


def test_place__counts_what_it_drops_and_changes(machine):
    workload = jobs(
        partition=[1, 1, 2, 3, -1, 2],
        procs=[3, 9, 16, 1, 4, 1],
        gpus=[0, 0, 2, 0, 0, 3],
        requested=[90, 10, 90, 10, 10, 10],
        user=[1, 1, 2, 2, 1, 1],
    )
    placed, placement = place(workload, machine)
    assert placed.job_id.tolist() == [1, 3, 5]
    assert dict(placed.origin.dropped) == {"unknown_partition": 1, "too_wide_for_partition": 1, "too_many_gpus": 1}
    changed = {"first_partition": 1, "whole_nodes": 1, "over_partition_limit": 1}
    assert dict(placed.origin.changed) == dict(place(placed, machine)[0].origin.changed) == changed
    assert set(placed.origin.dropped) | set(placed.origin.changed) <= set(PLACING_RULES)
    assert placed.procs.tolist() == [4, 16, 4]
    assert placed.requested.tolist() == placed.planned.tolist() == [60, 90, 10]
    assert placement.partition.tolist() == [0, 1, 0]
    assert placement.second.tolist() == [0, 2, 0]
    assert [[placement.limits[k] for k in own] for own in placement.limits_of] == [[(2, 2**63 - 1, 3)]] * 3
    assert placement.limits_of[0] == placement.limits_of[2] != placement.limits_of[1]
    assert placement.outages == [(0, 4, 0, 1000_000_200 - 10**9, 1000_000_800 - 10**9, 10)]
    assert placed.machine_procs == 16


def test_place__a_resource_that_no_pool_has_is_not_limited():
    workload = jobs(procs=[4, 4, 4], gpus=[8, 0, 2], runtime=[10, 20, 30])
    placed, placement = place(workload, Machine.one_pool(4))
    assert placement.second.tolist() == [0, 0, 0]
    assert (placed.origin.drops, placed.origin.changed["not_limited"]) == ((), 2)
    for policy in ("easy", "slurm"):
        schedule = wt.simulate(workload, policy, machine=Machine.one_pool(4))
        assert schedule.start.tolist() == [0, 10, 30]
    assert any("GPUs" in one and "67 %" in one for one in placing_notes(placed, Machine.one_pool(4)))


def test_place__a_limit_counts_a_resource_that_no_pool_has():
    workload = jobs(procs=[1, 1, 1], gpus=[2, 2, 1], user=[1, 1, 1])
    machine = replace(Machine.one_pool(4), limits=(Limit(("user",), second=3),))
    assert wt.simulate(workload, "easy", machine=machine).start.tolist() == [0, 10, 0]
    placed, placement = place(jobs(gpus=[8], user=[1]), machine)
    assert placed.origin.changed == {"over_limit": 1}
    assert [list(own) for own in placement.limits_of] == [[]]
    assert "1 (100 %)" in placing_notes(placed, machine)[0]


def test_place__drops_carry_their_work(machine):
    placed, _ = place(jobs(partition=[1, 1, 3], procs=[4, 9, 1], runtime=[10, 10, 50]), machine)
    wide, unknown = sorted(placed.origin.drops, key=lambda drop: drop.rule)
    assert (wide.jobs, wide.work, wide.of_jobs, wide.of_work) == (1, 90, 3, 180)
    assert (unknown.rule, unknown.work, unknown.reason) == ("unknown_partition", 50, PLACING_RULES["unknown_partition"][1])


def test_place__names_of_partitions_that_the_log_has():
    pools = (Pool("a", 1, 4), Pool("b", 1, 4))
    machine = Machine(pools, (Partition("short", ("a",)), Partition("long", ("b",))))
    with raises(WorkloadError, "no_job_fits", "2"):
        place(jobs(partition=[1, 2]), machine)


def test_dependencies__of_the_success_of_others():
    machine = Machine((Pool("all", 1, 4),), (Partition("all", ("all",)),))
    workload = jobs(status=[0, 1, 1, 1, 1], depends_on_success=[-1, 1, 2, -1, 77], depends_on=[-1, -1, -1, 1, 88])
    placed, placement = place(workload, machine)
    assert placed.job_id.tolist() == [1, 4], "job 2 wants the success of job 1, which failed, job 3 that of job 2, job 5 that of nobody"
    assert dict(placed.origin.dropped) == {"depends_on_failed": 3}
    assert placement.after == [[], [0]]


def test_singletons_and_arrays():
    machine = Machine((Pool("all", 1, 4),), (Partition("all", ("all",)),))
    workload = jobs(
        user=[1, 1, 1, 2, 1], executable=[5, 5, 5, 5, 5], singleton=[0, 0, 1, 1, 1], array_job=[7, 7, 7, -1, -1], array_limit=[2] * 5
    )
    _, placement = place(workload, machine)
    assert placement.after == [[], [], [0, 1], [], [2]]
    assert placement.limits_of == [[0], [0], [0], [], []]
    assert placement.limits == [(2, 2**63 - 1, 2**63 - 1)]
    schedule = wt.simulate(workload, "easy", machine=machine)
    assert schedule.start.tolist() == [0, 0, 10, 0, 20]
    assert schedule.submit.tolist() == [0, 0, 10, 0, 20], "who waits for others waits for processors from then on"


def test_limits_and_partitions_of_a_time__go_by_when_jobs_are_submitted():
    pools = (Pool("a", 1, 4), Pool("b", 1, 4))
    partitions = (Partition("new", ("b",), widest=1, since=10, until=20), Partition("all", ("a", "b")))
    limits = (Limit(("user",), jobs=1, until=10), Limit((), jobs=3, since=20))
    workload = jobs(submit=[0, 9, 10, 19, 20], procs=[1, 1, 1, 2, 1], user=[1, 2, 1, 2, 1])
    placement = place(workload, Machine(pools, partitions, limits=limits))[1]
    assert placement.partition.tolist() == [1, 1, 0, 1, 1]
    assert placement.limits_of == [[0], [1], [], [], [2]]


@pytest.mark.parametrize("limit", [Limit((), procs=1), Limit((), second=1), Limit((), jobs=0)])
def test_limit__does_not_apply_to_a_job_that_exceeds_it_alone(limit):
    machine = Machine((Pool("a", 2, 2, 2),), (Partition("1", ("a",)),), limits=(limit, Limit((), procs=3)))
    placed, placement = place(jobs(procs=[2], gpus=[2]), machine)
    assert placement.limits_of == [[1]]
    assert placed.origin.changed["over_limit"] == 1


def test_limit__counts_jobs_rounded_up_to_whole_nodes():
    machine = Machine((Pool("a", 2, 4),), (Partition("1", ("a",)),), limits=(Limit((), procs=3), Limit((), jobs=1)))
    workload = jobs(submit=[0, 1], procs=[1, 1], exclusive=[1, 0])
    schedule = wt.simulate(workload, "slurm", machine=machine)
    assert (schedule.start[1] - schedule.end[0] >= 0, schedule.workload.origin.changed["over_limit"]) == (True, 1)
    assert schedule.audit().ok


def test_place__jobs_that_got_whole_nodes_get_them_again():
    machine = Machine((Pool("a", 4, 4), Pool("b", 1, 8)), (Partition("1", ("a",)), Partition("2", ("a", "b"))))
    got, requested, nodes = [8, 4, 4, 6, 8, 4], [2, 4, 3, 2, 1, -1], [2, 1, 1, 2, 1, 1]
    columns = {"allocated_procs": got, "requested_procs": requested, "nodes": nodes, "exclusive": [-1] * 6}
    placed, _ = place(jobs(procs=got, partition=[1, 1, 1, 1, 2, 1], **columns), machine)
    assert placed.columns["exclusive"].tolist() == [1, -1, 1, -1, 1, -1]
    assert placed.origin.changed["got_whole_nodes"] == 3


def test_limit__holds_for_jobs_with_values_of_several_columns():
    partitions = tuple(Partition(name, ("a",)) for name in ("x", "y", "z"))
    among = {"queue": ("2", "3"), "partition": ("x", "z")}
    machine = Machine((Pool("a", 1, 8),), partitions, limits=(Limit((), jobs=1, among=among), Limit(("user",), procs=4, only=("1",))))
    workload = jobs(submit=[0] * 4, queue=[2, 2, 3, 1], user=[1, 2, 1, 2], partition=[1, 2, 3, 1])
    workload = replace(workload, origin=replace(workload.origin, names={"partition": ("x", "y", "z")}))
    assert place(workload, machine)[1].limits_of == [[0, 1], [], [0, 1], []]
    assert parse_machine(write_machine(machine), "copy") == machine
    for engine in ("kernel", "reference"):
        assert wt.simulate(workload, "easy", machine=machine, engine=engine).start.tolist() == [0, 0, 10, 0]
    with raises(WorkloadError, "unknown_partition", "'w'"):
        Machine((Pool("a", 1, 8),), partitions, limits=(Limit((), jobs=1, among={"partition": ("w",)}),))


def test_limit_of_a_time__holds_in_both_engines_and_is_audited():
    machine = Machine((Pool("all", 1, 4),), (Partition("all", ("all",)),), limits=(Limit(("user",), jobs=1, since=5),))
    workload = jobs(submit=[0, 0, 5, 6], runtime=[50, 50, 50, 50], user=[1, 1, 1, 1])
    for engine in ("kernel", "reference"):
        schedule = wt.simulate(workload, "easy", machine=machine, engine=engine)
        assert schedule.start.tolist() == [0, 0, 5, 55], "those of before do not count"
        assert schedule.audit().ok


def test_limits_and_jobs_that_run_at_first():
    machine = Machine((Pool("all", 1, 4),), (Partition("all", ("all",)),), limits=(Limit(("user",), jobs=1),))
    workload = jobs(user=[1, 1, 2], running_since=[-5, -1, -1], procs=[2, 1, 1])
    schedule = wt.simulate(workload, "easy", machine=machine)
    assert schedule.start.tolist() == [-5, 5, 0]
    assert schedule.audit().ok
    with raises(WorkloadError, "overfull_machine", "2"):
        wt.simulate(jobs(running_since=[-5, -4], procs=[2, 2]), "easy", machine=Machine((Pool("a", 1, 3),), (Partition("1", ("a",)),)))


@pytest.mark.parametrize(
    "change",
    [
        ("nodes = 2", "nodes = 0"),
        ("procs = 4", "procs = 4.5"),
        ('name = "fat"', 'name = "thin"'),
        ('pools = ["thin"]', 'pools = ["thick"]'),
        ('pools = ["thin"]', 'pools = ["thin", "fat"]'),
        ("max_time", "maxtime"),
        ('"1:00"', '"soon"'),
        ("announced = 10", "announced = true"),
        ('by = ["user", "partition"]', 'by = "wall"'),
        ("jobs = 2\ngpus = 3", ""),
        ('name = "two kinds"', 'machine = "x"'),
        ("[[pool]]", "[pool"),
        ("nodes = 2\n", ""),
        ("[[partition]]", "[[partitions]]"),
    ],
)
def test_file__what_is_wrong_in_one_line(golden, tmp_path, change):
    path = tmp_path / "machine.toml"
    path.write_text(TEXT.replace(*change, 1))
    with pytest.raises(LogError) as error:
        read_machine(path)
    assert str(error.value).startswith(f"{path}: ")
    golden("simulate", str(error.value))
    assert "\n" not in str(error.value)


def test_outage__needs_a_calendar_and_an_order():
    pools, partitions = (Pool("a", 2, 2),), (Partition("1", ("a",)),)
    for outage in (Outage("a", 5, 5), Outage("a", 5, 9, 3)):
        with raises(WorkloadError, "wrong_outage", "'a'"):
            place(jobs(procs=[1]), Machine(pools, partitions, (outage,)))


@pytest.mark.parametrize(
    ("policy", "options", "what"),
    [
        ("easy:order=wfp,extra=literal", {}, ("unsupported_policy", "order=wfp", "extra=literal")),
        ("conservative:compression=always", {}, ("unsupported_policy", "compression=always")),
        ("easy", {"dynamics": True}, ("unsupported_policy", "effects")),
        ("easy", {"coincident": "sequential"}, ("unsupported_policy", "easy", "interpretations")),
    ],
)
def test_simulate__says_what_it_does_not_support(machine, policy, options, what):
    with raises(PolicyError, *what):
        wt.simulate(jobs(partition=[1, 2], user=[1, 1]), policy, machine=machine, **options)


def test_fairness__says_that_it_cannot(machine):
    schedule = wt.simulate(jobs(partition=[1, 2]), "easy", machine=machine)
    with raises(PolicyError, "unsupported_machine"):
        wt.simulation.fairness(schedule)


def test_command(golden, capsys, tmp_path, machine):
    log, cluster, out = tmp_path / "log.swf", tmp_path / "machine.toml", tmp_path / "s.csv"
    rows = [f"{k} {k} -1 10 {1 + k % 4} -1 -1 -1 20 -1 1 {k % 3} -1 -1 -1 {1 + k % 2} -1 -1" for k in range(1, 40)]
    log.write_text("\n".join(["; UnixStartTime: 1000000000", *rows]) + "\n")
    status, printed, _ = call(capsys, "simulate", log, "--machine", cluster, "--out", out)
    assert status == 0
    assert "39 jobs, 16 processors" in printed
    status, printed, _ = call(capsys, "audit", log, out, "--machine", cluster)
    assert status == 0
    assert "none of 15 rules is broken" in printed
    status, printed, _ = call(capsys, "compare", log, "--machine", cluster, "--policy", "easy", "--policy", "fcfs", "--no-spread")
    assert status == 0
    assert "FCFS" in printed
    golden("simulate", one_line(*call(capsys, "simulate", log, "--machine", tmp_path / "none.toml")))
    status, printed, _ = call(capsys, "simulate", log, "--machine", cluster, "--shake", 5, "--replications", 2, "--json")
    assert status == 0
    seeds = [wt.simulate(wt.workloads.shake(wt.read(log, procs=16), 5, seed), "easy", machine=machine) for seed in range(2)]
    means = [schedule.summary().mean_wait for schedule in seeds]
    assert json.loads(printed)["replications"][0]["mean_wait"]["mean"] == pytest.approx(np.mean(means))
