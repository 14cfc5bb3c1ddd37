"""Predictions made elsewhere: columns, files and classes of one's own, and the test on twins."""

import json

import numpy as np
import polars as pl
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from tests.traces import trace_path
from walltime.benchmark.predictions import judge_predictions
from walltime.comparison.caveats import caveats_of
from walltime.errors import PolicyError
from walltime.predictors import below_remark, parse_predictor, twins

OWN = """
class Last:
    def __init__(self, last=1):
        self.last, self.runtimes = last, {}

    def predict(self, job):
        mine = self.runtimes.get(job.user, [])[-self.last:]
        return sum(mine) / len(mine) if mine else None

    def observe(self, job):
        self.runtimes.setdefault(job.user, []).append(job.runtime)


class Fails:
    def predict(self, job):
        return 1 / 0

    def observe(self, job):
        pass
"""


def some_jobs(count=300, seed=1, **more):
    draw = np.random.default_rng(seed)
    runtime = draw.integers(1, 4000, count)
    soft = np.where(draw.random(count) < 0.8, runtime + 60, -1)
    return wt.Workload.from_arrays(
        submit=np.cumsum(draw.integers(0, 600, count)),
        runtime=runtime,
        requested=runtime + draw.choice([0, 100, 3600], count),
        procs=draw.integers(1, 9, count),
        machine_procs=16,
        columns={"user": draw.integers(1, 4, count), "wait": draw.integers(0, 99, count), "soft_walltime": soft},
        **more,
    )


JOBS = some_jobs()


def written(folder, **columns):
    path = folder / "made.csv"
    pl.DataFrame({name: list(values) for name, values in columns.items()}).write_csv(path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_column__is_the_prediction_and_where_it_lacks_the_request(engine):
    done = wt.simulate(JOBS, "easy:backfill-order=sjf,predictor=column:soft_walltime", engine=engine)
    soft = JOBS.columns["soft_walltime"]
    expected = np.where(soft >= 0, np.minimum(soft, JOBS.requested), JOBS.requested)
    assert (done.predictions.predicted == expected).all()
    assert (done.predictions.basis == (soft >= 0)).all()
    assert done.label == "easy:backfill-order=sjf,predictor=column:soft_walltime"
    assert done.audit().ok


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("predictor", ["tsafrir07", "quantile"])
def test_file__of_what_a_predictor_said_gives_its_schedule(tmp_path, predictor, kind):
    learned = wt.simulate(JOBS, f"easy:predictor={predictor}")
    table = pl.DataFrame({"job_id": JOBS.job_id, "p90": learned.predictions.predicted}).sample(fraction=1.0, shuffle=True, seed=1)
    path = tmp_path / f"made.{kind}"
    (table.write_csv if kind == "csv" else table.write_parquet)(path)
    again = wt.simulate(JOBS, f"easy:predictor=file:{path},column=p90")
    assert (again.start == learned.start).all()


def test_file__predictions_that_came_late_or_are_missing_are_counted_and_the_request_used(golden, tmp_path):
    known = JOBS.submit + np.where(np.arange(len(JOBS)) % 10 == 0, 1, 0)
    path = written(tmp_path, job_id=JOBS.job_id[:200], predicted=np.full(200, 30.4), known_at=known[:200])
    done = wt.simulate(JOBS, f"easy:predictor=file:{path}")
    late = (np.arange(len(JOBS)) % 10 == 0) | (np.arange(len(JOBS)) >= 200)
    assert (done.predictions.predicted == np.where(late, JOBS.requested, np.minimum(30, JOBS.requested))).all()
    remarks = parse_predictor(f"file:{path}").remarks(JOBS, JOBS.requested, JOBS.runtime)
    assert "20 predictions" in remarks[0]
    golden("predict", remarks[1])


def test_file__known_at_may_be_unix_times(tmp_path):
    jobs = some_jobs(origin=wt.workload.Origin(unix_start_time=1_700_000_000))
    path = written(tmp_path, job_id=jobs.job_id, predicted=jobs.requested, known_at=jobs.submit + 1_700_000_000)
    assert not any("known only after" in one for one in parse_predictor(f"file:{path}").remarks(jobs, jobs.requested, jobs.runtime))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"job": [1], "predicted": [5]}, ("missing_column", "job_id")),
        ({"job_id": [1]}, ("missing_column",)),
        ({"job_id": [1, 1], "predicted": [5, 6]}, ("repeated_job", "1")),
        ({"job_id": [1, 2], "predicted": ["5", "soon"]}, ("wrong_field", "2", "'soon'")),
        ({"job_id": [1.5], "predicted": [5]}, ("wrong_field", "job_id", "1")),
        ({"job_id": [-7], "predicted": [5]}, ("other_jobs",)),
    ],
)
def test_file__says_in_one_line_what_is_wrong(tmp_path, columns, message):
    with raises(PolicyError, *message):
        wt.simulate(JOBS, f"easy:predictor=file:{written(tmp_path, **columns)}")


