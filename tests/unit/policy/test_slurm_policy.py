"""Slurm's scheduling: its parameters one by one on machines small enough to be worked by hand."""

from dataclasses import fields, replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.engine.reference.slurm import SlurmReference
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Limit, Machine, Outage, Partition, Pool, Qos, Share, write_machine
from walltime.node_demands import nodes_of as problem_nodes
from walltime.policy import Slurm, parse_policy
from walltime.policy.slurm import PARAMETERS
from walltime.simulation.nodes import place_on_nodes
from walltime.slurm_priorities import job_size, with_priorities
from walltime.slurm_values import seconds_of
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
    policy = "slurm:" + options if options else "slurm"
    kernel, reference = (wt.simulate(workload, policy, machine=machine, engine=engine) for engine in ENGINES)
    for name in ("start", "end", "kind", "reserved_start"):
        np.testing.assert_array_equal(getattr(kernel, name), getattr(reference, name), err_msg=name)
    assert kernel.audit().ok, kernel.audit()
    return kernel


# A has 3 of 4 nodes for 5 min and uses 50 s; B needs all; D and E ask for one processor and 30 min, E with 3 min at least; C for 2 min.
A, B, D, E, C = (0, 50, 300, 12), (10, 20, 120, 16), (20, 400, 1800, 1), (20, 900, 1800, 1), (30, 10, 120, 1)


@pytest.mark.nightly
def test_backfilling_as_it_was_seen_on_slurm():
    """C is backfilled at once, E ahead of B and D for what fits before B, and D waits until after B."""
    found = run(single(4, 4), "bf_interval=2,bf_resolution=1", [A, B, D, E, C], time_min=[-1, -1, -1, 180, -1], nodes=[3, 4, 1, 1, 1])
    assert found.start.tolist() == [0, 260, 280, 20, 30]
    assert found.kind.tolist() == [0, 1, 1, 2, 2]
    assert found.limit.tolist() == [300, 120, 1800, 240, 120], "E gets the whole minutes of the 280 s that there are before B"
    assert found.end.tolist()[3] == 20 + 240, "and is killed there"
    assert found.reserved_start.tolist() == [-1, 300, 420, -1, -1]


def test_the_nodes_that_jobs_get():
    """Best fit on consecutive nodes, and whole nodes where they are exclusive."""
    found = run(single(4, 4), "", [(0, 10, 10, 3), (0, 10, 10, 2), (0, 10, 10, 6)], nodes=[-1, -1, 3])
    job, node, procs, _ = found.slots
    assert list(zip(job.tolist(), node.tolist(), procs.tolist(), strict=True)) == [
        *[(0, 0, 3), (1, 1, 2)],
        *[(2, 0, 1), (2, 1, 2), (2, 2, 3)],
    ]
    machine = Machine((Pool("all", 4, 4),), (Partition("main", ("all",), exclusive=True),))
    found = run(machine, "", [(0, 10, 10, 3), (0, 10, 10, 2), (0, 10, 10, 6)], nodes=[-1, -1, 3])
    assert found.workload.procs.tolist() == [4, 4, 12]
    assert found.start.tolist() == [0, 0, 10]
    found = run(single(4, 4), "", [(0, 10, 10, 3), (0, 10, 10, 2)], exclusive=[1, -1])
    assert found.workload.procs.tolist() == [4, 2]
    found = run(single(4, 4), "select_type=linear", [(0, 10, 10, 3), (0, 10, 10, 2), (0, 10, 10, 6)])
    assert found.workload.procs.tolist() == [4, 4, 8]


def test_holes_of_the_right_size_are_taken_first():
    """Nodes 0, 2 and 3 become free; a job of one node takes node 0, though it is there later, and leaves the others together."""
    jobs = [(0, 10, 10, 1), (0, 90, 90, 1), (0, 5, 5, 2), (0, 99, 99, 1), (12, 20, 20, 1), (12, 20, 20, 2)]
    found = run(single(5), "", jobs)
    of = {k: found.slots[1][found.slots[0] == k].tolist() for k in range(6)}
    assert of == {0: [0], 1: [1], 2: [2, 3], 3: [4], 4: [0], 5: [2, 3]}


def nodes_of(schedule, job):
    """The nodes of a job, and what it has of each."""
    own = schedule.slots[0] == job
    return dict(zip(schedule.slots[1][own].tolist(), schedule.slots[2][own].tolist(), strict=True))


def test_placement__the_tightest_node_that_is_enough():
    """Of 8 processors each, 3 and 2 are free on nodes 0 and 1: 2 go to node 1, and then 3 to node 0; 7 take nodes in order."""
    jobs = [(0, 90, 90, 5), (1, 90, 90, 6), (2, 90, 90, 2), (3, 90, 90, 3), (4, 90, 90, 9)]
    found = run(single(4, 8), "", jobs)
    assert [nodes_of(found, k) for k in range(5)] == [{0: 5}, {1: 6}, {1: 2}, {0: 3}, {2: 8, 3: 1}]


