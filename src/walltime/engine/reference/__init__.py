"""The slow independent reference engines, in plain Python: number.py, pools.py, nodes.py. They share nothing with the kernel."""
