"""A machine of several pools: its event loop (loop.py), its plan, and its passes."""
