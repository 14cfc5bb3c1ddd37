"""Windows: hours of the week in which jobs of a kind do not start, or are not planned, on machines of pools."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import walltime as wt
from tests.strategies import examples
from walltime.errors import LogError, PolicyError, WorkloadError
from walltime.machine import Machine, Outage, Partition, Pool, Window, place, write_machine
from walltime.machine.files import parse_machine

HOUR, DAY = 3600, 86_400
MONDAY = 4 * DAY  # 5 January 1970
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri")
POLICIES = [wt.NoBackfilling(), wt.Easy(), wt.Hybrid(depth=2), wt.Conservative(), wt.Conservative(variant="scratch")]


def jobs(submit, runtime, procs, requested=None, machine_procs=4):
    own = wt.Workload.from_arrays(
        submit=submit, runtime=runtime, procs=procs, requested=runtime if requested is None else requested, machine_procs=machine_procs
    )
    return replace(own, origin=replace(own.origin, unix_start_time=MONDAY))


def machine(*windows, outages=(), clock=0):
    return Machine((Pool("all", 4, 1),), (Partition("all", ("all",)),), outages=outages, windows=windows, clock=clock)


def starts(workload, *windows, policy="easy", **rest):
    return (wt.simulate(workload, policy, machine=machine(*windows, **rest)).start / HOUR).tolist()


def test_window__nobody_is_planned_across_an_instant():
    # At 6:00 one that asks for two hours may start, and end at 8:00; one that asks for three waits until 8:00.
    workload = jobs([6 * HOUR, 6 * HOUR], [2 * HOUR, 3 * HOUR], [1, 1])
    assert starts(workload, Window("08:00")) == [6, 8]


def test_window__it_is_the_request_that_counts():
    assert starts(jobs([6 * HOUR], [HOUR], [1], requested=[3 * HOUR]), Window("08:00")) == [8]


def test_window__hours_shut_for_long_requests_leave_short_ones_alone_and_are_no_plan():
    workload = jobs([9 * HOUR, 9 * HOUR, 7 * HOUR], [5 * HOUR, HOUR, 5 * HOUR], [1, 1, 1])
    assert starts(workload, Window("08:00", "17:00", longer_than=4 * HOUR)) == [7, 17, 9]  # in order of arrival: the third is first


def test_window__who_is_shut_out_is_passed_over_as_if_they_were_not_there():
    # Under FCFS the second would wait behind the first.
    assert starts(jobs([9 * HOUR, 9 * HOUR], [5 * HOUR, HOUR], [4, 4]), Window("08:00", "17:00", longer_than=4 * HOUR), policy="fcfs") == [
        17,
        9,
    ]


def test_window__hours_may_pass_midnight_and_hold_on_the_days_named():
    workload = jobs([23 * HOUR, 23 * HOUR + DAY], [HOUR, HOUR], [1, 1])
    assert starts(workload, Window("22:00", "06:00", days=("mon",))) == [30, 47]


def test_window__drained_hours_are_free_of_jobs_and_others_are_not():
    workload = jobs([7 * HOUR], [2 * HOUR], [1])
    assert starts(workload, Window("08:00", "10:00", drain=True)) == [10]
    assert starts(workload, Window("08:00", "10:00")) == [7]


def test_window__holds_from_since_until_until():
    workload = jobs([7 * HOUR, 7 * HOUR + DAY, 7 * HOUR + 2 * DAY], [2 * HOUR] * 3, [1] * 3)
    assert starts(workload, Window("08:00", since=DAY, until=2 * DAY)) == [7, 32, 55]


def test_window__the_sites_clock_is_ahead_of_utc():
    assert starts(jobs([6 * HOUR], [2 * HOUR], [1]), Window("08:00"), clock=HOUR) == [7]


def test_window__a_request_that_never_fits_is_not_held_back_for_ever_and_is_counted():
    workload = jobs([6 * HOUR], [25 * HOUR], [1])
    own = machine(Window("08:00"))
    assert place(workload, own)[0].origin.changed["outside_windows"] == 1
    assert starts(workload, Window("08:00")) == [6]


@given(st.integers(0, 10**6))
@examples(60)
def test_engines_and_auditor__agree_under_windows(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(2, 20))
    runtime = draw.integers(1, 60_000, count)
    workload = jobs(
        np.sort(draw.integers(0, 200_000, count)),
        runtime,
        draw.integers(1, 5, count),
        requested=runtime + draw.integers(0, 20_000, count),
    )
    windows = [Window("08:00", days=WEEKDAYS), Window("17:00", days=WEEKDAYS)]
    windows += [Window("08:00", "17:00", days=WEEKDAYS, longer_than=4 * HOUR)] if seed % 2 else []
    windows += [Window("22:00", "06:00", drain=True, wider_than=2)] if seed % 3 == 0 else []
    outages = (Outage("all", 50_000, 60_000, 1, announced=40_000),) if seed % 5 == 0 else ()
    own = machine(*windows, outages=outages, clock=HOUR)
    policy = POLICIES[seed % len(POLICIES)]
    compiled = wt.simulate(workload, policy, machine=own)
    assert compiled.start.tolist() == wt.simulate(workload, policy, machine=own, engine="reference").start.tolist()
    assert not compiled.audit().violations


def test_audit__finds_a_start_that_a_window_forbids():
    workload = jobs([6 * HOUR], [3 * HOUR], [1])
    free = wt.simulate(workload, "easy", machine=machine())
    placed, placement = place(workload, machine(Window("08:00")))
    columns = {"job_id": placed.job_id, "start": free.start, "end": free.end}
    found = wt.audit(placed, columns, wt.Easy(), placement=placement)
    assert {violation.rule for violation in found.violations} == {"window_shut", "out_of_turn"}


def test_explain__says_that_the_hour_held_the_job_back():
    schedule = wt.simulate(jobs([6 * HOUR], [3 * HOUR], [1]), "easy", machine=machine(Window("08:00")))
    assert "the site's windows did not let it start at that hour" in str(wt.explain(schedule, 1, sooner=False))


def test_file__windows_are_read_and_written():
    text = """
