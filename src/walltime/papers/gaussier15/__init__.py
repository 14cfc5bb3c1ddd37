"""gaussier15: runtimes learned online, and the best of 5,774 ways to use the predictions (2015).

triples.py      the grid of schedulers, corrections and predictors, and their simulation
agreement.py    every triple, with the authors' metrics where their file is available
best.py         which triples are best, and by how much
printed.toml    the printed numbers
"""
