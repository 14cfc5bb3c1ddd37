"""Fits a queue order to a log, and searches for one that is good on many logs."""

from walltime.tuning.final_table import FinalTable, judge
from walltime.tuning.fitting import SIMPLE, Candidate, FitSettings, Tuning, tune
from walltime.tuning.formula_search import SearchSettings, search_orders
from walltime.tuning.order_file import OrderFile, read_order_file, write_order_file
from walltime.tuning.search import OPTIMISERS

__all__ = [
    "OPTIMISERS",
    "SIMPLE",
    "Candidate",
    "FinalTable",
    "FitSettings",
    "OrderFile",
    "SearchSettings",
    "Tuning",
    "judge",
    "read_order_file",
    "search_orders",
    "tune",
    "write_order_file",
]
