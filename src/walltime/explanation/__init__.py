"""Explain why a job waited, from a simulation observed after each event, from the schedule, or from the recorded log alone."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.explanation.pools import MachineExplanation as MachineExplanation
    from walltime.explanation.pools import Obstacles as Obstacles
    from walltime.explanation.recorded import RecordedExplanation as RecordedExplanation
    from walltime.explanation.recorded import explain_recorded as explain_recorded
    from walltime.explanation.recorded import longest_recorded as longest_recorded
    from walltime.explanation.recorded import recorded_table as recorded_table
    from walltime.explanation.records import Alternative as Alternative
    from walltime.explanation.records import Cause as Cause
    from walltime.explanation.records import Change as Change
    from walltime.explanation.records import Explanation as Explanation
    from walltime.explanation.records import Overtaker as Overtaker
    from walltime.explanation.records import Reservation as Reservation
    from walltime.explanation.records import RunningJob as RunningJob
    from walltime.explanation.records import SinglePoolExplanation as SinglePoolExplanation
    from walltime.explanation.records import Submission as Submission
    from walltime.explanation.waits import explain as explain
    from walltime.schedule.schedule import LongWait as LongWait
    from walltime.schedule.schedule import longest_waits as longest_waits

__getattr__, __dir__, __all__ = lazy(__name__)
