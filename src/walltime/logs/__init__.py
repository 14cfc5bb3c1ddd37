"""Reading job logs of real sites, unchanged and as workloads."""

from walltime.logs.anonymous import anonymise
from walltime.logs.convert import write_log
from walltime.logs.formats import FORMATS, all_rules, read, read_log
from walltime.logs.header import STANDARD_KEYS, Header
from walltime.logs.joblog import JobLog
from walltime.logs.reader import BadLine, LogFormat, ReaderState, ReadOptions
from walltime.logs.rules import RULES, Rule
from walltime.logs.swf import SwfLog, read_swf, write_swf
from walltime.logs.swf_text import Comment
from walltime.workload.cleaning import CleaningReport, Flurry, clean, find_flurries, published_filters
from walltime.workload.filters import select

__all__ = [
    "FORMATS",
    "RULES",
    "STANDARD_KEYS",
    "BadLine",
    "CleaningReport",
    "Comment",
    "Flurry",
    "Header",
    "JobLog",
    "LogFormat",
    "ReadOptions",
    "ReaderState",
    "Rule",
    "SwfLog",
    "all_rules",
    "anonymise",
    "clean",
    "find_flurries",
    "published_filters",
    "read",
    "read_log",
    "read_swf",
    "select",
    "write_log",
    "write_swf",
]
