"""The search for orders on several logs, its file, and the table of final logs."""

import math
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from validation.order_judgement import judge
from walltime.policy import parse_order
from walltime.simulation.specification import parse_scheduler
from walltime.tuning.formula_search import BACKFILL, TERMS, Formula, Parts, by_log, merit, objectives, parts_of, search_orders
from walltime.tuning.order_file import OrderFile, read_order_file, write_order_file
from walltime.workload.models import MODELS


def log(seed, jobs=150):
    return MODELS["lublin99"].generate(jobs, 32, 0.9, seed)


def test_objectives__by_hand():
    """Waits of 0 and 90 s; jobs of 10 s, and of 1 and 3 processors."""
    found = objectives(*map(np.array, ([0, 0], [0, 90], [10, 10], [1, 3])))
    assert found.tolist() == pytest.approx([(1 + 10) / 2, 90 * 30 / 40 + 1, 90 * 0.99 + 1, 91, 91])


def test_merit__counts_a_longest_wait_only_where_it_is_above_that_of_the_baseline():
    relative = np.log([[0.5, 1, 1, 9, 2], [0.5, 1, 1, 9, 2], [2, 1, 1, 9, 0.1]])
    logs = np.array([0, 0, 1])
    assert by_log(relative, logs).shape == (2, 5)
    assert merit(relative, logs, 3.0).tolist() == pytest.approx([-math.log(2) + 3 * math.log(2), math.log(2)])


def test_parts__measure_the_later_jobs_apart():
    jobs = log(1)
    early, late = parts_of([jobs], 0.6, 2, 30, 0)
    assert [(len(one.jobs), one.first) for one in early + late] == [(90, 0), (90, 0), (150, 90), (150, 90)]
    assert not np.array_equal(early[0].jobs.submit, early[1].jobs.submit)
    easy, lxf = map(parse_scheduler, ("easy", "easy:order=lxf"))
    relative = Parts(late, easy, 1).relative([easy, lxf])
    assert np.all(relative[0] == 0)
    schedule = wt.simulate(jobs, lxf)
    own = objectives(schedule.submit[90:], schedule.start[90:], schedule.runtime[90:], jobs.procs[90:])
    same = wt.simulate(jobs, easy)
    base = objectives(same.submit[90:], same.start[90:], same.runtime[90:], jobs.procs[90:])
    assert relative[1, 0] == pytest.approx(np.log(own) - np.log(base))


@pytest.mark.parametrize("term", TERMS)
def test_terms__are_expressions(term):
    order = Formula((term,), (1.0,)).order
    assert parse_order(order.label) == order
    assert math.isfinite(order.score(wait=100, planned=60, procs=4, submit=0, hour=19))


def test_formula__is_spelled_with_its_largest_weight_as_1():
    formula = Formula(("log(wait+60)", "log(procs)"), (2.0, -0.5), max_wait_share=0.5, backfill="saf")
    assert formula.order.label == "expr:1*log(wait+60)+-0.25*log(procs),max-wait-share=0.5"
    assert replace(formula, is_plain=True).order.label == "expr:log(wait+60)-0.25*log(procs),max-wait-share=0.5"
    assert formula.scheduler.label == "easy:order=expr:1*log(wait+60)+-0.25*log(procs),max-wait-share=0.5,backfill-order=saf"
    planned = replace(formula, predictor="last", predictions_for="regular").scheduler
    assert planned.label == f"{formula.scheduler.label},predictor=last"
    near = formula.neighbours()
    assert len(near) == 2 + len(BACKFILL) - 1 + len(TERMS) - 2
    assert all(one.size <= formula.size + 1 for one in near)
    assert len(replace(formula, choices=TERMS[:4]).neighbours()) == len(near) - len(TERMS[4:])
    assert formula.at(np.zeros(3)) == formula


