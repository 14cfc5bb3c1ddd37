"""Calibrate a simulation against the recorded waits of a log, and estimate the effects of changes to a machine or its settings."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.machine.warm_start import stretch as stretch
    from walltime.metrics.recorded import Agreement as Agreement
    from walltime.whatif.agreement_page import calibration_page as calibration_page
    from walltime.whatif.calibration import Calibration as Calibration
    from walltime.whatif.calibration import Utilization as Utilization
    from walltime.whatif.calibration import calibrate as calibrate
    from walltime.whatif.calibration import machine_digest as machine_digest
    from walltime.whatif.calibration import read_calibration as read_calibration
    from walltime.whatif.change import Change as Change
    from walltime.whatif.change import parse_change as parse_change
    from walltime.whatif.effects import Cost as Cost
    from walltime.whatif.effects import Difference as Difference
    from walltime.whatif.effects import Effect as Effect
    from walltime.whatif.effects import GroupEffect as GroupEffect
    from walltime.whatif.page import what_if_page as what_if_page
    from walltime.whatif.setting import Setting as Setting
    from walltime.whatif.wait_causes import Evidence as Evidence
    from walltime.whatif.wait_causes import WaitCause as WaitCause
    from walltime.whatif.whatif import WhatIf as WhatIf
    from walltime.whatif.whatif import runs as runs
    from walltime.whatif.whatif import what_if as what_if

__getattr__, __dir__, __all__ = lazy(__name__)
