"""EASY backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from walltime.policy.base import Backfilling, Passes, one_of


@dataclass(frozen=True)
class Easy(Backfilling):
    """EASY backfilling: a job may jump ahead if it does not delay the job at the head of the queue.

    `extra`: the extra nodes at the shadow time are `all` that are free then (default), or `literal`, those counted when the
    walk over the running jobs stops at the first that is sufficient; of jobs with one expected end the last started comes first.
    `shadow`: shadow time and extra nodes are found `afresh` whenever a job to backfill is looked for (default), or `kept`
    until a job terminates or another one is at the head, whatever extra nodes jobs have taken meanwhile; the head may then be
    delayed. Other values than the default run on the reference engine.

    Source: Mu'alem, Feitelson, TPDS 12 (2001), section 2.2; Feitelson, Mu'alem Weil, IPPS 1998, Fig. 2.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"easy": {}}

    extra: Literal["all", "literal"] = "all"
    shadow: Literal["afresh", "kept"] = "afresh"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("extra", self.extra, ("all", "literal"))
        one_of("shadow", self.shadow, ("afresh", "kept"))

    @property
    def title(self) -> str:
        """What the policy is called in sentences and figures."""
        return "EASY" + self.remarks()

    @property
    def promises(self) -> tuple[str, ...]:
        """The head of the queue starts as soon as it fits, and by its reservation unless that may be taken away."""
        return ("head_waits", "head_delayed") if self.shadow == "afresh" else ("head_waits",)

    @property
    def passes(self) -> Passes | None:
        """One reservation, for the head."""
        return Passes("head", 1) if (self.extra, self.shadow) == ("all", "afresh") else None
