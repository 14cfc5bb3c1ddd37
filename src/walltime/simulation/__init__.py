"""Running simulations: one (run.py), many (batch.py, replication.py), step by step (stepping.py), and what several show together."""

from walltime.simulation.accuracy import WalltimeAccuracy, walltime_accuracy
from walltime.simulation.adjusted import AdjustedWalltimes, adjust_walltimes
from walltime.simulation.advice import UserAdvice, advise_users
from walltime.simulation.batch import Batch, Case, simulate_many
from walltime.simulation.dialects import DialectRow, DialectTable, compare_dialects, dialect_runs, readings_alone
from walltime.simulation.fair_start import Fairness, fairness
from walltime.simulation.replay import Replay, predict
from walltime.simulation.replication import Replications, replicate
from walltime.simulation.run import simulate
from walltime.simulation.spread import Spread, shaking_spread
from walltime.simulation.stepping import Simulation, State

__all__ = [
    "AdjustedWalltimes",
    "Batch",
    "Case",
    "DialectRow",
    "DialectTable",
    "Fairness",
    "Replay",
    "Replications",
    "Simulation",
    "Spread",
    "State",
    "UserAdvice",
    "WalltimeAccuracy",
    "adjust_walltimes",
    "advise_users",
    "compare_dialects",
    "dialect_runs",
    "fairness",
    "predict",
    "readings_alone",
    "replicate",
    "shaking_spread",
    "simulate",
    "simulate_many",
    "walltime_accuracy",
]
