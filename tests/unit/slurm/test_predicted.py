"""Start times with predictions that somebody brings: a file, a class, a column; by hand."""

import json

import numpy as np
import pytest

from tests.cli import call, one_line
from tests.errors import raises
from tests.unit.slurm.test_start_times import NOW, ahead, job, past, taken
from walltime.errors import PolicyError
from walltime.slurm import calibrate_starts, explain_wait, start_times, try_jobs
from walltime.slurm.starts.forecast import Draws
from walltime.slurm.starts.sampling import JobsToDraw, Runtimes

MEMORY = """
class Last:
    def __init__(self, extra=0):
        self.last, self.extra = {}, extra
    def predict(self, job):
        return self.last[job.user] + self.extra if job.user in self.last else None
    def observe(self, job):
        self.last[job.user] = job.runtime
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="preds.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


QUEUE = (job(1001, 4, start=NOW - 100, submit=NOW - 900), job(1002, 4, submit=NOW - 90), job(1003, 4, submit=NOW - 80))
"""One job has the whole machine, two wait for it, each with a limit of an hour."""


def test_file__runtimes_are_the_predictions_where_no_earlier_one_is_known(written):
    file = written("job_id,predicted\n1001,500\n1002,1000\n1003,60\n")
    found = start_times(taken(*QUEUE), past([1800] * 20), predictor=f"file:{file}", draws=Draws(5, arrivals=False))
    assert {label: times[1:] for label, times in ahead(found).items()} == {"1002": (400, 400, 3500), "1003": (1400, 1400, 7100)}
    assert found.of("1002").alike == ("prediction",)
    assert found.as_dict()["predictor"] == f"file:{file}"


def test_file__runtimes_lie_around_the_predictions_as_earlier_ones_did(written):
    """Twenty jobs ran half as long as predicted: the jobs of the snapshot do, too."""
    earlier = "\n".join(f"{number},3600" for number in range(1, 21))
    file = written(f"job_id,predicted\n{earlier}\n1001,1000\n1002,2000\n1003,1000\n")
    found = start_times(taken(*QUEUE), past([1800] * 20), predictor=f"file:{file}", draws=Draws(40, arrivals=False))
    assert {label: times[1] for label, times in ahead(found).items()} == {"1002": 400, "1003": 1400}


def test_file__jobs_that_it_lacks_are_drawn_from_jobs_alike_and_counted(golden, written):
    file = written("job_id,predicted\n1001,500\n")
    found = start_times(taken(*QUEUE), past([1800] * 20), predictor=f"file:{file}", draws=Draws(5, arrivals=False))
    assert {label: times[1] for label, times in ahead(found).items()} == {"1002": 400, "1003": 2200}
    golden("slurm-start-times", [line for line in found.caveats if "file:" in line])


def test_file__a_prediction_that_was_known_too_late_is_not_used(written):
    file = written(f"job_id,predicted,known_at\n1001,500,{NOW - 5000}\n1002,9,{NOW}\n1003,60,{NOW - 5000}\n")
    found = start_times(taken(*QUEUE), past([1800] * 20), predictor=f"file:{file}", draws=Draws(5, arrivals=False))
    assert {label: times[1] for label, times in ahead(found).items()} == {"1002": 400, "1003": 2200}


def test_file__a_running_job_that_has_outlived_its_prediction_is_drawn_from_those_that_ran_longer(written):
    file = written("job_id,predicted\n1001,50\n1002,1000\n1003,60\n")
    found = start_times(taken(*QUEUE), past([1800] * 20), predictor=f"file:{file}", draws=Draws(5, arrivals=False))
    assert ahead(found)["1002"][1] == 1700


def test_class__sees_the_history_and_then_the_jobs_of_the_snapshot(written):
    file = written(MEMORY, "mine.py")
    found = start_times(taken(*QUEUE), past([1800] * 19 + [700], every=3600), predictor=f"{file}:Last", draws=Draws(40, arrivals=False))
    assert ahead(found)["1002"][1] == 600
    later = start_times(
        taken(*QUEUE), past([1800] * 19 + [700], every=3600), predictor=f"{file}:Last,extra=300", draws=Draws(40, arrivals=False)
    )
    assert ahead(later)["1002"][1] > 600


def test_column__of_a_snapshot_is_refused_and_exact_too():
    with raises(PolicyError, "unknown_column", "'soft_walltime'"):
        start_times(taken(*QUEUE), past([1800] * 20), predictor="column:soft_walltime", draws=Draws(5))
    with raises(PolicyError, "future_column"):
        start_times(taken(*QUEUE), past([1800] * 20), predictor="exact", draws=Draws(5))


def test_reasons_and_trials__take_predictions(written):
    file = written("job_id,predicted\n1001,500\n1002,1000\n1003,60\n")
    told = {"predictor": f"file:{file}"}
    assert explain_wait(taken(*QUEUE), past([1800] * 20), "1003", **told).sentences
    tried = try_jobs(taken(*QUEUE), past([1800] * 20), ["procs=4,limit=1h"], draws=Draws(5, arrivals=False), **told)
    assert tried.trials[0].median - NOW == 1460


def test_runtimes__lie_between_what_a_job_has_run_and_its_limit():
    jobs = JobsToDraw(
        {"user": np.array([1, 1])} | {name: np.full(2, -1) for name in ("executable", "requested", "procs")},
        *np.array([[900, 900], [0, 400]]),
    )
    history = past(np.arange(300, 700, 20))
    told = (np.array([500, 500]), np.full(20, 500))
    drawn = Runtimes(history, np.arange(20), jobs, told)
    many = np.stack([drawn.draw(np.random.default_rng(seed)) for seed in range(200)])
    assert many[:, 0].min() >= 0
    assert many[:, 1].min() > 400
    assert many.max() <= 900
    assert abs(np.median(many[:, 0]) - 490) < 60


@pytest.mark.slow
def test_calibrate__takes_a_column_of_the_log(tmp_path, capsys):
    """Two jobs at a time wait for one that runs 100 s; its column says so, its limit an hour."""
    count = 60
    log = past([100] * count, every=300)
    wait = np.tile([0, 0, 0], count // 3)
    log = log.__class__.from_arrays(
        submit=np.repeat(np.arange(count // 3) * 900, 3) + np.tile([0, 10, 20], count // 3),
        runtime=np.full(count, 100),
        procs=np.full(count, 4),
        requested=np.full(count, 3600),
        machine_procs=4,
        columns={"user": np.ones(count, np.int64), "soft": np.full(count, 100), "wait": wait + np.tile([0, 90, 180], count // 3)},
        origin=log.origin,
    )
    moments = [900 * k + 30 for k in range(8, 16)]
    found = calibrate_starts(log, predictor="column:soft", moments=moments, draws=Draws(3))
    assert found.classes["all"][1]["simulation"].error == 0
    assert found.as_dict()["predictor"] == "column:soft"


def test_commands__say_what_is_wrong_in_one_line(tmp_path, capsys, written):
    taken(*QUEUE).write(tmp_path / "s.json")
    log = tmp_path / "log.swf"
    log.write_text(
        "; MaxProcs: 4\n; UnixStartTime: 1794900000\n"
        + "".join(f"{k} {k * 600} 0 1800 1 -1 -1 1 3600 -1 1 1 1 1 1 1 -1 -1\n" for k in range(1, 21))
    )
    base = ("slurm", "start-times", tmp_path / "s.json", "--history", log, "--samples", 3, "--replayed", 0)
    file = written("job_id,predicted\n1001,500\n1002,1000\n1003,60\n")
    record = json.loads(call(capsys, *base, "--predictor", f"file:{file}", "--json")[1])
    assert record["predictor"] == f"file:{file}"
    assert "no such file" in one_line(*call(capsys, *base, "--predictor", "file:none.csv"))
    assert "no column 'soft'" in one_line(*call(capsys, *base, "--predictor", "column:soft"))
    assert "--predictor needs --starts" in one_line(*call(capsys, "calibrate", log, "--predictor", "tsafrir07"))
