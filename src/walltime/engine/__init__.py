"""Engines: the event loop (start with loop.py), its public interface (run.py), and the slow independent reference engine."""
