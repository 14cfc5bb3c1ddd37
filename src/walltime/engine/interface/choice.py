"""Which engine simulates a problem, or why none does: decided here and nowhere else, from what policies declare and what engines know."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from walltime.engine.problem import Nodes, Pools, Problem, as_number
from walltime.engine.reference.later import PASS_OF_KIND
from walltime.errors import PolicyError
from walltime.policy import Policy, Wfp
from walltime.policy.base import KERNEL, Support
from walltime.policy.orders import has_history

ENGINES = ("auto", "kernel", "reference")
PASS_KINDS = ("head", "fresh", "kept", *PASS_OF_KIND, "oar", "slurm", "python", "unknown")
"""The kinds of passes: those of the reference engine, and those that are made elsewhere."""
MACHINES = {"number": "a machine that is a number of processors", "pools": "a machine of several pools", "nodes": "single nodes"}
"""The kinds of machines."""
FEATURES = {
    "predictor": "predicted runtimes",
    "plain": "a predictor in plain Python, step by step",
    "history": "orders by what users, groups and queues have had",
    "threshold": "a threshold of scores",
    "feedback": "jobs that are submitted after the ends of others",
    "events": "simultaneous events one by one, or with arrivals first",
    "dialect": "other readings than those of the papers",
    "effects": "the effects of backfilling recorded",
    "steps": "a simulation that goes on step by step",
    "second": "a second resource",
    "outages": "outages",
    "limits": "limits",
    "tiers": "tiers of partitions",
    "windows": "hours in which jobs do not start",
    "overheads": "overheads of a machine's file",
}
"""What a simulation may be made with."""
OF_NUMBERS = Support("", "that is for a machine that is a number of processors")
LIMITED: Mapping[tuple[str, str], Support] = {
    ("number", "plain"): Support("reference", "the compiled loop calls it only in one go"),
    ("number", "events"): Support("reference", "that is not compiled"),
    ("pools", "plain"): Support("reference", "the compiled loop calls it only in one go"),
    ("pools", "history"): Support("reference", "that is not compiled for several pools"),
    ("pools", "threshold"): Support("", "which job is the head differs from pool to pool"),
    ("pools", "events"): OF_NUMBERS,
    ("pools", "dialect"): OF_NUMBERS,
    ("pools", "effects"): OF_NUMBERS,
    ("nodes", "events"): OF_NUMBERS,
    ("nodes", "dialect"): OF_NUMBERS,
    ("nodes", "effects"): OF_NUMBERS,
}
"""What is not compiled on a kind of machine, or not known there, under any policy."""


def support(policy: Policy, machine: str, features: Collection[str] = ()) -> Support:
    """Which engine runs a policy on a kind of machine with some of `FEATURES`, and why not the kernel, as the rest of a sentence.

    >>> from walltime.policy import Relaxed
    >>> support(Relaxed(), "number").engine, support(Relaxed(), "pools").engine, support(Relaxed(), "number", ["effects"]).engine
    ('kernel', 'reference', '')
    """
    if policy.passes.kind not in PASS_KINDS:
        known = ", ".join(PASS_KINDS)
        return Support("", f"because its passes are of the kind {policy.passes.kind!r}, which no engine makes; known are {known}")
    each = [_said(policy.machines[machine], f"on {MACHINES[machine]}")]
    for feature in features:
        why = policy.without.get(feature, "")
        limited = Support("", why) if why else LIMITED.get((machine, feature), KERNEL)
        each.append(_said(limited, f"with {FEATURES[feature]} on {MACHINES[machine]}"))
    for engine in ("", "reference"):
        for one in each:
            if one.engine == engine:
                return one
    return KERNEL


def _said(limited: Support, what: str) -> Support:
    return limited if limited.engine == "kernel" else limited._replace(why=f"{what}: {limited.why}")


def check_support(policy: Policy, machine: str, features: Collection[str] = (), wanted: str = "auto") -> str:
    """The engine that runs a policy on a kind of machine with some of `FEATURES`; raises PolicyError if none does, or not the kernel."""
    if wanted not in ENGINES:
        raise PolicyError(f"unknown engine {wanted!r}; known are {', '.join(ENGINES)}", "unknown_engine")
    supported = support(policy, machine, features)
    if not supported.engine:
        raise PolicyError(f"{policy.label} does not run {supported.why}", "unsupported_policy")
    if wanted == "kernel" and supported.engine == "reference":
        raise PolicyError(
            f"{policy.label} runs on the reference engine only {supported.why}; leave the engine to be chosen, or ask for it",
            "unsupported_policy",
        )
    return "reference" if wanted == "reference" else supported.engine


def check_features(policy: Policy, machine: str, features: Collection[str]) -> None:
    """Raise PolicyError for what a policy does not run with on a kind of machine, whether or not it runs there."""
    for feature in features:
        supported = support(policy, machine, [feature])
        if not supported.engine and supported != support(policy, machine):
            raise PolicyError(f"{policy.label} does not run {supported.why}", "unsupported_policy")


def kind_of(problem: Problem) -> str:
    """The kind of a problem's machine."""
    return "nodes" if isinstance(problem.machine, Nodes) else "pools" if isinstance(problem.machine, Pools) else "number"


def features_of(problem: Problem) -> list[str]:
    """What of `FEATURES` a problem shows that it has; not the dialect, nor what is recorded."""
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
    """The engine, `kernel` or `reference`, and the problem as it is given to it: on the simplest machine that gives the same schedule.

    `wanted`: one of them, or `auto` for the kernel wherever it can run the problem. The reference stays on the machine that was described
    if it knows the policy there, to be held against the kernel. Raises PolicyError for an unknown engine, and if none, or not the kernel
    that was wanted, can run it.
    """
    simple = as_number(problem) or problem
    engine = check_support(problem.policy, kind_of(simple), features_of(simple), wanted)
    stays = engine == "reference" and support(problem.policy, kind_of(problem), features_of(problem)).engine
    return engine, problem if stays else simple
