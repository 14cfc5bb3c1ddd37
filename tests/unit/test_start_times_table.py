"""The guide on start times: its table shows what is stored, and what the guide says of it is true."""

import json
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
STORED = json.loads((DOCS / "start-times.json").read_text())


@pytest.fixture
def tables(monkeypatch):
    """The module that makes the table, which only the documentation imports."""
    monkeypatch.syspath_prepend(DOCS)
    import start_times_tables

    yield start_times_tables
    for name in ("start_times_tables", "performance_tables"):
        sys.modules.pop(name, None)


def test_table__has_a_row_for_each_class(tables, tmp_path):
    text = tables.start_times()
    assert text.count("\n") == 1 + sum(len(found["raw"]) for found in STORED.values())
    assert "nan" not in text
    assert tables.start_times(tmp_path / "none.json") == "*Not measured.*"


@pytest.mark.parametrize("log", sorted(STORED))
def test_intervals__hold_about_what_they_promise(log):
    for kind in ("raw", "calibrated"):
        for row in STORED[log][kind]:
            assert 0.85 <= row["inside"] <= 0.95, (log, kind, row["name"])
            assert row["error"] < 0.5 * row["error_limits"]
