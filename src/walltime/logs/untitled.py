"""Guess the meaning of a table's columns from their values alone: titles are missing (`sacct --noheader`) or meaningless."""

import re
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np

from walltime.errors import LogError
from walltime.logs.cells import JOB_NUMBER, NUMBER
from walltime.logs.guess import EARLIEST, Guess, Guessing
from walltime.logs.mapping import TIMES, Source
from walltime.logs.sample import agreeing, middle_of, share
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


class GuessingByValues(Guessing):
    """The guesses about a table whose titles are missing (column1, column2, ... are used) or ambiguous."""

    def complete(self) -> Guess | None:
        """Return guesses from titles, with times guessed from values; None if that fails or titles contradict it.

        The result always notes that the columns may not be the times of jobs.
        """
        titled = Guessing(self.where, self.sample)
        titled.guess()
        self.sources = {name: source for name, source in titled.sources.items() if name not in TIMES}
        self.reading = {name: line for name, line in titled.reading.items() if name in (*self.sources, "status")}
        self.status = titled.status
        try:
            described = self.guess()
        except LogError:
            return None
        taken = {name: source.column or "" for name, source in self.sources.items() if name in TIMES}
        if described is None or any(taken.get(name, "") != source.column for name, source in titled.sources.items() if name in TIMES):
            return None
        titles = listed([repr(printable(title)) for title in taken.values()])
        rows = list(zip(*(self.sample.columns[title] for title in taken.values()), strict=True))[:_ROWS]
        values = "; ".join(", ".join(map(printable, row)) for row in rows)
        what = f"the times at which jobs {listed([_HAPPENED[name] for name in taken])}"
        question = f"are {titles} {what}, in this order, or other times? Their titles are ambiguous; the first rows are {values}"
        return replace(described, doubts=(question, *described.doubts))

    def guess(self) -> Guess | None:
        """Return the meaning of the table from its values; None if it has fewer than two columns of times."""
        if not self._times():
            return None
        self._spans()
        if self.status is None:
            states = (title for title in self._free() if share(self.known[title], _STATES) >= _MOSTLY)
            any(self.take_status(title, self.known[title]) for title in states)
        if "job_id" not in self.sources:
            self._job_ids()
        if not {"allocated_procs", "requested_procs"} & self.sources.keys():
            self._sizes()
        if "user" not in self.sources:
            self._users()
        described = self.described()
        if described is None or not self.sample.untitled:
            return described
        return replace(described, mapping=replace(described.mapping, titles=tuple(self.sample.columns)))

    def _free(self) -> list[str]:
        """Return the columns that have values and are not used yet."""
        taken = {source.column for source in self.sources.values()} | ({self.status.column} if self.status else set())
        return [title for title, texts in self.known.items() if texts and title not in taken]

    def _times(self) -> bool:
        """Use the columns of times, by their order; return False if there are fewer than two."""
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
            self.doubt(order[1], f"when jobs started or ended ({order[0]!r} is used as their submission)", self.sample.columns[order[1]])
            names = ("submit", "start")
        if names is None:
            self.doubt(order[1], f"when jobs started or something else ({len(order)} columns are times)", self.sample.columns[order[1]])
            order, names = [order[0], order[-2], order[-1]], _ORDERS[3]
        for name, title in zip(names, order, strict=True):
            source = by_title[title][0]
            self.take(name, source, f"times such as {self.known[title][0]}, by their order")
        return True

    def _spans(self) -> None:
        """Use columns that agree with the times as runtime and wait; a request is used if exactly one column looks like it."""
        spent = self.between("start", "end")
        waited = self.between("submit", "start")
        for name, others, what in (("runtime", spent, "from start to end"), ("wait", waited, "from submission to start")):
            if name in self.sources or others is None or not np.isfinite(others).any() or np.nanmax(others) <= 0:
                continue
            for title in self._free():
                fits = agreeing(self._values(title), others, "exact")
                unit = max(fits, key=lambda one: fits[one], default="s")
                if fits and fits[unit] >= _MOSTLY:
                    self.take(name, Source(title, unit=unit, text=False), what)
                    break
        spent = self.seconds("runtime") if spent is None else spent
        if spent is not None and "requested" not in self.sources:
            limits = [title for title in self._free() if agreeing(self._values(title), spent, "limit").get("s", 0) >= 0.9]
            likely = [title for title in limits if share(self.known[title], _CLOCK_LIKE) >= _MOSTLY]
            how = "limits of the runtimes" if likely else "limits of the runtimes, in seconds"
            likely = likely or [title for title in limits if self._is_round(title)]
            if len(likely) == 1:
                self.take("requested", Source(likely[0], text=False), how)

    def _is_round(self, title: str) -> bool:
        """Return whether values look like seconds that people choose: whole minutes, and few distinct ones."""
        texts = self.known[title]
        if share(texts, NUMBER) < _MOSTLY:
            return False
        values = np.array([float(text) for text in texts if NUMBER.fullmatch(text)])
        whole = (values % 60 == 0) & (values >= 60) & (values <= _LONGEST)
        return bool(whole.mean() >= 0.9) and len(np.unique(values)) <= max(20, len(values) // 10)

    def _values(self, title: str) -> Array:
        return self.seconds_of(Source(title, text=False))

    def _job_ids(self) -> None:
        for title in self._free():
            texts = self.known[title]
            if share(texts, re.compile(JOB_NUMBER)) >= _MOSTLY and len(set(texts)) >= _MOSTLY * len(texts):
                self.take("job_id", Source(title, text=False), "numbers that do not repeat")
                return

    def _sizes(self) -> None:
        """Use a column as processors, and one as nodes if the former is a multiple; other columns of counts make them doubtful."""
        counts = [title for title in self._free() if share(self.known[title], _COUNT) >= _MOSTLY]
        counts = [title for title in counts if len(set(self.known[title])) < max(len(self.known[title]), 2)]
        counts = [title for title in counts if len(set(self.known[title])) > 1] or counts
        values = {title: self._values(title) for title in counts}
        taken = counts[:1]
        for nodes, procs in permutations(counts, 2):
            small, large = values[nodes], values[procs]
            there = np.isfinite(small) & np.isfinite(large) & (small > 0)
            multiple = there.any() and ((large % np.maximum(small, 1) == 0) & (large >= small))[there].mean() >= _MOSTLY
            if multiple and (large > small)[there].any() and len(np.unique(small[there])) > 1:
                taken = [procs, nodes]
                ratio = np.unique((large / np.maximum(small, 1))[there], return_counts=True)[1].max() / there.sum()
                spent = self.seconds("runtime") if "runtime" in self.sources else self.between("start", "end")
                is_unclear = ratio < 0.5 and "requested" not in self.sources  # nodes have different sizes, or the column contains limits
                if is_unclear and spent is not None and agreeing(large, spent, "limit").get("min", 0) >= 0.9:
                    self.doubt(procs, "the processors, or limits in minutes", self.sample.columns[procs])
                break
        how = f"whole numbers, multiples of {taken[1]!r}" if len(taken) > 1 else "whole numbers"
        for name, title in zip(("allocated_procs", "nodes"), taken, strict=False):
            self.take(name, Source(title, text=False), how if name == "allocated_procs" else "whole numbers")
        others = [title for title in counts if title not in taken]
        if others:
            self.doubt(taken[0], f"the processors, or is {others[0]!r} the processors", self.sample.columns[taken[0]])

    def _users(self) -> None:
        """Use the column of names with the most distinct values, some of them repeated, as the users."""
        names = [title for title in self._free() if any(share(self.known[title], pattern) >= _MOSTLY for pattern in (_WORD, _HASH))]
        words = {title: len(set(self.known[title])) for title in names}
        likely = [title for title, count in words.items() if 1 < count <= len(self.known[title]) // 2]
        if likely:
            title = max(likely, key=lambda one: words[one])
            self.take("user", Source(title, text=True), f"names, {words[title]:,} different ones in the first rows")
