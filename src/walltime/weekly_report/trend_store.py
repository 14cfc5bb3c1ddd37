"""A small store of periods in numbers, a JSON file each, so that trends go further back than the log at hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from walltime.errors import LogError, OutputError
from walltime.files import whole_file
from walltime.weekly_report.period import PeriodNumbers
from walltime.wording import printable

FLOATS = {field.name for field in fields(PeriodNumbers) if field.type == "float"}


def write_trend(folder: str | Path, periods: Sequence[PeriodNumbers], clock: int) -> None:
    """Keep these periods, each in a file of its own; one that is there already is replaced.

    `clock`: what is added to their times, so that they are Unix times. Raises OutputError if the folder cannot be written.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{printable(target)}: cannot be made ({(error.strerror or str(error)).lower()}); name another place") from error
    for one in periods:
        record = one.as_dict() | {"begin": one.begin + clock, "end": one.end + clock}
        with whole_file(target / f"period-{record['begin']}-{record['end']}.json") as sink:
            sink.write((json.dumps(record, indent=2) + "\n").encode())


def read_trend(folder: str | Path, clock: int) -> list[PeriodNumbers]:
    """The periods that are kept, the earliest first; none without the folder. Raises LogError for a file that is no such record."""
    periods = []
    for path in sorted(Path(folder).glob("period-*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            values = {field.name: record[field.name] for field in fields(PeriodNumbers)}
            values = {name: float("nan") if value is None and name in FLOATS else value for name, value in values.items()}
            values |= {"begin": int(values["begin"]) - clock, "end": int(values["end"]) - clock}
            periods.append(PeriodNumbers(**values))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise LogError(f"{printable(path)}: is no record of a period ({type(error).__name__}); remove it", "not_a_period") from error
    return sorted(periods, key=lambda one: one.begin)
