"""EASY backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from walltime.policy.base import Backfilling, Heading, Passes, one_of


@dataclass(frozen=True)
class Easy(Heading, Backfilling):
    """EASY backfilling: a job may be backfilled if it does not delay the job at the head of the queue.

    `extra`: the extra nodes are `all` nodes that are free at the shadow time and not needed by the head (default), or, with
    `literal`, those counted when the walk over the running jobs stops at the first sufficient job; among jobs with the same
    expected end the one started last comes first. `shadow`: shadow time and extra nodes are recomputed (`afresh`) before each
    backfilled job (default), or `kept` until a job terminates or the head changes, even if jobs have used extra nodes in the
    meantime; the head may then be delayed; `once` finds them once for each head. With `extra="none"` no job may use extra nodes.
    `ends`: a job that uses no extra nodes is expected to end `by` the shadow time (default) or `before` it. `decisions`, `window`: see
    `Heading`. Values other than the default run on the reference engine.

    Source: mualem01, section 2.2; feitelson98, Fig. 2.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"easy": {}}

    extra: Literal["all", "literal", "none"] = "all"
    shadow: Literal["afresh", "kept", "once"] = "afresh"
    ends: Literal["by", "before"] = "by"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("extra", self.extra, ("all", "literal", "none"))
        one_of("shadow", self.shadow, ("afresh", "kept", "once"))
        one_of("ends", self.ends, ("by", "before"))

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return "EASY" + self.remarks()

    @property
    def promises(self) -> tuple[str, ...]:
        """The head of the queue starts as soon as it fits and, unless `shadow` is not `afresh`, by its reserved start."""
        if not self.reads_as_papers:
            return ()
        return ("head_waits", "head_delayed") if self.shadow == "afresh" else ("head_waits",)

    @property
    def passes(self) -> Passes | None:
        """One reservation, for the head."""
        default = self.reads_as_papers and (self.extra, self.shadow, self.ends) == ("all", "afresh", "by")
        return Passes("head", 1) if default else None
