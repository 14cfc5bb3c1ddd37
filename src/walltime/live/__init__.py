"""A Slurm cluster as it is now: snapshots of its queue, and when the waiting jobs will start."""

from walltime.live.jobs import LIVE_RULES, LiveJob
from walltime.live.snapshot import Snapshot, read_snapshot, snapshot_of, take_snapshot

__all__ = ["LIVE_RULES", "LiveJob", "Snapshot", "read_snapshot", "snapshot_of", "take_snapshot"]
