"""Checks that no package has more lines than its budget in tools/budgets.toml: `python tools/budgets.py`.

A package that needs more gets a larger budget in the same commit, whose message gives the reason.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "walltime"
MODULES = "modules"
"""The key for the modules that are in no package."""


def lines_by_package() -> Counter[str]:
    """Return the number of lines of each package, and of the modules outside packages together."""
    lines: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE).parts
        lines[parts[0] if len(parts) > 1 else MODULES] += len(file.read_text(encoding="utf-8").splitlines())
    return lines


def faults(lines: Counter[str], budgets: dict[str, int]) -> list[str]:
    """Return a line for each package that is over its budget, or has none, and for each budget without a package."""
    found = [
        f"{name} has {count:,} lines, its budget is {budgets[name]:,}" for name, count in lines.items() if count > budgets.get(name, count)
    ]
    found += [f"{name} has no budget" for name in lines if name not in budgets]
    return [*found, *(f"{name} has a budget, but is not a package" for name in budgets if name not in lines)]


if __name__ == "__main__":
    found = faults(lines_by_package(), tomllib.loads((ROOT / "tools" / "budgets.toml").read_text(encoding="utf-8"))["lines"])
    for fault in sorted(found):
        print(f"budgets: {fault}; delete code, or change tools/budgets.toml and give the reason in the commit")
    sys.exit(bool(found))
