"""The references as a page for each command, and one for each section of the Python reference; the pages that list them link there.

`reference/api.md` is one source, so that an entry is added in one place; its sections become pages when the documentation is built.
"""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from mkdocs.structure.files import File

DOCS = Path(__file__).parents[1]
API = "reference/api.md"
CLI = "reference/cli.md"
SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
PART = re.compile(r"^### (.+)$", re.MULTILINE)
ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)
LINK = re.compile(r"(?P<folder>(?:\.\./)?(?:reference/)?)api\.md#(?P<anchor>[\w.-]+)")
HELPS = """
import contextlib, io, json, sys
from walltime.cli.main import commands, run
import typer

def shown(*words):
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink):
        assert run([*words, "--help"]) == 0, words
    return sink.getvalue()

found = {}
for panel, inside_panel in commands().items():
    for one in inside_panel:
        if isinstance(one, typer.Typer):
            name = one.info.name
            inside = [c.name or c.callback.__name__.replace("_", "-") for c in one.registered_commands]
        else:
            name, inside = one.__name__.replace("_", "-"), []
        about = one.info.help if isinstance(one, typer.Typer) else one.__doc__
        found[name] = {"panel": panel, "about": about.strip().splitlines()[0], "help": shown(name)}
        found[name]["inside"] = {word: shown(name, word) for word in inside}
print(json.dumps({"help": shown(), "commands": found}))
"""
"""A program that prints every help text, so that the command line is imported once."""


@functools.cache
def helps() -> dict:
    """The help texts: of the program, and of each command its panel, its first line, its help, and those of its own commands."""
    plain = {"COLUMNS": "78", "TERMINAL_WIDTH": "78", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run([sys.executable, "-c", HELPS], env=os.environ | plain, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def help_text(text: str) -> str:
    """A help text as a block."""
    return "\n".join(["```text", *(line.rstrip() for line in text.strip().splitlines()), "```"])


def commands_table() -> str:
    """Return the table of commands by purpose."""
    parts = []
    panels: dict[str, list[str]] = {}
    for name, one in helps()["commands"].items():
        panels.setdefault(one["panel"], []).append(f"| [`walltime {name}`](cli/{name}.md) | {one['about']} |")
        panels[one["panel"]] += [f"| [`walltime {name} {word}`](cli/{name}.md#walltime-{name}-{word}) | |" for word in one["inside"]]
    parts += ["\n".join([f"## {panel}\n", "| command | what it does |", "| --- | --- |", *rows]) for panel, rows in panels.items()]
    return "\n\n".join([*parts, "## walltime --help", help_text(helps()["help"])])


def command_pages() -> dict[str, str]:
    """A page for each command, with those of its own below it, by path."""
    pages = {}
    for name, one in helps()["commands"].items():
        parts = [f"# walltime {name}", one["about"], help_text(one["help"])]
        for word, text in one["inside"].items():
            parts += [f"## walltime {name} {word}", help_text(text)]
        pages[f"reference/cli/{name}.md"] = "\n\n".join([*parts, "All commands: [Command line](../cli.md)."]) + "\n"
    return pages


@functools.cache
def api_sections() -> dict[str, tuple[str, str]]:
    """The sections of the Python reference: title and text by the name of their page."""
    text = (DOCS / API).read_text(encoding="utf-8")
    found = list(SECTION.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)]
    return {slug(one["title"]): (one["title"], text[one.end() : end].strip()) for one, end in zip(found, ends, strict=True)}


def slug(title: str) -> str:
    """A title as part of an address, as Markdown makes it."""
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


@functools.cache
def api_homes() -> dict[str, str]:
    """The page of each anchor of the Python reference."""
    homes = {}
    for name, (_, text) in api_sections().items():
        homes |= {name: name, **dict.fromkeys([*ENTRY.findall(text), *map(slug, PART.findall(text))], name)}
    return homes


def api_pages() -> dict[str, str]:
    """A page for each section, by path; links to other pages of the documentation start one folder further down."""
    pages = {}
    for name, (title, text) in api_sections().items():
        deeper = re.sub(r"\]\((?!#|https?:|\.\./)(?=[\w-]+\.md)", "](../", re.sub(r"\]\(\.\./", "](../../", text))
        pages[f"reference/api/{name}.md"] = f"# {title}\n\n{deeper}\n\nAll of it: [Python](../api.md).\n"
    return pages


def api_contents(markdown: str) -> str:
    """The page of the Python reference: what comes before the sections, and a list of these with their entries."""
    first = SECTION.search(markdown)
    rows = []
    for name, (title, text) in api_sections().items():
        entries = [f"[`{entry.removeprefix('walltime.')}`](api/{name}.md#{entry})" for entry in ENTRY.findall(text)]
        rows.append(f"## {title}\n\n[{title}](api/{name}.md): {', '.join(entries) or 'see the page'}.")
    return "\n\n".join([markdown[: first.start() if first else None].strip(), *rows]) + "\n"


def with_api_links(markdown: str) -> str:
    """A page whose links into the Python reference lead to the pages of its sections."""

    def moved(link: re.Match[str]) -> str:
        anchor = link["anchor"]
        home = api_homes().get(anchor) or next((page for entry, page in api_homes().items() if anchor.startswith(f"{entry}.")), None)
        if home is None:
            return link[0]
        return f"{link['folder']}api/{home}.md" + ("" if anchor == home else f"#{anchor}")

    return LINK.sub(moved, markdown)


def on_config(config):
    """Put the pages into the navigation; called by MkDocs."""
    for part in config.nav:
        for entry in part.get("Reference", []) if isinstance(part, dict) else []:
            if entry.get("Command line") == CLI:
                entry["Command line"] = [CLI, *({f"walltime {name}": f"reference/cli/{name}.md"} for name in helps()["commands"])]
            elif entry.get("Python") == API:
                entry["Python"] = [API, *({title: f"reference/api/{name}.md"} for name, (title, _) in api_sections().items())]
    return config


def on_files(files, config):
    """Add the pages; called by MkDocs."""
    for path, content in (command_pages() | api_pages()).items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page, **_) -> str:
    """The list of the Python reference in place of its entries, and links to the pages; called by MkDocs."""
    if page.file.src_uri == API:
        return api_contents(markdown)
    return with_api_links(markdown) if not page.file.src_uri.startswith("reference/api/") else markdown
