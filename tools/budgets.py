"""Checks that no package has more lines, and no page more words, than its budget in tools/budgets.toml: `python tools/budgets.py`.

A package that needs more gets a larger budget in the same commit, whose message gives the reason.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "walltime"
MODULES = "modules"
"""The key for the modules that are in no package."""
GENERATED = re.compile(r"<!-- generated: [^>]*-->(?:(?!<!-- generated).)*?<!-- end generated -->", re.DOTALL)
"""Parts of pages that docs/generators/tables.py writes; it writes the pages of commands and of questions as a whole."""
DIRECTIVE = re.compile(r"^::: .*\n(?:\n? {4}.*\n)*", re.MULTILINE)
"""Places that MkDocs fills with the docstring of a name."""
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def lines_by_package() -> Counter[str]:
    """Return the number of lines of each package, and of the modules outside packages together."""
    lines: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE).parts
        lines[parts[0] if len(parts) > 1 else MODULES] += len(file.read_text(encoding="utf-8").splitlines())
    return lines


def words_by_page(folder: Path = ROOT, code: bool = True) -> dict[str, int]:
    """Return the number of words of each page that are written by hand; `code`: whether those of examples count.

    Generated parts and names of entries of the Python reference do not count.
    """
    texts = {page.relative_to(folder).as_posix(): page.read_text(encoding="utf-8") for page in sorted((folder / "docs").rglob("*.md"))}
    return {
        name: len((text if code else CODE.sub("", text)).split())
        for name, text in ((name, DIRECTIVE.sub("", GENERATED.sub("", text))) for name, text in texts.items())
        if "/cli/" not in name and not name.endswith("questions.md")
    }


def too_many_words(budgets: dict[str, int]) -> list[str]:
    """Return a line if the documentation is over its budget, and for each guide that is too long without its examples."""
    total = sum(words_by_page().values())
    found = [f"docs has {total:,} words, its budget is {budgets['docs']:,}"] if total > budgets["docs"] else []
    guides = {name: words for name, words in words_by_page(code=False).items() if name.startswith("docs/guides/")}
    return [
        *found,
        *(f"{name} has {words:,} words, more than {budgets['guide']:,}" for name, words in guides.items() if words > budgets["guide"]),
    ]


def faults(lines: Counter[str], budgets: dict[str, int]) -> list[str]:
    """Return a line for each package that is over its budget, or has none, and for each budget without a package."""
    found = [
        f"{name} has {count:,} lines, its budget is {budgets[name]:,}" for name, count in lines.items() if count > budgets.get(name, count)
    ]
    found += [f"{name} has no budget" for name in lines if name not in budgets]
    return [*found, *(f"{name} has a budget, but is not a package" for name in budgets if name not in lines)]


if __name__ == "__main__":
    budgets = tomllib.loads((ROOT / "tools" / "budgets.toml").read_text(encoding="utf-8"))
    found = faults(lines_by_package(), budgets["lines"]) + too_many_words(budgets["words"])
    for fault in sorted(found):
        print(f"budgets: {fault}; shorten it, or change tools/budgets.toml and give the reason in the commit")
    sys.exit(bool(found))
