"""Explain why a job waited, from a simulation observed after each event, from the schedule, or from the recorded log alone."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.explanation.pools import MachineExplanation as MachineExplanation, Obstacles as Obstacles
    from walltime.explanation.recorded import (
        RecordedExplanation as RecordedExplanation,
        explain_recorded as explain_recorded,
        longest_recorded as longest_recorded,
        recorded_table as recorded_table,
    )
    from walltime.explanation.records import (
        Alternative as Alternative,
        Cause as Cause,
        Change as Change,
        Explanation as Explanation,
        Overtaker as Overtaker,
        Reservation as Reservation,
        RunningJob as RunningJob,
        SinglePoolExplanation as SinglePoolExplanation,
        Submission as Submission,
    )
    from walltime.explanation.waits import explain as explain
    from walltime.schedule.schedule import LongWait as LongWait, longest_waits as longest_waits

__getattr__, __dir__, __all__ = lazy(__name__)
