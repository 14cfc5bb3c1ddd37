"""How a job started."""

from enum import IntEnum


class Kind(IntEnum):
    """How a job started. Backfilled jobs are counted as in feitelson98, Fig. 3, mualem01, Fig. 5, and tsafrir06, Fig. 5."""

    IMMEDIATE = 0
    """on arrival, with no job ahead of it waiting"""
    RESERVED = 1
    """after a wait, with no job ahead of it waiting"""
    BACKFILLED = 2
    """while a job ahead of it in the queue was waiting"""
