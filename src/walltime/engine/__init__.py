"""Run: the event loop (start with loop.py), its public entrance (run.py), and the slow independent reference."""
