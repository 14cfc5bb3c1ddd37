"""The options with which functions are compiled; cache.py stores the machine code of those that Python calls."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba

from walltime.compiled.cache import compile_stored

F = TypeVar("F", bound=Callable[..., Any])
_numba: Any = numba  # Numba's type declarations lack some of the names used below


class StoredFunction:
    """A function for callers in Python that is compiled at its first call, or read from the cache folder."""

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self.py_func = function
        self.dispatcher: Any = None
        self._record: Callable[[], None] = lambda: None

    def compile(self, signature: tuple[Any, ...]) -> Any:
        """Return Numba's function, compiled for arguments of these types."""

        def compile_with(function: Callable[..., Any], cache: bool) -> Any:
            compiled: Any = _numba.njit(cache=cache, **_options())(function)
            compiled.compile(signature)
            return compiled

        self.dispatcher, self._record = compile_stored(self.py_func, compile_with)
        return self.dispatcher

    def __call__(self, *arguments: Any) -> Any:
        """Call the function; if the types of the arguments are new, it is compiled for them first."""
        if self.dispatcher is None:
            self.compile(tuple(_numba.typeof(argument) for argument in arguments))
        known = len(self.dispatcher.signatures)
        result = self.dispatcher(*arguments)
        if len(self.dispatcher.signatures) != known:
            self._record()
        return result


def entry(function: F) -> F:
    """Return a compiled function for callers in Python."""
    stored: Any = function if _numba.config.DISABLE_JIT else StoredFunction(function)
    return stored


def kernel(function: F) -> F:
    """Return a compiled function for other compiled functions; LLVM inlines it, since passing all the arrays takes time."""
    compiled: F = _numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_options())(function)
    return compiled


def called_kernel(function: F) -> F:
    """Return a compiled function for other compiled functions that need not be inlined: a large one, to keep compilation short."""
    compiled: F = _numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_options())(function)
    return compiled


def inlined_kernel(function: F) -> F:
    """Return a compiled function that Numba inlines into its callers, because it returns a new array or calls much other code.

    Functions are compiled without reference counts, so they could not return a new array otherwise. LLVM optimizes all code that a function
    calls together with the function; one that Numba inlines is not compiled on its own, which saves minutes of compilation.
    """
    compiled: F = _numba.njit(inline="always", no_cpython_wrapper=True, no_cfunc_wrapper=True, **_options())(function)
    return compiled


def callback(signature: Any, function: Callable[..., Any]) -> int:
    """Compile a function that other compiled functions call by its address, and return the address (callbacks.py)."""
    compiled, _ = compile_stored(function, lambda own, cache: _numba.cfunc(signature, cache=cache, **_options())(own))
    _kept.append(compiled)
    address: int = compiled.address
    return address


_kept: list[Any] = []
"""The functions whose addresses are in use; this list keeps them alive."""


@functools.cache
def _options() -> dict[str, Any]:
    """Return the options with which all functions are compiled.

    Functions run without the interpreter and its lock. With `error_model="numpy"`, a division by zero gives infinity or NaN, which
    formulas of orders rely on. Two additional options only save time, and are left out if a version of Numba lacks them. `_nrt` is not
    documented by Numba: functions allocate nothing, so they need no reference counts, and counting references to the arrays makes every
    call ten times as slow. `indices.py` explains the other option.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    for add in (_without_counts, _from_zero):
        try:
            options |= add()
        except (ImportError, AttributeError) as error:
            warnings.warn(f"this version of Numba lacks an option ({error}); simulations take longer", RuntimeWarning, stacklevel=2)
    return options


def _without_counts() -> dict[str, Any]:
    from numba.core.registry import cpu_target

    if not hasattr(cpu_target.options, "_nrt"):
        raise AttributeError("_nrt")
    return {"_nrt": False}


def _from_zero() -> dict[str, Any]:
    from walltime.compiled.indices import KernelCompiler

    return {"pipeline_class": KernelCompiler}
