"""gaussier15: runtimes learned on line, and which of 5,775 ways to use predictions backfills best (2015).

triples.py      the grid of schedulers, corrections and predictors, and the simulation of each, which are kept
published.py    the authors' metrics of each triple, where their file is at hand
agreement.py    every triple, with the published metrics beside it
best.py         which triples are best, and by how much
shaken.py       beyond the paper: whether the best stay best on shaken logs
readings.py     beyond the paper: what the authors may have meant, and what the difference does
printed.toml    what the paper prints
"""
