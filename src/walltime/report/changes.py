"""Table cells for metrics and for their changes relative to another scheduler."""

from walltime.metrics import Interval
from walltime.wording import human_number, human_time, shown_change


def change_cells(change: Interval) -> list[str]:
    """Return the mean change and its interval, as two cells."""
    mean, low, high = change_ends(change)
    return [mean, f"{low} to {high}"]


def change_ends(one: Interval) -> list[str]:
    """Return the mean change and the ends of its interval, as three cells."""
    return [shown_change(value, one.low, one.high) for value in (one.mean, one.low, one.high)]


def metric_name(metric: str) -> str:
    """Return the name of a metric as tables show it."""
    return metric.replace("_", " ")


def metric_value(metric: str, value: float) -> str:
    """Format the value of a metric: a duration for waits and response times, otherwise a number."""
    return human_time(value) if metric.endswith(("_wait", "_response")) else human_number(value)
