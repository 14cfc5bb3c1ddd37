"""Orders by score, and their weights fitted to a log."""

import html
import json

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.policy import parse_order, score_order
from walltime.simulation.windows import DAY, change_interval, windows
from walltime.tuning.fitting import split
from walltime.tuning.search import make_order, search
from walltime.workloads import Lublin99

MADE = wt.workloads.scale_load(Lublin99().generate(4000, 64, None, 1), 0.9)
SLOW = {name: 6 * getattr(MADE, name) for name in ("submit", "runtime")}
JOBS = wt.Workload.from_arrays(**SLOW, procs=MADE.procs, machine_procs=64).with_estimates(wt.estimates.FModel(4), 1)
"""48 days."""
SMALL = {"days": 4, "warm": 1, "copies": 2, "most": 3, "workers": 1}
LABELS = ["linear:wait=1.2,area=-0.3", "power:wait=3,planned=-3,procs=1", "linear:log-wait=0.5,log-planned=-1,log-procs=1e-05,log-area=2"]


@pytest.mark.parametrize("label", LABELS)
def test_score__label_parses_back_also_in_a_scheduler(label):
    order = parse_order(label)
    assert order.label == label
    assert parse_order(order.label) == order
    scheduler = wt.Scheduler.of(f"easy:order={label},backfill-order=sjf")
    assert scheduler.policy.order == order
    assert wt.Scheduler.of(scheduler.label) == scheduler


@pytest.mark.slow
@pytest.mark.parametrize("label", [*LABELS, "linear:planned=-1", "power:area=-1"])
@pytest.mark.parametrize("policy", ["easy:order={}", "easy:backfill-order={}", "conservative:order={}", "fcfs:order={}"])
def test_score__engines_agree(label, policy):
    some = wt.workloads.head(JOBS, 300)
    kernel, reference = (wt.simulate(some, policy.format(label), engine=engine) for engine in ("kernel", "reference"))
    assert kernel.start.tolist() == reference.start.tolist()


@pytest.mark.slow
def test_score__one_feature_is_the_simple_order():
    for label, simple in (("linear:planned=-2", "sjf"), ("power:wait=1", "fcfs")):
        ours, theirs = (wt.simulate(JOBS, f"easy:order={name}") for name in (label, simple))
        assert ours.start.tolist() == theirs.start.tolist()
    assert not parse_order("linear:planned=-2").reads_time


@pytest.mark.slow
def test_score__weights_compile_nothing_new():
    from walltime.engine.kernel.callbacks import compile_score

    wt.simulate(JOBS, "easy:order=power:wait=1,procs=2")
    before = compile_score.cache_info().misses
    wt.simulate(JOBS, "easy:order=power:wait=0.5,planned=-2")
    assert compile_score.cache_info().misses == before


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("linear", ("no_features", "0")),
        ("linear:wait=0", ("no_features", "0")),
        ("power:log-wait=1", ("unknown_option", "'log-wait'")),
        ("linear:wait=nan", ("wrong_value", "'nan'")),
        ("linear:wait=fast", ("wrong_value",)),
        ("linear:wait=1,wait=2", ("repeated_option", "twice")),
    ],
)
def test_score__faults(label, message):
    with raises(wt.PolicyError, *message):
        parse_order(label)


def test_windows__measure_each_job_once_with_those_around_it():
    found = windows(JOBS, 4 * DAY, DAY)
    measured = np.concatenate([one.measured for one in found])
    assert len(np.unique(measured)) == len(measured)
    for one in found:
        assert np.isin(one.measured, one.jobs.job_id).all()
        assert one.jobs.submit.min() >= one.begin - DAY
        assert one.jobs.submit.max() < one.end + DAY
    assert one.shaken(60, 3).measured is one.measured


def test_split__no_job_of_the_training_is_in_the_test():
    early, late = split(JOBS, 4, 1, 0.5, 3)
    assert len(early) <= 3
    assert max(one.jobs.submit.max() for one in early) < min(one.begin for one in late)


def test_make_order__only_the_direction_counts():
    features, scales = ("wait", "procs"), np.array([2.0, 1.0])
    one, other = (make_order(np.array(point), "linear", features, scales) for point in ([4.0, -1.0], [8.0, -2.0]))
    assert one == other == score_order("linear", {"wait": 1, "procs": -0.5})


