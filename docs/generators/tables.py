"""Generated parts of the documentation.

A line `<!-- generated: NAME ARGUMENT -->` in a page is followed by the output of the function for NAME and by `<!-- end generated -->`.
`python docs/generators/tables.py` writes all of them into the pages, together with the pages of questions and of the command line;
`--check` lists the pages that would change, and exits with status 1 if there are any.
"""

import csv
import functools
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import questions
import recipes_run
import reference_pages
from agreement_tables import planted_rules, site_agreement
from coverage_tables import by_command, coverage, kinds, scopes, track_record
from found_tables import found_order
from later_tables import later
from leaderboard_tables import standings, suites
from learned_tables import learned
from performance_figures import figure
from performance_tables import performance, table as numbers_table
from predictions_tables import judged
from promises_on_machines import NOT_DECIDED, PROMISES as MACHINE_PROMISES, WORDS
from reproduction_tables import reproduction
from slurm_tables import real_slurm, slurm_noise
from specification_tables import changes, specifications
from start_times_tables import start_times
from support_tables import supported
from tuning_tables import tuning
from validation_tables import validation

import walltime as wt
from walltime.auditor import CHECKS
from walltime.auditor.report import ALWAYS
from walltime.campaign import DIMENSIONS, CombinationMean, compare_cells, replication_cells
from walltime.cli.schema import toml_file
from walltime.declared import meaning_of
from walltime.errors import WalltimeError
from walltime.estimates import Tsafrir05
from walltime.logs import all_rules
from walltime.logs.catalogue import CATALOGUE, shipped
from walltime.machine import Machine, Partition, Pool
from walltime.policy import POLICIES, parse_policy
from walltime.policy.slurm import PARAMETERS, Slurm
from walltime.predictors.registry import PREDICTORS
from walltime.schedule.groups import GROUPINGS
from walltime.simulation import replicate, simulate
from walltime.slurm.features import FEATURES, Treatment
from walltime.specification import options_of
from walltime.toml_file import key_tables
from walltime.workload import BATCH_COLUMNS, INTERRUPTED, LIMIT, SCHEDULE_COLUMNS, SWF_COLUMNS, Column, Workload
from walltime.workload.cleaning import PUBLISHED
from walltime.workload.models import MODELS
from walltime.workload.scaling import shake

DOCS = Path(__file__).parents[1]
MARK = re.compile(
    r"^(<!-- generated: (\S+)(?: ([^\n>]+?))? -->)$(?:(?:(?!<!-- generated).)*?^<!-- end generated -->$)?", re.MULTILINE | re.DOTALL
)
AT_BUILD = ("demo", "gallery", "predictors")
"""Marks that are filled when the documentation is built: output of long runs, figures, and entries of the Python reference."""


def explanation():
    """The picture of the job of a generated workload that was put off the most."""
    import walltime as wt
    from walltime.explanation.page import explanation_figure

    jobs = MODELS["lublin99"].generate(2000, 128, 0.8, 1).with_estimates(wt.estimates.FModel(4), seed=1)
    schedule = wt.simulate(jobs, wt.Easy(), dynamics=True)
    return explanation_figure(wt.explain(schedule, int(jobs.job_id[schedule.dynamics.delay.argmax()]), sooner=False))


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def columns(which: str) -> str:
    """The columns of a log or of a schedule."""
    declared: tuple[Column, ...] = {"swf": SWF_COLUMNS, "batch": BATCH_COLUMNS, "schedule": (*SCHEDULE_COLUMNS, LIMIT, INTERRUPTED)}[which]
    rows = [(c.swf_field or "", f"`{c.name}`", c.dtype, c.unit, c.meaning) for c in declared]
    return table(("SWF field", "name", "type", "unit", "meaning"), rows)


def rules() -> str:
    """The rules that drop, change or notice jobs."""
    return table(("rule", "effect", "meaning"), [(f"`{r.name}`", r.effect, r.meaning) for r in all_rules()])


def machine_promises() -> str:
    """Return the guarantees on machines of pools and on Slurm's nodes, their terms, and undecided cases."""
    words = table(("term", "meaning"), [(f"`{word}`", meaning) for word, meaning in WORDS.items()])
    rows = [(f"`{one.rule}`", one.statement, ", ".join(one.policies), one.not_decided) for one in MACHINE_PROMISES]
    rules = table(("rule", "guarantee", "policies", "not decided"), rows)
    undecided = table(("never decided", "reason"), list(NOT_DECIDED.items()))
    return "\n\n".join((words, rules, undecided))


