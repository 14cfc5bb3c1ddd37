"""Windows hold for ever: on both engines, stepped through, copied, and given further jobs; and the auditor, by itself, agrees."""

import random
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.oracle.test_stepping_machines import columns_of, seen, step_about
from tests.profiles import scaled
from tests.strategies import by_the_clock
from walltime.engine.interface import agenda
from walltime.errors import EngineError
from walltime.machine import Limit, Machine, Outage, Overhead, Partition, Pool, Window, read_machine, windows
from walltime.machine.tables import DAYS
from walltime.workload import Origin, Workload

HOUR, DAY = 3600, 86_400
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri")
POLICIES = (
    wt.Easy(order=by_the_clock),
    "fcfs",
    "easy",
    "easy:order=wfp",
    "easy:order=lxf,backfill-order=sjf",
    "hybrid:depth=2",
    "conservative",
    "conservative-scratch",
)
WINDOWS = (
    Window("08:00", days=WEEKDAYS),
    Window("17:00", days=WEEKDAYS),
    Window("08:00", "17:00", days=WEEKDAYS, longer_than=4 * HOUR),
    Window("22:00", "06:00", drain=True, wider_than=1),
    Window("00:00", "24:00", days=("sat", "sun"), partition="two"),
    Window("12:00", "13:00", since=9 * DAY, until=30 * DAY),
    Window("02:30", "03:30", drain=True),
)


