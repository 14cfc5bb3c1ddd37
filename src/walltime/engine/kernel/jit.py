"""The options with which functions are compiled. The compiled code is stored by compiler/cache.py and compiler/folder.py."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core.registry import cpu_target

from walltime.engine.compiler.cache import keep_on_disk

__all__ = ["callback", "called_kernel", "entry", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])
_numba: Any = numba  # what is used below is not all declared in Numba's types

_HELPER: dict[str, bool] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions that only compiled code calls."""


def entry(function: F) -> F:
    """A kernel that Python calls; `walltime.engine.interface.load` lists them.

    Kernels run without the interpreter and its lock. They allocate nothing, so they need no reference counts; counting the arrays
    at every call would make them ten times slower. With `error_model="numpy"` a division by zero gives infinity or NaN, as an
    order may expect.
    """
    return _compiled(function, forceinline=True)


def kernel(function: F) -> F:
    """A kernel that other kernels call; it is inlined, since passing all the arrays takes time."""
    return _compiled(function, forceinline=True, **_HELPER)


def called_kernel(function: F) -> F:
    """A kernel that is called, not inlined: for large functions, to keep compilation short."""
    return _compiled(function, forceinline=False, **_HELPER)


def _compiled(function: F, **options: bool) -> F:
    compiled: F = _numba.njit(nogil=True, error_model="numpy", **_without_counts(), **options)(function)
    if hasattr(compiled, "py_func"):  # not where the compiler is switched off
        keep_on_disk(compiled)
    return compiled


@functools.cache
def _without_counts() -> dict[str, bool]:
    """The option that omits reference counts; it is undocumented, so a version of Numba may lack it."""
    if not hasattr(cpu_target.options, "_nrt"):
        warnings.warn("this version of Numba cannot leave reference counts out; simulations take longer", RuntimeWarning, stacklevel=2)
        return {}
    return {"_nrt": False}


def callback(signature: Any, function: Callable[..., Any]) -> int:
    """Compile a function for other compiled code to call, and return its address (callbacks.py)."""
    dispatcher: Any = _compiled(function, no_cpython_wrapper=True)
    dispatcher.compile(signature)
    _kept.append(dispatcher)
    compiled = dispatcher.overloads[signature.args]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
    return address


_kept: list[Any] = []
"""Functions whose addresses are in use must stay alive."""