def test_placement__a_node_with_enough_of_the_second_resource():
    """Nodes 0 and 1 have 1 and 2 GPUs: 2 GPUs are on node 1 only, although node 0 has fewer free processors."""
    machine = Machine((Pool("one", 1, 8, 1), Pool("two", 1, 8, 2)), (Partition("main", ("one", "two")),))
    found = run(machine, "", [(0, 90, 90, 5), (1, 90, 90, 2), (2, 90, 90, 1)], gpus=[-1, 2, 1])
    assert [nodes_of(found, k) for k in range(3)] == [{0: 5}, {1: 2}, {0: 1}]


def test_placement__nodes_of_a_lower_weight_come_first():
    """Nodes 0 and 1 weigh more: a small job goes to the idle node 2 and not to the busy node 0; two nodes are 2 and 0, not 0 and 1."""
    machine = Machine((Pool("heavy", 2, 4, weight=50), Pool("light", 1, 4)), (Partition("main", ("heavy", "light")),))
    found = run(machine, "", [(0, 90, 90, 4), (1, 90, 90, 3), (2, 20, 20, 1), (30, 90, 90, 1)])
    assert [nodes_of(found, k) for k in range(4)] == [{2: 4}, {0: 3}, {0: 1}, {0: 1}]
    found = run(machine, "", [(0, 10, 10, 3), (10, 90, 90, 1), (11, 90, 90, 5)])
    assert [nodes_of(found, k) for k in range(3)] == [{2: 3}, {2: 1}, {2: 3, 0: 2}]


def test_placement__the_lowest_weight_wins_over_a_run_that_suffices():
    """Node 0 alone would be enough for both jobs of 5 processors; half of node 1, which weighs less, is taken first."""
    machine = Machine((Pool("big", 1, 16, weight=2), Pool("small", 1, 2)), (Partition("main", ("big", "small")),))
    found = run(machine, "", [(0, 90, 90, 5), (1, 90, 90, 5)])
    assert [nodes_of(found, k) for k in range(2)] == [{1: 2, 0: 3}, {0: 5}]


@pytest.mark.parametrize(
    ("options", "start"), [("priority_type=basic", [0, 110, 100]), ("priority_weight_age=1000,priority_max_age=00:10:00", [0, 100, 110])]
)
def test_late_eligible_jobs__keep_their_place_and_not_their_age(options, start):
    """The third job, eligible after the second, was submitted before it."""
    found = run(
        single(1), options + ",priority_calc_period=00:00:10", [(0, 100, 100, 1), (10, 10, 10, 1), (20, 10, 10, 1)], held=[0, 0, 15]
    )
    assert found.start.tolist() == start


def test_dependent_jobs__keep_the_place_of_their_submission():
    """The second job waits for the first, and then starts before the third, which has waited since 2 s for the whole machine."""
    jobs = [(0, 10, 10, 1), (1, 10, 10, 2), (2, 10, 10, 2), (3, 30, 30, 1)]
    found = run(single(2), "priority_type=basic,bf_interval=1,bf_resolution=1", jobs, depends_on=[-1, 1, -1, -1])
    assert found.start.tolist() == [0, 10, 20, 30]


def test_requested_nodes__are_the_fewest_that_a_job_gets():
    found = run(single(4, 4), "", [(0, 10, 10, 4), (0, 10, 10, 4)], nodes=[1, 2], requested_nodes=[2, -1])
    assert [nodes_of(found, k) for k in range(2)] == [{0: 3, 1: 1}, {0: 1, 1: 3}]


def test_the_window():
    """B could start in 10 min; beyond the window it has no reservation, so C, which is long, takes its node."""
    jobs = [(0, 600, 600, 1), (1, 10, 10, 2), (2, 5000, 5000, 1)]
    assert run(single(2), "bf_window=1", jobs).start.tolist() == [0, 5030, 30]
    assert run(single(2), "", jobs).start.tolist() == [0, 600, 610]


def test_the_resolution():
    """B could start at 90 s, and is planned from 60 s until 180 s where that is the resolution: C does not fit before, nor D at 135 s."""
    jobs = [(0, 90, 90, 1), (1, 45, 45, 2), (2, 80, 80, 1), (2, 500, 500, 1)]
    assert run(single(2), "bf_interval=2,bf_resolution=1", jobs).start.tolist()[2] == 2
    coarse = run(single(2), "bf_interval=2,bf_resolution=60", jobs)
    assert coarse.start.tolist()[2] > 90
    assert run(single(2), "bf_interval=2,bf_resolution=1", jobs).reserved_start.tolist()[1:] == [90, -1, 135]
    assert coarse.reserved_start.tolist()[1:] == [90, 180, 180]


