"""Golden files: a text that differs fails, and an update writes it."""

import pytest

from tests import golden_texts


def test_golden__fails_on_another_text_until_it_is_written(golden, tmp_path, monkeypatch):
    monkeypatch.setattr(golden_texts, "FOLDER", tmp_path / "texts")
    monkeypatch.delenv("WALLTIME_GOLDEN", raising=False)
    with pytest.raises(AssertionError):
        golden("info", "one")
    monkeypatch.setenv("WALLTIME_GOLDEN", "update")
    golden("info", ["one", tmp_path / "log.swf"])
    name = "test_golden_texts::test_golden__fails_on_another_text_until_it_is_written"
    assert (tmp_path / "texts" / "info.txt").read_text() == f"=== {name} 2\none\nTMP/log.swf\n"
    golden("info", "another\n")
    assert golden_texts.sections((tmp_path / "texts" / "info.txt").read_text()) == {
        f"{name} 2": "one\nTMP/log.swf\n",
        f"{name} 3": "another\n",
    }
    monkeypatch.delenv("WALLTIME_GOLDEN")
    with pytest.raises(AssertionError):
        golden("info", "yet another")
