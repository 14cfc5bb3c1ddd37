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


FEWEST_DAYS = 7
"""Predictions of fewer days say nothing of how often the intervals hold; the guide says which these are."""


@pytest.mark.parametrize("log", sorted(STORED))
def test_intervals__hold_about_what_they_promise(log):
    for kind in ("raw", "calibrated"):
        for row in STORED[log][kind]:
            assert row["error"] < 0.5 * row["error_limits"]
            if row["days"] < FEWEST_DAYS:
                assert (log, row["name"]) == ("UniLu-Gaia", "over 6 h")
                continue
            assert 0.85 <= row["inside_by_day"] <= 0.95, (log, kind, row["name"])
            if log == "UniLu-Gaia":  # two days of it have more than half of the predictions
                assert row["inside"] >= 0.85, (kind, row["name"])
            else:
                assert 0.85 <= row["inside"] <= 0.95, (log, kind, row["name"])