SMALL = [(0, 100, 100, 3), (1, 10, 10, 4), (2, 10, 10, 1), (3, 10, 10, 1)]
"""A has 3 of 4 nodes, B waits for all, and the others fit beside A, one after the other."""


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("", [0, 100, 30, 60]),
        ("bf_max_job_test=1", [0, 100, 110, 110]),
        ("bf_max_job_test=2", [0, 100, 30, 60]),
        ("bf_max_job_user=1", [0, 100, 110, 30]),
        ("bf_max_job_user_part=1", [0, 100, 110, 30]),
        ("bf_max_job_part=1", [0, 100, 110, 110]),
        ("scheduler_type=builtin", [0, 100, 110, 110]),
        ("bf_interval=7", [0, 100, 7, 21]),
    ],
)
def test_what_a_cycle_tries(options, start):
    """Jobs B and C are one user's."""
    assert run(single(4), f"bf_resolution=1,{options}", SMALL, user=[3, 1, 1, 2]).start.tolist() == start


def test_how_many_a_cycle_starts():
    jobs = [(0, 100, 100, 2), (1, 10, 10, 4), (2, 10, 10, 1), (3, 10, 10, 1)]
    assert run(single(4), "", jobs).start.tolist() == [0, 100, 30, 30]
    assert run(single(4), "bf_resolution=1,bf_max_job_start=1", jobs).start.tolist() == [0, 100, 30, 60]


LONG = [(0, 100, 100, 3), (1, 10, 10, 4), (2, 900, 900, 1)]
"""As above, but that C would delay B."""


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("bf_min_age_reserve=80", [0, 902, 2]),
        ("bf_min_age_reserve=1", [0, 100, 110]),
        ("priority_type=basic,bf_min_prio_reserve=4294901760", [0, 902, 2]),
        ("priority_type=basic,bf_min_prio_reserve=4294901759", [0, 100, 110]),
    ],
)
def test_who_may_hold_others_up(options, start):
    """A job that is too young, or of too low a priority, has no reservation and closes nothing; B is second to come."""
    assert run(single(4), options, LONG).start.tolist() == start


def test_how_many_reservations_a_partition_has():
    """C asks for all nodes as B does; without a reservation of its own, it is delayed by D."""
    jobs = [(0, 100, 100, 3), (1, 10, 50, 4), (2, 50, 50, 3), (3, 900, 900, 2)]
    assert run(single(4), "bf_resolution=1", jobs).start.tolist() == [0, 100, 110, 160]
    jobs = [(0, 100, 100, 3), (1, 10, 10, 4), (2, 50, 50, 4), (3, 95, 95, 1), (103, 200, 200, 1)]
    assert run(single(4), "bf_resolution=1", jobs).start.tolist()[2] == 110
    two = [Partition("1", ("a",)), Partition("2", ("a",))]
    machine = Machine((Pool("a", 4, 1),), tuple(two))
    jobs = [(0, 100, 100, 3), (1, 10, 10, 4), (2, 300, 300, 2), (3, 97, 97, 1), (4, 9, 9, 1)]
    assert run(machine, "bf_resolution=1", jobs, partition=[1] * 5).reserved_start.tolist() == [-1, 100, 110, 110, -1]
    assert run(machine, "bf_resolution=1,bf_job_part_count_reserve=1", jobs, partition=[1] * 5).reserved_start.tolist() == [
        *[-1, 100, -1, -1, -1]
    ]


def test_when_the_main_scheduler_runs():
    """At events over the first jobs of the queue, every `sched_interval` over all; with `defer` not when a job comes."""
    builtin = "scheduler_type=builtin"
    assert run(single(1), builtin, [(7, 5, 5, 1)]).start.tolist() == [7]
    assert run(single(1), builtin + ",defer=yes", [(7, 5, 5, 1)]).start.tolist() == [60]
    assert run(single(1), "defer=yes", [(7, 5, 5, 1)]).start.tolist() == [30]
    machine = Machine((Pool("a", 1, 1), Pool("b", 1, 1)), (Partition("1", ("a",)), Partition("2", ("b",))))
    jobs = [(0, 500, 500, 1), (1, 5, 5, 1), (2, 5, 5, 1)]
    assert run(machine, builtin, jobs, partition=[1, 1, 2]).start.tolist() == [0, 500, 2]
    assert run(machine, builtin + ",default_queue_depth=1", jobs, partition=[1, 1, 2]).start.tolist() == [0, 500, 60]
    assert run(machine, builtin + ",default_queue_depth=1,sched_interval=-1", jobs, partition=[1, 1, 2]).start.tolist() == [0, 500, 505]


