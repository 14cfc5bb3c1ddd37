"""Parse the command lines of jobs (SubmitLine) for requests that sacct has no field for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from walltime.dataframes import pl
from walltime.logs.batch_systems import unknown
from walltime.logs.slurm.fields import limits
from walltime.slurm_values import MEGABYTES
from walltime.workload import MISSING, Array

_SIZE = re.compile(r"([0-9]{1,12})([KMGT]?)B?", re.IGNORECASE)
_GPU = re.compile(r"(?:gres[:/])?gpu(?:[:=][^:=,()]*[^0-9:=,()][^:=,()]*)?(?:[:=]([0-9]{1,6}))?(?:\(.*\))?")
_ANY = re.compile(
    r" (?:-[acnNGCL]|--(?:array|cpus|ntasks|mem|gres|gpus|nodes|exclusive|nice|constraint|time-min|spread-job|lic|reservation))"
)
"""A pattern that finds one of the options in a line."""
_GAP, _WORD = r"[\s\x1c-\x1f]", r"[^\s\x1c-\x1f]"
_OPTIONS = rf"^({_GAP}*{_WORD}*(?:{_GAP}+(?:-[^=\s\x1c-\x1f]*={_WORD}*|-{_WORD}*(?:{_GAP}+[^-\s\x1c-\x1f]{_WORD}*)?))*)"
"""The beginning of a line: the program and its options; perhaps also the script and its options, which `options_in` ignores."""
_FLAGS = frozenset(
    {"--parsable", "--exclusive", "--nice", "--requeue", "--no-requeue", "--hold", "-H", "--quiet", "-Q", "--verbose", "-v", "--wait", "-W"}
    | {"--no-kill", "-k", "--oversubscribe", "-s", "--overcommit", "-O", "--contiguous", "--test-only", "--pty", "--label", "-l"}
    | {"--unbuffered", "-u", "--ignore-pbs", "--spread-job", "--use-min-nodes", "--reboot", "--immediate", "-I"}
)
"""Options of sbatch, srun and salloc that take no value, or only one after an equals sign."""


def _whole(value: str) -> int:
    return int(value) if value.isdecimal() and len(value) < 10 else MISSING


def _memory(value: str) -> int:
    """Parse a size of memory; return MB, or -1 for none, and for 0, which requests all of a node's memory."""
    match = _SIZE.fullmatch(value)
    return round(int(match[1]) * MEGABYTES[match[2].upper() or "M"]) or MISSING if match else MISSING


def _gpus(value: str) -> int:
    """Return the number of GPUs in `gpu:a100:2`, `a100:2` or `2`, 1 for a type alone; -1 if other resources are listed."""
    if value.isdecimal():
        return _whole(value)
    found = [match for one in value.split(",") if (match := _GPU.fullmatch(one if "gpu" in one else f"gpu:{one}"))]
    return sum(int(match[1] or 1) for match in found) if found else MISSING


def _gres(value: str) -> int:
    listed = [one for one in value.split(",") if re.match(r"(?:gres[:/])?gpu\b", one)]
    return _gpus(",".join(listed)) if listed else MISSING


def _nice(value: str) -> int:
    return 100 if value == "" else -_whole(value[1:]) if value.startswith("-") else _whole(value)


