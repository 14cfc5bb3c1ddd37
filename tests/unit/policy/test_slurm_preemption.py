"""Preemption and failures of nodes under Slurm's scheduling, worked by hand: which jobs end early, when, and what becomes of them."""

from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.machine import Failure, Machine, Outage, Partition, Pool, Qos, Reservation
from walltime.schedule import read_schedule
from walltime.workload import Workload

POOL = (Pool("all", 4, 4),)


def two_tiers(mode="requeue", **options) -> Machine:
    """Partitions 1, of jobs that may be preempted, and 2, of a higher tier, on the same nodes."""
    return Machine(POOL, (Partition("1", ("all",), preempt=mode, **options), Partition("2", ("all",), tier=1)))


def run(machine: Machine, rows, policy="slurm", **columns) -> wt.Schedule:
    """The audited schedule of jobs (submit, runtime, procs, partition), the same in both engines."""
    submit, runtime, procs, partition = map(list, zip(*rows, strict=True))
    columns = {"partition": partition, **columns}
    jobs = Workload.from_arrays(
        submit=submit, runtime=runtime, requested=[max(one, 1) for one in runtime], procs=procs, machine_procs=machine.procs,
        columns={name: np.array(values) for name, values in columns.items()},
    )  # fmt: skip
    kernel, reference = (wt.simulate(jobs, policy, machine=machine, engine=engine) for engine in ("kernel", "reference"))
    for name in ("start", "end", "kind", "reserved_start"):
        np.testing.assert_array_equal(getattr(kernel, name), getattr(reference, name), err_msg=name)
    assert kernel.audit().ok, kernel.audit()
    return kernel


def lost(schedule: wt.Schedule) -> list[tuple[int, ...]]:
    """The job, start and end of each preempted run."""
    return list(zip(*(values.tolist() for values in schedule.lost[:3]), strict=True))


def test_preemption__a_requeued_job_is_eligible_after_121_s_and_keeps_its_place():
    """Job 1 preempts job 0 at 100 s. Job 0 ends a second later, and starts again when it is eligible, before job 2, which came later."""
    found = run(two_tiers(), [(0, 1000, 16, 1), (100, 60, 16, 2), (110, 50, 16, 1)], policy="slurm:priority_type=basic")
    assert lost(found) == [(0, 0, 101)]
    assert found.start.tolist() == [222, 101, 161]
    later = run(two_tiers(), [(0, 1000, 16, 1), (100, 130, 16, 2), (110, 50, 16, 1)], policy="slurm:priority_type=basic")
    assert later.start.tolist() == [231, 101, 1231]
    assert later.end.tolist() == [1231, 231, 1281]


def test_preemption__a_cancelled_job_ends():
    found = run(two_tiers("cancel"), [(0, 1000, 16, 1), (100, 60, 16, 2)])
    assert (found.start.tolist(), found.end.tolist()) == ([0, 101], [101, 161])
    assert found.columns()["interrupted"].tolist() == [1, 0]
    assert found.interruptions() == {"preemption": {"jobs": 1, "runs": 1, "lost_procseconds": 16 * 101}}


@pytest.mark.parametrize(("mode", "tier"), [("off", 0), ("requeue", 1), ("requeue", 2)])
def test_preemption__neither_off_nor_of_a_tier_that_is_not_higher(mode, tier):
    found = run(two_tiers(mode, tier=tier), [(0, 1000, 16, 1), (100, 60, 16, 2)])
    assert found.start.tolist() == [0, 1000]


def test_preemption__grace_time():
    """Job 0 runs on for 30 s, and job 1 starts then; job 2 ends by itself in that time, and loses nothing."""
    found = run(two_tiers(grace=30), [(0, 1000, 8, 1), (0, 120, 8, 1), (100, 60, 16, 2)])
    assert lost(found) == [(0, 0, 130)]
    assert found.start.tolist() == [251, 0, 130]


def test_preemption__jobs_are_exempt_for_a_time():
    found = run(two_tiers(), [(0, 1000, 16, 1), (100, 60, 16, 2)], policy="slurm:preempt_exempt_time=00:05:00")
    assert lost(found) == [(0, 0, 301)]
    assert found.start.tolist()[1] == 301


def test_preemption__the_fewest_nodes_first_or_the_youngest():
    """Job 0 has two nodes, jobs 1 and 2 one each: job 3 needs one node, and gets that of job 1, or of job 2, the youngest."""
    rows = [(0, 1000, 8, 1), (10, 1000, 4, 1), (20, 1000, 4, 1), (100, 60, 4, 2)]
    assert lost(run(two_tiers(), rows)) == [(1, 10, 101)]
    assert lost(run(two_tiers(), rows, policy="slurm:preempt_youngest_first=yes")) == [(2, 20, 101)]


def test_preemption__the_last_victim_is_tried_first():
    """Job 3 needs two nodes in whole. Jobs 0 and 1 are tried first, but the nodes of job 2 alone are enough."""
    machine = Machine(
        (Pool("all", 4, 4),),
        (Partition("1", ("all",), preempt="requeue"), Partition("2", ("all",), tier=1), Partition("3", ("all",), tier=2)),
    )
    rows = [(0, 1000, 4, 3), (0, 1000, 4, 1), (10, 1000, 8, 1), (100, 60, 8, 2)]
    assert lost(run(machine, rows)) == [(2, 10, 101)]


