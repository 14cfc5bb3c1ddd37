"""Queue orders by name, as on the command line and in campaign plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from walltime.errors import PolicyError
from walltime.policy.files import load_name
from walltime.policy.orders import ORDERS, Order, UserOrder, Wfp
from walltime.policy.scores import SCORES, parse_score


def parse_order(text: str) -> Order:
    """The order with this name, or the `walltime.order` function NAME of a file, written `FILE.py:NAME`.

    `wfp` takes options: `wfp:exponent=2,threshold=0.75`; `linear` and `power` are scores with weights: `linear:wait=1.2,area=-0.3`. Raises
    PolicyError listing the known orders.

    >>> parse_order("wfp:exponent=2").exponent
    2
    """
    known = ORDERS.get(text.strip().lower())
    if known is not None:
        return known
    head, _, options = text.strip().lower().partition(":")
    if head == "wfp":
        return _wfp(text, options)
    if head in SCORES:
        return parse_score(text)
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".py"):
        return _load(Path(file), name)
    raise PolicyError(f"unknown order {text!r}; known are {', '.join([*ORDERS, *SCORES])}, or FILE.py:NAME for one of your own")


def _wfp(text: str, options: str) -> Wfp:
    """WFP with its options."""
    given: dict[str, Any] = {}
    for option in options.split(","):
        key, _, value = option.strip().partition("=")
        if key not in ("exponent", "threshold") or key in given:
            raise PolicyError(f"{option!r} is no option of the order {text!r}; its options are exponent= and threshold=")
        try:
            given[key] = int(value) if key == "exponent" else float(value)
        except ValueError:
            raise PolicyError(f"{key} of the order {text!r} must be a number, not {value!r}") from None
    return Wfp(**given)


def _load(file: Path, name: str) -> Order:
    found = load_name(file, name, "order")
    if callable(found) and not isinstance(found, Order):
        found = UserOrder(name=name, function=found)
    if not isinstance(found, Order):
        raise PolicyError(f"{file} has no order named {name!r}")
    return found
