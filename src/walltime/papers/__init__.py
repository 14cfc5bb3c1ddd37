"""The published studies: every table and figure of a paper run anew, the printed numbers beside ours."""

from walltime.papers.item import Item
from walltime.papers.items import ITEMS, PAPERS, items_of
from walltime.papers.printed_numbers import Printed, printed
from walltime.papers.results import Chart, Claims, Notes, Result, Table, Value
from walltime.papers.run import run_paper
from walltime.papers.subjects import Subject, find_subjects

__all__ = [
    "ITEMS",
    "PAPERS",
    "Chart",
    "Claims",
    "Item",
    "Notes",
    "Printed",
    "Result",
    "Subject",
    "Table",
    "Value",
    "find_subjects",
    "items_of",
    "printed",
    "run_paper",
]
