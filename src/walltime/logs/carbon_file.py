"""Read the carbon intensity of electricity from a CSV file with the columns time and grams (of CO2 per kWh)."""

import io
import math
from datetime import datetime, tzinfo
from pathlib import Path

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs.input import Digest, chunks_of, reading
from walltime.wording import printable, shown
from walltime.workload import Array


def read_carbon(path: str | Path, zone: tzinfo) -> tuple[Array, Array]:
    """Return the grams of CO2 per kWh (float64), and their times (int64, Unix time), ascending.

    Times in the file are seconds since 1970, or such as 2026-03-01T13:00, in `zone` unless they have their own. Raises LogError.
    """
    where = printable(str(path))
    with reading(where, "CSV"):
        table = pl.read_csv(io.BytesIO(b"".join(chunks_of(str(path), where, Digest()))), infer_schema=False).fill_null("")
    names = {name.strip().lower(): name for name in table.columns}
    if not {"time", "grams"} <= names.keys():
        raise LogError(f"{where} must have the columns time and grams; it has {', '.join(map(shown, table.columns))}", "missing_column")
    rows = []
    for number, (time, grams) in enumerate(table.select(names["time"], names["grams"]).iter_rows(), 1):
        try:
            value = float(grams)
            seconds = float(time) if time.strip().replace(".", "", 1).isdecimal() else _seconds(time.strip(), zone)
        except ValueError as error:
            raise LogError(
                f"{where}, row {number}: {shown(time)}, {shown(grams)} is not a time and a number; correct it", "not_a_number"
            ) from error
        if not (0 <= value < math.inf):
            raise LogError(f"{where}, row {number}: grams must be at least 0, not {shown(grams)}", "not_a_number")
        rows.append((int(seconds), value))
    times = np.array([time for time, _ in rows], np.int64)
    if len(rows) < 2 or (np.diff(times) <= 0).any():
        raise LogError(f"{where} must have at least two rows, in ascending order of time", "not_ascending")
    return np.array([value for _, value in rows], np.float64), times


def _seconds(text: str, zone: tzinfo) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp()
