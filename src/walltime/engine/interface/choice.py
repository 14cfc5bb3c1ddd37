"""The choice of the engine for a problem, or the reason why none can simulate it, from declarations of policies and engines."""

from collections.abc import Collection, Mapping

from walltime.engine.machines import Nodes, Pools
from walltime.engine.problem import Problem, as_number
from walltime.engine.reference.later import PASS_OF_KIND
from walltime.errors import PolicyError
from walltime.policy import Policy, Wfp
from walltime.policy.base import KERNEL, NOT_COMPILED, Support
from walltime.policy.orders import has_history

ENGINES = ("auto", "kernel", "reference")
PASS_KINDS = ("head", "fresh", "kept", *PASS_OF_KIND, "oar", "slurm", "python", "unknown")
"""Kinds of passes that at least one engine supports."""
MACHINES = {"number": "on a single-pool machine", "pools": "on a machine of several pools", "nodes": "on a machine of nodes"}
"""Kinds of machines, and how messages refer to them."""
FEATURES = {
    "predictor": "with predicted runtimes",
    "plain": "with step-by-step simulation and a predictor in plain Python",
    "history": "with a queue order that uses the history of users, groups or queues",
    "threshold": "with a threshold of scores",
    "feedback": "with feedback (jobs submitted after the ends of others)",
    "events": "with simultaneous events processed one by one, or arrivals first",
    "dialect": "with interpretations other than the papers'",
    "effects": "with recorded effects of backfilling (dynamics)",
    "steps": "with step-by-step simulation",
    "second": "with a second resource",
    "outages": "with outages",
    "limits": "with limits",
    "tiers": "with tiers of partitions",
    "windows": "with hours in which jobs do not start",
    "overheads": "with overheads in a machine file",
}
"""Features of simulations, and how messages refer to them."""
OF_NUMBERS = Support("", "leave this out, or use a single-pool machine")
LIMITED: Mapping[tuple[str, str], Support] = {
    **{(kind, "plain"): Support("reference", "the compiled engine cannot stop between its calls") for kind in ("number", "pools")},
    **{(kind, feature): OF_NUMBERS for kind in ("pools", "nodes") for feature in ("events", "dialect", "effects")},
    ("number", "events"): NOT_COMPILED,
    ("nodes", "predictor"): NOT_COMPILED,
    ("nodes", "plain"): NOT_COMPILED,
    ("nodes", "history"): NOT_COMPILED,
    ("nodes", "windows"): Support("", "windows apply to pools; leave them out, or set by_node = false in the machine file"),
    ("nodes", "threshold"): Support("", "each partition has its own head of the queue"),
    ("pools", "history"): NOT_COMPILED,
    ("pools", "threshold"): Support("", "each pool has its own head of the queue"),
}
"""Features that are not compiled on a kind of machine, or not supported there, under any policy."""


def support(policy: Policy, machine: str, features: Collection[str] = ()) -> Support:
    """Return the engine that runs a policy on a kind of machine with some of `FEATURES`, and why it is not the kernel, as a clause.

    >>> from walltime.policy import Relaxed
    >>> support(Relaxed(), "number").engine, support(Relaxed(), "pools").engine, support(Relaxed(), "number", ["effects"]).engine
    ('kernel', 'reference', '')
    """
    if policy.passes.kind not in PASS_KINDS:
        known = ", ".join(PASS_KINDS)
        return Support("", f"because its passes are of the unknown kind {policy.passes.kind!r}. Valid kinds: {known}")
    each = [_add_condition(policy.machines[machine], MACHINES[machine])]
    for feature in features:
        why = policy.without.get(feature, "")
        limited = Support("", why) if why else LIMITED.get((machine, feature), KERNEL)
        each.append(_add_condition(limited, f"{MACHINES[machine]} {FEATURES[feature]}"))
    for engine in ("", "reference"):
        for one in each:
            if one.engine == engine:
                return one
    return KERNEL


def _add_condition(limited: Support, what: str) -> Support:
    return limited if limited.engine == "kernel" else limited._replace(why=what if limited == NOT_COMPILED else f"{what}: {limited.why}")


def check_support(policy: Policy, machine: str, features: Collection[str] = (), wanted: str = "auto") -> str:
    """Return the engine that runs a policy on a kind of machine with `FEATURES`; raise PolicyError if none does, or not the wanted one."""
    if wanted not in ENGINES:
        raise PolicyError(f"unknown engine {wanted!r}. Valid engines: {', '.join(ENGINES)}", "unknown_engine")
    supported = support(policy, machine, features)
    if not supported.engine:
        raise PolicyError(f"{policy.label} cannot be simulated {supported.why}", "unsupported_policy")
    if wanted == "kernel" and supported.engine == "reference":
        why = f"the compiled engine cannot simulate {policy.label} {supported.why}; choose the engine 'auto' or 'reference'"
        raise PolicyError(why, "unsupported_policy")
    return "reference" if wanted == "reference" else supported.engine


def check_features(policy: Policy, machine: str, features: Collection[str]) -> None:
    """Raise PolicyError for features that a policy does not support on a kind of machine; a policy that cannot run there at all passes."""
    for feature in features:
        supported = support(policy, machine, [feature])
        if not supported.engine and supported != support(policy, machine):
            raise PolicyError(f"{policy.label} cannot be simulated {supported.why}", "unsupported_policy")


def kind_of(problem: Problem) -> str:
    """Return the kind of a problem's machine."""
    return "nodes" if isinstance(problem.machine, Nodes) else "pools" if isinstance(problem.machine, Pools) else "number"


def features_of(problem: Problem) -> list[str]:
    """Return the `FEATURES` of a problem, except the dialect and the records of starts and effects."""
    machine, demands, prediction, order = problem.machine, problem.demands, problem.prediction, problem.policy.order
    present = {
        "predictor": prediction is not None,
        "plain": prediction is not None and bool(prediction.needs_reference),
        "history": has_history(problem.policy),
        "threshold": isinstance(order, Wfp) and bool(order.threshold),
        "feedback": problem.after is not None,
        "events": problem.coincident in ("arrivals-first", "one-by-one"),
        "second": demands is not None and bool(demands.second.any()),
        "outages": not isinstance(machine, int) and bool(machine.outages),
        "limits": not isinstance(machine, int) and bool(machine.limits),
        "tiers": not isinstance(machine, int) and len(set(machine.tiers)) > 1,
        "windows": isinstance(machine, Pools) and bool(machine.windows),
    }
    return [name for name, given in present.items() if given]


def choose(problem: Problem, wanted: str = "auto") -> tuple[str, Problem]:
    """Return the engine, `kernel` or `reference`, and the problem on the simplest machine that gives the same schedule.

    `wanted`: one of them, or `auto` for the kernel wherever it can run the problem. The reference stays on the described machine if it
    supports the policy there, so that it can be compared with the kernel. Raises PolicyError for an unknown engine, and if none, or not the
    wanted one, can run the problem.
    """
    simple = as_number(problem) or problem
    engine = check_support(problem.policy, kind_of(simple), features_of(simple), wanted)
    stays = engine == "reference" and support(problem.policy, kind_of(problem), features_of(problem)).engine
    return engine, problem if stays else simple
