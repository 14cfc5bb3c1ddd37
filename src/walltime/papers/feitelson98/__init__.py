"""feitelson98: EASY and conservative backfilling on the logs of two IBM SP2, and on a workload model (1998).

The same experiments as in `mualem01`, which extends this paper; shared code is there.

tables.py     Tables 1 and 2: slowdowns by month, and with estimates of the f-model
estimates.py  Fig. 4: fraction of the requested time used
models.py     Fig. 3: three schedulers over the load
printed.toml  what the paper prints
"""