def _limit(value: str) -> int:
    """Parse a time limit; return s, rounded up to whole minutes as by Slurm, or -1 if its form is unknown."""
    seconds, bad = limits(pl.Series("", [value], pl.String))
    return MISSING if bad[0] or seconds[0] <= 0 else -(-int(seconds[0]) // 60) * 60


_SPELLINGS = {
    **{
        "-N": "--nodes",
        "-n": "--ntasks",
        "-c": "--cpus-per-task",
        "-a": "--array",
        "-G": "--gpus",
        "-t": "--time",
        "-C": "--constraint",
        "-L": "--licenses",
    },
    **{"-J": "--job-name", "-A": "--account", "-p": "--partition", "-q": "--qos"},
}
REQUESTS: tuple[tuple[str, str, Callable[[str], int]], ...] = (
    ("exclusive", "--exclusive", lambda value: {"": 1, "user": 2}.get(value, MISSING)),
    ("spread", "--spread-job", lambda _: 1),
    ("most_nodes", "--nodes", lambda value: _whole(value.rpartition("-")[2])),
    ("cpus_per_task", "--cpus-per-task", _whole),
    ("tasks_per_node", "--ntasks-per-node", _whole),
    ("array_limit", "--array", lambda value: _whole(value.partition("%")[2])),
    ("nice", "--nice", _nice),
    ("mem_mb_per_node", "--mem", _memory),
    ("mem_mb_per_cpu", "--mem-per-cpu", _memory),
    ("gpus_per_node", "--gpus", lambda _: 0),
    ("gpus_per_node", "--gpus-per-node", _gpus),
    ("gpus_per_node", "--gres", _gres),
    ("gpus_per_task", "--gpus-per-task", _gpus),
    ("GPUS", "--gpus", _gpus),
)
"""Columns, the option that fills each of them, and the function that parses its value; later rows take precedence."""

TEXTS = (
    *(("constraints", "--constraint"), ("licenses", "--licenses"), ("reservation", "--reservation")),
    *(("gres", option) for option in ("--gpus-per-task", "--gpus", "--gpus-per-node", "--gres")),
)
"""Fields of sacct that logs may lack, and their options. In 24.11, a job that starts with its reservation also has a blank field."""
LIMITS = (("LIMIT", "--time", _limit), ("time_min", "--time-min", _limit))
"""Columns that are filled only for command lines with `--time-min`."""


def command_requests(lines: pl.Series) -> tuple[dict[str, Array], dict[str, pl.Series]]:
    """Return the columns of REQUESTS and LIMITS from command lines, int64, -1 if missing; and the TEXTS, empty if missing."""
    options = lines.set(~lines.str.contains(_ANY.pattern).fill_null(False), None).str.extract(_OPTIONS).fill_null("")
    distinct = options.unique(maintain_order=True)  # jobs that differ only in their scripts and arguments have the same options
    columns = {column: unknown(len(distinct)) for column, _, _ in (*LIMITS, *REQUESTS)}
    texts = {field: [""] * len(distinct) for field, _ in TEXTS}
    for row, line in enumerate(distinct.to_list()):
        given = given_options(line)
        for field, option in TEXTS:
            value = given.get(option, texts[field][row])
            texts[field][row] = f"gpu:{value}" if option in given and option.startswith("--gpus") and "gpu" not in value else value
        for column, option, meaning in (*REQUESTS, *(LIMITS if "--time-min" in given else ())):
            if option in given and (number := meaning(given[option])) != MISSING:
                columns[column][row] = number
    places = options.replace_strict(distinct, range(len(distinct)), return_dtype=pl.Int64)
    return (
        {column: values[places.to_numpy()] for column, values in columns.items()},
        {field: pl.Series("", values, pl.String).gather(places) for field, values in texts.items()},
    )


def given_options(line: str) -> dict[str, str]:
    """Return the options in a command line by their long names; the last value of an option counts, however it is spelled."""
    return {_SPELLINGS.get(option, option): value for option, value in options_in(line)}


def options_in(line: str) -> Iterator[tuple[str, str]]:
    """Yield the options of sbatch, srun or salloc in a command line, up to the script, with values; flags have empty ones."""
    words = iter(line.split()[1:])  # Slurm writes the arguments without quotes
    for word in words:
        option, equal, value = word.partition("=")
        if not word.startswith("-") or option == "--wrap":  # the script
            break
        short = not word.startswith("--")
        if short and len(word) > 2:
            option, value = word[:2], word[2:]
        elif not equal and option not in _FLAGS:
            value = next(words, "")
        yield option, value
