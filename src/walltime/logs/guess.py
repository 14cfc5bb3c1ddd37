"""What the columns of an unknown table mean, from their titles and from what is in them."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs.input import LogFile
from walltime.logs.mapped import BLANK, frame_of, is_json_table
from walltime.logs.mapping import SPANS, TEXTS, TIMES, UNITS, Source, Status, TableMapping
from walltime.logs.slurm.fields import durations
from walltime.logs.table_file import PARQUET
from walltime.wording import printable

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

__all__ = ["Guess", "guessed"]

SYNONYMS: Mapping[str, str] = {
    "job_id": "jobid jid id idjob jobnumber jobidraw jobno job",
    "submit": "submit submittime submittimestamp submissiontime submitted submittedtime timesubmit timesubmission queued queuedtimestamp"
    " queuetimestamp arrival arrivaltime adt created creationtime jobsubmittime qtime",
    "eligible": "eligible eligibletime timeeligible",
    "start": "start starttime starttimestamp timestart started begin begintime sdt startdate dispatchtime",
    "end": "end ended endtime endtimestamp timeend finished finish finishtime completed completiontime edt enddate",
    "wait": "wait waittime waiting waitingtime queuetime queuedtime queuewait",
    "runtime": "runtime runtimeseconds duration elapsed elapsedtime elapsedraw run walltimeused usedwalltime",
    "requested": "requested requestedtime reqtime requestedwalltime walltimereq reqwalltime wallclockreq wallclocklimit wallclockrequested"
    " walltimerequested timelimit timelimitraw walltime walltimelimit elpl limit",
    "allocated_procs": "allocatedprocs ncpus alloccpus allocatedcpus cpusalloc numcoresalloc coresalloc usedcores coresused procs"
    " processors cores numcores corecount cpus numcpus cpunum nproc nprocs",
    "requested_procs": "requestedprocs processorsreq procsreq reqcpus requestedcpus cpusreq reqprocs numcoresreq coresreq requestedcores",
    "nodes": "nodes nnodes numnodes nodenum nodecount numnodesalloc allocnodes allocatednodes nodesused",
    "requested_nodes": "requestednodes nodesreq reqnodes numnodesreq nodesrequested",
    "gpus": "gpus ngpus gpunum numgpus gpucount gpusreq reqgpus numgpusalloc numgpusreq gpusrequested",
    "user": "user userid username uid owner usr iduser usernamegenid userhash",
    "group": "account group project projectname groupid accounthash vc idgroup projectnamegenid",
    "queue": "queue queuename qos",
    "partition": "partition partitionname",
    "executable": "jobname name executable application",
    "memory": "memory mem memreq memoryreq reqmem memrequested",
    "status": "state status jobstate exitstate finalstate",
}
"""What columns of a log are called in tables, without capital letters and signs, the likeliest first."""
COUNTS = ("allocated_procs", "requested_procs", "nodes", "requested_nodes", "gpus")
ENDINGS = {
    "milliseconds": "ms",
    "ms": "ms",
    "seconds": "s",
    "secs": "s",
    "sec": "s",
    "s": "s",
    "minutes": "min",
    "mins": "min",
    "min": "min",
}
ENDINGS |= {"hours": "h", "hrs": "h", "hour": "h", "h": "h"}
FORMATS: tuple[str, ...] = (
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
)
FORMATS += ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%a %b %d %H:%M:%S %Y", "%Y%m%d%H%M%S")
KINDS = {
    "completed": r"complet|done|success|succeed|finish|ok$|exited|^pass",
    "cancelled": r"cancel|abort|deleted|revoked|killed",
    "pending": r"^(pend|queued|wait|held)",
    "running": r"^(running|r$)",
}
SAMPLE = 2000
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d{1,9})?\s?(Z|UTC|[+-]\d\d:?\d\d)?")
_NUMBER = re.compile(r"\+?\d{1,17}(\.\d*)?([eE]\+?\d{1,2})?")
_SPAN = re.compile(r"(\d{1,9}-)?\d{1,9}(:\d{1,2}){1,2}(\.\d+)?")
_MOSTLY = 0.95
_SHOWN = 5
_USUAL_EPOCH = (10**8, 10**11)


@dataclass(frozen=True)
class Guess:
    """What a table means: the mapping, how it was read (a line for each column), and what is doubtful (a question for each)."""

    mapping: TableMapping
    reading: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """The first rows of a table as texts, by title; and how the file separates them."""

    columns: Mapping[str, list[str]]
    delimiter: str = ","
    comment: str | None = None


def guessed(file: LogFile) -> Guess | None:
    """What the columns of this table mean; None if the file is no table. Raises LogError where a table lacks what is needed."""
    sample = _sample(file)
    return None if sample is None else _Guessing(file.where, sample).guess()


def _sample(file: LogFile) -> Sample | None:
    if file.head.startswith(PARQUET) or is_json_table(file.head):
        frame = frame_of(file, SAMPLE)
        plain = {one.name: one for one in frame if not one.dtype.is_nested() and one.dtype != pl.Binary}
        texts = {name: _texts_of(one) for name, one in plain.items()}
        return Sample(texts) if texts and len(frame) else None
    whole = file.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").splitlines()[: SAMPLE + 50]
    comment = next((sign for sign in ("#", ";") if whole and whole[0].lstrip().startswith(sign)), None)
    lines = [line for line in whole if line.strip() and not (comment and line.lstrip().startswith(comment))]
    for delimiter in (",", ";", "\t", "|", " "):
        rows = _rows(lines[:SAMPLE], delimiter)
        if len(rows) < 2 or len(rows[0]) < 3 or sum(len(row) == len(rows[0]) for row in rows) < _MOSTLY * len(rows):
            continue
        titles = [title.strip() for title in rows[0]]
        if len(set(titles)) == len(titles) and not any(_NUMBER.fullmatch(title) or _STAMP.fullmatch(title) for title in titles):
            good = [row for row in rows[1:] if len(row) == len(titles)]
            columns = {title: [row[k].strip() for row in good] for k, title in enumerate(titles)}
            return Sample(columns, delimiter, comment)
    return None


def _texts_of(series: pl.Series) -> list[str]:
    if isinstance(series.dtype, pl.Datetime):
        series = series.dt.strftime("%Y-%m-%d %H:%M:%S" + ("Z" if series.dtype.time_zone else ""))
    return series.cast(pl.String).fill_null("").to_list()


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [line.split() for line in lines]
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9]", "", title.lower())


class _Guessing:
    """One table that is being recognised."""

    def __init__(self, where: str, sample: Sample) -> None:
        self.where, self.sample = where, sample
        self.known = {title: [text for text in texts if text not in BLANK and text != "-1"] for title, texts in sample.columns.items()}
        self.sources: dict[str, Source] = {}
        self.reading: list[str] = []
        self.doubts: list[str] = []
        self.relative = False
        self.status: Status | None = None

    def guess(self) -> Guess | None:
        for name, words in SYNONYMS.items():
            for unit, title in self._candidates(words.split()):
                if self._fits(name, unit, title, self.known[title]):
                    break
        self._number_rows()
        self._check_units()
        columns = dict(self.sources)
        if not {"allocated_procs", "requested_procs"} & columns.keys():
            for nodes in ("nodes", "requested_nodes"):
                if nodes in columns:
                    columns["allocated_procs" if nodes == "nodes" else "requested_procs"] = columns[nodes]
                    self.reading.append(f"processors are nodes ({columns[nodes].column}): the table has no column of processors")
                    break
        if len({"submit", "start", "runtime", "end", "wait"} & columns.keys()) < 2:
            return None
        try:
            mapping = TableMapping(
                columns, self.status, relative_times=self.relative, delimiter=self.sample.delimiter, comment=self.sample.comment
            )
        except LogError as error:
            titles = ", ".join(map(printable, list(self.sample.columns)[:40]))
            raise LogError(
                f"{self.where}: the columns were not recognised ({error}); say what they mean with mapping=FILE; they are {titles}"
            ) from None
        return Guess(mapping, tuple(self.reading), tuple(self.doubts))

    def _number_rows(self) -> None:
        """Take the first column without a title, as tools write that number the rows, for the job's number where nothing else is it."""
        texts = self.known.get("", [])
        if "job_id" not in self.sources and len(texts) > 1 and len(set(texts)) == len(texts) and next(iter(self.known)) == "":
            self._fits("job_id", "", "", texts)

    def _candidates(self, words: Sequence[str]) -> list[tuple[str, str]]:
        """Titles that are one of these words, perhaps with a unit behind it; those of earlier words first."""
        candidates = []
        for rank, word in enumerate(words):
            for title in self.sample.columns:
                plain = _plain(title)
                unit = next((ENDINGS[end] for end in ENDINGS if plain == word + end), "")
                if plain == word or unit:
                    candidates.append((rank, unit, title))
        return [(unit, title) for _, unit, title in sorted(candidates, key=lambda one: one[0])]

    def _fits(self, name: str, unit: str, title: str, texts: list[str]) -> bool:
        """Whether what is in a column is what its title says; if so, it is taken."""
        if not texts or any(source.column == title for source in self.sources.values()):
            return False
        if name in TIMES:
            source = self._time(title, texts)
        elif name in SPANS:
            source = self._span(title, texts, unit)
        elif name in COUNTS:
            source = Source(title, text=False) if _share(texts, re.compile(r"\d{1,12}(\.0*)?")) >= _MOSTLY else None
        elif name == "job_id":
            source = self._job_id(title, texts)
        elif name == "memory":
            source = Source(title, text=False) if _share(texts, _NUMBER) >= _MOSTLY else Source(title, text=True)
        elif name == "status":
            return self._take_status(title, texts)
        else:  # a column of numbers with the title "queue" is the time in the queue
            source = Source(title, text=name in TEXTS) if name not in ("queue",) or _share(texts, _NUMBER) < _MOSTLY else None
        if source is None:
            return False
        self.sources[name] = source
        how = "; ".join(filter(None, [source.format and f"times such as {source.format}", _unit_said(name, source)]))
        called = repr(printable(title)) if title else "the first column, which has no title"
        self.reading.append(f"{name} is {called}{f' ({how})' if how else ''}")
        return True

    def _job_id(self, title: str, texts: list[str]) -> Source | None:
        if _share(texts, re.compile(r"\d{1,15}")) >= _MOSTLY:
            return Source(title, text=False)
        return Source(title, pattern=r"(\d{1,15})", text=False) if _share(texts, re.compile(r"\d{1,15}\D.*")) >= _MOSTLY else None

    def _time(self, title: str, texts: list[str]) -> Source | None:
        if _share(texts, _STAMP) >= _MOSTLY:
            return Source(title, text=False)
        if _share(texts, _NUMBER) >= _MOSTLY:
            middle = median(float(text) for text in texts if _NUMBER.fullmatch(text))
            self.relative |= middle < _USUAL_EPOCH[0]
            return Source(title, unit="ms" if middle >= _USUAL_EPOCH[1] else "s", text=False)
        series = pl.Series(texts)
        fitting = [form for form in FORMATS if series.str.to_datetime(form, strict=False).count() >= _MOSTLY * len(texts)]
        if not fitting:
            return None
        if len(fitting) > 1:
            first, second = fitting[:2]
            self._doubt(title, f"day or month first ({first} or {second})", texts)
        return Source(title, format=fitting[0], text=False)

    def _span(self, title: str, texts: list[str], unit: str) -> Source | None:
        if _share(texts, _NUMBER) >= _MOSTLY:
            return Source(title, unit=unit or "s", text=False)
        return Source(title, text=False) if _share(texts, re.compile(f"{_SPAN.pattern}|{_NUMBER.pattern}")) >= _MOSTLY else None

    def _take_status(self, title: str, texts: list[str]) -> bool:
        words: dict[str, list[str]] = {}
        for text in dict.fromkeys(texts):
            kind = next((kind for kind, pattern in KINDS.items() if re.search(pattern, text.lower())), "failed")
            words.setdefault(kind, []).append(text)
        if len(words.get("failed", [])) > 50 or not words.keys() - {"failed"}:
            return False
        kinds = {kind: tuple(texts) for kind, texts in words.items() if kind != "failed"}
        self.status = Status(title, other="failed", **kinds)
        said = ", ".join(f"{kind}: {'/'.join(map(printable, texts[:3]))}" for kind, texts in kinds.items())
        self.reading.append(f"status is {printable(title)!r} ({said}; all others failed)")
        return True

    def _check_units(self) -> None:
        """Compare lengths of time that say no unit with others: a runtime with start and end, a request with the runtime."""
        runtime = self._seconds("runtime")
        start, end = self._clock("start"), self._clock("end")
        if start is not None and end is not None:
            spent = np.where((start > 0) & (end >= start), end - start, np.nan)
            if runtime is not None and self._unsaid("runtime"):
                self._settle("runtime", runtime, spent, "exact")
            runtime = spent if np.isfinite(spent).any() else runtime
        requested = self._seconds("requested")
        if runtime is not None and requested is not None and self._unsaid("requested"):
            self._settle("requested", requested, runtime, "limit")

    def _settle(self, name: str, values: np.ndarray, others: np.ndarray, how: Literal["exact", "limit"]) -> None:
        """Which unit makes a column fit to the other one; a doubt where none clearly does."""
        there = np.isfinite(values) & np.isfinite(others) & (values > 0) & (others > 0)
        if not there.any():
            return
        fits = {}
        for unit in ("s", "min", "h"):
            scaled = values[there] * UNITS[unit]
            if how == "exact":
                fits[unit] = float((np.abs(scaled - others[there]) <= max(UNITS[unit], 0.01 * float(np.median(others[there])))).mean())
            else:
                fits[unit] = float((others[there] <= 1.05 * scaled + 60).mean())
        title = self.sources[name].column or ""
        if how == "exact":
            best = max(fits, key=lambda unit: fits[unit])
            if fits[best] >= 0.9:
                self._unit(name, best)
            else:
                self._doubt(title, f"{name} in seconds, or another time than from start to end", self.sample.columns[title])
            return
        if fits["s"] >= 0.9:
            return  # in seconds few jobs run longer than their limit; in minutes the limits would be 60 times that
        if fits["min"] >= 0.9 and fits["s"] < 0.6:
            self._unit(name, "min")
        elif fits["h"] >= 0.9 and fits["min"] < 0.6:
            self._unit(name, "h")
        else:
            over = [
                f"{100 * (1 - fits[unit]):.0f} % of the jobs ran longer than in {word}"
                for unit, word in (("s", "seconds"), ("min", "minutes"))
            ]
            self._doubt(title, f"seconds or minutes ({', '.join(over)})", self.sample.columns[title])

    def _unit(self, name: str, unit: str) -> None:
        if unit == self.sources[name].unit:
            return
        source = self.sources[name]
        self.sources[name] = Source(source.column, unit=unit, text=False)
        self.reading = [line for line in self.reading if not line.startswith(f"{name} is ")]
        self.reading.append(f"{name} is {printable(source.column or '')!r} ({_unit_said(name, self.sources[name])}, by comparison)")

    def _unsaid(self, name: str) -> bool:
        source = self.sources[name]
        return source.unit == "s" and _share(self.known[source.column or ""], _NUMBER) >= _MOSTLY

    def _seconds(self, name: str) -> np.ndarray | None:
        if name not in self.sources:
            return None
        texts = self.sample.columns[self.sources[name].column or ""]
        values, _ = durations(pl.Series(texts, dtype=pl.String))
        numbers = np.array([float(text) if _NUMBER.fullmatch(text) else np.nan for text in texts])
        return np.where(np.isnan(numbers), np.where(values >= 0, values, np.nan), numbers * UNITS[self.sources[name].unit])

    def _clock(self, name: str) -> np.ndarray | None:
        if name not in self.sources or self.sources[name].format is not None:
            return None
        texts = self.sample.columns[self.sources[name].column or ""]
        numbers = [float(text) * UNITS[self.sources[name].unit] if _NUMBER.fullmatch(text) else np.nan for text in texts]
        stamps = pl.Series(texts, dtype=pl.String).str.extract(r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)").str.replace("T", " ")
        times = stamps.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False).dt.epoch("s").cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return np.where(np.isnan(numbers), times, numbers)

    def _doubt(self, title: str, readings: str, texts: Sequence[str]) -> None:
        rows = ", ".join(printable(text) for text in [text for text in texts if text not in BLANK][:_SHOWN])
        self.doubts.append(f"is {printable(title)!r} {readings}? It begins {rows}")


def _unit_said(name: str, source: Source) -> str:
    words = {"ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours", "d": "days"}
    return f"numbers are {words[source.unit]}" if name in SPANS or source.unit != "s" else ""


def _share(texts: Sequence[str], pattern: re.Pattern[str]) -> float:
    return sum(pattern.fullmatch(text) is not None for text in texts) / len(texts)
