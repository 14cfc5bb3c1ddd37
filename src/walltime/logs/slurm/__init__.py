"""Readers for the logs of Slurm's accounting: the output of sacct, as a table or as JSON."""
