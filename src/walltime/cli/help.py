"""Describe each command from its declaration, and print the description for `--help`; `walltime.cli.man` writes manual pages from it."""

import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

INPUT, JOBS, SCHEDULER, RUNS, OUTPUT = "Input", "Select and modify jobs", "Scheduler", "Runs and randomness", "Output"
GROUPS = (INPUT, JOBS, SCHEDULER, RUNS, OUTPUT)
"""Headings of options, in this order; other headings come before the last one."""
WIDEST = 100
"""Longest line of a help text, even on a wider terminal."""
VALUES = {
    "--backfill-order": "ORDER",
    "--change": "CHANGE",
    "--correction": "RULE",
    "--estimates": "MODEL",
    "--metric": "METRIC",
    "--order": "ORDER",
    "--policy": "POLICY",
    "--predictions-for": "USES",
    "--self-test": "OPTION",
}
"""Placeholders for the values of these options; other options have a number, a file or a name."""
INDENT = 26
"""Column in which the descriptions of options begin."""
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Example:
    """An example: a command line without the word `walltime`, and a sentence on its effect."""

    does: str
    call: str


@dataclass(frozen=True)
class Manual:
    """The page of the documentation on a command, such as `guides/explain`, and its examples."""

    page: str
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Entry:
    """An option or argument: its names with the placeholder of the value, its description with the default, and its heading."""

    spelling: str
    text: str
    group: str
    advanced: bool


@dataclass(frozen=True)
class Description:
    """The description of a command, for help texts, manual pages and the reference.

    `commands`: for a group, the names and summaries of its commands by heading.
    """

    name: str
    usage: str
    summary: str
    paragraphs: tuple[str, ...]
    entries: tuple[Entry, ...]
    examples: tuple[Example, ...]
    page: str
    commands: dict[str, list[tuple[str, str]]]

    def grouped(self, everything: bool = True) -> Iterator[tuple[str, list[Entry]]]:
        """Yield the headings with their options; `everything`: whether to include advanced options."""
        own = [one.group for one in self.entries if one.group not in GROUPS]
        for group in dict.fromkeys([*GROUPS[:-1], *own, OUTPUT]):
            inside = [one for one in self.entries if one.group == group and (everything or not one.advanced)]
            if inside:
                yield group, inside


def manual(page: str, *examples: tuple[str, str]) -> Callable[[F], F]:
    """Attach a page of the documentation and examples, which are pairs of a sentence and a call, to a command."""

    def attach(command: F) -> F:
        command.manual = Manual(page, tuple(Example(*one) for one in examples))  # type: ignore[attr-defined]
        return command

    return attach


def show_all(context: typer.Context, value: bool) -> None:
    """Print the help of a command with all of its options, or of all commands of a group, and exit (callback of --help-all)."""
    if value:
        path = context.command_path
        typer.echo("\n\n\n".join(as_text(one, True) for one in descriptions(context.command, path)))
        raise typer.Exit


def descriptions(command: Any, path: str = "walltime") -> Iterator[Description]:
    """Yield the descriptions of a command and of its subcommands."""
    yield describe(command, path)
    for name, inside in getattr(command, "commands", {}).items():
        yield from descriptions(inside, f"{path} {name}")


def describe(command: Any, path: str) -> Description:
    """Return the description of a command; a group without examples uses those of its first two commands."""
    summary, *paragraphs = _paragraphs(command.help or "")
    commands: dict[str, list[tuple[str, str]]] = {}
    for name, inside in getattr(command, "commands", {}).items():
        commands.setdefault(_text(inside.rich_help_panel) or "Commands", []).append((name, _paragraphs(inside.help or "")[0]))
    about: Manual | None = getattr(command.callback, "manual", None)
    if about is None:
        inside = [describe(one, "").examples[:1] for one in list(getattr(command, "commands", {}).values())[:2]]
        first = next(iter(command.commands.values()))
        about = Manual(first.callback.manual.page, tuple(one for examples in inside for one in examples))
    advanced: frozenset[str] = getattr(command.callback, "advanced", frozenset())
    entries = tuple(_entry(one, one.name in advanced) for one in command.params if one.name != "help_all")
    return Description(path, f"{path} {_usage(command)}", summary, tuple(paragraphs), entries, about.examples, about.page, commands)


