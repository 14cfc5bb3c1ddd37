"""Damaged inputs of every kind: one line and no traceback, no hang, and every record counted; `validation/hostile.py` has more of them."""

from __future__ import annotations

import json
import os

import polars as pl
import pytest

from tests import profiles
from tests.cli import HEADER, call, one_line, record
from validation import hostile
from validation.hostile_damage import odd_digits
from validation.hostile_inputs import CLUSTER, FORMS, INPUTS, SWF

TRIALS = 50
"""The trials of each kind at night; `validation/hostile.py` makes as many as one likes."""
USUAL = 3
SLOW = {
    **dict.fromkeys((*FORMS, "sacct-other-titles", "sacct-archive", "sacct-fixed"), 1),
    "sacct": 2,
    "sacct-csv": 2,
    "sacct-quoted": 2,
    "gpu-table": 1,
    "alcf": 2,
    "torque": 1,
    "qstat": 1,
    "grid-engine-table": 1,
    "pbs-table": 1,
    "htcondor-table": 1,
    "table": 2,
    "untitled": 1,
    "class-ads": 2,
    "grid-engine": 2,
    "joined": 1,
    "unknown-table": 2,
    "agent": 2,
    "result": 2,
    "qstat-json": 1,
    "bjobs-json": 1,
    "scontrol": 1,
    "markdown": 1,
    "jobcomp": 1,
    "oar-json": 2,
    "flux": 2,
    "batsim": 2,
}
"""Kinds of which one trial takes long, and how many are tried in `make test`."""


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", INPUTS)
def test_damaged_input__is_one_line_or_counted_in_full(kind):
    count = TRIALS if profiles.PROFILE == "nightly" else SLOW.get(kind, USUAL)
    assert hostile.trials(kind, count, seed=1) == []


NO_TEXT = ("parquet", "predictions-parquet", "schedule-parquet", "agent")


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.nightly] * (kind in SLOW)) for kind in INPUTS if kind not in NO_TEXT]
)
def test_odd_digits__are_read_or_counted(kind):
    count = 10 if profiles.PROFILE == "nightly" else (SLOW.get(kind, USUAL) + 3) // 4
    assert hostile.trials(kind, count, seed=2, damage=odd_digits) == []


def test_trial__finds_what_is_planted(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("walltime.logs.read_log", broken)
    faults = hostile.trials("swf", 0, seed=1)
    assert len(faults) == 3
    assert all("ZeroDivisionError: planted" in fault.seen for fault in faults)


def test_trial__finds_records_that_are_lost():
    with INPUTS["swf"]() as one:
        counted = {"jobs": 10, "records": 12, "dropped": {"bad_line": 1}}
        assert "12 records, but 10 jobs and 1 dropped" in hostile.lost(json.dumps(counted), one, SWF.encode())
        assert hostile.lost(json.dumps(counted | {"jobs": 11}), one, SWF.encode()) is None
        assert "13 records in the file" in hostile.lost(json.dumps(counted | {"jobs": 11}), one, (SWF + record(99, 1, 1, 1, 1)).encode())


def test_trial__finds_jobs_that_a_machine_drops_without_a_count():
    rules = [{"jobs": 2, "of_jobs": 12}, {"jobs": 1, "of_jobs": 10}]
    assert hostile.uncounted(json.dumps({"jobs": 9, "left_out": {"rules": rules}})) is None
    assert "12 records, 3 left out, but 8 jobs" in hostile.uncounted(json.dumps({"jobs": 8, "left_out": {"rules": rules}}))


def test_trial__finds_a_hang(monkeypatch):
    monkeypatch.setattr(hostile, "run", lambda words: [None for _ in iter(int, 1)])
    assert hostile.fault_of(*hostile.called(["info"], 0.05)) == "no end after 0.05 s"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('by = ["user"]', "by = 0.5"),
        ("nodes = 4", "nodes = 9223372036854775808"),
        ("nodes = 4", f"nodes = {2**53}"),
        ("begin = 40", "begin = 1e400"),
        ('name = "site"', f"name = {'[' * 5000}"),
    ],
    ids=["by a number", "beyond int64", "beyond counting", "no time", "deep"],
)
def test_machine__that_cannot_be_is_one_line(golden, capsys, tmp_path, old, new):
    (tmp_path / "log.swf").write_text(SWF)
    (tmp_path / "c.toml").write_text(CLUSTER.replace(old, new, 1))
    golden("simulate", one_line(*call(capsys, "simulate", tmp_path / "log.swf", "--machine", tmp_path / "c.toml")))


def test_work_beyond_int64__is_refused_in_one_line(golden, capsys, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 2147483646\n" + "".join(record(k, k, 10**15, 2147483646, 10**15) for k in (1, 2)))
    err = one_line(*call(capsys, "simulate", log))
    golden("simulate", err)
    assert "job 1, with 2,147,483,646 processors for 1000000000000000 s" in err


@pytest.mark.parametrize("zone", ["Europe", "America", "../etc", "x" * 300, "\\0"])
def test_zone__that_is_none_is_taken_as_utc(capsys, tmp_path, zone):
    log = tmp_path / "log.swf"
    log.write_text(HEADER.replace("Europe/Stockholm", zone) + record(1, 0, 10, 1, 20))
    status, out, err = call(capsys, "simulate", log, "--policy", "fcfs", "--by", "hour")
    assert (status, err) == (0, "")
    assert "12" in out or "13" in out


def test_start__before_1970(capsys, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(HEADER.replace("843480031", "-86400").replace("Europe/Stockholm", "UTC") + record(1, 0, 10, 1, 20))
    assert json.loads(call(capsys, "info", log, "--json")[1])["unix_start_time"] == -86400
    assert "1969-12" in call(capsys, "simulate", log, "--policy", "fcfs", "--by", "month")[1]
    log.write_text(log.read_text().replace("-86400", "-1"))
    assert json.loads(call(capsys, "info", log, "--json")[1])["unix_start_time"] is None


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_line_ends__of_other_systems(capsys, tmp_path, end):
    log = tmp_path / "log.swf"
    log.write_bytes(SWF.replace("\n", end).encode())
    found = json.loads(call(capsys, "info", log, "--json")[1])
    assert (found["records"], found["jobs"], found["procs"]) == (12, 12, 4)


def test_parquet__of_which_polars_panics_is_one_line(golden, capfd, tmp_path, monkeypatch):
    def panics(*_, **__):
        os.write(2, b"thread 'async-executor-0' panicked\n")
        raise pl.exceptions.PanicException("assertion failed")

    log, schedule = tmp_path / "log.swf", tmp_path / "s.parquet"
    log.write_text(SWF)
    assert call(capfd, "simulate", log, "--policy", "fcfs", "--out", schedule)[0] == 0
    assert call(capfd, "convert", log, "--out", tmp_path / "log.parquet")[0] == 0
    pl.read_parquet  # noqa: B018 loads polars, of which walltime.dataframes keeps what it had
    for module in ("dataframes", "schedule.files"):
        monkeypatch.setattr(f"walltime.{module}.pl.read_parquet", panics)
    golden("audit", one_line(*call(capfd, "audit", log, schedule)))
    golden("info", one_line(*call(capfd, "info", tmp_path / "log.parquet")))
