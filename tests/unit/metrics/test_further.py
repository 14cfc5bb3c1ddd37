"""Further metrics by name, and metrics of one's own."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.metrics.further import FURTHER, gini

JOBS = wt.workloads.Lublin99().generate(300, 64, 1.2, 1)
JOBS = wt.Workload.from_arrays(
    submit=JOBS.submit, runtime=JOBS.runtime, procs=JOBS.procs, machine_procs=64, columns={"user": np.arange(300) % 7}
)
MADE = wt.simulate(JOBS, "easy")
OWN = "def longest(schedule, measured):\n    return schedule.wait[measured].max()\n\ndef text(schedule, measured):\n    return 'a'\n"


def test_metrics__agree_with_their_definitions():
    wait, procs, run = MADE.wait.tolist(), JOBS.procs.tolist(), MADE.runtime.tolist()
    area = [p * r for p, r in zip(procs, run, strict=True)]
    response = sum(a * (w + r) for a, w, r in zip(area, wait, run, strict=True)) / sum(area)
    assert MADE.metric("area_weighted_response") == pytest.approx(response)
    assert MADE.metric("p90_wait") == pytest.approx(MADE.summary().p90_wait)
    slowdown = [max((w + r) / max(r, 10), 1) for w, r in zip(wait, run, strict=True)]
    assert MADE.metric("jain_slowdown") == pytest.approx(sum(slowdown) ** 2 / (300 * sum(s * s for s in slowdown)))
    pairs = sum(abs(a - b) for a in wait for b in wait) / (2 * 300 * sum(wait))
    assert MADE.metric("gini_wait") == pytest.approx(pairs)
    users = [np.mean(wait[k::7]) for k in range(7)]
    assert MADE.metric("gini_users") == pytest.approx(gini(np.array(users)))
    short = [s for s, r, p in zip(slowdown, run, procs, strict=True) if r <= 3600 and p > 8]
    assert MADE.metric("slowdown_short_wide") == pytest.approx(np.mean(short))
    assert MADE.metric("mean_wait", "after:0") == MADE.summary().mean_wait
    assert all(math.isfinite(MADE.metric(name)) for name in FURTHER if not name.startswith("slowdown_"))


def test_metrics__that_are_unknown_or_wrong_are_errors(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(OWN)
    assert MADE.metric(f"{own}:longest") == MADE.summary().max_wait
    for name, code in (("p95_wat", "unknown_name"), (f"{own}:text", "wrong_value"), (f"{own}:none", "unknown_name")):
        with raises(wt.PolicyError, code):
            MADE.metric(name)
    without = wt.simulate(wt.workloads.Lublin99().generate(50, 64, 0.9, 1), "easy")
    with raises(wt.PolicyError, "missing_column"):
        wt.Schedule.from_table(
            {"job_id": [1], "start": [0], "end": [1]}, wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
        ).metric("jain_users")
    assert math.isfinite(without.metric("p99.9_response"))


def test_compare__shows_further_metrics(tmp_path, capsys):
    log, own = tmp_path / "log.swf", tmp_path / "own.py"
    own.write_text(OWN)
    wt.logs.write_swf(log, JOBS)
    options = ("--policy", "easy", "--policy", "fcfs", "--metric", "p99_wait", "--metric", f"{own}:longest", "--json")
    status, text, _ = call(capsys, "compare", log, *options)
    assert status == 0
    found = json.loads(text)["runs"][0]["metrics"]
    assert found == {"p99_wait": MADE.summary().p99_wait, f"{own}:longest": MADE.summary().max_wait}
