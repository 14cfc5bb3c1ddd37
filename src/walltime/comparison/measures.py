"""Names and formats of the fields of a summary on pages and axes."""

from collections.abc import Callable
from dataclasses import dataclass

from walltime.metrics.further import unit_of
from walltime.metrics.summary import averages
from walltime.wording import human_number, human_percent, human_time, time_form, to_error

TIMES = frozenset(
    f"{what}_{of}" for what in ("mean", "median", "p90", "p99", "max") for of in ("response", "delay", "miss", "reservation_error")
) | {"mean_runtime_wild"}
"""Fields in s of records other than `Summary`, which declares its own units."""
UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True)
class Measure:
    """How a measure is shown: its label, a value in words, and for axes the unit and the divisor of values."""

    name: str
    label: str
    show: Callable[[float], str]
    unit: str = ""
    divisor: float = 1.0
    points: float = 0.0
    """factor that turns a share into percent; differences are in percentage points"""

    def change(self, value: float) -> str:
        """Return the size of a difference, or the half-width of an interval, as text."""
        return f"{human_number(abs(value) * self.points)} points" if self.points else self.show(abs(value))

    def signed(self, value: float) -> str:
        """Return a difference as text, with its sign."""
        return f"{'+' if value > 0 else '-' if value < 0 else '±'}{self.change(value)}"

    def with_half(self, mean: float, half: float) -> str:
        """Return a difference and the half-width of its interval as text."""
        if self.show is human_time:
            show = time_form([mean, half])
            return f"{'+' if mean > 0 else ''}{show(mean)} ± {show(half)}"
        if self.unit or self.points or not half > 0:
            return f"{self.signed(mean).removesuffix(' points')} ± {self.change(half)}"
        return f"{'+' if mean > 0 else '-'}{to_error(abs(mean), half)} ± {to_error(half, half)}"

    @property
    def title(self) -> str:
        """Return the label with a capital letter, for the beginning of a sentence; the name of a user's file is unchanged."""
        return self.label if ".py:" in self.label else f"{self.label[0].upper()}{self.label[1:]}"

    @property
    def axis(self) -> str:
        """Return the label of an axis."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


def measure(name: str, highest: float = 1.0) -> Measure:
    """Return the label, units and formats of a field; `highest`: the largest value, which decides the unit of times.

    >>> measure("mean_wait", 7200).axis, measure("mean_wait").show(7200), measure("utilization").show(0.5)
    ('mean wait (h)', '2 h 00 min', '50 %')
    >>> measure("utilization").signed(-0.02), measure("mean_wait").signed(60), measure("mean_slowdown").signed(0.0)
    ('-2.00 points', '+1 min 00 s', '±0.00')
    """
    if (average := averages().get(name)) is not None:
        unit, label = average.unit, average.label
    else:  # a field of another record
        unit = "s" if name in TIMES else "%" if name.endswith("_percent") else unit_of(name)
        label = name.replace("_", " ").removesuffix(" percent")
    if unit == "s":
        divisor, unit = next(((d, u) for d, u in UNITS if highest >= 1.5 * d), (1, "s"))
        return Measure(name, label, human_time, unit, divisor)
    if unit == "share":
        return Measure(name, label, lambda share: human_percent(100 * share), "%", 0.01, 100.0)
    if unit == "%":
        return Measure(name, label, human_percent, "%", points=1.0)
    return Measure(name, label, human_number)
