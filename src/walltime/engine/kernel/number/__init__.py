"""The single-pool machine: its event loop (START HERE: loop.py), and a module for each kind of scheduling pass."""
