"""Result: when every job started, and whether that can be believed."""

from walltime.schedule.auditor import CHECKS, AuditReport, Violation, audit
from walltime.schedule.batch import Batch, Case, simulate_many
from walltime.schedule.comparison import Comparison, compare
from walltime.schedule.files import read_schedule
from walltime.schedule.kind import Kind
from walltime.schedule.overrun import OVERRUN
from walltime.schedule.schedule import Schedule
from walltime.schedule.simulation import simulate

__all__ = [
    "CHECKS",
    "OVERRUN",
    "AuditReport",
    "Batch",
    "Case",
    "Comparison",
    "Kind",
    "Schedule",
    "Violation",
    "audit",
    "compare",
    "read_schedule",
    "simulate",
    "simulate_many",
]
