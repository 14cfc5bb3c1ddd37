"""Modules of extras are left out where their libraries are not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("gymnasium") else ["walltime/learn/env.py"]
