"""The published metrics of gaussier15: mean response and bounded slowdown of the deterministic triples, to nine digits."""

import csv
import gzip

import pytest

import walltime as wt
from tests.published.test_schedules import LOGS
from tests.traces import published_path, trace_path

PREDICTORS = {"clairvoyant": "exact", "reqtime": "user", "double_reqtime": "user:factor=2", "tsafrir": "tsafrir07"}
CORRECTIONS = {"throw_an_error": "none", "reqtime": "estimate", "tsafrir": "tsafrir07", "recursive_doubling": "double:uncapped"}


@pytest.mark.parametrize("log", LOGS)
def test_deterministic_triples__to_nine_digits(log):
    jobs, compared = wt.read(trace_path(LOGS[log])), 0
    with gzip.open(published_path(f"sc15/{log}.metrics.csv.gz"), "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["predictor"] != "predictor_sgdlinear" and row["scheduler"] != "NA"]
    for row in rows:
        policy = "easy:backfill-order=sjf" if row["scheduler"] in ("easy_plus_plus_scheduler", "easy_sjbf_scheduler") else "easy"
        predictor = PREDICTORS.get(row["predictor"].removeprefix("predictor_"))
        prediction = None if predictor is None else wt.Prediction(predictor, correction=CORRECTIONS[row["corrector"]])
        done = wt.simulate(jobs, policy, prediction=prediction, dialect="predictsim")
        assert done.engine == "kernel"
        for ours, name in ((done.summary().mean_response, "avgft"), (done.summary().mean_bounded_slowdown, "avgbsld")):
            if row[name] != "NA":
                assert ours == pytest.approx(float(row[name]), rel=1e-9), (row, name)
                compared += 1
    assert compared == {"KTH-SP2": 28, "SDSC-SP2": 27}[log]
