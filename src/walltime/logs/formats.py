"""The supported formats of job logs, and functions that read logs in any of them."""

import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from walltime.errors import LogError
from walltime.logs.anonymous import anonymise as replace_names, read_key
from walltime.logs.batsim import BATSIM
from walltime.logs.catalogue import find_log, known_by_lines, known_by_titles, shipped
from walltime.logs.clock import parse_zone
from walltime.logs.guess import Guess, Guessing, fitted
from walltime.logs.htcondor import HTCONDOR, is_history
from walltime.logs.input import LogFile, Progress, unpacked_name
from walltime.logs.joblog import JobLog, Partial, TooWide
from walltime.logs.joined import joined_tables
from walltime.logs.lsf import LSF
from walltime.logs.mapped import read_table
from walltime.logs.mapping import MAPPING_FILE, TableMapping, plain_title
from walltime.logs.own import own_reader, read_own
from walltime.logs.pbs import PBS
from walltime.logs.qstat import QSTAT, is_pbs
from walltime.logs.reader import LogFormat, ReaderState, ReadOptions
from walltime.logs.rules import BATCH_RULES, RULES, Rule
from walltime.logs.sample import Sample, sample_of
from walltime.logs.sge import SGE, is_accounting
from walltime.logs.slurm.document import SLURM_JSON
from walltime.logs.slurm.rows import lacks_titles
from walltime.logs.slurm.simulator import SIMULATOR
from walltime.logs.slurm.tables import SLURM_TABLE, is_slurm
from walltime.logs.slurm.text import SLURM, untitled
from walltime.logs.swf import SWF
from walltime.logs.table_file import PARQUET, TABLE, is_own_parquet
from walltime.logs.untitled import GuessingByValues
from walltime.wording import printable
from walltime.workload import Workload

FORMATS: list[LogFormat] = [SWF, BATSIM, HTCONDOR, SLURM, SLURM_JSON, PBS, QSTAT, LSF, SGE, SIMULATOR, TABLE]
"""All formats, in the order in which files are tested for them."""
_SHOWN, _ROWS = 40, 5
_BJOBS = "a list of LSF's jobs without all times; give lsb.acct, or print a table with bjobs -a -json -o 'jobid stat user queue nalloc_slot"
_BJOBS += " submit_time start_time run_time runtimelimit', with LSB_DISPLAY_YEAR=Y"
_QSTAT = "a list of PBS's jobs without their times; give its accounting logs, or print them with qstat -x -f -F json"
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (rb"PK\x03\x04", "a zip archive, or a spreadsheet; unpack it, or save its table as CSV"),
    (rb".{257}ustar", "a tar archive; unpack it, and give the log in it"),
    (rb"7z\xbc\xaf", "a 7-Zip archive; unpack it, and give the log in it"),
    (rb"Rar!", "an RAR archive; unpack it, and give the log in it"),
    (rb"\xd0\xcf\x11\xe0", "a spreadsheet; save its table as CSV"),
    (rb"SQLite format 3", "an SQLite database; write its table of jobs as CSV"),
    (rb"ARROW1|FEA1", "an Apache Arrow file; write it as Parquet"),
    (rb"ORC", "an ORC file; write it as Parquet"),
    (rb"\x89HDF", "an HDF5 file; write its table of jobs as Parquet or CSV"),
    (rb"\s*ID\s+OWNER\s+SUBMITTED", "a list of HTCondor's jobs without processors; print them with condor_history -json"),
    (rb"\s*JOBID\s+USER\s+STAT\s|\s*Job <[0-9]", _BJOBS),
    (rb".{0,300}\bJob [Ii][Dd] +(?:Name|Username) +(?:User|Queue) ", _QSTAT),
    (
        rb"\s*JOBID\s+PARTITION\s+NAME\s",
        "a list of Slurm's jobs that have not ended; print ended jobs as walltime slurm sacct-command does",
    ),
    (rb"\s*job-ID\s+prior", "a list of Grid Engine's jobs that have not ended; give its accounting file, or print them with qacct -j"),
    (rb"(?i)\s*<(?:!doctype )?html", "a web page, perhaps from a failed download; fetch the log again"),
)
"""First bytes of files that are not logs, and the advice for the error."""


