"""Parse the values of sacct's fields (times, limits, resources, states) in blocks of rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from walltime.dataframes import pl
from walltime.logs.batch_systems import NO_LIMIT
from walltime.logs.cells import CLOCKS, spans, stamps
from walltime.logs.clock import Local
from walltime.logs.joblog import LIMIT
from walltime.logs.mapping import UNITS
from walltime.slurm_values import BLANK, NO_LIMITS, gpu_types_of, gpus_of
from walltime.workload import MISSING, Array

COMPLETED, CANCELLED, FAILED = 1, 5, 0
PENDING, RUNNING, OTHER = -10, -11, -12
"""Numbers, in place of a status, for jobs that have not ended and for records that do not describe whole jobs."""
_LETTERS = {
    COMPLETED: "CD=COMPLETED",
    CANCELLED: "CA=CANCELLED RV=REVOKED",
    FAILED: "F=FAILED TO=TIMEOUT NF=NODE_FAIL OOM=OUT_OF_MEMORY BF=BOOT_FAIL DL=DEADLINE PR=PREEMPTED RQ=REQUEUED LF=LAUNCH_FAILED",
    PENDING: "PD=PENDING RF=REQUEUE_FED RH=REQUEUE_HOLD RD=RESV_DEL_HOLD SE=SPECIAL_EXIT",
    RUNNING: "R=RUNNING S=SUSPENDED CG=COMPLETING CF=CONFIGURING SI=SIGNALING SO=STAGE_OUT ST=STOPPED PN=POWER_UP_NODE UD=UPDATE_DB",
    OTHER: "RS=RESIZING",
}
SHORT = {pair.split("=")[0]: pair.split("=")[1] for pairs in _LETTERS.values() for pair in pairs.split()}
"""The states of Slurm jobs by their abbreviations (manual of squeue)."""
STATES = {pair.split("=")[1]: status for status, pairs in _LETTERS.items() for pair in pairs.split()}
"""The states, with the status of the job or the number by which its record is dropped."""
STATES |= {"RECONFIG_FAIL": FAILED, "EXPEDITING": PENDING}  # new in Slurm 23.11 and 25.05
_NUMBER = r"^([0-9]{1,16})(?:\.[0-9]*)?$"
_DECIMAL = r"^([0-9]{1,16}(?:\.[0-9]*)?)$"
_ABBREVIATED = r"^([0-9]{1,12}(?:\.[0-9]+)?)([KMGTP])$"
_SIZE = r"(?:^|,){}=([0-9]{{1,20}}(?:\.[0-9]+)?)([KMGTP]?)(?:,|$)"
_NUMBERED = re.compile(r"(?:[0-9]+=[0-9]+(?:,|$))+")
_RESOURCES = {"1": "cpu", "2": "mem", "4": "node", "5": "billing", "1001": "gres/gpu"}
"""Names of the resources that old records list by number."""
_INFINITE = 2**32 - 2
"""Numbers from here on mean no limit, or an unknown one, in Slurm."""
_SECONDS = 10**11
"""Numbers from here on are not Unix times in seconds."""
_LAST = 2**33
"""The last Unix time that is accepted, in the year 2242; numbers such as 20261120213345 are not times in milliseconds."""
_NEVER = 2 * 86_400
"""Times up to this many s since 1970 mean that the event did not happen."""
_PER_CPU = 2**31
"""Some versions of sacct add this to a request for memory per processor (MB), and print it as a request per node."""


def blank(texts: pl.Series) -> Array:
    """Return a mask (bool) of the unknown values."""
    return texts.is_in(BLANK).to_numpy()


def by_text(texts: pl.Series, function: Callable[[str], Any], kind: Any) -> pl.Series:
    """Return the value of a function for each text; the function is called once for each distinct text."""
    distinct = texts.unique(maintain_order=True)
    return texts.replace_strict(distinct, [function(text) for text in distinct.to_list()], return_dtype=kind)


class Distinct:
    """The distinct texts of a column, each of which is parsed once."""

    def __init__(self, texts: pl.Series) -> None:
        self.texts = texts.unique(maintain_order=True)
        self._places = texts.replace_strict(self.texts, range(len(self.texts)), return_dtype=pl.Int64)

    def array(self, values: Array) -> Array:
        """Return the value of each row from the `values` of the distinct texts."""
        found: Array = values[self._places.to_numpy()]
        return found

    def series(self, values: pl.Series) -> pl.Series:
        """Return the value of each row, as `array` does."""
        return values.gather(self._places)


def wholes(texts: pl.Series) -> tuple[Array, Array]:
    """Parse whole numbers; return int64, -1 where blank, and which values are invalid (bool). 1.25K means 1280."""
    values = texts.str.extract(_NUMBER).cast(pl.Int64)
    if values.null_count() and (short := texts.str.contains(_ABBREVIATED)).any():
        values = values.zip_with(~short, _amounts(texts, _ABBREVIATED).round().cast(pl.Int64))
    fits = values.is_not_null().to_numpy()
    numbers = values.fill_null(MISSING).to_numpy()
    return numbers, ~(fits | blank(texts)) | (numbers >= LIMIT)


def _amounts(texts: pl.Series, pattern: str, plain: str = "", base: float = 1024.0) -> pl.Series:
    """Return numbers with units as found by a pattern, float64, null where it does not match; `plain`: the unit of numbers without one."""
    parts = texts.str.extract_groups(pattern).struct.unnest()
    exponents = {unit: float(base ** ("KMGTP".index(unit or plain) + 1)) if unit or plain else 1.0 for unit in ("", *"KMGTP")}
    factors = parts.to_series(1).fill_null("").replace_strict(list(exponents), list(exponents.values()), return_dtype=pl.Float64)
    return parts.to_series(0).cast(pl.Float64) * factors


def times(texts: pl.Series, zone: str | None) -> tuple[Local, Array, Array]:
    """Parse times; return Unix times, which values are invalid, and which are local times (others are numbers, or have an offset).

    `texts`: such as 2026-11-20T21:33:45, perhaps with a fraction or an offset, or Unix times in s, ms, us or ns; blank if unknown. `zone`:
    of local times.
    """
    written = texts.str.extract(r"^([0-9]{1,19})(?:\.[0-9]*)?$").cast(pl.Int64, strict=False)
    numbers = written.fill_null(MISSING).to_numpy()
    for _ in range(3):
        numbers = np.where(numbers >= _SECONDS, numbers // 1000, numbers)
    others = written.is_null().to_numpy() & ~blank(texts)
    if not others.any():
        bad = numbers > _LAST
        return Local.exact(np.where(~bad & (numbers > _NEVER), numbers, MISSING)), bad, np.zeros(len(texts), bool)
    local, read, own = stamps(texts, zone)
    bad = (others | (numbers > _LAST)) & ~read | (read & (local.first < 0))
    first, last = (np.where(read, times, numbers) for times in (local.first, local.last))
    known = ~bad & (first > _NEVER)
    return Local(np.where(known, first, MISSING), np.where(known, last, MISSING), local.skipped), bad, read & ~own


def elapsed(texts: pl.Series, unit: str = "s", clock: str = CLOCKS[0]) -> tuple[Array, Array]:
    """Parse durations such as 1-02:03:04, 02:03 or 95; return whole s, int64, -1 where blank, and which values are invalid.

    `unit`: the unit of plain numbers. `clock`: the meaning of 02:03, see `walltime.logs.cells.CLOCKS`.
    """
    numbers = texts.str.extract(_DECIMAL).cast(pl.Float64) * UNITS[unit]
    values, bad = numbers.fill_null(float(MISSING)).to_numpy(), numbers.is_null().to_numpy() & ~blank(texts)
    if bad.any():
        durations, odd = spans(texts, clock)
        values, bad = np.where(bad, durations, values), bad & odd
    bad |= values >= LIMIT
    return np.floor(np.where(bad, MISSING, values) + 1e-6).astype(np.int64), bad


def processor_times(texts: pl.Series) -> tuple[Array, Array]:
    """Parse processor times as `elapsed` does, but keep fractions of s, so that less than a second of use is not 0."""
    values, bad = elapsed(texts)
    fraction = texts.str.extract(r"[0-9](\.[0-9]+)\s*$").cast(pl.Float64).fill_null(0.0).to_numpy()
    return values + np.where(values >= 0, fraction, 0.0), bad


def limits(texts: pl.Series, unit: str = "min", clock: str = CLOCKS[0]) -> tuple[Array, Array]:
    """Parse time limits as `elapsed` does; return s, or NO_LIMIT. Slurm writes plain numbers in minutes."""
    words = by_text(texts, _limit_word, pl.Int64).to_numpy()
    values, bad = elapsed(texts, unit, clock)
    values = np.where(values < _INFINITE * UNITS[unit], values, NO_LIMIT)
    values = np.where((values > 0) | (values == NO_LIMIT), values, MISSING)
    return np.where(words == 0, values, words), bad & (words == 0)


def _limit_word(text: str) -> int:
    """Return NO_LIMIT or MISSING for one of Slurm's words, which may be truncated, such as `Partition+`; 0 for other texts."""
    begin = text[:-1] if text.endswith("+") and len(text) > 3 else text
    word = next((word for word in NO_LIMITS if word.lower() == text.lower() or (begin != text and word.startswith(begin))), "")
    return 0 if not word else MISSING if word in ("Partition_Limit", "NOT_SET") else NO_LIMIT


