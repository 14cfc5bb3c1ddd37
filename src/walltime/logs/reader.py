"""Parts shared by all readers: the description of a format, the options, and the bad lines and counts of a file."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from walltime.errors import LogError
from walltime.logs.input import LogFile, decoded
from walltime.logs.joblog import BadLine, JobLog
from walltime.logs.rules import NOT_UTF8, Rule
from walltime.wording import counted

BLANKS = " \t\n\r\v\f"
"""The characters that may occur in a blank line."""


@dataclass(frozen=True)
class ReadOptions:
    """Options of readers.

    `skip_bad_lines`: skip and list invalid lines instead of raising LogError. `time_zone`: zone of local times in a log that does not give
    it, such as Europe/Stockholm, or an offset in seconds; None if unknown. `join_runs`: make one job of the runs of a job that Slurm put
    back into the queue.
    """

    skip_bad_lines: bool = False
    time_zone: str | None = None
    join_runs: bool = False


@dataclass
class ReaderState:
    """The file that a reader reads, its options, and the bad lines and non-zero counts by rule so far.

    `unit`: the word for a record in messages, `line` or `record`.
    """

    file: LogFile
    options: ReadOptions
    unit: str = "line"
    bad_lines: list[BadLine] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    noticed: dict[str, int] = field(default_factory=dict)
    dropped_work: dict[str, float] = field(default_factory=dict)

    def add_bad(self, line: int, reason: str, text: str) -> None:
        """Add a bad line; raises LogError unless bad lines are skipped."""
        if not self.options.skip_bad_lines:
            place = f"{self.file.where}:{line}" if self.unit == "line" else f"{self.file.where}: {self.unit} {line}"
            raise LogError(f"{place}: {reason}; correct the {self.unit}, or skip bad lines with skip_bad_lines=True", "bad_line")
        self.bad_lines.append(BadLine(line, reason, text))

    def count(self, rule: Rule, what: np.ndarray | int) -> None:
        """Add a number of jobs, or the number of jobs that a mask marks, to the count of a rule."""
        counts = {"drop": self.dropped, "change": self.changed, "notice": self.noticed}[rule.effect]
        if number := int(np.count_nonzero(what)) if isinstance(what, np.ndarray) else what:
            counts[rule.name] = counts.get(rule.name, 0) + number

    def drop(self, kept: np.ndarray, rule: Rule, mask: np.ndarray, work: np.ndarray | None = None) -> None:
        """Remove the jobs that `mask` marks from `kept`, and count those that were still in it under a rule.

        `work`: the processor-seconds of each job, float64; None if unknown.
        """
        self.count(rule, mask & kept)
        if work is not None:
            self.dropped_work[rule.name] = self.dropped_work.get(rule.name, 0.0) + float(work[mask & kept].sum())
        np.logical_and(kept, ~mask, out=kept)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that are not blank, with their numbers, and count lines that are not UTF-8."""
        for first, text in self.file.text_blocks():
            yield from self.lines_in(first, text)

    def lines_in(self, first: int, text: bytes) -> Iterator[tuple[int, str]]:
        """Yield the lines of a block, as `lines` does; `first`: the number of its first line."""
        try:
            lines = text.decode().split("\n")
        except UnicodeDecodeError:
            found = [decoded(line) for line in text.split(b"\n")]
            lines = [line for line, _ in found]
            self.count(NOT_UTF8, sum(not is_utf8 for line, is_utf8 in found if line.strip(BLANKS)))
        for number, line in enumerate(lines, first):
            if line.strip(BLANKS):
                yield number, line.rstrip("\r")

    def no_jobs(self, code: str = "") -> LogError:
        """Return the error for a file without jobs."""
        if self.bad_lines and not self.dropped:
            first = f"the first of {counted(len(self.bad_lines), 'bad line')} is line {self.bad_lines[0].line}: {self.bad_lines[0].reason}"
            return LogError(f"{self.file.where}: no job record can be read ({first}); give another log", code)
        dropped = ", ".join(f"{count:,} {rule}" for rule, count in self.dropped.items())
        what = f"the log has no job that has ended ({dropped})" if dropped else "the log has no job records"
        return LogError(f"{self.file.where}: {what}; give another log", code)


@dataclass(frozen=True)
class LogFormat:
    """A format of job logs: its name, how files are recognised, and the function that reads them.

    `title`: its name in messages. `endings`: file extensions, in lower case and without `.gz`, such as `.swf`; they decide if
    no format recognises the content. `head`: a pattern to search for in the first bytes of a file (up to 512 KiB, decompressed). `read`:
    reads the file of a `ReaderState`, to which it adds invalid lines. `rules`: rules that the reader itself counts. `is_one`: another
    test of the first bytes, for formats that `head` does not identify. `needs_head`: the extension alone does not identify the format.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    head: re.Pattern[bytes]
    read: Callable[[ReaderState], JobLog]
    rules: tuple[Rule, ...] = ()
    is_one: Callable[[bytes], bool] = lambda head: True
    needs_head: bool = False
