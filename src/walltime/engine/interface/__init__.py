"""What other packages call: number.py, pools.py and nodes.py check, make arrays and run the kernel in pieces; load.py compiles."""
