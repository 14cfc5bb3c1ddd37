"""What the compiler makes of a function: code for other kernels, or machine code of one with all that it calls.

Numba optimizes each function together with all that it calls, and makes machine code of it; and does so again for each function that calls
it. Of a kernel that only kernels call nobody needs that. So one that is inlined is kept as LLVM's code as it is, and one that is called is
optimized with what is inlined in it: both are a `Part`. Once all parts of a function that Python calls are known, they become a `Whole`, of
which alone there is machine code. So the first start takes about half as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary

_KIND = "part"


class _Unnoted:
    """The compiler as a part sees it: code that never runs alone has no place for its environment."""

    def __init__(self, codegen: Any):
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Numba writes down here what Python objects a function uses; kernels use none."""


class Part(JITCodeLibrary):
    """A function that only compiled code calls, with what it calls beside it; `inlined`: whether it will be inlined."""

    inlined = True

    @property
    def codegen(self) -> Any:
        """The compiler."""
        return _Unnoted(self._codegen)

    def finalize(self) -> None:
        """One that is inlined stays as it is; one that is called is optimized with what is inlined in it."""
        self._raise_if_finalized()
        if not self.inlined:
            called = []
            for library in _with_parts(self._linking_libraries, through=lambda part: part.inlined):
                if isinstance(library, Part) and not library.inlined:
                    called.append(library)
                else:
                    self._final_module.link_in(_code_of(library), preserve=True)
            self._linking_libraries = called
            self._optimize_final_module()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    def own_code(self) -> Any:
        """The function alone, as it can be linked."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """The function and all that it calls: for functions of users, which Numba compiles as it does."""
        linked = self.own_code().clone()
        for library in _with_parts(self._linking_libraries):
            linked.link_in(_code_of(library), preserve=True)
        return linked

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """The function and all that it calls, as LLVM's code."""
        return self.name, _KIND, self._get_module_for_linking().as_bitcode()


class Whole(JITCodeLibrary):
    """A function that Python calls, or other compiled code by its address."""

    def finalize(self) -> None:
        """Link all parts, and make machine code of them."""
        for library in _with_parts(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # not in Numba 0.61
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(_code_of(library), preserve=True)
        self._linking_libraries = []
        super().finalize()


def _code_of(library: Any) -> Any:
    """The code of a library, without what its parts call."""
    return library.own_code() if isinstance(library, Part) else library._get_module_for_linking()


def _with_parts(libraries: list[Any], through: Callable[[Part], bool] = lambda part: True) -> list[Any]:
    """The libraries and what their parts call, each once, and behind all that call it: what nobody calls yet is not linked.

    Of a part that `through` is false for the calls are not followed.
    """
    found: dict[Any, None] = {}

    def visit(library: Any) -> None:
        if library not in found:
            for called in library._linking_libraries if isinstance(library, Part) and through(library) else ():
                visit(called)
            found[library] = None

    for library in libraries:
        visit(library)
    return list(reversed(found))


def new_part(codegen: Any, name: str, inlined: bool) -> Any:
    """An empty library for a function that only compiled code calls."""
    part = _of_kind(Part, codegen, name)
    part.inlined = inlined
    return part


def new_whole(codegen: Any, name: str) -> Any:
    """An empty library for a function that Python calls."""
    return _of_kind(Whole, codegen, name)


def _of_kind(kind: type, codegen: Any, name: str) -> Any:
    library = codegen.create_library(name)
    library.__class__ = kind
    library.enable_object_caching()
    return library


class _Reading:
    """A target for Numba to rebuild a part for, as Numba itself does not know what its code is."""

    def __init__(self, context: Any):
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> Any:
        """The compiler."""
        return self

    def unserialize_library(self, data: tuple[str, str, bytes]) -> Any:
        """The part that has been written by `serialize_using_object_code`."""
        name, _, code = data
        part = new_part(self._context.codegen(), name, inlined=True)  # it has been optimized if it is not
        part._final_module = binding.parse_bitcode(code)
        part.finalize()
        return part


def rebuilt(rebuild: Any, context: Any, payload: Any) -> Any:
    """What has been kept of a function, as the compiler gave it; `rebuild` is Numba's function for that."""
    if payload[0][1] != _KIND:
        return rebuild(context, payload)
    return rebuild(_Reading(context), payload)._replace(target_context=context)
