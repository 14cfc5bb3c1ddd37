"""gaussier15: which triples are best, how far below EASY and EASY++, and whether the published metrics agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from walltime.papers.gaussier15.agreement import published_metrics
from walltime.papers.gaussier15.triples import E_LOSS, EASY, EASY_PP, SJBF, Triple, measure, triples
from walltime.papers.items import item
from walltime.papers.results import Claims, Entry, Notes, Part, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject

SHOWN = 10
"""Number of the best triples in the table."""
EQUAL = 1e-9
Slowdowns = Mapping[tuple[str, ...], float]


def slowdowns(study: Study, subject: Subject, chosen: Sequence[Triple]) -> dict[tuple[str, ...], float]:
    """Return the mean bounded slowdown by triple."""
    return {triple.key: one["avgbsld"] for triple, one in zip(chosen, measure(study, subject, chosen), strict=True)}


@item("best")
def best(study: Study) -> list[Part]:
    """The best triples, and what is gained."""
    chosen = triples(study.quick)
    rows: Rows = []
    gains: Rows = []
    claims = Claims()
    for subject in study.with_users:
        ours = slowdowns(study, subject, chosen)
        theirs = {key: values["avgbsld"] for key, values in published_metrics(subject).items() if "avgbsld" in values}
        learned = [triple for triple in chosen if triple.is_learned]
        ranked = sorted(learned, key=lambda triple: ours[triple.key])
        ranks = _ranks(ours, chosen)
        printed_ranks = _ranks(theirs, [triple for triple in chosen if triple.key in theirs])
        for triple in dict.fromkeys((EASY, EASY_PP, E_LOSS, *ranked[:SHOWN])):
            mine = Value(ours[triple.key], theirs.get(triple.key), EQUAL, digits=2)
            rows.append([subject.name, triple.label, mine, ranks[triple.key], printed_ranks.get(triple.key)])
        winner = ranked[0]
        for name, triple in (("the paper's choice", E_LOSS), (f"our best: {winner.label}", winner)):
            line: list[Entry] = [subject.name, name]
            for baseline in (EASY, EASY_PP):
                known = triple.key in theirs and baseline.key in theirs
                line.append(Value(gain(ours, triple, baseline), gain(theirs, triple, baseline) if known else None, 0.01, digits=1))
            gains.append(line)
        claims += _claims(subject.name, ours, theirs, learned, winner)
    columns = ["log", "scheduler", "mean bounded slowdown", "rank", "published rank"]
    printed = study.printed.tables["gains"]
    in_print = ", ".join(f"{row['percent']} % below {row['than']}" for row in printed.rows)
    note = "Ranks are among the learned triples, EASY, EASY++ and the other deterministic ones."
    return [
        Table("best", f"EASY, EASY++, the paper's choice, and our best {SHOWN}", columns, rows, note),
        Table("best-gains", "How much lower the mean bounded slowdown is (%)", ["log", "scheduler", "than EASY", "than EASY++"], gains),
        claims,
        Notes(f"The paper's choice is the E-Loss with increments and the shortest first; printed: {in_print} ({printed.source})."),
    ]


def _ranks(values: Slowdowns, chosen: Sequence[Triple]) -> dict[tuple[str, ...], int]:
    """Return the rank of each triple by slowdown, from 1."""
    in_order = sorted((triple.key for triple in chosen), key=values.__getitem__)
    return {key: place for place, key in enumerate(in_order, 1)}


def gain(values: Slowdowns, triple: Triple, baseline: Triple) -> float:
    """Return how much lower the slowdown of a triple is than the baseline's, percent."""
    return 100 * (1 - values[triple.key] / values[baseline.key])


def _claims(log: str, ours: Slowdowns, theirs: Slowdowns, learned: Sequence[Triple], winner: Triple) -> Claims:
    """Return the claims on one log: the paper's choice, the order of backfilling, and the published best triple."""
    claims = Claims(
        (f"{log}: the paper's choice beats EASY", gain(ours, E_LOSS, EASY) > 0, f"by {gain(ours, E_LOSS, EASY):.1f} %"),
        (f"{log}: the paper's choice beats EASY++", gain(ours, E_LOSS, EASY_PP) > 0, f"by {gain(ours, E_LOSS, EASY_PP):.1f} %"),
        (f"{log}: the best triple backfills the shortest first", winner.policy == SJBF, winner.label),
    )
    pairs = [(triple.key, ("easy_prediction_backfill_scheduler", *triple.key[1:])) for triple in learned if triple.policy == SJBF]
    better = sum(ours[shortest] < ours[in_order] for shortest, in_order in pairs)
    evidence = f"for {better} of {len(pairs)} pairs of correction and predictor"
    claims.add(f"{log}: backfilling the shortest first is better than in order", better > len(pairs) / 2, evidence)
    if theirs:
        known = [triple for triple in learned if triple.key in theirs]
        first = min(known, key=lambda triple: theirs[triple.key])
        evidence = f"published best {first.label}: {theirs[first.key]:.2f}, ours {ours[first.key]:.2f}; our best {ours[winner.key]:.2f}"
        claims.add(f"{log}: the published best triple is our best", first == winner, evidence)
    return claims
