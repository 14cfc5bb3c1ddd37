"""The one place that says how kernels are compiled, and where the compiled code is kept.

Numba's own cache looks at the date of the file that holds the compiled function and does not notice an edited helper in
another file. Here the folder's name carries a hash of all kernel sources, of the versions of Numba, Python and LLVM, and of
the processor, so that a stale answer is impossible.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
_numba: Any = numba  # what is used below is not all declared in Numba's types

SCORE = types.float64(types.int64, types.int64, types.int64, types.int64)
"""Signature of a compiled user order: (wait, requested, procs, submit) -> score."""


@functools.cache
def source_hash() -> str:
    """Hash of everything that the compiled kernels depend on."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    cpu = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    for part in (sys.version, numba.__version__, llvmlite.__version__, cpu):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Folder of this user's compiled kernels: `WALLTIME_CACHE`, else `XDG_CACHE_HOME`, else `~/.cache`, below `walltime`."""
    own = os.environ.get("WALLTIME_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "walltime"


@functools.cache
def cache_folder() -> Path:
    """Folder of the kernels compiled from exactly these sources; a temporary one where the user's cannot be written."""
    folder = cache_root() / f"kernels-{source_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"walltime-{os.getuid()}" / f"kernels-{source_hash()}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def kernel(function: F) -> F:
    """Compile a function without the interpreter and without its lock, and keep the compiled code on disk.

    Kernels allocate nothing, so they need no reference counts (`_nrt=False`); counting the arrays at every call would make
    them ten times slower. With `error_model="numpy"` a division by zero gives infinity or NaN, as an order may expect.
    Kernels are put in the place where they are called (`forceinline`), since passing all the arrays takes time.
    """
    return _compiled(function, forceinline=True)


def called_kernel(function: F) -> F:
    """A kernel that is called and not put in the place of the call: for what is large, so that compiling does not take long."""
    return _compiled(function, forceinline=False)


def _compiled(function: F, **options: bool) -> F:
    config = _numba.core.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        compiled: F = _numba.njit(nogil=True, cache=True, error_model="numpy", _nrt=False, **options)(function)
    finally:
        config.CACHE_DIR = before
    return compiled


@functools.lru_cache(maxsize=64)
def compile_score(arguments: tuple[str, ...], function: Callable[..., float]) -> Any:
    """Compile a user's order for `call_score`; keep the result alive as long as its `.address` is used.

    `arguments` are the names, among wait, requested, procs and submit, that the function takes. A division by zero gives
    infinity or NaN. Raises whatever Numba raises where the function cannot be compiled.
    """
    inner = numba.njit(nogil=True, error_model="numpy")(function)
    names: dict[str, Any] = {"inner": inner}
    exec(f"def score(wait, requested, procs, submit):\n    return float(inner({', '.join(arguments)}))", names)
    return numba.cfunc(SCORE)(names["score"])


@intrinsic
def _call_score(typingctx, address, wait, requested, procs, submit):
    """Call the compiled order at this address, so that one compiled kernel serves every order."""

    def codegen(context, builder, signature, args):
        returns = context.get_value_type(types.float64)
        takes = [context.get_value_type(types.int64)] * 4
        pointer = builder.inttoptr(args[0], ir.FunctionType(returns, takes).as_pointer())
        return builder.call(pointer, args[1:])

    return types.float64(types.int64, types.int64, types.int64, types.int64, types.int64), codegen


call_score: Any = _call_score
