"""Compose command lines to print: this command, a suggested next command, and a command for a later run."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

SECRET = "--anonymise"
"""The option whose value may be a secret key."""


def command_line(words: Sequence[str] | None = None) -> list[str]:
    """Return the command line for pages, with KEY instead of a secret key; `words`: by default the words of this command.

    >>> command_line(["estimates", "log", "--anonymise", "secret"]), command_line(["info", "log", "--anonymise=@key.txt"])
    (['walltime', 'estimates', 'log', '--anonymise', 'KEY'], ['walltime', 'info', 'log', '--anonymise=@key.txt'])
    """
    shown, before = ["walltime"], ""
    for word in sys.argv[1:] if words is None else words:
        option, equals, value = word.partition("=")
        if before == SECRET:
            shown.append(hidden_key(word))
        else:
            shown.append(f"{option}={hidden_key(value)}" if option == SECRET and equals else word)
        before = word
    return shown


def program() -> str:
    """Return the full path of the running program, for systemd units and crontab lines."""
    import shutil

    called = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name == "walltime" else shutil.which("walltime")
    return str(Path(called).absolute()) if called else "/usr/local/bin/walltime"


def words_without(words: Sequence[str], without: Sequence[str]) -> list[str]:
    """Return the words of a command line without some options; a final `=` marks options with a value, the others are flags.

    >>> words_without(["explain", "log", "--longest", "3", "--json", "--procs=64"], ["--longest=", "--json"])
    ['explain', 'log', '--procs=64']
    """
    kept, before = [], ""
    for word in words:
        option, equals, _ = word.partition("=") if word.startswith("--") else ("", "", word)
        if option in without or f"{option}=" in without or f"{before}=" in without:
            before = "" if equals or not option else option
            continue
        kept.append(word)
        before = "" if equals else option
    return kept


def next_command(name: str, *more: str, without: Sequence[str] = ()) -> str:
    """Return the command line of the command `name` with the log and the options of the running command.

    `without`: options that are omitted in addition to the outputs, as in `words_without`. `more`: words that are added.
    """
    words = words_without(command_line()[2:], ("--json", "--verbose", "--report=", "--out=", "--format=", "--tables=", *without))
    return shlex.join(["walltime", name, *words, *more])


def lasting_words(words: Sequence[str], without: Sequence[str] = (), written: Sequence[str] = ()) -> list[str]:
    """Return the words of a command line for a later run in another folder, with absolute paths of files.

    `without`: options that are omitted, as in `words_without`. `written`: options with a file that may not exist yet.
    """
    kept, before = [], ""
    for word in words_without(words, without):
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        path, at = value.removeprefix("@"), "@" if value.startswith("@") else ""
        is_file = path and not path.isdigit() and Path(path).exists()
        if value and (is_file or before in written or option in written):
            word = f"{option}{equals}{at}{Path(path).absolute()}"
        kept.append(word)
        before = "" if equals else option
    return kept


def hidden_key(text: str) -> str:
    """Return the value of --anonymise with a placeholder for the key."""
    return text if text.startswith(("@", "env:")) else "KEY"
