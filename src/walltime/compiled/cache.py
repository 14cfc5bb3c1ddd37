"""Compiled functions on disk: Numba's documented cache, in a folder whose name identifies everything that its content depends on.

Numba stores machine code next to a function's source file, and reads it as long as that file is unchanged. Instead, each function here gets
a placeholder file in the cache folder (folder.py) that never changes. So all installations of the same code share the folder. An edited
comment compiles nothing; an edited function changes the folder's name, and is compiled.

Damaged machine code would crash the process, and a damaged pickle may run any code. So the checksums of a function's files are written
after its compilation, and compared before Numba reads the files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from walltime.compiled.folder import PACKAGE, cache_folder
from walltime.syntax import code_hash, write_whole

T = TypeVar("T")
_config: Any = numba.config
_setting = threading.RLock()


def compile_stored(function: Callable[..., Any], compile_with: Callable[[Callable[..., Any], bool], T]) -> tuple[T, Callable[[], None]]:
    """Return `compile_with(function, True)`, which reads machine code from the cache folder or writes it there, and a function.

    `compile_with` gets a copy of the function that seems to be defined in the folder. If the folder cannot be used, the first result is
    `compile_with(function, False)`, which stores nothing, and one warning is given. Call the second result when Numba has stored more
    machine code of the function.
    """
    if not Path(function.__code__.co_filename).is_file():  # the function was typed into an interpreter, so changes would go unnoticed
        return compile_with(function, False), lambda: None
    try:
        files = _Files(function)
        files.discard_damaged()
        with _setting:  # Numba stores machine code next to the source file, even if another folder is set for other programs
            before, _config.CACHE_DIR = _config.CACHE_DIR, ""
            try:
                result = compile_with(files.function, True)
            finally:
                _config.CACHE_DIR = before
        files.record()
    except OSError as error:
        _warn(f"compiled functions cannot be stored in {cache_folder()} ({(error.strerror or str(error)).lower()})")
        return compile_with(function, False), lambda: None
    return result, files.record


def _stem(function: Callable[..., Any]) -> str:
    return function.__module__.removeprefix("walltime.")


def _name(function: Callable[..., Any]) -> str:
    return function.__qualname__.replace("<", "").replace(">", "")  # as Numba does


def _version(function: Callable[..., Any]) -> str:
    """Return a hash of a function's package, for its file name; empty for the engine's kernel, whose hash is in the folder's name."""
    file = Path(function.__code__.co_filename)
    if PACKAGE / "engine" in file.parents:
        return ""
    if PACKAGE not in file.parents:
        return f"-{_hash_of(file.parent)}"
    return f"-{_hash_of(PACKAGE / file.relative_to(PACKAGE).parts[0])}"


@functools.cache
def _hash_of(folder: Path) -> str:
    files = folder.rglob("*.py") if PACKAGE in folder.parents else folder.glob("*.py")
    return code_hash(sorted(files), folder)[:16]


class _Files:
    """The files of one function in the cache folder, and the copy of the function for which Numba stores them."""

    def __init__(self, function: Callable[..., Any]):
        stem = f"{_stem(function)}{_version(function)}"
        self._folder = cache_folder()
        self._name = f"{stem}.{_name(function)}"
        self._sums = self._folder / f"{self._name}.sha256"
        source = self._folder / f"{stem}.py"
        self._folder.mkdir(parents=True, exist_ok=True)
        text = "# Stands for a module whose compiled functions are stored in this folder.\n"
        if _content(source) != text.encode():
            _remove(source)
            write_whole(source, text)
        code = function.__code__.replace(co_filename=str(source), co_firstlineno=1)  # the names of Numba's files contain the line number
        self.function = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        self.function.__qualname__, self.function.__module__ = function.__qualname__, function.__module__

    def discard_damaged(self) -> None:
        """Remove all files of the function unless their checksums are as recorded; raises OSError if a file cannot be removed."""
        if _content(self._sums) != self._checksums():
            for file in (self._sums, *self._stored()):
                _remove(file)

    def record(self) -> None:
        """Record the checksums of the files; without this record they are compiled again."""
        sums = self._checksums()
        if _content(self._sums) != sums:
            with contextlib.suppress(OSError):
                write_whole(self._sums, sums.decode())

    def _stored(self) -> list[Path]:
        """Return the index and machine-code files that are complete, not those that another process is still writing."""
        return sorted(self._folder.glob(f"*/{self._name}-*.nb[ic]"))

    def _checksums(self) -> bytes:
        sums = [(hashlib.sha256(_content(file) or b"").hexdigest(), file.name) for file in self._stored()]
        return "".join(f"{digest} {name}\n" for digest, name in sums).encode()


def _content(file: Path) -> bytes | None:
    """Return the bytes of a file; None if it cannot be read."""
    with contextlib.suppress(OSError, MemoryError):
        return file.read_bytes()
    return None


def _remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    file.unlink(missing_ok=True)


def is_kept(function: Callable[..., Any], folder: Path) -> bool:
    """Return whether the folder contains this compiled function."""
    return any(folder.rglob(f"{_stem(function)}*.{_name(function)}-*.nbc"))


@functools.cache
def _warn(message: str) -> None:
    """Warn once."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)
