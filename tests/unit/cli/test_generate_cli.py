"""`walltime generate` as a user meets it, and the figure that it draws."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.cli.main import run
from walltime.errors import WorkloadError
from walltime.preparation.workload_figures import compare_workloads, daily_cycle
from walltime.report.figure_files import figure_bytes
from walltime.workload.models import MODELS


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    status = run(["generate", *(str(a) for a in arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("ending", ["swf", "swf.gz"])
def test_generate__what_is_read_back_are_the_same_jobs(capsys, tmp_path, name, ending):
    out = tmp_path / f"made.{ending}"
    status, text, errors = call(capsys, name, "--jobs", 300, "--procs", 64, "--load", 0.7, "--seed", 5, "--out", out)
    assert (status, errors) == (0, "")
    assert f"{name}: 300 jobs, seed 5" in text
    assert "70 % requested" in text
    made, read = MODELS[name].generate(300, 64, 0.7, 5), wt.read(out)
    for column in ("job_id", "submit", "runtime", "requested", "procs"):
        assert np.array_equal(getattr(made, column), getattr(read, column)), column
    for column, values in made.columns.items():
        assert np.array_equal(values, read.columns[column]), column
    assert read.machine_procs == 64
    assert read.origin.unix_start_time == 0
    assert read.origin.dropped == {}
    assert read.origin.changed == {}


@pytest.mark.nightly
def test_generate__same_bytes_in_other_processes_with_other_threads(tmp_path):
    for threads in ("1", "2"):
        settings = dict.fromkeys(("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
        code = f"""
from walltime.logs import write_swf
from walltime.workload.models import MODELS
for name, model in MODELS.items():
    write_swf({str(tmp_path)!r} + "/" + name + "-{threads}.swf.gz", model.generate(5000, 100, 0.8, 3))
