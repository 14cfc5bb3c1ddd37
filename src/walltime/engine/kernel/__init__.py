"""Compiled code: one event loop for each kind of machine (number/, pools/, nodes/; start with number/loop.py), and shared parts here."""
