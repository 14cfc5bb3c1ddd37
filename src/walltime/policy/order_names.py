"""Queue orders by name, as on the command line and in campaign plans."""

from __future__ import annotations

from dataclasses import Field, replace
from pathlib import Path
from typing import Any

from walltime.errors import PolicyError
from walltime.policy.files import load_name
from walltime.policy.formulas import FORMULAS
from walltime.policy.orders import FCFS, SJF, WFP, Order, UserOrder
from walltime.policy.scores import SCORES, parse_score

ORDERS: dict[str, Order] = {order.name: order for order in (FCFS, SJF, WFP, *FORMULAS)}
"""The built-in orders by name."""
ALIASES = {"wfp3": "wfp"}
"""Other names of theirs."""


def parse_order(text: str) -> Order:
    """The order with this name, or the `walltime.order` function NAME of a file, written `FILE.py:NAME`.

    Orders may take options: `wfp:exponent=2,threshold=0.75`, `f1:submit-weight=500`, `sjf:starvation=86400`; `linear` and `power` are
    scores with weights: `linear:wait=1.2,area=-0.3`. Raises PolicyError listing the known orders, or the order's options.

    >>> parse_order("wfp:exponent=2").exponent
    2
    """
    head, _, options = text.strip().lower().partition(":")
    known = ORDERS.get(ALIASES.get(head, head))
    if known is not None:
        return _with_options(text, known, options)
    if head in SCORES:
        return parse_score(text)
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".py"):
        return _load(Path(file), name)
    raise PolicyError(f"unknown order {text!r}; known are {', '.join([*ORDERS, *SCORES])}, or FILE.py:NAME for one of your own")


def _with_options(text: str, order: Order, options: str) -> Order:
    """A built-in order with its options."""
    known = {field.name.replace("_", "-"): field for field in order.options()}
    given: dict[str, Any] = {}
    for option in options.split(",") if options else ():
        key, _, value = option.strip().partition("=")
        if key not in known or known[key].name in given:
            names = " and ".join(f"{name}=" for name in known)
            raise PolicyError(f"{option!r} is no option of the order {text!r}; " + (f"its options are {names}" if known else "it has none"))
        given[known[key].name] = _number(text, key, known[key], value)
    return replace(order, **given)


def _number(text: str, key: str, field: Field[Any], value: str) -> int | float:
    """An option's value, by the type of the field."""
    whole = str(field.type).startswith("int")
    try:
        return int(value) if whole else float(value)
    except ValueError:
        kind = " without a fraction" if whole else ""
        raise PolicyError(f"{key} of the order {text!r} must be a number{kind}, not {value!r}") from None


def _load(file: Path, name: str) -> Order:
    found = load_name(file, name, "order")
    if callable(found) and not isinstance(found, Order):
        found = UserOrder(name=name, function=found)
    if not isinstance(found, Order):
        raise PolicyError(f"{file} has no order named {name!r}")
    return found
