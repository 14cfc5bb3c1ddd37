"""zhang20: a scheduler that learns, and the formulas that it was compared with (2020).

windows.py      the ten windows of jobs, the formulas, and what each gives in a window
comparison.py   Table V; the formulas as they were meant; all of them under EASY
printed.toml    what the paper prints
"""
