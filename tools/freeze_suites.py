"""Writes the checksums of the windows into the suites' files; for a new suite, or a new version of one.

    python tools/freeze_suites.py [SUITE ...]

A suite that has been published must not change: raise its version instead.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from walltime.benchmark import SUITES, parse_suite

FOLDER = Path(__file__).resolve().parents[1] / "src" / "walltime" / "benchmark" / "suites"


def main(names: list[str]) -> None:
    """Freeze these suites."""
    for name in names or SUITES:
        file = FOLDER / f"{name}.toml"
        text = re.sub(r"^windows = \[\n.*?^\]\n", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
        for subject in parse_suite(text.encode()).subjects:
            lines = "".join(f'  "{window.checksum}",\n' for window in subject.windows(check=False))
            head = f'name = "{subject.name}"\n'
            text = text.replace(head, f"{head}windows = [\n{lines}]\n")
        file.write_text(text)
        print(name, [len(one.windows()) for one in parse_suite(text.encode()).subjects])


if __name__ == "__main__":
    main(sys.argv[1:])
