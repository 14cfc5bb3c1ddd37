"""Rules by which records of logs are dropped, changed or flagged: here the rules of all formats, and of batch systems."""

from dataclasses import dataclass
from typing import Literal

from walltime.workload.drops import TOO_WIDE

MEANINGS: dict[str, str] = {}
"""The meanings of the rules of all readers, by name."""
IDLE = frozenset(
    {
        *("step", "part_of_resized", "array_summary", "still_pending", "never_started", "cancelled_before_start"),
        *("repeated_record", "partial_execution", "partial_execution_summary"),
    }
)
"""Rules that drop only records without work of their own: the job never ran, or another record has its work."""


@dataclass(frozen=True)
class Rule:
    """A rule for certain records of a log, which is applied when a log is read or a workload is made of it.

    `effect`: `drop` (the record does not become a job), `change` (the job differs from its record) or `notice` (the job is
    unusual, but unchanged).
    """

    name: str
    effect: Literal["drop", "change", "notice"]
    meaning: str

    def __post_init__(self) -> None:
        MEANINGS[self.name] = self.meaning


REPEATED_RECORD = Rule("repeated_record", "drop", "An earlier record describes the same run, as in overlapping exports.")
RULES = (
    Rule("bad_line", "drop", "The line is not a valid record of the log's format; only if bad lines are skipped."),
    REPEATED_RECORD,
    Rule("partial_execution", "drop", "Part (status 2, 3, 4) of an interrupted job that also has a summary record, which is kept."),
    Rule("partial_execution_without_summary", "drop", "Part (status 2, 3, 4) of an interrupted job that has no summary record."),
    Rule("partial_execution_summary", "drop", "Summary of an interrupted job whose parts are kept instead; only with `parts`."),
    Rule("cancelled_before_start", "drop", "Cancelled (status 5) without having run: no runtime or no processors."),
    Rule("unknown_submit", "drop", "The submit time is unknown."),
    Rule("unknown_runtime", "drop", "The runtime is unknown, and the job is not marked as cancelled."),
    Rule("no_processors", "drop", "The number of processors is unknown or 0."),
    Rule("too_wide", "drop", TOO_WIDE["too_wide"]),
    Rule("clipped_to_machine", "change", "The job needs more processors than the machine has and gets all of them; only with `clip`."),
    Rule("runtime_as_estimate", "change", "No requested time is known: the runtime serves as estimate, at least 1 s."),
    Rule("rounded_time", "change", "A time is fractional: it is rounded to the nearest second, halves up; an estimate to at least 1 s."),
    Rule("reordered", "change", "The record follows one with a later submission; jobs are sorted by arrival."),
    Rule("unknown_id", "change", "The job has no number and gets one above the largest of the log."),
    Rule("duplicate_id", "change", "An earlier record has the same job number; this one gets a number above the largest of the log."),
    Rule("zero_runtime", "notice", "The runtime is 0 s."),
    Rule("runtime_over_estimate", "notice", "The job ran longer than requested."),
    Rule("procs_differ", "notice", "The numbers of allocated and requested processors differ."),
)
"""The rules of all formats; rules that drop records are applied in this order, and a record counts under the first that drops it.

`all_rules` of `formats.py` adds the rules of single formats.
"""

OTHER_EVENT = Rule(
    "other_event", "drop", "The record does not describe the end of a job but another event: queued, started, deleted, rerun, a licence."
)
STILL_PENDING = Rule("still_pending", "drop", "The job had not started when the log was written; waiting tasks of an array are one record.")
STILL_RUNNING = Rule("still_running", "drop", "The job had not ended when the log was written.")
ELIGIBLE_LATER = Rule(
    "eligible_later",
    "change",
    "The job was held, or waited for another job or a begin time. Its submission is moved to the time at which it became eligible to "
    "start; the column `held` has the difference in seconds.",
)
ELIGIBLE_AFTER_START = Rule("eligible_after_start", "notice", "In the log, the job became eligible only after its start.")
START_BEFORE_SUBMIT = Rule(
    "start_before_submit", "change", "In the log, the job started before it was submitted: its submission is moved to its start."
)
UNLIMITED = Rule("unlimited", "change", "The job has no time limit: its request is set to 365 days, or its runtime if that is longer.")
NOT_UTF8 = Rule("not_utf8", "change", "The line contains bytes that are not UTF-8: they are read as Latin-1.")
NEWLINE_IN_TEXT = Rule("newline_in_text", "notice", "A text of the job contains line ends, so the record has several lines.")
FLOORED = Rule("floored_time", "change", "A time of day has a fraction of a second: it is rounded down.")
UNREADABLE_DURATION = Rule(
    "unreadable_duration", "change", "A request, or another duration that is not essential, cannot be read: it counts as unknown."
)
UNREADABLE_VALUE = Rule("unreadable_value", "notice", "A value that is not needed for a simulation is unreadable; it counts as unknown.")
SUBMITTED_AGAIN = Rule(
    "submitted_again",
    "change",
    "The job ran before, and was put back into the queue: each run is a separate job; this one is submitted when the earlier one ends.",
)
ZONE_UNKNOWN = Rule(
    "zone_unknown",
    "notice",
    "The log has local times without a time zone: they are read as UTC. Give the zone with `--time-zone`, such as Europe/Stockholm.",
)
AMBIGUOUS = Rule(
    "ambiguous_time",
    "change",
    "A local time occurs twice, in the hour before clocks are set back, and the job's other times do not decide which one is meant: the "
    "first is used.",
)
SKIPPED = Rule("skipped_time", "change", "A local time does not exist, because clocks were set forward: it is moved forward by an hour.")
BATCH_RULES = (
    OTHER_EVENT, STILL_PENDING, STILL_RUNNING, ELIGIBLE_LATER, ELIGIBLE_AFTER_START, START_BEFORE_SUBMIT, UNLIMITED, NOT_UTF8,
    NEWLINE_IN_TEXT, FLOORED, UNREADABLE_DURATION, UNREADABLE_VALUE, SUBMITTED_AGAIN, ZONE_UNKNOWN, AMBIGUOUS, SKIPPED,
)  # fmt: skip
"""The rules of all batch systems."""
