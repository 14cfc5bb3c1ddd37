"""Simulation: a compiled kernel, an independent reference in plain Python, and the interface that other packages call.

START HERE: kernel/number/loop.py, the event loop of a single-pool machine. problem.py: the input and output of every engine.
"""
