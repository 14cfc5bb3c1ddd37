"""Campaigns on machines of several pools: each cell equals the simulation, and keys follow the machine, not the name of its file."""

import json

import polars as pl
import pytest

import walltime as wt
from tests.cli import call, one_line
from walltime.campaign import read_plan, run_campaign
from walltime.campaign.run import plan_keys
from walltime.comparison.cell_caveats import left_out_cells
from walltime.machine import read_machine
from walltime.workload.drops import shares_of
from walltime.workload.models import parse_model

PLAN = """
[campaign]
groups = ["class"]
[fixed]
model = "lublin99"
jobs = 300
procs = 64
load = 0.8
[grid]
machine = ["default", "small.toml", "nodes.toml"]
policy = ["easy", "conservative", "easy:predictor=user"]
"""
MACHINE = """
[[pool]]
name = "all"
nodes = {nodes}
procs = 8
[[partition]]
name = "all"
pools = ["all"]
"""


@pytest.fixture
def plan(tmp_path):
    for name, nodes in (("small", 4), ("nodes", 8)):
        (tmp_path / f"{name}.toml").write_text(MACHINE.format(nodes=nodes))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


@pytest.mark.slow
def test_cells__equal_the_simulation(plan):
    run_campaign(read_plan(plan))
    table = wt.campaign.Store(read_plan(plan).store).table()
    assert len(table) == 9
    workload = parse_model("lublin99").generate(300, 64, 0.8, 0)
    for row in table.iter_rows(named=True):
        machine = None if row["machine"] is None else read_machine(plan.parent / row["machine"])
        schedule = wt.simulate(workload, row["policy"], machine=machine)
        summary = schedule.summary()
        assert row["procs"] == schedule.workload.machine_procs
        assert (row["left_out_jobs"], row["left_out_work"]) == shares_of(schedule.workload.origin.drops)
        for name in ("jobs", "mean_wait", "utilization", "mean_bounded_slowdown", "offered_load"):
            assert row[name] == pytest.approx(getattr(summary, name)), (row["machine"], row["policy"], name)
    whole = {row["policy"]: row["mean_wait"] for row in table.iter_rows(named=True) if row["machine"] is None}
    nodes = {row["policy"]: row["mean_wait"] for row in table.iter_rows(named=True) if row["machine"] == "nodes.toml"}
    assert whole == nodes, "one pool is a number of processors"
    assert len(left_out_cells(table)) == 1, "wide jobs do not fit the small machine"


@pytest.mark.slow
def test_keys__follow_the_machine(plan):
    before = plan_keys(read_plan(plan))
    assert len(set(before)) == 9
    (plan.parent / "small.toml").write_text("# The same.\n" + MACHINE.format(nodes=4))
    assert plan_keys(read_plan(plan)) == before
    (plan.parent / "small.toml").write_text(MACHINE.format(nodes=5))
    assert len(set(plan_keys(read_plan(plan))) - set(before)) == 3
    plan.write_text(PLAN.replace('machine = ["default", "small.toml", "nodes.toml"]\n', ""))
    assert set(plan_keys(read_plan(plan))) < set(before), "without a machine the keys are what they were"


def test_simulate_many__on_a_machine(plan):
    workload = parse_model("lublin99").generate(200, 64, 0.8, 1)
    machine = read_machine(plan.parent / "nodes.toml")
    batch = wt.simulate_many(
        workload,
        [wt.simulation.Case("easy"), wt.simulation.Case("fcfs"), wt.simulation.Case("easy", wt.estimates.FModel(4), 3)],
        machine=machine,
    )
    plain = wt.simulate_many(
        workload, [wt.simulation.Case("easy"), wt.simulation.Case("fcfs"), wt.simulation.Case("easy", wt.estimates.FModel(4), 3)]
    )
    assert batch.values("mean_wait").tolist() == plain.values("mean_wait").tolist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"small.toml"', '"none.toml"'),
        ('groups = ["class"]', "dynamics = true"),
        (
            "procs = 64",
            'procs = 64\ncoincident = "sequential"',
        ),
    ],
)
def test_bad_plans__one_line(golden, capsys, plan, old, new):
    plan.write_text(PLAN.replace(old, new))
    golden("campaign", one_line(*call(capsys, "campaign", "run", plan)))


def test_left_out__of_the_runs_begins_the_caveats():
    cells = pl.DataFrame({"left_out_jobs": [0.0, 0.5, 0.1], "left_out_work": [0.0, 0.61, 0.04]})
    (told,) = left_out_cells(cells)
    assert "2 of 3 runs" in told
    assert "61 %" in told
    assert left_out_cells(cells.tail(1)) == []
    assert "1 of 1 runs, up to 10 %" in left_out_cells(cells.tail(1), 0)[0]
    assert left_out_cells(cells.head(1), 0) == left_out_cells(cells.head(1)) == left_out_cells(cells.drop("left_out_work")) == []


@pytest.mark.slow
def test_run__prints_what_is_left_out(capsys, plan):
    plan.write_text('[fixed]\nmodel = "lublin99"\njobs = 300\nprocs = 64\nmachine = "small.toml"\n[grid]\npolicy = ["fcfs", "easy"]\n')
    status, out, err = call(capsys, "campaign", "run", plan)
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[0].startswith("In 2 of 2 runs, up to "), "over 5 % of the work"
    (rule,) = [line for line in lines if "Left out: " in line]
    assert rule.startswith("lublin99: Left out: ")
    assert rule.endswith("of the work): too wide for partition")
    assert call(capsys, "campaign", "run", plan)[1].splitlines()[0] == lines[0], "so does a run that finds all cells done"
    record = json.loads(call(capsys, "campaign", "run", plan, "--json")[1])
    (drop,) = record["left_out"]["lublin99"]
    assert (drop["rule"], drop["of_jobs"]) == ("too_wide_for_partition", 300)
    assert drop["share_of_work"] > 0.05
    assert rule in call(capsys, "campaign", "report", plan)[1]