"""
        environment = os.environ | settings | {"PYTHONHASHSEED": threads}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    for name, model in MODELS.items():
        here = tmp_path / f"{name}.swf.gz"
        wt.logs.write_swf(here, model.generate(5000, 100, 0.8, 3))
        files = [(tmp_path / f"{name}-{threads}.swf.gz").read_bytes() for threads in ("1", "2")]
        assert files[0] == files[1] == here.read_bytes(), name


def test_generate__json(golden, capsys, tmp_path):
    out = tmp_path / "made.swf"
    status, text, _ = call(capsys, "feitelson96", "--jobs", 500, "--load", 0.5, "--estimates", "f:4", "--out", out, "--json")
    result = json.loads(text)
    assert status == 0
    assert (result["model"], result["jobs"], result["procs"], result["load"], result["estimates"]) == ("feitelson96", 500, 128, 0.5, "f:4")
    assert result["offered_load"] == pytest.approx(0.5, rel=0.01)
    assert 0 < result["repeated_percent"] < 100
    read = wt.read(out)
    assert result["sha256"] == read.origin.sha256
    assert result["mean_requested"] == pytest.approx(read.requested.mean())
    assert (read.requested >= read.runtime).all()
    assert (read.requested > read.runtime).mean() > 0.9
    golden("generate", read.origin.header)


def test_generate__defaults_and_load_as_drawn(golden, capsys, tmp_path):
    out = tmp_path / "made.swf"
    status, text, _ = call(capsys, "lublin99", "--out", out)
    assert status == 0
    assert "10,000 jobs, seed 0" in text
    golden("generate", text)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (
            ["lublin98", "--out", "x.swf"],
            2,
        ),
        (["lublin99", "--out", "x.swf", "--load", "0"], 2),
        (["lublin99", "--out", "x.swf", "--load", "1.51"], 2),
        (["lublin99", "--out", "x.swf", "--jobs", "-1"], 2),
        (["lublin99", "--out", "x.swf", "--procs", "0"], 2),
        (["lublin99", "--out", "x.swf", "--seed", "-1"], 2),
        (["lublin99", "--out", "x.swf", "--estimates", "guess"], 2),
        (["lublin99", "--out", "x.txt"], 2),
        (["lublin99", "--out", "x.swf", "--figure", "x.jpg"], 2),
        (["lublin99", "--out", "x.swf", "--compare-with", "y.swf"], 2),
        (["lublin99", "--out", "nowhere/x.swf"], 2),
        (["lublin99", "--out", "x.swf", "--jobs", "many"], 2),
        (["lublin99"], 2),
        (["jann97:gap=1", "--out", "x.swf"], 2),
    ],
)
def test_generate__one_line_for_a_wrong_call(golden, capsys, tmp_path, monkeypatch, arguments, status):
    monkeypatch.chdir(tmp_path)
    got, out, errors = call(capsys, *arguments)
    assert got == status
    golden("generate", errors)
    assert errors.startswith("walltime: ")
    assert errors.count("\n") == 1
    assert out == ""
    assert list(Path().iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_generate__figure_beside_another_log(capsys, tmp_path, ending):
    other, out = tmp_path / "other.swf", tmp_path / "made.swf"
    call(capsys, "downey97", "--jobs", 400, "--out", other)
    figures = []
    for k in range(2):
        figure = tmp_path / f"{k}.{ending}"
        status, text, _ = call(capsys, "lublin99", "--jobs", 400, "--out", out, "--compare-with", other, "--figure", figure)
        assert status == 0
        assert f"figure written to {figure}" in text
        figures.append(figure.read_bytes())
    assert figures[0] == figures[1]
    if ending == "svg":
        drawn = figures[0].decode()
        for words in ("other", "lublin99", "runtime at most", "arrivals by hour of the day"):
            assert words in drawn
    else:
        assert figures[0].startswith(b"\x89PNG")


def test_compare_workloads__curves_are_distribution_functions():
    made = [MODELS[name].generate(500, 64, 0.7, 1) for name in ("lublin99", "jann97")]
    size, runtime, gap, day = compare_workloads(made, ["one", "two"]).axes
    for k, w in enumerate(made):
        for axes, values in ((size, w.procs), (runtime, w.runtime), (gap, np.diff(w.submit))):
            x, y = (np.asarray(v) for v in axes.lines[k].get_data())
            expected = [100 * (values <= at).mean() for at in x]
            np.testing.assert_allclose(y, expected, atol=1e-9)
    assert len(day.patches) == 2
    assert [text.get_text() for text in compare_workloads(made).legends[0].get_texts()] == [w.origin.name for w in made]


@pytest.mark.slow
def test_compare_workloads__of_clocks_that_nobody_knows(golden):
    log = wt.Workload.from_arrays(submit=[0, 5, 90_000], runtime=[0, 1, 2], procs=[1, 1, 1], machine_procs=1)
    figure = compare_workloads([log])
    golden("generate", figure.axes[3].get_xlabel())
    assert figure_bytes(figure, "png").startswith(b"\x89PNG")


def test_compare_workloads__nothing_to_draw():
    with raises(WorkloadError, "no_workload"):
        compare_workloads([])
    one = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    with raises(WorkloadError, "too_few_jobs", "workload", "1"):
        compare_workloads([one])


def test_daily_cycle__in_the_time_of_the_site():
    origin = wt.workload.Origin(unix_start_time=843_480_031, time_zone="Europe/Stockholm")  # 23 September 1996, 14:00:31 there
    log = wt.Workload.from_arrays(submit=[0, 3600, 130 * 86_400], runtime=[1] * 3, procs=[1] * 3, machine_procs=1, origin=origin)
    cycle = daily_cycle(log)
    assert cycle[28] == pytest.approx(1 / 3)
    assert cycle[30] == pytest.approx(1 / 3)
    assert cycle[26] == pytest.approx(1 / 3)  # in winter the clock there is one hour back
