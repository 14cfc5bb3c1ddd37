"""Simulated machines for schedulers that are other programs; `batsim.py` implements Batsim's protocol."""
