"""Compilation of functions (jit.py, records.py), storage of machine code (cache.py, folder.py), and progress (compilation.py).

Independent of the engine: the auditor, predictors and start times compile their functions in the same way.
"""
