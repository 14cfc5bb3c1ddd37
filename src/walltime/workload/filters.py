"""A small language for selecting jobs by their columns, in the notation of the archive's cleaning filters.

    user=21 and 13716<job<16208
    (user=174 or group=3) and not runtime >= 2h
    procs > 64 and submit < 30d
    user = 'alice' and partition != 'debug'

Comparisons are =, !=, <, <=, >, >= and may be chained; they are combined with `and`, `or`, `not` and parentheses. Values are
whole numbers of up to 18 digits, tasks of arrays such as 27_3, times with a unit (s, m, h, d, w), or names in quotes, if the log has
names. All columns of the workload can be used; `job` is `job_id`.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from walltime.declared import valid_options
from walltime.errors import PolicyError, WorkloadError
from walltime.wording import shown
from walltime.workload import Workload

Array = np.ndarray

MOST_DIGITS = 18
"""Maximum number of digits of a number, so that it fits an int64."""
MOST_DEPTH = 100
"""Maximum number of parentheses and `not` around a comparison."""
SHOWN = 200
"""Maximum number of characters of a filter in an error message."""
OWN = ("job_id", "submit", "runtime", "requested", "procs", "planned")
COMPARE: dict[str, Callable[[Array | int, Array | int], Array]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
TOKEN = re.compile(
    r"\s*(?:(?P<task>[0-9]+_[0-9]+)\b|(?P<number>-?[0-9]+)(?P<unit>[smhdw]?)\b|(?P<word>[A-Za-z_]\w*)"
    r"""|(?P<name>'[^']*'|"[^"]*")|(?P<sign><=|>=|!=|==|[<>=()]))"""
)


def select(workload: Workload, text: str) -> Array:
    """Return a mask (bool, shape (jobs,), in order of arrival) of the jobs that a filter selects.

    Raises PolicyError with the position of a syntax error, and for a column that the workload does not have.

    >>> jobs = Workload.from_arrays(submit=[0, 5, 9], runtime=[60, 7200, 10], procs=[1, 2, 4], machine_procs=4)
    >>> select(jobs, "runtime > 1h or 2 < job <= 3").tolist()
    [False, True, True]
    """
    return _Parser(workload, text).parse()


@dataclass(frozen=True)
class _Token:
    text: str
    place: int
    value: int | None = None
    name: str | None = None


