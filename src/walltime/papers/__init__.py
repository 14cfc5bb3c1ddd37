"""The published studies: every table and figure of a paper run anew, the printed numbers beside ours.

printed_numbers.py  what the papers print, from the data files in printed/
subjects.py         what an item is run on: the paper's log, another one, or a generated workload of its size
items.py            all items; p1, p2 and p3 modules make them
readings.py         what other readings of the papers give
run.py              runs items into a folder; page.py writes the page
"""
