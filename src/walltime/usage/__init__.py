"""Use of processors, GPUs, memory and nodes: hours by job (hours.py), their waste (summary.py); the command waste."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.accuracy.requests import RequestAdvice as RequestAdvice, suggest_requests as suggest_requests
    from walltime.logs.use_table import Joined as Joined, with_use as with_use
    from walltime.usage.hours import JobHours as JobHours, job_hours as job_hours, lost_by as lost_by
    from walltime.usage.records import GroupHours as GroupHours, Hours as Hours, Lost as Lost, Pattern as Pattern
    from walltime.usage.summary import Waste as Waste, waste as waste

__getattr__, __dir__, __all__ = lazy(__name__)
