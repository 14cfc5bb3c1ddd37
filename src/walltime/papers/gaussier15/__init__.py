"""gaussier15: runtimes learned on line, and which of 5,775 ways to use predictions backfills best (2015).

triples.py      the grid of schedulers, corrections and predictors, and the simulation of each, which are kept
agreement.py    every triple, with the authors' metrics beside it where their file is at hand; what the authors may have meant
best.py         which triples are best, and by how much
shaken.py       beyond the paper: whether the best stay best on shaken logs
printed.toml    what the paper prints
"""
