"""Where compiled functions are kept (cache.py, folder.py), and how their compilation is reported (compilation.py)."""
