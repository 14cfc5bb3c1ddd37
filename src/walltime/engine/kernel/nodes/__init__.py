"""Slurm's scheduling on single nodes: its event loop (loop.py), the choice of nodes, and priorities."""
