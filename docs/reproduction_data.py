"""Collect what `walltime paper run` left in its folders into the file that the page on the reproduction is made from.

    python docs/reproduction_data.py P1 P2 P3

Each argument is a folder of one paper. Takes the tables and the claims; writes docs/reproduction.json.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("reproduction.json")


def collect(folder: Path) -> dict[str, Any]:
    """Tables and claims of one paper."""
    numbers = folder / "numbers"
    tables = {}
    for file in sorted(numbers.glob("*.csv")):
        if not file.stem.endswith("-figure"):
            with file.open(newline="") as source:
                head, *rows = csv.reader(source)
            tables[file.stem] = {"columns": head, "rows": rows}
    claims = {file.stem.removeprefix("claims-"): json.loads(file.read_text()) for file in sorted(numbers.glob("claims-*.json"))}
    return {"tables": tables, "claims": claims}


def main(folders: list[str]) -> None:
    """Read the folders, each named for its paper, and write the file."""
    if not folders:
        sys.exit("name the folders that walltime paper run wrote, such as P1 P2 P3")
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    for folder in map(Path, folders):
        found[folder.name] = collect(folder)
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
