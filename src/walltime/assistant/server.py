"""A server of the Model Context Protocol: each tool is a command of `walltime` with typed inputs, and returns its JSON record.

A tool runs its command as a separate process, in the folder of the server. Inputs name files in this folder only, no tool writes files,
and no Python file runs.

Source: https://modelcontextprotocol.io/specification
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field, ValidationError

from walltime.cli.listing import Kind
from walltime.cli.table import COMMANDS, module_of
from walltime.declared import valid_options
from walltime.permission import python_files
from walltime.wording import shown

SECONDS = 600.0
"""Time limit of a command, s."""
AT_ONCE = 2
"""Maximum number of commands that run at the same time; others wait."""
LONGEST = 1000
"""Maximum number of characters of an input."""
_BETWEEN = re.compile(r"[\s=:,@'\"()\[\]{}<>]+")
"""Separators between the words of a specification; each word may be a path."""

Log = Annotated[str, Field(description="A job log: a file in the folder of the server.")]
MachineFile = Annotated[str | None, Field(description="A machine file (.toml) in the folder. Default: a number of processors.")]
PolicyText = Annotated[str, Field(description="A scheduling policy, such as easy or easy:order=sjf; the tool list shows all.")]
Number = Annotated[str, Field(description="The number of a job, as in 1234, or as in 27_3 for a task of an array.")]
Count = Annotated[int, Field(ge=1, le=1000)]


class Tools:
    """The tools of a server for one folder; the methods are the tools, and raise ToolError."""

    def __init__(self, folder: Path):
        self._folder = folder.resolve()
        self._running = anyio.CapacityLimiter(AT_ONCE)

    async def simulate(self, log: Log, policy: PolicyText = "easy", machine: MachineFile = None) -> dict[str, Any]:
        """Simulate a job log under a scheduling policy, and return waits, slowdowns and utilization."""
        return await self._run("simulate", log, policy=policy, machine=machine)

    async def explain(self, log: Log, job: Number, policy: PolicyText = "easy", machine: MachineFile = None) -> dict[str, Any]:
        """Explain why a job of a log waited under a policy, and what would have helped."""
        return await self._run("explain", log, job=job, policy=policy, machine=machine)

    async def suggest(
        self,
        log: Log,
        user: Annotated[str, Field(description="The user's name, or number if the log has no names.")],
        processors: Annotated[int | None, Field(ge=1, description="The processors of the next job.")] = None,
        job_name: Annotated[str | None, Field(description="The name of the next job.")] = None,
    ) -> dict[str, Any]:
        """Suggest walltimes for the next job of a user, each with the risk that it does not suffice."""
        return await self._run("suggest", log, user=user, job_procs=processors, job_name=job_name)

    async def what_if(
        self,
        log: Log,
        changes: Annotated[list[str], Field(min_length=1, max_length=8, description="Changes, such as nodes+=10% or policy=easy.")],
        machine: MachineFile = None,
    ) -> dict[str, Any]:
        """Simulate changes to a machine or its settings, and rank them by gain minus cost; takes minutes for long logs."""
        return await self._run("what-if", log, change=changes, machine=machine)

    async def waste(self, log: Log, groups: Annotated[Count, Field(description="Groups of each kind to show.")] = 10) -> dict[str, Any]:
        """Show the processor, GPU, memory and node hours that jobs requested, used and lost, by user and cause."""
        return await self._run("waste", log, listed=groups)

    async def start_times(
        self,
        snapshot: Annotated[str, Field(description="A snapshot of a Slurm cluster: a file in the folder.")],
        history: Log,
        user: Annotated[str | None, Field(description="Show only the jobs of this user.")] = None,
        samples: Annotated[Count, Field(description="Simulated futures.")] = 200,
    ) -> dict[str, Any]:
        """Predict when the waiting jobs of a snapshot will start, with intervals."""
        return await self._run("slurm start-times", snapshot, history=history, user=user, samples=samples)

    async def why_pending(
        self,
        snapshot: Annotated[str, Field(description="A snapshot of a Slurm cluster: a file in the folder.")],
        history: Log,
        job: Number,
        samples: Annotated[Count, Field(description="Simulated futures.")] = 200,
    ) -> dict[str, Any]:
        """Explain why a waiting job of a snapshot is pending, and predict when it will start."""
        return await self._run("slurm start-times", snapshot, history=history, job=job, samples=samples)

    async def list(
        self,
        kind: Annotated[Kind, Field(description=f"The names to list: {', '.join(get_args(Kind))}.")],
        name: Annotated[str | None, Field(description="One name, to show its options.")] = None,
    ) -> dict[str, Any]:
        """List the names of policies, predictors and so on, or show the options of one."""
        return await self._run("list", *[one for one in (kind, name) if one is not None])

    async def _run(self, command: str, *arguments: str, **options: object) -> dict[str, Any]:
        """Run a command with `--json` and return its record; all inputs are checked before."""
        files = list(arguments) if command != "list" else []
        files += [str(options[name]) for name in ("machine", "history") if options.get(name) is not None]
        places = {name: str(self._file(name)) for name in files}
        words = [*command.split(), "--json"]
        for name, value in options.items():
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                self._check(name, str(one))
                words.append(f"--{name.replace('_', '-')}={places.get(str(one), one) if name in ('machine', 'history') else one}")
        for one in arguments if command == "list" else ():
            self._check("name", one)
        if (machine := options.get("machine")) is not None:
            self._check_machine(str(machine))
        words += ["--", *(places.get(one, one) for one in arguments)]
        program = [sys.executable, "-m", "walltime", *words]
        try:
            async with self._running:
                with anyio.fail_after(SECONDS):
                    done = await anyio.run_process(program, cwd=self._folder, stdin=subprocess.DEVNULL, check=False)
        except TimeoutError as error:
            raise ToolError(f"no result within {SECONDS:g} s; use a part of the log") from error
        if done.returncode:
            lines = done.stderr.decode(errors="replace").splitlines() or [f"the command ended with status {done.returncode}"]
            raise ToolError(lines[-1].removeprefix("walltime: ").replace(f"{self._folder}/", ""))
        record: dict[str, Any] = json.loads(done.stdout)
        return record

    def _file(self, name: str) -> Path:
        """Return the path of an input file; raises ToolError unless it is a file in the folder, after resolving links."""
        self._check("file", name)
        path = Path(os.path.realpath(self._folder / name))
        if not path.is_file():
            raise ToolError(f"there is no file {shown(name)} in the folder; name a file in it")
        return path

    def _check(self, name: str, text: str, *folders: Path, longest: int = LONGEST) -> None:
        """Raise ToolError for a text that names Python code, or a path outside the folder, also if it is relative to `folders`."""
        if "\0" in text or len(text) > longest:
            raise ToolError(f"{name}: not a text of at most {LONGEST:,} characters without NUL; shorten it")
        if python_files(text):
            raise ToolError(f"{name}: {shown(text)} names a Python file, which an assistant may not run; use the names of the tool list")
        for word in filter(None, (text, *_BETWEEN.split(text))):
            places = (Path(os.path.realpath(folder / word)) for folder in (self._folder, *folders))
            if word.startswith("~") or not all(place.is_relative_to(self._folder) for place in places):
                raise ToolError(f"{name}: {shown(word)} is outside the folder of the server; name a file in it")

    def _check_machine(self, name: str) -> None:
        """Raise ToolError if a machine file names Python code, or a path outside the folder."""
        try:
            content = tomllib.loads((path := self._file(name)).read_text())
        except (ValueError, OSError) as error:
            raise ToolError(f"{shown(name)} is not a machine file in TOML: {' '.join(str(error).split())[:200]}") from error
        for text in _texts(content):
            self._check(name, text, path.parent, longest=sys.maxsize)


def _texts(content: object) -> Iterator[str]:
    """Yield the texts in the values of a TOML file."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping | list):
        for one in content.values() if isinstance(content, Mapping) else content:
            yield from _texts(one)


