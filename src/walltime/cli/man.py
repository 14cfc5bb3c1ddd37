"""Write manual pages from the same descriptions as `--help`: `python -m walltime.cli.man FOLDER VERSION`.

The build of a wheel calls this (`packaging/man_pages.py`), so it imports nothing but Typer and the commands' declarations.
"""

import re
import sys
import textwrap
from pathlib import Path

from walltime.cli.help import Description, descriptions
from walltime.cli.main import whole_command

STATUS = (
    ("0", "The command succeeded."),
    ("1", "The data are invalid, a check failed, or some runs failed."),
    ("2", "The call is invalid."),
    ("130", "The command was interrupted by Ctrl-C; no file is left half-written."),
    ("143", "The command was terminated by a signal; no file is left half-written."),
)
"""The meaning of each exit status."""


def pages(version: str) -> dict[str, str]:
    """Return the manual pages (section 1) of all commands in roff, by file name."""
    every = list(descriptions(whole_command()))
    return {f"{one.name.replace(' ', '-')}.1": page(one, version, _related(one, every)) for one in every}


def page(one: Description, version: str, related: list[str]) -> str:
    """Return the manual page of a command; `related`: the names of the pages under SEE ALSO."""
    title = one.name.replace(" ", "-")
    lines = [
        f'.TH {title.upper()} 1 "" "walltime {version}" "Manual of walltime"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(one.summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f"\\fB{_escaped(one.name)}\\fR {_escaped(one.usage.removeprefix(one.name).strip())}",
        ".SH DESCRIPTION",
        _escaped(one.summary),
    ]
    for paragraph in one.paragraphs:
        lines += [".PP", _escaped(paragraph)]
    for panel, commands in one.commands.items():
        lines += [f".SH {_escaped(panel.upper())}"]
        for name, text in commands:
            lines += [".TP", f"\\fB{_escaped(f'{one.name} {name}')}\\fR", _escaped(text)]
    for group, entries in one.grouped():
        lines += [f".SH {_escaped(group.upper())}"]
        for entry in entries:
            lines += [".TP", f"\\fB{_escaped(entry.spelling)}\\fR", _escaped(entry.text)]
    lines += [".SH EXAMPLES"]
    for example in one.examples:
        lines += [".TP", _escaped(example.does), ".nf", _escaped(_on_lines(f"walltime {example.call}")), ".fi"]
    lines += [".SH EXIT STATUS"]
    for status, meaning in STATUS:
        lines += [".TP", status, _escaped(meaning)]
    lines += [
        ".SH SEE ALSO",
        ",\n".join(f"\\fB{_escaped(name)}\\fR(1)" for name in related),
        ".PP",
        f"docs/{one.page}.md in the source distribution",
    ]
    return "\n".join(lines) + "\n"


def _related(one: Description, every: list[Description]) -> list[str]:
    """Return the names of the pages of the parent command and of the subcommands."""
    above = [one.name.rpartition(" ")[0] or "walltime"]
    below = [other.name for other in every if other.name.rpartition(" ")[0] == one.name]
    return [name.replace(" ", "-") for name in dict.fromkeys([*above, *below]) if name != one.name]


def _on_lines(call: str) -> str:
    """Return a call on lines for a terminal of 80 columns, continued before options as in a shell."""
    lines = textwrap.wrap(re.sub(" (?!--)", "\0", call), 64, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines).replace("\0", " ")


def _escaped(text: str) -> str:
    """Escape a text so that man shows it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    text = re.sub(r"(?<=[,=|])(?=\S)", r"\\:", text)  # lines may break there
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for file, content in pages(sys.argv[2]).items():
        (target / file).write_text(content, encoding="utf-8")
