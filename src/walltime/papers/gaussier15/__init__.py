"""gaussier15: runtimes learned online, and the best of 5,774 ways to use the predictions (2015).

triples.py      the grid of schedulers, corrections and predictors, and their simulation
comparison.py   every triple next to the authors' metrics, where their file is available; the best triples and their gains
printed.toml    the printed numbers
"""
