"""How a job started."""

from enum import IntEnum


class Kind(IntEnum):
    """How a job started (SPEC A-07)."""

    IMMEDIATE = 0
    """on arrival, nobody ahead of it waiting"""
    RESERVED = 1
    """after a wait, nobody ahead of it waiting"""
    BACKFILLED = 2
    """while a job ahead of it in the queue was waiting"""
