"""The tables of policies and of queue orders, one line each."""

import functools
from functools import partial
from typing import Any

from walltime.errors import PolicyError
from walltime.permission import check_data
from walltime.plugins.files import location_of
from walltime.plugins.parts import OWN_SPELLING, own_variants
from walltime.policy.base import Policy
from walltime.policy.expressions import Expression
from walltime.policy.formulas import FORMULAS, SCORES
from walltime.policy.orders import FirstCome, Order, ShortestFirst, UserOrder, Wfp
from walltime.policy.plain import OwnPolicy, PlainPolicy
from walltime.specification import Family, Variant, spell
from walltime.toml_file import TomlFile
from walltime.wording import printable


def _order_of(order: Any, spelling: str) -> Variant:
    """Return the variant for a user-defined order, made by `walltime.order` or from a function."""
    if callable(order) and not isinstance(order, Order | type):
        order = UserOrder(name=order.__name__, function=order)
    if isinstance(order, UserOrder):
        return Variant(order, make=order.but, declared=order.options())
    if isinstance(order, Order) or (isinstance(order, type) and issubclass(order, Order)):
        return Variant(order)
    raise PolicyError(
        f"{location_of(order)}{spelling} is not an order; make it a function, or a subclass of walltime.Order", "not_an_order"
    )


_own_order = own_variants("orders", "order", _order_of)


def _order_or_file(text: str) -> tuple[Variant, str] | None:
    """Return the variant for a user-defined order and its options, or for the order in a file of `walltime search`."""
    return (Variant(_read_searched_order(text)), "") if text.endswith(".toml") else _own_order(text)


def _policy_of(policy: Any, spelling: str) -> Variant:
    """Return the variant for a user-defined policy.

    A class without a base class, or with an `__init__` of its own, is instantiated for each run.
    """
    is_policy = issubclass(policy, Policy) if isinstance(policy, type) else isinstance(policy, Policy)
    if isinstance(policy, type) and hasattr(policy, "choose"):
        has_own_init = "__dataclass_fields__" not in vars(policy) and getattr(policy, "__init__", None) is not PlainPolicy.__init__
        if has_own_init or not is_policy:
            return Variant(OwnPolicy, make=partial(_make_policy, policy, spelling), free=True, declared={})
    if is_policy:
        return Variant(policy)
    file, _, name = spelling.rpartition(":")
    remedy = "make it a class with choose(self, now, waiting, running, free)"
    raise PolicyError(f"{location_of(policy)}{name!r} of {file or 'a package'} is not a policy; {remedy}", "not_a_policy")


def _make_policy(kind: type, spelling: str, **options: Any) -> OwnPolicy:
    texts = [f"{name.replace('_', '-')}={spell(value)}" for name, value in options.items()]
    return OwnPolicy(make=kind, options=tuple(options.items()), spelling=",".join([spelling, *texts]))


ORDERS = Family(
    Order,
    "order",
    {"fcfs": Variant(FirstCome), "sjf": Variant(ShortestFirst), "wfp": Variant(Wfp)}
    | {name: Variant(kind, {"name": name}, meaning=first) for name, (kind, first) in FORMULAS.items()}
    | {name: Variant(kind) for name, kind in SCORES.items()}
    | {"expr": Variant(Expression)},
    _order_or_file,
    f"{OWN_SPELLING}, or FILE.toml of walltime search",
    group="orders",
)
"""The queue orders by name."""
NAMED_ORDERS = tuple(name for name in ORDERS.variants if name not in SCORES and name != "expr")
"""The orders that are complete without options."""
POLICIES = Family(
    Policy,
    "policy",
    {
        "fcfs": Variant("walltime.policy.easy:NoBackfilling"),
        "easy": Variant("walltime.policy.easy:Easy"),
        "conservative": Variant("walltime.policy.conservative:Conservative", {"variant": "compress"}),
        "conservative-scratch": Variant(
            "walltime.policy.conservative:Conservative",
            {"variant": "scratch"},
            ("order", "processors"),
            meaning="Conservative backfilling with all reservations recomputed at every event.",
        ),
        "double": Variant("walltime.policy.easy:Double"),
        "hybrid": Variant("walltime.policy.hybrid:Hybrid"),
        "relaxed": Variant("walltime.policy.easy:Relaxed"),
        "selective": Variant("walltime.policy.later:Selective"),
        "los": Variant("walltime.policy.later:Lookahead"),
        "multiqueue": Variant("walltime.policy.later:MultiQueue"),
        "slack": Variant("walltime.policy.later:Slack"),
        "plan": Variant("walltime.policy.later:PlanBased"),
        "slurm": Variant("walltime.policy.slurm:Slurm"),
        "oar": Variant("walltime.policy.oar:Oar"),
    },
    own_variants("policies", "policy", _policy_of),
    OWN_SPELLING,
    group="policies",
)
"""The policies by name; each is imported on first use."""


@functools.cache
def policy_variants() -> tuple[str, ...]:
    """Return the labels of all policies for a single-pool machine, each with its `variants`."""
    orders = [f"order={name}" for name in NAMED_ORDERS]
    labels = []
    for name, variant in POLICIES.variants.items():
        if variant.loaded().machines["number"].engine:
            options = [one for text in variant.loaded.variants for one in (orders if text == "order=*" else [text])]
            labels += [POLICIES.parse(f"{name}:{text}").label for text in options]
    return tuple(dict.fromkeys(labels))


def parse_policy(text: str | Policy) -> Policy:
    """Return the policy with this specification; raises PolicyError if the specification is invalid.

    A custom policy, a subclass of `walltime.PlainPolicy`, is written `FILE.py:NAME`.

    >>> parse_policy("hybrid:depth=3").depth, parse_policy("easy:backfill-order=sjf").label
    (3, 'easy:backfill-order=sjf')
    """
    return POLICIES.parse(text)


def has_option(text: str | Policy, option: str) -> bool:
    """Return whether a policy has this option."""
    return option in (POLICIES.variant(text)[0] if isinstance(text, str) else Variant(type(text))).keys


def parse_order(text: str | Order) -> Order:
    """Return the order with this specification; raises PolicyError if the specification is invalid.

    `FILE.py:NAME` is a `walltime.order` function of a file, `FILE.toml` the order of the scheduler that `walltime search` wrote.
    Orders may have options: `wfp:exponent=2,threshold=0.75`, `f1:submit-weight=500`, `lxf:max-wait-share=0.5`. `linear` and
    `power` are scores with weights: `linear:wait=1.2,area=-0.3`; `expr:log(wait+60)-log(area)` is an expression.

    >>> parse_order("wfp:exponent=2").exponent
    2
    """
    return ORDERS.parse(text)


def _read_searched_order(path: str) -> Order:
    """Return the order in a file of `walltime search`; raises PolicyError if its scheduler is more than a queue order."""
    file = TomlFile(dict, "a file of walltime search", "docs/guides/tuning.md", PolicyError)
    label = file.content(file.text(path), printable(path)).get("scheduler")
    if not isinstance(label, str):
        raise PolicyError(f"{printable(path)}: the key scheduler is missing; give a file written by walltime search", "no_scheduler")
    check_data(label, printable(path))
    policy = POLICIES.parse(label) if "predictor=" not in label else None
    if policy is None or policy != POLICIES.parse("easy", order=policy.order):
        raise PolicyError(
            f"{printable(path)}: the scheduler is more than a queue order; give it as the policy, '{label}'", "more_than_an_order"
        )
    order: Order = policy.order
    return order
