"""The Python examples of the documentation and of the README run, and print what they say."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(page: Path) -> doctest.DocTest:
    """All examples of a page, one after the other, with the line numbers that they have there."""
    text = page.read_text()
    code = re.sub(r"[^\n]+", "", text)
    for match in reversed(list(FENCE.finditer(text))):
        line = text.count("\n", 0, match.start(1))
        lines = code.splitlines(keepends=True)
        inside = match[1].splitlines(keepends=True)
        code = "".join(lines[:line] + inside + lines[line + len(inside) :])
    return doctest.DocTestParser().get_doctest(code, {"__name__": "example"}, page.name, str(page), 0)


@pytest.mark.parametrize("page", [p for p in PAGES if FENCE.search(p.read_text())], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples__print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(examples(page), out=told.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(told)


LABEL = re.compile(r"\bSPEC\b|\b[ALMQRTWX]-\d\d[a-z]?\b|\bX-[LP]\d?-?[A-Z]?\d+\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages__cite_papers_not_labels(page):
    assert not LABEL.findall(page.read_text())


@pytest.mark.parametrize("folder", ["logs", "metrics", "papers", "report", "workload"])
def test_docstrings__cite_papers_not_labels(folder):
    for path in sorted((ROOT / "src" / "walltime" / folder).rglob("*.py")):
        assert not LABEL.findall(path.read_text()), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples__stand_in_fences_that_are_run(page):
    outside = FENCE.sub("", page.read_text())
    assert ">>> " not in outside
