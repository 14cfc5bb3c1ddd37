"""Numba's compiler with an additional pass that makes indices of arrays count from zero."""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonRewrites


@register_pass(mutates_CFG=False, analysis_only=False)
class _PlacesFromZero(FunctionPass):
    """A compiler pass that treats array indices as unsigned: a negative index is an error, and does not count from the end.

    Without this pass each access tests whether its index is negative, which takes at least a tenth of a simulation's time. With
    NUMBA_BOUNDSCHECK=1 a negative index raises IndexError. The pass applies only to kernels, not to users' functions.
    """

    _name = "walltime_places_from_zero"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change all accesses to arrays so that they take their indices as unsigned numbers; return True, as the pass changes the code."""
        for access, signature in list(state.calltypes.items()):
            if isinstance(access, ir.SetItem) or (isinstance(access, ir.Expr) and access.op == "getitem"):
                array, index, *value = signature.args
                if isinstance(array, types.Array):
                    del state.calltypes[access]  # the dictionary does not accept a new value for a known key
                    state.calltypes[access] = signature.replace(args=(array, _unsigned(index), *value))
        return True


def _unsigned(index: Any) -> Any:
    """Return the unsigned type for the type of an index, or of a tuple of indices; types of slices are unchanged."""
    if isinstance(index, types.BaseTuple):
        return types.Tuple([_unsigned(one) for one in index.types])  # type: ignore[attr-defined]
    return types.uintp if isinstance(index, types.Integer) else index


class KernelCompiler(CompilerBase):
    """The compiler of kernels, made as Numba's documentation describes in "Notes on Custom Pipelines"."""

    def define_pipelines(self) -> list[Any]:
        """Return the pipeline of passes that turn a function into machine code."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_PlacesFromZero, NopythonRewrites)
        manager.finalize()
        return [manager]
