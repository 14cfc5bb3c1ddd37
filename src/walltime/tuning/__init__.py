"""Fit queue orders to a log, or search for orders on many logs."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.tuning.fitting import SIMPLE as SIMPLE
    from walltime.tuning.fitting import Candidate as Candidate
    from walltime.tuning.fitting import FitSettings as FitSettings
    from walltime.tuning.fitting import Tuning as Tuning
    from walltime.tuning.fitting import tune as tune
    from walltime.tuning.formula_search import search_orders as search_orders
    from walltime.tuning.order_file import OrderFile as OrderFile
    from walltime.tuning.order_file import SearchSettings as SearchSettings
    from walltime.tuning.order_file import read_order_file as read_order_file
    from walltime.tuning.order_file import write_order_file as write_order_file

__getattr__, __dir__, __all__ = lazy(__name__)