class Server(MCPServer[Any]):
    """A server whose errors have one line, and which rejects inputs that a tool does not have."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool; raises ToolError with one line."""
        known = {one.name: list(one.input_schema["properties"]) for one in await self.list_tools()}
        if name not in known:
            raise ToolError(f"there is no tool {shown(name)}{valid_options(name, known)}")
        if unknown := [one for one in arguments if one not in known[name]]:
            raise ToolError(f"{name} has no input {shown(unknown[0])}. Valid inputs: {', '.join(known[name])}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            text = str(error).removeprefix(f"Error executing tool {name}: ")
            if isinstance(error.__cause__, ValidationError):
                faults = error.__cause__.errors(include_url=False, include_context=False)
                text = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg'].lower()}" for one in faults)
            raise ToolError(" ".join(text.split())) from error


def server(folder: Path) -> Server:
    """Return a server of the tools whose commands are installed."""
    from walltime.provenance import version

    made, tools = Server("walltime", version=version(), log_level="CRITICAL"), Tools(folder)
    needed = {"start_times": "slurm", "why_pending": "slurm", "what_if": "what-if"}
    places = {name: place for inside in COMMANDS.values() for name, place in inside.items()}
    for tool in ("start_times", "why_pending", "explain", "suggest", "what_if", "waste", "simulate", "list"):
        if module_of(places[needed.get(tool, tool)]) is not None:
            made.add_tool(getattr(tools, tool), annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    return made