def test_a_partition_is_closed_with_its_nodes():
    """B waits for both nodes; C, of another partition that has one of them, is kept off by the main scheduler, not by backfill."""
    machine = Machine((Pool("a", 1, 1), Pool("b", 1, 1)), (Partition("1", ("a", "b")), Partition("2", ("b",))))
    jobs = [(0, 100, 100, 1), (1, 10, 10, 2), (2, 20, 20, 1), (2, 20, 20, 1)]
    builtin = run(machine, "scheduler_type=builtin", jobs, partition=[1, 1, 2, 2])
    assert builtin.start.tolist() == [0, 100, 110, 130]
    assert run(machine, "", jobs, partition=[1, 1, 2, 2]).start.tolist() == [0, 100, 30, 110]
    tiers = Machine(machine.pools, (machine.partitions[0], Partition("2", ("b",), tier=1)))
    assert run(tiers, "scheduler_type=builtin", jobs, partition=[1, 1, 2, 2]).start.tolist() == [0, 100, 2, 22]


SOFT = [(0, 150, 240, 3), (2, 30, 60, 4), (4, 1000, 360, 1)]
"""A has 3 nodes, asks 4 min and uses 2:30; B needs all; E asks 6 min, with 2 min at least, and does not end by itself."""


@pytest.mark.parametrize(("running", "start"), [("limit", 130), ("half", 394)])
def test_running_jobs_under_a_soft_limit(running, start):
    """Planned by E's limit, B comes at 364 s and F fits before it; planned by E's time_min, B comes at A's end, and F must wait."""
    options = f"bf_interval=2,bf_resolution=1,time_min_as_soft_limit=yes,soft_limit_running={running}"
    jobs = [(0, 240, 240, 2), *SOFT[1:], (130, 200, 200, 1)]
    found = run(single(4), options, jobs, time_min=[-1, -1, 120, -1])
    assert found.start.tolist()[2:] == [4, start]
    assert found.end.tolist()[2] == 4 + 360, "its limit is kept"
    assert found.limit is None
    without = run(single(4), options.replace("=yes", "=no"), jobs, time_min=[-1, -1, 120, -1])
    assert without.limit.tolist()[2] == 180, "3 of the 3:56 minutes before B"


@pytest.mark.parametrize(("age", "start"), [(100, 120), (142, 142 + 109), (354, 354 + 3), (359, 360)])
def test_half_of_what_is_left(age, start):
    """Seen on Slurm 26.05: a job of 6 min with 2 min at least, overdue, is planned for half of what its limit leaves it."""
    found = SlurmReference.__new__(SlurmReference)
    found.settings = Slurm(time_min_as_soft_limit=True).settings()
    found.now = age
    job = type("Job", (), {"planned": 120, "start": 0, "expected_end": 120, "limit": 360, "time_min": 120})()
    assert found._release(job) == start


def test_a_job_with_a_least_runtime_that_fits_keeps_its_limit():
    found = run(single(4), "bf_interval=2", [(0, 100, 100, 3), (1, 10, 10, 4), (2, 50, 50, 1)], time_min=[-1, -1, 20])
    assert found.start.tolist() == [0, 100, 2]
    assert found.limit is None


def test_outages_are_kept_free_in_time():
    """Node 1 is away from 100 s to 200 s, which is known from 50 s on."""
    machine = single(2, outages=(Outage("all", 100, 200, 1, 50),))
    assert run(machine, "", [(40, 90, 90, 2)]).start.tolist() == [40], "it is not known yet, and what runs runs on"
    assert run(machine, "", [(60, 50, 50, 2), (61, 30, 30, 1), (62, 59, 59, 1)]).start.tolist() == [200, 90, 120]


def test_a_job_must_end_before_a_reservation_begins():
    """Job 0 has a reservation from 180 s on, its start of 200 s rounded down to a minute, so job 2 would end at 120 + 60 s too late."""
    machine = single(2, outages=(Outage("all", 100, 200, 1, 50),))
    assert run(machine, "", [(60, 50, 50, 2), (61, 30, 30, 1), (62, 60, 60, 1)]).start.tolist() == [200, 90, 250]


PRIORITY = "priority_calc_period=00:00:10,"


def test_the_users_share():
    """User 1 has used the machine, so user 2 goes first; without weights, or with his user's shares, he does not."""
    jobs = [(0, 100, 100, 1), (1, 10, 10, 1), (2, 10, 10, 1)]
    users = {"user": [1, 1, 2]}
    assert run(single(1), PRIORITY + "priority_weight_fairshare=1000", jobs, **users).start.tolist() == [0, 110, 100]
    classic = PRIORITY + "priority_weight_fairshare=1000,priority_flags=NO_FAIR_TREE"
    assert run(single(1), classic, jobs, **users).start.tolist() == [0, 110, 100]
    assert run(single(1), PRIORITY, jobs, **users).start.tolist() == [0, 100, 110]
    shares = (Share("1"), Share("1", "1"), Share("2", shares=0), Share("2", "2"))
    found = run(single(1, shares=shares), PRIORITY + "priority_weight_fairshare=1000", jobs, **users, group=[1, 1, 2])
    assert found.start.tolist() == [0, 100, 110]


