"""Monotonicity of expressions: if a score never falls while a job waits, the engine need not score every job at every pass."""

import ast
import functools
import math
import threading
from typing import NamedTuple

_one_at_a_time = threading.Lock()

LARGE = 1e6
"""Largest factor of a logarithm: logarithms are rounded, so a larger factor could make a growing score fall."""
MAX_FACTORS = 12
"""Largest number of products in a score; with more, the score could overflow."""


def parse_expression(text: str) -> ast.expr:
    """Return the syntax tree of an expression; one thread at a time, as CPython up to 3.11.7 may raise SystemError (gh-106905)."""
    with _one_at_a_time:
        return ast.parse(text, mode="eval").body


class Trend(NamedTuple):
    """The change of a value over time (1: never falls, -1: never rises, 0: constant), its bounds, and whether it contains a logarithm."""

    sign: int
    low: float
    high: float
    has_log: bool = False


_KNOWN = {
    "wait": Trend(1, 0.0, math.inf),
    "believed": Trend(0, 1.0, math.inf),
    "procs": Trend(0, 1.0, 1e8),
    "machine": Trend(0, 1.0, 1e8),
    "area": Trend(0, 1.0, math.inf),
    "elapsed": Trend(0, 0.0, math.inf),
    "requested": Trend(0, -1.0, math.inf),
}


@functools.lru_cache(maxsize=1024)
def never_falls(text: str, numbers: tuple[float, ...]) -> bool:
    """Return whether an expression with `k0`, `k1`, ... for its numbers provably never falls with time for a waiting job.

    >>> never_falls("log(wait+k0)-k1*log(believed)", (60.0, 0.5)), never_falls("k0*wait/believed", (-1.0,))
    (True, False)
    """
    if text.count("*") > MAX_FACTORS or any(abs(number) > LARGE for number in numbers):
        return False
    trend = _trend(parse_expression(text), numbers)
    return trend is not None and trend.sign >= 0


def _trend(node: ast.expr, numbers: tuple[float, ...]) -> Trend | None:
    """Return the trend of a part; None if unknown."""
    match node:
        case ast.Name(id=name):
            if name in _KNOWN:
                return _KNOWN[name]
            if not (name[0] == "k" and name[1:].isdigit()):
                return None  # calendar, longest wait, queue and past usage cannot be predicted
            value = numbers[int(name[1:])]
            return Trend(0, value, value)
        case ast.UnaryOp(operand=inner):
            trend = _trend(inner, numbers)
            return None if trend is None else _negate(trend)
        case ast.BinOp(left=left, op=sign, right=right):
            return _combine(sign, _trend(left, numbers), _trend(right, numbers))
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            trend = _combine(ast.Sub(), _trend(left, numbers), _trend(right, numbers))
            if trend is None or trend.has_log:  # rounding may flip a comparison with a logarithm
                return None
            return Trend(trend.sign if isinstance(sign, ast.Gt) else -trend.sign, 0.0, 1.0)
        case ast.Call(func=ast.Name(id=name), args=args):
            return _apply(name, [_trend(one, numbers) for one in args])
    return None


def _negate(one: Trend) -> Trend:
    return Trend(-one.sign, -one.high, -one.low, one.has_log)


def _combine(operator: ast.operator, one: Trend | None, other: Trend | None) -> Trend | None:
    """Return the trend of a sum, difference, product or quotient."""
    if one is None or other is None:
        return None
    if isinstance(operator, ast.Sub):
        operator, other = ast.Add(), _negate(other)
    has_log = one.has_log or other.has_log
    if isinstance(operator, ast.Add):
        sign = _common_sign(one, other)
        return None if sign is None else Trend(sign, one.low + other.low, one.high + other.high, has_log)
    if isinstance(operator, ast.Div):
        if other.sign != 0 or other.low <= 0 or (other.has_log and other.low < 1 / LARGE):
            return None  # the divisor may be 0, or changes
        other = Trend(0, 0.0 if other.high == math.inf else 1 / other.high, 1 / other.low, other.has_log)
    corners = [0.0 if a == 0 or b == 0 else a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    if has_log and max(map(abs, corners)) > LARGE:
        return None
    first, second = (_sign_of_product(b, a) for a, b in ((one, other), (other, one)))
    if first is None or second is None or first * second < 0:
        return None
    return Trend(first or second, min(corners), max(corners), has_log)


def _sign_of_product(factor: Trend, one: Trend) -> int | None:
    """Return the sign of change of factor x one with `one`; None if the factor may have either sign."""
    if one.sign == 0:
        return 0
    return one.sign if factor.low >= 0 else -one.sign if factor.high <= 0 else None


def _common_sign(*trends: Trend) -> int | None:
    """Return the direction in which all of these change; None if some rise and some fall."""
    signs = {one.sign for one in trends} - {0}
    return None if len(signs) > 1 else signs.pop() if signs else 0


def _apply(name: str, arguments: list[Trend | None]) -> Trend | None:
    """Return the trend of a function's value."""
    trends = [one for one in arguments if one is not None]
    if len(trends) < len(arguments):
        return None
    first = trends[0]
    if name == "log":
        low, high = (math.log(max(value, 1e-9)) if value < math.inf else 50.0 for value in (first.low, first.high))
        return Trend(first.sign, low, high, True)
    if name == "sqrt":
        low, high = (math.sqrt(max(value, 0.0)) for value in (first.low, first.high))
        return None if first.has_log else Trend(first.sign, low, high)
    if name == "tanh":
        return Trend(first.sign, math.tanh(first.low), math.tanh(first.high), True)
    sign = _common_sign(*trends)
    if name in ("min", "max") and sign is not None:
        choose = min if name == "min" else max
        low, high = choose(one.low for one in trends), choose(one.high for one in trends)
        return Trend(sign, low, high, any(one.has_log for one in trends))
    return None
