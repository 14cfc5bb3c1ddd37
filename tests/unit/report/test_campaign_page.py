"""The page of a campaign, its figures, and the names and the order of what it shows."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.unit.report.test_report import Page
from walltime.campaign import CombinationMean, campaign_page, compare_cells, read_plan, read_results, run_campaign
from walltime.comparison.combinations import combination_text, positions, swept
from walltime.comparison.measures import measure
from walltime.comparison.runs import answer, difference_cell, mean_cell
from walltime.comparison.sweeps import sweep_figure
from walltime.report import write_page
from walltime.schedule.groups import group_jobs, group_rank

PLAN = """
[campaign]
name = "a <campaign>"
seeds = 4
groups = ["class", "weekday"]
[fixed]
model = "lublin99"
jobs = 250
procs = 64
[grid]
load = [0.5, 0.7, 0.9]
policy = ["easy", "conservative", "easy:backfill-order=orders.py:narrow"]
"""
ORDERS = "import walltime as wt\n\n\n@wt.order\ndef narrow(procs):\n    return procs\n"


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "orders.py").write_text(ORDERS)
    path = folder / "plan.toml"
    path.write_text(PLAN)
    run_campaign(read_plan(path, own=[folder / "orders.py"]))
    return path


def by_hand(**values: list[float]) -> list[CombinationMean]:
    """Lines of mean waits with these values for seeds 0, 1, 2, one list for each policy; the first is the baseline."""
    rows = [{"policy": name, "seed": k, "mean_wait": float(wait)} for name, waits in values.items() for k, wait in enumerate(waits)]
    return compare_cells(pl.DataFrame(rows), ["policy"], metrics=["mean_wait"], baseline={"policy": next(iter(values))})


def test_lines__worked_by_hand(golden):
    """t of 2 degrees of freedom at 95 % is 2.919986; means 12 and 14, paired differences 3, 1, 2; or 3, -1, 1."""
    conservative, easy = by_hand(easy=[10, 12, 14], conservative=[13, 13, 16])
    assert easy.interval is not None
    assert conservative.difference is not None
    assert (easy.band.mean, conservative.band.mean) == (12, 14)
    assert easy.interval.half_width == pytest.approx(2.919986 * 2 / np.sqrt(3), rel=1e-6)
    assert conservative.difference.mean == 2
    assert conservative.difference.half_width == pytest.approx(2.919986 * 1 / np.sqrt(3), rel=1e-6)
    assert (conservative.clear, easy.clear) == (True, None)
    shown = measure("mean_wait")
    assert mean_cell(easy, shown).words == "12 s (± 3.4 s)"
    assert difference_cell(conservative, shown).words == "+2 s (± 1.7 s)"
    golden("campaign", answer([easy, conservative], {"policy": "easy"}, "log"))
    further = replace(conservative, combination={"policy": "fcfs"})
    golden("campaign", answer([easy, conservative, further], {"policy": "easy"}, "log"))
    loads = [replace(conservative, combination={"load": load, "policy": "conservative"}) for load in (0.6, 0.8, 0.9)]
    loads[2] = replace(loads[2], probability=0.2)
    told = answer(loads, {"policy": "easy"}, "log")
    golden("campaign", told)
    unclear, _ = by_hand(easy=[10, 12, 14], conservative=[13, 11, 15])
    assert unclear.clear is False
    assert difference_cell(unclear, shown).words == "no clear difference (+1 s ± 3.4 s)"


@pytest.mark.parametrize(
    "by", ["class", "size", "length", "size-length", "weekday", "hour", "hour-of-week", "month", "user", "users", "queue"]
)
def test_groups__come_in_the_order_of_the_breakdowns(by):
    rng = np.random.default_rng(3)
    n = 900
    columns = {name: rng.integers(-1, 14, n) for name in ("user", "queue")}
    jobs = wt.Workload.from_arrays(
        submit=np.sort(rng.integers(0, 90 * 86_400, n)),
        runtime=rng.integers(1, 9000, n),
        requested=rng.choice([300, 1800, 7200, 20_000, 50_000, 200_000], n),
        procs=rng.choice([1, 2, 3, 7, 12, 30, 64, 100], n),
        machine_procs=128,
        columns=columns,
        origin=wt.workload.Origin(unix_start_time=843480031, time_zone="Europe/Stockholm"),
    )
    names = list(group_jobs(jobs, by, jobs.submit, jobs.submit + jobs.runtime).names)
    if by == "users":  # the names do not say how much a user asks for
        names = [*sorted(names[:-2], key=lambda name: int(name.split()[1])), *names[-2:]]
    assert sorted(sorted(names), key=lambda name: group_rank(by, name)) == names


@pytest.mark.slow
def test_report__groups_in_their_order_and_files_as_spelled(capsys, plan):
    status, out, _ = call(capsys, "campaign", "report", plan, "--by", "class", "--metric", "mean_wait", "--json")
    found = json.loads(out)
    assert status == 0
    assert list(dict.fromkeys(line["group"] for line in found["lines"])) == ["short narrow", "short wide", "long narrow", "long wide"]
    assert {line["policy"] for line in found["lines"]} == {"easy", "conservative", "easy:backfill-order=orders.py:narrow"}
    spelled = ("--baseline", "policy=easy:backfill-order=orders.py:narrow")
    assert call(capsys, "campaign", "report", plan, *spelled)[0] == 0
    assert str(plan.parent) not in call(capsys, "campaign", "report", plan)[1]
    assert "easy:backfill-order=orders.py:narrow" in wt.campaign.Store(plan.parent / "plan.results")._repr_html_()


@pytest.mark.slow
def test_report__labels_do_not_orphan_cells_of_a_store_that_was_moved(capsys, plan, tmp_path):
    for name in ("orders.py", "plan.toml"):
        (tmp_path / name).write_bytes((plan.parent / name).read_bytes())
    results = read_results(read_plan(tmp_path / "plan.toml", run_files=False), wt.campaign.Store(plan.parent / "plan.results"))
    assert results.missing == []
    assert set(results.cells["policy"]) == {"easy", "conservative", "easy:backfill-order=orders.py:narrow"}


@pytest.mark.slow
def test_page__is_whole_and_says_what_was_run(capsys, plan, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    monkeypatch.setattr(sys, "argv", ["walltime", "campaign", "report", str(plan), "--report", str(path)])
    status, out, _ = call(capsys, "campaign", "report", plan, "--report", path)
    assert status == 0
    assert f"report written to {path}" in out.replace("\n", "")
    page = path.read_text()
    found = Page(page)
    assert len(found.ids) == len(set(found.ids))
    assert "://" not in page
    assert "a &lt;campaign&gt;" in page
    assert "<campaign>" not in page
    for words in (
        "36 of 36",
        "The plan",
        "Command to reproduce this page",
        "Over the load",
        "90 % confidence",
        "By groups of jobs",
        "Caveats",
    ):
        assert words in page, words
    assert "--report" in page
    assert "orders.py:narrow" in page
    images = [value for name, value in found.attributes if name == "aria-label"]
    assert sum("Curves of the mean wait over the load" in image for image in images) == 2  # the first screen's, once for telephones
    again = tmp_path / "again.html"
    write_page(
        again,
        campaign_page(
            read_results(read_plan(plan, run_files=False)), command=["walltime", "campaign", "report", str(plan), "--report", str(path)]
        ),
    )
    assert again.read_text() == page, "the same from Python, to the byte"


@pytest.mark.slow
def test_page__counts_what_is_missing(capsys, plan, tmp_path):
    more = plan.with_name("more.toml")
    more.write_text(PLAN.replace("seeds = 4", 'seeds = 6\nstore = "plan.results"'))
    path = tmp_path / "page.html"
    assert call(capsys, "campaign", "report", more, "--report", path)[0] == 0
    page = path.read_text()
    assert "18 of 54" in page
    assert "Missing cells" in page
    assert page.count("<td>2</td></tr>") == 9, "two seeds of each combination"


@pytest.mark.slow
def test_page__of_a_campaign_without_a_swept_parameter(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace("load = [0.5, 0.7, 0.9]", "load = [0.7]").replace(', "easy:backfill-order=orders.py:narrow"', ""))
    plan = read_plan(path)
    run_campaign(plan)
    page = write_page(tmp_path / "page.html", campaign_page(read_results(plan))).read_text()
    assert page.index("Bars: 90 % confidence intervals") < page.index("The numbers"), "the means are the picture of the first screen"
    assert "Over the" not in page
    assert "Bars: 90 % confidence intervals" in page


@pytest.mark.slow
def test_page__refuses_a_file_of_another_kind_and_a_campaign_that_was_not_run(capsys, plan, tmp_path):
    assert ".html" in one_line(*call(capsys, "campaign", "report", plan, "--report", tmp_path / "page.txt"))
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace("orders.py", str(plan.parent / "orders.py")))
    with raises(wt.errors.OutputError, "no_results"):
        campaign_page(read_results(read_plan(path, run_files=False)))


# ------------------------------------------------------------------------------------------------------------- figures


def line(mean: float, **combination: object) -> CombinationMean:
    interval = wt.metrics.Interval(mean, mean - 1, mean + 1, "")
    return CombinationMean(combination, None, "mean_wait", 3, interval, 0.1, None, interval)


def test_positions__of_numbers_and_of_families_of_estimates():
    loads = [line(1, load=value) for value in (None, 0.5, 0.75)]
    assert positions(loads, "load") == ("load", {0.5: 0.5, 0.75: 0.75})
    models = [line(1, estimates=value) for value in ("user", "f:1", "f:4", "f:11", "badness:3")]
    assert positions(models, "estimates") == ("estimates f:N", {"f:1": 1.0, "f:4": 4.0, "f:11": 11.0})
    assert positions(models[:3], "estimates")[1] == {}
    assert (
        combination_text({"load": None, "policy": "easy", "feedback": True}, ["load", "policy", "feedback"])
        == "load default, easy, feedback"
    )


def test_swept__needs_two_numbers_while_all_else_stays_the_same():
    paired = [line(1, trace="a", procs=100), line(2, trace="b", procs=512)]
    assert swept(paired) == []
    assert swept([*paired, line(3, trace="a", procs=200)]) == ["procs"]


def test_sweep__draws_means_bands_and_levels():
    lines = [line(3600.0 * k, load=load, policy=name) for k, name in ((1, "easy"), (2, "fcfs")) for load in (0.5, 0.9)]
    axes = wt.figures.sweep(lines)
    drawn = {one.get_label(): one for one in axes.lines}
    assert np.asarray(drawn["easy"].get_ydata()).tolist() == [1, 1], "in hours"
    assert np.asarray(drawn["fcfs"].get_xdata()).tolist() == [0.5, 0.9]
    assert len(axes.collections) == 2
    assert axes.get_ylabel() == "mean wait (h)"
    [low, high] = sorted({round(float(y), 6) for y in axes.collections[0].get_paths()[0].vertices[:, 1]})
    assert (low, high) == (round(3599 / 3600, 6), round(3601 / 3600, 6))
    one = wt.figures.sweep(lines, where={"policy": "easy"}, ax=(given := Figure().subplots()))
    assert one is given
    assert len(one.lines) == 1
    beside = [line(10.0 * k, estimates=f"f:{k}") for k in (1, 4, 8)] + [line(70, estimates="user")]
    axes = wt.figures.sweep(beside)
    assert [np.unique(np.asarray(one.get_ydata())).tolist() for one in axes.lines] == [[10, 40, 80], [70]]


def test_sweep_figure__has_a_panel_for_each_log():
    lines = [line(1.0, trace=trace, load=load, policy=p) for trace in "abcd" for load in (0.5, 0.9) for p in ("easy", "fcfs")]
    figure, left_out = sweep_figure(lines, "load")
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()] == list("abcd")
    assert left_out == 0


def test_intervals__of_lines_results_and_replications(plan):
    axes = wt.figures.intervals([line(1.0, policy="easy"), line(2.0, policy="fcfs")])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["easy", "fcfs"]
    results = read_results(read_plan(plan, run_files=False))
    assert len(wt.figures.intervals(results, "mean_response", where={"load": 0.7}).get_yticks()) == 3
    assert len(wt.figures.sweep(results, width="page").lines) == 3
    jobs = wt.workloads.Lublin99().generate(200, 32, 0.8, 1)
    shaken = [wt.replicate(lambda seed: wt.workloads.shake(jobs, 30, seed), name, range(3)) for name in ("easy", "fcfs")]
    assert len(wt.figures.intervals(shaken).get_yticks()) == 2
    axes = wt.figures.intervals(shaken[:1])
    mean = shaken[0].interval("mean_wait").mean
    divisor = measure("mean_wait", mean).divisor
    assert float(np.asarray(axes.lines[0].get_xdata())[0]) == pytest.approx(mean / divisor)


def test_figures_of_many_runs__say_what_they_cannot_draw(plan):
    lines = [line(1.0, load=load) for load in (0.5, 0.9)]
    with raises(wt.PolicyError, "no_sweep"):
        wt.figures.sweep([line(1.0, policy="easy"), line(1.0, policy="fcfs")])
    with raises(wt.PolicyError, "no_sweep", "'shake'"):
        wt.figures.sweep(lines, over="shake")
    with raises(wt.PolicyError, "unknown_measure", "'mean_joy'"):
        wt.figures.intervals(lines, "mean_joy")
    with raises(wt.PolicyError, "wrong_type", "walltime.campaign.read_results"):
        wt.figures.intervals([3])
