"""Queue orders written as an expression, `expr:log(wait+60)-log(planned)`, and whether its score never falls while a job waits."""

import ast
import functools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Self

from walltime.declared import FORMER_NAMES, Field, valid_options
from walltime.errors import PolicyError
from walltime.policy.orders import HISTORY, SYSTEM_STATE, Name, ScoredOrder, Starvation, WaitShare
from walltime.wording import counted, shown

_one_at_a_time = threading.Lock()

MAX_FACTOR = 1e6
"""Largest factor of a logarithm: logarithms are rounded, so a larger factor could make a growing score fall."""
MAX_PRODUCTS = 12
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
    "planned": Trend(0, 1.0, math.inf),
    "procs": Trend(0, 1.0, 1e8),
    "machine": Trend(0, 1.0, 1e8),
    "area": Trend(0, 1.0, math.inf),
    "elapsed": Trend(0, 0.0, math.inf),
    "requested": Trend(0, -1.0, math.inf),
}


@functools.lru_cache(maxsize=1024)
def never_falls(text: str, numbers: tuple[float, ...]) -> bool:
    """Return whether an expression with `k0`, `k1`, ... for its numbers provably never falls with time for a waiting job.

    >>> never_falls("log(wait+k0)-k1*log(planned)", (60.0, 0.5)), never_falls("k0*wait/planned", (-1.0,))
    (True, False)
    """
    if text.count("*") > MAX_PRODUCTS or any(abs(number) > MAX_FACTOR for number in numbers):
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
        if other.sign != 0 or other.low <= 0 or (other.has_log and other.low < 1 / MAX_FACTOR):
            return None  # the divisor may be 0, or changes
        other = Trend(0, 0.0 if other.high == math.inf else 1 / other.high, 1 / other.low, other.has_log)
    corners = [0.0 if a == 0 or b == 0 else a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    if has_log and max(map(abs, corners)) > MAX_FACTOR:
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


MEASURED = ("wait", "planned", "requested", "procs", "elapsed", "longest", "hour", "weekday", *SYSTEM_STATE)
"""Arguments of orders that an expression may use: quantities, but not codes such as a user's number."""
TINY, LARGE = 1e-9, 700.0
"""The smallest argument of logarithms and the largest of exp; arguments beyond these are replaced by them."""

FUNCTIONS: dict[str, tuple[str, int, str]] = {
    "log": ("math.log({0} if {0} > TINY else TINY)", 1, "the natural logarithm of at least 1e-9"),
    "sqrt": ("math.sqrt({0} if {0} > 0.0 else 0.0)", 1, "the square root; 0 for negative arguments"),
    "exp": ("math.exp({0} if {0} < LARGE else LARGE)", 1, "the exponential function of at most 700"),
    "tanh": ("math.tanh({0})", 1, "the hyperbolic tangent, from -1 to 1"),
    "min": ("({1} if {1} < {0} else {0})", 2, "the smaller of two, as in min(wait,3600)"),
    "max": ("({1} if {1} > {0} else {0})", 2, "the larger of two"),
}
"""The functions of expressions: Python source, number of arguments, and description."""
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED = {ast.Lt: "<", ast.Gt: ">"}


class Template(NamedTuple):
    """An expression without its numbers, as a function of its names and numbers that is compiled only once.

    `text`: with `k0`, `k1`, ... in place of the numbers; `names`: the arguments of orders; `numbers`: the numbers in the order of the text.
    """

    text: str
    names: tuple[str, ...]
    numbers: tuple[float, ...]

    def fill(self, numbers: tuple[float, ...]) -> str:
        """Return the formula with these numbers, `2` for `2.0`."""
        text = self.text
        for place in reversed(range(len(numbers))):
            text = text.replace(f"k{place}", repr(numbers[place]).removesuffix(".0"))
        return text


@functools.lru_cache(maxsize=4096)
def parse_formula(formula: str) -> Template:
    """Return the template of a formula; raises PolicyError for an invalid expression.

    >>> parse_formula("log(wait + 60) - 2 * log(area)").text
    'log(wait+k0)-k1*log(area)'
    """
    try:
        tree = parse_expression(formula)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PolicyError(f"{shown(formula)} is not an expression; write one such as log(wait+60)-log(planned)") from None
    names: dict[str, None] = {}
    numbers: list[float] = []
    text, _ = _canonical(tree, names, numbers)
    if not names:
        raise PolicyError(f"{shown(formula)} is the same for all jobs; use a name such as wait or planned")
    return Template(text, tuple(names), tuple(numbers))


def _canonical(node: ast.expr, names: dict[str, None], numbers: list[float]) -> tuple[str, int]:
    """Return the canonical text of a part of an expression and its precedence; collect its names and numbers."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and math.isfinite(value):
            numbers.append(float(value))
            return f"k{len(numbers) - 1}", 4
        case ast.Name(id=name):
            name = FORMER_NAMES.get(name, name)
            known = [*MEASURED, "area", *HISTORY]
            if name not in known:
                raise PolicyError(f"unknown name {shown(name)} in an expression{valid_options(name, known)}")
            names |= dict.fromkeys(("planned", "procs") if name == "area" else (name,))
            return name, 4
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as number):
            text, binds = _canonical(number, names, numbers)
            numbers[-1] = -numbers[-1]  # a template is the same for both signs of a number
            return text, binds
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return f"-{_within(inner, 3, names, numbers)}", 3
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            binds = 1 if isinstance(sign, ast.Add | ast.Sub) else 2
            first = _within(left, binds, names, numbers)
            return f"{first}{_SIGNS[type(sign)]}{_within(right, binds + 1, names, numbers)}", binds
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARED:
            first = _within(left, 1, names, numbers)
            return f"{first}{_COMPARED[type(sign)]}{_within(right, 1, names, numbers)}", 0
        case ast.Call(func=ast.Name(id=name), args=inner, keywords=[]) if name in FUNCTIONS:
            takes = FUNCTIONS[name][1]
            if len(inner) != takes:
                raise PolicyError(f"{name} takes {counted(takes, 'argument')}, not {len(inner)}")
            return f"{name}({','.join(_canonical(one, names, numbers)[0] for one in inner)})", 4
    raise PolicyError(
        f"{shown(ast.unparse(node))} is not allowed in an expression; allowed: numbers, names, + - * / < > and {', '.join(FUNCTIONS)}"
    )


def _within(node: ast.expr, binds: int, names: dict[str, None], numbers: list[float]) -> str:
    """Return a part's canonical text, in brackets if its precedence is lower."""
    text, own = _canonical(node, names, numbers)
    return f"({text})" if own < binds else text


@functools.lru_cache(maxsize=1024)
def _function(text: str, names: tuple[str, ...], numbers: int) -> Callable[..., float]:
    """Return the function of a template; its numbers are the parameters with defaults."""
    steps = _Steps()
    body = ast.unparse(steps.visit(parse_expression(text)))
    lines = [f"    {name} = {name} * 1.0" for name in names]
    lines += ["    area = planned * procs"] if "area" in text else []
    parameters = ", ".join([*names, *(f"k{place}=0.0" for place in range(numbers))])
    known: dict[str, Any] = {"math": math, "TINY": TINY, "LARGE": LARGE}
    exec("\n".join([f"def score({parameters}):", *lines, *steps.lines, f"    return 1.0 * ({body})"]), known)
    function: Callable[..., float] = known["score"]
    return function


class _Steps(ast.NodeTransformer):
    """A transformer of expressions into compilable Python: arguments of functions become variables (`lines`), comparisons become 1 or 0."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        names = []
        for argument in node.args:
            names.append(f"t{len(self.lines)}")
            self.lines.append(f"    {names[-1]} = 1.0 * ({ast.unparse(argument)})")
        return parse_expression(FUNCTIONS[ast.unparse(node.func)][0].format(*names))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return ast.IfExp(node, ast.Constant(1.0), ast.Constant(0.0))


@dataclass(frozen=True)
class Expression(ScoredOrder):
    """An order by an expression, such as `log(wait+60)-2*log(area)`; the highest value comes first.

    It may name `wait, planned, requested, elapsed, longest` (s; `longest` is the longest wait so far), `procs`, `area` (planned x procs,
    processor seconds), and `hour, weekday`. It may also name the state of queue and machine: `waiting` jobs, the work `queued` (processor
    seconds), `free` processors, and all processors of the `machine`. Past use by the job's user, group, queue or partition has names such
    as `user_used`. Its numbers are parameters of the compiled function, so an expression with other numbers is not compiled again.

    >>> Expression(formula="log(wait + 60.0) - log(planned)").label
    'expr:log(wait+60)-log(planned)'
    >>> Expression(formula="wait/planned").score(wait=120, planned=60, procs=4, submit=0)
    2.0
    """

    positional = ("formula",)

    name: Name = "expr"
    formula: Annotated[str, Field(label="an expression such as log(wait+60)-log(planned)")] = field(kw_only=True)
    """numbers, names, `+ - * /`, `< >` (1 or 0), and functions"""
    last: Annotated[int | None, Field(least=1)] = None
    """period of past use, s"""
    half_life: Annotated[int | None, Field(least=1)] = None
    """in place of `last`: all past use counts, with this half-life, s"""
    starvation: Starvation = None
    max_wait_share: WaitShare = None

    def __post_init__(self) -> None:
        super().__post_init__()
        template = parse_formula(self.formula)
        object.__setattr__(self, "formula", template.fill(template.numbers))
        if self.history_of and (self.last is None) == (self.half_life is None):
            name = next(name for name in self.arguments if name in HISTORY)
            raise PolicyError(f"{name} counts past use; set its period: last=SECONDS, or half-life=SECONDS")

    @property
    def template(self) -> Template:
        """Return the expression without its numbers, and the numbers."""
        return parse_formula(self.formula)

    @property
    def scoring(self) -> Callable[..., float]:
        """Return the function of the template, the same for all numbers."""
        template = self.template
        return _function(template.text, template.names, len(template.numbers))

    @property
    def is_monotone(self) -> bool:
        """Return whether it provably never falls while a job waits."""
        template = self.template
        return never_falls(template.text, template.numbers)

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the numbers."""
        return self.template.numbers

    def but(self, numbers: tuple[float, ...]) -> Self:
        """Return the order with other numbers, in the order of the text."""
        return replace(self, formula=self.template.fill(numbers))
