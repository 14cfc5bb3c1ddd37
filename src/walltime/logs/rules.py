"""What is done with records of a log that cannot be simulated as they are: each rule has a name, an effect, and is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Rule:
    """What is done with certain records when a workload is built.

    `effect`: `drop` (the record does not become a job), `change` (the job differs from its record) or `notice` (the job is
    unusual, and left unchanged).
    """

    name: str
    effect: Literal["drop", "change", "notice"]
    meaning: str


RULES = (
    Rule("bad_line", "drop", "The line is not a valid record of the log's format; only if bad lines are skipped."),
    Rule("partial_execution", "drop", "Part (status 2, 3, 4) of an interrupted job that also has a summary record, which is kept."),
    Rule("partial_execution_without_summary", "drop", "Part (status 2, 3, 4) of an interrupted job that has no summary record."),
    Rule("partial_execution_summary", "drop", "Summary of an interrupted job whose parts are kept instead; only with `parts`."),
    Rule("cancelled_before_start", "drop", "Cancelled (status 5) without having run: no runtime or no processors."),
    Rule("unknown_submit", "drop", "The submit time is unknown."),
    Rule("unknown_runtime", "drop", "The runtime is unknown, and the job is not marked as cancelled."),
    Rule("no_processors", "drop", "Neither allocated nor requested processors are known and positive."),
    Rule("too_wide", "drop", "The job needs more processors than the machine has."),
    Rule("clipped_to_machine", "change", "The job needs more processors than the machine has and gets all of them; only with `clip`."),
    Rule("runtime_as_estimate", "change", "No requested time is known: the runtime serves as estimate, at least 1 s."),
    Rule("rounded_time", "change", "A time is fractional: it is rounded to the nearest second, halves up; an estimate to at least 1 s."),
    Rule("reordered", "change", "The record comes after one with a later submission; jobs are sorted by arrival."),
    Rule("unknown_id", "change", "The job has no number and gets one above the largest of the log."),
    Rule("duplicate_id", "change", "An earlier record has the same job number; this one gets a number above the largest of the log."),
    Rule("zero_runtime", "notice", "The runtime is 0 (less than half a second)."),
    Rule("runtime_over_estimate", "notice", "The job ran longer than requested."),
    Rule("procs_differ", "notice", "Allocated and requested processors are both known and differ."),
)
"""The rules for all logs, whatever their format, those that drop in the order in which they are applied.

A record counts under the first rule that drops it. `all_rules` of `formats.py` adds those of single formats.
"""
