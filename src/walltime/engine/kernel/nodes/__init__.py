"""Slurm's scheduling on individual nodes: its event loop (loop.py), the choice of nodes, and priorities."""