def machine_mutations() -> str:
    """The same on machines of pools and of Slurm's nodes."""
    kept = json.loads(Path(__file__).with_name("mutations-machines.json").read_text())
    numbers = ("mutants", "valid", "misses", "false_alarms", "not_decided")
    found: dict[tuple[str, str], list[int]] = {}
    for row in kept["rows"]:
        mine = found.setdefault((row["policy"].partition(":")[0], row["machine"]), [0] * len(numbers))
        mine[:] = [total + row[name] for total, name in zip(mine, numbers, strict=True)]
    rows = [(*name, *(f"{number:,}" for number in mine)) for name, mine in sorted(found.items())]
    return table(("policy", "machine", "schedules", "valid", "errors missed", "false alarms", "not decided"), rows)


def checks(which: str = "all") -> str:
    """The rules that the auditor checks: all of them, or those that always hold."""
    return table(("rule", "requirement"), [(f"`{name}`", what) for name, what in {"all": CHECKS, "always": ALWAYS}[which].items()])


def mutations() -> str:
    """How the auditor did on schedules in which one thing was made wrong, by policy."""
    kept = json.loads(Path(__file__).with_name("mutations.json").read_text())["policies"]
    numbers = ("valid", "broken", "misses", "false_alarms")
    rows = [(name, *(f"{row[number]:,}" for number in numbers)) for name, row in kept.items()]
    rows.append(("**together**", *(f"{sum(row[number] for row in kept.values()):,}" for number in numbers)))
    return table(("policy", "valid schedules", "schedules with an error", "errors missed", "false alarms"), rows)


SHOWN = ("los:ties=slowdown", "hybrid:depth=0", "hybrid:depth=3", "hybrid:depth=1,fit=greedy", "easy:ends=before,extra=none,shadow=kept")
"""Policies whose options change their guarantees, shown with the registered ones."""


def promises() -> str:
    """Return the guarantees of each policy."""
    parts = []
    for policy in dict.fromkeys(map(parse_policy, [*POLICIES.variants, *SHOWN])):
        if policy.promises:
            rows = [(f"`{rule}`", what) for rule, what in policy.promises.items()]
            parts.append(f"### `{policy.label}`\n\n{table(('rule', 'requirement'), rows)}")
    return "\n\n".join(parts)


def slurm_features() -> str:
    """Return every feature of Slurm with its treatment by `walltime slurm cluster`."""
    kinds = {"settings": "show config", "partitions": "show partition", "nodes": "show node", "reservations": "show reservation"}
    sources = {kind: f"`scontrol {words}`" for kind, words in kinds.items()} | {"jobs": "`sacct`"}
    rows = []
    for feature in sorted(FEATURES, key=lambda one: list(Treatment).index(one.treatment)):
        keys = ", ".join(f"`{key}`" for key in feature.keys.split()) + (f" with `{feature.word}`" if feature.word.isidentifier() else "")
        source = sources.get(feature.kind, f"`sacctmgr show {feature.kind}`")
        rows.append((feature.name, f"{source}: {keys}", feature.treatment, feature.meaning))
    return table(("feature", "shown by", "treatment", "in the simulation"), rows)


def slurm() -> str:
    """The parameters of Slurm's scheduling that are modelled."""
    rows, options = [], options_of(Slurm)
    for name, parameter in PARAMETERS.items():
        setting = "" if parameter.setting == "SchedulerParameters" else f" ({parameter.setting})" if parameter.setting else " (no setting)"
        default = {True: "yes", False: "no"}[parameter.default] if isinstance(parameter.default, bool) else parameter.default
        if parameter.unit == "time":
            default = f"{default // 86_400} days" if default % 86_400 == 0 else f"{default // 60} min"
        unit = f" {parameter.unit}" if parameter.unit in ("s", "min") else ""
        rows.append((f"`{name}`{setting}", f"{default}{unit}", meaning_of(Slurm, options[name])))
    return table(("parameter", "default", "meaning"), rows)


def errors() -> str:
    """The exceptions, with their built-in base classes."""
    rows, ordinary = [], (Exception, BaseException, object)
    for error in WalltimeError.__subclasses__():
        builtin = next((base for base in error.__mro__ if base.__module__ == "builtins" and base not in ordinary), Exception)
        rows.append((f"`{error.__name__}`", f"`{builtin.__name__}`", error.__doc__))
    return table(("class", "is also a", "meaning"), rows)


def shipped_mappings() -> str:
    """The shipped mappings: what each data set has, by the columns of its mapping."""
    heads = ("mapping", "data set", "user", "request", "wait", "power", "size, licence", "source and remarks")
    rows = []
    for name, mapping in shipped().items():
        about, there = mapping.about, mapping.columns
        waits = "submit" in there and ("wait" in there or ("start" in there and there["start"].column != there["submit"].column))
        has = ["user" in there, "requested" in there, waits, bool(about.power)]
        remarks = f"From {about.source}. {about.note}"
        size, licence = (said or ("see `walltime fetch`" if about.zenodo else "not stated") for said in (about.size, about.licence))
        terms = size if size == licence else f"{size}; {licence}"
        rows.append((f"`{name}`", f"[{about.title}]({about.page})", *("yes" if one else "" for one in has), terms, remarks))
    return table(heads, rows)


