"""mualem01: EASY and conservative backfilling on logs and models; users' estimates, and the effect of better ones (2001).

experiment.py   EASY and conservative on a log: means, run-to-run variation, comparison with print; Tables 3 and 4
worked.py       Figs. 1 to 3: worked examples
months.py       Table 1: results by month
estimates.py    Table 2, Figs. 8 and 9, section 4.3: users' estimates
models.py       Figs. 4 to 7: workload models over the load, and the paper's batch means
printed.toml    the printed numbers
"""
