"""A machine that is a number of processors: the event loop (START HERE: loop.py), and a module for each kind of scheduling pass."""
