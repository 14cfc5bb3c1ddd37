"""The engines as other packages call them: number.py, pools.py and nodes.py check, make arrays and run the kernel; load.py compiles it."""
