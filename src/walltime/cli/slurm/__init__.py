"""`walltime slurm`: the commands for Slurm clusters."""

from walltime.cli.option_groups import CommandGroup
from walltime.cli.slurm.adjust import adjust
from walltime.cli.slurm.cluster import cluster, cluster_command, sacct_command
from walltime.cli.slurm.report import report
from walltime.cli.slurm.starts import score, snapshot, start_times
from walltime.cli.slurm.what_happened import what_happened

__all__ = ["PANEL", "app"]

PANEL = "A site and its machine"
app = CommandGroup("slurm", "For Slurm clusters: a job log and the machine, as Slurm has them.")
for command in (report, adjust, what_happened, sacct_command, cluster_command, cluster, snapshot, start_times, score):
    app.command()(command)
