"""`walltime slurm`: the commands for Slurm clusters."""

from walltime.cli.option_groups import CommandGroup
from walltime.slurm.commands.adjust import adjust, what_happened
from walltime.slurm.commands.cluster import cluster, cluster_command, sacct_command
from walltime.slurm.commands.starts import score, snapshot, start_times

__all__ = ["app"]

app = CommandGroup("slurm", "Work with a Slurm cluster: get its job log and machine file, predict start times, and run the side-car.")
for command in (sacct_command, cluster_command, cluster, snapshot, start_times, score, adjust, what_happened):
    app.command()(command)