def read_log(
    path: str | os.PathLike[str],
    *,
    skip_bad_lines: bool = False,
    join_runs: bool = False,
    time_zone: str | None = None,
    mapping: str | os.PathLike[str] | None = None,
    anonymise: str | None = None,
    progress: Progress | None = None,
) -> JobLog:
    """Read a job log, unchanged, in any of the known formats, plain or packed with gzip, bzip2, xz or Zstandard.

    The options are explained in `read`. The format is recognised by the content, else by the file extension. The columns of a table without
    a mapping are recognised, unless an essential one is doubtful. Skipped lines are listed in `bad_lines`. `progress` is called with the
    amount read, the total (None if unknown), and the unit: bytes, columns or rows.

    Raises LogError for a file that cannot be read or has a bad line, and for an unknown format.
    """
    key = None if anonymise is None else read_key(anonymise)
    options = ReadOptions(skip_bad_lines, None if time_zone is None else parse_zone(time_zone), join_runs)
    if mapping is None:
        log = _read(ReaderState(_log_file(find_log(path), progress=progress), options))
    else:
        name = os.fspath(mapping)
        if (reader := own_reader(name)) is not None:
            log = read_own(ReaderState(_log_file(find_log(path), progress=progress), options), reader, name)
        else:
            chosen = shipped().get(name) or MAPPING_FILE.read(name)
            log = _read_mapped(ReaderState(_log_file(find_log(path), chosen, progress), options), chosen, name)
    return log if key is None else replace_names(log, key)


def read(
    path: str | os.PathLike[str],
    *,
    procs: int | None = None,
    skip_bad_lines: bool = False,
    join_runs: bool = False,
    time_zone: str | None = None,
    mapping: str | os.PathLike[str] | None = None,
    anonymise: str | None = None,
    partial: Partial = "summary",
    too_wide: TooWide = "drop",
    requested_first: bool = False,
) -> Workload:
    """Read the jobs of a log: `read_log`, then `JobLog.to_workload`, with their options.

    - `path`: a file, or the name of a log of the catalogue that is on this machine, such as `KTH-SP2`.
    - `procs`: size of the machine, if the header lacks it or is wrong.
    - `skip_bad_lines`: leave out lines that cannot be read, rather than raise LogError.
    - `join_runs`: make one job of the runs of a job that Slurm put back into the queue.
    - `time_zone`: time zone of the site, such as Europe/Stockholm, for logs that do not give it.
    - `mapping`: the meaning of a table's columns: a TOML file, or the name of a shipped mapping, such as `f-data`. Or a reader of your own
      for any file, `FILE.py:NAME` or the name of an installed one: a function of the path that returns a `Workload` or a `JobLog`.
    - `anonymise`: a key; users, accounts, job names and reservations become numbers that depend on it.
    - `partial`: whether an interrupted job is one job, by its `summary` line, or several, its `parts`.
    - `too_wide`: whether a job with more processors than the machine is left out (`drop`), gets all of them (`clip`), or is an `error`.
    - `requested_first`: whether requested processors take precedence over allocated ones.

    Raises LogError if the file is not a log, WorkloadError if its jobs cannot be simulated.
    """
    log = read_log(path, skip_bad_lines=skip_bad_lines, join_runs=join_runs, time_zone=time_zone, mapping=mapping, anonymise=anonymise)
    return log.to_workload(procs=procs, partial=partial, too_wide=too_wide, requested_first=requested_first)


def _log_file(path: Path, mapping: TableMapping | None = None, progress: Progress | None = None) -> LogFile:
    is_folder = os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises for names that are too long)
    return (joined_tables(path, mapping, progress) if is_folder else None) or LogFile(path, progress=progress)


def _read(state: ReaderState) -> JobLog:
    file = state.file
    of_cluster = _DESCRIBED.search(file.head)
    if of_cluster and _OF_SLURM.match(file.head) and not _LISTS_JOBS.search(file.head):
        raise LogError(
            f"{file.where}: describes a Slurm cluster ({of_cluster[1].decode()}), not jobs; print the log with sacct --json, or read this "
            "file with walltime slurm cluster",
            "cluster_description",
        )
    described = description_of(file) or format_of(file)
    if isinstance(described, LogFormat):
        return described.read(state)
    if described.doubts:
        raise LogError(
            f"{file.where}: {described.doubts[0]}; write the mapping to a file with walltime mapping,"
            " correct it, and give it with mapping=FILE",
            "ambiguous_columns",
        )
    return replace(read_table(state, described.mapping, "the recognised mapping"), reading=described.reading)


