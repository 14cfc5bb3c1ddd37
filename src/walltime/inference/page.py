"""The report page of an inference: the inferred rules, and how well they explain the record."""

from collections.abc import Mapping, Sequence
from typing import Any

from walltime.inference.inference import Inference, site_text
from walltime.inference.order_choice import OrderChoice
from walltime.inference.step_agreement import GroupAgreement
from walltime.provenance import provenance
from walltime.report.page import Code, Drawing, Page, Section, note, workload_facts
from walltime.tables import Cell, Row, Table, time_cell
from walltime.wording import counted, human_time, numbered
from walltime.workload import Workload

WHAT_IT_IS = (
    "One-step agreement: at every recorded instant, the policy proposes jobs to start, given the recorded machine and queue. A proposal "
    "is followed if the job starts while it is still proposed, and followed promptly if it starts within 60 s (or within twice the log's "
    "usual start-up delay, if that is longer but at most 5 min). The agreement is F1, the harmonic mean of two shares: the recorded "
    "starts that promptly follow a proposal, and the proposals that are promptly followed. A free simulation is a much weaker test, "
    "because one job that starts at another time changes everything that follows."
)


def verdict(inference: Inference) -> list[str]:
    """Return the findings as sentences."""
    if inference.refused:
        return [short_verdict(inference)]
    kept, after = len(inference.rules), inference.after
    scheduler = f"EASY with {'this rule' if kept == 1 else 'these rules'}" if kept else "EASY"
    said = [f"{short_verdict(inference)} Given the recorded machine and queue at each instant, {scheduler} {after.text}"]
    said += [f"{rule.text[0].upper()}{rule.text[1:]}{inference.period_of(rule)}." for rule in inference.rules]
    if inference.hindsight.prompt_f1 > after.prompt_f1 + 0.01:
        said.append(
            "With the times at which jobs seem to have become eligible (after holds and dependencies), which are known only after the "
            f"fact, the agreement would be {inference.hindsight.prompt_f1:.2f}."
        )
    if inference.free and inference.held:
        said.append(
            "Eligible times are inferred from the starts themselves, so a what-if uses them only on request (--hindsight), and predicted "
            "start times never do."
        )
    if inference.order is not None:
        said.append(order_note(inference.order))
    return said


def order_note(order: OrderChoice) -> str:
    """Return a sentence on how well orders predict the job that starts."""
    effects = [("effects of users", order.users), ("effects of projects as well", order.projects)]
    known = [f", with {what} {100 * share:.0f} %" for what, share in effects if share is not None]
    return (
        f"When a job started, {order.alternatives:.0f} jobs on average could have started. These orders rank it first: arrival "
        f"in {100 * order.arrival:.0f} % of the cases; wait, size and request (a conditional logit) in {100 * order.fitted:.0f} %"
        f"{''.join(known)}; chance in {100 * order.chance:.0f} %."
    )


def short_verdict(inference: Inference) -> str:
    """Return how many rules were found, and the agreement with the rules."""
    if inference.refused:
        return f"{inference.refused[0].upper()}{inference.refused[1:]}."
    kept, before, after = len(inference.rules), inference.before.prompt_f1, inference.after.prompt_f1
    what = f"{counted(kept, 'rule')} of the site" if kept else "No rule of the site"
    same = f"{before:.2f}" == f"{after:.2f}"
    change = "is" if not kept else "stays at" if same else f"{'rises' if after > before else 'falls'} from {before:.2f} to"
    them = "" if not kept else f" with {'it' if kept == 1 else 'them'}"
    return (
        f"{what} {'was' if kept < 2 else 'were'} inferred from {inference.log}: on a part of the log that was not used to find rules, the "
        f"agreement of EASY with the recorded starts {change} {after:.2f}{them} (1 is perfect)."
    )


def short_notes(inference: Inference) -> list[str]:
    """Return the notes, with the number of rejected rules in place of the rules."""
    kept = [one for one in inference.notes if not one.startswith("Left out: ")]
    tried = len(inference.notes) - len(kept)
    more = "For months, users, the queue order and the reasons for leaving rules out, add --verbose."
    return [*kept, f"Rules tried and left out: {tried}.", more]


def short_tables(inference: Inference) -> list[Table]:
    """Return tables of the rules with their gains, and of simulated and recorded waits, for the terminal."""
    found = inference.rules
    texts = [Cell(f"{one.text}{inference.period_of(one)}", look="wrap") for one in found]
    rules: list[Row] = [[text, one.agreement, f"{one.better} / {one.worse}"] for text, one in zip(texts, found, strict=True)]
    names = ("plain EASY", "with the rules", "with the rules, against a copy shaken by 30 s", "with eligible times known in hindsight")
    runs: list[Row] = [
        [name, time_cell(run.mean_simulated), f"{run.rank_correlation:.2f}", f"{100 * run.within:.0f} %"]
        for name, run in zip(names, inference.free, strict=False)
    ]
    if inference.free:
        runs.insert(0, ["recorded", time_cell(inference.free[0].mean_recorded), "1.00", "100 %"])
    tables = [
        Table(("rule", "agreement", "weeks better / worse"), rules, "Rules, with the change of the agreement in held-out weeks"),
        Table(("simulation", "mean wait", "rank correlation", "within 10 min"), runs, "Recorded and simulated waits"),
    ]
    return [table for table in tables if table.rows]


