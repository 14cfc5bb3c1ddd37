"""Whether the score of an expression can fall while a job waits: if it cannot, the engine need not score every job at every pass."""

from __future__ import annotations

import ast
import functools
import math
import threading
from typing import NamedTuple

_one_at_a_time = threading.Lock()

LARGE = 1e6
"""A logarithm is exact to 1 in 10**15 or so, and not sure to grow in the last digit: nothing larger than this may multiply one."""
MOST_FACTORS = 12
"""With more products a score could overflow."""


def tree_of(text: str) -> ast.expr:
    """The syntax tree of an expression; one thread at a time, as CPython up to 3.11.7 may raise SystemError where two parse (gh-106905)."""
    with _one_at_a_time:
        return ast.parse(text, mode="eval").body


class Course(NamedTuple):
    """How a value changes with time, 1 for never falling, -1 for never rising, 0 for not at all; its bounds; whether it has a logarithm."""

    sign: int
    low: float
    high: float
    has_log: bool = False


_KNOWN = {
    "wait": Course(1, 0.0, math.inf),
    "believed": Course(0, 1.0, math.inf),
    "procs": Course(0, 1.0, 1e8),
    "machine": Course(0, 1.0, 1e8),
    "area": Course(0, 1.0, math.inf),
    "elapsed": Course(0, 0.0, math.inf),
    "requested": Course(0, -1.0, math.inf),
}


@functools.lru_cache(maxsize=1024)
def never_falls(text: str, numbers: tuple[float, ...]) -> bool:
    """Whether an expression with `k0`, `k1`, ... for its numbers surely never falls with time, for a job that waits.

    >>> never_falls("log(wait+k0)-k1*log(believed)", (60.0, 0.5)), never_falls("k0*wait/believed", (-1.0,))
    (True, False)
    """
    if text.count("*") > MOST_FACTORS or any(abs(number) > LARGE for number in numbers):
        return False
    course = _course(tree_of(text), numbers)
    return course is not None and course.sign >= 0


def _course(node: ast.expr, numbers: tuple[float, ...]) -> Course | None:
    """The course of a part, None if it is not known."""
    match node:
        case ast.Name(id=name):
            if name in _KNOWN:
                return _KNOWN[name]
            if not (name[0] == "k" and name[1:].isdigit()):
                return None  # the hour, the longest wait, the queue, and what users have had: not known before it comes
            value = numbers[int(name[1:])]
            return Course(0, value, value)
        case ast.UnaryOp(operand=inner):
            course = _course(inner, numbers)
            return None if course is None else _negative(course)
        case ast.BinOp(left=left, op=sign, right=right):
            return _combined(sign, _course(left, numbers), _course(right, numbers))
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            course = _combined(ast.Sub(), _course(left, numbers), _course(right, numbers))
            if course is None or course.has_log:  # which side of the number a logarithm is on is not sure
                return None
            return Course(course.sign if isinstance(sign, ast.Gt) else -course.sign, 0.0, 1.0)
        case ast.Call(func=ast.Name(id=name), args=args):
            return _called(name, [_course(one, numbers) for one in args])
    return None


def _negative(one: Course) -> Course:
    return Course(-one.sign, -one.high, -one.low, one.has_log)


def _combined(operator: ast.operator, one: Course | None, other: Course | None) -> Course | None:
    """A sum, difference, product or quotient."""
    if one is None or other is None:
        return None
    if isinstance(operator, ast.Sub):
        operator, other = ast.Add(), _negative(other)
    has_log = one.has_log or other.has_log
    if isinstance(operator, ast.Add):
        signs = _agreed(one, other)
        return None if signs is None else Course(signs, one.low + other.low, one.high + other.high, has_log)
    if isinstance(operator, ast.Div):
        if other.sign != 0 or other.low <= 0 or (other.has_log and other.low < 1 / LARGE):
            return None  # the divisor may be 0, or changes
        other = Course(0, 0.0 if other.high == math.inf else 1 / other.high, 1 / other.low, other.has_log)
    corners = [0.0 if a == 0 or b == 0 else a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    if has_log and max(map(abs, corners)) > LARGE:
        return None
    first, second = (_times(b, a) for a, b in ((one, other), (other, one)))
    if first is None or second is None or first * second < 0:
        return None
    return Course(first or second, min(corners), max(corners), has_log)


def _times(factor: Course, one: Course) -> int | None:
    """How `one` times this factor changes with `one`; None if the factor may have either sign."""
    if one.sign == 0:
        return 0
    return one.sign if factor.low >= 0 else -one.sign if factor.high <= 0 else None


def _agreed(*courses: Course) -> int | None:
    """The direction in which all of these change; None if some rise and some fall."""
    signs = {one.sign for one in courses} - {0}
    return None if len(signs) > 1 else signs.pop() if signs else 0


def _called(name: str, given: list[Course | None]) -> Course | None:
    """The value of a function."""
    courses = [one for one in given if one is not None]
    if len(courses) < len(given):
        return None
    first = courses[0]
    if name == "log":
        low, high = (math.log(max(value, 1e-9)) if value < math.inf else 50.0 for value in (first.low, first.high))
        return Course(first.sign, low, high, True)
    if name == "sqrt":
        low, high = (math.sqrt(max(value, 0.0)) for value in (first.low, first.high))
        return None if first.has_log else Course(first.sign, low, high)
    if name == "tanh":
        return Course(first.sign, math.tanh(first.low), math.tanh(first.high), True)
    signs = _agreed(*courses)
    if name in ("min", "max") and signs is not None:
        choose = min if name == "min" else max
        low, high = choose(one.low for one in courses), choose(one.high for one in courses)
        return Course(signs, low, high, any(one.has_log for one in courses))
    return None
