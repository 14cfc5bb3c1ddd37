"""Events of MkDocs: figures that are drawn, and commands that run, when the documentation is built. The tables are in tables.py."""

import functools
import json
from collections.abc import Callable

import ahead
import recipes_run
import report_pictures
import tables
from later_tables import drawn as later_pictures
from leaderboard_tables import pictures as leaderboards
from learned_tables import pictures as trained_agents
from mkdocs.structure.files import File
from performance_figures import figures

from walltime.cli.schema import FILES, toml_file
from walltime.workload.models import MODELS


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
    return tables.filled(markdown, lambda name: name in tables.AT_BUILD)


LATE: dict[str, Callable[[], bytes]] = {}
"""Content of files that programs write during the build, by path; read when all pages are done."""


def on_files(files, config):
    """Add the figures that are drawn at each build, and put the pages that wait for runs behind the others; called by MkDocs."""
    from walltime.preparation.workload_figures import compare_workloads
    from walltime.report.figure_files import figure_bytes

    names = ("lublin99", "feitelson96", "jann97", "downey97")
    compared = compare_workloads([MODELS[name].generate(5000, 128, 0.7, 1) for name in names], names)
    files.append(File.generated(config, "guides/models.svg", content=figure_bytes(compared, "svg")))
    for name, content in tables.gallery_files().items():
        files.append(File.generated(config, f"guides/{name}", content=content))
    files.append(File.generated(config, "guides/explain.svg", content=figure_bytes(tables.explanation(), "svg")))
    drawn = {"guides": leaderboards(), "background": later_pictures(), "validation": trained_agents() | figures()}
    for folder, pictures in drawn.items():
        for name, content in pictures.items():
            files.append(File.generated(config, f"{folder}/{name}", content=content))
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
    for path in ("tutorial/quickstart.md", *(page.relative_to(recipes_run.DOCS).as_posix() for page in recipes_run.KEPT)):
        waits = files.src_uris[path]
        files.remove(waits)
        files.append(waits)
    return files


def on_env(env, config, files):
    """Fill the files that runs leave, before they are copied; called by MkDocs."""
    for path, content in LATE.items():
        files.src_uris[path].content_bytes = content()
    return env
