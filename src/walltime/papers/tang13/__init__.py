"""tang13: walltimes adjusted by history, in the queue of a large machine (2013).

schemes.py      keys of similar jobs, predictions, simulated months
accuracy.py     Tables 1 to 3, Figs. 1 to 11 and 13: the accuracy of requests and of adjusted requests, and the history needed
scheduling.py   Figs. 12 and 14 to 17: adjusted walltimes in the scheduler
printed.toml    the printed numbers
"""
