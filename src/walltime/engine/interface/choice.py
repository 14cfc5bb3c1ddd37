"""Which engine simulates a problem, or why none does: decided here and nowhere else, from what the policy declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walltime.engine.interface.support import check_support, features_of, kind_of, support
from walltime.engine.problem import Nodes, OarSettings, Pools, Problem, as_number

if TYPE_CHECKING:
    from walltime.engine.interface.nodes import NodesEngine
    from walltime.engine.interface.number import NumberEngine
    from walltime.engine.interface.oar import OarEngine
    from walltime.engine.interface.plain import ReferenceEngine
    from walltime.engine.interface.pools import PoolsEngine

    Engine = NumberEngine | PoolsEngine | NodesEngine | OarEngine | ReferenceEngine

__all__ = ["choose", "new_engine"]


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
