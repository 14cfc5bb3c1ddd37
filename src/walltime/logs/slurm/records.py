"""Convert records with sacct's fields, from any source, to columns of a log; only this module interprets the fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from walltime.dataframes import pl
from walltime.logs.batch_systems import Names, unknown
from walltime.logs.cells import BLANK_WORDS, CLOCKS, ZONE_IN_TEXT, times_as
from walltime.logs.clock import Local
from walltime.logs.joblog import JobLog
from walltime.logs.mapping import STATUS, Source, Status
from walltime.logs.reader import ReaderState
from walltime.logs.rules import UNREADABLE_DURATION, UNREADABLE_VALUE
from walltime.logs.slurm import fields, jobstats
from walltime.logs.slurm.command_line import command_requests
from walltime.logs.slurm.jobs import AGAIN, STEP, TEXT_COLUMNS, slurm_log
from walltime.logs.slurm.steps import Steps
from walltime.slurm_values import BLANK
from walltime.wording import quoted
from walltime.workload import MISSING, Array

TIMES = ("submit", "eligible", "start", "end")
RESOURCES = ("alloctres", "reqtres", "allocgres", "reqgres")
USAGE = ("tresusageintot", "tresusageinave")
KINDS = {
    **dict.fromkeys(TIMES, "time"),
    **dict.fromkeys(("alloccpus", "ncpus", "reqcpus", "nnodes", "elapsedraw", "priority", "restarts"), "whole"),
    **dict.fromkeys(("timelimitraw", "timelimit"), "limit"),
    **dict.fromkeys(("elapsed", "totalcpu", "usercpu"), "spent"),
    "state": "state",
    **dict.fromkeys(("jobid", "jobidraw", "user", "uid", "account", "qos", "partition", "reason", "reservation", "cluster"), "text"),
    **dict.fromkeys(("flags", "exitcode", "nodelist", "reqmem", "maxrss", "averss", *RESOURCES, *USAGE), "text"),
    **dict.fromkeys(("consumedenergy", "consumedenergyraw"), "text"),
}
"""The fields of sacct that are read, and their kinds."""
TEXTS = ("jobname", "submitline", "constraints", "licenses", "admincomment")
"""The free texts that are read."""
OF_STEPS = ("jobidraw", "jobid", "start", "elapsedraw", "elapsed", "maxrss", "averss", *USAGE)
"""The fields that are read from records of steps."""
_ID = (
    r"^([0-9]{1,10})(?:_(?:([0-9]{1,7})|(\[[^\]]*(?:\](?:%[0-9]+)?)?)))?(?:\+([0-9]{1,6}))?"
    r"(?:\.(batch|extern|interactive|TBD|[0-9]{1,10}(?:\+[0-9]{1,6})?))?$"
)
_ALLOWED = {
    "time": "a time such as 2026-11-20T21:33:45",
    "whole": "a whole number",
    "spent": "a length of time such as 1-02:03:04",
    "state": "a state of Slurm",
}
_NOT_NAMES = ("reason", "reservation", "nodelist", "constraints", "licenses")
"""Fields in which Slurm writes a word if there is no value."""


def suffice(names: set[str]) -> bool:
    """Return whether these fields, in lower case, are enough for a log."""
    runs = {"elapsed", "elapsedraw"} & names or {"start", "end"} <= names
    return bool(runs and {"jobid", "jobidraw"} & names and "submit" in names and {"alloccpus", "ncpus", "reqcpus", *RESOURCES[:2]} & names)


class RecordTable:
    """A block of records: the texts of their fields, by sacct's names in lower case; `bad`: fields and their invalid values (bool).

    `words`: fields in which words for unknown values (`walltime.logs.cells.BLANK`) are replaced when they are read.
    """

    def __init__(self, columns: Mapping[str, pl.Series], words: Collection[str] = ()) -> None:
        self._columns = {name: column for name, column in columns.items() if name in KINDS or name in TEXTS}
        self._words = set(words)
        self.rows = len(next(iter(self._columns.values())))
        self.bad: list[tuple[str, Array]] = []
        self.odd = np.zeros(self.rows, bool)
        """Records with an unreadable value that is not needed (bool)."""

    def rows_of(self, chosen: pl.Series, names: Collection[str] = (*KINDS, *TEXTS)) -> RecordTable:
        """Return a table of the chosen records (bool) with these fields."""
        return RecordTable({name: column.filter(chosen) for name, column in self._columns.items() if name in names}, self._words)

    def has(self, name: str) -> bool:
        """Return whether the records have this field."""
        return name in self._columns

    def first(self, *names: str) -> str:
        """Return the first of these field names that the records have, else the last name."""
        return next((name for name in names if name in self._columns), names[-1])

    def texts(self, name: str) -> pl.Series:
        """Return the texts of a field; all are empty if it is missing."""
        if name not in self._columns:
            return pl.repeat("", self.rows, dtype=pl.String, eager=True)
        if name in self._words:
            self._words.remove(name)
            blank = self._columns[name].is_in(BLANK_WORDS)
            self._columns[name] = self._columns[name].set(blank, "") if blank.any() else self._columns[name]
        return self._columns[name]

    def read(self, name: str, parse: Callable[[pl.Series], tuple[Array, Array]] = fields.wholes, needed: bool = True) -> Array:
        """Return the parsed values of a field, -1 if it is missing; invalid values become unknown and, unless `needed`, are counted."""
        if name not in self._columns:
            return unknown(self.rows)
        values, bad = parse(self.texts(name))
        if bad.any() and needed:
            self.bad.append((name, bad))
        elif bad.any():
            self.odd |= bad
            values = np.where(bad, MISSING, values)
        return values

    def times(self, name: str, zone: str | None, form: Source | Status | None = None) -> tuple[Local, Array]:
        """Return Unix times, and which times were local (bool). `form`: their format, by default sacct's."""
        if name not in self._columns:
            return Local.exact(unknown(self.rows)), np.zeros(self.rows, bool)
        texts = self.texts(name)
        if isinstance(form, Source) and form.format is not None:
            zones = texts.str.extract(ZONE_IN_TEXT).fill_null("") if "%Z" in form.format else ""
            texts = (times_as(texts, form.format).dt.strftime("%Y-%m-%dT%H:%M:%S") + zones).fill_null(texts)
        local, bad, was_local = fields.times(texts, zone)
        if bad.any():
            self.bad.append((name, bad))
        return local, was_local