def test_age_size_partition_and_quality():
    machine = Machine(
        (Pool("a", 4, 1),),
        (Partition("1", ("a",)), Partition("2", ("a",), job_factor=10)),
        qos=(Qos("1"), Qos("2", 100)),
    )
    jobs = [(0, 100, 100, 4), (1, 10, 10, 3), (2, 10, 10, 4)]

    def started(options, partition=(1, 1, 1), queue=(1, 1, 1)):
        return run(machine, PRIORITY + options, jobs, partition=list(partition), queue=list(queue)).start.tolist()

    first, second = [0, 100, 110], [0, 110, 100]
    assert started("priority_weight_job_size=1000") == second
    assert started("priority_weight_job_size=1000,priority_favor_small=yes") == first
    assert started("priority_weight_job_size=1000,priority_weight_age=10000,priority_max_age=00:16:40") == second
    assert started("priority_weight_job_size=1000,priority_weight_age=10000000,priority_max_age=00:16:40") == first
    assert started("priority_weight_partition=1000", partition=(1, 1, 2)) == second
    assert started("priority_weight_qos=1000", queue=(1, 1, 2)) == second


def test_association__the_nearest_priority_above_the_user_counts():
    """Accounts 1 and 2; users 1 of 1 and 2 of 2 come after user 3, whose own priority is the highest."""
    jobs = [(0, 100, 100, 1), (1, 10, 10, 1), (2, 10, 10, 1), (3, 10, 10, 1)]
    shares = (Share("1", priority=10), Share("2", parent="1"), Share("2", "3", priority=20), Share("4"))
    columns = {"user": [1, 1, 3, 2], "group": [1, 4, 2, 2]}
    weighed = PRIORITY + "priority_weight_assoc=1000"
    assert run(single(1, shares=shares), weighed, jobs, **columns).start.tolist() == [0, 120, 100, 110]
    assert run(single(1, shares=shares), PRIORITY, jobs, **columns).start.tolist() == [0, 100, 110, 120]


def merits(weights, pools, names=(), **columns):
    """The constant part of the priorities of jobs of 1, 2, ... processors, with these weights of resources."""
    machine, count = Machine(pools, (Partition("main", tuple(one.name for one in pools)),)), len(next(iter(columns.values())))
    own = {name: np.array(values) for name, values in columns.items()}
    procs = np.arange(1, count + 1)
    jobs = Workload.from_arrays(submit=[0] * count, runtime=[9] * count, procs=procs, machine_procs=machine.procs, columns=own)
    jobs = replace(jobs, origin=replace(jobs.origin, names={"requested_gpu_type": names}))
    settings = Slurm(priority_type="multifactor", priority_weight_tres=weights).settings()
    placed, placement, demands = place_on_nodes(jobs, machine)
    return with_priorities(placed, placement, settings, demands, problem_nodes(machine, placement, placed))[0].merit.tolist()


def test_resources__a_job_has_its_share_of_its_partition():
    pools = (Pool("a", 2, 8, 2, memory=400),)
    columns = {"gpus": [0, 1, 2], "mem_mb": [100, 200, 300], "nodes": [1, 1, 2]}
    assert merits("CPU=1600", pools, **columns) == [100, 200, 300]
    assert merits("Mem=800", pools, **columns) == [100, 200, 300]
    assert merits("GRES/gpu=1000:CPU=16", pools, **columns) == [1, 252, 503]
    assert merits("Node=10", pools, **columns) == [5, 5, 10]
    assert Slurm(priority_weight_tres="License/matlab=5:CPU=1").settings().notes == ("PriorityWeightTRES=license/matlab",)
    assert not Slurm(priority_weight_tres="CPU=0").settings().multifactor


def test_resources__a_type_of_gpus_counts_for_the_jobs_that_request_it():
    pools = (Pool("a", 1, 4, 2, gpu_type="a100"), Pool("v", 1, 4, 4, gpu_type="v100"))
    columns = {"gpus": [1, 1, 2], "requested_gpu_type": [1, 2, 2]}
    assert merits("GRES/gpu:v100=1000", pools, ("a100", "V100"), **columns) == [0, 250, 500]


def test_site_factor__is_added_to_the_priority():
    jobs = [(0, 100, 100, 1), (1, 10, 10, 1), (2, 10, 10, 1)]
    weighed = PRIORITY + "priority_weight_age=1"
    assert run(single(1), weighed, jobs, site_factor=[-1, 5, 7]).start.tolist() == [0, 110, 100]
    assert run(single(1), weighed, jobs, site_factor=[-1, 5, 7], nice=[-1, 0, 9]).start.tolist() == [0, 100, 110]


