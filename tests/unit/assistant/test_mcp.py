"""`walltime mcp`: its tools, called by the client of the package mcp over standard input and output."""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("mcp", reason="the Model Context Protocol needs the package mcp; install walltime[mcp]")

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from tests.example_data import FILES
from walltime.cli.main import run

TOOLS = ["explain", "list", "simulate", "start_times", "suggest", "waste", "what_if", "why_pending"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("assistant") / "logs"
    path.mkdir()
    for name in ("log.swf.gz", "jobs.txt.gz", "machine.toml", "now.json"):
        FILES[name](path / name)
    (path / "mine.py").write_text("open('ran', 'w')\n")
    (path.parent / "secret.swf").write_bytes((path / "log.swf.gz").read_bytes())
    (path / "link.swf").symlink_to(path.parent / "secret.swf")
    machine = (path / "machine.toml").read_text()
    (path / "site").mkdir()
    (path / "site" / "held.csv").symlink_to(path.parent / "secret.swf")
    (path / "site" / "machine.toml").write_text('eligible = "held.csv"\n' + machine)
    (path / "long.toml").write_text(f'eligible = "{"./" * 600}link.swf"\n' + machine)
    (path / "code.toml").write_text(machine.replace('policy = "easy"', 'policy = "easy:order=mine.py:f"'))
    return path


def contents(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.parent.rglob("*") if path.is_file()}


def served(folder, ask):
    """Return the result of a function of a client of the server, and check that no file has changed."""
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "walltime", "mcp", str(folder)], env=dict(os.environ))
    before = contents(folder)

    async def session():
        async with Client(stdio_client(parameters)) as client:
            return await ask(client)

    try:
        with ThreadPoolExecutor(1) as own:  # as the browser's tests leave a loop in the main one
            return own.submit(anyio.run, session).result()
    finally:
        assert contents(folder) == before


def called(folder, *calls):
    """Return for each call of a tool whether it is an error, and its record or its text."""

    async def ask(client):
        results = [await client.call_tool(tool, inputs) for tool, inputs in calls]
        return [(one.is_error, one.content[0].text if one.is_error else one.structured_content) for one in results]

    return served(folder, ask)


@pytest.mark.slow
def test_tools__have_typed_inputs(folder):
    tools = {one.name: one for one in served(folder, lambda client: client.list_tools()).tools}
    assert sorted(tools) == TOOLS
    assert all(one.annotations.read_only_hint and one.description for one in tools.values())
    assert tools["simulate"].input_schema["required"] == ["log"]
    assert tools["start_times"].input_schema["properties"]["samples"]["maximum"] == 1000


@pytest.mark.slow
def test_tools__return_the_records_of_their_commands(folder, capsys):
    calls = [
        ("simulate", {"log": "log.swf.gz", "policy": "conservative"}),
        ("list", {"kind": "policies", "name": "easy"}),
    ]
    log = str(folder.resolve() / "log.swf.gz")
    commands = [
        ["simulate", log, "--policy", "conservative"],
        ["list", "policies", "easy"],
    ]
    for (error, record), words in zip(called(folder, *calls), commands, strict=True):
        assert not error, record
        assert run([*words, "--json"]) == 0
        expected = json.loads(capsys.readouterr().out)
        measured = {name for name in expected if "seconds" in name or "per_second" in name}
        assert {k: v for k, v in record.items() if k not in measured} == {k: v for k, v in expected.items() if k not in measured}


@pytest.mark.nightly
def test_tools__answer_questions_that_need_many_simulations(folder):
    calls = [
        ("suggest", {"log": "log.swf.gz", "user": "1"}),
        ("waste", {"log": "log.swf.gz", "groups": 3}),
        ("explain", {"log": "log.swf.gz", "job": "300"}),
        ("start_times", {"snapshot": "now.json", "history": "jobs.txt.gz", "samples": 5}),
        ("why_pending", {"snapshot": "now.json", "history": "jobs.txt.gz", "job": "2", "samples": 5}),
        ("what_if", {"log": "jobs.txt.gz", "machine": "machine.toml", "changes": ["load*=1.1"]}),
    ]
    results = called(folder, *calls)
    assert not any(error for error, _ in results), results
    advice, wasted, explained, starts, pending, effects = (record for _, record in results)
    assert (advice["user"], explained["job"]) == (1, 300)
    assert wasted["sha256"] == advice["sha256"]
    assert [one["job"] for one in starts["jobs"]] == [one["job"] for one in pending["jobs"]]
    assert "reasons" not in starts
    assert pending["reasons"]
    assert "load" in json.dumps(effects)


