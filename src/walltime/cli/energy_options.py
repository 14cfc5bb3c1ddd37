"""The options for the cost and the carbon intensity of energy, which several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from walltime.cli import options as o
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.metrics.energy import Carbon
    from walltime.workload import Workload


@dataclass(frozen=True)
class EnergyOptions:
    """Options for the cost and the carbon intensity of energy, which the log records or the machine file gives as power of its pools."""

    kwh_price: float | None = o.field(None, "Show the cost of energy at this price per kWh.", min=0, metavar="PRICE", advanced=True)
    carbon: float | None = o.field(
        None, "Show the CO2 emissions of the energy at this many grams per kWh.", min=0, metavar="GRAMS", advanced=True
    )
    carbon_file: Path | None = o.field(
        None,
        "Show the CO2 emissions of the energy, from a CSV file with the columns time and grams (per kWh); a value holds until the next "
        "row.",
        group=o.INPUT,
        metavar="FILE",
        advanced=True,
    )

    def carbon_of(self, workload: Workload) -> Carbon | None:
        """Return the carbon intensity, None if it is not given; raises PolicyError if both a number and a file are given."""
        from walltime.metrics.energy import Carbon

        if self.carbon is not None and self.carbon_file is not None:
            raise PolicyError("--carbon and --carbon-file cannot be combined; leave one out", "conflicting_options")
        if self.carbon_file is None:
            return None if self.carbon is None else Carbon.constant(self.carbon)
        from walltime.logs.carbon_file import read_carbon

        return Carbon(*read_carbon(self.carbon_file, workload.origin.tzinfo()))
