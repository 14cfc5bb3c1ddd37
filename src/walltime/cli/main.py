"""The command `walltime`: run its subcommands, and print errors on one line."""

import atexit
import functools
import gc
import os
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import output
from walltime.cli.completion import answer_bash
from walltime.cli.help import manual
from walltime.cli.option_groups import CommandGroup, HelpAllOption
from walltime.cli.output import CompilationRow
from walltime.cli.table import COMMANDS, module_of
from walltime.compiled.compilation import listen
from walltime.errors import OutputError, PolicyError, WalltimeError
from walltime.files import guarded_inputs
from walltime.permission import python_files, sealed
from walltime.wording import shown

LEAST_ADDRESS_SPACE = 1_000_000_000
"""Address space that the compiler and its libraries need, bytes."""
COMPLETION = "_WALLTIME_COMPLETE"
"""The environment variable with which a shell requests completions."""
YOUNG = 200_000
"""Number of new objects between garbage collections; frequent collections would waste time, because the objects of modules persist."""
MANY = 10**9
"""Larger upper bounds on options only prevent overflow, and are not shown in help texts."""
INTERRUPTED = 130
"""Typer's exit status of an interrupted command."""
KEEPING = (["campaign", "run"], ["benchmark", "run"], ["learn", "train"], ["what-if"])
"""Commands that keep intermediate results; tune does with --store."""
OPTIONS = {
    "skip_bad_lines=True": "--skip-bad-lines",
    "procs=N": "--procs",
    "mapping=FILE": "--mapping FILE",
    "time_zone=ZONE": "--time-zone ZONE",
    "min_jobs=N": "--min-jobs",
    "traces=[LOG]": "--trace",
    "shake=30": "--shake 30",
    "estimates=f:4": "--estimates f:4",
}
"""Remedies named in errors of the library, and the corresponding options of the command line; campaigns use the keys of their plan."""


def _show_version(value: bool) -> None:
    if value:
        from walltime.provenance import version

        typer.echo(f"walltime {version()}")
        raise typer.Exit


@manual(
    "tutorial/quickstart",
    ("Generate a log, compare three policies on it, and explain the longest wait.", "demo"),
    ("List the scheduling policies.", "list policies"),
)
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version, and exit.")] = False,
    help_all: HelpAllOption = False,
) -> None: ...


_options.advanced = {"install_completion", "show_completion"}  # type: ignore[attr-defined]
ABOUT = "Simulate job logs under batch-scheduling policies, and show how long every job would have waited."


