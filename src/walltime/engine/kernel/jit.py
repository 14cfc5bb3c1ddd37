"""The options with which functions are compiled. The compiled code is stored by compiler/cache.py and compiler/folder.py."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonRewrites

from walltime.engine.compiler.cache import keep_on_disk, keeps_parts
from walltime.engine.compiler.libraries import new_part, new_whole

F = TypeVar("F", bound=Callable[..., Any])
_numba: Any = numba  # what is used below is not all declared in Numba's types


@register_pass(mutates_CFG=False, analysis_only=False)
class _PlacesFromZero(FunctionPass):
    """Indices of arrays are places counted from zero; a negative one is an error, and does not count from the end.

    Otherwise each access asks whether its index is negative, which takes a tenth of the time of a simulation or more (docs/performance.md).
    With NUMBA_BOUNDSCHECK=1 a negative index raises IndexError. This concerns kernels alone, and not functions of users.
    """

    _name = "walltime_places_from_zero"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Let every access to an array take its index as an unsigned number."""
        for access, signature in list(state.calltypes.items()):
            if isinstance(access, ir.SetItem) or (isinstance(access, ir.Expr) and access.op == "getitem"):
                array, index, *value = signature.args
                if isinstance(array, types.Array):
                    del state.calltypes[access]  # it takes no second value for a key
                    state.calltypes[access] = signature.replace(args=(array, _unsigned(index), *value))
        return True


def _unsigned(index: Any) -> Any:
    """The type of an index, or of a tuple of them, without the sign; that of a slice as it is."""
    if isinstance(index, _numba.types.BaseTuple):
        return types.Tuple([_unsigned(one) for one in index.types])
    return types.uintp if isinstance(index, types.Integer) else index


@register_pass(mutates_CFG=False, analysis_only=False)
class _OwnLibrary(FunctionPass):
    """A function that only kernels call is a part of them (compiler/libraries.py)."""

    _name = "walltime_own_library"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Make the library before Numba does, unless it keeps functions in a way in which parts cannot be kept."""
        if not keeps_parts():
            return False
        codegen, name, flags = state.targetctx.codegen(), state.func_id.func_qualname, state.flags
        is_part = flags.no_cpython_wrapper and flags.no_cfunc_wrapper
        state.library = new_part(codegen, name, flags.forceinline) if is_part else new_whole(codegen, name)
        return True


class KernelCompiler(CompilerBase):
    """Numba's compiler with two passes more."""

    def define_pipelines(self) -> list[Any]:
        """The passes that make machine code of a function."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_PlacesFromZero, NopythonRewrites)
        manager.add_pass_after(_OwnLibrary, _PlacesFromZero)
        manager.finalize()
        return [manager]


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
    compiled: F = _numba.njit(nogil=True, error_model="numpy", pipeline_class=KernelCompiler, **_without_counts(), **options)(function)
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
