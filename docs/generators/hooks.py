"""Parts of the documentation that are generated from the program itself, so that they are never out of date.

A line `<!-- generated: NAME ARGUMENT -->` in a page is replaced by what the function for NAME returns.
"""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import ahead
import recipes_run
import report_pictures
from agreement_tables import site_agreement
from coverage_tables import by_command, coverage, kinds, scopes
from found_tables import found_order
from found_tables import pictures as found_pictures
from later_tables import drawn, later
from leaderboard_tables import pictures as leaderboards
from leaderboard_tables import standings, suites
from learned_tables import learned
from learned_tables import pictures as trained_agents
from mkdocs.structure.files import File
from performance_figures import figure, figures
from performance_tables import performance
from predictions_tables import judged
from promises_on_machines import NOT_DECIDED, WORDS
from promises_on_machines import PROMISES as MACHINE_PROMISES
from reference_pages import commands_table
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
from walltime.cli.schema import FILES, toml_file
from walltime.declared import meaning_of
from walltime.errors import WalltimeError
from walltime.estimates import Tsafrir05
from walltime.logs import all_rules
from walltime.logs.catalogue import CATALOGUE, shipped
from walltime.policy import POLICIES, parse_policy
from walltime.policy.slurm import PARAMETERS, Slurm
from walltime.predictors.registry import PREDICTORS
from walltime.schedule.groups import GROUPINGS
from walltime.simulation import replicate, simulate
from walltime.specification import options_of
from walltime.toml_file import key_tables
from walltime.workload import BATCH_COLUMNS, SCHEDULE_COLUMNS, SWF_COLUMNS, Column, Workload
from walltime.workload.cleaning import PUBLISHED
from walltime.workload.models import MODELS
from walltime.workload.scaling import shake

MARK = re.compile(r"^<!-- generated: (\S+)(?: (\S+))? -->$", re.MULTILINE)


def on_config(config):
    """Begin to run what the pages show; called by MkDocs."""
    for page in recipes_run.KEPT:
        ahead.begin(recipes_run.run, page)
    return config


def on_page_markdown(markdown: str, page, **_) -> str:
    """Replace the marks of a page, and add what recipes print; called by MkDocs."""
    for run in recipes_run.KEPT:
        if page.file.src_uri == run.relative_to(recipes_run.DOCS).as_posix():
            return recipes_run.with_outputs(markdown, run)
    return MARK.sub(lambda mark: GENERATORS[mark[1]](*filter(None, [mark[2]])), markdown)


LATE: dict[str, Callable[[], bytes]] = {}
"""Files whose content is asked for when all pages are read: what runs beside the build leaves, by path."""


def on_files(files, config):
    """Add the figures that are drawn at each build, and put the pages that wait for runs behind the others; called by MkDocs."""
    from walltime.preparation.workload_figures import compare_workloads
    from walltime.report.figure_files import figure_bytes

    names = ("lublin99", "feitelson96", "jann97", "downey97")
    compared = compare_workloads([MODELS[name].generate(5000, 128, 0.7, 1) for name in names], names)
    files.append(File.generated(config, "guides/models.svg", content=figure_bytes(compared, "svg")))
    for name, content in gallery_files().items():
        files.append(File.generated(config, f"guides/{name}", content=content))
    files.append(File.generated(config, "guides/explain.svg", content=figure_bytes(explanation(), "svg")))
    for name, content in (leaderboards() | trained_agents()).items():
        files.append(File.generated(config, f"guides/{name}", content=content))
    for name, content in (drawn() | found_pictures()).items():
        files.append(File.generated(config, f"background/{name}", content=content))
    for name, content in figures().items():
        files.append(File.generated(config, name, content=content))
    for name in FILES:
        content = json.dumps(toml_file(name).schema(), indent=1)
        files.append(File.generated(config, f"reference/{name}.schema.json", content=content))
    for page in recipes_run.KEPT:
        folder = page.parent.relative_to(recipes_run.DOCS).as_posix()
        for name in recipes_run.names(page):
            LATE[f"{folder}/{name}"] = functools.partial(recipes_run.content, page, name)
    for name in report_pictures.NAMES:
        LATE[f"tutorial/{name}"] = functools.partial(report_pictures.content, name)
    for path in LATE:
        files.append(File.generated(config, path, content=b""))
    for path in ("tutorial/first-run.md", *(page.relative_to(recipes_run.DOCS).as_posix() for page in recipes_run.KEPT)):
        waits = files.src_uris[path]
        files.remove(waits)
        files.append(waits)
    return files


def on_env(env, config, files):
    """Fill the files that runs leave, before they are copied; called by MkDocs."""
    for path, content in LATE.items():
        files.src_uris[path].content_bytes = content()
    return env


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
    declared: tuple[Column, ...] = {"swf": SWF_COLUMNS, "batch": BATCH_COLUMNS, "schedule": SCHEDULE_COLUMNS}[which]
    rows = [(c.swf_field or "", f"`{c.name}`", c.dtype, c.unit, c.meaning) for c in declared]
    return table(("SWF field", "name", "type", "unit", "meaning"), rows)