class _Parser:
    """Reads a filter from left to right, and computes its mask at the same time."""

    def __init__(self, workload: Workload, text: str):
        self.workload = workload
        self.text = text
        self.tokens = self._tokens()
        self.next = 0
        self.depth = 0

    def parse(self) -> Array:
        mask = self._disjunction()
        if self.next < len(self.tokens):
            raise self._error("missing_conjunction", "'and' or 'or'", self.tokens[self.next])
        return mask

    def _tokens(self) -> list[_Token]:
        tokens, place = [], 0
        text = self.text.rstrip()
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                rest = text[place:].strip()
                raise PolicyError(f"{self._name()} has {rest[0]!r} where a column, a number or a comparison is expected", "filter_syntax")
            start = match.start() + len(match.group()) - len(match.group().lstrip())
            if match["task"] is not None:
                tokens.append(_Token(match["task"], start, self.workload.job_number(match["task"])))
            elif match["number"] is not None:
                digits = len(match["number"].lstrip("-"))
                if digits > MOST_DIGITS:
                    what = f"a number of {digits} digits (character {start + 1}); at most {MOST_DIGITS} are allowed"
                    raise PolicyError(f"{self._name()} has {what}", "filter_syntax")
                tokens.append(_Token(match.group().strip(), start, int(match["number"]) * UNITS[match["unit"]]))
            elif match["name"] is not None:
                tokens.append(_Token(match["name"], start, name=match["name"][1:-1]))
            else:
                tokens.append(_Token((match["word"] or match["sign"]).lower(), start))
            place = match.end()
        return tokens

    def _name(self) -> str:
        return f"the filter {self.text!r}" if len(self.text) <= SHOWN else f"the filter that begins with {self.text[:SHOWN]!r}"

    def _error(self, code: str, wanted: str, token: _Token | None = None) -> PolicyError:
        where = "at its end" if token is None else f"at {token.text[:SHOWN]!r} (character {token.place + 1})"
        return PolicyError(f"{self._name()} needs {wanted} {where}", code)

    def _peek(self) -> _Token | None:
        return self.tokens[self.next] if self.next < len(self.tokens) else None

    def _take(self, *texts: str) -> bool:
        token = self._peek()
        if token is not None and token.text in texts:
            self.next += 1
            return True
        return False

    def _disjunction(self) -> Array:
        mask = self._conjunction()
        while self._take("or"):
            mask = mask | self._conjunction()
        return mask

    def _conjunction(self) -> Array:
        mask = self._term()
        while self._take("and"):
            mask = mask & self._term()
        return mask

    def _term(self) -> Array:
        is_negated = self._take("not")
        if not is_negated and not self._take("("):
            return self._comparison()
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise PolicyError(f"{self._name()} has over {MOST_DEPTH} nested parentheses or nots; simplify it", "filter_syntax")
        mask = ~self._term() if is_negated else self._disjunction()
        if not is_negated and not self._take(")"):
            raise self._error("missing_parenthesis", "a closing parenthesis", self._peek())
        self.depth -= 1
        return mask

    def _comparison(self) -> Array:
        left = self._operand()
        mask: Array | None = None
        while (sign := self._peek()) is not None and sign.text in COMPARE:
            self.next += 1
            right = self._operand()
            values = self._value(left, right, sign), self._value(right, left, sign)
            part = np.broadcast_to(COMPARE[sign.text](*values), (len(self.workload),))
            mask = part if mask is None else mask & part
            left = right
        if mask is None:
            raise self._error("missing_comparison", "a comparison such as = or <", self._peek())
        return mask

    def _operand(self) -> _Token:
        """Return the next token, which must be a column, a number or a name; raises PolicyError for others."""
        token = self._peek()
        if token is None or token.text in COMPARE or token.text in ("and", "or", "not", "(", ")"):
            raise self._error("missing_operand", "a column or a number", token)
        self.next += 1
        if token.value is None and token.name is None:
            self._column(token.text)
        return token

    def _value(self, token: _Token, other: _Token, sign: _Token) -> Array | int:
        """Return the value of an operand; names are looked up in the column on the other side."""
        if token.value is not None:
            return token.value
        if token.name is None:
            return self._column(token.text)
        if sign.text not in ("=", "==", "!=") or other.value is not None or other.name is not None:
            raise self._error("wrong_comparison", "= or != between a column and a name", sign)
        number = self.workload.origin.number_of(other.text, token.name)
        if number < 0:
            log = self.workload.origin.name
            raise PolicyError(
                f"{self._name()}: {log} has no {other.text} {shown(token.name)}; give a name that occurs in it", "unknown_name"
            )
        return number

    def _column(self, name: str) -> Array:
        name = "job_id" if name == "job" else name
        known = [*OWN, *self.workload.columns]
        if name not in known:
            raise PolicyError(
                f"{self._name()} names the unknown column {name[:SHOWN]!r}{valid_options(name[:SHOWN], known)}", "unknown_column"
            )
        column: Array = getattr(self.workload, name) if name in OWN else self.workload.columns[name]
        return column


def parse_seconds(text: str) -> int:
    """Parse a duration such as 3600, 90m or 1h; return s, at least 1. Raises PolicyError.

    >>> parse_seconds("90m")
    5400
    """
    match = re.fullmatch(r"([0-9]{1,12})([smhdw]?)", text.strip())
    seconds = int(match[1]) * UNITS[match[2]] if match else 0
    if seconds < 1:
        raise PolicyError(f"{text!r} is not a duration; give seconds, or a number with m, h, d or w, such as 1h", "wrong_duration")
    return seconds


def parse_span(text: str) -> tuple[int, int]:
    """Parse a span such as 30d:60d; return begin and end, s. Raises PolicyError.

    >>> parse_span("30d:60d")
    (2592000, 5184000)
    """
    match = re.fullmatch(r"([0-9]{1,12})([smhdw]?):([0-9]{1,12})([smhdw]?)", text.strip())
    if match is None:
        raise PolicyError(f"the window {shown(text)} must have the form BEGIN:END, such as 86400:172800, 30d:60d or 1997-05-01:1997-08-01")
    return int(match[1]) * UNITS[match[2]], int(match[3]) * UNITS[match[4]]


def span_of(workload: Workload, text: str) -> tuple[int, int]:
    """Return begin and end of a span, s from the start of a log: as `parse_span`, or from two dates in the log's time zone.

    The span 1997-05-01:1997-08-01 ends before the second date. Raises PolicyError, and WorkloadError if the start of the log is unknown.
    """
    match = re.fullmatch(r"([0-9]{4}-[0-9][0-9]-[0-9][0-9]):([0-9]{4}-[0-9][0-9]-[0-9][0-9])", text.strip())
    if match is None:
        return parse_span(text)
    start = workload.origin.unix_start_time
    if start is None:
        raise WorkloadError(
            f"the window {text} has dates, but the start of {workload.origin.name} is unknown; use days, as in 30d:60d",
            "unknown_start_time",
        )
    try:
        begin, end = (datetime.fromisoformat(date).replace(tzinfo=workload.origin.tzinfo()) for date in match.groups())
    except ValueError as fault:
        raise PolicyError(f"the window {text!r} has a date that does not exist; correct it", "wrong_date") from fault
    return int(begin.timestamp()) - start, int(end.timestamp()) - start
