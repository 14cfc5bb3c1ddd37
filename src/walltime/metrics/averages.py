"""What all records of averages share."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from walltime import notebook


@dataclass(frozen=True)
class Averages:
    """A record of averages; undefined values are nan."""

    def as_dict(self) -> dict[str, Any]:
        """The fields in order, ready for JSON: undefined values are None."""
        values = asdict(self)
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}

    def _repr_html_(self) -> str:
        """A table in a notebook."""
        rows = [(name.replace("_", " "), notebook.number(value)) for name, value in self.as_dict().items()]
        return notebook.facts(type(self).__name__, rows)