class RecordReader:
    """Reads blocks of records, and joins them to a log; `forms`: as in `walltime.logs.slurm.adapted.Adapted`."""

    def __init__(self, state: ReaderState, forms: Mapping[str, Source | Status] = MappingProxyType({})) -> None:
        self.state = state
        self._limits, self._elapsed = (
            partial(parse, unit=form.unit, clock=form.clock or CLOCKS[0]) if isinstance(form, Source) else parse
            for form, parse in ((forms.get("timelimit"), fields.limits), (forms.get("elapsed"), fields.elapsed))
        )
        self._states, self._forms = forms.get("state"), forms
        self.names = {column: Names() for column in (*TEXT_COLUMNS.values(), "gpu_type", "requested_gpu_type")}
        self.blocks: list[dict[str, Array]] = []
        self.steps = Steps()

    def add(
        self,
        table: RecordTable,
        lines: Sequence[int],
        text_of: Callable[[int], object] = lambda _: "",
        titles: Mapping[str, str] = MappingProxyType({}),
        count_steps: bool = True,
    ) -> None:
        """Add a block of records, with their line or record numbers and, for messages, their texts by index and the titles of the fields.

        `count_steps`: whether steps are records of their own, and not parts of a job's record.
        """
        main, shown = (_job_ids(table.texts(table.first(*names))) for names in (("jobidraw", "jobid"), ("jobid", "jobidraw")))
        is_step = main.to_series(4).is_not_null().to_numpy()
        self.state.count(STEP, is_step if count_steps else 0)
        places = np.arange(table.rows)
        if is_step.any():
            chosen = pl.Series(is_step)
            self._add_steps(table.rows_of(chosen, OF_STEPS), main.filter(chosen), shown.filter(chosen))
            table, main, shown, places = table.rows_of(~chosen), main.filter(~chosen), shown.filter(~chosen), places[~is_step]
            if not table.rows:
                return
        raw, key = table.has("jobidraw"), _keys(table, main, shown)
        job, base, task, offset = (_numbers(part) for part in (main.to_series(0), *(shown.to_series(k) for k in (0, 1, 3))))
        bracket = shown.to_series(2).is_not_null().to_numpy()
        states = table.texts("state")
        if isinstance(self._states, Status):
            states = fields.by_text(states, partial(_state_of, self._states), pl.String)
        status, words, bad_state = fields.states(states)
        if bad_state.any():
            table.bad.append(("state", bad_state))
        waits = status == fields.PENDING
        bad_id = (job < 0) & ~waits  # a waiting job may have any number
        zone = self.state.options.time_zone
        times, local = {}, np.zeros(table.rows, bool)
        for name in TIMES:
            times[name], was_local = table.times(name, zone, self._forms.get(name))
            local |= was_local
        elapsed = table.read(table.first("elapsedraw", "elapsed"), self._elapsed)
        requested, odd_limit = self._limits(table.texts(table.first("timelimitraw", "timelimit")))
        commands, of_commands = command_requests(table.texts("submitline"))
        types = fields.gpus(of_commands.pop("gres"))[1]
        values = {
            "KEY": key,
            "IDENTIFIED": ~bracket,
            "ELAPSED": elapsed,
            "requested": requested,
            **commands,
            "LOCAL": local,
            "job_id": job if raw else np.where((task >= 0) | bracket | (offset > 0), MISSING, job),
            "array_job": np.where((task >= 0) | bracket, base, MISSING),
            "array_task": task,
            "het_job": np.where(offset >= 0, base, MISSING),
            "priority": table.read("priority", needed=False),
            "restarts": table.read("restarts", needed=False),
            "status": status,
            "REQUEUED": (words == "REQUEUED").to_numpy(),
            "AGAIN": words.is_in(AGAIN).to_numpy(),
            **_codes(table),
        }
        named = {column: table.texts(name) for name, column in TEXT_COLUMNS.items()} | {"state": words}
        if not table.has("user"):
            named["user"] = table.texts("uid")
        named |= {TEXT_COLUMNS[name]: column for name, column in of_commands.items() if not table.has(name)}
        for name in _NOT_NAMES:
            column = named[TEXT_COLUMNS[name]]
            named[TEXT_COLUMNS[name]] = column.set(column.is_in((*BLANK, "None assigned")), None)
        asked = of_commands["reservation"]
        named["reservation"] = named["reservation"].fill_null(asked.set(asked == "", None))
        amounts, named["gpu_type"], named["requested_gpu_type"] = _resources(table)
        values |= amounts | {"GPUS": _gpus_of_line(commands, amounts)}
        is_counted = pl.Series(amounts["requested_gpus"] >= 0)
        named["requested_gpu_type"] = named["requested_gpu_type"].zip_with(is_counted, types)
        for name, one in times.items():
            values |= {f"{name}:first": one.first, f"{name}:last": one.last, f"{name}:skipped": one.skipped}
        summary, unreadable = jobstats.summaries(table.texts("admincomment"))
        table.odd |= unreadable
        values |= {f"SUMMARY:{name.upper()}": measured for name, measured in summary.items()}
        self.state.count(UNREADABLE_VALUE, table.odd & ~bad_id)
        for row, name, fault in _faults(table, bad_id):
            place = int(places[row])
            self.state.add_bad(lines[place], f"{titles.get(name, name)} {fault}", str(text_of(place)))
        good = ~np.logical_or.reduce([bad_id, *(mask for _, mask in table.bad)])
        self.state.count(UNREADABLE_DURATION, odd_limit & good)
        values |= {name: self.names[name].numbers(column, good) for name, column in named.items()}
        self.blocks.append({name: array[good] for name, array in values.items()})

    def _add_steps(self, table: RecordTable, main: pl.DataFrame, shown: pl.DataFrame) -> None:
        """Add records of steps. `main, shown`: the parts of their numbers."""
        start, _ = table.times("start", self.state.options.time_zone, self._forms.get("start"))
        steps = {
            "KEY": _keys(table, main, shown),
            "START": start.first,
            "ELAPSED": table.read(table.first("elapsedraw", "elapsed"), self._elapsed),
            "BATCH": (main.to_series(4) == "batch").to_numpy(),
        }
        self.steps.add(steps | _usage(table))

    def log(self) -> JobLog:
        """Return the log of all blocks; raises LogError if they have no job."""
        if not self.blocks:
            raise self.state.no_jobs()
        whole = {name: np.concatenate([block.pop(name) for block in self.blocks]) for name in list(self.blocks[0])}
        self.blocks = []
        local = [Local(*(whole.pop(f"{name}:{part}") for part in ("first", "last", "skipped"))) for name in TIMES]
        return slurm_log(self.state, whole, local, self.steps, {column: names.texts for column, names in self.names.items()})