def test_use_factor__scales_what_counts_as_past_use():
    """User 1 has used 100 s and user 2 200 s; at half of the factor, both have used as much, so the first one to arrive starts."""
    jobs = [(0, 100, 100, 1), (0, 200, 200, 1), (1, 500, 500, 2), (2, 10, 10, 2), (3, 10, 10, 2)]
    columns = {"user": [1, 2, 3, 2, 1], "queue": [1, 2, 1, 1, 1]}
    weighed = PRIORITY + "priority_weight_fairshare=1000,priority_decay_half_life=0"

    def started(*qos):
        return run(single(2, qos=qos), weighed, jobs, **columns).start.tolist()

    assert started(Qos("1"), Qos("2")) == [0, 0, 200, 710, 700]
    assert started(Qos("1"), Qos("2", usage_factor=0.25)) == [0, 0, 200, 700, 710]
    assert started(Qos("1"), Qos("2", usage_factor=0.5)) == [0, 0, 200, 700, 710]
    assert started(Qos("1"), Qos("2", usage_factor=0.75)) == [0, 0, 200, 710, 700]


def test_no_reserve__backfill_starts_later_jobs_that_delay_the_job():
    """Two of four processors are in use for 100 s, and job 2 waits for all; job 3 would run past its reservation."""
    jobs = [(0, 100, 100, 2), (1, 10, 10, 4), (2, 200, 200, 2)]
    options = "bf_interval=1,bf_resolution=1"
    columns = {"queue": [1, 2, 1]}
    plain = run(single(4, qos=(Qos("1"), Qos("2"))), options, jobs, **columns)
    assert (plain.start.tolist(), plain.reserved_start.tolist()[1]) == ([0, 100, 110], 100)
    found = run(single(4, qos=(Qos("1"), Qos("2", no_reserve=True))), options, jobs, **columns)
    assert (found.start.tolist(), found.reserved_start.tolist()) == ([0, 202, 2], [-1, -1, -1])


def test_run_minutes__jobs_wait_until_running_ones_have_fewer_left():
    """User 1 may have 5 processor-minutes left: 120 s on 2 processors are 4, and 90 s on one fit after 15 s, at the next cycle."""
    jobs = [(0, 120, 120, 2), (1, 90, 90, 1), (2, 90, 90, 1), (3, 600, 600, 1)]
    machine = single(5, limits=(Limit(("user",), run_minutes=5),))
    found = run(machine, "bf_interval=7,sched_interval=-1", jobs, user=[1, 1, 2, 1])
    assert found.start.tolist() == [0, 21, 2, 3], "10 minutes exceed the limit by themselves"
    assert found.workload.origin.changed == {"over_limit": 1}
    told = wt.explain(found, 2, sooner=False)
    assert told.held_back.limit == 20
    assert "5 processor-minutes" in str(told)


def test_the_size_of_a_job():
    nodes, procs, limit = np.array([2]), np.array([8]), np.array([600])
    assert job_size(nodes, procs, limit, 4, 16, Slurm().settings()).tolist() == [0.5]
    assert job_size(nodes, procs, limit, 8, 16, Slurm(priority_favor_small=True).settings()).tolist() == [1 - 0.375]
    assert job_size(nodes, procs, limit, 8, 16, Slurm(priority_flags="SMALL_RELATIVE_TO_TIME").settings()).tolist() == [0.05]


def test_jobs_that_fit_on_no_nodes_are_dropped():
    """The partition has enough processors and cards, but not on the same nodes."""
    machine = Machine((Pool("a", 2, 4), Pool("b", 1, 2, 2)), (Partition("1", ("a", "b")),))
    found = run(machine, "", [(0, 10, 10, 2), (0, 10, 10, 4), (0, 10, 10, 10)], gpus=[2, 1, 0])
    assert found.workload.job_id.tolist() == [1, 3]
    assert found.workload.origin.dropped == {"fits_no_node": 1}