def catalogue() -> str:
    """The logs that can be fetched."""
    rows = [(f"`{e.name}`", e.file, f"{e.procs:,}", e.used) for e in CATALOGUE]
    return table(("name", "file", "processors", "used by"), rows)


def published() -> str:
    """The archive's filters."""
    return table(("log", "filters"), [(log, "<br>".join(f"`{text}`" for text in filters)) for log, filters in PUBLISHED.items()])


def models() -> str:
    """The workload models, their sources, and the parameters that may follow the name."""
    rows = []
    for name, model in MODELS.items():
        source = re.search(r"^ *Source: (.+?)\.$", type(model).__doc__, re.MULTILINE)[1]
        rows.append((f"`{name}`", source))
    return "\n\n".join([table(("name", "source"), rows), specifications("workload model")])


def demo() -> str:
    """Return the terminal output of `walltime demo`."""
    return f"```text\n{recipes_run.demo()}\n```"


def dimensions() -> str:
    """The keys of a campaign's plan."""
    kinds = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    default = {"None": "", "True": "true", "False": "false"}
    rows = [(f"`{d.name}`", kinds[d.kind], default.get(str(d.default), d.default), d.meaning) for d in DIMENSIONS.values()]
    return table(("key", "value", "default", "meaning"), rows)


def groupings() -> str:
    """The groups of jobs over which a campaign can average."""
    return table(("grouping", "groups"), [(f"`{name}`", meaning) for name, meaning in GROUPINGS.items()])


@functools.cache
def swept(load: float, seed: int) -> Workload:
    """A workload of a model at this load."""
    return MODELS["lublin99"].generate(1000, 128, load, seed)


def swept_lines() -> list[CombinationMean]:
    """Return the data of the gallery's sweep: ten workloads of a model for each of five loads, under three policies."""
    results, combinations = [], []
    for load in (0.5, 0.6, 0.7, 0.8, 0.9):
        for name in ("easy", "conservative", "easy:backfill-order=sjf"):
            results.append(replicate(functools.partial(swept, load), name, range(10)))
            combinations.append({"load": load, "policy": name})
    return compare_cells(replication_cells(results, combinations), ["load", "policy"])


def on_nodes() -> wt.Schedule:
    """Return a schedule of Slurm on nodes with processors, GPUs and memory, of generated jobs."""
    pools = (Pool("cpu", 12, 8, memory=64_000), Pool("gpu", 4, 8, second=4, memory=128_000))
    machine = Machine(pools, (Partition("all", ("cpu", "gpu")),))
    jobs = MODELS["lublin99"].generate(300, machine.procs, 0.8, 2)
    requests = {"gpus": np.where(np.arange(300) % 3 == 0, 1 + np.arange(300) % 4, 0), "mem_mb_per_cpu": 2000 * (1 + np.arange(300) % 5)}
    return wt.simulate(replace(jobs, columns={**jobs.columns, **requests}), "slurm", machine=machine)


@functools.cache
def gallery_files() -> dict[str, bytes]:
    """The pictures of the gallery by file name."""
    from walltime.report.figure_files import figure_bytes

    jobs = MODELS["lublin99"].generate(2000, 128, 0.8, 1).with_estimates(Tsafrir05(), 1)
    schedules = [simulate(jobs, name) for name in ("fcfs", "easy", "easy:backfill-order=sjf")]
    made = {}
    for draw in (wt.figures.wait_distribution, wt.figures.slowdown_distribution, wt.figures.queue_length, wt.figures.utilization):
        made[draw.__name__] = draw(*schedules)
    made["gantt"] = wt.figures.gantt(schedules[1])
    made["nodes"] = wt.figures.nodes(on_nodes())
    for of_jobs in (
        wt.figures.estimate_use,
        wt.figures.estimates_against_runtimes,
        wt.figures.estimate_distribution,
        wt.figures.accuracy_by_runtime,
    ):
        made[of_jobs.__name__] = of_jobs(jobs)
    made["sweep"] = wt.figures.sweep(swept_lines())
    shaken = [replicate(lambda seed: shake(jobs, 30, seed), name, range(10)) for name in ("easy", "conservative")]
    made["intervals"] = wt.figures.intervals(shaken)
    return {f"gallery-{name}.svg": figure_bytes(axes.get_figure(), "svg") for name, axes in made.items()}


