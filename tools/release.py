"""Checks that what is tagged is ready: `python tools/release.py v0.2.0`.

The tag, pyproject.toml, CITATION.cff and the newest entry of CHANGELOG.md must name one version, and no fragment may be left over.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version that each file names; empty where it names none."""
    patterns = {"CITATION.cff": r"^version: (\S+)$", "CHANGELOG.md": r"^## (\S+) \("}
    found = {"pyproject.toml": str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])}
    for name, pattern in patterns.items():
        match = re.search(pattern, (root / name).read_text(), re.MULTILINE)
        found[name] = match[1] if match else ""
    return found


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """What is not ready, one sentence each."""
    version = tag.removeprefix("v")
    found = [f"{name} names {named or 'no version'}, not {version}" for name, named in versions(root).items() if named != version]
    left = sorted(file.name for file in (root / "changelog.d").glob("*.md"))
    return found + ([f"changelog.d/ still has {', '.join(left)}: run towncrier build"] if left else [])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("name the tag, such as v0.2.0")
    told = problems(sys.argv[1])
    print("\n".join(f"release: {line}" for line in told) or f"release: {sys.argv[1]} is ready")
    sys.exit(bool(told))
