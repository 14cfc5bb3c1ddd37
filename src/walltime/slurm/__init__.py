"""Everything that speaks to Slurm: a cluster as a machine and as it is now, when its waiting jobs will start, and the side-car."""

from walltime.lazy import lazy

_NAMES = {
    "slurm.cluster": ("Cluster", "read_cluster"),
    "slurm.jobs": ("SNAPSHOT_RULES", "SnapshotJob"),
    "slurm.snapshot": ("Snapshot", "read_snapshot", "snapshot_of", "take_snapshot"),
    "slurm.starts.ledger": ("PredictionLedger", "Scorecard"),
    "slurm.starts.replay": ("outcomes", "snapshot_at"),
    "slurm.starts.scores": ("Outcome", "Score", "factors_of", "scores_of"),
    "slurm.starts.start_times": ("Reasons", "StartTime", "StartTimes", "start_times", "why"),
    "slurm.starts.trials": ("Trial", "Trials", "parse_trial", "try_jobs"),
}
__getattr__, __dir__, __all__ = lazy("walltime.slurm", _NAMES)