def named(texts: pl.Series) -> pl.Series:
    """Return lists of resources with names in place of the numbers in old records: `1=4,4=1` becomes `cpu=4,node=1`."""
    if not texts.str.contains(r"^[0-9]+=").any():
        return texts
    return by_text(texts, _named, pl.String)


def _named(text: str) -> str:
    if not _NUMBERED.fullmatch(text):
        return text
    pairs = (one.partition("=") for one in text.split(","))
    return ",".join(f"{_RESOURCES.get(number, number)}={count}" for number, _, count in pairs)


def resource(texts: pl.Series, name: str) -> Array:
    """Return the amount of a resource in lists such as `billing=2,cpu=2,gres/gpu=1,node=1`, int64; -1 if it is missing."""
    numbers = texts.str.extract(rf"(?:^|,){re.escape(name)}=([0-9]{{1,12}})(?:[.][0-9]+)?(?:,|$)")
    return numbers.cast(pl.Int64).fill_null(MISSING).to_numpy()


def memory(texts: pl.Series, name: str = "mem", plain: str = "M") -> Array:
    """Return the memory in lists of resources, MB, float64; -1 if it is missing. `plain`: the unit of plain numbers, empty for bytes."""
    values = _amounts(texts, _SIZE.format(re.escape(name)), plain) / 1024**2
    return values.fill_null(float(MISSING)).to_numpy()


