"""Queue orders written as an expression: `expr:log(wait+60)-log(planned)`."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

from walltime.declared import FORMER_NAMES, Field, valid_options
from walltime.errors import PolicyError
from walltime.policy.growth import never_falls, parse_expression
from walltime.policy.orders import HISTORY, SYSTEM_STATE, Name, ScoredOrder, Starvation, WaitShare
from walltime.wording import counted, shown

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

    def but(self, numbers: tuple[float, ...]) -> Expression:
        """Return the order with other numbers, in the order of the text."""
        return replace(self, formula=self.template.fill(numbers))
