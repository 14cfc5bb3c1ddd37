"""What all records of averages share."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Averages:
    """A record of averages; undefined values are nan."""

    def as_dict(self) -> dict[str, Any]:
        """The fields in order, ready for JSON: undefined values are None."""
        values = asdict(self)
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}
