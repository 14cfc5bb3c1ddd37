"""Engines. What other packages call is in interface/; it runs the compiled kernel/ or, for a comparison, the slow reference/.

START HERE: kernel/number/loop.py, the event loop of a machine that is a number of processors. compiler/ keeps what is compiled.
"""
