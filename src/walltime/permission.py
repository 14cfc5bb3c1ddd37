"""Restrict which Python files may run: only files named in the call, so that data files cannot run other files."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from walltime.errors import PolicyError
from walltime.wording import printable

_NAMED = re.compile(r"([^=,:]+?\.py):\w")
"""Pattern of a text that may name Python code; it matches at least every form `FILE.py:NAME` that `walltime.plugins.files` loads."""

_process: frozenset[Path] | None = None
"""The files that the command line allows, for all threads; None in Python, where the caller chooses all code that runs."""
_here: ContextVar[frozenset[Path] | None] = ContextVar("_here", default=None)


class NotRunError(PolicyError):
    """A Python file is not allowed to run."""


def python_files(text: str) -> list[str]:
    """Return the Python files that a specification names.

    >>> python_files("easy:order=mine.py:widest,predictor=own/p.py:P"), python_files("easy:order=sjf")
    (['mine.py', 'own/p.py'], [])
    """
    return [name.strip() for name in _NAMED.findall(text)]


@contextmanager
def only(*files: str | os.PathLike[str]) -> Iterator[None]:
    """Allow only these Python files in the current thread within this context, even if a data file names them.

    `walltime.plugins.files.load_object` checks each file before running it, so no spelling of a name can avoid the check.
    """
    before = _here.set(frozenset(Path(file).resolve() for file in files))
    try:
        yield
    finally:
        _here.reset(before)


@contextmanager
def sealed(words: Iterable[str]) -> Iterator[None]:
    """Allow within this context, in all threads, only the Python files named in these words of a command line or passed to `allow`."""
    global _process
    before = _process
    _process = frozenset(Path(file).resolve() for word in words for file in python_files(word) if "\0" not in file)
    try:
        yield
    finally:
        _process = before


def allow(file: str | os.PathLike[str]) -> None:
    """Allow an additional file in the running command; it has no effect in Python, where `only` allows files."""
    global _process
    if _process is not None:
        _process |= {Path(file).resolve()}


def may_run(file: Path) -> bool:
    """Return whether a Python file may run here."""
    allowed = _allowed()
    return allowed is None or file.resolve() in allowed


def check_data(content: Any, where: str) -> None:
    """Raise NotRunError if a text in the content of a data file names a Python file that is not allowed to run.

    `content`: texts, lists and tables of the file. `where`: the name of the file in the error.
    """
    if isinstance(content, Mapping):
        check_data([*content, *content.values()], where)
    elif isinstance(content, list | tuple):
        for one in content:
            check_data(one, where)
    elif isinstance(content, str):
        allowed = _allowed() or frozenset()
        for file in python_files(content):
            if "\0" in file or Path(file).resolve() not in allowed:
                name = printable(file)
                raise NotRunError(
                    f"{where}: names the Python file {name}, which is not allowed to run; read that file and, if you trust it, allow it "
                    f"with walltime.policy.only({name!r})",
                    "python_file",
                )


def _allowed() -> frozenset[Path] | None:
    here = _here.get()
    return _process if here is None else here
