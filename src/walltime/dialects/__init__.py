"""A comparison, on one log, of the interpretations of details that papers leave unspecified."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.dialects.dialects import (
        DialectRow as DialectRow,
        DialectTable as DialectTable,
        compare_dialects as compare_dialects,
        dialect_runs as dialect_runs,
        interpretations_alone as interpretations_alone,
    )

__getattr__, __dir__, __all__ = lazy(__name__)