def as_text(one: Description, everything: bool, width: int | None = None) -> str:
    """Return a description as `--help` prints it; `everything`: whether to include advanced options, as `--help-all` does."""
    width = min(shutil.get_terminal_size().columns, WIDEST) if width is None else width
    lines = [f"Usage: {one.usage}", ""]
    for paragraph in (one.summary, *one.paragraphs):
        lines += [*_wrapped(paragraph, width), ""]
    for panel, commands in one.commands.items():
        column = 4 + max(len(name) for inside in one.commands.values() for name, _ in inside)
        lines += [panel, *(line for name, text in commands for line in _item(name, text, width, column)), ""]
    for group, entries in one.grouped(everything):
        lines += [group, *(line for entry in entries for line in _item(entry.spelling, entry.text, width, INDENT)), ""]
    hidden = 0 if everything else sum(entry.advanced for entry in one.entries)
    if hidden:
        lines += [f"To see {hidden} more option{'s' * (hidden > 1)}: {one.name} --help-all", ""]
    lines += ["Examples"]
    for example in one.examples:
        lines += [*_wrapped(f"# {example.does}", width, "  ", "  # "), *_folded(f"walltime {example.call}", width)]
    return "\n".join([*lines, "", f"Documentation: docs/{one.page}.md"])


class _Described:
    """A command or group that prints its description as help."""

    def get_help(self, ctx: Any) -> str:
        """Return the text for `--help`."""
        return as_text(describe(self, ctx.command_path), False)


class HelpCommand(_Described, TyperCommand):
    """A command that prints its description as help."""


class HelpGroup(_Described, TyperGroup):
    """A group of commands that prints its description as help."""


def _paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in text.replace("\f", "\n\n").split("\n\n") if paragraph.strip()]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _usage(command: Any) -> str:
    """Return the words after the name of a command in its usage line: arguments, required options, and [OPTIONS] if there are others."""
    words = []
    for one in command.params:
        if isinstance(one, TyperArgument):
            text = _letters(one) + ("..." if one.nargs == -1 and "..." not in _letters(one) else "")
            words.append(text if one.required else f"[{text}]")
    words += [_spelling(one) for one in command.params if isinstance(one, TyperOption) and one.required]
    return " ".join([*(["COMMAND"] if hasattr(command, "commands") else words), "[OPTIONS]"])


def _letters(one: TyperArgument) -> str:
    return one.metavar or one.name.upper()


def _entry(one: Any, advanced: bool) -> Entry:
    if isinstance(one, TyperArgument):
        return Entry(_letters(one), one.help or "", _text(one.rich_help_panel) or INPUT, False)
    text = (one.help or "").rstrip()
    if one.multiple:
        text += " Can be repeated."
    if one.required:
        text += " Required."
    elif one.show_default is not False and (default := _default(one)) and "efault" not in text:
        text += f" Default: {default}."
    return Entry(_spelling(one), text, _text(one.rich_help_panel) or OUTPUT, advanced)


def _default(one: Any) -> str:
    value = one.default() if callable(one.default) else one.default
    if one.is_flag:
        return one.opts[0] if value and one.secondary_opts else ""
    return "" if value is None or value in ("", [], ()) else f"{value:g}" if isinstance(value, float) else str(value)


def _spelling(one: Any) -> str:
    """Return all names of an option and the placeholder of its value, such as `--machine, --cluster FILE`."""
    names = ", ".join([*one.opts, *one.secondary_opts])
    return names if one.is_flag else f"{names} {_value(one)}"


def _value(one: Any) -> str:
    """Return the placeholder of an option's value: its own one, the valid words, or the type."""
    kind = one.type_descriptor
    if one.metavar:
        return str(one.metavar)
    if kind.is_choice:
        return "|".join(map(str, kind.choices))
    bare = one.bare_type()
    usual = next((shown for word, shown in (("int", "N"), ("float", "N"), ("Path", "FILE")) if word in bare), "NAME")
    return VALUES.get(one.opts[0], usual)


def _wrapped(text: str, width: int, indent: str = "", further: str | None = None) -> list[str]:
    later = indent if further is None else further
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)


def _item(name: str, text: str, width: int, column: int) -> list[str]:
    """Return the lines of an option with its description to the right or, if the option is long, below."""
    if max(map(len, text.split()), default=0) > width - column:
        column = 6
    lines = _wrapped(text, width, " " * column)
    head = f"  {name}"
    if len(head) + 2 > column:
        return [*_wrapped(name, width, "  ", "      "), *lines]
    return [head + lines[0][len(head) :], *lines[1:]] if lines else [head]


def _folded(call: str, width: int) -> list[str]:
    """Return the lines of a command line, which is broken with backslashes if it is too long."""
    words = re.findall(r"--[\w-]+ (?!--)(?:'[^']*'|[^ ])+|(?:'[^']*'|[^ ])+", call)
    lines, line = [], "  "
    for word in words:
        if len(line) + len(word) + 3 > width and line.strip():
            lines.append(f"{line.rstrip()} \\")
            line = "      "
        line += f"{word} "
    return [*lines, line.rstrip()]
