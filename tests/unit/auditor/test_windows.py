"""The auditor's windows, which it finds by itself, against those that the engines are given."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
from hypothesis import given, strategies as st

import walltime as wt
from tests.strategies import examples
from walltime.auditor.windows import SiteWindows
from walltime.machine import Machine, Overhead, Partition, Pool, Window, place
from walltime.machine.overheads import scheduler_view
from walltime.machine.tables import DAYS

DAY = 86_400
ZONES = (
    "",
    "UTC",
    "3600",
    "Europe/Stockholm",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Apia",
)
STARTS = (1_711_756_800, 1_729_900_800, 1_712_361_600, 1_728_086_400, 1_325_116_800, 820_450_800)  # near changes of clocks


def window_of(draw, start):
    """A window: an instant, hours, or drained hours; of some jobs, for some time or without an end."""
    begin, end = (
        f"{h:02d}:{m:02d}"
        for h, m in draw.choice([(0, 0), (1, 15), (2, 0), (2, 15), (2, 30), (2, 45), (3, 0), (8, 0), (17, 30), (22, 0), (23, 45)], 2)
    )
    days = tuple(DAYS[k] for k in np.flatnonzero(draw.random(7) < draw.choice([0.3, 1.0]))) or ("sun",)
    since, until = sorted(draw.integers(0, 40 * DAY, 2).tolist())
    return Window(
        begin,
        None if draw.random() < 0.3 else end,
        days=days,
        drain=bool(draw.random() < 0.4),
        longer_than=int(draw.integers(1, 3 * DAY)) if draw.random() < 0.3 else None,
        wider_than=2 if draw.random() < 0.2 else None,
        since=since if draw.random() < 0.3 else None,
        until=until + 1 if draw.random() < 0.3 else None,
    )


def site_of(seed):
    """Jobs and a machine with windows, in some zone."""
    draw = np.random.default_rng(seed)
    count, start = 12, int(draw.choice(STARTS))
    requested = draw.choice([600, 3600, DAY, 3 * DAY, 6 * DAY], count) + draw.integers(0, 9000, count)
    submit = np.sort(draw.integers(0, 20 * DAY, count))
    jobs = wt.Workload.from_arrays(submit=submit, runtime=requested, requested=requested, procs=draw.integers(1, 5, count), machine_procs=4)
    jobs = replace(jobs, origin=replace(jobs.origin, unix_start_time=start, time_zone=str(draw.choice(ZONES))))
    overhead = Overhead(*(int(k) for k in draw.choice([0, 0, 30, 90], 2)), tick=int(draw.choice([1, 1, 10, 7, 3600])))
    windows = tuple(window_of(draw, start) for _ in range(draw.integers(1, 4)))
    clock = int(draw.choice([0, 3600, -18_000])) if draw.random() < 0.2 else None
    machine = Machine((Pool("a", 4, 1),), (Partition("q", ("a",)),), windows=windows, overhead=overhead, clock=clock)
    return draw, jobs, machine


@given(st.integers(0, 10**6))
@examples(150)
def test_shut__is_what_the_engines_are_given(seed):
    draw, jobs, machine = site_of(seed)
    placed, placement = place(jobs, machine)
    seen_jobs, seen = scheduler_view(placed, placement)
    tick, last = machine.overhead.tick, 400 * DAY
    own = SiteWindows(placed, placement, seen_jobs.planned, last)
    near = [time for time in own.changes() if placed.submit[0] <= time <= last][:200]
    moments = np.unique([*draw.integers(0, last, 30), *near, *(time - tick for time in near)]) // tick * tick
    moments = moments[moments >= placed.submit[0]]
    for job in range(len(placed)):
        given = seen.shut(job, int(seen_jobs.planned[job]), moments).tolist()
        assert given == [own.shut(job, moment) for moment in moments.tolist()], job
    changes = {int(time) for hours in seen.windows for side in hours.until(last)[:2] for time in side if time <= last}
    assert changes == {time for time in own.changes() if time <= last}


@given(st.integers(0, 10**6))
@examples(60)
def test_hours__hold_whenever_the_clock_shows_them(seed):
    """Minute by minute, and by nothing but what the clock shows: in its hours on its days a window is shut."""
    draw, jobs, machine = site_of(seed)
    own_window = replace(machine.windows[0], since=None, until=None, longer_than=None, wider_than=None, drain=False, end="23:30")
    machine = replace(machine, windows=(own_window,), overhead=Overhead(), clock=None)
    placed, placement = place(jobs, machine)
    zone, start = placed.origin.tzinfo(), placed.origin.unix_start_time
    for moment in (int(placed.submit[0]) + 60 * draw.integers(0, 60 * 24 * 60, 300)).tolist():
        then = datetime.fromtimestamp(start + moment, zone)
        shown, day = then.strftime("%H:%M"), then.date()
        inside = shown < own_window.end and (
            (shown >= own_window.begin and DAYS[day.weekday()] in own_window.days)
            if own_window.begin < own_window.end
            else DAYS[(day - timedelta(days=1)).weekday()] in own_window.days
        )
        if inside:
            assert placement.shut(0, 60, np.array([moment]))[0], then


@given(st.integers(0, 10**6))
@examples(100)
def test_jobs_that_no_moment_suits__are_the_ones_that_windows_give_way_to(seed):
    """In a week without a change of clocks, each job that the windows hold for may start at some minute of it."""
    _, jobs, machine = site_of(seed)
    windows = tuple(replace(window, since=None, until=None) for window in machine.windows)
    machine = replace(machine, windows=windows, overhead=replace(machine.overhead, tick=1), clock=0)
    placed, placement = place(jobs, machine)
    planned = machine.overhead.occupied(placed.planned)
    week = int(placed.submit[-1]) // 60 * 60 + 60 * np.arange(7 * 24 * 60) - placed.origin.unix_start_time % 60
    outside = 0
    for job in range(len(placed)):
        assert not placement.shut(job, int(planned[job]), week).all(), job
        mine = [
            k
            for k, window in enumerate(windows)
            if placed.requested[job] > (window.longer_than or 0) and placed.procs[job] > (window.wider_than or 0)
        ]
        if len(mine) == len(placement.windows_of[job]):
            continue
        outside += 1
        everything = replace(machine, windows=tuple(windows[k] for k in mine))
        short = replace(placed, planned=np.ones_like(placed.planned), requested=placed.requested)
        hours = place(short, replace(everything, overhead=Overhead()))[1]
        of_all = np.zeros(len(week), bool)
        for one in hours.windows:
            of_all |= one.until(int(week[-1])).shut(week, int(planned[job]))
        assert len(hours.windows) < len(mine) or of_all.all(), "together they leave it no minute"
    assert placed.origin.changed.get("outside_windows", 0) == outside
