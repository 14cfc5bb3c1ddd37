"""Read the job logs of real sites, unchanged or as workloads."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.logs.anonymous import anonymise as anonymise
    from walltime.logs.convert import write_log as write_log
    from walltime.logs.formats import FORMATS as FORMATS, all_rules as all_rules, read as read, read_log as read_log
    from walltime.logs.header import STANDARD_KEYS as STANDARD_KEYS, Header as Header
    from walltime.logs.joblog import BadLine as BadLine, JobLog as JobLog
    from walltime.logs.reader import LogFormat as LogFormat, ReaderState as ReaderState, ReadOptions as ReadOptions
    from walltime.logs.rules import RULES as RULES, Rule as Rule
    from walltime.logs.swf import SwfLog as SwfLog, read_swf as read_swf, write_swf as write_swf
    from walltime.logs.swf_text import Comment as Comment
    from walltime.workload.cleaning import (
        CleaningReport as CleaningReport,
        Flurry as Flurry,
        clean as clean,
        find_flurries as find_flurries,
        published_filters as published_filters,
    )
    from walltime.workload.filters import select as select

__getattr__, __dir__, __all__ = lazy(__name__)