def tables_of(inference: Inference) -> list[Table]:
    """Return the tables of rules, simulations, months and groups."""
    rules: list[Row] = [
        [Cell(rule.text, look="wrap"), Cell(rule.evidence, look="wrap"), rule.agreement, rule.weeks] for rule in inference.rules
    ]
    free: list[Row] = []
    for run in inference.free:
        waits = time_cell(run.mean_simulated), time_cell(run.mean_recorded)
        trusted = "not usable" if run.doubt else human_time(run.trusted_from)
        rank, within = f"{run.rank_correlation:.2f}", f"{100 * run.within:.0f} %"
        free.append([run.machine, f"{run.jobs:,}", *waits, rank, within, trusted])
    months: list[Row] = []
    for one in () if inference.refused else inference.months:
        followed = f"{100 * one.after.followed:.0f} %", f"{100 * one.after.followed_promptly:.0f} %"
        agreement = f"{one.before.prompt_f1:.2f}", f"{one.after.prompt_f1:.2f}"
        months.append([one.month, f"{one.after.jobs:,}", *followed, *agreement])
    month_heads = ("month", "starts", "proposals followed", "followed promptly", "plain", "with rules")
    heads = ("", "jobs", "mean wait", "compared with", "rank correlation", "within 10 min", "error bound")
    tables = [
        Table(("rule", "evidence", "agreement", "held-out weeks"), rules, "The site's rules", look="words2"),
        Table(heads, free, "Free simulation of the held-out weeks"),
        Table(month_heads, months, "Agreement by month", look="months"),
        groups_table(inference.groups),
    ]
    return [table for table in tables if table.rows]


def groups_table(groups: Sequence[GroupAgreement]) -> Table:
    """Return the agreement by class and user, with the reasons for unmatched starts."""
    heads = (
        "jobs",
        "starts",
        "started alike",
        "proposals followed",
        "followed promptly",
        "agreement",
        "reasons for the other starts",
        "unfollowed proposals: held jobs",
    )
    rows: list[Row] = [
        [
            numbered("user", one.name) if one.by == "users" else one.name,
            f"{one.score.jobs:,}",
            f"{100 * one.score.at:.0f} %",
            f"{100 * one.score.followed:.0f} %",
            f"{100 * one.score.followed_promptly:.0f} %",
            f"{one.score.prompt_f1:.2f}",
            Cell(", ".join(f"{what} {count:,}" for what, count in one.blockers.items()), look="wrap"),
            f"{one.held:,} of {one.not_followed:,}",
        ]
        for one in groups
        if one.by != "month"
    ]
    return Table(heads, rows, "agreement by class and user", look="groups")


def inference_page(inference: Inference, workload: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """Return the report page of an inference; `settings`: further entries of the provenance record, such as `command`."""
    record = provenance(workload, **(settings or {}))
    first, *rest = verdict(inference)
    rules, under, without = "of EASY", "under EASY", ""
    if inference.rules:
        rules = under = "with the rules"
        without = f" ({inference.before.prompt_f1:.2f} without)"
    sections = [Section(f"{table.title[0].upper()}{table.title[1:]}", [table]) for table in tables_of(inference)]
    if not inference.refused:
        sections.insert(0, Section("", [months_drawing(inference)]))
        sections.append(Section("The machine file", [Code(site_text(inference))]))
    return Page(
        "a site's rules, inferred from its log",
        f"Which rules shaped the log of {inference.log}?",
        [first, *rest[: len(inference.rules)]],
        [*sections, Section("What is measured", [note(WHAT_IT_IS)])],
        workload_facts(workload, record["log"]),
        [*rest[len(inference.rules) :], *inference.notes],
        numbers=[
            ("rules found", f"{len(inference.rules):,}"),
            (f"agreement {rules}", f"{inference.after.prompt_f1:.2f}{without}"),
            ("proposals followed", f"{100 * inference.after.followed:.0f} %"),
            ("followed promptly", f"{100 * inference.after.followed_promptly:.0f} %"),
            *(
                (f"mean wait, simulated {under}", f"{human_time(one.mean_simulated)} ({human_time(one.mean_recorded)} recorded)")
                for one in inference.free[1:2]
            ),
        ],
        workload=workload,
        record=record,
    )


def months_drawing(inference: Inference) -> Drawing:
    """Draw the one-step agreement by month, without and with the rules."""
    from walltime.report.figures import months_figure

    months = inference.months
    lines = {"EASY": [one.before.prompt_f1 for one in months]}
    if inference.rules:
        lines["with the site's rules"] = [one.after.prompt_f1 for one in months]
    alternative = f"One-step agreement by month: {', '.join(lines)}."
    caption = "One-step agreement by month, of the starts that were not used to choose rules."
    return Drawing(months_figure([one.month for one in months], lines, "one-step agreement", 1), "months", alternative, caption)