REFUSED = [
    ("simulate", {"log": "../secret.swf"}, "outside the folder"),
    ("simulate", {"log": "/etc/passwd"}, "outside the folder"),
    ("simulate", {"log": "link.swf"}, "outside the folder"),
    ("simulate", {"log": "~/x.swf"}, "outside the folder"),
    ("simulate", {"log": "KTH-SP2"}, "no file"),
    ("simulate", {"log": "."}, "no file"),
    ("simulate", {"log": "log.swf.gz\0"}, "NUL"),
    ("simulate", {"log": "x" * 100_000}, "at most"),
    ("simulate", {"log": "log.swf.gz", "policy": "mine.py:f"}, "Python file"),
    ("simulate", {"log": "log.swf.gz", "policy": "easy:order=mine.py:f"}, "Python file"),
    ("simulate", {"log": "log.swf.gz", "policy": "easy:order=/etc/passwd"}, "outside the folder"),
    ("simulate", {"log": "log.swf.gz", "policy": "best"}, "best"),
    ("simulate", {"log": "log.swf.gz", "machine": "code.toml"}, "Python file"),
    ("simulate", {"log": "log.swf.gz", "machine": "log.swf.gz"}, "TOML"),
    ("simulate", {"log": "log.swf.gz", "machine": "site/machine.toml"}, "outside the folder"),
    ("simulate", {"log": "log.swf.gz", "machine": "long.toml"}, "outside the folder"),
    ("simulate", {"log": "log.swf.gz", "out": "x.csv"}, "no input"),
    ("simulate", {"log": 3}, "log: "),
    ("simulate", {}, "log: "),
    ("explain", {"log": "log.swf.gz", "job": "--report=x.html"}, "--report"),
    ("what_if", {"log": "log.swf.gz", "changes": []}, "changes: "),
    ("suggest", {"log": "mine.py", "user": "1"}, "mine.py"),
    ("dance", {}, "no tool"),
    ("simulat", {}, "Did you mean 'simulate'? Valid"),
]


@pytest.mark.slow
def test_wrong_inputs__are_refused_in_one_line(folder):
    results = called(folder, *[(tool, inputs) for tool, inputs, _ in REFUSED])
    for (tool, inputs, part), (error, text) in zip(REFUSED, results, strict=True):
        assert error, (tool, inputs)
        assert "\n" not in text
        assert len(text) < 1500
        assert part in text
        assert "Traceback" not in text
    assert not list(folder.rglob("ran"))


@pytest.mark.slow
def test_requests_that_are_not_messages__do_not_end_the_server(folder):
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    lines = ["", "{", "[" * 100_000, json.dumps({"id": "x" * 5_000_000}), '{"jsonrpc": "2.0", "id": 0}', json.dumps(message)]
    command = [sys.executable, "-m", "walltime", "mcp", str(folder)]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert any(json.loads(line).get("id") == 1 for line in done.stdout.splitlines())


@pytest.mark.nightly
def test_10_000_requests__are_answered(folder):
    async def ask(client):
        for _ in range(100):
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(client.call_tool, "simulate", {"log": "../secret.swf"})
        return (await client.call_tool("list", {"kind": "orders"})).is_error

    assert served(folder, ask) is False


@pytest.mark.slow
def test_client_that_dies__ends_the_server(folder):
    command = [sys.executable, "-m", "walltime", "mcp", str(folder)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "meth')
    server.stdin.close()
    server.stdout.close()
    assert server.wait(30) == 0
    assert server.stderr.read() == b""
    server.stderr.close()


@pytest.mark.slow
def test_client_that_dies_before_an_answer__leaves_no_traceback(folder):
    command = [sys.executable, "-m", "walltime", "mcp", str(folder)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list", "arguments": {"kind": "trims"}}},
    ]
    server.stdin.write("".join(json.dumps(one) + "\n" for one in requests))
    server.stdin.flush()
    server.stdout.readline()
    server.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        server.stdin.close()
    assert server.wait(60) == 0
    assert server.stderr.read() == ""
    server.stderr.close()
