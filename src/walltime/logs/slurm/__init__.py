"""Logs of Slurm's accounting: what sacct prints, as a table or as JSON."""

__all__: list[str] = []
