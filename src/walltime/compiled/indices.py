"""Numba's compiler with one pass more, by which indices of arrays count from zero."""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonRewrites


@register_pass(mutates_CFG=False, analysis_only=False)
class _PlacesFromZero(FunctionPass):
    """Indices of arrays are places counted from zero; a negative one is an error, and does not count from the end.

    Otherwise each access asks whether its index is negative, which takes a tenth of the time of a simulation or more.
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
    if isinstance(index, types.BaseTuple):
        return types.Tuple([_unsigned(one) for one in index.types])  # type: ignore[attr-defined]
    return types.uintp if isinstance(index, types.Integer) else index


class KernelCompiler(CompilerBase):
    """The compiler of kernels; Numba documents how to make one in "Notes on Custom Pipelines"."""

    def define_pipelines(self) -> list[Any]:
        """The passes that make machine code of a function."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_PlacesFromZero, NopythonRewrites)
        manager.finalize()
        return [manager]