def test_file__and_column_name_what_is_not_there():
    with raises(PolicyError, "missing_file", "nowhere.csv"):
        wt.simulate(JOBS, "easy:predictor=file:nowhere.csv")
    with raises(PolicyError, "unknown_column", "'soft'", "soft_walltime"):
        wt.simulate(JOBS, "easy:predictor=column:soft")
    with raises(PolicyError, "missing_option", "'file'"):
        parse_predictor("file")


def test_own_class__takes_options_begins_anew_and_has_a_label_that_is_read_again(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    label = f"easy:predictor={path}:Last,last=5"
    first, second = wt.simulate(JOBS, label), wt.simulate(JOBS, label)
    assert (first.start == second.start).all()
    assert first.label == label
    assert (first.predictions.basis == 0).any()
    assert (wt.simulate(JOBS, f"easy:predictor={path}:Last").start != first.start).any()
    compiled = wt.simulate(JOBS, f"easy:predictor={path}:Last,learn-from=log")
    assert compiled.engine == "kernel"


@pytest.mark.parametrize("name", ["Nobody", "Fails"])
def test_own_class__errors_are_one_line_with_file_and_line(golden, tmp_path, capsys, name):
    path, log = tmp_path / "mine.py", tmp_path / "log.swf"
    path.write_text(OWN)
    log.write_text("; MaxProcs: 4\n" + "".join(f"{n} {n} -1 9 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 9)))
    status, _, error = call(capsys, "simulate", log, "--predictor", f"{path}:{name}")
    assert status != 0
    golden("predict", error)
    assert "Traceback" not in error


def test_own_class__with_options_that_it_does_not_take(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    with raises(PolicyError, "own_code_failure", "Last", "last=1", "'red'"):
        wt.simulate(JOBS, f"easy:predictor={path}:Last,last=1,colour=red")


@pytest.mark.slow
def test_campaign__notices_another_content_of_the_file(tmp_path):
    from walltime.campaign.cell import Cell

    settings = {"model": "lublin99", "policy": "easy", "predictor": f"file:{written(tmp_path, job_id=[1], predicted=[5])}"}
    first = Cell.of(settings, 1, "none", False, ()).key(None, 1)
    assert first == Cell.of(settings, 1, "none", False, ()).key(None, 1)
    written(tmp_path, job_id=[1], predicted=[6])
    assert first != Cell.of(settings, 1, "none", False, ()).key(None, 1)


def bursts(count=400, seed=3):
    """Four jobs of one user at a time, alike in all columns, of different runtimes."""
    draw = np.random.default_rng(seed)
    first = np.cumsum(draw.integers(2000, 9000, count // 4)).repeat(4)
    return wt.Workload.from_arrays(
        submit=first + np.tile([0, 5, 5, 20], count // 4),
        runtime=draw.integers(30, 4000, count),
        requested=np.full(count, 7200),
        procs=np.ones(count, np.int64),
        machine_procs=4,
        columns={"user": draw.integers(1, 5, count // 4).repeat(4)},
    )


def test_twins__function_of_the_past_orders_half_of_them_and_the_future_all():
    jobs = bursts()
    for predictor in ("tsafrir07", "last", "gaussier15", "quantile"):
        predicted = wt.simulate(jobs, f"easy:predictor={predictor}").predictions.predicted
        assert not twins(jobs, jobs.requested, jobs.runtime, predicted).suspicious, predictor
    noise = np.random.default_rng(1).integers(1, 7200, len(jobs))
    assert not twins(jobs, jobs.requested, jobs.runtime, noise).suspicious
    exact = twins(jobs, jobs.requested, jobs.runtime, jobs.runtime)
    assert (exact.pairs, exact.right, exact.suspicious) == (200, 200, True)
    assert twins(jobs, jobs.requested, jobs.runtime, np.where(noise < 6000, jobs.runtime, noise)).suspicious


def test_twins__are_not_those_of_which_one_had_ended():
    jobs = bursts()
    quick = twins(jobs, jobs.requested, np.minimum(jobs.runtime, 15), jobs.runtime)
    assert quick.pairs == 0


@pytest.mark.slow
def test_caveat__of_a_file_that_has_seen_the_future(golden, tmp_path, capsys):
    log = trace_path("KTH-SP2-1996-2.1-cln.swf.gz")
    jobs = wt.read(log)
    path = written(tmp_path, job_id=jobs.job_id, predicted=jobs.runtime)
    caveats = json.loads(call(capsys, "simulate", log, "--predictor", f"file:{path}", "--json")[1])["caveats"]
    golden("simulate", caveats)
    honest = json.loads(call(capsys, "simulate", log, "--predictor", "tsafrir07", "--json")[1])["caveats"]
    assert not any("have equal columns" in one for one in honest)


def test_predictions_below_zero__are_counted_and_the_request_is_used(tmp_path):
    file, own = tmp_path / "made.csv", tmp_path / "own.py"
    below = JOBS.job_id % 7 == 0
    pl.DataFrame({"job_id": JOBS.job_id, "predicted": np.where(below, -5.5, JOBS.runtime)}).write_csv(file)
    own.write_text(
        "class Below:\n    def predict(self, job):\n        return -5 if job.job_id % 7 == 0 else 60\n"
        "    def observe(self, job):\n        pass\n"
    )
    for name in (f"file:{file}", f"{own}:Below"):
        predictor = parse_predictor(name)
        assert isinstance(predictor, wt.predictors.Predictor)
        done = wt.simulate(JOBS, "easy", prediction=predictor)
        [replay] = wt.predict(JOBS, [predictor])
        for made in (done.predictions, replay):
            assert (made.predicted[below] == JOBS.requested[below]).all()
            assert (made.basis == np.where(below, wt.predictors.Basis.BELOW, wt.predictors.Basis.OWN)).all()
        said = f"{below.sum()} of 300 predictions of {name} are below 0 s and not used; the user's request is used instead."
        assert below_remark(name, replay.basis) == [said]
        if name.startswith("file"):
            assert said in predictor.remarks(JOBS, JOBS.requested, JOBS.runtime)
        assert [line for line in caveats_of([done], "none") if "below 0" in line] == [said]
        judged = judge_predictions({"log": JOBS}, [name], only=True, copies=0, buffers=[1.0])
        assert [line for line in judged.caveats if "below 0" in line] == [f"log: {said}"]
        assert done.prediction_summary().na_percent == pytest.approx(100 * below.mean())
    none = parse_predictor("column:soft_walltime").made_in_advance(JOBS, JOBS.requested, JOBS.runtime, JOBS.requested)
    assert set(none[1].tolist()) == {wt.predictors.Basis.NOTHING, wt.predictors.Basis.OWN}, "-1 says that there is none"
