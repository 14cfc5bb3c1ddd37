"""Fit queue orders to a log, or search for orders on many logs."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.tuning.fitting import SIMPLE as SIMPLE, Candidate as Candidate, FitSettings as FitSettings, Tuning as Tuning, tune as tune
    from walltime.tuning.formula_search import search_orders as search_orders
    from walltime.tuning.order_file import (
        OrderFile as OrderFile,
        SearchSettings as SearchSettings,
        read_order_file as read_order_file,
        write_order_file as write_order_file,
    )

__getattr__, __dir__, __all__ = lazy(__name__)