def rules() -> str:
    """The rules that drop, change or notice jobs."""
    return table(("rule", "effect", "what happens"), [(f"`{r.name}`", r.effect, r.meaning) for r in all_rules()])


def machine_promises() -> str:
    """What schedules promise on machines of pools and on Slurm's nodes, in which words, and what is not decided."""
    words = table(("", "what is meant"), [(f"`{word}`", meaning) for word, meaning in WORDS.items()])
    rows = [(f"`{one.rule}`", one.says, ", ".join(one.policies), one.not_decided) for one in MACHINE_PROMISES]
    rules = table(("rule", "what it means here", "promised by", "where it is not decided"), rows)
    undecided = table(("not decided", "why"), list(NOT_DECIDED.items()))
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
    return table(("policy", "machine", "schedules", "of them valid", "missed", "false alarms", "not decided"), rows)


def checks(which: str = "all") -> str:
    """The rules that the auditor checks: all of them, or those that always hold."""
    return table(("rule", "what it demands"), [(f"`{name}`", what) for name, what in {"all": CHECKS, "always": ALWAYS}[which].items()])


def mutations() -> str:
    """How the auditor did on schedules in which one thing was made wrong, by policy."""
    kept = json.loads(Path(__file__).with_name("mutations.json").read_text())["policies"]
    numbers = ("valid", "broken", "misses", "false_alarms")
    rows = [(name, *(f"{row[number]:,}" for number in numbers)) for name, row in kept.items()]
    rows.append(("**together**", *(f"{sum(row[number] for row in kept.values()):,}" for number in numbers)))
    return table(("policy", "valid", "broken", "missed", "false alarms"), rows)


SHOWN = ("los:ties=slowdown", "hybrid:depth=0", "hybrid:depth=3", "hybrid:depth=1,fit=greedy", "easy:ends=before,extra=none,shadow=kept")
"""Policies whose options change what they promise, shown beside those of the registry."""


def promises() -> str:
    """What each policy promises."""
    parts = []
    for policy in dict.fromkeys(map(parse_policy, [*POLICIES.variants, *SHOWN])):
        if policy.promises:
            rows = [(f"`{rule}`", what) for rule, what in policy.promises.items()]
            parts.append(f"### `{policy.label}`\n\n{table(('rule', 'what it means here'), rows)}")
    return "\n\n".join(parts)


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
    rows = []
    for error in WalltimeError.__subclasses__():
        builtin = next(base for base in error.__mro__ if base.__module__ == "builtins" and base is not Exception)
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
        size, licence = (said or ("said by `walltime fetch`" if about.zenodo else "not stated") for said in (about.size, about.licence))
        terms = f"{size}; {licence}"
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
    """What `walltime demo` prints on a terminal."""
    return f"```text\n{recipes_run.demo()}\n```"


def dimensions() -> str:
    """The keys of a campaign's plan."""
    kinds = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    default = {None: "", True: "true", False: "false"}
    rows = [(f"`{d.name}`", kinds[d.kind], default.get(d.default, d.default), d.meaning) for d in DIMENSIONS.values()]
    return table(("word", "value", "default", "meaning"), rows)


def groupings() -> str:
    """The groups of jobs over which a campaign can average."""
    return table(("grouping", "groups"), [(f"`{name}`", meaning) for name, meaning in GROUPINGS.items()])


@functools.cache
def swept(load: float, seed: int) -> Workload:
    """A workload of a model at this load."""
    return MODELS["lublin99"].generate(1000, 128, load, seed)


def swept_lines() -> list[CombinationMean]:
    """What the gallery draws over the load: ten workloads of a model for each of five loads, under three policies."""
    results, combinations = [], []
    for load in (0.5, 0.6, 0.7, 0.8, 0.9):
        for name in ("easy", "conservative", "easy:backfill-order=sjf"):
            results.append(replicate(functools.partial(swept, load), name, range(10)))
            combinations.append({"load": load, "policy": name})
    return compare_cells(replication_cells(results, combinations), ["load", "policy"])


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


def predictors() -> str:
    """An entry of the Python reference for each predictor of the table."""
    return "\n\n".join(f"::: {variant.kind.replace(':', '.')}" for variant in PREDICTORS.variants.values())


GENERATORS = {
    "gallery": gallery,
    "predictors": predictors,
    "columns": columns,
    "site-agreement": site_agreement,
    "commands": commands_table,
    "coverage": coverage,
    "interval-kinds": kinds,
    "intervals-by-command": by_command,
    "scopes": scopes,
    "rules": rules,
    "checks": checks,
    "promises": promises,
    "mutations": mutations,
    "machine-promises": machine_promises,
    "machine-mutations": machine_mutations,
    "supported": supported,
    "errors": errors,
    "slurm": slurm,
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
