"""Read the job logs of real sites, unchanged or as workloads."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.logs.anonymous import anonymise as anonymise
    from walltime.logs.convert import write_log as write_log
    from walltime.logs.formats import FORMATS as FORMATS
    from walltime.logs.formats import all_rules as all_rules
    from walltime.logs.formats import read as read
    from walltime.logs.formats import read_log as read_log
    from walltime.logs.header import STANDARD_KEYS as STANDARD_KEYS
    from walltime.logs.header import Header as Header
    from walltime.logs.joblog import BadLine as BadLine
    from walltime.logs.joblog import JobLog as JobLog
    from walltime.logs.reader import LogFormat as LogFormat
    from walltime.logs.reader import ReaderState as ReaderState
    from walltime.logs.reader import ReadOptions as ReadOptions
    from walltime.logs.rules import RULES as RULES
    from walltime.logs.rules import Rule as Rule
    from walltime.logs.swf import SwfLog as SwfLog
    from walltime.logs.swf import read_swf as read_swf
    from walltime.logs.swf import write_swf as write_swf
    from walltime.logs.swf_text import Comment as Comment
    from walltime.workload.cleaning import CleaningReport as CleaningReport
    from walltime.workload.cleaning import Flurry as Flurry
    from walltime.workload.cleaning import clean as clean
    from walltime.workload.cleaning import find_flurries as find_flurries
    from walltime.workload.cleaning import published_filters as published_filters
    from walltime.workload.filters import select as select

__getattr__, __dir__, __all__ = lazy(__name__)
