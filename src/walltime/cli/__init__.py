"""The command line; main.py assembles the commands of all features."""
