"""What the columns of a table mean from their values alone: one without titles (`sacct --noheader`), or with titles that say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from walltime.errors import LogError
from walltime.logs.cells import JOB_NUMBER, NUMBER
from walltime.logs.guess import EARLIEST, Guess, Guessing, agreeing, middle_of, share
from walltime.logs.mapping import TIMES, Source
from walltime.logs.sample import Sample
from walltime.wording import listed, printable

Array = np.ndarray
_MOSTLY = 0.95
_STATES = re.compile(
    r"(?i)(completed|failed|cancelled|timeout|out_of_memory|node_fail|preempted|pending|running|boot_fail|deadline|requeued|revoked|suspended"
    r"|done|exit|error|terminated|finished|success|killed|cd|ca|f|to)(\+| by [0-9]+)?"
)
_COUNT = re.compile(r"[1-9][0-9]{0,6}(\.0)?")
_CLOCK_LIKE = re.compile(r"(?i)([0-9]+-)?[0-9]+(:[0-9][0-9]){1,2}(\.[0-9]+)?|unlimited")
_WORD = re.compile(r"[A-Za-z_][\w.@-]*")
_HASH = re.compile(r"[0-9a-f]{16,}")
_ORDERS = {3: ("submit", "start", "end"), 4: ("submit", "eligible", "start", "end")}
_HAPPENED = {"submit": "were submitted", "eligible": "became eligible", "start": "started", "end": "ended"}
_LONGEST = 366 * 86_400
_ROWS = 5


def guessed_untitled(where: str, sample: Sample) -> Guess | None:
    """What the columns of a table mean that has no titles, or None; these columns are called column1, column2, ..."""
    return _Untitled(where, sample).guess()


def guessed_by_values(where: str, sample: Sample) -> Guess | None:
    """The same of a table of which the titles do not tell the times, or None if values do not tell either.

    It always has a doubt: whether these are the times of jobs.
    """
    titled = Guessing(where, sample)
    titled.guess()
    return _Untitled(where, sample).complete(titled)


class _Untitled(Guessing):
    """One table of which the titles say little or nothing."""

    def complete(self, titled: Guessing) -> Guess | None:
        """What values tell beside what is known by titles, but for times; None if both say something of times, and not the same."""
        self.sources = {name: source for name, source in titled.sources.items() if name not in TIMES}
        self.reading = [line for line in titled.reading if line.split(" is ")[0] in self.sources or line.startswith("status is ")]
        self.status = titled.status
        try:
            described = self.guess()
        except LogError:
            return None
        taken = {name: source.column or "" for name, source in self.sources.items() if name in TIMES}
        if described is None or any(taken.get(name, "") != source.column for name, source in titled.sources.items() if name in TIMES):
            return None
        said = listed([repr(printable(title)) for title in taken.values()])
        rows = list(zip(*(self.sample.columns[title] for title in taken.values()), strict=True))[:_ROWS]
        begin = "; ".join(", ".join(map(printable, row)) for row in rows)
        what = f"the times at which jobs {listed([_HAPPENED[name] for name in taken])}"
        question = f"are {said} {what}, in this order, or other times? Their titles say nothing; they begin {begin}"
        return replace(described, doubts=(question, *described.doubts))

    def guess(self) -> Guess | None:
        if not self._times():
            return None
        self._spans()
        if self.status is None:
            self._statuses()
        if "job_id" not in self.sources:
            self._job_ids()
        if not {"allocated_procs", "requested_procs"} & self.sources.keys():
            self._sizes()
        if "user" not in self.sources:
            self._words()
        described = self.described()
        if described is None or not self.sample.untitled:
            return described
        return replace(described, mapping=replace(described.mapping, titles=tuple(self.sample.columns)))

    def _free(self) -> list[str]:
        """The columns that have something in them and were not taken yet."""
        taken = {source.column for source in self.sources.values()} | ({self.status.column} if self.status else set())
        return [title for title, texts in self.known.items() if texts and title not in taken]

    def _take(self, name: str, source: Source, how: str) -> None:
        self.sources[name] = source
        self.reading.append(f"{name} is {printable(source.column or '')!r} ({how})")

    def _times(self) -> bool:
        """Take the times of day, which come in the order in which they happen; False if there are fewer than two."""
        by_title: dict[str, tuple[Source, Array]] = {}
        for title in self._free():
            texts = self.known[title]
            if share(texts, NUMBER) >= _MOSTLY and middle_of(texts) < EARLIEST:
                continue
            source = self.time(title, texts)
            if source is not None:
                times = self.clock_of(source)
                by_title[title] = source, np.where(times > 0, times, np.nan)
        usual = {title: float(np.nanmedian(times)) for title, (_, times) in by_title.items() if np.isfinite(times).any()}
        order = sorted(usual, key=lambda title: usual[title])
        if len(order) < 2:
            return False
        for earlier, later in pairwise(order):
            first, second = by_title[earlier][1], by_title[later][1]
            there = np.isfinite(first) & np.isfinite(second)
            if there.any() and (first <= second)[there].mean() < _MOSTLY:
                self.doubt(later, f"later or earlier than {earlier!r}", self.sample.columns[later])
        names = _ORDERS.get(len(order))
        if names is None and len(order) == 2:
            self.doubt(order[1], f"when jobs started or ended ({order[0]!r} is taken for their submission)", self.sample.columns[order[1]])
            names = ("submit", "start")
        if names is None:
            self.doubt(order[1], f"when jobs started or something else ({len(order)} columns are times)", self.sample.columns[order[1]])
            order, names = [order[0], order[-2], order[-1]], _ORDERS[3]
        for name, title in zip(names, order, strict=True):
            source = by_title[title][0]
            self._take(name, source, f"times such as {self.known[title][0]}, by their order")
        return True

    def _spans(self) -> None:
        """Take the runtime and the wait, which the times tell, and the request, if one column alone looks like it."""
        times = {name: self.clock(name) for name in ("submit", "start", "end")}
        submit, start, end = times["submit"], times["start"], times["end"]
        spent = None if start is None or end is None else np.where((start > 0) & (end >= start), end - start, np.nan)
        waited = (
            None if start is None or submit is None else np.where((start > 0) & (submit > 0) & (start >= submit), start - submit, np.nan)
        )
        for name, others, what in (("runtime", spent, "from start to end"), ("wait", waited, "from submission to start")):
            if name in self.sources or others is None or not np.isfinite(others).any() or np.nanmax(others) <= 0:
                continue
            for title in self._free():
                fits = agreeing(self._values(title), others, "exact")
                unit = max(fits, key=lambda one: fits[one], default="s")
                if fits and fits[unit] >= _MOSTLY:
                    self._take(name, Source(title, unit=unit, text=False), what)
                    break
        if spent is None and (runtime := self.seconds("runtime")) is not None:
            spent = runtime
        if spent is not None and "requested" not in self.sources:
            self._request(spent)

    def _request(self, spent: Array) -> None:
        likely = [title for title in self._free() if share(self.known[title], _CLOCK_LIKE) >= _MOSTLY and self._limits(title, spent)]
        how = "what jobs may take"
        if not likely:
            round_ones = [title for title in self._free() if self._is_round(title)]
            likely = [title for title in round_ones if self._limits(title, spent)]
            how = "what jobs may take, numbers are seconds"
        if len(likely) == 1:
            self._take("requested", Source(likely[0], text=False), how)

    def _limits(self, title: str, spent: Array) -> bool:
        return agreeing(self._values(title), spent, "limit").get("s", 0) >= 0.9

    def _is_round(self, title: str) -> bool:
        """Whether these are numbers of seconds that people write: whole minutes, few different ones."""
        texts = self.known[title]
        if share(texts, NUMBER) < _MOSTLY:
            return False
        values = np.array([float(text) for text in texts if NUMBER.fullmatch(text)])
        whole = (values % 60 == 0) & (values >= 60) & (values <= _LONGEST)
        return bool(whole.mean() >= 0.9) and len(np.unique(values)) <= max(20, len(values) // 10)

    def _values(self, title: str) -> Array:
        return self.seconds_of(Source(title, text=False))

    def _statuses(self) -> None:
        for title in self._free():
            if share(self.known[title], _STATES) >= _MOSTLY and self.take_status(title, self.known[title]):
                return

    def _job_ids(self) -> None:
        for title in self._free():
            texts = self.known[title]
            if share(texts, re.compile(JOB_NUMBER)) >= _MOSTLY and len(set(texts)) >= _MOSTLY * len(texts):
                self._take("job_id", Source(title, text=False), "numbers that do not repeat")
                return

    def _sizes(self) -> None:
        """Take the processors, and the nodes where one column is a multiple of another; more than these are doubtful."""
        counts = [title for title in self._free() if share(self.known[title], _COUNT) >= _MOSTLY]
        counts = [title for title in counts if len(set(self.known[title])) < max(len(self.known[title]), 2)]
        values = {title: self._values(title) for title in counts}
        for nodes in counts:
            for procs in counts:
                small, large = values[nodes], values[procs]
                there = np.isfinite(small) & np.isfinite(large) & (small > 0)
                multiple = there.any() and ((large % np.maximum(small, 1) == 0) & (large >= small))[there].mean() >= _MOSTLY
                if nodes != procs and multiple and (large > small)[there].any() and len(np.unique(small[there])) > 1:
                    self._take("allocated_procs", Source(procs, text=False), f"whole numbers, multiples of {nodes!r}")
                    self._take("nodes", Source(nodes, text=False), "whole numbers")
                    counts = [title for title in counts if title not in (nodes, procs)]
                    if counts:
                        self.doubt(procs, f"the processors, or is {counts[0]!r} the processors", self.sample.columns[procs])
                    return
        if counts:
            self._take("allocated_procs", Source(counts[0], text=False), "whole numbers")
            if len(counts) > 1:
                self.doubt(counts[0], f"the processors, or is {counts[1]!r} the processors", self.sample.columns[counts[0]])

    def _words(self) -> None:
        """Take the column of names with most different ones for the users, if they repeat."""
        words = {title: len(set(self.known[title])) for title in self._free() if self._are_names(self.known[title])}
        likely = [title for title, count in words.items() if 1 < count <= len(self.known[title]) // 2]
        if likely:
            title = max(likely, key=lambda one: words[one])
            self._take("user", Source(title, text=True), f"names, {words[title]:,} different ones in the first rows")

    def _are_names(self, texts: Sequence[str]) -> bool:
        return share(texts, _WORD) >= _MOSTLY or share(texts, _HASH) >= _MOSTLY
