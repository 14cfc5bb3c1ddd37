"""Schedules: when every job started, and checks of this result."""

from walltime.auditor import CHECKS, AuditReport, Violation, audit
from walltime.estimates.overrun import OVERRUN
from walltime.policy.kind import Kind
from walltime.schedule.accuracy import WalltimeAccuracy, walltime_accuracy
from walltime.schedule.adjusted import AdjustedWalltimes, adjust_walltimes
from walltime.schedule.advice import UserAdvice, advise_users
from walltime.schedule.batch import Batch, Case, simulate_many
from walltime.schedule.comparison import Comparison, compare
from walltime.schedule.dialects import DialectRow, DialectTable, compare_dialects, dialect_runs, readings_alone
from walltime.schedule.explain import LongWait
from walltime.schedule.fair_start import Fairness, fairness
from walltime.schedule.files import read_schedule
from walltime.schedule.machine_story import HeldBack, MachineStory
from walltime.schedule.prediction import PredictionRecord
from walltime.schedule.replay import Replay, predict
from walltime.schedule.replication import Replications, replicate
from walltime.schedule.schedule import Schedule
from walltime.schedule.scheduler import Scheduler, parse_scheduler
from walltime.schedule.simulation import simulate
from walltime.schedule.spread import Spread, shaking_spread
from walltime.schedule.stepping import Simulation, State
from walltime.schedule.story import Alternative, Cause, Change, Overtaker, Reserved, Running, Story, Submission

__all__ = [
    "CHECKS",
    "OVERRUN",
    "AdjustedWalltimes",
    "Alternative",
    "AuditReport",
    "Batch",
    "Case",
    "Cause",
    "Change",
    "Comparison",
    "DialectRow",
    "DialectTable",
    "Fairness",
    "HeldBack",
    "Kind",
    "LongWait",
    "MachineStory",
    "Overtaker",
    "PredictionRecord",
    "Replay",
    "Replications",
    "Reserved",
    "Running",
    "Schedule",
    "Scheduler",
    "Simulation",
    "Spread",
    "State",
    "Story",
    "Submission",
    "UserAdvice",
    "Violation",
    "WalltimeAccuracy",
    "adjust_walltimes",
    "advise_users",
    "audit",
    "compare",
    "compare_dialects",
    "dialect_runs",
    "fairness",
    "parse_scheduler",
    "predict",
    "read_schedule",
    "readings_alone",
    "replicate",
    "shaking_spread",
    "simulate",
    "simulate_many",
    "walltime_accuracy",
]
