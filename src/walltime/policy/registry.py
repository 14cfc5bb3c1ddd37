"""The tables of policies and orders, and their specifications: `NAME:option=value,option=value`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields, replace
from typing import Any

from walltime.errors import PolicyError
from walltime.policy.base import Policy
from walltime.policy.conservative import Conservative
from walltime.policy.easy import Easy
from walltime.policy.fcfs import NoBackfilling
from walltime.policy.files import own
from walltime.policy.formulas import FORMULAS, SCORES, parse_score
from walltime.policy.hybrid import Hybrid
from walltime.policy.lookahead import Lookahead
from walltime.policy.multiqueue import MultiQueue
from walltime.policy.oar import Oar
from walltime.policy.orders import FCFS, SJF, WFP, Order, UserOrder
from walltime.policy.plain import OwnPolicy, PlainPolicy
from walltime.policy.relaxed import Relaxed
from walltime.policy.selective import Selective
from walltime.policy.slack import Slack
from walltime.policy.slurm import Slurm
from walltime.specification import literal

ORDERS: dict[str, Order] = {order.name: order for order in (FCFS, SJF, WFP, *FORMULAS)}
"""The built-in orders by name."""
ALIASES = {"wfp3": "wfp"}
"""Other names of theirs."""
POLICIES: tuple[type[Policy], ...] = (
    NoBackfilling,
    Easy,
    Conservative,
    Hybrid,
    Relaxed,
    Selective,
    Lookahead,
    MultiQueue,
    Slack,
    Slurm,
    Oar,
)
BY_NAME = {name: kind for kind in POLICIES for name in kind.names}
POLICY_NAMES = (
    "fcfs",
    "easy",
    "conservative",
    "conservative-scratch",
    "hybrid:depth=N",
    "relaxed",
    "selective",
    "los",
    "multiqueue",
    "slack",
    "slurm",
    "oar",
)
EVERY = (
    *("fcfs", "easy", "conservative", "conservative-scratch", "hybrid:depth=0", "hybrid:depth=4"),
    *(f"easy:order={order}" for order in ORDERS if order != "fcfs"),
    *("easy:order=saf:starvation=86400", "easy:backfill-order=sjf", "easy:backfill-order=saf", "easy:backfill-order=lxf"),
    *("relaxed", "selective", "selective:threshold=adaptive", "los", "los:ties=slowdown", "multiqueue", "slack"),
    *("hybrid:depth=1,fit=best", "hybrid:depth=1,fit=best,metric=seconds", "hybrid:depth=1,fit=greedy,metric=procseconds"),
)
"""Every policy that runs on a number of processors, with usual options, for a first look at a log."""


def split(text: str, more: Sequence[str] = ()) -> tuple[type[Policy] | Policy, dict[str, str]]:
    """The policy's class (or an instance from a file), and its options as text; options named in `more` are accepted too.

    A part that is not an option of the policy belongs to the preceding value, as in `easy:order=wfp:exponent=2,threshold=0.75`.
    Raises PolicyError for an unknown policy or option, listing the known ones.
    """
    text = text.strip()
    loaded = own(text, "policy")
    if loaded is not None:
        kind, rest = _of_file(loaded[0], text), loaded[1]
        implied: Mapping[str, Any] = {}
        if isinstance(kind, type) and (not issubclass(kind, Policy) or _has_own_parameters(kind)):
            return _own_policy(kind, text, rest, more)
    else:
        name, _, rest = text.partition(":")
        name = name.strip().lower()
        if name not in BY_NAME:
            raise PolicyError(f"unknown policy {text!r}; known are {', '.join(POLICY_NAMES)}, or FILE.py:NAME for one of your own")
        kind = BY_NAME[name]
        implied = kind.names[name]
    options = {name: str(value) for name, value in implied.items()}
    known = [*(option for option in _options(kind) if option not in implied), *more]
    by_letters = {_letters(option): option for option in known}
    given: dict[str, str] = {}
    last = None
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = part.partition("=")
        key = by_letters.get(_letters(key), key.strip().lower())
        bare = kind.bare
        if not equals and bare is not None and not given:
            key, equals, value = bare, "=", part
        if equals and key in known:
            if key in given or not value:
                raise PolicyError(f"{part!r} of the policy {text!r} is {'said twice' if key in given else 'empty'}")
            given[key] = value
            last = key
        elif last is not None and ":" in given[last]:
            given[last] += f",{part}"
        else:
            raise PolicyError(f"{part!r} is no option of the policy {text!r}; its options are {', '.join(known)}")
    return kind, options | given


def build(kind: type[Policy] | Policy, options: Mapping[str, str | Order]) -> Policy:
    """The policy with these options, as returned by `split`; raises PolicyError for an invalid value."""
    if isinstance(kind, Policy):
        if options:
            raise PolicyError(f"{kind.label} is an instance of a policy, so it takes no options; name its class")
        return kind
    if kind.bare is not None and kind.bare not in options:
        raise PolicyError(f"{kind.__name__.lower()} needs its {kind.bare}: {kind.__name__.lower()}:{kind.bare}=3")
    known = _options(kind)
    read = getattr(kind, "read_option", None)
    return kind(**{known[name].name: _value(known[name], value, read) for name, value in options.items()})


def parse_policy(text: str, order: Order = FCFS, backfill_order: Order | None = None) -> Policy:
    """The policy with this specification; raises PolicyError listing the known ones.

    `order`, `backfill_order`: defaults for what the text leaves out. A custom policy, a subclass of `walltime.PlainPolicy`, is
    written `FILE.py:NAME`.

    >>> parse_policy("hybrid:depth=3").depth, parse_policy("easy:backfill-order=sjf").label
    (3, 'easy:backfill-order=sjf')
    """
    kind, options = split(text)
    defaults: dict[str, str | Order] = {"order": order} if order != FCFS else {}
    if backfill_order is not None:
        if "backfill-order" not in _options(kind):
            raise PolicyError(f"{text} has no backfill order of its own; leave it out, or take easy or hybrid:depth=N")
        defaults["backfill-order"] = backfill_order
    return build(kind, defaults | options)


def takes(kind: type[Policy] | Policy, option: str) -> bool:
    """Whether a policy has this option."""
    return option in _options(kind)


def _options(kind: type[Policy] | Policy) -> dict[str, Field[Any]]:
    return {} if isinstance(kind, Policy) else {field.name.replace("_", "-"): field for field in fields(kind) if field.init}


def _letters(option: str) -> str:
    """An option's name without what separates its words: `bf_max_job_test` and `bf-max-job-test` are the same."""
    return option.strip().lower().replace("-", "").replace("_", "")