def test_preemption__by_quality_of_service():
    """Jobs of `high` preempt those of `low` only."""
    qos = (Qos("1", preempt="requeue", preempts=()), Qos("2", preempt="requeue"), Qos("3", preempts=("1",)))
    machine = Machine(POOL, (Partition("1", ("all",)),), qos=qos)
    rows = [(0, 1000, 8, 1), (0, 1000, 8, 1), (100, 60, 8, 1)]
    assert lost(run(machine, rows, queue=[2, 1, 3])) == [(1, 0, 101)]
    assert lost(run(machine, rows, queue=[2, 2, 3])) == []


@pytest.mark.parametrize(("user", "runs", "starts"), [(2, [(0, 0, 101)], [222, 101]), (1, [], [0, 100])])
def test_preemption__nodes_of_one_user(user, runs, starts):
    """Three processors are free, on a node of job 0, which keeps its nodes for its user alone."""
    found = run(two_tiers(), [(0, 1000, 13, 1), (100, 60, 3, 2)], exclusive=[2, -1], user=[1, user])
    assert lost(found) == runs
    assert found.start.tolist() == starts


@pytest.mark.parametrize(("partition", "runs", "starts"), [(2, [(0, 0, 101)], [500, 101]), (1, [], [0, 1000])])
def test_preemption__by_a_job_in_a_reservation(partition, runs, starts):
    """Job 0 began before the reservation was known. Only a partition of a higher tier lets job 1 preempt it, not the reservation."""
    machine = replace(two_tiers(), reservations=(Reservation("1", "all", 50, 500, "3-4"),))
    found = run(machine, [(0, 1000, 16, 1), (100, 60, 8, partition)], reservation=[-1, 1])
    assert lost(found) == runs
    assert found.start.tolist() == starts


def test_preemption__a_file_has_a_row_for_each_run(tmp_path):
    found = run(two_tiers(), [(0, 1000, 16, 1), (100, 60, 16, 2)])
    rows = read_schedule(found.write(tmp_path / "schedule.csv"))
    named = [rows[name].tolist() for name in ("job_id", "start", "end", "interrupted")]
    assert list(zip(*named, strict=True)) == [(1, 0, 101, 1), (1, 222, 1222, 0), (2, 101, 161, 0)]
    assert wt.audit(found.workload, rows, found.policy, placement=found.placement).ok


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"end": [90, 1222, 161]}, "preemption"),  # job 1 ends before it is preempted
        ({"end": [101, 1222, 161], "interrupted": [1, 1, 0]}, "preemption"),  # its last run is not preempted
        ({"start": [0, 150, 101], "end": [101, 1150, 161]}, "capacity"),  # both use all processors
    ],
)
def test_preemption__the_auditor_names_runs_that_should_not_end(tmp_path, changed, rule):
    found = run(two_tiers(), [(0, 1000, 16, 1), (100, 60, 16, 2)])
    rows = read_schedule(found.write(tmp_path / "schedule.csv")) | {name: np.array(values) for name, values in changed.items()}
    assert rule in wt.audit(found.workload, rows, found.policy, placement=found.placement).counts


def test_preemption__a_run_that_goes_on_is_named():
    """Without preemption, job 1 waits for the end of job 0: Slurm would have preempted job 0."""
    machine = two_tiers()
    plain = run(replace(machine, partitions=(replace(machine.partitions[0], preempt="off"), machine.partitions[1])), ROWS)
    found = run(machine, ROWS)
    assert "preemption" in wt.audit(found.workload, plain.columns(), found.policy, placement=found.placement).counts


ROWS = [(0, 1000, 16, 1), (100, 60, 16, 2)]


def test_preemption__notes():
    found = run(two_tiers(), ROWS)
    (note,) = found.interruption_notes
    assert "1 of 2 jobs (1 run)" in note
    assert run(two_tiers("off"), ROWS).interruption_notes == []


def test_preemption__other_policies_name_it_as_not_modelled():
    found = wt.simulate(run(two_tiers(), ROWS).workload, "easy", machine=two_tiers())
    assert found.workload.origin.omissions == {"preemption": None}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"qos": (Qos("high", preempts=("lov",)), Qos("low", preempt="cancel"))}, "unknown_name"),
        ({"qos": (Qos("high", preempts=("low",)), Qos("low", preempt="cancel"))}, "two_preemptions"),
        ({"qos": (Qos("low", preempts=("low",)),)}, "preemption_loop"),
        ({"qos": (Qos("a", preempts=("b",)), Qos("b", preempts=("c",)), Qos("c", preempts=("a",)))}, "preemption_loop"),
    ],
)
def test_preemption__machines_that_contradict_themselves(options, code):
    with raises(WorkloadError, code):
        Machine(POOL, (Partition("1", ("all",), preempt="cancel"),), **options)


# ---------------------------------------------------------------------- failures of nodes