@pytest.mark.parametrize(
    ("procs", "rule", "needs"),
    [
        (5, "too_wide_for_partition", {"constraints": 1}),
        (17, "too_wide_for_partition", {"gpus": -1}),
        (2, "too_many_gpus", {"gpus": 3, "constraints": 2}),
        (2, "too_many_gpus", {"gpus": 6}),
        (1, "too_much_memory", {"mem_mb": 200, "mem_mb_per_node": 200}),
        (8, "too_much_memory", {"mem_mb": 480, "mem_mb_per_cpu": 60}),
        (1, "too_much_memory", {"mem_mb": 90, "mem_mb_per_node": 90, "constraints": 1}),
        (1, "fits_no_node", {"mem_mb": 90, "mem_mb_per_node": 90, "gpus": 1, "gpus_per_node": 1}),
        (4, "fits_no_node", {"gpus": 2, "gpus_per_node": 2, "nodes": 1, "most_nodes": 1, "tasks_per_node": 4}),
    ],
)
def test_a_job_that_fits_no_node__is_counted_by_the_resource_that_is_too_much(procs, rule, needs):
    """Two nodes of four processors with 100 MB, two small nodes of two processors with 50 MB and two GPUs, and a node with one GPU."""
    small, one = Pool("b", 2, 2, 2, memory=50, features=("small",)), Pool("c", 1, 4, 1, memory=50, features=("one",))
    machine = Machine((Pool("a", 2, 4, memory=100), small, one), (Partition("1", ("a", "b", "c")),))
    columns = {name: np.array([value, -1]) for name, value in needs.items()}
    jobs = Workload.from_arrays(submit=[0, 0], runtime=[9, 9], procs=[procs, 1], machine_procs=20, columns=columns)
    jobs = replace(jobs, origin=replace(jobs.origin, names={"constraints": ("small", "one")}))
    placed = place_on_nodes(jobs, machine)[0]
    assert (placed.job_id.tolist(), placed.origin.dropped) == ([2], {rule: 1})
    with raises(WorkloadError, "no_job_fits", rule):
        place_on_nodes(jobs.take(np.array([0]), ""), machine)


def test_settings_of_a_slurm():
    settings = {
        "SchedulerParameters": "bf_window=2880,bf_max_job_test=1000,bf_continue,defer,pack_serial_at_end,default_queue_depth=10",
        "SchedulerType": "sched/builtin",
        "PriorityType": "priority/multifactor",
        "PriorityMaxAge": "14-00:00:00",
        "PriorityWeightFairShare": "100000",
        "PriorityFavorSmall": "No",
        "PriorityFlags": "NO_FAIR_TREE,MAX_TRES",
        "PreemptType": "preempt/qos",
        "PreemptParameters": "youngest_first,reorder_count=3,min_exempt_priority=7",
        "PreemptExemptTime": "00:10:00",
        "SLURM_VERSION": "24.11.5",
    }
    found = Slurm(bf_window=60).settings(settings)
    assert (found["bf_window"], found["bf_max_job_test"], found["defer"], found["default_queue_depth"]) == (60, 1000, True, 10)
    assert (found["scheduler_type"], found["priority_max_age"], found["priority_weight_fairshare"]) == ("builtin", 14 * 86_400, 100_000)
    assert (found["bf_interval"], found["priority_favor_small"], found["soft_limit_running"]) == (30, False, "limit")
    assert found.flag("NO_FAIR_TREE")
    assert found.notes == ("pack_serial_at_end", "preempt_min_exempt_priority=7", "PriorityFlags=MAX_TRES")
    assert (found["preempt_youngest_first"], found["preempt_reorder_count"], found["preempt_exempt_time"]) == (True, 3, 600)
    odd = {"SelectType": "select/cons_res", "SchedulerType": "sched/wiki", "SelectTypeParameters": "CR_CPU,CR_LLN"}
    odd |= {"SchedulerParameters": "bf_interval=-1", "PriorityMaxAge": "0"}
    found = Slurm().settings(odd)
    assert (found["select_type"], found["scheduler_type"], found["priority_max_age"]) == ("cons_tres", "builtin", 0)
    assert found.notes == ("SchedulerType=sched/wiki", "SelectTypeParameters=CR_CPU,CR_LLN")
    assert Slurm().settings({"SLURM_VERSION": "25.11.0"})["soft_limit_running"] == "half"
    assert Slurm().settings({"SchedulerParameters": "(null)"}).values == Slurm().settings().values


def test_how_the_policy_is_spelled():
    policy = parse_policy("slurm:bf_max_job_test=1,bf-interval=2,PriorityMaxAge=7-0,defer=yes")
    assert policy == Slurm(bf_max_job_test=1, bf_interval=2, priority_max_age=604_800, defer=True)
    assert policy.label == "slurm:defer=yes,bf_interval=2,bf_max_job_test=1,priority_max_age=7-00:00:00"
    assert parse_policy(policy.label) == policy
    assert [field.name for field in fields(Slurm)][1:] == list(PARAMETERS)
    assert [seconds_of(text) for text in ("90", "1:30", "2:00:00", "1-12", "1-00:30")] == [5400, 90, 7200, 129_600, 88_200]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slurm:bf_interval=0", ("wrong_value", "'slurm:bf_interval=0'", "1")),
        ("slurm:bf_interval=soon", ("wrong_value", "bf_interval")),
        ("slurm:defer=maybe", ("wrong_value",)),
        ("slurm:priority_type=fancy", ("wrong_value", "priority_type")),
        ("slurm:priority_max_age=old", ("wrong_value",)),
        ("slurm:order=sjf", ("conflicting_options",)),
        ("slurm:bf_depth=3", ("unknown_option", "'bf_depth'")),
    ],
)
def test_what_it_refuses(text, said):
    with raises(PolicyError, *said):
        parse_policy(text)


