"""Waits on single nodes that come from reservations and outages, worked by hand."""

import walltime as wt
from tests.unit.policy.test_slurm_requests import machine_of, run
from tests.unit.policy.test_slurm_reservations import COURSE, INSIDE, JOBS, machine_with
from walltime.explanation import Obstacles
from walltime.machine import Outage, Pool, Reservation


def test_reservation__keeps_nodes_from_other_jobs(golden):
    """Job 4 runs until 153 next to the job of all nodes, which then waits for the reservation's end."""
    found = run(machine_with(COURSE), JOBS, reservation=INSIDE)
    told = wt.explain(found, 2, sooner=False)
    assert (told.start, told.held_back) == (200, Obstacles(too_few=152, reservation=47))
    golden("explain", str(told))


def test_reservation__its_own_job_waits_for_its_begin(golden):
    """From 3 to 50, too few processors are free in any case."""
    found = run(machine_with(COURSE), JOBS, reservation=INSIDE)
    told = wt.explain(found, 3, sooner=False)
    assert (told.start, told.held_back) == (100, Obstacles(reservation=51, too_few=47))
    golden("explain", str(told))


def test_reservation__a_job_that_would_run_into_it_waits():
    course = Reservation("1", "a", 100, 200, announced=0)
    machine = machine_of(Pool("a", 2, 4), reservations=(course,))
    found = run(machine, [(0, 150, 4), (1, 50, 4), (2, 40, 4)], reservation=[-1, -1, 1])
    assert found.start.tolist() == [200, 1, 100]
    assert wt.explain(found, 1, sooner=False).held_back == Obstacles(reservation=200)
    assert wt.explain(found, 3, sooner=False).held_back == Obstacles(reservation=98)


def test_outage__a_job_that_would_run_into_it_waits():
    machine = machine_of(Pool("a", 2, 4), outages=(Outage("a", 100, 200, announced=30),))
    found = run(machine, [(0, 70, 8), (1, 60, 4), (2, 120, 4)])
    assert found.start.tolist() == [0, 200, 200]
    assert wt.explain(found, 2, sooner=False).held_back == Obstacles(too_few=69, outage=130)
