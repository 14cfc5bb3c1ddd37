"""The data-frame library polars, imported when it is first used."""

import os
from typing import TYPE_CHECKING

from walltime.lazy import LaterModule

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

# The allocator of polars returns memory at once: a log of 500,000 jobs with steps needs 0.93 GB instead of 1.05.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")

__all__ = ["pl"]
