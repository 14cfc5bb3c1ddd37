"""Energy of jobs, its cost and its carbon, in `waste`, `report` and `what-if`."""

import json
import math
import re

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.waste_month import BEGIN, month, sacct_text
from walltime.errors import LogError, WorkloadError
from walltime.logs.carbon_file import read_carbon
from walltime.machine import read_machine
from walltime.metrics.energy import NO_ENERGY, Carbon, energy_of
from walltime.usage.records import Power
from walltime.usage.summary import waste
from walltime.whatif import what_if
from walltime.whatif.page import energy_table

JOBS = month(60)
MACHINE = """
policy = "easy"
[[pool]]
name = "c"
nodes = 50
procs = 8
watts = 200
proc_watts = 5
[[pool]]
name = "g"
nodes = 20
procs = 16
gpus = 4
watts = 400
gpu_watts = 300
[[partition]]
name = "main"
pools = ["c"]
[[partition]]
name = "gpu"
pools = ["g"]
"""


@pytest.fixture
def log(tmp_path):
    (tmp_path / "m.toml").write_text(MACHINE)
    (tmp_path / "log").write_text(sacct_text(JOBS))
    return tmp_path / "log"


def by_hand(job):
    """The kWh of a job."""
    if job["joules"] is not None:
        return job["joules"] / 3.6e6
    watts = job["procs"] * 25 + job["gpus"] * 300 if job["gpus"] else job["procs"] * (200 / 8 + 5)
    return watts * job["run"] / 3.6e6


@pytest.mark.slow
def test_energy__recorded_else_from_the_power_of_nodes(log, tmp_path):
    jobs = wt.read(log, procs=720)
    kwh, recorded = energy_of(jobs, read_machine(tmp_path / "m.toml"))
    assert kwh.tolist() == pytest.approx([by_hand(job) for job in JOBS])
    assert recorded.tolist() == [job["joules"] is not None for job in JOBS]
    alone, _ = energy_of(jobs)
    assert np.isnan(alone).tolist() == [job["joules"] is None for job in JOBS]


def test_carbon__follows_the_time_series():
    # a job of 2 h from 10:30: half an hour at 100, one hour at 300, half an hour at 500 g per kWh
    names = wt.workloads.Origin(unix_start_time=BEGIN)
    columns = {"wait": np.array([1800, 0])}
    jobs = wt.Workload.from_arrays(
        submit=[36_000, 90_000], runtime=[7200, 60], procs=[1, 1], machine_procs=2, columns=columns, origin=names
    )
    times = BEGIN + 3600 * np.arange(24)
    grams = np.full(24, 1.0)
    grams[10:13] = 100, 300, 500
    found = Carbon(grams, times).of(jobs, np.array([8.0, 8.0]))
    assert found[0] == pytest.approx(8 * (100 + 2 * 300 + 500) / 4)
    assert np.isnan(found[1])
    assert Carbon.constant(50).of(jobs, np.array([8.0, 8.0])).tolist() == [400, 400]
    plain = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    with pytest.raises(WorkloadError) as caught:
        Carbon(grams, times).of(plain, np.ones(1))
    assert caught.value.code == "starts_unknown"
    with pytest.raises(WorkloadError) as caught:
        what_if(plain, None, ["nodes+=10%"], carbon=Carbon(grams, times))
    assert caught.value.code == "starts_unknown"


@pytest.mark.slow
def test_groups__have_their_energy(log, tmp_path):
    found = waste(wt.read(log, procs=720), power=Power(read_machine(tmp_path / "m.toml"), 0.5, Carbon.constant(400)))
    assert found.energy == pytest.approx(sum(map(by_hand, JOBS)))
    for group in found.groups["user"]:
        own = sum(by_hand(job) for job in JOBS if job["user"] == group.group)
        assert (group.energy, group.grams) == (pytest.approx(own), pytest.approx(400 * own))
    record = found.as_dict()
    assert record["energy_cost"] == pytest.approx(found.energy / 2)
    assert record["grams"] == pytest.approx(400 * found.energy)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("time,carbon\n1,2\n", "missing_column"),
        ("time,grams\n1,2\n", "not_ascending"),
        ("time,grams\n5,2\n1,2\n", "not_ascending"),
        ("time,grams\nnoon,2\n", "not_a_number"),
        ("time,grams\n1,-2\n", "not_a_number"),
    ],
)
def test_bad_series(tmp_path, text, code):
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(LogError) as caught:
        read_carbon(tmp_path / "c.csv", wt.workloads.Origin().tzinfo())
    assert caught.value.code == code