def gallery() -> str:
    """Each figure of `walltime.figures` with its call and what it shows."""
    parts = []
    for file in gallery_files():
        name = file.removeprefix("gallery-").removesuffix(".svg")
        says = str(getattr(wt.figures, name).__doc__).splitlines()[0]
        parts.append(f"### `wt.figures.{name}`\n\n{says}\n\n![{says}]({file})")
    return "\n\n".join(parts)


def measured(name: str) -> str:
    """Return a table of results that were measured once, from a CSV file in `measured/`."""
    with (Path(__file__).with_name("measured") / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return numbers_table(head, rows)


def predictors() -> str:
    """An entry of the Python reference for each predictor of the table."""
    return "\n\n".join(f"::: {variant.kind.replace(':', '.')}" for variant in PREDICTORS.variants.values())


def features(which: str) -> str:
    """Return the table of the features of an observation: compact, queue or published."""
    shown = wt.learn.QUEUE if which == "queue" else wt.learn.FEATURES[which]
    return table(("feature", "unit", "scale", "meaning"), [(f"`{f.name}`", f.unit, f.scale, f.about) for f in shown])


def slurm_forms() -> str:
    """The contents that are read from each form of Slurm's records; a test writes fifty jobs in each."""
    kept = json.loads(Path(__file__).with_name("slurm-forms.json").read_text())
    contents, forms = kept["contents"].values(), kept["containers"].items()
    lines = [(name, *("yes" if form["steps"] or one != "use by steps" else "" for one in contents)) for name, form in forms]
    return table(("records", *contents), lines)


def records() -> str:
    """The fields that are read from the records of each batch system."""
    kept = json.loads(Path(__file__).with_name("records.json").read_text())
    rows = [(system, *(fields.get(name, "") for name in kept["contents"])) for system, fields in kept["containers"].items()]
    return table(("records", *(meaning.lower() if meaning != "GPUs" else meaning for meaning in kept["contents"].values())), rows)


GENERATORS = {
    "slurm-forms": slurm_forms,
    "features": features,
    "measured": measured,
    "gallery": gallery,
    "predictors": predictors,
    "columns": columns,
    "site-agreement": site_agreement,
    "planted-rules": planted_rules,
    "commands": reference_pages.commands_table,
    "coverage": coverage,
    "track-record": track_record,
    "interval-kinds": kinds,
    "intervals-by-command": by_command,
    "scopes": scopes,
    "records": records,
    "rules": rules,
    "checks": checks,
    "promises": promises,
    "mutations": mutations,
    "machine-promises": machine_promises,
    "machine-mutations": machine_mutations,
    "supported": supported,
    "errors": errors,
    "slurm": slurm,
    "slurm-features": slurm_features,
    "shipped-mappings": shipped_mappings,
    "catalogue": catalogue,
    "published": published,
    "models": models,
    "specifications": specifications,
    "changes": changes,
    "demo": demo,
    "dimensions": dimensions,
    "groupings": groupings,
    "keys": lambda name: key_tables(toml_file(name).kind),
    "later": later,
    "performance": performance,
    "real-slurm": real_slurm,
    "slurm-noise": slurm_noise,
    "start-times": start_times,
    "reproduction": reproduction,
    "tuning": tuning,
    "found": found_order,
    "judged": judged,
    "learned": learned,
    "suites": suites,
    "standings": standings,
    "validation": validation,
    "performance-figure": figure,
}


def filled(markdown: str, names: Callable[[str], bool]) -> str:
    """Return a page with the output of each generator whose name is selected."""

    def fill(mark: re.Match[str]) -> str:
        name, argument = mark[2], mark[3]
        if not names(name):
            return mark[0]
        return f"{mark[1]}\n{GENERATORS[name](*filter(None, [argument])).strip()}\n<!-- end generated -->"

    return MARK.sub(fill, markdown)


def pages() -> dict[Path, str]:
    """Return the text of each page that has generated parts, or is generated, by its path."""
    texts = {
        page: filled(page.read_text(encoding="utf-8"), lambda name: name not in AT_BUILD)
        for page in sorted(DOCS.rglob("*.md"))
        if MARK.search(page.read_text(encoding="utf-8"))
    }
    generated = {questions.PAGE: questions.page()} | reference_pages.command_pages()
    return texts | {DOCS / path: text for path, text in generated.items()}


def main() -> int:
    """Write the pages, or list those that would change; return 1 if pages would change."""
    texts = pages()
    changed = [page for page, text in texts.items() if not page.exists() or page.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for page in changed:
            print(f"docs/{page.relative_to(DOCS)} is not up to date: run python docs/generators/tables.py")
        return int(bool(changed))
    for page in changed:
        page.parent.mkdir(exist_ok=True)
        page.write_text(texts[page], encoding="utf-8")
    print(f"{len(changed)} pages written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