def description_of(file: LogFile) -> Guess | LogFormat | None:
    """Return the meaning of a table, from a shipped mapping or guessed from titles and values, or its format; None for other files.

    A table with the fields of Slurm's sacct has a format, although its content must be read to see this. Raises LogError for a table that
    lacks an essential column.
    """
    known = known_by_lines(file.head)
    if known is None and (is_own_parquet(file) if file.head.startswith(PARQUET) else _claimed(file)):
        return None
    sample = sample_of(file) if known is None else sample_of(file, known[1].titles, known[1].delimiter)
    known = known_by_titles(sample.columns) if known is None and sample is not None else known
    if known is None:
        if sample is None:
            return None
        if sample.untitled:
            return _described_by_values(file, sample)
        for fits, of_tables in ((is_slurm, SLURM_TABLE), (is_history, HTCONDOR), (is_pbs, QSTAT), (is_accounting, SGE)):
            if fits(sample):
                return of_tables
        return Guessing(file.where, sample).guess() or GuessingByValues(file.where, sample).complete()
    name, mapping = known
    about = f"the layout {name}{f' ({mapping.about.title})' if mapping.about else ''}"
    guess = Guess(mapping, ()) if sample is None else fitted(mapping, sample, file.where)
    note = mapping.about.note if mapping.about else ""
    units = (note.partition(". ")[0].rstrip("."),) if note.startswith("Processors are") else ()
    return replace(guess, reading=(about, *units, *guess.reading))


def _described_by_values(file: LogFile, sample: Sample) -> Guess | LogFormat | None:
    """Return the meaning of a table without titles; None if nothing is recognised. Raises LogError if it is not enough."""
    try:
        guess = GuessingByValues(file.where, sample).guess()
    except LogError:
        _check_titles(file)
        raise
    if guess is not None and guess.doubts:
        _check_titles(file)
    return guess if guess is None or guess.doubts else untitled(sample, guess) or guess


def _check_titles(file: LogFile) -> None:
    """Raise LogError if a file is output of sacct without titles."""
    if lacks_titles(file.head):
        raise LogError(
            f"{file.where}:1: the column titles of sacct are missing, and the values alone do not identify the columns; print the log "
            "again with titles, as walltime slurm sacct-command does, or insert the line of titles",
            "missing_titles",
        )


def _read_mapped(state: ReaderState, chosen: TableMapping, mapping: str) -> JobLog:
    """Read a table with a mapping; `mapping`: its name if it is a shipped one, else its file."""
    file = state.file
    if mapping not in shipped():
        return read_table(state, _with_clocks(file, chosen), f"the mapping {mapping}")
    if chosen.titles and chosen.about is not None and chosen.about.marks:
        head = sample_of(file)
        there = {plain_title(title) for title in head.columns} if head is not None and not head.untitled else set()
        if {plain_title(mark) for mark in chosen.about.marks} <= there:
            chosen = replace(chosen, titles=())
    sample = sample_of(file, chosen.titles, chosen.delimiter if chosen.titles else None)
    if sample is not None:
        try:
            chosen = fitted(chosen, sample, file.where).mapping
        except LogError as error:
            raise LogError(f"{file.where}: the mapping {mapping} does not fit ({error}); give another one") from None
    return read_table(state, chosen, f"the mapping {mapping}")


def _with_clocks(file: LogFile, mapping: TableMapping) -> TableMapping:
    """Return the mapping with a meaning of durations such as 24:00 where it has none and other columns decide it."""
    sample = sample_of(file, mapping.titles, mapping.delimiter)
    if sample is None:
        return mapping
    looks = Guessing(file.where, sample)
    looks.sources = {name: source for name, source in mapping.columns.items() if source.column in sample.columns}
    looks.settle_clocks()
    clocks = {name: replace(mapping.columns[name], clock=source.clock) for name, source in looks.sources.items()}
    return replace(mapping, columns={**mapping.columns, **clocks})


