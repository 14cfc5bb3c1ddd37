"""How functions are compiled (jit.py, records.py), where machine code is stored (cache.py, folder.py), and progress (compilation.py).

Independent of the engine: the auditor, predictors and start times compile their functions in the same way.
"""