def case_of(seed, days=100, jobs=14):
    """Few jobs that work for many days, on few processors, so that the last start long after the last submission."""
    draw = random.Random(f"windows {seed}")
    length = max(days * DAY // jobs, 4 * HOUR)
    rows = []
    for _ in range(jobs):
        requested = draw.choice((HOUR, 5 * HOUR, 14 * HOUR, 30 * HOUR, 70 * HOUR, length))
        runtime = max(requested - draw.choice((0, 0, 60, HOUR, 20 * HOUR)), 0)
        rows.append((draw.randrange(5 * DAY), runtime, requested, draw.choice((1, 1, 2)), draw.randint(1, 2), draw.randint(1, 2)))
    submit, runtime, requested, procs, partition, user = map(list, zip(*sorted(rows), strict=True))
    columns = {"partition": np.array(partition), "user": np.array(user)}
    origin = Origin("log", unix_start_time=1_729_000_000, time_zone="Europe/Stockholm", names={"partition": ("one", "two")})
    workload = Workload.from_arrays(
        submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=3, columns=columns, origin=origin
    )
    outages = (Outage("a", 2 * DAY, 3 * DAY, 1, announced=DAY), Outage("b", 70 * DAY, 71 * DAY))
    machine = Machine(
        (Pool("a", 2, 1), Pool("b", 2, 1)),
        (Partition("one", ("a",)), Partition("two", ("a", "b"), tier=draw.choice((0, 1)))),
        outages=outages if draw.random() < 0.4 else (),
        limits=(Limit(("user",), jobs=2),) if draw.random() < 0.4 else (),
        windows=tuple(draw.sample(WINDOWS, draw.randint(1, 4))),
        overhead=Overhead(start=draw.choice((0, 40)), tick=draw.choice((1, 60))),
    )
    policy = draw.choice(POLICIES) if draw.random() < 0.8 else "easy:predictor=tsafrir07"
    return draw, workload, machine, policy


@pytest.fixture(autouse=True)
def little_ahead(monkeypatch):
    """So little is known ahead that all engines must look further, again and again."""
    monkeypatch.setattr(windows, "ROOM", DAY)
    monkeypatch.setattr(agenda, "AHEAD", DAY)


@pytest.mark.slow
def test_windows__engines_and_auditor_agree_until_the_last_start():
    late = 0
    for seed in range(max(5, scaled(100))):
        _, workload, machine, policy = case_of(seed)
        compiled = wt.simulate(workload, policy, machine=machine)
        plain = wt.simulate(workload, policy, machine=machine, engine="reference")
        assert columns_of(compiled) == columns_of(plain), f"seed {seed}"
        assert not compiled.audit().violations, f"seed {seed}"
        late += int(compiled.start.max()) > int(workload.submit[-1]) + 20 * DAY
    assert late, "some start long after the last submission"


def test_windows__hold_however_it_is_stepped_through_copied_and_submitted_to():
    for seed in range(scaled(40)):
        draw, workload, machine, policy = case_of(f"stepped {seed}")
        expected = columns_of(wt.simulate(workload, policy, machine=machine))
        simulations = [wt.Simulation(workload, policy, machine=machine)]
        slow = wt.Simulation(workload, policy, machine=machine, engine="reference")
        for _ in range(draw.randrange(20)):
            chosen = draw.choice(simulations)
            if draw.random() < 0.3:
                simulations.append(chosen.copy())
            elif draw.random() < 0.5:
                step_about(draw, chosen, 3)
            else:
                chosen.run_until(chosen.now + draw.choice((HOUR, DAY, 9 * DAY, 50 * DAY)))
        simulations[0].run_until(simulations[0].now)  # all rounds of the instant
        slow.run_until(simulations[0].now)
        assert seen(slow) == seen(simulations[0]), f"seed {seed}"
        assert columns_of(simulations[0].copy().finish()) == expected, f"seed {seed}"
        for one in simulations:
            if draw.random() < 0.5:
                job = {"runtime": draw.choice((HOUR, 14 * HOUR)), "procs": draw.randint(1, 2), "partition": draw.randint(1, 2), "user": 1}
                one.submit({"submit": one.now + draw.choice((1, DAY)), **job})
            again = wt.simulate(one.workload, policy, machine=machine)
            assert columns_of(one.finish()) == columns_of(again), f"seed {seed}"


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_windows__where_capacity_never_comes_back_jobs_wait_for_ever(engine):
    """After the outage begins nothing can run, and windows alone are no reason to go on."""
    _, workload, _, _ = case_of(0)
    machine = Machine(
        (Pool("a", 3, 1),), (Partition("one", ("a",)), Partition("two", ("a",))), (Outage("a", 6 * DAY),), windows=WINDOWS[:2]
    )
    with raises(EngineError, "endless_wait"):
        wt.simulate(workload, "easy", machine=machine, engine=engine)
    simulation = wt.Simulation(workload, "easy", machine=machine, engine="auto" if engine == "kernel" else engine)
    simulation.run_until(10**9)
    waiting = simulation.state().queue
    assert len(waiting)
    assert not simulation.done
    with raises(EngineError, "endless_wait"):
        simulation.finish()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_windows__after_an_idle_year_a_job_still_waits_for_its_hours(engine):
    """An outage takes the machine for over a year: who waited for it starts when the windows open, not when it ends."""
    origin = Origin("log", unix_start_time=4 * DAY)  # a Monday
    workload = Workload.from_arrays(submit=[0], runtime=[HOUR], requested=[HOUR], procs=[1], machine_procs=1, origin=origin)
    machine = Machine(
        (Pool("a", 1, 1),), (Partition("q", ("a",)),), (Outage("a", 0, 700 * DAY),), windows=(Window("00:00", "17:00"),), clock=0
    )
    schedule = wt.simulate(workload, "easy", machine=machine, engine=engine)
    assert schedule.start.tolist() == [700 * DAY + 17 * HOUR]
    assert schedule.audit().ok


def test_windows__that_begin_years_later_are_not_missed():
    origin = Origin("log", unix_start_time=4 * DAY)
    workload = Workload.from_arrays(
        submit=[0, 1], runtime=[2000 * DAY, 60], requested=[2000 * DAY, 60], procs=[1, 1], machine_procs=1, origin=origin
    )
    later = Window("00:00", "12:00", since=1900 * DAY)
    machine = Machine((Pool("a", 1, 1),), (Partition("q", ("a",)),), windows=(later,), clock=0)
    schedule = wt.simulate(workload, "easy", machine=machine)
    assert schedule.start.tolist() == [0, 2000 * DAY + 12 * HOUR]
    assert schedule.audit().ok


@pytest.mark.slow
def test_order_by_the_clock__knows_it_however_long_windows_keep_jobs_waiting():
    """One job starts each Monday, for a year and a half after the last submission; which one is said by the hour, with its summer time."""
    origin = Origin("log", unix_start_time=1_729_000_000, time_zone="Europe/Stockholm")
    count = 80
    workload = Workload.from_arrays(
        submit=[0] * count, runtime=[60] * count, requested=[HOUR] * count, procs=[3, 4] * (count // 2), machine_procs=4, origin=origin
    )
    days = tuple(day for day in DAYS if day != "mon")
    weekly = Window("09:00", days=("mon",)), Window("00:00", "24:00", days=days), Window("09:05", "24:00", days=("mon",))
    machine = Machine((Pool("a", 4, 1),), (Partition("q", ("a",)),), windows=weekly, overhead=Overhead(end=DAY))
    schedule = wt.simulate(workload, wt.NoBackfilling(order=by_the_clock), machine=machine)
    plain = wt.simulate(workload, wt.NoBackfilling(order=by_the_clock), machine=machine, engine="reference")
    assert schedule.start.tolist() == plain.start.tolist()
    assert schedule.start.max() > 500 * DAY
    assert len({(time + origin.unix_start_time) % DAY for time in schedule.start.tolist()}) >= 2, "summer and winter"


def test_explanation_and_start_times__go_by_windows_after_any_time(golden):
    origin = Origin("log", unix_start_time=4 * DAY)
    count = 90
    workload = Workload.from_arrays(
        submit=[0] * count, runtime=[20 * HOUR] * count, requested=[20 * HOUR] * count, procs=[1] * count, machine_procs=1, origin=origin
    )
    machine = Machine((Pool("a", 1, 1),), (Partition("q", ("a",)),), windows=(Window("00:00", "12:00"),), clock=0)
    schedule = wt.simulate(workload, "easy", machine=machine)
    assert (schedule.start % DAY >= 12 * HOUR).all()
    assert schedule.start[-1] > 80 * DAY
    golden("simulate", str(wt.explain(schedule, count, sooner=False)))
    assert replace(schedule).audit().ok


@pytest.mark.parametrize("policy", ["easy", "conservative", "conservative-scratch"])
def test_outages_limits_and_holds__have_no_end_of_sight_either(policy, tmp_path):
    """Twenty years after the last submission an outage is still planned for, a limit counts, and a job is still held."""
    far = 7300 * DAY
    (tmp_path / "held.csv").write_text(f"job_id,held\n4,{far + 4}\n")
    site = f"""
eligible = "held.csv"
[overhead]
tick = 10
[[pool]]
name = "a"
nodes = 2
procs = 1
[[partition]]
name = "q"
pools = ["a"]
[[limit]]
by = "user"
jobs = 1
[[outage]]
pool = "a"
announced = 0
begin = {far + 100}
end = {far + 200}
"""
    (tmp_path / "site.toml").write_text(site)
    length = [far, 30, 120, 60]
    workload = Workload.from_arrays(
        submit=[0, 1, 2, 3], runtime=length, requested=length, procs=[2, 1, 1, 1], machine_procs=2, columns={"user": [1, 2, 3, 2]}
    )
    machine = read_machine(tmp_path / "site.toml")
    for engine in ("kernel", "reference"):
        schedule = wt.simulate(workload, policy, machine=machine, engine=engine)
        assert (schedule.start - far).tolist() == [-far, 0, 200, 30], engine
        assert schedule.audit().ok
