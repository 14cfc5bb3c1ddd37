"""The command `walltime`: its subcommands, and one line for whatever goes wrong."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import click
import typer

from walltime.cli.audit import audit
from walltime.cli.compare import compare
from walltime.cli.demo import demo
from walltime.cli.info import info
from walltime.cli.simulate import simulate
from walltime.errors import OutputError, PolicyError, WalltimeError

app = typer.Typer(
    name="walltime",
    help="Replay job logs under batch-scheduling policies, and see what every job would have waited.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, info, simulate, compare, audit):
    app.command()(command)


def _show_version(value: bool) -> None:
    if value:
        from walltime.provenance import version

        typer.echo(f"walltime {version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Replay job logs under batch-scheduling policies, and see what every job would have waited."""


def main() -> None:
    """Run the command line; exit status 0 done, 1 the data is bad, 2 the call is wrong, 130 interrupted."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line with these arguments and return its exit status."""
    try:
        result = app(args=arguments, prog_name="walltime", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        if error.ctx is not None and not arguments:
            typer.echo(error.ctx.get_help())
            return 2
        command = error.ctx.command_path if error.ctx is not None else "walltime"
        return _complain(f"{error.format_message()} Try: {command} --help", 2)
    except click.ClickException as error:
        return _complain(error.format_message(), 2)
    except (PolicyError, OutputError) as error:
        return _complain(str(error), 2)
    except WalltimeError as error:
        return _complain(str(error), 1)
    except MemoryError:
        return _complain("not enough memory for this many jobs; take a part of the log", 1)
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # Whoever read the output has gone; nothing more can be said to them, not even on flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def _complain(message: str, status: int) -> int:
    typer.echo(f"walltime: {' '.join(message.split())}", err=True)
    return status


if __name__ == "__main__":
    main()
