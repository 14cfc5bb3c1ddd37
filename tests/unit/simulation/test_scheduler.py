"""Whole schedulers in one spelling: the same on the command line, in plans and in Python."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

import walltime as wt
from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from walltime.errors import PolicyError
from walltime.policy import named_files, resolve_files

JOBS = wt.Workload.from_arrays(
    submit=[0, 1, 2, 3, 30, 31],
    runtime=[9, 4, 3, 2, 8, 2],
    requested=[20, 9, 5, 4, 20, 9],
    procs=[2, 2, 1, 1, 2, 1],
    machine_procs=3,
    columns={"user": [1, 1, 2, 2, 1, 2]},
)
OWN = """
from dataclasses import dataclass
import walltime as wt

@dataclass(frozen=True)
class Narrow(wt.PlainPolicy):
    most: int = 99

    def choose(self, now, waiting, running, free):
        for job in sorted(waiting, key=lambda job: job.procs):
            if job.procs <= min(free, self.most):
                free -= job.procs
                yield job

ready = Narrow(most=2)
something = 7

def widest(procs):
    return procs
"""


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


@pytest.mark.parametrize(
    ("text", "policy", "prediction"),
    [
        ("easy", wt.Easy(), None),
        ("easy:order=sjf", wt.Easy(order=wt.SJF), None),
        ("easy:predictor=none", wt.Easy(), None),
        (
            "easy:backfill-order=sjf,predictor=tsafrir07,correction=estimate",
            wt.Easy(backfill_order=wt.SJF),
            wt.Prediction(wt.predictors.Tsafrir07(), correction="estimate"),
        ),
        (
            "easy:order=wfp:exponent=2,threshold=0.75,extra=literal",
            wt.Easy(order=wt.policy.Wfp(exponent=2, threshold=0.75), extra="literal"),
            None,
        ),
        (
            "hybrid:3,predictor=tang13:key=user,statistic=p90,predictions-for=selective",
            wt.Hybrid(depth=3),
            wt.Prediction(wt.predictors.Tang13(key="user", statistic="p90"), "selective"),
        ),
        ("conservative-scratch:learn-from=log,predictor=last", wt.Conservative(variant="scratch"), wt.Prediction("last", learn_from="log")),
        ("conservative:compression=always", wt.Conservative(compression="always"), None),
    ],
)
def test_scheduler__is_spelled_and_read_back(text, policy, prediction):
    scheduler = wt.simulation.parse_scheduler(text)
    assert scheduler == wt.Scheduler(policy, prediction)
    assert wt.simulation.parse_scheduler(scheduler.label) == scheduler


@pytest.mark.parametrize(
    "text",
    [
        "",
        "esay",
        "easy:depth=3",
        "easy:order=sjf,order=wfp",
        "easy:order=",
        "hybrid:depth=x",
        "easy:predictions-for=selective",
        "easy:predictor=oracle",
        "easy:order=longest",
        "none.py:Mine",
    ],
)
def test_scheduler__says_what_is_wrong(golden, text):
    with pytest.raises(wt.PolicyError) as caught:
        wt.simulation.parse_scheduler(text)
    golden("compare", str(caught.value))


def test_defaults__are_for_what_the_spelling_leaves_open():
    defaults = {"order": "sjf", "backfill-order": "wfp", "predictor": "last", "predictions_for": "selective"}
    assert wt.simulation.parse_scheduler("conservative", defaults) == wt.Scheduler(
        wt.Conservative(order=wt.SJF), wt.Prediction("last", "selective")
    )
    assert wt.simulation.parse_scheduler("easy:order=fcfs,predictor=none", defaults) == wt.Scheduler(wt.Easy(backfill_order=wt.WFP))


def test_simulate__takes_a_spelling_and_keeps_it():
    done = wt.simulate(JOBS, "easy:backfill-order=sjf,predictor=last")
    same = wt.simulate(JOBS, wt.Easy(backfill_order=wt.SJF), prediction=wt.predictors.LastRun())
    assert (done.start == same.start).all()
    assert done.label == same.label == "easy:backfill-order=sjf,predictor=last"
    assert wt.simulate(JOBS, "easy:predictor=last", prediction="tsafrir07").label == "easy:predictor=last"
    assert wt.simulate(JOBS, wt.Scheduler(wt.Easy()), prediction="tsafrir07").label == "easy:predictor=tsafrir07"


def test_replicate_and_batches__take_spellings_too():
    found = wt.replicate(lambda seed: JOBS, "easy:predictor=last", seeds=range(2))
    case = wt.simulation.Case("easy:predictor=last")
    batch = wt.simulate_many(JOBS, [case])
    assert found.scheduler.label == case.label == "easy:predictor=last"
    assert found.values("mean_wait")[0] == batch.values("mean_wait")[0] == wt.simulate(JOBS, case.label).summary().mean_wait


def test_own_policy__comes_from_a_file_with_its_options(own):
    plain, narrow = wt.policy.parse_policy(f"{own}:Narrow"), wt.policy.parse_policy(f"{own}:Narrow:most=2")
    assert (plain.most, narrow.most, narrow.label) == (99, 2, "Narrow:most=2")
    assert wt.policy.parse_policy(f"{own}:ready") == narrow
    assert wt.simulation.parse_scheduler(f"easy:order={own}:widest,predictor=last").policy.order.name == "widest"
    for text, message in (
        (f"{own}:something", "is not a policy; make it a class with choose(self, now, waiting, running, free)"),
        (f"{own}:nothing", "has no policy named 'nothing'"),
        (f"{own}:ready:most=3", "unknown option 'most' of the policy"),
        (f"{own}:Narrow:least=3", "Valid options: order, most"),
    ):
        with pytest.raises(wt.PolicyError) as caught:
            wt.policy.parse_policy(text)
        assert message in str(caught.value)


def test_files__are_found_in_a_spelling_and_placed(tmp_path):
    text = "own.py:Day:order=mine/orders.py:widest,backfill-order=sjf"
    assert named_files(text) == ["own.py", "mine/orders.py"]
    assert named_files(resolve_files(text, tmp_path)) == [str(tmp_path / "own.py"), str(tmp_path / "mine/orders.py")]
    assert named_files("easy:predictor=tang13:key=user") == []


@dataclass(frozen=True)
class Late(wt.PlainPolicy):
    """Starts nobody."""

    def choose(self, now, waiting, running, free):
        return ()


@pytest.mark.slow
def test_compare__puts_any_schedulers_into_one_table(golden, capsys, tmp_path, own):
    log = tmp_path / "small.swf"
    log.write_text(HEADER + "".join(record(i, i, 10 + i, 1 + i % 3, 20 + 5 * i, user=1 + i % 2) for i in range(1, 9)))
    report = tmp_path / "r.html"
    texts = ["easy", "easy:backfill-order=sjf,predictor=last", f"{own}:Narrow"]
    options = [word for text in texts for word in ("--policy", text)]
    status, out, _ = call(capsys, "compare", log, *options, "--json", "--report", report)
    runs = json.loads(out)["runs"]
    assert status == 0
    assert [run["policy"] for run in runs] == ["easy", "easy:backfill-order=sjf,predictor=last", "Narrow"]
    assert [run["engine"] for run in runs] == ["kernel", "kernel", "reference"]
    assert runs[1]["predictions"]["predictor"] == "last"
    page = report.read_text()
    assert "EASY [backfill sjf], last" in page
    status, out, _ = call(capsys, "compare", log, *options, "--predictor", "tsafrir07", "--json")
    assert json.loads(out)["runs"][0]["policy"] == "easy:predictor=tsafrir07"
    assert "add --predictor NAME" in one_line(*call(capsys, "compare", log, "--predictions-for", "selective"))
    golden("compare", one_line(*call(capsys, "compare", log, "--policy", "fcfs", "--backfill-order", "sjf")))


def test_order__as_a_policy_is_told_how_orders_are_given():
    def widest(procs):
        return procs

    for given in (widest, wt.order(widest)):
        with raises(PolicyError, "wrong_type", "widest", "walltime.Easy(order=...)"):
            wt.simulate(JOBS, given)
