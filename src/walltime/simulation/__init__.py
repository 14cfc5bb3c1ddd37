"""Simulations: one (run.py), its scheduler (specification.py), thousands (batch.py), step by step (stepping.py)."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.engine.problem import State as State
    from walltime.simulation.batch import Batch as Batch
    from walltime.simulation.batch import Case as Case
    from walltime.simulation.batch import simulate_many as simulate_many
    from walltime.simulation.fair_start import Fairness as Fairness
    from walltime.simulation.fair_start import fairness as fairness
    from walltime.simulation.replay import Replay as Replay
    from walltime.simulation.replay import predict as predict
    from walltime.simulation.replication import Replications as Replications
    from walltime.simulation.replication import replicate as replicate
    from walltime.simulation.run import simulate as simulate
    from walltime.simulation.specification import Scheduler as Scheduler
    from walltime.simulation.specification import parse_scheduler as parse_scheduler
    from walltime.simulation.spread import Spread as Spread
    from walltime.simulation.spread import shaking_spread as shaking_spread
    from walltime.simulation.stepping import Simulation as Simulation

__getattr__, __dir__, __all__ = lazy(__name__)