clock = 3600
[[pool]]
name = "all"
nodes = 4
procs = 1
[[partition]]
name = "all"
pools = ["all"]
[[window]]
begin = "08:00"
end = "17:00"
days = "mon-fri"
longer_than = "4:00:00"
until = 1997-05-01T00:00:00
"""
    own = parse_machine(text, "site.toml")
    assert own.windows[0].days == WEEKDAYS
    assert own.windows[0].longer_than == 4 * HOUR
    assert parse_machine(write_machine(own), "again") == own


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('begin = "8:00"', "a time of day, such as '08:00', not '8:00'"),
        ('begin = "08:00"\ndays = "monday"', "a day is one of mon, tue"),
        ('end = "08:00"', "begin"),
        ('begin = "08:00"\npartition = "none"', "the partition 'none', which there is not"),
    ],
)
def test_file__a_wrong_window_is_one_line(line, message):
    head = '[[pool]]\nname = "all"\nnodes = 4\nprocs = 1\n[[partition]]\nname = "all"\npools = ["all"]\n[[window]]\n'
    with pytest.raises(LogError, match=message):
        parse_machine(head + line, "site.toml")


def test_window__needs_a_log_that_says_when_it_starts_and_a_policy_that_knows_windows():
    workload = jobs([0], [1], [1])
    with pytest.raises(WorkloadError, match="does not record when it starts"):
        place(replace(workload, origin=replace(workload.origin, unix_start_time=None)), machine(Window("08:00")))
    with pytest.raises(PolicyError, match="slurm does not run with hours in which jobs do not start on single nodes"):
        wt.simulate(workload, "slurm", machine=machine(Window("08:00")))
