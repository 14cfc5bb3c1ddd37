"""Windows: hours of the week in which jobs of a kind do not start, or are not planned, on machines of pools."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.cli import HEADER, call, record
from tests.errors import raises
from tests.strategies import examples
from walltime.errors import LogError, PolicyError, WorkloadError
from walltime.machine import Machine, Outage, Overhead, Partition, Pool, Window, place, write_machine
from walltime.machine.machine import parse_machine

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


@pytest.mark.slow
def test_windows__hold_for_ever():
    """120 jobs of twelve and a half hours, one after the other: the last starts months after the last submission."""
    count, length = 120, 12 * HOUR + 1800
    workload = jobs([0] * count, [length] * count, [4] * count)
    for window in (Window("08:00", "17:00"), Window("08:00", "17:00", drain=True)):
        schedule = wt.simulate(workload, "easy", machine=machine(window))
        assert schedule.start[-1] > 60 * DAY
        assert not ((schedule.start % DAY >= 8 * HOUR) & (schedule.start % DAY < 17 * HOUR)).any()
        assert schedule.audit().ok


def test_windows__that_leave_a_job_no_time_together_give_way_to_it():
    """From Friday 17:00 to Monday 8:00 are 63 hours, and each of the instants alone leaves 72."""
    workload = jobs([9 * HOUR] * 3, [HOUR] * 3, [1] * 3, requested=[63 * HOUR, 63 * HOUR + 1, 72 * HOUR])
    own = machine(Window("17:00", days=WEEKDAYS), Window("08:00", days=WEEKDAYS))
    placed, placement = place(workload, own)
    assert placed.origin.changed["outside_windows"] == 2
    assert list(placement.windows_of) == [[0, 1], [], []]
    assert starts(workload, *own.windows) == [4 * 24 + 17, 9, 9]


def test_windows__only_those_that_a_job_is_too_long_for_give_way():
    """It runs across the instant, and still starts by night only."""
    workload = jobs([9 * HOUR], [HOUR], [1], requested=[70 * HOUR])
    night = Window("08:00", "17:00", days=WEEKDAYS, longer_than=4 * HOUR)
    assert starts(workload, Window("17:00", days=WEEKDAYS), Window("08:00", days=WEEKDAYS), night) == [17]
    assert starts(workload, Window("12:00"), night) == [17]
    assert starts(workload, Window("08:00", days=("mon",), drain=True, end="10:00"), Window("12:00"), night) == [17]


def test_windows__that_shut_the_whole_week_give_way():
    workload = jobs([9 * HOUR, 9 * HOUR], [HOUR, HOUR], [1, 2])
    for windows in (
        (Window("00:00", "24:00"),),
        (Window("08:00", "20:00"), Window("20:00", "08:00")),
        (Window("08:00", "20:00", drain=True), Window("19:00", "09:00", wider_than=0)),
    ):
        assert place(workload, machine(*windows))[0].origin.changed["outside_windows"] == 2
    assert starts(workload, Window("00:00", "24:00")) == [9, 9]
    assert starts(workload, Window("08:00", "20:00"), Window("20:00", "08:00")) == [9, 9]
    assert starts(workload, Window("08:00", "20:00"), Window("20:00", "08:00", wider_than=1)) == [20, 9], "the narrow job has a night"


def test_windows__of_other_kinds_or_times_do_not_count_together():
    """Each job is under one of the instants; and the windows of May follow those of April."""
    workload = jobs([9 * HOUR] * 2, [HOUR] * 2, [1, 2], requested=[70 * HOUR] * 2)
    own = machine(Window("17:00", days=WEEKDAYS, narrower_than=2), Window("08:00", days=WEEKDAYS, wider_than=1))
    assert "outside_windows" not in place(workload, own)[0].origin.changed
    in_turn = machine(Window("17:00", days=WEEKDAYS, until=30 * DAY), Window("08:00", days=WEEKDAYS, since=30 * DAY))
    assert "outside_windows" not in place(workload, in_turn)[0].origin.changed
    overlapping = machine(Window("17:00", days=WEEKDAYS, until=60 * DAY), Window("08:00", days=WEEKDAYS, since=30 * DAY))
    assert place(workload, overlapping)[0].origin.changed["outside_windows"] == 2, "in the second month"
    late = jobs([9 * HOUR + 61 * DAY] * 2, [HOUR] * 2, [1, 2], requested=[70 * HOUR] * 2)
    assert "outside_windows" not in place(late, overlapping)[0].origin.changed, "who comes later meets one of them"
    assert starts(workload, *overlapping.windows) == [4 * 24 + 17] * 2, "in the first month the one that there is still holds"


def test_windows__a_few_days_of_them_are_waited_for():
    """Hours that hold for less than a week give way to nobody."""
    workload = jobs([9 * HOUR], [HOUR], [1], requested=[30 * HOUR])
    assert "outside_windows" not in place(workload, machine(Window("12:00", since=0, until=3 * DAY)))[0].origin.changed
    assert starts(workload, Window("12:00", since=0, until=3 * DAY)) == [2 * 24 + 12]


def test_windows__it_is_what_is_planned_that_must_fit():
    """With a clean-up of an hour, or planned for their runtimes, jobs of 23 hours no longer fit between two noons."""
    workload = jobs([9 * HOUR], [26 * HOUR], [1], requested=[23 * HOUR + 1800])
    own = machine(Window("12:00"))
    assert "outside_windows" not in place(workload, own)[0].origin.changed
    assert place(workload, replace(own, overhead=Overhead(end=HOUR)))[0].origin.changed["outside_windows"] == 1
    assert wt.simulate(workload, "easy", machine=own).start.tolist() == [12 * HOUR]
    for rest in ({"overrun": "extend"}, {"machine": replace(own, overhead=Overhead(end=HOUR))}):
        schedule = wt.simulate(workload, "easy", **({"machine": own} | rest))
        assert schedule.start.tolist() == [9 * HOUR]
        assert schedule.workload.origin.changed["outside_windows"] == 1
        assert schedule.audit().ok


def test_windows__a_tick_must_come_while_they_are_open():
    """The scheduler looks every hour, and the minute that is open never is when it looks."""
    workload = jobs([9 * HOUR], [600], [1])
    own = replace(machine(Window("12:31", "12:30")), overhead=Overhead(tick=HOUR))
    assert place(workload, own)[0].origin.changed["outside_windows"] == 1
    assert wt.simulate(workload, "easy", machine=own).start.tolist() == [9 * HOUR]


def test_window__a_request_that_never_fits_is_not_held_back_for_ever_and_is_counted():
    workload = jobs([6 * HOUR], [25 * HOUR], [1])
    own = machine(Window("08:00"))
    assert place(workload, own)[0].origin.changed["outside_windows"] == 1
    assert starts(workload, Window("08:00")) == [6]


NIGHT = Window("22:00", "06:00")


@pytest.mark.parametrize(
    ("zone", "submitted", "window", "started"),
    [
        ("Europe/Stockholm", "2024-03-30 23:00", NIGHT, "2024-03-31 06:00"),  # forward at 2:00
        ("Europe/Stockholm", "2024-10-26 23:00", NIGHT, "2024-10-27 06:00"),  # back at 3:00
        ("America/New_York", "2024-03-09 23:00", NIGHT, "2024-03-10 06:00"),
        ("America/New_York", "2024-11-02 23:00", NIGHT, "2024-11-03 06:00"),
        ("Australia/Lord_Howe", "2024-04-06 23:00", NIGHT, "2024-04-07 06:00"),  # back at 2:00 by half an hour
        ("Australia/Lord_Howe", "2024-10-05 23:00", NIGHT, "2024-10-06 06:00"),  # forward at 2:00 by half an hour
        ("", "2024-03-30 23:00", NIGHT, "2024-03-31 06:00"),  # without a zone, UTC
        ("UTC", "2024-10-26 23:00", NIGHT, "2024-10-27 06:00"),
        ("Europe/Stockholm", "2024-03-31 01:59", Window("02:30", "05:00"), "2024-03-31 01:59"),
        ("Europe/Stockholm", "2024-03-31 03:00", Window("02:30", "05:00"), "2024-03-31 05:00"),  # it begins as the clock goes forward
        ("Europe/Stockholm", "2024-03-31 01:00", Window("00:30", "02:30"), "2024-03-31 03:00"),  # and ends then
        ("Europe/Stockholm", "2024-03-31 01:50", Window("02:10", "02:50", drain=True), "2024-03-31 01:50"),  # and is left out
        ("Europe/Stockholm", "2024-10-27 02:40", Window("02:30", "02:50"), "2024-10-27 02:50 1"),  # from the first to the last
        ("Europe/Stockholm", "2024-10-27 02:20 1", Window("02:30", "04:00"), "2024-10-27 04:00"),
        ("Europe/Stockholm", "2024-10-27 02:45", Window("00:30", "02:30"), "2024-10-27 02:30 1"),
        ("Australia/Lord_Howe", "2024-04-07 01:40", Window("01:35", "01:45"), "2024-04-07 01:45 1"),
        ("Australia/Lord_Howe", "2024-10-06 02:30", Window("02:10", "03:00"), "2024-10-06 03:00"),
        ("Pacific/Apia", "2011-12-29 23:00", NIGHT, "2011-12-31 06:00"),  # there was no 30 December
    ],
)
def test_window__goes_by_the_sites_clock_when_that_changes(zone, submitted, window, started):
    def moment(text):
        day, time, *last = text.split()
        own = ZoneInfo(zone) if zone else UTC
        return int(datetime.fromisoformat(f"{day} {time}").replace(tzinfo=own, fold=len(last)).timestamp())

    begin = moment(submitted)
    workload = jobs([0], [600], [1])
    workload = replace(workload, origin=replace(workload.origin, unix_start_time=begin, time_zone=zone))
    for engine in ("kernel", "reference"):
        schedule = wt.simulate(workload, "easy", machine=machine(window, clock=None), engine=engine)
        assert int(schedule.start[0]) + begin == moment(started)
        assert schedule.audit().ok


def test_window__without_summer_time_goes_by_utc():
    workload = jobs([0], [600], [1])
    begin = int(datetime(2024, 3, 30, 23, tzinfo=ZoneInfo("Europe/Stockholm")).timestamp())
    workload = replace(workload, origin=replace(workload.origin, unix_start_time=begin, time_zone="Europe/Stockholm"))
    assert starts(workload, NIGHT, clock=HOUR) == [7]


def test_window__instants_are_the_moment_of_the_change_or_the_first_of_two():
    zone = ZoneInfo("Europe/Stockholm")
    for day, at in ((datetime(2024, 3, 31), datetime(2024, 3, 31, 3)), (datetime(2024, 10, 27), datetime(2024, 10, 27, 2, 30))):
        begin = int(day.replace(tzinfo=zone).timestamp())
        workload = jobs([0], [600], [1])
        workload = replace(workload, origin=replace(workload.origin, unix_start_time=begin, time_zone="Europe/Stockholm"))
        hours = place(workload, machine(Window("02:30"), clock=None))[1].windows[0].until(0)
        assert hours.begin[0] == hours.end[0] == at.replace(tzinfo=zone).timestamp() - begin


@given(st.integers(0, 10**6))
@examples(60)
@pytest.mark.slow
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


def test_explain__says_that_the_hour_held_the_job_back(golden):
    schedule = wt.simulate(jobs([6 * HOUR], [3 * HOUR], [1]), "easy", machine=machine(Window("08:00")))
    golden("simulate", str(wt.explain(schedule, 1, sooner=False)))


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
        ('begin = "8:00"', ("wrong_time", "'08:00'", "'8:00'")),
        ('begin = "08:00"\ndays = "monday"', ("wrong_day", "mon", "tue")),
        ('end = "08:00"', ("missing_key", "begin")),
        ('begin = "08:00"\npartition = "none"', ("unknown_partition", "'none'")),
    ],
)
def test_file__a_wrong_window_is_one_line(line, message):
    head = '[[pool]]\nname = "all"\nnodes = 4\nprocs = 1\n[[partition]]\nname = "all"\npools = ["all"]\n[[window]]\n'
    with raises(LogError, *message):
        parse_machine(head + line, "site.toml")


def test_window__needs_a_log_that_says_when_it_starts_and_a_policy_that_knows_windows():
    workload = jobs([0], [1], [1])
    with raises(WorkloadError, "unknown_start_time"):
        place(replace(workload, origin=replace(workload.origin, unix_start_time=None)), machine(Window("08:00")))
    with raises(PolicyError, "unsupported_policy", "slurm", "hours"):
        wt.simulate(workload, "slurm", machine=machine(Window("08:00")))


def test_caveat__counts_the_jobs_that_no_windows_let_start(tmp_path, capsys):
    log, machine = tmp_path / "log.swf", tmp_path / "machine.toml"
    log.write_text(HEADER + record(1, 0, 3600, 1, 252_000) + record(2, 60, 3600, 1, 7200))
    windows = "".join(f'[[window]]\nbegin = "{begin}"\ndays = "mon-fri"\n' for begin in ("17:00", "08:00"))
    machine.write_text(f'[[pool]]\nname = "a"\nnodes = 4\nprocs = 1\n[[partition]]\nname = "all"\npools = ["a"]\n{windows}')
    status, out, _ = call(capsys, "simulate", log, "--machine", machine, "--json")
    told = json.loads(out)
    assert (status, told["changed"]["outside_windows"]) == (0, 1)
    assert sum("(outside_windows)" in caveat for caveat in told["caveats"]) == 1


def test_window__days_in_python_as_in_a_file():
    assert Window("08:00", "18:00", days="mon-wed").days == ("mon", "tue", "wed")
    with pytest.raises(WorkloadError, match="a day must be one of"):
        Window("08:00", "18:00", days="mo-fr")
