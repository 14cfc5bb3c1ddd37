"""`walltime predict`, `suggest`, and predictors in `simulate` and in campaigns."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import walltime as wt
from tests.cli import HEADER, call, one_line, record
from tests.pages import outline
from walltime.campaign import Store, read_plan, run_campaign


@pytest.fixture
def log(tmp_path):
    """Sixty jobs of two users, who ask for ten times what they need, an hour apart."""
    lines = [record(k + 1, 3600 * k, 600, 1 + k % 4, 6000, user=1 + k % 2).replace(" -1 600", " 0 600", 1) for k in range(60)]
    path = tmp_path / "log.swf"
    path.write_text(HEADER + "".join(lines))
    return path


@pytest.mark.slow
def test_predict__shows_every_key_statistic_and_window(golden, capsys, log):
    status, out, err = call(capsys, "predict", log)
    assert status == 0, err
    golden("predict", out)  # of so few jobs many give the same numbers, and share a row
    golden("predict", " ".join(out.split()))
    found = json.loads(call(capsys, "predict", log, "--json")[1])
    assert found["ends"] == "easy"
    assert len(found["predictors"]) == 168
    best = max(row["mean_accuracy"] for row in found["predictors"])
    assert best > 0.6 > found["predictors"][0]["mean_accuracy_of_requests"]


def test_predict__writes_each_jobs_prediction(capsys, log, tmp_path):
    out = tmp_path / "p.csv"
    status, _, err = call(capsys, "predict", log, "--predictor", "tang13:key=user,window=all", "--out", out)
    assert status == 0, err
    table = pl.read_csv(out)
    assert table["class"].to_list()[:20] == ["NA"] * 20  # ten jobs of the user must have ended
    assert table["predicted"].to_list()[-1] == 600
    assert table["class"].to_list()[-1] == "OE"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--predictor", "oracle"],
        ["--predictor", "tang13:statistic=p101"],
        ["--predictor", "last", "--threshold", "0.5"],
        ["--ends", "tomorrow"],
        ["--ends", "log"],
        ["--out", "table.txt"],
    ],
)
def test_predict__bad_calls_give_one_line(golden, capsys, log, arguments):
    golden("predict", one_line(*call(capsys, "predict", log, *arguments)))


def test_suggest__prints_walltimes_and_risks(golden, capsys, log):
    status, out, err = call(capsys, "suggest", log, "--user", 1, "--risk", 5)
    assert status == 0, err
    assert "0:10:00" in out
    assert "job of user 1" in out
    assert "30 similar earlier jobs on log" in out
    found = json.loads(call(capsys, "suggest", log, "--user", 1, "--json")[1])
    assert (found["jobs"], found["suggestions"][0]["walltime"]) == (30, 600)
    golden("suggest", one_line(*call(capsys, "suggest", log, "--user", 9)))


def test_simulate__with_a_predictor(capsys, log):
    arguments = ["simulate", log, "--predictor", "last", "--predictions-for", "selective", "--json"]
    found = json.loads(call(capsys, *arguments)[1])["predictions"]
    assert (found["predictor"], found["predictions_for"]) == ("last", "selective")
    assert found["mean_accuracy"] > 0.9
    status, out, _ = call(capsys, "simulate", log, "--predictor", "last")
    assert status == 0
    assert "Predictions by last" in out
    assert "add --predictor NAME" in one_line(*call(capsys, "simulate", log, "--predictions-for", "none"))
    assert "unknown use of predictions" in one_line(*call(capsys, "simulate", log, "--predictor", "last", "--predictions-for", "all"))


@pytest.mark.slow
def test_predict__judges_the_last_part_and_says_what_knows_the_future(golden, capsys, log, tmp_path):
    jobs = wt.read(log)
    pl.DataFrame({"job_id": jobs.job_id, "predicted": jobs.runtime + 60}).write_csv(tmp_path / "made.csv")
    arguments = ["predict", log, "--predictor", f"file:{tmp_path}/made.csv", "--test-share"]
    found = json.loads(call(capsys, *arguments, "0.25", "--json")[1])
    judged = jobs.submit >= jobs.submit[int(0.75 * len(jobs))]
    row = found["predictors"][0]
    assert (found["judged"], row["jobs"]) == (judged.sum(), judged.sum())
    assert row["mean_accuracy"] == pytest.approx((jobs.runtime / np.minimum(jobs.runtime + 60, jobs.requested))[judged].mean())
    assert f"the last {judged.sum()} of {len(jobs)} jobs" in call(capsys, *arguments, "0.25")[1]
    assert json.loads(call(capsys, *arguments, "1", "--json")[1])["judged"] == len(jobs)
    call(capsys, *arguments, "0.25", "--report", tmp_path / "page.html")
    answer = f"On the last {judged.sum()} of the {len(jobs)} jobs of {jobs.origin.name}, after learning from all earlier jobs, "
    assert answer in (tmp_path / "page.html").read_text()
    golden("predict", one_line(*call(capsys, *arguments, "0")))


@pytest.mark.parametrize(
    "command", [("predict",), ("benchmark", "predictions", "--copies", 0, "--only", "--buffer", 1), ("compare", "--no-spread")]
)
def test_predictions_from_elsewhere__that_know_the_future_are_said_to(golden, capsys, tmp_path, command):
    """Pairs of jobs of one user that are alike in all that is known, of which the longer one is predicted to be longer."""
    runtime = np.random.default_rng(3).permutation(np.arange(600, 680))
    submit = np.repeat(np.arange(40) * 5000, 2) + np.tile([0, 5], 40)
    columns = {"user": np.zeros(80, np.int64)}
    jobs = wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=[900] * 80, procs=[1] * 80, machine_procs=4, columns=columns)
    wt.logs.write_swf(tmp_path / "log.swf", jobs)
    pl.DataFrame({"job_id": jobs.job_id, "predicted": runtime}).write_csv(tmp_path / "made.csv")
    name, *options = command
    words = [name, *options[:1], tmp_path / "log.swf", *options[1:]] if name == "benchmark" else [name, tmp_path / "log.swf", *options]
    status, out, err = call(capsys, *words, "--predictor", f"file:{tmp_path}/made.csv", "--json")
    assert status == 0, err
    golden("predict", json.loads(out)["caveats"])


PLAN = """
[campaign]
name = "predictors"
[fixed]
trace = "log.swf"
[[zip]]
predictor = ["default", "last", "last"]
predictions_for = ["regular", "regular", "selective"]
"""


@pytest.mark.slow
def test_campaign__varies_predictors(log, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = read_plan(tmp_path / "plan.toml")
    run_campaign(plan)
    table = Store(plan.store).table()
    assert len(table) == 3
    rows = {(row["predictor"], row["predictions_for"]): row for row in table.iter_rows(named=True)}
    assert rows[None, "regular"]["mean_accuracy"] is None
    jobs = wt.read(log)
    for predictions_for in ("regular", "selective"):
        schedule = wt.simulate(jobs, wt.Easy(), prediction=wt.Prediction(wt.predictors.LastRun(), predictions_for=predictions_for))
        assert rows["last", predictions_for]["mean_wait"] == schedule.summary().mean_wait
        assert rows["last", predictions_for]["mean_accuracy"] == pytest.approx(schedule.prediction_summary().mean_accuracy)


def test_predict__takes_the_order_of_simultaneous_events_from_the_dialect(capsys, tmp_path):
    # the second job is submitted when the first one ends; the third one later
    lines = [record(1, 0, 100, 4, 900), record(2, 100, 50, 4, 900), record(3, 500, 10, 4, 900)]
    path, out = tmp_path / "log.swf", tmp_path / "p.csv"
    path.write_text(HEADER + "".join(lines))
    found = {}
    for dialect in ("papers", "predictsim"):
        status, _, err = call(capsys, "predict", path, "--predictor", "last", "--dialect", dialect, "--out", out)
        assert status == 0, err
        found[dialect] = pl.read_csv(out)["predicted"].to_list()
    assert found == {"papers": [900, 100, 50], "predictsim": [900, 900, 50]}
    shown = json.loads(call(capsys, "predict", path, "--predictor", "last", "--dialect", "predictsim", "--json")[1])
    assert (shown["dialect"], shown["ends"]) == ("predictsim", "easy:arrivals=fitting")
    assert "unknown dialect 'french'" in one_line(*call(capsys, "predict", path, "--dialect", "french"))


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["info", "--window", "0:36000"], ["predict", "--predictor", "last"], ["suggest", "--user", 1]])
def test_report__has_the_answer_three_numbers_and_a_picture(golden, capsys, log, tmp_path, arguments):
    page = tmp_path / "page.html"
    status, out, err = call(capsys, arguments[0], log, *arguments[1:], "--report", page)
    assert status == 0, err
    assert f"report written to {page}" in out
    text = page.read_text()
    golden(arguments[0], outline(text))
    first = text[: text.index("<h2")]
    assert first.count('class="number"') == 3 or first.count("<dt>") >= 3
    assert "<svg" in first


@pytest.mark.parametrize("words", [("suggest", "--user", 1), ("estimates",), ("waste",)])
def test_commands_on_users__need_no_size_of_the_machine(capsys, tmp_path, words):
    log = tmp_path / "log.swf"
    log.write_text("".join(record(k, 10 * k, 60, 2, 100) for k in range(1, 30)))
    assert call(capsys, words[0], log, *words[1:])[0] == 0
