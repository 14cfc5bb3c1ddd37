"""Readers of logs that users add: in Python, on the command line, and in campaigns."""

from __future__ import annotations

import json

import pytest

import walltime as wt
from tests.cli import call
from walltime.campaign import read_plan, read_results, run_campaign, status
from walltime.errors import WalltimeError

READERS = """
from pathlib import Path
import walltime as wt
from walltime.logs import JobLog

def pipes(path):
    rows = [line.split("|") for line in Path(path).read_text().splitlines()]
    numbers = [[int(one) for one in column] for column in zip(*(row[1:] for row in rows))]
    return wt.Workload.from_arrays(
        submit=numbers[0], procs=numbers[1], runtime=numbers[2], machine_procs=8, columns={"user": [row[0] for row in rows]}
    )

def as_log(path):
    return JobLog(1, {"submit": [0], "runtime": [7], "allocated_procs": [2]}, header_lines=("; MaxProcs: 4",))

def planned(path):
    return wt.Workload.from_arrays(submit=[0], runtime=[5], procs=[1], machine_procs=1, planned=[9])

def nothing(path):
    return None

def fails(path):
    return 1 // 0

def other(path, more):
    return None
"""
LINES = "ann|0|4|10\nbob|1|8|20\nann|2|4|30\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "readers.py").write_text(READERS)
    (tmp_path / "jobs.pipes").write_text(LINES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_own_reader__in_python(folder):
    jobs = wt.read("jobs.pipes", mapping="readers.py:pipes")
    assert jobs.submit.tolist() == [0, 1, 2]
    assert jobs.procs.tolist() == [4, 8, 4]
    assert jobs.machine_procs == 8
    assert jobs.origin.names["user"] == ("ann", "bob")
    assert len(jobs.origin.sha256) == 64
    assert jobs.origin.name.startswith("jobs")
    assert wt.read("jobs.pipes", mapping="readers.py:as_log").runtime.tolist() == [7]


@pytest.mark.parametrize(
    ("name", "code", "options"),
    [
        ("planned", "wrong_values", {}),
        ("nothing", "wrong_type", {}),
        ("fails", "own_code_failure", {}),
        ("other", "not_a_part", {}),
        ("missing", "unknown_name", {}),
        ("pipes", "conflicting_options", {"time_zone": "UTC"}),
    ],
)
def test_own_reader__that_cannot_be_used(folder, name, code, options):
    with pytest.raises(WalltimeError) as caught:
        wt.read("jobs.pipes", mapping=f"readers.py:{name}", **options)
    assert caught.value.code == code


def test_own_reader__on_the_command_line(folder, capsys):
    status, out, err = call(capsys, "simulate", "jobs.pipes", "--mapping", "readers.py:pipes", "--policy", "easy", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["jobs"] == 3


def test_own_reader__in_a_campaign(folder):
    plan = folder / "plan.toml"
    plan.write_text('[fixed]\ntrace = "jobs.pipes"\nmapping = "readers.py:pipes"\n\n[grid]\npolicy = ["fcfs", "easy"]\n')
    first = read_plan(plan, own=["readers.py"])
    run_campaign(first)
    keys = [row["cell"] for row in read_results(first).cells.to_dicts()]
    assert len(keys) == 2
    assert not status(first).unkept  # the log is no undeclared file of the reader
    (folder / "readers.py").write_text(READERS.replace("machine_procs=8", "machine_procs=9"))
    again = read_plan(plan, own=["readers.py"])
    run_campaign(again)
    assert set(read_results(again).cells["procs"].to_list()) == {9}
    plan.write_text(plan.read_text().replace("readers.py:pipes", "unheard-of"))
    with pytest.raises(WalltimeError) as caught:
        read_plan(plan)
    assert caught.value.code == "unknown_name"
