"""Custom orders, policies and predictors from Python files, written `FILE.py:NAME`, and other files that specifications name."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from walltime.errors import PolicyError, WalltimeError
from walltime.permission import NotRunError, may_run
from walltime.specification import Specification, options_of
from walltime.wording import printable

_OWN = re.compile(r"(?P<file>[^=,:]+?\.py):(?P<name>\w+)(?:[:,](?P<options>.*))?$")
"""How something of one's own is spelled, with its options."""
_FILES = re.compile(r"(?:(?<==)|^)([^=,:]+\.py)(?=:)|(?:(?<==)|^)file:([^=,]+)")

_PACKAGE = str(Path(__file__).resolve().parents[1])

_classes: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""Where the classes of files that have been loaded stand, as `FILE:LINE`."""


def load_name(file: Path, name: str, what: str) -> Any:
    """The object with this name in a file; raises PolicyError if the file or the name is missing, or the file cannot be loaded.

    Raises NotRunError, before the file is looked at, for one that may not run (`walltime.permission`).
    """
    if "\0" in str(file) or not may_run(file):
        raise NotRunError(
            f"the {what} {name!r} would run the Python file {printable(file)}, which the call does not name; if you trust it, allow it "
            f"with walltime.policy.only({printable(file)!r}) (--own {printable(file)})",
            "python_file",
        )
    if not file.is_file():
        raise PolicyError(f"no file {file} to take the {what} {name!r} from", "missing_file")
    module = _module(file.resolve(), file.stat().st_mtime_ns)
    if not hasattr(module, name):
        raise PolicyError(f"{file} has no {what} named {name!r}", "unknown_name")
    return getattr(module, name)


@functools.lru_cache(maxsize=16)
def _module(file: Path, _modified: int) -> Any:
    """The file's module; loaded once unless edited, so that equal orders are the same object and compiled once."""
    module_name = file.stem
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(module_name)
    sys.modules[module_name] = module  # where dataclasses look for the types of their fields
    try:
        spec.loader.exec_module(module)
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Specification) and hasattr(kind, "__dataclass_fields__"):
                options_of(kind)  # while the types of its fields are found
        for node in ast.parse(file.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and isinstance(kind := getattr(module, node.name, None), type):
                _classes[kind] = f"{file}:{node.lineno}"
    except Exception as error:  # whatever the user's file raises is reported in one line
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"{file}:{line}" if line else file
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise PolicyError(f"{where}: cannot be loaded: {type(error).__name__}: {reason}", "own_code_failure") from error
    finally:
        if before is None:
            del sys.modules[module_name]
        else:
            sys.modules[module_name] = before
    return module


def place_of(thing: Any) -> str:
    """`FILE:LINE: `, where a function, a method or a class of a file stands, or the class of an object; empty where that is not known.

    >>> place_of(len), place_of(3)
    ('', '')
    """
    code = getattr(thing, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}: "
    place = _classes.get(thing if isinstance(thing, type) else type(thing))
    return f"{place}: " if place else ""


@contextmanager
def own_code(what: str, code: Any = None, form: str = "") -> Iterator[None]:
    """Within this context code of a user's own runs: what it raises becomes a PolicyError of one line, with the file and the line.

    `code`: what is called, and `form`: how it must be declared, for a call that does not get as far as its first line.
    """
    try:
        yield
    except WalltimeError:
        raise
    except Exception as error:  # whatever it is
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
        inner = [frame for frame in frames if place_of(code).startswith(f"{frame.filename}:")] or frames
        where = f"{inner[-1].filename}:{inner[-1].lineno}: " if inner else place_of(code)
        reason = next(iter(str(error).splitlines()), "")[:200]
        cure = f"; write it as {form}" if form and not frames and isinstance(error, TypeError) else ""
        raise PolicyError(
            f"{where}{what} raises {type(error).__name__}{': ' if reason else ''}{reason}{cure}", "own_code_failure"
        ) from error


def own(text: str, what: str) -> tuple[Any, str] | None:
    """The object that `FILE.py:NAME`, with its options behind `:` or `,`, names, and these options; None for another text."""
    match = _OWN.match(text)
    return None if match is None else (load_name(Path(match["file"]), match["name"], what), match["options"] or "")


def files_in(text: str) -> list[str]:
    """The files named in the specification of an order, policy or predictor: Python files, and files of predictions.

    >>> files_in("easy:order=mine.py:widest,backfill-order=sjf"), files_in("own.py:Day:order=sjf"), files_in("easy")
    (['mine.py'], ['own.py'], [])
    >>> files_in("easy:predictor=file:made.csv,column=p90")
    ['made.csv']
    """
    return [match[1] or match[2] for match in _FILES.finditer(text)]


def placed(text: str, folder: Path) -> str:
    """The specification with these files resolved against a folder."""
    return _FILES.sub(lambda match: ("file:" if match[2] else "") + str((folder / (match[1] or match[2])).resolve()), text)
