"""Prints pip constraints: the lowest version of each direct dependency that pyproject.toml allows, what requirements.lock has of others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLLOWS = {"llvmlite", "polars-runtime-32"}
"""Packages that a direct dependency fixes itself, so that the locked version does not go with a lower one."""


def lowest(dependencies: list[str]) -> dict[str, str]:
    """Lower bound of each dependency; raises ValueError for one without."""
    bounds = {}
    for dependency in dependencies:
        match = re.match(r"([A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*>=\s*([0-9][^,;\s]*)", dependency)
        if match is None:
            raise ValueError(f"pyproject.toml: {dependency!r} does not begin with its lower bound, name>=version")
        bounds[match[1].lower()] = match[2]
    return bounds


def locked(text: str) -> dict[str, str]:
    """Return the pinned version and platforms (`; ...`) of each package in requirements.lock."""
    return {name: pinned.strip() for name, pinned in re.findall(r"^([a-z0-9._-]+)==([^\\\n]+)", text, re.MULTILINE)}


def constraints() -> list[str]:
    """Lines for pip."""
    bounds = lowest(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    others = locked((ROOT / "requirements.lock").read_text())
    pins = {name: version for name, version in others.items() if name not in FOLLOWS} | bounds
    return [f"{name}=={version}" for name, version in pins.items()]


if __name__ == "__main__":
    print("\n".join(constraints()))
