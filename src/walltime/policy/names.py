"""Policies and orders by name, as the command line and the campaign files spell them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from walltime.errors import PolicyError
from walltime.policy.orders import FCFS, ORDERS, Order, UserOrder, Wfp
from walltime.policy.policies import Conservative, Easy, Fcfs, Hybrid, Policy

WITHOUT_BACKFILL_ORDER = ("fcfs", "conservative", "conservative-compress", "conservative-scratch")
POLICY_NAMES = ("fcfs", "easy", "conservative", "conservative-scratch", "hybrid:DEPTH")


def parse_policy(text: str, order: Order = FCFS, backfill_order: Order | None = None) -> Policy:
    """The policy of this name, with these orders; raises PolicyError naming the known ones.

    >>> parse_policy("hybrid:3").depth
    3
    """
    name, _, parameter = text.strip().lower().partition(":")
    if backfill_order is not None and name in WITHOUT_BACKFILL_ORDER:
        raise PolicyError(f"{name} has no backfill order of its own; leave it out, or take easy or hybrid:DEPTH")
    match name, parameter:
        case "fcfs", "":
            return Fcfs(order=order)
        case "easy", "":
            return Easy(order=order, backfill_order=backfill_order)
        case (("conservative" | "conservative-compress"), ""):
            return Conservative(order=order)
        case "conservative-scratch", "":
            return Conservative(order=order, variant="scratch")
        case "hybrid", depth if depth.isdecimal():
            return Hybrid(order=order, backfill_order=backfill_order, depth=int(depth))
    raise PolicyError(f"unknown policy {text!r}; known are {', '.join(POLICY_NAMES)}")


def parse_policies(texts: Sequence[str], order: Order = FCFS, backfill_order: Order | None = None) -> list[Policy]:
    """The policies of these names; those that have a backfill order get it.

    Raises PolicyError for an unknown name, and where none of them has a backfill order but one is given.
    """
    takes = [text.strip().lower() not in WITHOUT_BACKFILL_ORDER for text in texts]
    if backfill_order is not None and not any(takes):
        raise PolicyError(f"none of {', '.join(texts)} has a backfill order of its own; leave it out, or add easy or hybrid:DEPTH")
    return [parse_policy(text, order, backfill_order if taken else None) for text, taken in zip(texts, takes, strict=True)]


def parse_order(text: str) -> Order:
    """The order of this name, or the `walltime.order` function NAME of a file, spelled `FILE.py:NAME`.

    `wfp` takes options: `wfp:exponent=2,threshold=0.75`. Raises PolicyError naming the known orders.

    >>> parse_order("wfp:exponent=2").exponent
    2
    """
    known = ORDERS.get(text.strip().lower())
    if known is not None:
        return known
    head, _, options = text.strip().lower().partition(":")
    if head == "wfp":
        return _wfp(text, options)
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".py"):
        return _load(Path(file), name)
    raise PolicyError(f"unknown order {text!r}; known are {', '.join(ORDERS)}, or FILE.py:NAME for one of your own")


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
    if not file.is_file():
        raise PolicyError(f"no file {file} to take the order {name!r} from")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises is the user's to see, in one line
        raise PolicyError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if callable(found) and not isinstance(found, Order):
        found = UserOrder(name=name, function=found)
    if not isinstance(found, Order):
        raise PolicyError(f"{file} has no order named {name!r}")
    return found