@pytest.mark.slow
def test_commands(golden, log, tmp_path, capsys):
    series = "".join(
        f"2026-{month:02d}-{day:02d}T{hour:02d}:00,{100 + hour}\n" for month in (3,) for day in range(1, 32) for hour in range(24)
    )
    (tmp_path / "c.csv").write_text("time,grams\n" + series)
    options = ("--machine", tmp_path / "m.toml", "--kwh-price", 0.3, "--carbon-file", tmp_path / "c.csv")
    status, out, err = call(capsys, "waste", log, *options, "--by", "user")
    assert status == 0, err
    golden("waste", out[out.index("Energy by user") :])
    record = json.loads(call(capsys, "waste", log, *options, "--json", "--metrics", tmp_path / "m.prom")[1])
    assert record["energy_kwh"] == pytest.approx(sum(map(by_hand, JOBS)))
    assert 100 * record["energy_kwh"] < record["grams"] < 123 * record["energy_kwh"]
    assert "walltime_waste_energy_kwh " in (tmp_path / "m.prom").read_text()
    period = ("--window", "2026-03-02:2026-03-04")
    record = json.loads(call(capsys, "report", log, *options, *period, "--json")[1])
    begin, end = BEGIN + 86_400, BEGIN + 3 * 86_400
    expected = sum(by_hand(job) for job in JOBS if begin <= job["start"] + job["run"] < end)
    assert record["waste"]["energy_kwh"] == pytest.approx(expected)
    assert "kWh" in call(capsys, "report", log, *options, *period, "--verbose")[1]
    assert "cannot be combined" in one_line(*call(capsys, "waste", log, *options, "--carbon", 5))


def test_what_if__shows_the_energy_of_each_change(log, tmp_path):
    jobs = wt.read(log, procs=720)
    found = what_if(jobs, read_machine(tmp_path / "m.toml"), ["requests.procs*=0.5", "nodes+=10%"], replications=0, trim="none")
    halved, nodes = (one.cost.energy for one in found.effects)
    assert found.cost.energy == pytest.approx(sum(map(by_hand, JOBS)), rel=1e-3)
    assert nodes == pytest.approx(found.cost.energy)
    assert halved < found.cost.energy
    assert math.isnan(found.cost.energy_cost)
    assert math.isnan(found.cost.grams)