def failing(jobs: str, nodes: str = "4", **options) -> Machine:
    """One partition, 1, with an outage of some nodes from 100 s to 200 s."""
    return Machine(POOL, (Partition("1", ("all",)),), (Outage("all", 100, 200, nodes, jobs=jobs, **options),))


def test_failure__a_requeued_job_starts_again_on_other_nodes():
    """Job 0 has nodes 1 to 3, job 1 node 4, which fails at 100 s: job 1 is eligible at 221 s, and starts there as the node is back."""
    found = run(failing("requeue"), [(0, 1000, 12, 1), (0, 500, 4, 1)])
    assert lost(found) == [(1, 0, 100)]
    assert (found.start.tolist(), found.end.tolist()) == ([0, 221], [1000, 721])
    assert found.interruptions() == {"failure": {"jobs": 1, "runs": 1, "lost_procseconds": 400}}
    assert found.interruption_notes == [
        f"Under {found.title}, failures of nodes end 1 of 2 jobs (1 run); {40_000 / 14_400:.1f} % of the processor time is lost."
    ]


def test_failure__a_cancelled_job_ends_and_its_followers_start():
    found = run(failing("cancel"), [(0, 1000, 12, 1), (0, 500, 4, 1), (0, 50, 4, 1)], depends_on=[-1, -1, 2])
    assert (found.start.tolist(), found.end.tolist()) == ([0, 0, 200], [1000, 100, 250])
    assert found.columns()["interrupted"].tolist() == [0, 1, 0]


def test_failure__other_jobs_continue():
    """A job on another node, one that ends at this time by itself, and all under `continue`."""
    assert lost(run(failing("requeue", "1"), [(0, 1000, 12, 1), (0, 500, 4, 1)])) == [(0, 0, 100)]
    assert lost(run(failing("requeue"), [(0, 1000, 12, 1), (0, 100, 4, 1)])) == []
    assert run(failing("continue"), [(0, 1000, 12, 1), (0, 500, 4, 1)]).lost is None


def test_failure__a_planned_outage_is_avoided():
    """The job is too long to end before the outage of all nodes, which is known: it waits, and loses nothing."""
    found = run(Machine(POOL, (Partition("1", ("all",)),), (Outage("all", 100, 200, announced=0, jobs="requeue"),)), [(0, 150, 4, 1)])
    assert (found.start.tolist(), lost(found)) == ([200], [])


def test_failure__the_auditor_finds_a_job_that_outlives_its_node():
    found = run(failing("cancel"), [(0, 1000, 12, 1), (0, 500, 4, 1)])
    longer = {**found.columns(), "end": np.array([1000, 500]), "runtime": np.array([1000, 500]), "interrupted": np.zeros(2, np.int64)}
    assert "preemption" in wt.audit(found.workload, longer, found.policy, placement=found.placement, slots=found.slots).counts


def test_failure__other_policies_say_that_jobs_continue():
    found = run(failing("requeue"), [(0, 1000, 12, 1), (0, 500, 4, 1)], policy="easy")
    assert found.workload.origin.omissions == {"jobs that end with their nodes": None}
    assert found.end.tolist() == [1000, 500]


def outages_of(failure: Failure, last: int = 10_000_000, pools=POOL) -> list[Outage]:
    """The outages of a table of failures, of a log with submissions until `last`."""
    jobs = Workload.from_arrays(submit=[0, last], runtime=[1, 1], procs=[1, 1], machine_procs=16)
    machine = Machine(pools, (Partition("1", tuple(pool.name for pool in pools)),), failures=(failure,))
    return list(wt.machine.place(jobs, machine)[1].machine.outages)


def test_failure__random_times_have_their_means_and_end_after_four_weeks():
    found = outages_of(Failure("all", 100_000, 10_000))
    down = np.array([one.end - one.begin for one in found])
    assert len(found) == pytest.approx(4 * (10_000_000 + 28 * 86_400) / 110_000, rel=0.15)
    assert down.mean() == pytest.approx(10_000, rel=0.15)
    assert max(one.begin for one in found) < 10_000_000 + 28 * 86_400
    assert {one.nodes for one in found} == {"1", "2", "3", "4"}


def test_failure__times_depend_on_the_seed_and_not_on_other_nodes():
    base = outages_of(Failure("all", 100_000))
    assert outages_of(Failure("all", 100_000)) == base
    assert outages_of(Failure("all", 100_000, seed=2)) != base
    assert [one for one in outages_of(Failure("all", 100_000), pools=(Pool("all", 9, 4),)) if int(one.nodes) < 5] == base
    other = outages_of(Failure("b", 100_000), pools=(Pool("a", 4, 4), Pool("b", 4, 4)))
    assert [(one.begin, one.end) for one in other] != [(one.begin, one.end) for one in base]


def test_failure__tables_that_cannot_be_used_get_one_line():
    with pytest.raises(WorkloadError, match="unknown pool"):
        Machine(POOL, (Partition("1", ("all",)),), failures=(Failure("none", 100),))
    with raises(WorkloadError, "too_many_failures"):
        outages_of(Failure("all", 1, 1))
    with pytest.raises(WorkloadError, match="mtbf"):
        Failure("all", 0)
