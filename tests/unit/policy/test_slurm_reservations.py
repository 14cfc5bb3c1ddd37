"""Reservations of users and accounts under Slurm's scheduling, worked by hand."""

from dataclasses import replace

import pytest

import walltime as wt
from tests.errors import raises
from tests.unit.policy.test_slurm_policy import nodes_of
from tests.unit.policy.test_slurm_requests import machine_of, run
from walltime.comparison.caveats import caveats_of
from walltime.errors import WorkloadError
from walltime.machine import Machine, Outage, Pool, Reservation, place
from walltime.machine.machine import parse_machine, write_machine
from walltime.workload import Workload

COURSE = Reservation("1", "a", 100, 200, "2-3", announced=0)
JOBS = [(0, 50, 8), (1, 150, 16), (2, 30, 8), (3, 150, 4)]
"""Two nodes; all nodes, across the reservation; two nodes in the reservation; one node, across its begin."""
INSIDE = [-1, -1, 1, -1]


def machine_with(*reservations: Reservation) -> Machine:
    return machine_of(Pool("a", 4, 4), reservations=reservations)


def test_reservation__its_jobs_run_inside_and_others_around_it():
    found = run(machine_with(COURSE), JOBS, reservation=INSIDE)
    assert found.start.tolist() == [0, 200, 100, 3]
    assert [sorted(nodes_of(found, k)) for k in range(4)] == [[0, 1], [0, 1, 2, 3], [1, 2], [3]]
    assert not found.workload.origin.omissions


def test_reservation__flexible_jobs_may_also_run_elsewhere():
    found = run(machine_with(replace(COURSE, flags=("FLEX",))), JOBS, reservation=INSIDE)
    assert found.start.tolist()[2] == 2
    assert sorted(nodes_of(found, 2)) == [2, 3]


def test_reservation__is_unknown_before_it_is_announced():
    """Job 1 starts on all nodes before the reservation is announced, and runs on."""
    found = run(machine_with(replace(COURSE, announced=60)), [(0, 50, 8), (1, 150, 16), (2, 30, 8)], reservation=[-1, -1, 1])
    assert found.start.tolist() == [0, 50, 200]


def test_reservation__a_job_that_misses_it_runs_on_its_nodes_afterwards():
    found = run(machine_with(COURSE), [(0, 9, 4), (250, 30, 8)], reservation=[-1, 1])
    assert found.start.tolist() == [0, 250]
    assert sorted(nodes_of(found, 1)) == [1, 2]


def test_reservation__of_one_name_has_several_times():
    found = run(machine_with(COURSE, replace(COURSE, begin=400, end=500, nodes="4")), [(0, 9, 4), (250, 30, 4)], reservation=[-1, 1])
    assert (found.start.tolist()[1], nodes_of(found, 1)) == (400, {3: 4})


def test_reservation__is_repeated():
    placed = place(jobs_of([1]), machine_with(replace(COURSE, flags=("WEEKLY",))))[1]
    week = 7 * 86_400
    assert placed.reservations == [(0, 100 + k * week, 200 + k * week, 0) for k in range(4)]


@pytest.mark.parametrize(
    ("table", "number", "unknown"),
    [
        (COURSE, 1, 0),
        (replace(COURSE, name="2"), 0, 1),
        (replace(COURSE, nodes="1"), 0, 1),
        (replace(COURSE, users=("7", "8")), 1, 0),
        (replace(COURSE, users=("8",), accounts=("5",)), 1, 0),
        (replace(COURSE, users=("8",), accounts=("6",)), 0, 1),
    ],
)
def test_reservation__admits_jobs_that_request_it_of_its_users_and_accounts(table, number, unknown):
    placed, placement = place(jobs_of([1]), machine_with(table))
    assert placement.reservation.tolist() == [number]
    assert placed.origin.changed.get("unknown_reservation", 0) == unknown


def test_reservation__one_that_is_repeated_must_end_before_it_begins_again():
    with raises(WorkloadError, "wrong_outage", "HOURLY", "'1'"):
        run(machine_with(replace(COURSE, end=COURSE.begin + 3601, flags=("HOURLY",))), JOBS)


def test_reservation__jobs_that_start_when_it_is_no_longer_repeated_are_reported():
    always = replace(COURSE, nodes=None, begin=0, end=86_400, flags=("DAILY",))
    found = run(machine_with(always), JOBS)
    assert (found.start > 28 * 86_400).all()
    assert any("four weeks after the last submission; 4 jobs started after that" in one for one in caveats_of([found], "none"))
    assert not any("four weeks" in one for one in caveats_of([run(machine_with(COURSE), JOBS)], "none"))


def test_reservation__other_policies_do_not_model_it():
    found = wt.simulate(jobs_of([1]), "easy", machine=machine_with(COURSE))
    assert found.start.tolist() == [0]
    assert found.workload.origin.omissions == {"reservations": 1.0}


def test_outage__of_certain_nodes():
    machine = replace(machine_of(Pool("a", 4, 4)), outages=(Outage("a", 0, 100, "1,3", 0),))
    assert sorted(nodes_of(run(machine, [(0, 9, 8)]), 0)) == [1, 3]


@pytest.mark.parametrize("nodes", ["0", "5", "4-6", "x", "1-", "3-2", "1,7-9", ""])
def test_nodes__must_be_numbers_of_the_pool(nodes):
    with raises(WorkloadError, "wrong_outage", "a"):
        place(jobs_of([-1]), replace(machine_of(Pool("a", 4, 4)), outages=(Outage("a", 0, 9, nodes),)))


def test_machine_file__has_reservations():
    machine = machine_with(replace(COURSE, users=("ann",), flags=("FLEX", "DAILY")))
    assert parse_machine(write_machine(machine), "here").reservations == machine.reservations


def jobs_of(reservation: list[int]) -> Workload:
    """One job of two nodes, of user 7 and account 5."""
    columns = {"reservation": reservation, "user": [7], "group": [5]}
    return Workload.from_arrays(submit=[0], runtime=[9], procs=[8], machine_procs=16, columns=columns)
