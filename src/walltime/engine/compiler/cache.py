"""Compiled kernels on disk: Numba's cache, in a folder whose name identifies everything on which its content depends.

Numba's own cache checks the date of the file that contains the function, and has the line number in the name. So it would
recompile after an edited comment, and miss an edited function in another file. Here the folder's name decides (folder.py).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba

from walltime.engine.compiler.folder import cache_folder
from walltime.engine.compiler.libraries import rebuilt
from walltime.syntax import syntax_hash

CHECKSUM = 32
"""Bytes of the checksum at the end of a file."""


def keep_on_disk(dispatcher: Any) -> None:
    """Store this compiled function in the cache folder, and load it from there."""
    cache_class = _kernel_cache()
    if cache_class is None or not hasattr(dispatcher, "_cache"):
        config: Any = numba.core.config
        before = config.CACHE_DIR
        config.CACHE_DIR = str(cache_folder())
        try:
            dispatcher.enable_caching()
        finally:
            config.CACHE_DIR = before
    else:
        dispatcher._cache = cache_class(dispatcher.py_func)


def keeps_parts() -> bool:
    """Whether functions that only compiled code calls can be kept as what they are (libraries.py)."""
    return _kernel_cache() is not None


def file_name(function: Any) -> str:
    """Prefix of the files of this function: its module and its name, without the line number."""
    return f"{function.__module__.removeprefix('walltime.engine.kernel.')}.{function.__qualname__}"


def _version_of_others(function: Any) -> str:
    """A hash of a function's package, unless that is the engine, whose version is in the folder's name."""
    file = Path(function.__code__.co_filename)
    return "" if Path(__file__).parent.parent in file.parents else f"-{_package_hash(file.parent)}"


@functools.cache
def _package_hash(folder: Path) -> str:
    return syntax_hash(sorted(folder.glob("*.py")), folder)[:16]


def is_kept(dispatcher: Any, folder: Path) -> bool:
    """Whether the folder contains this compiled function."""
    name = file_name(getattr(dispatcher, "py_func", dispatcher))
    return any(folder.glob(f"**/{name}[-.]*.nbc"))


def functions_kept(folder: Path) -> int:
    """Number of compiled functions in the folder."""
    return sum(1 for _ in folder.glob("**/*.nbc"))


@functools.cache
def _kernel_cache() -> Any:
    """The class of our caches; None if this version of Numba lacks the required internals."""
    try:
        from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator

        return _derived(CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator)
    except (ImportError, AttributeError, TypeError) as error:
        _warn(f"this version of Numba keeps compiled functions in another way ({error}); an edited comment will compile them anew")
        return None


def is_intact(path: str) -> bool:
    """Return whether a file ends in the checksum of its name and content; false for one that is damaged, missing or not a file.

    Damaged machine code would crash the process, and a damaged pickle may do anything, so neither is looked at.
    """
    with contextlib.suppress(OSError, MemoryError):
        content = Path(path).read_bytes()
        return content[-CHECKSUM:] == _checksum(path, content[:-CHECKSUM])
    return False


def _checksum(path: str, content: bytes) -> bytes:
    return hashlib.sha256(Path(path).name.encode() + b"\0" + content).digest()


def _derived(result_cache: Any, function_cache: Any, cache_file: Any, cache_locator: Any) -> Any:
    """A subclass of Numba's cache of functions whose files are named after the function alone, and are never out of date or damaged."""

    class Locator(cache_locator):
        """Locates the files of a function."""

        def __init__(self, file: str):
            self._py_file = file

        def get_cache_path(self) -> str:
            return str(cache_folder())

        def get_source_stamp(self) -> str:
            return "the folder's name says which source this is"

        def get_disambiguator(self) -> str:
            return ""

    class Format(result_cache):
        """Defines what is written for a compiled function, and into which files."""

        def __init__(self, function: Any):
            self._lineno = function.__code__.co_firstlineno
            self._locator = Locator(function.__code__.co_filename)
            self._filename_base = f"{file_name(function)}{_version_of_others(function)}.py{sys.version_info[0]}{sys.version_info[1]}"

        def rebuild(self, target_context: Any, payload: Any) -> Any:
            return rebuilt(super().rebuild, target_context, payload)

    class Checked(cache_file):
        """The index and the data of a function, each with a checksum at its end, which Numba does not read."""

        def _load_index(self) -> Any:
            return super()._load_index() if is_intact(self._index_path) else {}

        def _load_data(self, name: str) -> Any:
            if not is_intact(self._data_path(name)):
                raise FileNotFoundError(name)  # which Numba takes for a file that is not there, and compiles
            return super()._load_data(name)

        @contextlib.contextmanager
        def _open_for_write(self, filepath: str) -> Iterator[Any]:
            content = io.BytesIO()
            yield content
            if Path(filepath).is_dir():
                shutil.rmtree(filepath)
            with super()._open_for_write(filepath) as file:
                file.write(content.getvalue() + _checksum(filepath, content.getvalue()))

    class KernelCache(function_cache):
        """The compiled forms of one function on disk."""

        _impl_class = Format

        def __init__(self, function: Any):
            super().__init__(function)
            self._cache_file.__class__ = Checked

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            with contextlib.suppress(Exception):  # whatever cannot be read is compiled, and written again
                return super().load_overload(sig, target_context)
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with contextlib.suppress(OSError):
                return super().save_overload(sig, data)
            try:
                super().save_overload(sig, data)  # another process may just have removed the folder; this makes it anew
            except OSError as error:
                _warn(f"compiled functions cannot be kept in {cache_folder()} ({(error.strerror or str(error)).lower()})")

    KernelCache(_derived)  # raises here, and not at the first kernel, if Numba wants something else
    return KernelCache


@functools.cache
def _warn(message: str) -> None:
    """Warn once."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)
