"""Interfaces to Slurm: a cluster as a machine, its present state, the starts of its waiting jobs, and the side-car."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.slurm.cluster import Cluster as Cluster
    from walltime.slurm.cluster import read_cluster as read_cluster
    from walltime.slurm.snapshot import Snapshot as Snapshot
    from walltime.slurm.snapshot import read_snapshot as read_snapshot
    from walltime.slurm.snapshot import snapshot_from_files as snapshot_from_files
    from walltime.slurm.snapshot import take_snapshot as take_snapshot
    from walltime.slurm.snapshot_jobs import SNAPSHOT_RULES as SNAPSHOT_RULES
    from walltime.slurm.snapshot_jobs import SnapshotJob as SnapshotJob
    from walltime.slurm.starts.forecast import Draws as Draws
    from walltime.slurm.starts.from_history import learn_from_history as learn_from_history
    from walltime.slurm.starts.ledger import PredictionLedger as PredictionLedger
    from walltime.slurm.starts.ledger import Scorecard as Scorecard
    from walltime.slurm.starts.recorded import RecordedStarts as RecordedStarts
    from walltime.slurm.starts.recorded import calibrate_starts as calibrate_starts
    from walltime.slurm.starts.replay import snapshot_at as snapshot_at
    from walltime.slurm.starts.scores import Outcome as Outcome
    from walltime.slurm.starts.scores import Score as Score
    from walltime.slurm.starts.scores import score_outcomes as score_outcomes
    from walltime.slurm.starts.start_times import Reasons as Reasons
    from walltime.slurm.starts.start_times import StartTime as StartTime
    from walltime.slurm.starts.start_times import StartTimes as StartTimes
    from walltime.slurm.starts.start_times import explain_wait as explain_wait
    from walltime.slurm.starts.start_times import start_times as start_times
    from walltime.slurm.starts.trials import StartTrial as StartTrial
    from walltime.slurm.starts.trials import Trials as Trials
    from walltime.slurm.starts.trials import parse_trial as parse_trial
    from walltime.slurm.starts.trials import try_jobs as try_jobs

__getattr__, __dir__, __all__ = lazy(__name__)