def _keys(table: RecordTable, main: pl.DataFrame, shown: pl.DataFrame) -> Array:
    """Return a number for each record, which a job shares with its steps."""
    job, task, offset = (_numbers(part) for part in (main.to_series(0), shown.to_series(1), shown.to_series(3)))
    return job if table.has("jobidraw") else (job << 29) + ((np.clip(offset, MISSING, 126) + 1) << 22) + task + 1


def _faults(table: RecordTable, bad_id: Array) -> Iterator[tuple[int, str, str]]:
    """Yield the row, the field and the fault of each bad record, in the order of the file."""
    for row in np.flatnonzero(np.logical_or.reduce([bad_id, *(mask for _, mask in table.bad)])).tolist():
        name, allowed = table.first("jobidraw", "jobid"), "a job number"
        if not bad_id[row]:
            name = next(name for name, mask in table.bad if mask[row])
            allowed = _ALLOWED[KINDS[name]]
        yield row, name, f"must be {allowed}, not {quoted(str(table.texts(name)[row]))}"


def _job_ids(texts: pl.Series) -> pl.DataFrame:
    """Return the parts of job numbers (`_ID`). If all numbers look like 12.0, they were read as fractions, and are not steps."""
    if all(some.str.contains(r"^(?:[0-9]+\.0)?$").all() for some in (texts.head(100), texts)):
        texts = texts.str.strip_suffix(".0")
    return texts.str.extract_groups(_ID).struct.unnest()


