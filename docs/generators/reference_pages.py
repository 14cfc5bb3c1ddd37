"""The references as a page for each command, and one for each section of the Python reference; the pages that list them link there.

`reference/api.md` is one source, so that an entry is added in one place; its sections become pages when the documentation is built.
"""

import functools
import json
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
DESCRIPTIONS = """
import json
from dataclasses import asdict
from walltime.cli.help import as_text, descriptions
from walltime.cli.main import whole_command

found = list(descriptions(whole_command()))
grouped = [[(group, [asdict(one) for one in entries]) for group, entries in each.grouped()] for each in found]
print(json.dumps([asdict(each) | {"grouped": groups} for each, groups in zip(found, grouped)] + [as_text(found[0], False, 78)]))
"""
"""A program that prints the descriptions of all commands, and the help of the whole program."""


@functools.cache
def descriptions() -> dict:
    """Return the descriptions of the commands by name, the program first, and its help as the last one."""
    done = subprocess.run([sys.executable, "-c", DESCRIPTIONS], capture_output=True, text=True, check=True)
    *found, text = json.loads(done.stdout)
    return {one["name"]: one for one in found} | {"help": text}


def command_names() -> list[str]:
    """Return the names of the commands that have a page, without the word walltime."""
    return [name for commands in descriptions()["walltime"]["commands"].values() for name, _ in commands]


def commands_table() -> str:
    """Return the table of commands by purpose."""
    parts = []
    for panel, commands in descriptions()["walltime"]["commands"].items():
        rows = []
        for name, about in commands:
            rows.append(f"| [`walltime {name}`](cli/{name}.md) | {about} |")
            inside = descriptions()[f"walltime {name}"]["commands"]
            rows += [
                f"| [`walltime {name} {word}`](cli/{name}.md#walltime-{name}-{word}) | {text} |"
                for word, text in inside.get("Commands", [])
            ]
        parts.append("\n".join([f"## {panel}\n", "| command | purpose |", "| --- | --- |", *rows]))
    return "\n\n".join([*parts, "## walltime --help", f"```text\n{descriptions()['help']}\n```"])


def command_pages() -> dict[str, str]:
    """Return a page for each command, with the commands below it, by path."""
    pages = {}
    for name in command_names():
        one = descriptions()[f"walltime {name}"]
        parts = [f"# walltime {name}", *command_section(one, "##")]
        for word, _ in one["commands"].get("Commands", []):
            parts += [f"## walltime {name} {word}", *command_section(descriptions()[f"walltime {name} {word}"], "###")]
        pages[f"reference/cli/{name}.md"] = "\n\n".join([*parts, "All commands: [Command line](../cli.md)."]) + "\n"
    return pages


def command_section(one: dict, head: str) -> list[str]:
    """Return the parts of a command's page: its summary, usage, examples and options; `head`: the level of headings."""
    parts = [one["summary"], f"```text\n{one['usage']}\n```", *one["paragraphs"]]
    if not one["commands"]:
        calls = [f"# {example['does']}\nwalltime {example['call']}" for example in one["examples"]]
        parts += ["```sh\n" + "\n\n".join(calls) + "\n```", f"Guide: {page_link(one['page'])}."]
    for group, entries in one["grouped"]:
        if entries and not one["commands"]:
            parts += [f"{head} {group}", *(f"`{entry['spelling']}`\n:   {escaped(entry['text'])}" for entry in entries)]
    return parts


def page_link(page: str) -> str:
    """Return a link from the page of a command to another page, by that page's title."""
    source = DOCS / f"{page}.md"
    title = re.search(r"^# (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)[1]
    return f"[{title.rstrip('.')}](../../{page}.md)"


def escaped(text: str) -> str:
    """Return a plain text as Markdown that shows it unchanged."""
    return re.sub(r"([\\*_<>|\[\]])", r"\\\1", text)


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
                entry["Command line"] = [CLI, *({f"walltime {name}": f"reference/cli/{name}.md"} for name in command_names())]
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
