"""Compares the engine with theory, with identities, and with itself under other interpretations. `make validate` calls it.

    python validation/run.py [--only NAME ...] [--quick] [--out FILE]

Stores what it finds in docs/generators/validation.json, which docs/validation/theory.md is made from; parts that are not run keep what
was stored earlier. Ends with status 1 if something does not hold. Logs are looked for in the folder that WALLTIME_TRACES names; without
any, the identities are tried on random workloads only.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from validation import agreement, identities, theory
from validation.common import OUT, QUICK, Numbers, Sizes, tell

PARTS: dict[str, ModuleType] = {"theory": theory, "identities": identities, "agreement": agreement}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts, store what they found, say what did not hold; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="NAME", help=f"parts to run: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--out", type=Path, help="the file that keeps what is found (docs/generators/validation.json; with --quick none)")
    given = parser.parse_args(arguments)
    out = given.out or (None if given.quick else OUT)
    bad = []
    for name in given.only or PARTS:
        result = PARTS[name].run(QUICK if given.quick else Sizes())
        bad += [f"{name}: {what}" for what in PARTS[name].failures(result)]
        if out is not None:
            store(out, name, {"quick": given.quick, "result": result})
    for what in bad:
        tell(f"NOT AS IT SHOULD BE: {what}")
    tell(f"{len(bad)} failures" if bad else "everything holds")
    return 1 if bad else 0


def store(file: Path, name: str, part: Numbers) -> None:
    """Put what a part found into the file, which keeps the others; whole or not at all."""
    stored = json.loads(file.read_text()) if file.exists() else {}
    stored[name] = part
    ordered = {known: stored[known] for known in PARTS if known in stored}
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(rounded(ordered), indent=1, allow_nan=False) + "\n")
    temporary.replace(file)


def rounded(value: object) -> object:
    """With 6 digits that count, so that the file does not change with the last bit of a sum."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
