"""Simulations of a machine for schedulers that are other programs; `batsim.py` speaks Batsim's protocol."""