def _claimed(file: LogFile) -> bool:
    """Return whether a text file has the content or the extension of a format; `.json` alone is not enough."""
    name = unpacked_name(file.path.lower())
    return bool(_by_content(file)) or any(name.endswith(one.endings) for one in FORMATS if not one.needs_head and one is not SLURM_JSON)


def mapping_for(path: str | os.PathLike[str]) -> Guess:
    """Return the meaning of a table's columns, as far as they are recognised. Raises LogError for files that are not tables."""
    file = _log_file(find_log(path))
    described: Guess | LogFormat | None = description_of(file)
    if not isinstance(described, Guess):
        sample = sample_of(file)
        kind = GuessingByValues if sample is not None and sample.untitled else Guessing
        described = None if sample is None else kind(file.where, sample).guess()
    if described is None:
        raise LogError(f"{file.where}: either not a table that needs a mapping, or no column was recognised; try walltime info")
    return described


def columns_of(path: str | os.PathLike[str]) -> list[tuple[str, str, str]]:
    """Return the title, meaning and first values of each column of a table; an empty list for other files."""
    file = _log_file(find_log(path))
    sample = sample_of(file)
    if sample is None:
        return []
    looks = Guessing(file.where, sample)
    with suppress(LogError):
        looks.guess()
    meanings = {source.column: name for name, source in looks.sources.items()} | ({looks.status.column: "status"} if looks.status else {})
    return [(title, meanings.get(title, ""), ", ".join(dict.fromkeys(texts[:_ROWS]))) for title, texts in sample.columns.items()]


_KINDS = rb'"(nodes|partitions|sinfo|qos|reservations|associations)"\s*:'
_OF_SLURM = re.compile(rb'\s*\{\s*(?:"(?:meta|jobs|last_update|errors|warnings)"\s*:|' + _KINDS + rb")")
_DESCRIBED, _LISTS_JOBS = re.compile(_KINDS + rb"\s*\["), re.compile(rb'"jobs"\s*:\s*\[')
"""The beginning of Slurm's JSON, its lists that describe a cluster, and its list of jobs."""


def _by_content(file: LogFile) -> list[LogFormat]:
    head = file.head.removeprefix(b"\xef\xbb\xbf")
    return [known for known in FORMATS if known.head.search(head) and known.is_one(head)]


def format_of(file: LogFile) -> LogFormat:
    """Return the format that recognises a file's content (the extension decides between several), else the format of its extension.

    Raises LogError, which lists the known formats, if there is none.
    """
    name = unpacked_name(file.path.lower())
    by_name = [known for known in FORMATS if name.endswith(known.endings)]
    by_content = _by_content(file)
    for fitting in (
        [known for known in by_content if known in by_name],
        by_content,
        [one for one in by_name if not one.needs_head and (one is not SLURM_JSON or _OF_SLURM.match(file.head))],
    ):
        if fitting:
            return fitting[0]
    foreign = next((what for begins, what in _FOREIGN if re.match(begins, file.head, re.DOTALL)), None)
    if foreign is not None:
        raise LogError(f"{file.where}: this is {foreign}")
    _check_titles(file)
    sample = sample_of(file)
    titles = [] if sample is None or sample.untitled else list(sample.columns)[:_SHOWN]
    if titles and all(title.isprintable() and title.strip() and len(title) <= _SHOWN for title in titles):
        raise LogError(
            f"{file.where}: the columns of the table were not recognised; describe them with mapping=FILE;"
            f" the columns are {', '.join(map(printable, titles))}",
            "unknown_columns",
        )
    if SLURM_JSON in by_name:  # its reader reports what is missing
        return SLURM_JSON
    first = next((line for line in file.head.split(b"\n") if line.strip()), b"").decode(errors="replace").strip()
    shown = first if len(first) <= _SHOWN else f"{first[: _SHOWN - 3]}..."
    known = ", ".join(known.name for known in FORMATS)
    raise LogError(
        f"{file.where}:1: unknown format of job logs (the file begins with {shown!r}); known formats: {known}; other tables need"
        " mapping=FILE",
        "unknown_format",
    )


def all_rules() -> tuple[Rule, ...]:
    """Return the rules of all logs, then those of batch systems, then those of single formats."""
    return (*RULES, *BATCH_RULES, *(rule for known in FORMATS for rule in known.rules))
