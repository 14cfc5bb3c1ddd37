"""tsafrir06: why wrong estimates seem to help EASY (2006).

sweep.py        the experiment: a log over the badness f of its estimates, and the curves
logs.py         Tables I and II, Figs. 1, 6, 10, 11 and 12: logs, worked examples, estimates
performance.py  Figs. 2, 3, 4 and 13: performance over f; Figs. 5, 7, 8 and 9: effects of backfilling
printed.toml    the printed numbers
"""
