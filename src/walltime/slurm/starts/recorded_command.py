"""`walltime calibrate --starts`: do predicted start times hold?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from walltime.cli.output import PageOutput, caveats, command_line, paragraphs, progress_bar
from walltime.slurm import calibrate_starts
from walltime.slurm.starts.forecast import Draws
from walltime.slurm.starts.recorded import REPLAYED
from walltime.slurm.starts.recorded_page import recorded_starts_page, tables_of, verdict

if TYPE_CHECKING:
    from walltime.machine import Machine
    from walltime.workload import Workload


def calibrate_starts_command(
    workload: Workload, machine: Machine | None, policy: str | None, drawn: Mapping[str, Any], output: PageOutput
) -> None:
    """Predict start times at moments of the log, and show how many recorded ones lie within their intervals; `drawn`: the options."""
    moments = drawn["moments"]
    with progress_bar((REPLAYED + 1) * moments, "simulating", "moments") as progress:
        learning = partial(progress, description="learning")
        draws = Draws(drawn["samples"], seed=drawn["seed"])
        starts = calibrate_starts(
            workload, machine, policy, predictor=drawn["predictor"], moments=moments, draws=draws, progress=progress, learning=learning
        )
    output.write(recorded_starts_page(starts, workload, {"command": command_line(), "moments": moments}))
    blocks = [*paragraphs(verdict(starts)), "", *tables_of(starts), *caveats(starts.caveats)]
    output.show(starts.as_dict(), blocks)
