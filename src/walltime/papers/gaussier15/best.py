"""gaussier15: which triples are best, how far below EASY and EASY++, and whether the published metrics say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from walltime.papers.gaussier15.agreement import published_metrics
from walltime.papers.gaussier15.triples import E_LOSS, EASY, EASY_PP, FCFS, SJBF, Triple, measure, subjects_with_users, triples
from walltime.papers.items import item
from walltime.papers.results import Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject

SHOWN = 10
"""The best triples that the table has."""
EQUAL = 1e-9
Slowdowns = Mapping[tuple[str, ...], float]


def slowdowns(study: Study, subject: Subject, chosen: Sequence[Triple]) -> dict[tuple[str, ...], float]:
    """Mean bounded slowdown by triple."""
    return {triple.key: one["avgbsld"] for triple, one in zip(chosen, measure(study, subject, chosen), strict=True)}


@item("best")
def best(study: Study) -> list[Part]:
    """The best triples, and what is gained."""
    chosen = triples(study.quick)
    rows: list[list[Entry]] = []
    gains: list[list[Entry]] = []
    claims = Claims()
    for subject in subjects_with_users(study):
        ours = slowdowns(study, subject, chosen)
        theirs = {key: values["avgbsld"] for key, values in published_metrics(subject).items() if "avgbsld" in values}
        ranked = sorted((triple for triple in chosen if triple.is_learned), key=lambda triple: ours[triple.key])
        ranks = _ranks(ours, chosen)
        printed_ranks = _ranks(theirs, [triple for triple in chosen if triple.key in theirs])
        for triple in dict.fromkeys((EASY, EASY_PP, E_LOSS, *ranked[:SHOWN])):
            mine = Value(ours[triple.key], theirs.get(triple.key), EQUAL, digits=2)
            rows.append([subject.name, triple.label, mine, ranks[triple.key], printed_ranks.get(triple.key)])
        gains += _gains(subject.name, ours, theirs, ranked[0])
        claims += _claims(subject.name, ours, theirs, chosen)
    columns = ["log", "scheduler", "mean bounded slowdown", "rank", "published rank"]
    note = "Ranks are among the learned triples, EASY, EASY++ and the other deterministic ones."
    return [
        Table("best", f"EASY, EASY++, the paper's choice, and our best {SHOWN}", columns, rows, note),
        Table("best-gains", "How much lower the mean bounded slowdown is (%)", ["log", "scheduler", "than EASY", "than EASY++"], gains),
        claims,
        Notes([_remembered(study)]),
    ]


def _ranks(values: Slowdowns, chosen: Sequence[Triple]) -> dict[tuple[str, ...], int]:
    """Rank of each triple by slowdown, from 1."""
    in_order = sorted((triple.key for triple in chosen), key=values.__getitem__)
    return {key: place for place, key in enumerate(in_order, 1)}


def gain(values: Slowdowns, triple: Triple, baseline: Triple) -> float:
    """How much lower the slowdown of a triple is, percent; nan if one of them is unknown."""
    mine, base = values.get(triple.key, float("nan")), values.get(baseline.key, float("nan"))
    return 100 * (1 - mine / base)


def _gains(log: str, ours: Slowdowns, theirs: Slowdowns, winner: Triple) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for name, triple in (("the paper's choice", E_LOSS), (f"our best: {winner.label}", winner)):
        line: list[Entry] = [log, name]
        for baseline in (EASY, EASY_PP):
            known = triple.key in theirs and baseline.key in theirs
            line.append(Value(gain(ours, triple, baseline), gain(theirs, triple, baseline) if known else None, 0.01, digits=1))
        rows.append(line)
    return rows


def _claims(log: str, ours: Slowdowns, theirs: Slowdowns, chosen: Sequence[Triple]) -> Claims:
    learned = [triple for triple in chosen if triple.is_learned]
    winner = min(learned, key=lambda triple: ours[triple.key])
    claims = Claims(
        (f"{log}: the paper's choice beats EASY", gain(ours, E_LOSS, EASY) > 0, f"by {gain(ours, E_LOSS, EASY):.1f} %"),
        (f"{log}: the paper's choice beats EASY++", gain(ours, E_LOSS, EASY_PP) > 0, f"by {gain(ours, E_LOSS, EASY_PP):.1f} %"),
        (f"{log}: the best triple backfills the shortest first", winner.policy == SJBF, winner.label),
    )
    pairs = [(triple, Triple((*_other_scheduler(triple.key),), FCFS, triple.prediction)) for triple in learned if triple.policy == SJBF]
    better = sum(ours[one.key] < ours[other.key] for one, other in pairs)
    evidence = f"for {better} of {len(pairs)} pairs of correction and predictor"
    claims.add(f"{log}: backfilling the shortest first is better than in order", better > len(pairs) / 2, evidence)
    if theirs:
        known = [triple for triple in learned if triple.key in theirs]
        first = min(known, key=lambda triple: theirs[triple.key])
        evidence = f"published best {first.label}: {theirs[first.key]:.2f}, ours {ours[first.key]:.2f}; our best {ours[winner.key]:.2f}"
        claims.add(f"{log}: the published best triple is our best", first == winner, evidence)
    return claims


def _other_scheduler(key: tuple[str, ...]) -> tuple[str, ...]:
    return ("easy_prediction_backfill_scheduler", *key[1:])


def _remembered(study: Study) -> str:
    printed = study.printed.tables["gains"]
    gains = ", ".join(f"{row['percent']} % below {row['than']}" for row in printed.rows)
    return f"The paper's choice is the E-Loss with increments and the shortest first; printed: {gains} ({printed.source})."
