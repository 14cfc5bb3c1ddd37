"""Collect the results of `walltime paper run` into the file from which the page on the reproduction is generated.

    python docs/generators/reproduction_data.py feitelson98 mualem01

Each argument is a folder of one paper, named for it. Takes the tables and the claims;
writes docs/generators/reproduction.json.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

from reproduction_tables import load

from walltime.papers.printed import paper_name

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
    """Read the folders, each named after its paper, and write the file."""
    if not folders:
        sys.exit("name the folders that walltime paper run wrote, such as feitelson98 mualem01")
    found = load(FILE)
    for folder in map(Path, folders):
        found[paper_name(folder.name)] = collect(folder)
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
