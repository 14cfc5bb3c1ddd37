"""Why a job waited (waits.py): the simulation is run again and observed (snapshots.py), and with one thing changed (alternatives.py)."""

from walltime.explanation.pools import MachineExplanation, Obstacles
from walltime.explanation.records import (
    Alternative,
    Cause,
    Change,
    Explanation,
    NumberExplanation,
    Overtaker,
    Reservation,
    RunningJob,
    Submission,
)
from walltime.explanation.waits import explain
from walltime.schedule.longest_waits import LongWait, longest_waits

__all__ = [
    "Alternative",
    "Cause",
    "Change",
    "Explanation",
    "LongWait",
    "MachineExplanation",
    "NumberExplanation",
    "Obstacles",
    "Overtaker",
    "Reservation",
    "RunningJob",
    "Submission",
    "explain",
    "longest_waits",
]
