"""Counts what the code consists of, so that two states of it can be compared: `python tools/house.py [--json] [FOLDER]`.

Modules and lines by package; functions with many parameters; how many files name one example of each kind of thing that is added; the files
of the package in which `walltime simulate LOG --policy easy --predictor tsafrir07` runs a function; the words of the documentation.
FOLDER is a checkout of this project, by default this one.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

MANY_PARAMETERS = 8
EXAMPLES = {
    "policy": "Selective",
    "predictor": "Similar15|similar15",
    "queue order": "unicef",
    "log format": "lsf|LSF",
    "metric": "longest_wait",
    "workload model": "Jann97|jann97",
    "command": "what_if",
    "Slurm parameter": "bf_min_age_reserve",
    "rule of the side-car": "why_never",
}
"""One of each kind that is added now and then, by a name that nothing else has."""
RUN = """
import sys
from pathlib import Path
import walltime
package = str(Path(walltime.__file__).parent)
seen = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(package):
        seen.add((code.co_filename, code.co_qualname))
from walltime.cli.main import main
sys.setprofile(note)
sys.argv = ["walltime", "simulate", sys.argv[1], "--policy", "easy", "--predictor", "tsafrir07"]
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print(len({file for file, _ in seen}), len(seen), file=sys.stderr)
"""


def main(folder: Path, as_json: bool) -> None:
    """Print the counts of a checkout."""
    found = counts(folder)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(f"modules {found['modules']:,}, lines {found['lines']:,}")
    print(f"functions with over {MANY_PARAMETERS} parameters {found['many_parameters']}")
    print("  ".join(f"{package} {modules}/{lines:,}" for package, (modules, lines) in found["packages"].items()))
    print("files that name a", ", ".join(f"{kind} {count}" for kind, count in found["named_in"].items()))
    files, functions = found["run"]
    print(f"walltime simulate runs {functions} functions in {files} files")
    print(f"words of the documentation {found['words']:,}, of them docs/design.md {found['words_of_design']:,}")


def counts(folder: Path) -> dict[str, Any]:
    """All counts, by name."""
    package = folder / "src" / "walltime"
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(package.rglob("*.py"))}
    modules: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for file, text in texts.items():
        part = file.relative_to(package).parts[0]
        modules[part] += 1
        lines[part] += len(text.splitlines())
    pages = {page: len(page.read_text(encoding="utf-8").split()) for page in sorted((folder / "docs").rglob("*.md"))}
    return {
        "modules": len(texts),
        "lines": sum(lines.values()),
        "many_parameters": sum(many_parameters(text) for text in texts.values()),
        "packages": {part: (modules[part], lines[part]) for part in modules if not part.endswith(".py")},
        "named_in": {kind: sum(1 for text in texts.values() if re.search(rf"\b(?:{name})\b", text)) for kind, name in EXAMPLES.items()},
        "run": files_run(folder),
        "words": sum(pages.values()),
        "words_of_design": pages.get(folder / "docs" / "design.md", 0),
    }


def many_parameters(text: str) -> int:
    """Functions that take more than eight parameters."""
    found = (node.args for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return sum(len(args.posonlyargs) + len(args.args) + len(args.kwonlyargs) > MANY_PARAMETERS for args in found)


def files_run(folder: Path) -> tuple[int, int]:
    """Files and functions of the package that a small simulation runs, its kernels compiled before."""
    lines = [f"{k} {10 * k} -1 {50 + k} 4 -1 -1 4 100 -1 1 {1 + k % 3} 1 1 1 1 -1 -1" for k in range(1, 40)]
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log.swf"
        log.write_text("; MaxProcs: 16\n" + "\n".join(lines) + "\n")
        ran = [
            subprocess.run(
                [sys.executable, "-c", RUN, str(log)],
                env=os.environ | {"PYTHONPATH": str(folder / "src")},
                capture_output=True,
                text=True,
                check=True,
            )
            for _ in range(2)
        ]
    files, functions = ran[-1].stderr.split("\n")[-2].split()
    return int(files), int(functions)


if __name__ == "__main__":
    chosen = [argument for argument in sys.argv[1:] if argument != "--json"]
    main(Path(chosen[0]) if chosen else Path(__file__).parent.parent, "--json" in sys.argv)
