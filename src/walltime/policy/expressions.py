"""Queue orders written as an expression of what a scheduler knows: `expr:log(wait+60)-log(believed)`."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from walltime.declared import Key, valid_options
from walltime.errors import PolicyError
from walltime.policy.growth import never_falls, tree_of
from walltime.policy.orders import ARGUMENTS, HISTORY, STANDING, Limit, Name, ScoredOrder, Starvation
from walltime.wording import shown

MEASURED = ("wait", "believed", "requested", "procs", "elapsed", "longest", "hour", "weekday", *STANDING)
"""The arguments of orders that an expression may name; codes such as a user's number say nothing there."""
TINY, LARGE = 1e-9, 700.0
"""Below the one, logarithms are those of it; above the other, so are powers of e."""


FUNCTIONS: dict[str, tuple[str, int, str]] = {
    "log": ("math.log({0} if {0} > TINY else TINY)", 1, "the natural logarithm; of less than 1e-9 that of 1e-9"),
    "sqrt": ("math.sqrt({0} if {0} > 0.0 else 0.0)", 1, "the square root; of less than 0 that of 0"),
    "exp": ("math.exp({0} if {0} < LARGE else LARGE)", 1, "the power of e; of more than 700 that of 700"),
    "tanh": ("math.tanh({0})", 1, "the hyperbolic tangent, from -1 to 1"),
    "min": ("({1} if {1} < {0} else {0})", 2, "the smaller of two, as in min(wait,3600)"),
    "max": ("({1} if {1} > {0} else {0})", 2, "the larger of two"),
}
"""The functions of expressions: in Python, of the names of their arguments; how many these are; and what they give."""
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED = {ast.Lt: "<", ast.Gt: ">"}


class Form(NamedTuple):
    """An expression without its numbers: a function of what it names and of the numbers, which is compiled once.

    `text`: with `k0`, `k1`, ... for the numbers; `names`: what it names; `numbers`: in the order of the text.
    """

    text: str
    names: tuple[str, ...]
    numbers: tuple[float, ...]


@functools.lru_cache(maxsize=4096)
def form_of(formula: str) -> Form:
    """The form and the numbers of a formula; raises PolicyError for what an expression cannot be.

    >>> form_of("log(wait + 60) - 2 * log(area)").text
    'log(wait+k0)-k1*log(area)'
    """
    try:
        tree = tree_of(formula)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PolicyError(f"{shown(formula)} is no expression; write one such as log(wait+60)-log(believed)") from None
    names: dict[str, None] = {}
    numbers: list[float] = []
    text, _ = _written(tree, names, numbers)
    if not names:
        raise PolicyError(f"{shown(formula)} is the same for all jobs; name what it depends on, such as wait or believed")
    return Form(text, tuple(names), tuple(numbers))


def _written(node: ast.expr, names: dict[str, None], numbers: list[float]) -> tuple[str, int]:
    """A part of an expression in the one spelling that it has here, and how strongly it binds; its names and numbers are noted."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and math.isfinite(value):
            numbers.append(float(value))
            return f"k{len(numbers) - 1}", 4
        case ast.Name(id=name):
            names |= dict.fromkeys(_asked(name))
            return name, 4
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as number):
            text, binds = _written(number, names, numbers)
            numbers[-1] = -numbers[-1]  # so that a form is the same whatever the sign of a number
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
                raise PolicyError(f"{name} takes {takes} argument{'s' if takes > 1 else ''}, not {len(inner)}")
            return f"{name}({','.join(_written(one, names, numbers)[0] for one in inner)})", 4
    what = shown(ast.unparse(node))
    raise PolicyError(f"{what} cannot be part of an expression, which has numbers, names, + - * / < > and {', '.join(FUNCTIONS)}")


def _within(node: ast.expr, binds: int, names: dict[str, None], numbers: list[float]) -> str:
    text, own = _written(node, names, numbers)
    return f"({text})" if own < binds else text


def _asked(name: str) -> tuple[str, ...]:
    """The arguments of an order that a name stands for."""
    if name == "area":
        return ("believed", "procs")
    if name in MEASURED or name in HISTORY:
        return (name,)
    known = [*MEASURED, "area", *HISTORY]
    raise PolicyError(f"unknown name {shown(name)} in an expression{valid_options(name, known)}")


@functools.lru_cache(maxsize=1024)
def _function(text: str, names: tuple[str, ...], numbers: int) -> Callable[..., float]:
    """The function of a form: of what it names, and of its numbers, which have defaults, so that they are told apart."""
    steps = _Steps()
    body = ast.unparse(steps.visit(tree_of(text)))
    lines = [f"    {name} = {name} * 1.0" for name in names]
    lines += ["    area = believed * procs"] if "area" in text else []
    given = ", ".join([*names, *(f"k{place}=0.0" for place in range(numbers))])
    known: dict[str, Any] = {"math": math, "TINY": TINY, "LARGE": LARGE}
    exec("\n".join([f"def score({given}):", *lines, *steps.lines, f"    return 1.0 * ({body})"]), known)
    function: Callable[..., float] = known["score"]
    return function


class _Steps(ast.NodeTransformer):
    """What functions are called with gets names, in `lines`, and a comparison is 1 or 0: plain Python that is compiled as it is."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        names = []
        for argument in node.args:
            names.append(f"t{len(self.lines)}")
            self.lines.append(f"    {names[-1]} = 1.0 * ({ast.unparse(argument)})")
        return tree_of(FUNCTIONS[ast.unparse(node.func)][0].format(*names))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return ast.IfExp(node, ast.Constant(1.0), ast.Constant(0.0))


