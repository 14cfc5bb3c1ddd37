"""Counts what the code consists of, so that two states of it can be compared: `python tools/house.py [--json] [--files] [FOLDER]`.

It counts modules and lines by package, kinds of lines, functions with many parameters, and the words of the documentation. For one example
of each kind of extension it counts the files that name it (docstrings and comments aside). It also counts the files in which `walltime
simulate LOG --policy easy --predictor tsafrir07` calls a function, after imports and compilation. `--files` also names the files. FOLDER is
a checkout of this project, by default this one.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path
from typing import Any

from budgets import words_by_page

MANY_PARAMETERS = 8
EXAMPLES = {
    "policy": "[Mm]ulti[Qq]ueue",
    "predictor": "Similar15|similar15",
    "queue order": "sqf",
    "log format": "lsf|LSF",
    "log column": "run_count",
    "metric": "mean_procs_others",
    "workload model": "Jann97|jann97",
    "command": "demo",
    "report section": "heatmaps",
    "Slurm parameter": "bf_min_age_reserve",
    "rule of the side-car": "exclusion_reason",
    "paper": "zhang20",
}
"""One of each kind that is added now and then, by a name that nothing else has."""
LOADED = {
    "walltime": "import walltime",
    "simulation.run": "import walltime.simulation.run",
    "a simulation": "import walltime as wt\n"
    "wt.simulate(wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1), 'easy')",
    "the side-car's loop": "import walltime.slurm.sidecar.loop",
}
"""Programs whose loaded modules are counted, as code."""
RUN = """
import sys
from pathlib import Path
import walltime
from walltime.cli.main import main
package = str(Path(walltime.__file__).parent)
called = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(package):  # 1: has local variables, so it is a function
        called.add((code.co_filename[len(package) + 1:], code.co_qualname))
def run():
    try:
        main()
    except SystemExit:
        pass
sys.argv = ["walltime", "simulate", sys.argv[1], "--policy", "easy", "--predictor", "tsafrir07"]
run()  # imports and compiles
sys.setprofile(note)
run()
sys.setprofile(None)
print(*(f"{file}:{function}" for file, function in sorted(called)), file=sys.stderr)
"""


def main() -> None:
    """Print the counts of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--files", action="store_true", help="name the files too")
    options = parser.parse_args()
    count = counts(options.folder)
    if options.json:
        print(json.dumps(count, indent=2))
        return
    print(f"modules {count['modules']:,}, lines {count['lines']:,}:", ", ".join(f"{kind} {n:,}" for kind, n in count["kinds"].items()))
    many = count["many_parameters"]
    placed = sum(k > MANY_PARAMETERS for k in many.values())
    print(f"functions with over {MANY_PARAMETERS} parameters {len(many)}, of them by position {placed}")
    if options.files:
        for name, k in many.items():
            print(f"  {k:2} by position: {name}")
    print("  ".join(f"{package} {modules}/{lines:,}" for package, (modules, lines) in count["packages"].items()))
    print("files that name a", ", ".join(f"{kind} {len(files)}" for kind, files in count["named_in"].items()))
    if options.files:
        for kind, files in count["named_in"].items():
            print(f"  {kind}:", ", ".join(files))
    print(f"walltime simulate calls {sum(count['run'].values())} functions in {len(count['run'])} files")
    if options.files:
        for file, functions in count["run"].items():
            print(f"  {functions:3} {file}")
    print("loaded by", ", ".join(f"{what} {modules} modules, {lines:,} lines" for what, (modules, lines) in count["loaded"].items()))
    print(f"words of the documentation written by hand {count['words']:,}, of them docs/design.md {count['words_of_design']:,}")
    if options.files:
        for page, words in sorted(count["words_of_pages"].items(), key=lambda one: -one[1]):
            print(f"  {words:5} {page}")