def sizes(texts: pl.Series, plain: str = "") -> tuple[Array, Array]:
    """Parse sizes of memory such as 2.20G or 1234K; return MB, float64, -1 if blank, and which are invalid. `plain`: as in `memory`."""
    values = (_amounts(texts, r"^([0-9]{1,20}(?:\.[0-9]+)?)([KMGTP]?)$", plain) / 1024**2).to_numpy()
    return np.where(np.isfinite(values), values, MISSING), ~np.isfinite(values) & ~texts.is_in((*BLANK, "?")).to_numpy()


def requested_memory(texts: pl.Series, processors: Array, nodes: Array) -> tuple[Array, Array]:
    """Return the memory requested for whole jobs, MB, float64, -1 if unknown, and which values are invalid.

    `texts`: ReqMem, such as 16G (per job), 4000Mc (per processor), 4Gn (per node), 0, or `?`.
    """
    per = texts.str.extract("([nc])$").fill_null("")
    values, bad = sizes(texts.str.strip_chars_end("nc"), "M")
    by_processor = (per == "c").to_numpy() | ((per == "n").to_numpy() & (values >= _PER_CPU))
    values = np.where(by_processor & (values >= _PER_CPU), values - _PER_CPU, values)
    number = np.where(by_processor, processors, np.where((per == "n").to_numpy(), nodes, 1))
    return np.where((values > 0) & (number > 0), values * np.maximum(number, 1), MISSING), bad


def energies(texts: pl.Series) -> tuple[Array, Array]:
    """Parse energies; return J, float64, -1 if blank, 0 or not measured, and which values are invalid."""
    values = _amounts(texts, r"^([0-9]{1,20}(?:\.[0-9]+)?)([KMGTP]?)$", base=1000.0).to_numpy()
    bad = ~np.isfinite(values) & ~blank(texts)
    return np.where((values > 0) & (values < LIMIT), values, MISSING), bad


def gpus(texts: pl.Series) -> tuple[Array, pl.Series]:
    """Return the number of GPUs in lists of resources, and their types, such as `a100`, or `a100:1+v100:2`.

    A text may also be a plain number. The number is -1 where a list has no GPUs.
    """
    texts = texts.str.replace(r"^([0-9]{1,9})(?:\.0*)?$", "gpu:$1")
    parts = texts.str.extract_all(r"(?:gres[/:])?gpu(?:[:=][^,]*)?(?:,|$)").list.join("").fill_null("")
    numbers = by_text(parts, lambda text: gpus_of(text) if text else MISSING, pl.Int64).to_numpy()
    return numbers, by_text(parts, gpu_types_of, pl.String)


def states(texts: pl.Series) -> tuple[Array, pl.Series, Array]:
    """Return the status of each state (`STATES`), its word, and which values are invalid; -1 and an empty word if blank."""
    words = by_text(texts, state_word, pl.String)
    rows = by_text(words.fill_null(""), lambda word: STATES.get(word, MISSING), pl.Int64).to_numpy()
    return rows, words.fill_null(""), words.is_null().to_numpy()


def state_word(text: str) -> str | None:
    """Return the state in `CANCELLED by 1000`, `TO` or a truncated `OUT_OF_ME+`; empty if blank, None if it is not a state of Slurm."""
    if text in BLANK:
        return ""
    word = SHORT.get(text, text.split(" ", 1)[0])
    if word in STATES and (text in (word, *SHORT) or re.fullmatch(r"CANCELLED by \S+", text)):
        return word
    fits = [state for state in STATES if state.startswith(word[:-1])] if word.endswith("+") and len(word) > 3 else []
    return fits[0] if len(fits) == 1 and word == text else None