def _canonical(formula: str) -> str:
    """A formula in the one spelling that it has here: `2` for `2.0`, no spaces."""
    form = form_of(formula)
    text = form.text
    for place in reversed(range(len(form.numbers))):
        text = text.replace(f"k{place}", repr(form.numbers[place]).removesuffix(".0"))
    return text


@dataclass(frozen=True)
class Expression(ScoredOrder):
    """An order by an expression of what a scheduler knows, such as `log(wait+60)-2*log(area)`; the highest value comes first.

    It may name `wait, believed, requested, elapsed, longest` (s; `longest` is the longest wait so far), `procs`, `area` (believed x procs,
    processor seconds), `hour, weekday`, `waiting` jobs, the work `queued` (processor seconds), `free` processors, those of the
    `machine`, and what the job's user, group, queue or partition has had, as in `user_used`. Its numbers are parameters of the compiled
    function, so other numbers compile nothing.

    >>> Expression(formula="log(wait + 60.0) - log(believed)").label
    'expr:log(wait+60)-log(believed)'
    >>> Expression(formula="wait/believed").score(wait=120, believed=60, procs=4, submit=0)
    2.0
    """

    positional = ("formula",)

    name: Name = "expr"
    formula: Annotated[str, Key(said="an expression such as log(wait+60)-log(believed)")] = field(kw_only=True)
    """numbers, names, `+ - * /`, `< >` (1 or 0), and functions"""
    last: Annotated[int | None, Key(least=1)] = None
    """over how many seconds it is told what users, groups and queues have had"""
    half_life: Annotated[int | None, Key(least=1)] = None
    """in place of `last`: all of the past counts, half as much for every so many seconds"""
    starvation: Starvation = None
    """after so many seconds of waiting a job comes first"""
    limit: Limit = None
    """the same as a share of the longest wait so far; with both, it must have waited for longer than either"""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "formula", _canonical(self.formula))
        if self.history_of and (self.last is None) == (self.half_life is None):
            asked = next(name for name in self.asks() if name in HISTORY)
            raise PolicyError(f"the expression names {asked}; say over which time: last=SECONDS or half-life=SECONDS, one of them")

    @property
    def form(self) -> Form:
        """The expression without its numbers, and these."""
        return form_of(self.formula)

    @property
    def scoring(self) -> Callable[..., float]:
        """The function of the form, the same for all numbers."""
        form = self.form
        return _function(form.text, form.names, len(form.numbers))

    @property
    def growing(self) -> bool:
        """Whether it surely never falls while a job waits."""
        form = self.form
        return never_falls(form.text, form.numbers)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers."""
        return self.form.numbers

    def but(self, numbers: tuple[float, ...]) -> Expression:
        """The same with other numbers, in the order of the text."""
        from dataclasses import replace

        text = self.form.text
        for place in reversed(range(len(numbers))):
            text = text.replace(f"k{place}", f"({numbers[place]!r})" if numbers[place] < 0 else repr(numbers[place]))
        return replace(self, formula=text)


assert set(MEASURED) <= set(ARGUMENTS)
