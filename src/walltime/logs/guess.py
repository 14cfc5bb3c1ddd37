"""Guess the meaning of a table's columns from their titles and values."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs import titles
from walltime.logs.cells import (
    BLANK,
    CLOCKS,
    FORMATS,
    JOB_NUMBER,
    NO_LIMITS,
    NUMBER,
    ONE_COLON,
    STAMP,
    ZONE_IN_TEXT,
    spans,
    times_as,
    without_limit,
)
from walltime.logs.mapping import SPANS, TEXTS, TIMES, UNITS, WORDS, Source, Status, TableMapping, plain_title
from walltime.logs.sample import Relation, Sample, agreeing, middle_of, share
from walltime.wording import printable

WITHIN_REQUESTS = ("soft_walltime", "time_min", "predicted")
"""Durations that are at most as long as the request, and usually in its unit."""
COUNTS = ("allocated_procs", "requested_procs", "nodes", "requested_nodes", "gpus")
_MOSTLY = 0.95
_HALF = 0.51
"""Smallest share of readable values with which a column is used if its title is clear; the other values are bad, or unknown."""
_CLEARLY = 0.9
_SHOWN = 5
_UNUSED = 12
_RESOURCES = re.compile(r"[a-z][\w/:.-]*=[^,=]*(?:,[a-z][\w/:.-]*=[^,=]*)*")
_FIRST_YEAR = 1970
_FIRST = 50
"""Number of texts with which most formats of times can be ruled out."""
_CALENDAR = re.compile(r"(?:19[7-9][0-9]|20[0-9][0-9])(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]")
"""A time such as 20261120213345; in milliseconds, such a number would be a time after the year 2500."""
EARLIEST = 10**8
_LONGEST = 10**9
_EPOCHS = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": float("inf")}
"""Upper bounds on Unix times of these decades, by unit."""


@dataclass(frozen=True)
class Guess:
    """The meaning of a table: a mapping, a sentence on each column (`reading`), and a question on each doubtful one (`doubts`)."""

    mapping: TableMapping
    reading: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def fitted(mapping: TableMapping, sample: Sample, where: str) -> Guess:
    """Adapt a shipped mapping to a table with other separators or formats of times than its source describes.

    Raises LogError if the table lacks an essential column.
    """
    looks = Guessing(where, sample)
    if not mapping.titles:
        mapping = mapping.restricted(sample.columns)
    columns = dict(mapping.columns)
    for name, source in mapping.columns.items():
        texts = looks.known.get(source.column or "", [])
        if name in TIMES and source.format is None and source.pattern is None and texts:
            form = looks.time(source.column or "", texts)
            if form is not None and (form.format, form.unit) != (None, source.unit):
                columns[name] = replace(source, format=form.format, unit=form.unit)
                looks.reading[f"form of {name}"] = f"{name} is written {form.format or f'in {WORDS[form.unit]}'}"
    looks.sources = columns
    looks.compare()
    status = looks.status_of(mapping.status) if mapping.status is not None else None
    if looks.relative and not mapping.relative_times:
        looks.reading["start"] = "times count from an unknown start"
    looks.name_unused(mapping.wanted)
    mapping = replace(mapping, columns=looks.sources, status=status, relative_times=mapping.relative_times or looks.relative)
    if not mapping.titles:
        mapping = replace(mapping, delimiter=sample.delimiter, comment=sample.comment)
    return Guess(mapping, tuple(looks.reading.values()), tuple(looks.doubts))


class Guessing:
    """The guesses about one table so far; `reading`: sentences on its columns, by the name of the column or another key."""

    def __init__(self, where: str, sample: Sample) -> None:
        self.where, self.sample = where, sample
        self.known = {title: [text for text in texts if text not in BLANK and text != "-1"] for title, texts in sample.columns.items()}
        self.sources: dict[str, Source] = {}
        self.reading: dict[str, str] = {}
        self.doubts: list[str] = []
        self.relative = False
        self.status: Status | None = None

    def guess(self) -> Guess | None:
        """Return the meaning of the table; None if nothing is recognised. Raises LogError if an essential column is missing."""
        for name, words in titles.SYNONYMS.items():
            likely = titles.candidates(words.split(), self.known) + titles.times_by_words(name, self.known)
            for unit, title in sorted(likely, key=lambda one: self._is_constant(name, one[1])):
                if self._fits(name, unit, title, self.known[title]):
                    break
        self._leave_constant_sizes()
        self._second_meanings()
        self._number_rows()
        self._check_units()
        self._take_resources()
        told = " ".join(self.reading.values())
        self.name_unused({title for title in self.known if repr(printable(title)) in told})
        return self.described()

    def name_unused(self, used: Container[str]) -> None:
        """Add a sentence on unused columns whose titles name a request, a limit, memory, a state or a size."""
        unused = [printable(title) for title, texts in self.known.items() if texts and title not in used and titles.is_telling(title)]
        more = f", and {len(unused) - _UNUSED} more" if len(unused) > _UNUSED else ""
        self.reading |= {"unused": f"not used: {', '.join(unused[:_UNUSED])}{more}"} if unused else {}

    def _is_constant(self, name: str, title: str) -> bool:
        """Return whether all rows have the same value, so that another column more likely holds the times or sizes of jobs."""
        return name in (*TIMES, *COUNTS, "job_id") and len(set(self.sample.columns[title])) == 1

    def _leave_constant_sizes(self) -> None:
        """Discard a column of processors that is constant while nodes differ: it may count the processors of a node."""
        constant = {name for name, source in self.sources.items() if self._is_constant(name, source.column or "")}
        if not {"nodes", "requested_nodes"} & self.sources.keys() - constant:
            return
        for name in sorted(constant & {"allocated_procs", "requested_procs"}):
            title = self.sources.pop(name).column or ""
            del self.reading[name]
            self.reading[f"unused {name}"] = f"not used: {printable(title)!r}, which is {self.known[title][0]} in all rows"

    def _take_resources(self) -> None:
        """Take GPUs and memory from a list of resources such as `cpu=8,gres/gpu=2,mem=4000M`, if they have no columns."""
        lists = [title for title, texts in self.known.items() if texts and share(texts, _RESOURCES) >= _MOSTLY]
        for name, pattern, least in (
            ("gpus", r"gres/gpu(?::[^,=]*)?[=:](\d+)", 0.0),
            ("mem_mb", r"(?:^|,)mem=(\d+(?:\.\d+)?)M(?:,|$)", _MOSTLY),
        ):
            for title in lists if name not in self.sources else ():
                if sum(re.search(pattern, text) is not None for text in self.known[title]) > least * len(self.known[title]):
                    self.take(name, Source(title, pattern=pattern, text=False), f"{'gres/gpu' if name == 'gpus' else 'mem'} in it")
                    break

    def described(self) -> Guess | None:
        """Return the recognised columns as a guess; None if the table is not a log. Raises LogError if a column is missing."""
        columns = dict(self.sources)
        if not {"allocated_procs", "requested_procs"} & columns.keys():
            stand_ins = (("nodes", "allocated_procs"), ("requested_nodes", "requested_procs"), ("gpus", "allocated_procs"))
            found = next(((name, procs) for name, procs in stand_ins if name in columns), None)
            if found is not None:
                source = columns[found[1]] = columns[found[0]]
                unit, lacks = ("GPUs", "processors or nodes") if found[0] == "gpus" else ("nodes", "processors")
                self.reading["procs"] = f"processors are {unit} ({source.column}): the table has no column of {lacks}"
        if len({"submit", "start", "runtime", "end", "wait"} & columns.keys()) < 2:
            return None
        time_titles = [source.column or "" for name, source in columns.items() if name in TIMES]
        zone = "UTC" if time_titles and all(map(titles.is_of_utc, time_titles)) else None
        try:
            mapping = TableMapping(
                columns, self.status, zone, relative_times=self.relative, delimiter=self.sample.delimiter, comment=self.sample.comment
            )
        except LogError as error:
            known = ", ".join(map(printable, list(self.sample.columns)[:40]))
            raise LogError(
                f"{self.where}: the columns were not recognised: {str(error).removeprefix('columns: ')}; describe them with mapping=FILE; "
                f"the columns are {known}",
                "unknown_columns",
            ) from None
        return Guess(mapping, tuple(self.reading.values()), tuple(self.doubts))

    def _second_meanings(self) -> None:
        """Use a walltime as the runtime, or a duration as the request, if the usual columns are missing."""
        if "runtime" not in self.sources and "requested" in self.sources:
            for unit, title in titles.candidates(("walltime",), self.known):
                if self._fits("runtime", unit, title, self.known[title]):
                    return
        runtime = self.seconds("runtime")
        if runtime is not None and "requested" not in self.sources:
            for unit, title in titles.candidates(("duration",), self.known):
                limits = agreeing(self.seconds_of(Source(title, unit=unit or "s")), runtime, "limit")
                if limits.get("s", 0) >= _CLEARLY and self._fits("requested", unit, title, self.known[title]):
                    return

    def _number_rows(self) -> None:
        """Use a first column without a title, in which some tools number the rows, as job number if there is no other."""
        texts = self.known.get("", [])
        if "job_id" not in self.sources and len(texts) > 1 and len(set(texts)) == len(texts) and next(iter(self.known)) == "":
            self._fits("job_id", "", "", texts)

    def _fits(self, name: str, unit: str, title: str, texts: list[str]) -> bool:
        """Use a column if its values agree with its title, and return whether they do."""
        if (
            not texts
            or any(source.column == title for source in self.sources.values())
            or (unit in titles.MEGABYTES) != (name == "memory" and unit != "")
        ):
            return False
        if (
            len(texts) > 1
            and self._is_constant(name, title)
            and (name == "job_id" or (name in COUNTS and re.fullmatch(r"0+(\.0*)?", texts[0])))
        ):
            return False  # the number identifies a cluster, or the size is unknown
        if name in TIMES:
            waits = plain_title(title) in titles.MAY_BE_WAITS and share(texts, NUMBER) >= _MOSTLY and middle_of(texts) < EARLIEST
            source = None if waits else self.time(title, texts, _HALF)
        elif name in SPANS:
            source = self._span(title, texts, unit)
        elif name in (*COUNTS, "job_id"):
            pattern = JOB_NUMBER if name == "job_id" else r"[0-9]{1,12}(\.0*)?"
            source = Source(title, text=False) if share(texts, re.compile(pattern)) >= _HALF else None
        elif name == "memory" and unit:
            name, source = "mem_mb", Source(title, factor=titles.MEGABYTES[unit], text=False) if share(texts, NUMBER) >= _HALF else None
        elif name == "memory":
            requested = "req" in plain_title(title)  # its unit is unknown, and it is not the memory used
            source = None if requested else Source(title, text=share(texts, NUMBER) < _MOSTLY)
        elif name == "status":
            return self.take_status(title, texts)
        else:  # numbers under the title "queue" are times in the queue
            source = Source(title, text=name in TEXTS) if name != "queue" or share(texts, NUMBER) < _MOSTLY else None
        if source is None:
            return False
        self.take(name, source, "; ".join(filter(None, [source.format and f"times such as {source.format}", _unit_note(name, source)])))
        return True

    def take(self, name: str, source: Source, how: str) -> None:
        """Set the source of a column, and replace an earlier one; `how`: a remark for the sentence on it."""
        self.sources[name] = source
        title = repr(printable(source.column)) if source.column else "the first column, which has no title"
        self.reading.pop(name, None)
        self.reading[name] = f"{name} is {title}{f' ({how})' if how else ''}"

    def time(self, title: str, texts: list[str], least: float = _MOSTLY) -> Source | None:
        """Return a source for a column of times, with their format or unit; None if fewer than `least` of the values are times."""
        texts = [text for text in texts if text != "0"] or texts  # 0 means that the event did not happen
        if share(texts, STAMP) >= least:
            return Source(title, text=False)
        if share(texts, NUMBER) >= least and share(texts, _CALENDAR) < least:
            middle = middle_of(texts)
            self.relative |= middle < EARLIEST
            return Source(title, unit=next(unit for unit, most in _EPOCHS.items() if middle < most), text=False)
        series = pl.Series(texts)
        with_zone = re.search(ZONE_IN_TEXT, texts[0]) is not None
        forms = [form if "%Z" in form else f"{form} %Z" for form in FORMATS] if with_zone else FORMATS
        likely = [form for form in forms if _times_as(series.head(_FIRST), form)]
        fitting = [form for form in likely if _times_as(series, form) >= least * len(texts)]
        if not fitting:
            return None
        if len(fitting) > 1:
            first, second = fitting[:2]
            self.doubt(title, f"day or month first ({first} or {second})", texts)
        return Source(title, format=fitting[0], text=False)

    def _span(self, title: str, texts: list[str], unit: str) -> Source | None:
        unit = "min" if plain_title(title) == "timelimitraw" else unit
        series = pl.Series(texts, dtype=pl.String)
        limited = series.filter(~pl.Series(without_limit(series)))
        if not len(limited):
            return None
        if share(limited.to_list(), NUMBER) >= _MOSTLY:  # Unix times are not durations
            return Source(title, unit=unit or "s", text=False) if middle_of(limited.to_list()) < _LONGEST else None
        odd = spans(limited)[1] & ~limited.str.contains(f"^{NUMBER.pattern}$").to_numpy()
        return Source(title, unit=unit or "s", text=False) if odd.mean() <= 0.5 else None

    def take_status(self, title: str, texts: list[str]) -> bool:
        """Use a column if it holds job states, and return whether it does."""
        if plain_title(title) in titles.EXITS and share(texts, re.compile(r"-?[0-9]+(\.0)?")) == 1:
            self.status = Status(title, completed=("0", "0.0"), other="failed")
            self.reading["status"] = f"status is {printable(title)!r} (completed: 0; all others failed)"
            return True
        words = titles.words_by_kind(texts, titles.KINDS)
        if "completed" not in words:
            words = titles.words_by_kind(texts, titles.KINDS | titles.OF_OAR)
        others = {plain_title(other) for other in self.known if self.known[other]} & set(titles.EXITS)
        if others and "completed" not in words and not all(re.search(titles.FAILURES, text.lower()) for text in words.get("failed", ())):
            return False  # such as PBS's F, which means finished
        if len(words.get("failed", [])) > 50 or not words.keys() - {"failed"}:
            return False
        kinds = {kind: tuple(texts) for kind, texts in words.items() if kind != "failed"}
        codes = [
            one for one, found in self.known.items() if plain_title(one) in titles.EXITS and found and share(found, titles.EXIT_CODE) == 1
        ]
        code = codes[0] if codes and "completed" in words else None
        self.status = Status(title, other="failed", otherwise=None, exit_code=code, **kinds)
        words_of_kinds = ", ".join(f"{kind}: {'/'.join(map(printable, texts[:3]))}" for kind, texts in kinds.items())
        rest = f"all others, and those whose {printable(code)!r} is not 0," if code else "all others"
        self.reading["status"] = f"status is {printable(title)!r} ({words_of_kinds}; {rest} failed)"
        return True

    def status_of(self, status: Status) -> Status | None:
        """Return the states of a shipped mapping, or those of the table if it has other words; None if these are unknown."""
        texts = self.known.get(status.column, [])
        if not texts or any(status.kind_of(text) is not None for text in texts) or self.take_status(status.column, texts):
            return self.status or status
        if all(re.search(titles.FAILURES, text.lower()) for text in texts):
            return status
        words = ", ".join(printable(text) for text in list(dict.fromkeys(texts))[:_SHOWN])
        self.reading["status"] = f"the states in {printable(status.column)!r} are unknown ({words}), and ignored"
        return None

    def compare(self) -> None:
        """Correct the units of runtimes and requests in a given mapping if other columns of the table contradict them."""
        self.settle_clocks()
        runtime, spent = self.seconds("runtime"), self.between("start", "end")
        kinds: tuple[tuple[str, np.ndarray | None, Relation], ...]
        kinds = (("runtime", spent, "exact"), ("requested", runtime if spent is None else spent, "limit"))
        for name, others, how in kinds:
            source, values = self.sources.get(name), self.seconds(name)
            if source is None or values is None or others is None or source.factor != 1 or source.pattern is not None:
                continue
            shares = agreeing(values / UNITS[source.unit], others, how) if self._is_numeric(source) else {}
            best = max(shares, key=lambda unit: shares[unit], default="s")
            if how == "limit" and source.unit == "s":
                best = next((unit for unit in ("min", "h") if shares.get(unit, 0) >= _CLEARLY), "s")
            elif how == "limit":
                best = source.unit  # a longer unit cannot be ruled out
            if shares and shares.get(source.unit, 0) < 0.6 and shares[best] >= _CLEARLY:
                self.sources[name] = replace(source, unit=best)
                self.reading[f"unit of {name}"] = f"{name} is written in {WORDS[best]}, by comparison"

    def _check_units(self) -> None:
        """Find the units of durations without one: compare a runtime with start and end, and a request with the runtime."""
        self.settle_clocks()
        runtime, spent = self.seconds("runtime"), self.between("start", "end")
        if spent is not None:
            if runtime is not None and self._lacks_unit("runtime"):
                self._settle("runtime", runtime, spent, "exact")
            runtime = spent if np.isfinite(spent).any() else runtime
        requested = self.seconds("requested")
        if (
            runtime is not None
            and requested is not None
            and titles.without_system(plain_title(self.sources["requested"].column or "")) in titles.MAY_BE_RUNTIMES
        ):
            there = np.isfinite(runtime) & np.isfinite(requested) & (runtime > 0)
            if there.any() and (np.abs(runtime - requested)[there] <= 1).mean() >= _MOSTLY:
                source, requested = self.sources.pop("requested"), None
                self.reading.pop("requested")
                self.reading["again"] = f"{printable(source.column or '')!r} repeats the runtime and is not a request"
        if runtime is not None and requested is not None and self._lacks_unit("requested"):
            self._settle("requested", requested, runtime, "limit")
        requested = self.seconds("requested")
        for name in WITHIN_REQUESTS:  # in the unit of the requests, if none of them is longer then
            if requested is None or name not in self.sources or not self._lacks_unit(name):
                continue
            unit = self.sources["requested"].unit
            values = self.seconds_of(replace(self.sources[name], unit=unit))
            there = np.isfinite(values) & np.isfinite(requested) & (values > 0) & (requested > 0)
            if unit != "s" and there.any() and (values <= requested)[there].mean() >= _MOSTLY:
                self._unit(name, unit)

    def settle_clocks(self) -> None:
        """Find the meaning of durations with one colon, such as 24:00, and the unit of numbers among them, from other columns."""
        spent = self.between("start", "end")
        for name in SPANS:
            source = self.sources.get(name)
            texts = [] if source is None else self.sample.columns[source.column or ""]
            clocks = np.array([ONE_COLON.fullmatch(text) is not None for text in texts], bool)
            if source is None or source.pattern is not None or not clocks.any():
                continue
            how: Relation = "exact" if name in ("runtime", "wait") else "limit"
            others = self.between("submit", "start") if name == "wait" else spent
            others = self.seconds("runtime") if others is None and how == "limit" else others
            clock = source.clock or self._clock_of(name, source, clocks, others, how)
            self.sources[name] = source = replace(source, clock=clock)
            numbers = np.array([NUMBER.fullmatch(text) is not None for text in texts], bool)
            fits = {} if others is None else agreeing(np.where(numbers, self.seconds_of(source), np.nan), others, how)
            if numbers.any() and source.unit == "s" and (clock == CLOCKS[1] or fits.get("s", 1) < 0.6 <= fits["min"]):
                self.sources[name] = replace(source, unit="min")
            kinds = {CLOCKS[0]: "minutes and seconds", CLOCKS[1]: "hours and minutes"}
            unit = f"; numbers are {WORDS[self.sources[name].unit]}" if numbers.any() else ""
            self.take(name, self.sources[name], f"{texts[int(np.argmax(clocks))]} is {kinds[clock]}{unit}")

    def _clock_of(self, name: str, source: Source, clocks: np.ndarray, others: np.ndarray | None, how: Relation) -> str:
        """Return the meaning of durations with one colon, from other columns or else from the texts; add a doubt if unclear."""
        title = source.column or ""
        texts = np.array(self.sample.columns[title])
        request = self.sources.get("requested")
        within = None
        if others is None and name == "runtime" and request is not None:
            plain = not any(ONE_COLON.fullmatch(text) for text in self.known.get(request.column or "", ()))
            within = self.seconds("requested") if plain else None
        fits: dict[str, float | None] = {}
        for clock in CLOCKS:
            values = np.where(clocks, self.seconds_of(replace(source, clock=clock)), np.nan)
            if within is not None:
                fits[clock] = agreeing(within, values, "limit").get("s")
            elif others is not None:
                fits[clock] = agreeing(values, others, how).get("s")
        short, long = (fits.get(clock) for clock in CLOCKS)
        usual = plain_title(title) in titles.HOURS_AND_MINUTES
        share_of_jobs = ""
        if short is not None and long is not None:
            both = long >= _CLEARLY and (within is not None or (usual and how == "limit"))
            if short >= _CLEARLY and not both:
                return CLOCKS[0]
            if long >= _CLEARLY and short < 0.6:
                return CLOCKS[1]
            share_of_jobs = f", with which {100 * short:.0f} or {100 * long:.0f} % of the jobs agree"
        with_more = any(text.count(":") > 1 or "-" in text for text in texts[~clocks])
        below_minute = name == "requested" and any(text.split(":")[0].strip("0") == "" and text[-2:] != "00" for text in texts[clocks])
        if with_more != (usual or below_minute):  # there is evidence for one meaning only
            return CLOCKS[0] if with_more else CLOCKS[1]
        self.doubt(title, f"minutes and seconds, or hours and minutes (clock = mm:ss or hh:mm){share_of_jobs}", self.sample.columns[title])
        return CLOCKS[0]

    def _settle(self, name: str, values: np.ndarray, others: np.ndarray, how: Relation) -> None:
        """Choose the unit in which a column agrees with another one; add a doubt if no unit clearly does."""
        fits = agreeing(values, others, how)
        if not fits:
            return
        title = self.sources[name].column or ""
        if how == "exact":
            best = max(fits, key=lambda unit: fits[unit])
            if fits[best] >= _CLEARLY:
                self._unit(name, best)
            else:
                self.doubt(title, f"{name} in seconds, or another time than from start to end", self.sample.columns[title])
        elif (
            fits["ms"] >= _CLEARLY
            and any(self.sources[one].unit == "ms" for one in (*TIMES, "runtime") if one in self.sources)
            and (values[np.isfinite(values)] % 1000 == 0).all()
        ):
            self._unit(name, "ms")
        elif fits["s"] < _CLEARLY:  # otherwise seconds fit; longer units would fit as well
            if fits["min"] >= _CLEARLY and fits["s"] < 0.6:
                self._unit(name, "min")
            elif fits["h"] >= _CLEARLY and fits["min"] < 0.6:
                self._unit(name, "h")
            else:
                over = [f"{100 * (1 - fits[unit]):.0f} % of the jobs ran longer than in {WORDS[unit]}" for unit in ("s", "min")]
                self.doubt(title, f"seconds or minutes ({', '.join(over)})", self.sample.columns[title])

    def _unit(self, name: str, unit: str) -> None:
        if unit != self.sources[name].unit:
            source = Source(self.sources[name].column, unit=unit, text=False)
            self.take(name, source, f"{_unit_note(name, source)}, by comparison")

    def _is_numeric(self, source: Source) -> bool:
        return share(self.known[source.column or ""], NUMBER) >= _MOSTLY

    def _lacks_unit(self, name: str) -> bool:
        return self.sources[name].unit == "s" and self._is_numeric(self.sources[name])

    def between(self, first: str, last: str) -> np.ndarray | None:
        """Return the duration between two recognised times, s, NaN where unknown; None if one was not recognised."""
        if not {first, last} <= self.sources.keys():
            return None
        start, end = self.clock_of(self.sources[first]), self.clock_of(self.sources[last])
        return np.where((start > 0) & (end >= start), end - start, np.nan)

    def seconds(self, name: str) -> np.ndarray | None:
        """Return the durations in a recognised column, float64 s, NaN where unknown; None if it was not recognised."""
        return self.seconds_of(self.sources[name]) if name in self.sources else None

    def seconds_of(self, source: Source) -> np.ndarray:
        """Return the durations in a source's column, float64 s, NaN where unknown."""
        texts = self.sample.columns[source.column or ""]
        series = pl.Series(texts, dtype=pl.String)
        values, _ = spans(series, source.clock or CLOCKS[0])
        values[without_limit(series)] = -1
        numbers = np.array([float(text) if NUMBER.fullmatch(text) and text not in NO_LIMITS else np.nan for text in texts])
        return np.where(np.isnan(numbers), np.where(values >= 0, values, np.nan), numbers * UNITS[source.unit])

    def clock_of(self, source: Source) -> np.ndarray:
        """Return the times in a source's column, Unix times, float64 s, NaN where unknown."""
        texts = pl.Series(self.sample.columns[source.column or ""], dtype=pl.String)
        if source.format is not None:
            return _seconds_in(times_as(texts, source.format))
        numbers = np.array([float(text) * UNITS[source.unit] if NUMBER.fullmatch(text) else np.nan for text in texts])
        texts = texts.str.extract(r"^([0-9]{4}(?:-[0-9]{2}){2}[T ][0-9]{2}(?::[0-9]{2}){1,2})").str.replace("T", " ")
        return np.where(np.isnan(numbers), _seconds_in(times_as(texts, "%Y-%m-%d %H:%M:%S")), numbers)

    def doubt(self, title: str, meanings: str, texts: Sequence[str]) -> None:
        """Add the question which meaning of a column is right, with its first values."""
        rows = ", ".join(printable(text) for text in [text for text in texts if text not in BLANK][:_SHOWN])
        self.doubts.append(f"is {printable(title)!r} {meanings}? Its first values are {rows}")


def _times_as(texts: pl.Series, form: str) -> int:
    return int((times_as(texts, form).dt.year() >= _FIRST_YEAR).sum())


def _seconds_in(clock: pl.Series) -> np.ndarray:
    return clock.dt.epoch("s").cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _unit_note(name: str, source: Source) -> str:
    return f"numbers are {WORDS[source.unit]}" if name in SPANS or source.unit != "s" else ""
