"""For those who run a machine: does a simulation resemble it, and what would a change of its settings do."""

from walltime.site.begin import stretch
from walltime.site.calibration import Agreement, Calibration, Used, calibrate, machine_digest, read_calibration
from walltime.site.changes import Change, parse_change
from walltime.site.cost import Cost
from walltime.site.effects import Difference, Effect, GroupEffect
from walltime.site.evidence import Evidence, Waited
from walltime.site.setting import Setting
from walltime.site.whatif import WhatIf, runs, what_if

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
    "Used",
    "Waited",
    "WhatIf",
    "calibrate",
    "machine_digest",
    "parse_change",
    "read_calibration",
    "runs",
    "stretch",
    "what_if",
]
