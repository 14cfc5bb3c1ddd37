"""User-defined orders, policies and predictors from Python files (`FILE.py:NAME`), and other files named in specifications."""

import ast
import copy
import functools
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from walltime.errors import PolicyError, WalltimeError
from walltime.permission import NotRunError, may_run
from walltime.plugins.dependencies import local_modules, watch
from walltime.specification import Specification, options_of
from walltime.wording import printable

_SPELLING = re.compile(r"(?P<file>[^=,:]+?\.py):(?P<name>\w+)(?:[:,](?P<options>.*))?$")
"""The spelling of a user-defined object, with its options."""
_FILES = re.compile(r"(?:(?<==)|^)([^=,:]+\.py)(?=:)|(?:(?<==)|^)file:([^=,]+)")

_PACKAGE = str(Path(__file__).resolve().parents[1])

_imported: set[tuple[Path, int]] = set()
"""Files of modules that were loaded, with their modification times."""
_classes: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""`FILE:LINE` of each class of the loaded files."""


def load_object(file: Path, name: str, what: str) -> Any:
    """Return the object with this name in a file; raises PolicyError if the file or the name is missing, or loading fails.

    Raises NotRunError, before the file is read, if it may not run (`walltime.permission`).
    """
    if "\0" in str(file) or not may_run(file):
        raise NotRunError(
            f"the {what} {name!r} needs the Python file {printable(file)}, which is not allowed to run; if you trust it, allow it "
            f"with walltime.policy.only({printable(file)!r})",
            "python_file",
        )
    if not file.is_file():
        raise PolicyError(f"{file}: no such file (for the {what} {name!r}); check its name", "missing_file")
    whole = file.resolve()
    module = _module(whole, tuple((one, one.stat().st_mtime_ns) for one in (whole, *local_modules(whole))))
    if not hasattr(module, name):
        raise PolicyError(f"{file} has no {what} named {name!r}; name a class or function in this file", "unknown_name")
    return getattr(module, name)


@functools.lru_cache(maxsize=16)
def _module(file: Path, versions: tuple[tuple[Path, int], ...]) -> Any:
    """Load a file's module, again only after an edit, so that equal orders are the same object and are compiled once.

    `versions`: the file and the local modules that it imports, with their modification times. Edited modules are imported again.
    """
    watch(file, [one for one, _ in versions])
    edited = {str(one) for one, modified in versions if (one, modified) not in _imported}
    for name in [name for name, known in list(sys.modules.items()) if getattr(known, "__file__", None) in edited]:
        del sys.modules[name]
    for one in edited:  # Python's cached bytecode has a time in seconds, so it could hide a later edit in the same second
        with suppress(OSError):
            Path(importlib.util.cache_from_source(one)).unlink()
    module_name = file.stem
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(module_name)
    sys.path.insert(0, str(file.parent))
    sys.modules[module_name] = module  # dataclasses resolve the types of their fields there
    try:
        spec.loader.exec_module(module)
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Specification) and hasattr(kind, "__dataclass_fields__"):
                options_of(kind)  # cached while the types of its fields can be resolved
        for node in ast.parse(file.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and isinstance(kind := getattr(module, node.name, None), type):
                _classes[kind] = f"{file}:{node.lineno}"
    except Exception as error:  # any error of the user's file is reported in one line
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"{file}:{line}" if line else file
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise PolicyError(f"{where}: cannot be loaded: {type(error).__name__}: {reason}", "own_code_failure") from error
    finally:
        sys.path.remove(str(file.parent))
        if before is None:
            del sys.modules[module_name]
        else:
            sys.modules[module_name] = before
    _imported.update(versions)
    return module


def location_of(thing: Any) -> str:
    """Return `FILE:LINE: ` of a function, a method or a class, or of an object's class; empty if unknown.

    >>> location_of(len), location_of(3)
    ('', '')
    """
    code = getattr(thing, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}: "
    place = _classes.get(thing if isinstance(thing, type) else type(thing))
    return f"{place}: " if place else ""


@contextmanager
def user_code(what: str, code: Any = None, form: str = "") -> Iterator[None]:
    """Turn errors of a user's code in this context into a PolicyError of one line, with file and line.

    `code`: the called function; `form`: its required signature, for calls that fail before its first line.
    """
    try:
        yield
    except WalltimeError:
        raise
    except Exception as error:  # any error of the user's code
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
        inner = [frame for frame in frames if location_of(code).startswith(f"{frame.filename}:")] or frames
        where = f"{inner[-1].filename}:{inner[-1].lineno}: " if inner else location_of(code)
        reason = next(iter(str(error).splitlines()), "")[:200]
        remedy = f"; write it as {form}" if form and not frames and isinstance(error, TypeError) else ""
        raise PolicyError(
            f"{where}{what} raises {type(error).__name__}{': ' if reason else ''}{reason}{remedy}", "own_code_failure"
        ) from error


def make_object(make: Any, options: Iterable[tuple[str, Any]], name: str) -> Any:
    """Return a new object of a user's class; raises PolicyError if it cannot be created with these options."""
    given = dict(options)
    try:
        return make(**given)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # raised by the class's own code
        words = ", ".join(f"{option}={value!r}" for option, value in given.items()) or "no options"
        raise PolicyError(f"{location_of(make)}{name} cannot be created with {words} ({error})", "own_code_failure") from None


class Copies:
    """Makes copies of an object of a user's class, one for each run, so that runs share no state; `kind`: its class.

    >>> class Constant:
    ...     def __init__(self, seconds):
    ...         self.seconds = seconds
    >>> made = Copies(Constant(60))
    >>> made.__name__, made().seconds
    ('Constant:seconds=60', 60)
    """

    def __init__(self, original: Any) -> None:
        self.original, self.kind = original, type(original)
        options = {name: value for name, value in getattr(original, "__dict__", {}).items() if isinstance(value, bool | int | float | str)}
        listed = ",".join(f"{name}={value}" for name, value in options.items() if not name.startswith("_"))
        self.__name__ = f"{self.kind.__name__}:{listed}" if listed else self.kind.__name__

    def __call__(self) -> Any:
        """Return a copy."""
        return copy.deepcopy(self.original)


def maker_of(given: Any, *methods: str) -> Any:
    """Return a function that makes the objects of runs from a class or an object with these methods; None for anything else."""
    if not all(callable(getattr(given, method, None)) for method in methods):
        return None
    return given if isinstance(given, type) else Copies(given)


def load_named(text: str, what: str) -> tuple[Any, str] | None:
    """Return the object of `FILE.py:NAME`, and the options after `:` or `,`; None for another text."""
    match = _SPELLING.match(text)
    return None if match is None else (load_object(Path(match["file"]), match["name"], what), match["options"] or "")


def named_files(text: str) -> list[str]:
    """Return the Python files and prediction files named in the specification of an order, policy or predictor.

    >>> named_files("easy:order=mine.py:widest,backfill-order=sjf"), named_files("own.py:Day:order=sjf"), named_files("easy")
    (['mine.py'], ['own.py'], [])
    >>> named_files("easy:predictor=file:made.csv,column=p90")
    ['made.csv']
    """
    return [match[1] or match[2] for match in _FILES.finditer(text)]


def resolve_files(text: str, folder: Path) -> str:
    """Return the specification with `named_files` resolved against a folder."""
    return _FILES.sub(lambda match: ("file:" if match[2] else "") + str((folder / (match[1] or match[2])).resolve()), text)