def _state_of(status: Status, text: str) -> str:
    """Return Slurm's state for a word of another program."""
    kind = status.kind_of(text)
    number = STATUS["failed"] if kind is None else kind
    return next(name.upper() for name, one in STATUS.items() if one == number) if text else ""


def _numbers(texts: pl.Series) -> Array:
    return texts.cast(pl.Int64, strict=False).fill_null(MISSING).to_numpy()


def _codes(table: RecordTable) -> dict[str, Array]:
    """Return the exit code and signal, and whether backfill started the job."""
    codes = table.texts("exitcode").str.extract_groups(r"^([0-9]{0,6})(?::([0-9]{0,6}))?$").struct.unnest()
    flags = table.texts("flags")
    main = flags.str.contains("SchedMain|SchedSubmit").to_numpy()
    return {
        "exit_code": _numbers(codes.to_series(0)),
        "exit_signal": _numbers(codes.to_series(1)),
        "sched_backfill": np.where(flags.str.contains("SchedBackfill").to_numpy(), 1, np.where(main, 0, MISSING)),
    }


def _known(*columns: Array) -> Array:
    """Return, for each record, the first value that is positive; -1 if none is."""
    return np.select([column > 0 for column in columns], columns, MISSING)


def _exact(table: RecordTable, name: str, counted: Array, needed: bool = False) -> Array:
    """Return the numbers in a field; `counted`, from a list of resources, replaces unknown or abbreviated numbers (1.25K)."""
    values = table.read(name, needed=needed)
    short = table.texts(name).str.contains("[KMGTP]$").to_numpy()
    return np.where((counted > 0) & (short | (values <= 0)), counted, values)


