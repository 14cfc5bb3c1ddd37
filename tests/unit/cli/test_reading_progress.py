"""Reading a log shows how far it is: a row on a terminal, a line now and then elsewhere."""

import io

import polars as pl
import pytest

from tests.cli import call
from tests.layouts import frontier, jobs, text
from walltime.cli import output
from walltime.cli.option_groups import read_shown
from walltime.logs import csv_rows, input as files, mapped


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Small pieces, and a line for each of them."""
    for name in ("_CHUNK", "_LATER_CHUNKS"):
        monkeypatch.setattr(files, name, 1000)
    monkeypatch.setattr(mapped, "ROWS_AT_ONCE", 20)
    monkeypatch.setattr(csv_rows, "ROWS_AT_ONCE", 20)
    monkeypatch.setattr(output, "EVERY", 0.0)
    monkeypatch.setattr(output, "PATIENCE", 0.0)


def table():
    yield "job_id,user,submit_time,start_time,run_time,cores"
    for k, user, submit, wait, run, _, nodes in jobs():
        yield f"{k},{user},{submit},{submit + wait},{run},{nodes}"


@pytest.mark.parametrize("name", ["log.swf", "t.csv"])
def test_without_a_terminal__lines_say_how_much_is_read(name, tmp_path, capsys):
    (tmp_path / name).write_bytes(text(frontier() if name == "log.swf" else table()))
    status, _, err = call(capsys, "info", tmp_path / name)
    assert status == 0
    said = [line for line in err.splitlines() if line.startswith(f"walltime: reading {name}: ")]
    assert said
    assert all(line.startswith(f"walltime: reading {name}: 0 of 1 MB") for line in said)


def test_without_a_terminal__lines_count_the_rows_of_parquet(tmp_path, capsys):
    pl.read_csv(text(table())).write_parquet(tmp_path / "t.parquet")
    status, _, err = call(capsys, "info", tmp_path / "t.parquet")
    assert status == 0
    assert [line.partition(", about")[0] for line in err.splitlines() if "rows" in line] == [
        f"walltime: reading t.parquet: {done} of 60 rows" for done in (20, 40, 60)
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal__a_row_says_it(tmp_path, monkeypatch):
    (tmp_path / "log.swf").write_bytes(text(frontier()))
    shown = []
    monkeypatch.setattr(output.sys, "stderr", Terminal())
    monkeypatch.setattr(output.Row, "update", lambda self, done, **changes: shown.append((self._state["description"], done, changes)))
    read_shown(tmp_path / "log.swf")
    assert ("reading log.swf", 0, {"total": 1, "unit": "MB"}) in shown
