"""Tables of policies by machine, feature and engine."""

from __future__ import annotations

from walltime.engine.interface.choice import FEATURES, MACHINES, support
from walltime.policy import POLICIES, PlainPolicy, Policy, parse_policy
from walltime.policy.base import Support

OPTIONS = (
    "fcfs:window=4",
    "fcfs:decisions=committed",
    "easy:extra=none",
    "hybrid:1,fit=greedy",
    "conservative:compression=always",
)
"""Policies with options that change where they run."""
WORDS = {"kernel": "compiled", "reference": "plain Python", "": "no"}
HAS_NONE = ("second", "outages", "limits", "tiers", "windows", "overheads")
"""Features that a single-pool machine lacks."""
TITLES = {
    "threshold": "the order `wfp` with a `threshold`",
    "events": "simultaneous events `one-by-one`, or `arrivals-first`",
    "dialect": "interpretations of a dialect",
    "effects": "recorded effects of backfilling (`dynamics`)",
    "second": "a second resource, such as GPUs",
    "limits": "limits (`[[limit]]`)",
    "windows": "hours in which jobs do not start (`[[window]]`)",
}
"""Features with a shorter title here than in messages."""
INTERPRETATIONS = "compiled, or plain Python: see [Dialects](../background/dialects.md#dialects)"
"""The cell of interpretations on a single-pool machine, where each is an option of the policy and has its own engine."""


def policies() -> list[Policy]:
    """Those of the registry, those with such options, and one of a user's own."""
    named = [
        parse_policy(text) for name in POLICIES.variants for text in (name, *(one for one in OPTIONS if one.partition(":")[0] == name))
    ]
    return [*named, PlainPolicy()]


def supported(which: str) -> str:
    """Which policy runs on which machine, or with what."""
    notes: dict[str, int] = {}
    rows = _machines(notes) if which == "machines" else _features(notes)
    head = ("policy" if which == "machines" else "with", *(name.removeprefix("on ") for name in MACHINES.values()))
    lines = [head, ("---",) * len(head), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([text, "", *(f"{number}. {why}" for why, number in notes.items())])


def _cell(found: Support, notes: dict[str, int]) -> str:
    """A word for what runs it, and the number of the reason."""
    if found.engine == "kernel":
        return WORDS["kernel"]
    why = found.why.partition(": ")[2]
    return f"{WORDS[found.engine]} ({notes.setdefault(why, len(notes) + 1)})" if why else WORDS[found.engine]


def _machines(notes: dict[str, int]) -> list[tuple[str, ...]]:
    rows = []
    for policy in policies():
        name = "your own, in plain Python" if isinstance(policy, PlainPolicy) else f"`{policy.label}`"
        rows.append((name, *(_cell(support(policy, machine), notes) for machine in MACHINES)))
    return rows


def _features(notes: dict[str, int]) -> list[tuple[str, ...]]:
    rows = []
    for feature, title in FEATURES.items():
        cells = []
        for machine in MACHINES:
            by = dict[Support, list[str]]()
            for policy in policies():
                if support(policy, machine).engine == "kernel":  # others run as in the first table
                    by.setdefault(support(policy, machine, [feature]), []).append(policy.label)
            if machine == "number" and feature in HAS_NONE:
                cells.append("has none")
                continue
            if machine == "number" and feature == "dialect":
                cells.append(INTERPRETATIONS)
                continue
            most = max(by, key=lambda found: len(by[found]))
            others = [f"under {_listed(names)}: {_cell(found, notes)}" for found, names in by.items() if found != most]
            cells.append("; ".join([_cell(most, notes), *others]))
        rows.append((TITLES.get(feature, title.removeprefix("with ")), *cells))
    return rows


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
