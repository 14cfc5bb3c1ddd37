"""For those who run a machine: does a simulation resemble it, and what would a change of its settings do."""

from walltime.metrics.agreement import Agreement
from walltime.whatif.calibration import Calibration, Utilization, calibrate, machine_digest, read_calibration
from walltime.whatif.changes import Change, parse_change
from walltime.whatif.cost import Cost
from walltime.whatif.effects import Difference, Effect, GroupEffect
from walltime.whatif.setting import Setting
from walltime.whatif.wait_causes import Evidence, WaitCause
from walltime.whatif.warm_start import stretch
from walltime.whatif.whatif import WhatIf, runs, what_if

__all__ = [
    "Agreement",
    "Calibration",
    "Change",
    "Cost",
    "Difference",
    "Effect",
    "Evidence",
    "GroupEffect",
    "Setting",
    "Utilization",
    "WaitCause",
    "WhatIf",
    "calibrate",
    "machine_digest",
    "parse_change",
    "read_calibration",
    "runs",
    "stretch",
    "what_if",
]
