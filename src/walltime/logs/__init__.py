"""Read: job logs of real sites, as they are and as workloads."""

from walltime.logs.header import STANDARD_KEYS, Header
from walltime.logs.output import whole_file
from walltime.logs.rules import RULES, Rule
from walltime.logs.swf import SwfLog, read, read_swf, write_swf
from walltime.logs.swf_text import BadLine, Comment

__all__ = ["RULES", "STANDARD_KEYS", "BadLine", "Comment", "Header", "Rule", "SwfLog", "read", "read_swf", "whole_file", "write_swf"]
