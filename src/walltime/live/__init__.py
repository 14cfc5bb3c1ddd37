"""A Slurm cluster as it is now: snapshots of its queue, and when the waiting jobs will start."""

from walltime.live.jobs import LIVE_RULES, LiveJob
from walltime.live.ledger import Ledger, Scored
from walltime.live.replay import outcomes, snapshot_at
from walltime.live.scores import Outcome, Score, factors_of, scores_of
from walltime.live.snapshot import Snapshot, read_snapshot, snapshot_of, take_snapshot
from walltime.live.start_times import Reasons, StartTime, StartTimes, start_times, why
from walltime.live.trying import Tried, Tries, parse_try, try_jobs

__all__ = [
    "LIVE_RULES",
    "Ledger",
    "LiveJob",
    "Outcome",
    "Reasons",
    "Score",
    "Scored",
    "Snapshot",
    "StartTime",
    "StartTimes",
    "Tried",
    "Tries",
    "factors_of",
    "outcomes",
    "parse_try",
    "read_snapshot",
    "scores_of",
    "snapshot_at",
    "snapshot_of",
    "start_times",
    "take_snapshot",
    "try_jobs",
    "why",
]
