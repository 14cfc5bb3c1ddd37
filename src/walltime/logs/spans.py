"""Lengths of time and spans of a log as users write them: 1h, 30d:60d."""

from __future__ import annotations

import re

from walltime.errors import PolicyError
from walltime.logs.filters import UNITS


def parse_seconds(text: str) -> int:
    """Seconds of a time such as 3600, 90m or 1h, at least 1; raises PolicyError.

    >>> parse_seconds("90m")
    5400
    """
    match = re.fullmatch(r"(\d{1,12})([smhdw]?)", text.strip())
    seconds = int(match[1]) * UNITS[match[2]] if match else 0
    if seconds < 1:
        raise PolicyError(f"{text!r} is no length of time; write seconds, or a number with m, h, d or w, such as 1h")
    return seconds


def parse_span(text: str) -> tuple[int, int]:
    """Begin and end in seconds of a span such as 30d:60d; raises PolicyError.

    >>> parse_span("30d:60d")
    (2592000, 5184000)
    """
    match = re.fullmatch(r"(\d+)([smhdw]?):(\d+)([smhdw]?)", text.strip())
    if match is None:
        raise PolicyError(f"the window {text!r} is not of the form BEGIN:END, such as 86400:172800 or 30d:60d")
    return int(match[1]) * UNITS[match[2]], int(match[3]) * UNITS[match[4]]
