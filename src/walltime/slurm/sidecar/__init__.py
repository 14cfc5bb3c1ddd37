"""Walltime adjustment beside a real Slurm: `walltime slurm adjust`.

A round of it is in `round.py`; what it promises, and how, in the guide docs/guides/adjust.md.
"""