@pytest.mark.nightly
def test_search__repeats_itself_and_goes_on_where_it_was(tmp_path):
    logs = [log(1), log(2)]
    rules = {"budget": 12, "copies": 1, "optimiser": "random", "workers": 1}
    first = search_orders(logs, store=tmp_path / "kept", **rules)
    seen = []
    assert search_orders(logs, store=tmp_path / "kept", progress=lambda done, label: seen.append(done), **rules) == first
    assert seen
    assert first.evaluations >= 12
    policy = parse_scheduler(first.scheduler).policy
    assert any(order.bounds[1] is not None for order in (policy.order, policy.backfill_order)), first.scheduler
    slowdowns = [one.training[0] for one in first.front]
    assert slowdowns == sorted(slowdowns, reverse=True)
    with raises(wt.errors.OutputError, "other_settings"):
        search_orders(logs, store=tmp_path / "kept", **rules | {"copies": 2})
    write_order_file(tmp_path / "order.toml", first)
    assert read_order_file(tmp_path / "order.toml") == first


@pytest.mark.slow
def test_judge__is_relative_to_easy():
    logs = [log(3), log(4)]
    table = judge("easy:order=lxf,backfill-order=saf", logs, copies=1, predictors=(), workers=1)
    assert table.found.scheduler == "easy:order=lxf,backfill-order=saf"
    easy, own = (wt.simulate(logs[0], name).summary().mean_bounded_slowdown for name in ("easy", table.found.scheduler))
    assert table.found.logs[0][0] == pytest.approx(own / easy, abs=1e-4)
    best = table.best(["named"], bounded=False)
    assert best.overall[0] == min(row.overall[0] for row in table.rows if row.kind == "named")
    bounded = table.best(["named"], bounded=True)
    assert bounded is None or bounded.is_bounded
    assert set(table.against) >= {"easy", best.scheduler}
    assert table.longest.mean == pytest.approx(100 * (table.found.overall[3] - 1), abs=0.1)


@pytest.mark.slow
def test_judge__tries_the_named_orders_with_the_predictor_of_the_found_one_too():
    workload = replace(log(3, 80), columns={"user": np.arange(80) % 5})
    table = judge("easy:backfill-order=lxf:max-wait-share=0.8,predictor=last", [workload], copies=1, predictors=(), workers=1)
    predicted = {row.scheduler for row in table.rows if row.kind == "predicted"}
    assert {"easy:predictor=last", "easy:backfill-order=lxf,predictor=last"} <= predicted
    assert table.found.scheduler not in predicted


def test_order_file__is_an_order(tmp_path):
    file = tmp_path / "order.toml"
    write_order_file(file, OrderFile(scheduler="easy:order=expr:log(wait+60)-log(planned),max-wait-share=0.4"))
    assert parse_order(str(file)) == parse_order("expr:log(wait+60)-log(planned),max-wait-share=0.4")
    assert parse_scheduler(f"easy:order={file},backfill-order=sjf").policy.order == parse_order(str(file))
    for label in ("easy:order=lxf,backfill-order=saf", "easy:order=lxf,predictor=tsafrir07", "fcfs"):
        write_order_file(file, OrderFile(scheduler=label))
        with raises(wt.PolicyError, "more_than_an_order"):
            parse_order(str(file))
    file.write_text("a = 1\n")
    with raises(wt.PolicyError, "no_scheduler"):
        parse_order(str(file))


@pytest.mark.slow
def test_search__on_the_command_line(tmp_path, capsys):
    files = []
    for number, name in ((1, "one"), (2, "two"), (3, "last")):
        files.append(tmp_path / f"{name}.swf")
        wt.logs.write_swf(files[-1], log(number, 60))
    order = tmp_path / "order.toml"
    arguments = ["search", *files[:2], "--out", order, "--budget", "6", "--copies", "1", "--optimiser", "random", "--json"]
    page = tmp_path / "search.html"
    assert call(capsys, *arguments, "--report", page)[0] == 0
    assert "was chosen from" in page.read_text()
    assert [one.name for one in read_order_file(order).log] == ["one", "two"]
    assert call(capsys, "simulate", files[2], "--policy", read_order_file(order).scheduler)[0] == 0


def test_search__refuses_a_log_of_few_jobs():
    with raises(wt.WorkloadError, "too_few_jobs", "20", "50"):
        search_orders([log(1, 20)], budget=5, copies=1)
