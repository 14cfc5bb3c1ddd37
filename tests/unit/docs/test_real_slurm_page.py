"""The page on the comparison with a real Slurm: its tables show what is stored, and what it says of them is true."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
GENERATORS = DOCS / "generators"
PAGE = (DOCS / "validation" / "real-slurm.md").read_text()
MARKS = re.findall(r"^<!-- generated: real-slurm (\S+) -->$", PAGE, re.MULTILINE)
STORED = json.loads((GENERATORS / "slurm.json").read_text())
NOISE = json.loads((GENERATORS / "slurm-noise.json").read_text())


@pytest.fixture
def tables(monkeypatch):
    """The module that makes the tables, which only the documentation imports."""
    monkeypatch.syspath_prepend(GENERATORS)
    import slurm_tables

    yield slurm_tables
    sys.modules.pop("slurm_tables")


def mean(values):
    return sum(values) / len(values)


def test_every_part_of_the_page_is_made(tables, tmp_path):
    assert len(MARKS) == 18
    for mark in MARKS:
        text = tables.real_slurm(mark)
        assert "Not run" not in text, mark
        assert "nan" not in text
        assert "Not run" in tables.real_slurm(mark, tmp_path / "no.json")
    real = STORED["whole"]["classes"]["all"]["real"]
    assert f"**{mean(real):.1f}**" in tables.real_slurm("waits/whole")


def test_what_the_page_says_is_true():
    for name in ("whole", "shared"):
        result = STORED[name]
        assert (result["jobs"], result["nodes"]) == (300, 16)
        assert result["repetitions"] >= 5
        near = {what: mean([row[1] for row in rows]) for what, rows in result["starts"].items()}
        assert near["slurm"] > near["another real run"] - 0.1
        assert near["slurm:bf_max_job_test=1"] < near["slurm"] - 0.2
    means = {way: mean(values) for way, values in STORED["whole"]["classes"]["all"]["simulated"].items()}
    real = mean(STORED["whole"]["classes"]["all"]["real"])
    assert means["easy"] < means["conservative-scratch"] < means["slurm"] < real < means["slurm, nodes free 0.5 s later"]
    for name in ("tiers", "fair-share"):
        medians = {what: mean([row[2] for row in rows]) for what, rows in STORED[name]["starts"].items()}
        assert medians["slurm"] < 1.25 * medians["another real run"] < medians["easy"]
    found = STORED["tiers"]["classes"]["all"]
    assert (
        mean(found["simulated"]["slurm"])
        < min(found["real"])
        < mean(found["simulated"]["slurm, nodes free 0.5 s later"])
        < max(found["real"])
    )
    late = STORED["untested"]["starts"]["slurm, nodes free 0.5 s later"]
    assert all(near == 1 for near, _, _ in late), "every start is within 10 s of the real one"
    assert mean(STORED["untested"]["classes"]["all"]["real"]) > 2 * real


def test_latencies_and_noise_are_shown_as_stored(tables, tmp_path):
    for what in ("latencies", "starts"):
        assert f"<!-- generated: slurm-noise {what} -->" in PAGE
        text = tables.slurm_noise(what)
        assert "nan" not in text
        assert tables.slurm_noise(what, tmp_path / "no.json") == "*Not measured.*"
    for name, result in NOISE.items():
        median, whole = result["apart"]["simulated with the run's latencies"]
        real = result["apart"]["two real runs"]
        row = next(line for line in text.splitlines() if line.startswith(f"| {name}, ") and "latencies" in line)
        assert f"| {median:.1f} s | {whole:.1f} s | {median / real[0]:.1f} | {whole / real[1]:.1f} |" in row


def test_what_the_page_says_of_latencies_is_true():
    assert {"whole", "shared", "tiers", "fair-share"} <= NOISE.keys()
    assert np.sum(NOISE["fair-share"]["shares in order"], axis=0).tolist() == [23, 24]
    for result in NOISE.values():
        seconds = {what: median for what, (median, _, _) in result["seconds"].items()}
        assert 0.4 < seconds["from the end of a job to the next pass of the main scheduler"] < 0.6
        assert seconds["from a start to the launch on the node"] < 0.02
        assert seconds["a cycle of backfilling with jobs to test"] < 0.01
        assert result["main"][0] < 0.001
        _, real = result["apart"]["two real runs"]
        for what, (_, apart) in result["apart"].items():
            assert 0.65 * real < apart < 1.25 * real, what
    whole = {what: median for what, (median, _) in NOISE["whole"]["apart"].items()}
    assert whole["simulated with the run's latencies"] < whole["two real runs"]
    assert 2.8 < whole["simulated, passes and launches take no time"] / whole["two real runs"] < 3.2