def _resources(table: RecordTable) -> tuple[dict[str, Array], pl.Series, pl.Series]:
    """Return processors, nodes, memory, GPUs, energy and processor time; and the types of allocated and requested GPUs."""
    lists = allocated, requested = [fields.Distinct(fields.named(table.texts(name))) for name in ("alloctres", "reqtres")]

    def amount(one: fields.Distinct, name: str) -> Array:
        return one.array(fields.resource(one.texts, name))

    procs = [
        _exact(table, table.first("alloccpus", "ncpus"), amount(allocated, "cpu"), needed=True),
        _exact(table, "reqcpus", amount(requested, "cpu"), needed=True),
    ]
    nodes = _known(_exact(table, "nnodes", amount(allocated, "node")), amount(requested, "node"))
    by_text = table.read("reqmem", lambda texts: fields.requested_memory(texts, _known(procs[1], procs[0]), nodes), needed=False)
    memory = [one.array(fields.memory(one.texts)) for one in lists]
    memory[1] = _known(memory[1], by_text)
    of_lists = [(one, *fields.gpus(one.texts)) for one in lists]
    gpus, kinds = [one.array(number) for one, number, _ in of_lists], [one.series(types) for one, _, types in of_lists]
    of_gres = (("allocgres", 1), ("reqgres", np.maximum(nodes, 1)))  # before Slurm 20.11; ReqGRES is the request per node
    for place, (name, number) in enumerate(of_gres):
        if table.has(name):
            found, types = fields.gpus(table.texts(name))
            kinds[place] = kinds[place].zip_with(pl.Series(gpus[place] >= 0), types)
            gpus[place] = np.where((gpus[place] < 0) & (found >= 0), found * number, gpus[place])
    processor_time = table.read("totalcpu", fields.processor_times, needed=False)
    energy = table.read(table.first("consumedenergyraw", "consumedenergy"), fields.energies, needed=False)
    width = _known(procs[0], procs[1])
    values = {
        "allocated_procs": procs[0],
        "requested_procs": procs[1],
        "nodes": nodes,
        "requested_nodes": amount(requested, "node"),
        "requested_memory": np.where((memory[1] > 0) & (procs[1] > 0), memory[1] * 1024 / np.maximum(procs[1], 1), float(MISSING)),
        "requested_mem_mb": memory[1],
        "mem_mb": _known(*memory),
        "gpus": np.where(gpus[0] >= 0, gpus[0], gpus[1]),
        "requested_gpus": gpus[1],
        "billing": amount(allocated, "billing"),
        "energy": _known(energy, amount(allocated, "energy")),
        "cpu_time": np.where((processor_time > 0) & (width > 0), processor_time / np.maximum(width, 1), float(MISSING)),
        "user_cpu_time": _known(table.read("usercpu", fields.elapsed, needed=False)),
    }
    return values, kinds[0], kinds[1]


def _gpus_of_line(commands: dict[str, Array], amounts: dict[str, Array]) -> Array:
    """Return the number of GPUs that each job's command line requests, -1 for none."""
    nodes, cpus = _known(amounts["requested_nodes"], amounts["nodes"]), np.maximum(commands["cpus_per_task"], 1)
    tasks = np.maximum(amounts["requested_procs"], 1) // cpus
    per_node, per_task = (np.maximum(commands[name], 0) for name in ("gpus_per_node", "gpus_per_task"))
    return _known(per_node * np.maximum(nodes, 1), commands["GPUS"], per_task * tasks)


def _usage(table: RecordTable) -> dict[str, Array]:
    """Return the memory and GPUs that steps used, as the columns `walltime.logs.slurm.steps.USED`."""
    total, average = (table.texts(name) for name in USAGE)
    largest, mean = (table.read(name, fields.sizes, needed=False) for name in ("maxrss", "averss"))
    means = mean if (mean > 0).all() else _known(mean, fields.memory(average, plain=""))
    return {
        "used_mem_mb": _known(fields.memory(total, plain=""), largest),
        "max_rss_mb": largest,
        "ave_rss_mb": means,
        "gpu_mem_mb": fields.memory(total, "gres/gpumem", plain=""),
        "gpu_use": fields.resource(average, "gres/gpuutil"),
        "GPU_TOTAL": fields.resource(total, "gres/gpuutil"),
    }
