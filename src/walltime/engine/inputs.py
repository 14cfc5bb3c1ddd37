"""Machines of nodes, as the kernel imports them."""

from walltime.engine.problem import Nodes, Shares

__all__ = ["Nodes", "Shares"]
