"""Which engine simulates a problem: decided here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walltime.engine.problem import Nodes, OarSettings, Pools, Problem, as_number
from walltime.errors import PolicyError
from walltime.policy import Policy, Wfp
from walltime.policy.orders import has_history

if TYPE_CHECKING:
    from walltime.engine.interface.nodes import NodesEngine
    from walltime.engine.interface.number import NumberEngine
    from walltime.engine.interface.oar import OarEngine
    from walltime.engine.interface.plain import ReferenceEngine
    from walltime.engine.interface.pools import PoolsEngine

    Engine = NumberEngine | PoolsEngine | NodesEngine | OarEngine | ReferenceEngine

__all__ = ["ENGINES", "choose", "new_engine"]

ENGINES = ("auto", "kernel", "reference")


def choose(problem: Problem, wanted: str = "auto") -> tuple[str, Problem]:
    """The engine, `kernel` or `reference`, and the problem as it is given to it: on the simplest machine that gives the same schedule.

    `wanted`: one of them, or `auto` for the kernel wherever it can run the problem. The reference stays on the machine that was described,
    to be held against the kernel. Raises PolicyError for an unknown engine, and if none, or not the kernel that was wanted, can run it.
    """
    if wanted not in ENGINES:
        raise PolicyError(f"unknown engine {wanted!r}; known are {', '.join(ENGINES)}")
    if isinstance(problem.machine, Pools) and not runs_on_pools(problem.policy):
        raise PolicyError(
            f"{problem.policy.label} does not run on a machine of several pools; known are fcfs, easy, hybrid and conservative, with the "
            "interpretations that the compiled engine has"
        )
    needs = _needs_reference(problem)
    if wanted == "kernel" and needs:
        raise PolicyError(f"{needs} on the reference engine only; leave the engine to be chosen, or ask for the reference")
    if needs or wanted == "reference":
        return "reference", problem
    return "kernel", as_number(problem) or problem


def new_engine(problem: Problem, wanted: str = "auto") -> Engine:
    """The engine that `choose` chooses, before the first event."""
    name, problem = choose(problem, wanted)
    kind: Any
    if name == "reference":
        from walltime.engine.interface.plain import ReferenceEngine as kind  # noqa: N813
    elif isinstance(problem.settings, OarSettings):
        from walltime.engine.interface.oar import OarEngine as kind  # noqa: N813
    elif isinstance(problem.machine, Nodes):
        from walltime.engine.interface.nodes import NodesEngine as kind  # noqa: N813
    elif isinstance(problem.machine, Pools):
        from walltime.engine.interface.pools import PoolsEngine as kind  # noqa: N813
    else:
        from walltime.engine.interface.number import NumberEngine as kind  # noqa: N813
    engine: Engine = kind(problem)
    return engine


def runs_on_pools(policy: Policy) -> bool:
    """Whether a policy runs on a machine of several pools."""
    return policy.runs_on_pools and not (isinstance(policy.order, Wfp) and policy.order.threshold)


def _needs_reference(problem: Problem) -> str:
    """What only the reference engine can do, as the beginning of a sentence; empty if the kernel can do all of it."""
    if not problem.policy.passes.compiled:
        return f"{problem.policy.label} runs"
    if has_history(problem.policy) and not isinstance((as_number(problem) or problem).machine, int):
        return "on several pools, orders by what users, groups and queues have had run"
    if problem.coincident in ("arrivals-first", "one-by-one"):
        return f"simultaneous events {'one by one' if problem.coincident == 'one-by-one' else 'with arrivals first'} run"
    return "" if problem.prediction is None else problem.prediction.needs_reference
