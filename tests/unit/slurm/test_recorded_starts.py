"""Predicted start times against recorded ones: the past only, the baselines by hand, and what is reported."""

import json
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from validation.start_times import to_history
from walltime.logs.convert import write_workload
from walltime.machine import Machine, Overhead
from walltime.slurm import Draws, calibrate_starts
from walltime.slurm.starts.baselines import no_model, qbets
from walltime.slurm.starts.learned import draw_moments
from walltime.slurm.starts.recorded import METHODS, StartScore
from walltime.slurm.starts.recorded_tables import tables_of, verdict
from walltime.slurm.starts.replay import Record
from walltime.slurm.starts.start_times import OVERHEAD_NOTE


@pytest.fixture(scope="module")
def log():
    """A log whose waits a simulation recorded."""
    jobs = wt.workloads.Lublin99().generate(jobs=2500, machine_procs=64, load=0.85, seed=3)
    return to_history(wt.simulate(jobs, "easy"))


def of_waits(waits, procs=1, every=100_000):
    """The record of jobs that waited so long, each submitted long after the one before had started."""
    count = len(waits)
    jobs = wt.Workload.from_arrays(
        submit=np.arange(count) * every,
        runtime=np.ones(count),
        procs=np.full(count, procs),
        requested=np.full(count, 60),
        machine_procs=64,
        columns={"wait": np.asarray(waits, np.int64)},
    )
    return Record.of(jobs)


@pytest.mark.slow
def test_recorded__nothing_of_the_future_is_used(log):
    record = Record.of(log)
    moments = draw_moments(record, int(record.submit[-1]) // 4, int(record.submit[-1]), 12, 1)
    turn = moments[6]
    later = np.asarray(record.start) > turn
    unknown = np.asarray(record.submit) > turn
    wait = log.columns["wait"] + np.where(later, 7_777, 0)
    runtime = np.where(record.end > turn, log.runtime + 501, log.runtime)
    changed = replace(log, runtime=runtime, procs=np.where(unknown, 1, log.procs), columns={**log.columns, "wait": wait})
    first, second = (calibrate_starts(one, moments=moments[:7], draws=Draws(4, seed=2)) for one in (log, changed))
    assert len(first.real) > 20
    assert np.array_equal(first.job, second.job)
    assert not np.array_equal(first.real, second.real)
    for name in METHODS:
        assert np.array_equal(first.ends[name], second.ends[name]), name


@pytest.mark.nightly
def test_recorded__where_the_simulation_is_the_truth_its_intervals_hold(log):
    found = calibrate_starts(log, moments=12, draws=Draws(10))
    jobs, scores = found.classes["all"]
    assert jobs == len(found.real) > 100
    assert scores["prediction"].inside > 0.75
    assert scores["prediction"].error < scores["no_model"].error
    assert sum(count for name, (count, _) in found.sizes.items() if name != "all") == jobs
    inside, before, after = (getattr(scores["qbets"], name) for name in ("inside", "before", "after"))
    assert inside + before + after == pytest.approx(1)


def test_qbets__bounds_have_95_percent_confidence():
    # of 199 waits, 9.95 - 1.645 sqrt(9.45) = 4.9 may lie beyond either bound, so four do
    shuffled = 1 + 37 * np.arange(199) % 199
    early, median, late = qbets(of_waits([*shuffled, 5000], every=1000), np.array([199_000]), np.array([199]))[:, 0]
    assert (early, median, late) == (5, 100, 195)


def test_qbets__after_three_misses_in_a_row_the_past_is_cut():
    waits = [10] * 300 + [900] * 60
    calm = qbets(of_waits([*waits[:302], 1]), np.array([302 * 100_000]), np.array([302]))[:, 0]
    assert calm[2] == 10
    cut = qbets(of_waits([*waits, 1]), np.array([360 * 100_000]), np.array([360]))[:, 0]
    assert cut[1:].tolist() == [900, 900]  # of all 360 waits the median is 10


def test_no_model__counts_those_that_waited_longer():
    record = of_waits([*range(1, 101), 10_000])
    at = np.array([100 * 100_000 + 50])
    early, median, late = no_model(record, at, np.array([100]))[:, 0]
    assert (early, median, late) == (2, 26, 49)  # of the waits 51 to 100, less the 50 s that it has waited


def test_recorded__says_what_is_wrong(log):
    without = replace(log, columns={name: values for name, values in log.columns.items() if name != "wait"})
    with raises(wt.WalltimeError, "missing_starts"):
        calibrate_starts(without)
    with raises(wt.WalltimeError, "no_waiting_jobs"):
        calibrate_starts(log, moments=[0])


@pytest.mark.slow
def test_recorded__a_machine_with_overheads_is_named_in_a_caveat(log):
    site = replace(Machine.one_pool(64), overhead=Overhead(60, 120))
    plain, slow = (calibrate_starts(log, machine, "easy", moments=2, draws=Draws(2)) for machine in (None, site))
    assert OVERHEAD_NOTE in slow.caveats
    assert OVERHEAD_NOTE not in plain.caveats


def test_score__by_hand():
    """Intervals of 10 s; one start is inside, at half the predicted wait, and one 5 s late, at one and a half times the predicted wait."""
    ends = np.array([[0.0, 0.0], [10.0, 10.0], [10.0, 10.0]])
    score = StartScore.of(ends, np.array([5.0, 15.0]))
    assert (score.inside, score.before, score.after, score.width, score.error) == (0.5, 0, 0.5, 10, 5)
    assert score.interval_score == pytest.approx((10 + 10 + 20 * 5) / 2)
    assert (score.least_ratio, score.largest_ratio) == (0.75, 1.25)


@pytest.mark.slow
def test_recorded__tables(golden, log):
    found = calibrate_starts(log, moments=6, draws=Draws(3))
    golden("slurm-start-times", verdict(found)[0])
    few = replace(found, classes={name: (min(jobs, 100), scores) for name, (jobs, scores) in found.classes.items()})
    golden("slurm-start-times", verdict(few)[1])
    assert len(tables_of(found)) == 10
    assert json.loads(json.dumps(found.as_dict()))["starts"]["all"]["baselines"].keys() == METHODS.keys() - {"prediction"}


@pytest.mark.slow
def test_recorded__on_the_command_line(tmp_path, capsys, log):
    path = tmp_path / "log.swf"
    write_workload(path, log)
    few = (path, "--starts", "--moments", "5", "--samples", "3")
    found = json.loads(call(capsys, "calibrate", *few, "--json")[1])
    assert {"inside", "width", "error", "baselines", "jobs"} <= found["starts"]["all"].keys()
    assert found["policy"] == "easy"
    page = tmp_path / "page.html"
    told = call(capsys, "calibrate", *few, "--report", page)[1]
    assert "started within the 90 % intervals" in told
    assert page.read_text().count("QBETS") > 6
    assert "--json" in one_line(*call(capsys, "calibrate", *few, "--out", "x.json"))
