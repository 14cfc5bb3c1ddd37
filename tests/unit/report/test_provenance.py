"""The record of where a result comes from."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.pages import render
from walltime.policy import Easy, order
from walltime.provenance import jobs_sha256, plain, provenance, version
from walltime.workload import Origin, Workload
from walltime.workload.drops import Drop


def workload(**changes):
    arrays = {"submit": [0, 5], "runtime": [10, 10], "procs": [4, 2], "machine_procs": 4}
    return Workload.from_arrays(
        **(arrays | changes), origin=Origin("log", "ab", 3, (Drop("cancelled", "", 1, math.nan, 3, 60.0),), noticed={"odd": np.int64(2)})
    )


def test_provenance__is_json_and_the_same_twice():
    @order
    def widest(procs):
        return procs

    made = [provenance(workload(), policies=[Easy(order=widest)], seed=np.int64(4), command=None, out=Path("a") / "b") for _ in range(2)]
    one, two = (json.dumps(record, allow_nan=False) for record in made)
    assert one == two
    assert list(made[0])[:4] == ["version", "python", "numpy", "numba"]
    assert made[0]["version"] == version() != "unknown"
    assert (made[0]["log"], made[0]["sha256"], made[0]["records"], made[0]["jobs"], made[0]["procs"]) == ("log", "ab", 3, 2, 4)
    assert (made[0]["dropped"], made[0]["changed"], made[0]["noticed"]) == ({"cancelled": 1}, {}, {"odd": 2})
    assert list(made[0]["settings"]) == ["policies", "seed", "out"]
    assert "return procs" in one


def test_jobs_sha256__notices_every_column():
    base = workload()
    others = [
        workload(submit=[0, 6]),
        workload(runtime=[10, 9], requested=[10, 10]),
        workload(requested=[10, 11]),
        workload(procs=[4, 3]),
        workload(machine_procs=5),
        base.with_planned([9, 9]),
        workload(job_id=[1, 3]),
    ]
    assert len({jobs_sha256(w) for w in (base, workload(), *others)}) == 1 + len(others)


def test_plain__odd_values():
    assert plain({1: {"b", "a"}, "x": np.array([1.5, np.inf]), "y": True}) == {"1": ["a", "b"], "x": [1.5, None], "y": True}
    assert plain(len)["function"] == "len"
    assert plain(1 + 2j) == "(1+2j)"


@pytest.mark.slow
def test_page__names_whole_schedulers():
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[5, 5], procs=[1, 1], machine_procs=1)
    page = render([wt.simulate(jobs, "easy:predictor=exact,predictions-for=selective")])
    assert '<td class="wrap">easy:predictor=exact,predictions-for=selective</td>' in page
