"""Fitting a queue order to a log, and choosing one anew every week."""

from walltime.tuning.bandit import STRATEGIES, Weekly, choose_weekly
from walltime.tuning.fitting import SIMPLE, Candidate, Tuning, tune
from walltime.tuning.search import OPTIMISERS

__all__ = ["OPTIMISERS", "SIMPLE", "STRATEGIES", "Candidate", "Tuning", "Weekly", "choose_weekly", "tune"]