def test_it_needs_nodes_and_room():
    workload = Workload.from_arrays(submit=[0, 0], runtime=[5, 5], procs=[1, 1], machine_procs=1)
    for engine in ENGINES:
        with raises(PolicyError, "unsupported_policy"):
            wt.simulate(workload, "slurm", engine=engine)
    crowded = Workload.from_arrays(
        submit=[0, 0], runtime=[5, 5], procs=[1, 1], machine_procs=1, columns={"running_since": np.array([-2, -3])}
    )
    machines = {"pools": Machine((Pool("all", 1, 1),), (Partition("all", ("all",)),)), "nodes": single(1)}
    for policy, machine in (("slurm", "nodes"), ("easy", "nodes"), ("oar", "nodes"), ("easy", "pools")):
        for engine in ENGINES:
            with raises(WorkloadError, "overfull_machine", "1") as caught:
                wt.simulate(crowded, policy, machine=machines[machine], engine=engine)
            assert caught.value.job == 0


def test_on_the_command_line(golden, tmp_path, capsys):
    """The policy and the settings of the machine's file are used; what is not modelled is said once."""
    log = tmp_path / "log.swf"
    rows = [
        f"{k + 1} {submit} -1 {runtime} {p} -1 -1 {p} {asked} -1 1 1 1 1 1 1 -1 -1" for k, (submit, runtime, asked, p) in enumerate(LONG)
    ]
    log.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    cluster = tmp_path / "machine.toml"
    cluster.write_text(write_machine(single(4, policy="slurm", slurm={"SchedulerParameters": "bf_interval=15,bf_hurry"})))
    out = tmp_path / "schedule.csv"
    status, told, errors = call(capsys, "simulate", log, "--machine", cluster, "--out", out)
    assert status == 0, errors
    assert "Slurm on log" in told
    assert told.count("Not modelled: bf_hurry.") == 1
    status, told, errors = call(capsys, "audit", log, out, "--machine", cluster, "--policy", "slurm")
    assert status == 0, told + errors
    status, told, errors = call(capsys, "compare", log, "--machine", cluster)
    assert status == 0, errors
    assert all(name in told for name in ("Slurm", "FCFS", "EASY"))
    golden("simulate", one_line(*call(capsys, "simulate", log, "--policy", "slurm")))


def test_the_auditor_sees_what_is_wrong_on_nodes(tmp_path):
    """A schedule that is right is made wrong in one way at a time; its limits survive a file."""
    machine = Machine(
        (Pool("a", 2, 2), Pool("b", 2, 2)),
        (Partition("1", ("a",)), Partition("2", ("a", "b"))),
        outages=(Outage("b", 300, 400, 2, 0),),
    )
    jobs = [(0, 100, 100, 4), (1, 10, 10, 4), (2, 900, 900, 4)]
    schedule = run(machine, "bf_interval=2", jobs, partition=[1, 1, 2], time_min=[-1, -1, 60])
    assert schedule.start.tolist() == [0, 100, 2]
    assert schedule.limit.tolist() == [100, 10, 240], "4 of the almost 5 minutes before the outage"
    job, node, procs, second = schedule.slots

    def broken(**changes):
        return set(replace(schedule, **changes).audit().counts)

    assert broken(slots=(job, np.where(job == 2, node - 2, node), procs, second)) >= {"node_capacity"}, "given out twice"
    assert broken(slots=(job, np.where(job == 0, node + 2, node), procs, second)) >= {"node_capacity"}, "not of its partition"
    assert broken(slots=(job, node, procs - (job == 1), second)) >= {"node_capacity"}, "less than it needs"
    late = np.array([0, 100, 350])
    assert broken(start=late, end=late + schedule.runtime) >= {"node_capacity"}, "in an outage"
    short = np.array([100, 10, 50])
    assert broken(limit=short, end=schedule.start + np.minimum(schedule.runtime, short)) >= {"limit_shortened"}
    short = np.array([90, 10, 240])
    assert broken(limit=short, end=schedule.start + np.minimum(schedule.runtime, short)) >= {"limit_shortened"}
    schedule.write(tmp_path / "schedule.csv")
    columns = wt.read_schedule(tmp_path / "schedule.csv")
    assert columns["limit"].tolist() == schedule.limit.tolist()
    assert wt.audit(schedule.workload, columns, placement=schedule.placement).ok
