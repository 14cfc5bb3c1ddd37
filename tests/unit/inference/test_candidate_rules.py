"""Candidates for rules, from counts of a record."""

from dataclasses import replace

import numpy as np

import walltime as wt
from walltime.inference.candidate_rules import (
    EachLimit,
    InferredPool,
    RecordedLog,
    candidate_limits,
    candidate_parts,
    candidate_windows,
    windows_near,
    windows_of_few,
)
from walltime.machine import Window

HOUR, DAY = 3600, 86_400
MONDAY = 4 * DAY
"""Midnight of a Monday, Unix time."""


def record(start, requested, submit):
    """A record of jobs of one processor; times in s from midnight of a Monday."""
    start, requested, submit = (np.asarray(values, np.int64) for values in (start, requested, submit))
    order = np.argsort(submit, kind="stable")
    workload = wt.Workload.from_arrays(
        submit=submit[order], runtime=requested[order], procs=np.ones(len(start), np.int64), requested=requested[order], machine_procs=64
    )
    workload = replace(workload, origin=replace(workload.origin, unix_start_time=MONDAY))
    return RecordedLog.of(workload, start[order])


def test_candidate_windows__of_hours_are_with_and_without_running_into_them():
    days = np.repeat(np.arange(20) * DAY, 96)
    came = days + np.tile(np.arange(96) * 900, 20)  # a job every quarter of an hour
    long = np.arange(len(came)) % 2 == 1
    by_day = (came % DAY >= 8 * HOUR) & (came % DAY < 17 * HOUR)
    log = record(np.where(long & by_day, days + 17 * HOUR, came), np.where(long, 5 * HOUR, HOUR), came)
    found = candidate_windows(log, MONDAY)
    assert {Window("08:00", "17:00", longer_than=HOUR), Window("08:00", "17:00", drain=True, longer_than=HOUR)} <= set(found)


def test_candidate_windows__of_half_of_a_log_are_seen_there():
    quarters = np.arange(96) * 900
    came = (np.arange(40)[:, None] * DAY + quarters).ravel()
    crossing = (came % DAY < 12 * HOUR) & (came % DAY + 2 * HOUR > 12 * HOUR)
    kept = came < 12 * DAY  # in under a third of the log, and so in under the half of it that comes first
    log = record(np.where(crossing & kept, came // DAY * DAY + 12 * HOUR, came), np.full(len(came), 2 * HOUR), came)
    assert Window("12:00") in candidate_windows(log, MONDAY)


def test_windows_of_few__are_the_hours_in_which_they_are_held_and_none_starts():
    came = np.arange(30) * DAY + np.arange(30) * 7 % 24 * HOUR  # a long job a day, at any hour
    many = np.arange(200) * 3 * HOUR
    by_day = (came % DAY >= 8 * HOUR) & (came % DAY < 17 * HOUR)
    submit = np.concatenate([came, many])
    start = np.concatenate([np.where(by_day, came // DAY * DAY + 17 * HOUR, came), many])
    requested = np.where(np.arange(230) < 30, 5 * HOUR, HOUR)
    log, at_once = (record(times, requested, submit) for times in (start, submit))
    hours = Window("08:00", "17:00", longer_than=HOUR)
    assert hours not in candidate_windows(log, MONDAY)
    assert {hours, replace(hours, drain=True)} <= set(windows_of_few(log, MONDAY, log.workload.submit))
    assert windows_of_few(at_once, MONDAY, at_once.workload.submit) == []  # nobody is held


def test_windows_near__move_either_end_by_up_to_two_hours_or_take_other_days():
    near = windows_near(Window("23:00", "08:30", days=("sat", "sun")))
    assert Window("00:00", "08:30", days=("sat", "sun")) in near
    assert Window("23:00", "06:30", days=("sat", "sun")) in near
    assert Window("23:00", "08:30") in near
    assert all(one.end is not None and one.begin != one.end for one in near)


def test_candidate_parts__of_half_of_a_log_are_seen_there():
    came = np.arange(400) * HOUR
    late = came >= 200 * HOUR  # from then on one at a time, each of two hours
    start = np.where(late, 200 * HOUR + 2 * HOUR * np.maximum(np.arange(400) - 200, 0), came)
    log = record(start, np.where(np.arange(400) % 20, 2, 9) * HOUR, came)  # of which some are of others
    assert [part.procs for part in candidate_parts(log, 64) if part.longest == 2 * HOUR] == [2, 1]


def test_part__takes_jobs_that_are_submitted_while_it_is_there():
    log = record([0, 10, 20], [5, 5, 5], [0, 10, 20])
    assert InferredPool(1, 5, 1, since=5, until=20).takes(log.workload).tolist() == [False, True, False]


def test_candidate_windows__of_a_short_break_are_where_hardly_any_job_starts():
    days = np.repeat(np.arange(20) * DAY, 96)
    came = days + np.tile(np.arange(96) * 900, 20)
    pause = (came % DAY >= 12 * HOUR) & (came % DAY < 13 * HOUR)
    log = record(np.where(pause, days + 13 * HOUR, came), np.full(len(came), HOUR), came)
    assert Window("12:00", "13:00") in candidate_windows(log, MONDAY)
    some = pause & (np.arange(len(came)) % 3 > 0)  # fewer than usual, but not hardly any
    log = record(np.where(some, days + 13 * HOUR, came), np.full(len(came), HOUR), came)
    assert Window("12:00", "13:00") not in candidate_windows(log, MONDAY)


def limited(wide_at_once):
    """A record of two groups whose jobs of 8 processors run so many at a time, others at once; a job of each kind every 100 s."""
    count = 400
    submit, wide = np.arange(count) * 100, np.arange(count) % 4 < 2
    group = np.arange(count) % 2
    start = submit.copy()
    for one in range(2):
        mine = np.flatnonzero(wide & (group == one))
        for k, job in enumerate(mine[wide_at_once:].tolist(), wide_at_once):
            start[job] = max(submit[job], start[mine[k - wide_at_once]] + 1000)
    workload = wt.Workload.from_arrays(
        submit=submit, runtime=np.full(count, 1000), procs=np.where(wide, 8, 1), requested=np.full(count, 1000), machine_procs=640
    )
    workload = replace(workload, columns={**workload.columns, "group": group})
    return RecordedLog.of(workload, start)


def test_candidate_limits__are_those_that_the_record_keeps_to_and_reaches():
    assert EachLimit("group", 2, wider_than=1) in candidate_limits(limited(2))
    assert EachLimit("group", 3, wider_than=1) in candidate_limits(limited(3))
    assert not any(one.by == "user" for one in candidate_limits(limited(2)))


def test_each_limit__counts_jobs_of_its_kind_by_group():
    log = limited(2)
    of = EachLimit("group", 2, wider_than=1).groups(log.workload)
    assert set(of[log.workload.procs == 1]) == {-1}
    assert set(of[(log.workload.procs == 8) & (log.workload.columns["group"] == 1)]) == {1}
    assert set(EachLimit("", 2).groups(log.workload)) == {0}
