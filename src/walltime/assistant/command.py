"""`walltime mcp`: the commands as tools of an AI assistant."""

from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.errors import PolicyError


@manual(
    "guides/explain",
    ("Serve the job logs of a folder; the assistant starts this command.", "mcp logs"),
    ("Serve the current folder.", "mcp ."),
)
def mcp(folder: Annotated[Path, o.argument("The folder with the job logs, machine files and snapshots.", "FOLDER")]) -> None:
    """Serve commands as tools for an AI assistant, over the Model Context Protocol (MCP) on standard input and output.

    The tools are start_times, why_pending, explain, suggest, what_if, waste, simulate and list. They read only files in the folder,
    write no files, and run no Python files.
    """
    if not folder.is_dir():
        raise PolicyError(f"{folder}: not a folder; give the folder with the job logs", "not_a_folder")
    try:
        from walltime.assistant.server import server
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("walltime"):
            raise
        raise PolicyError("the package mcp is not installed; run: pip install 'walltime[mcp]'", "missing_package") from error
    gone = False
    try:
        server(folder).run("stdio")
    except* BrokenPipeError:  # the client has ended during a call
        gone = True
    if gone:
        raise BrokenPipeError