@pytest.mark.parametrize("optimiser", ["cma", "random"])
def test_search__finds_a_direction_and_repeats_it(optimiser):
    if optimiser == "cma":
        pytest.importorskip("cma", reason="cma is not installed; make setup does it")

    def angle(points):
        return [-float(p[0] / (np.linalg.norm(p) + 1e-12)) for p in points]

    found = [search(angle, 3, 120, optimiser, seed=5) for _ in range(2)]
    assert found[0][1] == found[1][1] < -0.9


@pytest.mark.slow
def test_tune__result_is_what_the_label_gives_and_goes_on_from_its_folder(tmp_path):
    settings = {"budget": 8, "optimiser": "random", **SMALL}
    found = wt.tune(JOBS, store=tmp_path, **settings)
    assert found.scheduler.startswith("easy:order=power:")
    assert found.as_dict() == wt.tune(JOBS, **settings).as_dict()
    costs = tmp_path / "training" / "costs.jsonl"
    lines = costs.read_text().splitlines(keepends=True)
    costs.write_text("".join(lines[:5]) + lines[5][:20] + "\n")  # as an interrupted run leaves it
    assert wt.tune(JOBS, store=tmp_path, **settings).as_dict() == found.as_dict()
    assert {json.loads(line)["scheduler"] for line in lines} >= {found.baseline, found.scheduler, found.best_simple}
    _, late = split(JOBS, 4, 1, 0.5, 3)
    own = late[0].run(wt.Scheduler.of("easy")).mean_bounded_slowdown
    shaken = late[0].shaken(60, 1).run(wt.Scheduler.of("easy")).mean_bounded_slowdown
    assert found.months[0][1] == pytest.approx(np.sqrt(own * shaken))
    with raises(wt.errors.OutputError, "other_settings"):
        wt.tune(JOBS, store=tmp_path, metric="mean_wait", **settings)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"metric": "utilization"}, wt.PolicyError, ("unknown_measure",)),
        ({"optimiser": "newton"}, wt.PolicyError, ("wrong_value", "cma", "random")),
        ({"score": "cubic"}, wt.PolicyError, ("wrong_value", "linear", "power")),
        ({"features": ["colour"]}, wt.PolicyError, ("unknown_feature",)),
        ({"features": []}, wt.PolicyError, ("no_features",)),
        ({"where": "behind"}, wt.PolicyError, ("wrong_value",)),
        ({"policy": "conservative", "where": "backfill-order"}, wt.PolicyError, ("no_backfill_order",)),
        ({"share": 1.0}, wt.PolicyError, ("wrong_value", "0", "1")),
        ({"budget": 0}, wt.PolicyError, ("wrong_value", "budget")),
        ({"days": 400}, wt.WorkloadError, ("too_few_windows",)),
    ],
)
def test_tune__faults(changes, error, message):
    with raises(error, *message):
        wt.tune(JOBS, **({"optimiser": "random", "budget": 2, **SMALL} | changes))


def test_change_interval__is_over_blocks_of_neighbours():
    differences = np.repeat([0.1, -0.2, 0.3, -0.1, 0.2], 10)
    found = change_interval(differences)
    expected = wt.metrics.series_interval(differences)
    assert (found.low, found.high) == pytest.approx((100 * np.expm1(expected.low), 100 * np.expm1(expected.high)))
    assert expected.half_width > 2 * wt.metrics.mean_interval(differences).half_width


@pytest.mark.slow
def test_command__writes_result_and_page(tmp_path, capsys):
    log = tmp_path / "log.swf"
    wt.logs.write_swf(log, JOBS)
    words = ["tune", str(log), "--budget", "4", "--optimiser", "random", "--days", "4", "--margin", "1", "--workers", "1"]
    status, out, _ = call(capsys, *words, "--out", tmp_path / "r.json", "--report", tmp_path / "p.html")
    assert status == 0
    assert "90 % interval, sampling of windows:" in out
    kept = json.loads((tmp_path / "r.json").read_text())
    assert kept["test"] >= 2
    page = html.unescape((tmp_path / "p.html").read_text())
    assert "fitted" in page
    for said in kept["caveats"]:  # the choice is told in all three
        assert said in out
        assert said in page
    assert any("selection bias" in said for said in kept["caveats"])
