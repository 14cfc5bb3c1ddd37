"""Numba's compiler with an additional pass that makes indices of arrays count from zero."""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonRewrites


@register_pass(mutates_CFG=False, analysis_only=False)
class _PlacesFromZero(FunctionPass):
    """A pass after which indices of arrays count from zero; a negative one is an error, and does not count from the end.

    Otherwise each access tests whether its index is negative, which takes a tenth or more of the time of a simulation. With
    NUMBA_BOUNDSCHECK=1 a negative index raises IndexError. This concerns kernels alone, not functions of users.
    """

    _name = "walltime_places_from_zero"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Make every access to an array take its index as an unsigned number."""
        for access, signature in list(state.calltypes.items()):
            if isinstance(access, ir.SetItem) or (isinstance(access, ir.Expr) and access.op == "getitem"):
                array, index, *value = signature.args
                if isinstance(array, types.Array):
                    del state.calltypes[access]  # it takes no second value for a key
                    state.calltypes[access] = signature.replace(args=(array, _unsigned(index), *value))
        return True


def _unsigned(index: Any) -> Any:
    """Return the type of an index, or of a tuple of them, without the sign; the type of a slice is unchanged."""
    if isinstance(index, types.BaseTuple):
        return types.Tuple([_unsigned(one) for one in index.types])  # type: ignore[attr-defined]
    return types.uintp if isinstance(index, types.Integer) else index


class KernelCompiler(CompilerBase):
    """The compiler of kernels; Numba documents how to make one in "Notes on Custom Pipelines"."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes that make machine code of a function."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_PlacesFromZero, NopythonRewrites)
        manager.finalize()
        return [manager]
