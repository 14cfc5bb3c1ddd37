"""The data-frame library polars, imported when it is first used."""

from typing import TYPE_CHECKING

from walltime.lazy import LaterModule

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

__all__ = ["pl"]
