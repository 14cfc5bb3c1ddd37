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
"""Predictions of fewer days say nothing of how often the intervals hold."""
BELOW = {("CTC-SP2", "under 1 h"), ("CTC-SP2", "1 to 6 h"), ("SDSC-BLUE", "1 to 6 h")}
"""What the guide says does not stand: without a ledger, up to one in a hundred too few are within."""


@pytest.mark.parametrize("log", sorted(STORED))
def test_intervals__hold_about_what_they_promise(log):
    for kind in ("raw", "calibrated"):
        for row in STORED[log][kind]:
            name = row["name"]
            assert row["error"] < 0.5 * row["error_limits"]
            if row["days"] < FEWEST_DAYS:
                assert (log, name) == ("UniLu-Gaia", "over 6 h")
            elif log == "UniLu-Gaia":  # few days with deep queues have most of the predictions: the guide says so
                assert 0.85 <= row["inside_by_day"] <= 0.95, (kind, name)
            elif kind == "raw" and (log, name) in BELOW:
                assert 0.84 <= row["inside"] < 0.85, (log, name)
            else:
                assert 0.85 <= row["inside"] <= 0.95, (log, kind, name)
