"""Calibrate a simulation against the recorded waits of a log, and estimate the effects of changes to a machine or its settings."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.machine.warm_start import stretch as stretch
    from walltime.metrics.recorded import Agreement as Agreement
    from walltime.whatif.agreement_page import calibration_page as calibration_page
    from walltime.whatif.calibration import (
        Calibration as Calibration,
        Utilization as Utilization,
        calibrate as calibrate,
        machine_digest as machine_digest,
        read_calibration as read_calibration,
    )
    from walltime.whatif.change import Change as Change, parse_change as parse_change
    from walltime.whatif.effects import Cost as Cost, Difference as Difference, Effect as Effect, GroupEffect as GroupEffect
    from walltime.whatif.page import what_if_page as what_if_page
    from walltime.whatif.setting import Setting as Setting
    from walltime.whatif.wait_causes import Evidence as Evidence, WaitCause as WaitCause
    from walltime.whatif.whatif import WhatIf as WhatIf, runs as runs, what_if as what_if

__getattr__, __dir__, __all__ = lazy(__name__)
