"""Predictions of when the waiting jobs of a cluster will start."""

__all__: list[str] = []
