"""carastan17: queue orders found by simulation and regression (2017).

sequences.py    sequences of 15 days, the orders, and what each gives in a sequence
medians.py      medians over the sequences, beside those of the published result files
printed.toml    these
"""
