"""The published studies: every table and figure of a paper, reproduced, with the printed numbers next to ours.

Each paper has a folder, named after its first author and year. In it, printed.toml holds the numbers that the paper prints.

feitelson98/    EASY and conservative backfilling on the IBM SP2
mualem01/       the same, with models and users' estimates
tsafrir06/      why inaccurate estimates seem to help
tang13/         requests adjusted by history
gaussier15/     runtimes learned online, in 5,774 ways
carastan17/     queue orders found by simulation and regression
zhang20/        a learning scheduler, and formulas

Shared modules:

items.py        an item is one table or figure: a function marked by `item`, in any module of the folder
printed.py      the papers, and the numbers that they print
subjects.py     the input of items: the paper's log, another log, or a generated workload of its size
study.py        runs simulations for items, and stores them
results.py      the output of an item: tables, figures, claims; drawing.py draws
run.py          runs items into a folder, and writes the page

Experiments beyond the papers are in validation/paper_experiments.
"""