def test_what_if__shows_the_cost_and_the_carbon_of_each_change(log, tmp_path):
    # with fewer nodes the jobs run later, at other grams per kWh; the series ends before the last of them
    jobs = wt.read(log, procs=720)
    times = BEGIN + 3600 * np.arange(110)
    grams = 100.0 + np.arange(110) % 24
    machine = read_machine(tmp_path / "m.toml")
    found = what_if(jobs, machine, ["pool.c.nodes=2"], replications=0, trim="none", kwh_price=0.3, carbon=Carbon(grams, times))
    assert found.today.wait.max() == 0 < found.effects[0].schedule.wait.max()
    for cost, schedule in ((found.cost, found.today), (found.effects[0].cost, found.effects[0].schedule)):
        assert cost.energy_cost == pytest.approx(0.3 * cost.energy)
        expected, uncovered = 0.0, 0
        for job, start, run in zip(schedule.workload.job_id.tolist(), schedule.start.tolist(), schedule.runtime.tolist(), strict=True):
            begin = jobs.origin.unix_start_time + start - BEGIN
            if begin + run > 110 * 3600:
                uncovered += 1
            else:
                hours = range(begin // 3600, (begin + run - 1) // 3600 + 1)
                inside = sum((min(begin + run, (h + 1) * 3600) - max(begin, h * 3600)) * (100 + h % 24) for h in hours)
                expected += by_hand(JOBS[job - 1]) * inside / run
        assert cost.grams == pytest.approx(expected)
        assert cost.uncovered_jobs == uncovered
    assert found.effects[0].cost.grams != found.cost.grams
    assert found.effects[0].cost.uncovered_jobs > 0
    assert found.rows()[1]["grams"] == found.effects[0].cost.grams


def test_what_if__intervals_of_energy(tmp_path):
    (tmp_path / "m.toml").write_text(MACHINE)
    machine, rng, count = read_machine(tmp_path / "m.toml"), np.random.default_rng(1), 600
    submit = np.arange(count) * 25 * 7 * 86_400 // count

    def found(procs, submit=submit):
        runtime = rng.integers(600, 7200, count)
        jobs = wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=runtime, procs=procs, machine_procs=720)
        changes = ["requests.procs*=0.5", "nodes+=10%"]
        return what_if(jobs, machine, changes, replications=0, trim="none", kwh_price=0.3, carbon=Carbon.constant(400))

    # all jobs use half the energy, in every week alike
    even = found(np.full(count, 4))
    halved, nodes = (one.cost for one in even.effects)
    assert (halved.energy_low, halved.energy_high) == pytest.approx((-even.cost.energy / 2,) * 2)
    assert (nodes.energy_low, nodes.energy_high) == (0, 0)
    assert math.isnan(even.cost.energy_low)
    # jobs on one processor keep it, and weeks differ in their share
    mixed = found(np.where(rng.random(count) < 0.5, 1, 4))
    halved = mixed.effects[0].cost
    difference = halved.energy - mixed.cost.energy
    assert mixed.cost.energy * -0.5 < halved.energy_low < difference < halved.energy_high < 0
    (low, high), costs, grams = halved.energy_spans
    assert costs == pytest.approx((0.3 * low, 0.3 * high))
    assert grams == pytest.approx((400 * low, 400 * high))
    assert mixed.rows()[1]["grams_low"] == halved.grams_low
    small = energy_table(mixed).rows[1][1].small
    assert small == [f"{difference:+,.1f}", f"{low:+,.1f} to {high:+,.1f}"]
    assert "interval under sampling of weeks" in energy_table(mixed).note
    # 20 weeks are needed
    short = found(np.full(count, 4), submit // 2)
    assert math.isnan(short.effects[0].cost.energy_low)
    assert len(energy_table(short).rows[1][1].small) == 1
    assert "withheld" in energy_table(short).note


@pytest.mark.slow
def test_what_if__command(golden, log, tmp_path, capsys):
    options = ("--machine", tmp_path / "m.toml", "--change", "requests.procs*=0.5", "--replications", 0, "--trim", "none")
    prices = ("--kwh-price", 0.3, "--carbon", 250)
    status, out, err = call(capsys, "what-if", log, *options, *prices)
    assert status == 0, err
    table = out[out.index("Energy of the jobs") :]
    golden("what-if", table[: table.index("\n\n")])
    page = tmp_path / "what-if.html"
    record = json.loads(call(capsys, "what-if", log, *options, *prices, "--json", "--report", page)[1])
    after = record["effects"][0]["cost"]
    assert (after["grams"], after["energy_cost"]) == (pytest.approx(250 * after["energy"]), pytest.approx(0.3 * after["energy"]))
    assert "Energy of the jobs" in page.read_text()


@pytest.mark.slow
def test_unknown_energy__is_noted(log, tmp_path, capsys):
    (tmp_path / "plain").write_text(sacct_text([job | {"joules": None} for job in JOBS]))
    (tmp_path / "m.toml").write_text(re.sub(r"\w*watts = \d+\n", "", MACHINE))
    price = ("--machine", tmp_path / "m.toml", "--kwh-price", 1)
    assert NO_ENERGY in " ".join(call(capsys, "waste", tmp_path / "plain", *price)[1].split())
    change = ("--change", "nodes+=10%", "--replications", 0)
    assert NO_ENERGY in " ".join(call(capsys, "what-if", tmp_path / "plain", *price, *change)[1].split())
    period = ("--window", "2026-03-02:2026-03-04", "--verbose")
    assert NO_ENERGY in " ".join(call(capsys, "report", tmp_path / "plain", *price, *period)[1].split())
