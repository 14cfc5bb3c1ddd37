"""Why a job waited: a simulation run again and watched (watch.py), what it shows (story.py), what would have helped (alternatives.py)."""

from walltime.explanation.explain import LongWait
from walltime.explanation.machine_story import HeldBack, MachineStory
from walltime.explanation.story import Alternative, Cause, Change, Overtaker, Reserved, Running, Story, Submission

__all__ = [
    "Alternative",
    "Cause",
    "Change",
    "HeldBack",
    "LongWait",
    "MachineStory",
    "Overtaker",
    "Reserved",
    "Running",
    "Story",
    "Submission",
]
