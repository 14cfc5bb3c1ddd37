"""`walltime slurm`: the commands for Slurm clusters."""

import typer

from walltime.cli.groups import flat
from walltime.cli.slurm.adjust import adjust
from walltime.cli.slurm.cluster import cluster, cluster_command, sacct_command
from walltime.cli.slurm.report import report
from walltime.cli.slurm.starts import score, snapshot, start_times
from walltime.cli.slurm.what_happened import what_happened

__all__ = ["app"]

app = typer.Typer(
    name="slurm",
    help="For Slurm clusters: a job log and the machine, as Slurm has them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (report, adjust, what_happened, sacct_command, cluster_command, cluster, snapshot, start_times, score):
    app.command()(flat(command))


@app.callback()
def _slurm() -> None:
    """For Slurm clusters: a job log and the machine, as Slurm has them."""
