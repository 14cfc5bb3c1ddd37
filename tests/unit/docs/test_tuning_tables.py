"""The tables of the guides on tuning, benchmarks and the trained agent say what was stored."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from walltime.wording import shown_change

DOCS = Path(__file__).resolve().parents[3] / "docs"
GENERATORS = DOCS / "generators"


@pytest.fixture
def tables(monkeypatch):
    """A module of the documentation by name."""
    monkeypatch.syspath_prepend(str(GENERATORS))

    def load(name):
        spec = importlib.util.spec_from_file_location(name, GENERATORS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


def test_tuning__both_logs_with_intervals(tables, tmp_path):
    tuning = tables("tuning_tables").tuning
    fitted = tuning().splitlines()
    stored = json.loads((GENERATORS / "tuning.json").read_text())
    assert list(stored) == ["KTH-SP2", "SDSC-BLUE"]
    assert len(fitted) == 8
    gain = stored["KTH-SP2"]["fitted"][0]["fitted"]["test"]
    assert f"({shown_change(gain['low'], gain['low'], gain['high'])} to " in fitted[2]
    assert tuning(tmp_path / "none.json") == "*Not measured.*"


def test_standings__are_of_the_suites_as_they_are(tables, tmp_path):
    module = tables("leaderboard_tables")
    assert module.suites().count("\n") == 5
    for name in module.SUITES:
        text = module.standings(name)
        assert "earlier definition" not in text
        assert text.count("| best |") + text.count("| lowest |") == 1
        assert "| behind |" in text
    assert module.standings("classic", tmp_path / "none.json") == "*Not run.*"


@pytest.mark.slow
def test_learned__both_logs_with_intervals(tables, tmp_path):
    learned = tables("learned_tables").learned
    stored = json.loads((GENERATORS / "learned.json").read_text())
    assert list(stored) == ["Lublin99", "SDSC-SP2"]
    schedulers = len(stored["SDSC-SP2"]["compared"])
    assert len(learned("comparison").splitlines()) == 2 + 1 + schedulers
    assert len(learned("training").splitlines()) == 2 + sum(len(found["agents"]) for found in stored.values())
    first = stored["SDSC-SP2"]["importances"][0]
    assert f"| `{first['feature']}` |" in learned("features")
    assert learned("verdict").count("easy:order=f4") >= 2
    assert learned("training", tmp_path / "none.json") == "*Not measured.*"
    pictures = tables("learned_tables").pictures
    assert all(f"({name})" in (DOCS / "validation/learned-agents.md").read_text() for name in pictures())
    assert len(pictures()) == 2
    assert pictures(tmp_path / "none.json") == {}
