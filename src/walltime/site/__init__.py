"""For those who run a machine: does a simulation resemble it, and what would a change of its settings do."""

from walltime.site.calibration import Agreement, Calibration, Used, calibrate, machine_digest, read_calibration
from walltime.site.evidence import Evidence, Waited

__all__ = ["Agreement", "Calibration", "Evidence", "Used", "Waited", "calibrate", "machine_digest", "read_calibration"]
