"""P1: EASY and conservative backfilling on the logs of two IBM SP2, and on a workload model (1998).

The same experiments as in `mualem01`, which went on from here; what both need stands there.

tables.py     Tables 1 and 2: slowdowns by month, and with estimates of the f-model
estimates.py  Fig. 4: how much of their requests jobs use
models.py     Fig. 3: three schedulers over the load
printed.toml  what the paper prints
"""
