"""Interfaces to Slurm: a cluster as a machine, its present state, the starts of its waiting jobs, and the side-car."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.slurm.cluster import Cluster as Cluster, read_cluster as read_cluster
    from walltime.slurm.snapshot import (
        Snapshot as Snapshot,
        read_snapshot as read_snapshot,
        snapshot_from_files as snapshot_from_files,
        take_snapshot as take_snapshot,
    )
    from walltime.slurm.snapshot_jobs import SNAPSHOT_RULES as SNAPSHOT_RULES, SnapshotJob as SnapshotJob
    from walltime.slurm.starts.forecast import Draws as Draws
    from walltime.slurm.starts.from_history import learn_from_history as learn_from_history
    from walltime.slurm.starts.ledger import PredictionLedger as PredictionLedger, Scorecard as Scorecard
    from walltime.slurm.starts.recorded import RecordedStarts as RecordedStarts, calibrate_starts as calibrate_starts
    from walltime.slurm.starts.replay import snapshot_at as snapshot_at
    from walltime.slurm.starts.scores import Outcome as Outcome, Score as Score, score_outcomes as score_outcomes
    from walltime.slurm.starts.start_times import (
        Reasons as Reasons,
        StartTime as StartTime,
        StartTimes as StartTimes,
        explain_wait as explain_wait,
        start_times as start_times,
    )
    from walltime.slurm.starts.trials import StartTrial as StartTrial, Trials as Trials, parse_trial as parse_trial, try_jobs as try_jobs

__getattr__, __dir__, __all__ = lazy(__name__)