def counts(folder: Path) -> dict[str, Any]:
    """All counts, by name."""
    package = folder / "src" / "walltime"
    texts = {file.relative_to(package): file.read_text(encoding="utf-8") for file in sorted(package.rglob("*.py"))}
    trees = {file: ast.parse(text) for file, text in texts.items()}
    kinds: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for file, text in texts.items():
        kinds += kinds_of_lines(package / file, trees[file])
        modules[file.parts[0]] += 1
        lines[file.parts[0]] += len(text.splitlines())
    code = {str(file): code_of(tree) for file, tree in trees.items()}
    words = words_by_page(folder)
    return {
        "modules": len(texts),
        "lines": sum(lines.values()),
        "kinds": dict(kinds.most_common()),
        "many_parameters": {f"{file}:{name}": k for file, tree in trees.items() for name, k in many_parameters(tree)},
        "packages": {part: (modules[part], lines[part]) for part in modules if not part.endswith(".py")},
        "named_in": {kind: [file for file, text in code.items() if re.search(rf"\b(?:{name})\b", text)] for kind, name in EXAMPLES.items()},
        "run": files_run(folder),
        "loaded": {what: loaded(folder, code) for what, code in LOADED.items()},
        "words": sum(words.values()),
        "words_of_pages": words,
        "words_of_design": words.get("docs/design.md", 0),
    }


def docstrings(tree: ast.AST) -> list[ast.Expr]:
    """Strings that stand alone: docstrings, and the descriptions of attributes."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def kinds_of_lines(file: Path, tree: ast.AST) -> Counter[str]:
    """How many lines of a module are code, docstrings, comments and blank."""
    with tokenize.open(file) as source:
        text = source.read().splitlines()
    described = {line for node in docstrings(tree) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    kinds: Counter[str] = Counter()
    for number, line in enumerate(text, start=1):
        written = line.strip()
        kind = "docstrings" if number in described else "comments" if written.startswith("#") else "code" if written else "blank"
        kinds[kind] += 1
    return kinds


def code_of(tree: ast.Module) -> str:
    """A module without docstrings and comments."""
    alone = set(map(id, docstrings(tree)))

    class Bare(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.AST:
            return ast.Pass() if id(node) in alone else node

    return ast.unparse(Bare().visit(tree))


def many_parameters(tree: ast.AST) -> list[tuple[str, int]]:
    """Functions that take more than eight parameters, and how many of these can be given by their position."""
    functions = [(node.name, node.args) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    counts = [(name, len(args.posonlyargs) + len(args.args), len(args.kwonlyargs)) for name, args in functions]
    return [(name, placed) for name, placed, named in counts if placed + named > MANY_PARAMETERS]


def loaded(folder: Path, code: str) -> tuple[int, int]:
    """Return how many modules of the package some code loads, and their lines."""
    code += "\nimport sys\nprint(*(m.__file__ for m in list(sys.modules.values()) if m.__name__.split('.')[0] == 'walltime'), sep='\\n')"
    paths = os.environ | {"PYTHONPATH": str(folder / "src")}
    files = subprocess.run([sys.executable, "-c", code], env=paths, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    return len(files), sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in files)


def files_run(folder: Path) -> dict[str, int]:
    """Return the files whose functions a small simulation calls, with the number of functions."""
    lines = [f"{k} {10 * k} -1 {50 + k} 4 -1 -1 4 100 -1 1 {1 + k % 3} 1 1 1 1 -1 -1" for k in range(1, 40)]
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log.swf"
        log.write_text("; MaxProcs: 16\n" + "\n".join(lines) + "\n")
        paths = os.environ | {"PYTHONPATH": str(folder / "src")}
        run = subprocess.run([sys.executable, "-c", RUN, str(log)], env=paths, capture_output=True, text=True, check=True)
    called = run.stderr.split("\n")[-2].split(" ")
    return dict(sorted(Counter(name.split(":")[0] for name in called).items()))


if __name__ == "__main__":
    main()
