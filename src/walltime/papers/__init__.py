"""The published studies: every table and figure of a paper reproduced, with the printed numbers beside ours.

One folder for each paper, named as its algorithms are, with its items and printed.toml, the numbers that it prints:

feitelson98/        EASY and conservative backfilling on the IBM SP2
mualem01/           mualem01: the same, with models and users' estimates
tsafrir06/          tsafrir06: why inaccurate estimates seem to help
tang13/             tang13: walltimes adjusted by history
gaussier15/         gaussier15: runtimes learned on line, in 5,775 ways

What they share:

names.py            the papers' names
item.py, items.py   an item is one table or figure; all of them
printed_numbers.py  what the papers print
subjects.py         what an item is run on: the paper's log, another one, or a generated workload of its size
study.py            runs simulations for items, and keeps them
sweep.py            one log over the badness of its estimates
results.py          what an item gives: tables, figures, claims; drawing.py and worked.py draw
run.py              runs items into a folder; page.py writes the page
"""
