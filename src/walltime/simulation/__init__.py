"""Simulations: one (run.py), its scheduler (specification.py), thousands (batch.py), step by step (stepping.py)."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.engine.problem import State as State
    from walltime.simulation.batch import Batch as Batch, Case as Case, simulate_many as simulate_many
    from walltime.simulation.fair_start import Fairness as Fairness, fairness as fairness
    from walltime.simulation.replay import Replay as Replay, predict as predict
    from walltime.simulation.replication import Replications as Replications, replicate as replicate
    from walltime.simulation.run import simulate as simulate
    from walltime.simulation.specification import Scheduler as Scheduler, parse_scheduler as parse_scheduler
    from walltime.simulation.spread import Spread as Spread, shaking_spread as shaking_spread
    from walltime.simulation.stepping import Simulation as Simulation

__getattr__, __dir__, __all__ = lazy(__name__)
