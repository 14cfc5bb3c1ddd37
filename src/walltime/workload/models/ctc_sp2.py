"""Values fitted from the log of the CTC SP2; numbers only, no jobs.

The log is CTC-SP2-1996-3.1-cln.recon.swf.gz, a reconstruction of the archive's cleaned log (77,199 of its 77,222 jobs; the
runtimes are cut at the requests). Its checksum is `SHA256`. It has no calendar dates. Its first submission was inferred to be
on 26 June 1996 at 18:05, local time, to within about 15 minutes: with that start, the number of jobs that end in each month of
an EASY schedule on 512 processors matches mualem01, Table 1, to within 7 in ten of the eleven months; in the other, January
1997, the 2,081 jobs that were cleaned from this log are missing. So the dates of Jann'97, 25 June to 12 September 1996, are the
submissions from 0 to `JANN97_END` s. These are 17,810 jobs (the paper counts 17,440), none wider than 322 processors, the size
that the paper gives the machine; the order of a distribution goes up to 8 (the paper says 7).

To refit from this log, or from any other:

    jobs = walltime.read("CTC-SP2-1996-3.1-cln.recon.swf.gz")
    Jann97.fit(window(jobs, 0, JANN97_END))
    Marginals.fit(jobs)
"""

from __future__ import annotations

import tomllib
from importlib import resources

__all__ = ["JANN97", "JANN97_END", "QUANTILES", "SHA256", "SIZES", "SOURCE", "WHOLE_LOG"]

SHA256 = "23ecac2db9677b036d71c22d7af77de5a4ee0a83500c4f1ae268060628535a05"
JANN97_END = 6_760_500
SOURCE = "refitted from CTC-SP2-1996-3.1-cln.recon, 26 June to 12 September 1996; the tables in the paper were not available"
WHOLE_LOG = "fitted from CTC-SP2-1996-3.1-cln.recon, all jobs"

HyperErlangRow = tuple[int, float, float, float]
"""Order, share of the first branch, and the means of a stage in each branch, in s."""
_VALUES = tomllib.loads((resources.files("walltime.workload.models") / "ctc_sp2.toml").read_text(encoding="utf-8"))
JANN97: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...], HyperErlangRow, HyperErlangRow], ...] = tuple(
    (*row["range"], *(tuple(row[name]) for name in ("sizes", "jobs", "interarrival", "runtime"))) for row in _VALUES["jann97"]
)
"""For each range: first and last size, sizes, jobs of each size, interarrival times, runtimes."""
SIZES: tuple[tuple[int, int], ...] = tuple(map(tuple, _VALUES["sizes"]))
"""Sizes and the number of jobs of each, in the whole log."""
QUANTILES: tuple[tuple[int, ...], ...] = tuple(map(tuple, _VALUES["quantiles"]))
"""Runtimes (s) at equal steps of probability from 0 to 1: of all jobs, then of those of 1, 2-4, 5-8, 9-16, 17-32, 33-64 and
more processors."""
