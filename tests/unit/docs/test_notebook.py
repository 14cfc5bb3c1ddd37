"""The notebooks of the documentation run from a fresh kernel, and show tables, figures and text; they are kept without outputs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
GENERATORS = DOCS / "generators"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__is_kept_without_outputs(path):
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.nightly  # `make docs` runs them as well
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook__runs_and_becomes_a_page(path, monkeypatch):
    pytest.importorskip("nbclient", reason="nbclient is not installed; make setup does it")
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; make setup does it")
    monkeypatch.syspath_prepend(GENERATORS)  # it imports its neighbours
    spec = importlib.util.spec_from_file_location("notebook_pages", GENERATORS / "notebook_pages.py")
    pages = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "notebook_pages", pages)
    spec.loader.exec_module(pages)

    notebook = pages.executed(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and not cell.source.startswith("%")]
    kinds = [{kind for output in cell.outputs for kind in (output.get("data", {}) or ["text"])} for cell in code]
    assert all(kinds), "every cell shows something"
    figures = {"image/svg+xml"} if path.stem != "own-predictions" else set()
    assert {"text/html", "text"} | figures <= set().union(*kinds)

    page, figures = pages.as_markdown(notebook, path.stem)
    assert page.startswith("# ")
    assert len(figures) == page.count(".svg)") == sum("image/svg+xml" in kind for kind in kinds)
    assert page.count("<table") == sum("text/html" in kind and "image/svg+xml" not in kind for kind in kinds)
    assert "<walltime." not in page
    assert "<Workload" not in page
