"""Logs of Slurm's accounting: what sacct prints, as a table or as JSON."""
