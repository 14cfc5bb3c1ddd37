"""Checks of a schedule: audits against the guarantees of its policy, and differences from another schedule."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.checking.difference import Difference as Difference, diff as diff

__getattr__, __dir__, __all__ = lazy(__name__)
