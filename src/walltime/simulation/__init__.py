"""Simulations: one (run.py), what it is told (specification.py), thousands (batch.py), step by step (stepping.py)."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.engine.problem import State as State
    from walltime.simulation.accuracy import WalltimeAccuracy as WalltimeAccuracy
    from walltime.simulation.accuracy import estimate_accuracy as estimate_accuracy
    from walltime.simulation.adjusted import AdjustedWalltimes as AdjustedWalltimes
    from walltime.simulation.adjusted import adjust_walltimes as adjust_walltimes
    from walltime.simulation.advice import KindAdvice as KindAdvice
    from walltime.simulation.advice import UserAdvice as UserAdvice
    from walltime.simulation.advice import advise_users as advise_users
    from walltime.simulation.advice_gains import AdviceGains as AdviceGains
    from walltime.simulation.advice_gains import UserGain as UserGain
    from walltime.simulation.advice_gains import simulate_advice as simulate_advice
    from walltime.simulation.batch import Batch as Batch
    from walltime.simulation.batch import Case as Case
    from walltime.simulation.batch import simulate_many as simulate_many
    from walltime.simulation.dialects import DialectRow as DialectRow
    from walltime.simulation.dialects import DialectTable as DialectTable
    from walltime.simulation.dialects import compare_dialects as compare_dialects
    from walltime.simulation.dialects import dialect_runs as dialect_runs
    from walltime.simulation.dialects import readings_alone as readings_alone
    from walltime.simulation.difference import Difference as Difference
    from walltime.simulation.difference import diff as diff
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
