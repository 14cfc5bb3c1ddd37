"""OAR's scheduling beside recorded runs: every pass from the recorded state, and whole runs beside the difference of two real ones."""

import gzip
import json

import pytest

import walltime as wt
from tests.traces import published_path
from validation.oar import differences, drifting, replay


def passes():
    with gzip.open(published_path("oar/passes-seed1.json.gz")) as file:
        return json.load(file)


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.nightly)])
def test_recorded_passes__start_the_same_jobs_on_the_same_nodes(every):
    made = replay(passes(), every)
    assert made.passes == len(range(0, 1215, every))
    assert made.alike == made.passes
    assert made.same_nodes == made.starts > 0


def test_a_changed_pass__is_not_made_alike():
    record = passes()
    one = next(one for one in record["passes"] if one["started"])
    record["passes"] = [one | {"started": []}]
    assert replay(record).alike == 0


def test_free_runs__differ_from_real_ones_hardly_more_than_two_real_ones_do():
    runs = [wt.read(published_path(f"oar/run{number}-seed0.swf.gz")) for number in (1, 4)]
    found = differences(runs, seeds=20)
    [real] = found["real"]
    assert (real["median"], round(real["mean"], 1)) == (10.0, 42.8)
    for simulated in found["simulated"]:
        assert simulated["median"] <= 1.5 * real["median"]
        assert simulated["mean"] <= 1.5 * real["mean"]


def test_drifting__names_what_differs_by_more_than_real_runs_do():
    real = {"median": 10.0, "mean": 43.0}
    runs = {"real": [real], "simulated": [{"median": 15.0, "mean": 64.0}, {"median": 9.0, "mean": 40.0}]}
    assert drifting(runs) == []
    assert drifting(runs | {"simulated": [{"median": 15.1, "mean": 40.0}]}) == ["median"]
    assert drifting(runs | {"simulated": [{"median": 1.0, "mean": 65.0}]}) == ["mean"]
