"""Faults planted in the auditor, one by one: each must be found by the trial on schedules in which one thing was made wrong (mutations.py).

A fault is a change at one place of the auditor's source, identified by its function and its syntax, not by the layout of the text. The
trial runs in a process of its own, uncompiled.

python -m validation.faults [NAME...]
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, ModuleType

ROOT = Path(__file__).parent.parent
AUDITOR = ROOT / "src" / "walltime" / "auditor"
ENOUGH = 6_000
"""Maximum number of schedules before a fault counts as not found."""
MOST_SECONDS = 30
"""Processor time after which a fault counts as found because the auditor does not end; an audit takes well under a second."""

FAULTS: dict[str, dict[str, str]] = {
    fault["name"]: fault for fault in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["fault"]
}
"""By name, as faults.toml has them."""


class _Replacement(ast.NodeTransformer):
    """Replaces each expression or statement that equals one, and counts them."""

    def __init__(self, right: str, wrong: str):
        (self._right,), self._wrong, self.count = _parsed(right), _parsed(wrong), 0
        self._dump = ast.dump(self._right)

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        """The node that stands there instead, or several statements."""
        if type(node) is not type(self._right) or ast.dump(node) != self._dump:
            return self.generic_visit(node)
        self.count += 1
        return self._wrong if isinstance(node, ast.stmt) else self._wrong[0]


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module of the auditor from another syntax tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module):
        self._name, self._path, self._tree = name, path, tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """This module only."""
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self._path)) if fullname == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the other tree."""
        module.__file__ = str(self._path)
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


def _parsed(text: str) -> list[ast.AST]:
    """An expression, or statements."""
    body = ast.parse(text).body
    return [body[0].value] if isinstance(body[0], ast.Expr) else [*body]


def faulty(name: str) -> ast.Module:
    """Return the syntax tree of the module with the fault; raises ValueError unless its function has the right place once."""
    file, function, right, wrong = (FAULTS[name][part] for part in ("file", "function", "right", "wrong"))
    tree = ast.parse((AUDITOR / file).read_text())
    place: ast.AST = tree
    for part in function.split("."):
        place = next((node for node in getattr(place, "body", []) if getattr(node, "name", "") == part), ast.Pass())
    replacement = _Replacement(right, wrong)
    replacement.generic_visit(place)
    if replacement.count != 1:
        raise ValueError(f"{name}: {function} in {file} has {right!r} {replacement.count} times, not once")
    return ast.fix_missing_locations(tree)


def plant(name: str) -> None:
    """From now on this process has the fault; before anything of the auditor has been imported."""
    file = FAULTS[name]["file"]
    module = ".".join(("walltime.auditor", *file.removesuffix(".py").split("/")))
    sys.meta_path.insert(0, _Planted(module, AUDITOR / file, faulty(name)))


def found_after(name: str, seed: int = 1) -> int | None:
    """How many schedules it took until the auditor with this fault was wrong, or did not end; None if it never was. Plants it for good."""
    plant(name)
    from validation.mutations import POLICIES, trial

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    policies = [policy for policy in POLICIES if policy.startswith(FAULTS[name]["policies"])]
    signal.signal(signal.SIGVTALRM, stop)
    number = 0
    try:
        for *_, valid, report in trial(ENOUGH, seed, 2, policies):
            number += 1
            if valid == bool(report.violations):
                return number
            signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    except TimeoutError:
        return number + 1
    return None


def in_a_process(name: str) -> int | None:
    """The same in a process of its own."""
    command = [sys.executable, "-c", f"from validation.faults import found_after; print(found_after({name!r}))"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    number = done.stdout.strip()
    return None if number == "None" else int(number)


def main() -> None:
    """Print after how many schedules each fault was found; exit status 1 if one was not."""
    missed = 0
    for name in sys.argv[1:] or FAULTS:
        number = in_a_process(name)
        missed += number is None
        print(f"{name:50} {'NOT FOUND' if number is None else f'found after {number:,} schedules'}", flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