def main() -> None:
    """Run the command line; the exit status is 0 (done), 1 (bad data), 2 (invalid call), 130 (interrupted) or 143 (terminated)."""
    gc.set_threshold(YOUNG)
    atexit.register(gc.freeze)  # a final collection would take a third of a short call, and free nothing
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, output.interrupt)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, output.interrupt)
    sys.exit(answer_bash(run) if os.environ.get(COMPLETION) == "complete_bash" else run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line with these arguments and return its exit status."""
    _prepare_streams()
    before = listen(CompilationRow())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)  # print each warning once
            warnings.showwarning = _print_warning
            with sealed(arguments), guarded_inputs():
                return _run(arguments)
    finally:
        listen(before)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print the first line of a warning in the form of other messages."""
    typer.echo(f"walltime: {str(message).partition(chr(10))[0]}", err=True)


def _run(arguments: list[str]) -> int:
    try:
        _check_address_space()
        output.begin(_reject_repeated(arguments))
        result = whole_command(_named(arguments))(args=arguments, prog_name="walltime", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _wrong_call(error, f"walltime {_named(arguments) or ''}".strip())
    except WalltimeError as error:
        message = str(error)
        for argument, option in OPTIONS.items() if arguments[:1] != ["campaign"] else ():
            message = message.replace(argument, option)
        message += " (on the command line: --own FILE)" if error.code == "python_file" else ""
        return _complain(message, 2 if isinstance(error, PolicyError | OutputError) else 1)
    except MemoryError:
        return _complain("not enough memory for this many jobs; use a part of the log (--window, --head)", 1)
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed it; flushing at exit would fail as well.
        _discard_output()
        return 0
    except Exception as error:
        if _is_of_compiler(error):
            return _complain(
                f"Numba, which compiles the engine, cannot be loaded ({error}); check the variables NUMBA_* and the installation", 1
            )
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("walltime."):
            return _complain(f"this command needs {error.name}, which is not installed; install all of walltime", 2)
        if isinstance(error, OSError):
            _discard_output()
            return _complain(f"the result cannot be printed ({(error.strerror or str(error)).lower()}); redirect the output elsewhere", 2)
        line = _line_of_own_file(error, arguments)
        if line is None:
            raise
        return _complain(f"{line}: {type(error).__name__}: {error}", 2)
    if result == INTERRUPTED:
        keeps = any(arguments[: len(one)] == one for one in KEEPING) or (arguments[:1] == ["tune"] and "--store" in arguments)
        kept = "; finished work is kept, and the same command continues from there" if keeps else ""
        return _complain(f"interrupted; no file was left half-written{kept}", 128 + output.received)
    return result if isinstance(result, int) else 0


def _prepare_streams() -> None:
    """Keep a command running if a stream is closed or cannot encode a character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (it stays open until the end)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _named(arguments: list[str]) -> str | None:
    """Return the name of the called command, so that only its module is loaded; None without a command or for a completion request."""
    name = arguments[0] if arguments and COMPLETION not in os.environ else ""
    return name if any(name in places for places in COMMANDS.values()) else None


def commands(name: str | None = None) -> dict[str, list[Callable[..., None] | CommandGroup]]:
    """Return the commands of all installed features, or only the one with this name, by their headings in the help."""
    made: dict[str, list[Callable[..., None] | CommandGroup]] = {}
    for panel, places in COMMANDS.items():
        modules = {one: module_of(place) for one, place in places.items() if name in (None, one)}
        made[panel] = [
            getattr(module, "app", None) or getattr(module, one.replace("-", "_")) for one, module in modules.items() if module is not None
        ]
    return made


@functools.cache
def whole_command(name: str | None = None) -> Any:
    """Return the command with all subcommands or, because loading all takes longer than most calls, with only one."""
    whole = CommandGroup("walltime", ABOUT, context_settings={"help_option_names": ["-h", "--help"]})
    whole.callback()(_options)
    for panel, inside in commands(name).items():
        for command in inside:
            if isinstance(command, typer.Typer):
                whole.add_typer(command, name=command.info.name, rich_help_panel=panel)
            else:
                whole.command(rich_help_panel=panel)(command)
    return typer.main.get_command(whole)


def _reject_repeated(arguments: list[str]) -> str:
    """Return the name of the command; raises PolicyError for a repeated option that takes one value, because Typer would use the last."""
    command, name = whole_command(_named(arguments)), []
    words = arguments[: arguments.index("--")] if "--" in arguments else list(arguments)
    while words and hasattr(command, "commands") and words[0] in command.commands:
        name.append(words.pop(0))
        command = command.commands[name[-1]]
    for option in command.params:
        names = [name for name in (*option.opts, *option.secondary_opts) if name.startswith("--")]
        given = [word for word in words if word.partition("=")[0] in names]
        if len(given) > 1 and not option.multiple and not getattr(option, "count", False):
            raise PolicyError(f"{names[0]} is given {len(given)} times; give it once")
    return " ".join(name)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _wrong_call(error: typer.TyperException, called: str) -> int:
    """Report an invalid call on one line, or print the help of a group that is called without a command."""
    context = getattr(error, "ctx", None)
    message = _fault_of(error) or (error.format_message() if hasattr(error, "format_message") else str(error))
    if message.startswith("Usage: "):  # of a group without a command
        typer.echo(message)
        return 2
    command = context.command_path if context is not None else called
    message = re.sub("^(Missing|No such)", lambda found: found[0].lower(), message)
    sentence = message if message.endswith("?") else f"{message.rstrip('.')}."
    return _complain(f"{sentence} Try: {command} --help", 2)


def _fault_of(error: typer.TyperException) -> str:
    """Return the error message for an invalid value or name, with the valid ones; empty for other errors."""
    from walltime.declared import nearest

    param = getattr(error, "param", None)
    faults: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if param is not None and faults:
        name = param.opts[0] if param.opts[0].startswith("-") else param.metavar or param.name.upper()
        given, kind = str(faults[0]["input"]), param.type_descriptor
        if kind.is_choice:
            words = [str(one) for one in kind.choices]
            return f"{name} must be one of {', '.join(words)}, not {shown(given)}{nearest(given, words)}"
        low, high = param.min, param.max
        bounds = "" if low is None else f" from {low:,} to {high:,}" if high is not None and high < MANY else f" of {low:,} or more"
        return f"{name} must be a {'whole ' if 'int' in str(kind.annotation) else ''}number{bounds}, not {shown(given)}"
    if name := getattr(error, "option_name", "") if str(error).startswith("No such option") else "":
        context = getattr(error, "ctx", None)
        known = [] if context is None else [text for one in context.command.params for text in one.opts]
        return f"unknown option {name}{nearest(name, known, 0.8)}"
    if unknown := re.match(r"No such command '([^']+)'", str(error)):
        from walltime.cli.records import declared_records

        if within := next((one for one in declared_records() if one.endswith(f" {unknown[1]}")), None):
            return f"no such command {shown(unknown[1])}. Did you mean '{within}'?"
    extra = re.match(r"Got unexpected extra argument\S* \((.*)\)", str(error))
    return f"unexpected argument {shown(extra[1])}" if extra else ""


def _is_of_compiler(error: BaseException) -> bool:
    """Return whether an exception comes from importing Numba or its library."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.name == "<module>" and {"numba", "llvmlite"} & set(Path(frame.filename).parts) for frame in frames)


def _check_address_space() -> None:
    """Raise OutputError if a limit of the shell leaves too little memory for the compiler."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        raise OutputError(
            f"this shell allows {limit / 1e6:,.0f} MB of virtual memory, and walltime needs {LEAST_ADDRESS_SPACE / 1e6:,.0f} MB; "
            "raise the limit with ulimit -v"
        )


def _line_of_own_file(error: BaseException, arguments: list[str]) -> str | None:
    """Return where a custom order or policy failed, as `FILE.py:N`; None if the error is not from a file on the command line."""
    own = {Path(name).resolve(): name for word in arguments for name in (word, *python_files(word)) if name.endswith(".py")}
    frames = traceback.extract_tb(error.__traceback__) if own else ()
    return next((f"{own[Path(f.filename)]}:{f.lineno}" for f in reversed(frames) if Path(f.filename) in own), None)


def _complain(message: str, status: int) -> int:
    typer.echo(f"walltime: {' '.join(message.split())}", err=True)
    return status


if __name__ == "__main__":
    main()
