"""The template of a package with parts: it can be installed, and each of its parts can be used and is listed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).parents[3] / "docs" / "plugin-template"
USE = """
from pathlib import Path
import walltime as wt
from walltime.cli.main import run
from walltime.estimates import parse_estimates
from walltime.workload.models import parse_model
jobs = parse_model("uniform:longest=600").generate(60, 16, 0.9, 1)
jobs = jobs.with_estimates(parse_estimates("whole-hours"))
assert set(jobs.planned.tolist()) == {3600}
schedules = [wt.simulate(jobs, text) for text in ("widest-first", "easy:order=smallest-work", "easy:predictor=half")]
assert len({tuple(one.start.tolist()) for one in schedules}) > 1
assert [one.label for one in schedules] == ["widest-first", "easy:order=smallest_work", "easy:predictor=half"]
assert 0 < schedules[1].summary("second-half").measured_jobs < 60
assert 0 < schedules[1].metric("share-without-wait") < 1
log = Path("pipes.txt")
log.write_text("0|ann|4|3600\\n5|bob|64|60\\n9|ann|64|60\\n")
read = wt.read(log, mapping="pipes")
assert read.procs.tolist() == [4, 64, 64] and read.machine_procs == 64 and read.origin.names["user"] == ("ann", "bob")
assert run(["simulate", "pipes.txt", "--mapping", "pipes", "--policy", "easy"]) == 0
for kind in ("policies", "orders", "predictors", "estimates", "models", "trims", "metrics", "formats"):
    assert run(["list", kind]) == 0
"""


@pytest.mark.slow
def test_template__can_be_installed_and_used(tmp_path):
    options = [
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
        "--quiet",
        "--target",
        str(tmp_path / "site"),
    ]
    made = subprocess.run([sys.executable, "-m", "pip", "install", *options, str(TEMPLATE)], capture_output=True, text=True, check=False)
    if made.returncode and "No module named pip" in made.stderr:
        pytest.skip("pip is not installed")
    assert made.returncode == 0, made.stderr
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{USE}"
    used = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert used.returncode == 0, used.stderr
    for name in ("widest-first", "smallest-work", "half", "whole-hours", "uniform", "second-half", "share-without-wait", "pipes"):
        assert name in used.stdout
    assert "my-walltime-parts" in used.stdout
