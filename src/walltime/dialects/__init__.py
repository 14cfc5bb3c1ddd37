"""A comparison, on one log, of the interpretations of details that papers leave unspecified."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.dialects.dialects import DialectRow as DialectRow
    from walltime.dialects.dialects import DialectTable as DialectTable
    from walltime.dialects.dialects import compare_dialects as compare_dialects
    from walltime.dialects.dialects import dialect_runs as dialect_runs
    from walltime.dialects.dialects import interpretations_alone as interpretations_alone

__getattr__, __dir__, __all__ = lazy(__name__)
