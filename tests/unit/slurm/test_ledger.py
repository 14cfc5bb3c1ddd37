"""The ledger of predicted start times: what is entered, completed and scored, and what is no ledger."""

import json
import stat

import numpy as np

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.unit.slurm.test_start_times import NOW, job, past, taken
from walltime.errors import LogError, OutputError
from walltime.slurm import Draws, PredictionLedger, start_times
from walltime.slurm.starts.ledger import NAME


def started(labels, at):
    """A log of jobs that started at these Unix times."""
    numbers = [label.partition("_") for label in labels]
    count = len(labels)
    return wt.Workload.from_arrays(
        submit=np.zeros(count),
        runtime=np.ones(count),
        procs=np.ones(count),
        machine_procs=4,
        job_id=[10_000 + k if task else int(first) for k, (first, _, task) in enumerate(numbers)],
        columns={
            "wait": np.array(at) - (NOW - 5000),
            "array_job": np.array([int(first) if task else -1 for first, _, task in numbers]),
            "array_task": np.array([int(task) if task else -1 for _, _, task in numbers]),
        },
        origin=wt.workload.Origin(unix_start_time=NOW - 5000),
    )


def predicted(*more):
    return start_times(taken(job(1, 4, start=NOW - 100), job(2, 4), *more), past([1800] * 20), draws=Draws(2, arrivals=False))


def test_predictions__are_entered_completed_and_scored(tmp_path):
    ledger = PredictionLedger(tmp_path / "ledger", create=True)
    assert stat.S_IMODE((tmp_path / "ledger" / NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "ledger").stat().st_mode) == 0o700
    assert ledger.add(predicted(job(7, 4, array=7, task=3, expected=NOW + 3700))) == 2
    assert ledger.score().known == 0
    assert ledger.score().scores == ()
    found = PredictionLedger(tmp_path / "ledger").score(started(["2", "7_3", "5"], [NOW + 1700, NOW + 4500, NOW]))
    assert (found.predictions, found.known, found.completed) == (2, 2, 2)
    everybody = found.scores[0]
    assert (everybody.jobs, everybody.inside, everybody.after, everybody.slurm_jobs) == (2, 0.5, 0.5, 1)
    assert (everybody.error, everybody.error_slurm) == (500, 800)
    assert ledger.complete(started(["2"], [NOW + 9])) == 0  # it is known already


def test_predictions__of_the_same_snapshot_are_replaced_and_earlier_runs_left_out(tmp_path):
    ledger = PredictionLedger(tmp_path / "ledger", create=True)
    ledger.add(predicted())
    ledger.add(predicted())
    found = ledger.score(started(["2"], [NOW - 50]))
    assert (found.predictions, found.known) == (1, 0)


def test_ledger__that_is_none(tmp_path):
    for name in ("text", "empty", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "text" / NAME).write_text("this is a text, and longer than a header of SQLite, so that it is looked at\n" * 20)
    (tmp_path / "empty" / NAME).write_text("")
    import sqlite3

    with sqlite3.connect(tmp_path / "other" / NAME) as database:
        database.execute("CREATE TABLE prediction (x)")
    database.close()
    for name in ("text", "empty", "other", "none"):
        with raises(LogError, "not_a_ledger", tmp_path / name):
            PredictionLedger(tmp_path / name)
    with raises(LogError, "not_a_ledger"):
        PredictionLedger(tmp_path / "other", create=True)
    (tmp_path / "file").touch()
    with raises(OutputError, "unwritable_file", tmp_path / "file"):
        PredictionLedger(tmp_path / "file" / "ledger", create=True)
    with raises(LogError, "missing_starts"):
        PredictionLedger(tmp_path / "ledger", create=True).complete(past([1, 2]))


def test_commands__enter_score_and_complain_in_one_line(golden, capsys, tmp_path):
    taken(job(1, 4, start=NOW - 100), job(2, 4)).write(tmp_path / "s.json")
    lines = "".join(f"{k} {k * 600} 0 1800 1 -1 -1 1 3600 -1 1 1 1 -1 -1 -1 -1 -1\n" for k in range(10, 60))
    (tmp_path / "log.swf").write_text(f"; MaxProcs: 4\n; UnixStartTime: {NOW - 200_000}\n{lines}")
    base = (
        "slurm",
        "start-times",
        tmp_path / "s.json",
        "--history",
        tmp_path / "log.swf",
        "--samples",
        2,
        "--predictions",
        tmp_path / "ledger",
    )
    assert call(capsys, *base)[0] == 0
    later = f"2 199000 2800 50 4 -1 -1 4 3600 -1 1 1 1 -1 -1 -1 -1 -1\n3 {199_000} 5 50 4 -1 -1 4 3600 -1 1 1 1 -1 -1 -1 -1 -1\n"
    (tmp_path / "later.swf").write_text(f"; MaxProcs: 4\n; UnixStartTime: {NOW - 200_000}\n{later}")
    status, out, err = call(capsys, "slurm", "score", tmp_path / "ledger", "--history", tmp_path / "later.swf")
    assert (status, err) == (0, "")
    golden("slurm-start-times", out)
    found = json.loads(call(capsys, "slurm", "score", tmp_path / "ledger", "--json")[1])
    assert (found["known"], found["scores"][0]["jobs"], found["scores"][0]["error"]) == (1, 1, 100)
    assert "no such ledger" in one_line(*call(capsys, "slurm", "score", tmp_path / "none"))
    assert "would replace the input" in one_line(*call(capsys, *base[:-1], tmp_path / "log.swf"))
    (tmp_path / "text").write_text("no ledger")
    assert "cannot be written" in one_line(*call(capsys, *base[:-1], tmp_path / "text"))
