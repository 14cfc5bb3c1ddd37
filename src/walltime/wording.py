"""Format times, numbers and names for people."""

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral

UNDEFINED = "n/a"
"""Text for an undefined value, such as the mean runtime of an empty group."""

LONGEST_NAME = 60
"""Longer names from a log are shortened in output."""


def sanitize(name: str, longest: int = LONGEST_NAME) -> str:
    r"""Return a name from a log in a form that is safe to print: one line, without control characters, escapes or changes of direction.

    >>> sanitize("a\x1b[31mred"), sanitize("two\nlines"), len(sanitize("x" * 100))
    ('a\\x1b[31mred', 'two\\nlines', 60)
    """
    return printable(name if len(name) <= longest else f"{name[: longest - 3]}...")


def first_clause(meaning: str) -> str:
    """Return the first clause of the meaning of a rule, for a line of output; pages show the complete meaning.

    >>> first_clause("The job has not ended: it is left out.")
    'The job has not ended'
    """
    return re.split(r"[:;.](?=\s|$)", meaning, maxsplit=1)[0]


def lower_first(name: str) -> str:
    """Return the name of a policy for use within a sentence.

    >>> lower_first("Conservative"), lower_first("EASY")
    ('conservative', 'EASY')
    """
    return name[0].lower() + name[1:] if name.startswith(("Conservative", "Hybrid", "No backfilling")) else name


