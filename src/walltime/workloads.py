"""Generate workloads from models, and change workloads."""

from walltime.workload import Origin, Workload, models
from walltime.workload.models import *  # noqa: F403 whatever the models have
from walltime.workload.resampling import resample_weeks, with_sessions, with_users
from walltime.workload.scaling import head, resize, scale_load, shake, tail, window

__all__ = ["Origin", "Workload", "head", "resample_weeks", "resize", "scale_load", "shake", "tail", "window", "with_sessions", "with_users"]
__all__ += models.__all__