def _value(field: Field[Any], value: str | Order, read: Callable[[str, str], Any] | None = None) -> Any:
    """The value of an option's text: as the policy reads it, if it does so itself, else by the type of the field."""
    if isinstance(value, Order):
        return value
    if field.name == "order" or field.name.endswith("_order"):
        return parse_order(value)
    if read is not None:
        return read(field.name, value)
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
    if kind in ("int", "float"):
        try:
            return int(value) if kind == "int" else float(value)
        except ValueError:
            raise PolicyError(f"{field.name} must be a {'whole ' if kind == 'int' else ''}number, not {value!r}") from None
    if kind == "bool":
        if value not in ("yes", "no"):
            raise PolicyError(f"{field.name} must be yes or no, not {value!r}")
        return value == "yes"
    return value.lower()


def _of_file(value: Any, text: str) -> Any:
    """A policy of one's own, or its class; one without a base class, or with an `__init__` of its own, is made anew for each run."""
    if isinstance(value, Policy) or (isinstance(value, type) and hasattr(value, "choose")):
        return value
    if isinstance(value, type) and issubclass(value, Policy):
        return value
    file, _, name = text.partition(",")[0].rpartition(":")
    raise PolicyError(f"{name!r} of {file} is no policy; make it a class with choose(self, now, waiting, running, free)")


def _has_own_parameters(kind: type[Policy]) -> bool:
    """Whether a subclass is no dataclass, and takes parameters of its own."""
    return "__dataclass_fields__" not in vars(kind) and kind.__init__ is not PlainPolicy.__init__


def _own_policy(kind: type, text: str, rest: str, more: Sequence[str]) -> tuple[Policy, dict[str, str]]:
    """A class of one's own with its options, which are its parameters; and the options named in `more`."""
    options: dict[str, Any] = {}
    others: dict[str, str] = {}
    spelled = [text[: len(text) - len(rest)].rstrip(":,")]
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        name = key.replace("-", "_")
        if key in more and value:
            others[key] = value
        elif others and (not equals or ":" in others[next(reversed(others))]):
            others[next(reversed(others))] += f",{part}"  # of the specification that stands there
        elif not equals or not value or not name.isidentifier() or name in options:
            raise PolicyError(f"{part!r} of the policy {text!r} is no option; options of your own are spelled name=value, each once")
        else:
            options[name] = literal(value)
            spelled.append(f"{key}={value}")
    return OwnPolicy(make=kind, options=tuple(options.items()), spelling=",".join(spelled)), others


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
    loaded = own(text.strip(), "order")
    if loaded is not None:
        return _own_order(*loaded, text)
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


def _own_order(found: Any, options: str, text: str) -> Order:
    """An order of one's own, a function or what `walltime.order` made of it, with its options."""
    if callable(found) and not isinstance(found, Order):
        found = UserOrder(name=getattr(found, "__name__", text), function=found)
    if not isinstance(found, Order):
        file, _, name = text.partition(",")[0].rpartition(":")
        raise PolicyError(f"{file} has no order named {name!r}")
    settings: dict[str, float] = {}
    for option in filter(None, (part.strip() for part in options.split(","))):
        key, _, value = option.partition("=")
        name = key.strip().replace("-", "_")
        if not isinstance(found, UserOrder) or not value or name in settings:
            raise PolicyError(f"{option!r} is no option of the order {text!r}; options of a function are spelled name=number, each once")
        try:
            settings[name] = int(value) if value.strip().isdecimal() else float(value)
        except ValueError:
            raise PolicyError(f"{key.strip()} of the order {text!r} must be a number, not {value.strip()!r}") from None
    return found.but(**settings) if settings else found
