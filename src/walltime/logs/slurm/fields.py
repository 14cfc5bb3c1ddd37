"""The values of sacct's fields: times, limits, resources, states; in blocks of rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from walltime.lazy import LaterModule
from walltime.logs.batch_systems import NO_LIMIT
from walltime.logs.clock import Local, to_unix
from walltime.logs.joblog import LIMIT
from walltime.workload import MISSING

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

Array = np.ndarray
COMPLETED, CANCELLED, FAILED = 1, 5, 0
PENDING, RUNNING, OTHER = -10, -11, -12
"""Numbers in place of a status for jobs that have not ended, and for records that are not whole jobs."""
STATES = {
    "COMPLETED": COMPLETED,
    "CANCELLED": CANCELLED,
    "REVOKED": CANCELLED,
    **dict.fromkeys(
        ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED", "REQUEUED", "LAUNCH_FAILED"), FAILED
    ),
    **dict.fromkeys(("PENDING", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"), PENDING),
    **dict.fromkeys(
        ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "SIGNALING", "STAGE_OUT", "STOPPED", "POWER_UP_NODE", "UPDATE_DB"), RUNNING
    ),
    "RESIZING": OTHER,
}
"""The states of Slurm jobs (manual of sacct and squeue) with the status of the job, or the reason to drop its record."""
BLANK = ("", "Unknown", "None", "N/A", "NONE", "(null)", "INVALID", "n/a")
NO_LIMITS = ("UNLIMITED", "Partition_Limit", "INFINITE")
_ISO = r"^[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]$"
_DURATION = r"^(?:([0-9]{1,9})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,2})(?:\.[0-9]+)?$"
_UNITS = {"": 1 / 1024**2, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_FLAGS = frozenset(
    {"--parsable", "--exclusive", "--requeue", "--no-requeue", "--hold", "-H", "--quiet", "-Q", "--verbose", "-v", "--wait", "-W"}
    | {"--no-kill", "-k", "--oversubscribe", "-s", "--overcommit", "-O", "--contiguous", "--test-only", "--pty", "--label", "-l"}
    | {"--unbuffered", "-u", "--ignore-pbs", "--spread-job", "--use-min-nodes", "--reboot", "--immediate", "-I"}
)
"""Options of sbatch, srun and salloc without a value, or with a value only after an equals sign."""
_MINUTES = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")


def blank(texts: pl.Series) -> Array:
    """Return which values are unknown."""
    return texts.is_in(BLANK).to_numpy()


def wholes(texts: pl.Series) -> tuple[Array, Array]:
    """Return whole numbers, -1 where blank, and a mask of the values that are neither."""
    fits = texts.str.contains(r"^[0-9]{1,16}$")
    values = texts.set(~fits, None).cast(pl.Int64).fill_null(MISSING).to_numpy()
    return values, ~(fits.to_numpy() | blank(texts)) | (values >= LIMIT)


def times(texts: pl.Series, zone: str | None) -> tuple[Local, Array, Array]:
    """Return Unix times, and masks of the values that are not times, and of local times (others are numbers).

    `texts`: such as 2026-11-20T21:33:45, or seconds since 1970; blank if unknown.
    """
    iso = texts.str.contains(_ISO)
    clock = texts.set(~iso, None).str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False)
    local = to_unix(clock, zone)
    numbers, bad = wholes(texts)
    read = clock.is_not_null().to_numpy()
    bad = bad & ~read | (read & (local.first < 0))
    first, last = (np.where(read, times, numbers) for times in (local.first, local.last))
    first[bad], last[bad] = MISSING, MISSING
    return Local(np.where(first == 0, MISSING, first), np.where(last == 0, MISSING, last), local.skipped), bad, read


def durations(texts: pl.Series) -> tuple[Array, Array]:
    """Return durations such as 1-02:03:04 or 02:03, in s, -1 where blank, and a mask of the values that are neither."""
    parts = texts.str.extract_groups(_DURATION).struct.unnest()
    days, hours, minutes, seconds = (parts.to_series(k).cast(pl.Int64) for k in range(4))
    total = days.fill_null(0) * 86_400 + hours.fill_null(0) * 3600 + minutes * 60 + seconds
    values = total.fill_null(MISSING).to_numpy().copy()
    return values, (values < 0) & ~blank(texts)


def limits(texts: pl.Series, minutes: bool) -> tuple[Array, Array]:
    """Return time limits in s, -1 if unknown, or NO_LIMIT, and a mask of other values. `minutes`: they are numbers of minutes."""
    words = texts.is_in(NO_LIMITS)
    values, bad = wholes(texts) if minutes else durations(texts)
    values = np.where(values > 0, values * (60 if minutes else 1), MISSING)
    free = texts.is_in(("UNLIMITED", "INFINITE")).to_numpy()
    return np.where(free, NO_LIMIT, values), bad & ~words.to_numpy()


def resource(texts: pl.Series, name: str) -> Array:
    """Return the amount of a resource in values such as `billing=2,cpu=2,gres/gpu=1,node=1`, int64; -1 if it is missing."""
    numbers = texts.str.extract(rf"(?:^|,){re.escape(name)}=([0-9]{{1,12}})(?:,|$)")
    return numbers.cast(pl.Int64).fill_null(MISSING).to_numpy()


def memory(texts: pl.Series) -> Array:
    """Return the memory in such values, MB, float64; -1 if it is missing."""
    parts = texts.str.extract_groups(r"(?:^|,)mem=([0-9]{1,15}(?:\.[0-9]+)?)([KMGTP]?)(?:,|$)").struct.unnest()
    values = parts.to_series(0).cast(pl.Float64)
    factors = parts.to_series(1).fill_null("").replace_strict(list(_UNITS), list(_UNITS.values()), return_dtype=pl.Float64)
    return (values * factors).fill_null(float(MISSING)).to_numpy()


def states(texts: pl.Series) -> tuple[Array, pl.Series, Array]:
    """Return the status of each state (see `STATES`), its word, and a mask of other values; -1 and an empty word if blank."""
    distinct = texts.unique(maintain_order=True)
    words = [state_word(text) for text in distinct.to_list()]
    numbers = [MISSING if word is None else STATES.get(word, MISSING) for word in words]
    bad = [word is None for word in words]
    rows = texts.replace_strict(distinct, numbers, return_dtype=pl.Int64).to_numpy()
    named = texts.replace_strict(distinct, [word or "" for word in words], return_dtype=pl.String)
    return rows, named, texts.replace_strict(distinct, bad, return_dtype=pl.Boolean).to_numpy()


def state_word(text: str) -> str | None:
    """Return the state in `CANCELLED by 1000` or a cut `OUT_OF_ME+`; empty if blank, None if it is not a state of Slurm."""
    if text in BLANK:
        return ""
    word = text.split(" ", 1)[0]
    if word in STATES and (word == text or re.fullmatch(r"CANCELLED by \S+", text)):
        return word
    fits = [state for state in STATES if state.startswith(word[:-1])] if word.endswith("+") and len(word) > 3 else []
    return fits[0] if len(fits) == 1 and word == text else None


def command_limit(line: str, *options: str) -> int | None:
    """Return the time limit, s, in a command line such as `sbatch -t 20 --time-min=3 job.sh`; None if it has no simple one.

    `options`: the options with the limit, by default -t and --time.

    >>> [command_limit(f"sbatch {words}") for words in ("-t 20 --time-min=3 job.sh", "--time-min=3 job.sh -t 20", "--time=1-2 x")]
    [1200, None, 93600]
    >>> command_limit("sbatch -t 20 --time-min=3 job.sh", "--time-min")
    180
    """
    value = option_value(line, *(options or ("-t", "--time")))
    return None if value is None else _limit(value)


def option_value(line: str, *options: str) -> str | None:
    """Return the last value of one of these options in a command line of sbatch, srun or salloc; empty for a flag, None if missing.

    >>> option_value("sbatch --exclusive -N 2 job.sh --exclusive=user", "--exclusive"), option_value("sbatch job.sh", "--exclusive")
    ('', None)
    """
    words = iter(line.split()[1:])  # Slurm writes the arguments without quotes
    found = None
    for word in words:
        option, equal, value = word.partition("=")
        if not word.startswith("-") or option == "--wrap":  # the script
            break
        short = not word.startswith("--")
        if not equal and option not in _FLAGS and (not short or len(word) == 2):
            value = next(words, "")
        elif short and len(word) > 2:
            option, value = word[:2], word[2:]
        if option in options:
            found = value
    return found


def _limit(text: str) -> int | None:
    """A time limit, s, rounded up to minutes, in a format of Slurm: minutes, minutes:seconds, hours:minutes:seconds, days-hours, ..."""
    match = _MINUTES.fullmatch(text)
    if not match:
        return None
    days, *rest = match.groups()
    numbers = [int(number) for number in rest if number is not None]
    if days is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    total = int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds
    return -(-total // 60) * 60 or None