def listed(items: Sequence[str]) -> str:
    """Join items with commas and "and".

    >>> listed(["one"]), listed(["one", "two", "three"])
    ('one', 'one, two and three')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if necessary.

    >>> counted(1, "processor"), counted(1200, "job")
    ('1 processor', '1,200 jobs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def numbered(word: str, name: str | int) -> str:
    """Return a name, or a number after its word.

    >>> numbered("user", "alice"), numbered("user", 7)
    ('alice', 'user 7')
    """
    return f"{word} {name}" if str(name).isdecimal() else str(name)


def on_log(name: str) -> str:
    """Return `On` with the name of a log, or with `this log` for the names that a log has by default.

    >>> on_log("KTH-SP2"), on_log("log")
    ('On KTH-SP2', 'On this log')
    """
    return "On this log" if name in ("log", "workload") else f"On {name}"


def human_time(seconds: float) -> str:
    """Format a time, s, in its two largest useful units: seconds, minutes, hours up to two days, then days.

    >>> human_time(41), human_time(7500), human_time(3.25), human_time(1e6), human_time(float("nan"))
    ('41 s', '2 h 05 min', '3.2 s', '11 d 14 h', 'n/a')
    """
    return time_form([seconds])(seconds)


def time_form(seconds: Iterable[float], short: bool = False) -> Callable[[float], str]:
    """Return a function that formats times in one format that suits all given times, such as those in a column of a table.

    `short`: hours and minutes as `1:26 h`.

    >>> show, brief = time_form([0, 168_060, 230_400]), time_form([353_000, 5160], short=True)
    >>> show(0), show(168_060), show(230_400), brief(353_000), brief(-5160)
    ('0 h 00 min', '46 h 41 min', '64 h 00 min', '98:03 h', '-1:26 h')
    """
    sizes = [abs(one) for one in seconds if math.isfinite(one)]
    highest, lowest = max(sizes, default=0.0), min(filter(None, sizes), default=0.0)
    if round(highest) < 60:
        digits = 1 if highest < 9.95 and any(one != round(one) for one in sizes) else 0
        return lambda one: f"{one:z.{digits}f} s" if math.isfinite(one) else UNDEFINED
    if round(highest) < 3600:
        big, ratio, small, part = "min", 60, "s", 1
    elif round(lowest / 60) < 48 * 60:
        big, ratio, small, part = "h", 60, "min", 60
    else:
        big, ratio, small, part = "d", 24, "h", 3600

    def show(one: float) -> str:
        if not math.isfinite(one):
            return UNDEFINED
        count = round(abs(one) / part)
        sign, whole, rest = "-" if one < 0 and count else "", f"{count // ratio:,}", f"{count % ratio:02d}"
        return f"{sign}{whole}:{rest} h" if short and big == "h" else f"{sign}{whole} {big} {rest} {small}"

    return show


def human_number(value: float) -> str:
    """Format a ratio with three significant digits and thousands separators.

    >>> human_number(92.94), human_number(1234.5), human_number(1.5), human_number(float("nan"))
    ('92.9', '1,234', '1.50', 'n/a')
    """
    if not math.isfinite(value):
        return UNDEFINED
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{digits}f}"


def hours(value: float) -> str:
    """Format processor-hours; values of ten or more are rounded to whole hours.

    >>> hours(12345.6), hours(0.6088), hours(0.0), hours(math.nan)
    ('12,346', '0.61', '0', 'n/a')
    """
    return UNDEFINED if math.isnan(value) else f"{value:,.0f}" if value >= 10 or not value else f"{value:.2g}"


def human_percent(percent: float) -> str:
    """Format a percentage; small values are not rounded to 0, and values just below 100 are not rounded to 100.

    >>> human_percent(72.4), human_percent(4.25), human_percent(0.01), human_percent(99.99), human_percent(130_972), human_percent(-20.4)
    ('72 %', '4.2 %', '< 0.1 %', '> 99.9 %', '130,972 %', '-20 %')
    """
    if not math.isfinite(percent):
        return UNDEFINED
    if percent in (0, 100):
        return f"{percent:.0f} %"
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %" if abs(percent) < 9.95 or 99.5 <= percent < 100 else f"{percent:,.0f} %"


def percent(share: float) -> str:
    """Format a share as a percentage with one decimal place.

    >>> percent(0.70415), percent(float("nan"))
    ('70.4 %', 'n/a')
    """
    return f"{100 * share:.1f} %" if math.isfinite(share) else UNDEFINED


def human_difference(percent: float) -> str:
    """Format a relative difference, percent, with its sign.

    >>> human_difference(-94.96), human_difference(2.04), human_difference(0.0), human_difference(1450)
    ('-95 %', '+2.0 %', '±0 %', '+1,450 %')
    """
    if not math.isfinite(percent):
        return ""
    if abs(percent) < 0.05:
        return "±0 %"
    digits = 1 if abs(percent) < 9.95 else 0
    return f"{'-' if percent < 0 else '+'}{abs(percent):,.{digits}f} %"


def to_error(value: float, error: float) -> str:
    """Format a number to the precision of its error, which is rounded to two significant digits.

    >>> to_error(12_345.6, 789.0), to_error(12.3456, 0.789), to_error(3.0, 0.0)
    ('12,350', '12.35', '3')
    """
    if not math.isfinite(value):
        return UNDEFINED
    digits = 0 if not 0 < error < math.inf else 1 - math.floor(math.log10(error))
    return f"{round(value, digits):,.{min(max(digits, 0), 6)}f}"


def shown_change(value: float, low: float, high: float) -> str:
    """Format a change in percent to the precision of its interval from `low` to `high`.

    >>> shown_change(-12.345, -20.0, -4.0), shown_change(1.234, 0.9, 1.5), shown_change(-0.2, -9, 10)
    ('-12 %', '+1.2 %', '±0 %')
    """
    half = (high - low) / 2
    digits = 1 if not 0 < half < math.inf else min(max(0, -math.floor(math.log10(half))), 2)
    shown = f"{value:+,.{digits}f}"
    return f"{shown if shown.strip('+-0.') else '±0'} %"


def shown(value: object) -> str:
    """Return a value as error messages show it: on one line, with at most 60 characters.

    >>> shown([1, "a"]), len(shown("x" * 100))
    ("[1, 'a']", 60)
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def quoted(text: str) -> str:
    """Return a text from a file in quotes, shortened to 30 characters, for messages."""
    return repr(text if len(text) <= 30 else text[:27] + "...")


def printable(path: str | os.PathLike[str]) -> str:
    """Return a path as one line of text, with control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in os.fspath(path))


def seed_fault(seed: object) -> str | None:
    """Return the error message for a seed that is not a whole number from 0 to 2**64 - 1; None for a valid seed."""
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        return f"a seed must be a whole number, not {shown(seed)}"
    number = int(seed)
    if not 0 <= number < 2**64:
        return f"a seed must be from 0 to 2^64 - 1, not {number if -(10**16) < number < 10**16 else 'one of over 16 digits'}"
    return None
