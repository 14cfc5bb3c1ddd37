"""Who has to wait for the compiler is told what for, how long, and how far it is; and the engine does not grow unnoticed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from numba.core import event

import walltime as wt
from tests.cli import HEADER, record
from walltime.cli.output import CompilationRow
from walltime.compiled import compilation
from walltime.compiled.compilation import Compilation, listen, notice, notify, print_compilation
from walltime.engine.interface.load import ENTRIES, _Counter

LONG = Compilation("simulation", "simulations", 90, 30.0)
LINE = "walltime: compiling the engine for simulations: 90 functions, about 30 s, once on this machine\n"
ADDED = {
    "plan": 55,
    "conservative": 40,
    "easy": 19,
    "easy-ordered": 42,
    "lookahead": 8,
    "particular": 19,
    "scratch": 4,
    "slack": 5,
    "cluster": 110,
    "cluster-kept": 33,
    "slurm": 182,
    "easy-nodes": 78,
    "planned-nodes": 34,
    "oar": 21,
    "dynamics": 2,
    "decisions": 24,
    "replay": 4,
}
"""Functions that each entry compiles where those before it have been compiled. A number that has grown costs every new user time:
a function of ten lines about 0.15 s."""
COMMAND = """
import sys
from walltime.cli import output, main
done = []
class Counting(output.CompilationRow):
    def __call__(self, state):
        super().__call__(state)
        done.append(state.done)
main.CompilationRow = Counting
assert main.run(["simulate", sys.argv[1], "--policy", "easy", "--json"]) == 0
print(max(done), file=sys.stderr)
"""


def run_script(script: str, argument: object, cache: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"WALLTIME_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", script, str(argument)], env=environment, capture_output=True, text=True, check=True)


# ------------------------------------------------------------------------------------------- how much there is to compile


@pytest.mark.nightly
def test_functions__do_not_grow_unnoticed(tmp_path):
    counts = os.environ.get("WALLTIME_COUNTS")
    if counts is None:  # tools/test.sh has compiled everything; without it, that is done here
        counts = str(tmp_path / "counts.json")
        warm = Path(__file__).parents[3] / "tools" / "warm.py"
        subprocess.run([sys.executable, str(warm), counts], env=os.environ | {"WALLTIME_CACHE": str(tmp_path)}, check=True)
    assert json.loads(Path(counts).read_text()) == ADDED
    assert list(ENTRIES) == list(ADDED)
    for name, entry in ENTRIES.items():
        assert ADDED[name] <= entry.functions <= sum(ADDED.values()), name


@pytest.mark.nightly
def test_functions_of_easy__are_as_many_as_the_command_says(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(HEADER + record(1, 0, 10, 2, 20) + record(2, 1, 10, 4, 20))
    entry = ENTRIES["easy"]
    said, count = run_script(COMMAND, log, tmp_path / "cache").stderr.splitlines()
    what = f"{entry.functions} functions, about {entry.seconds} s, once on this machine"
    assert said == f"walltime: compiling the engine for {entry.what}: {what}"
    assert int(count) == entry.functions
    # Once on this machine: the next command has nothing to say.
    again = subprocess.run(
        [sys.executable, "-m", "walltime.cli.main", "simulate", str(log)],
        env=os.environ | {"WALLTIME_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stderr == ""


# --------------------------------------------------------------------------------------------------------- who is told


def test_listener__hears_until_another_one_is_named():
    heard: list[Compilation] = []
    before = listen(heard.append)
    try:
        notify(LONG)
        assert listen(None) == heard.append
        notify(LONG)
    finally:
        listen(before)
    assert heard == [LONG]


def test_library__says_one_line_where_somebody_watches(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for state in (LONG, replace(LONG, done=1), replace(LONG, done=90, finished=True), replace(LONG, seconds=1.0)):
        print_compilation(state)
    assert capsys.readouterr() == ("", LINE)

    thread = threading.Thread(target=print_compilation, args=(LONG,))
    thread.start()
    thread.join()
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "somebody")
    print_compilation(LONG)
    assert capsys.readouterr() == ("", "")


def test_library__says_nothing_into_a_pipe_but_in_a_notebook(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have run a notebook
    print_compilation(LONG)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    print_compilation(LONG)
    assert capsys.readouterr() == ("", LINE)


def test_library__is_the_default():
    script = "from walltime.compiled import compilation as c; print(c._listener is c.print_compilation)"
    assert run_script(script, "", "").stdout == "True\n"
    assert LONG.seconds > compilation.QUICK


def test_command__says_one_line_where_nobody_watches(capsys):
    shown = CompilationRow()
    for state in (LONG, replace(LONG, done=1), replace(LONG, done=90, finished=True), replace(LONG, seconds=1.0)):
        shown(state)
    assert capsys.readouterr() == ("", LINE)


def test_command__shows_one_display_with_a_row_for_everything_on_a_terminal():
    script = """
from dataclasses import replace
from pathlib import Path
from walltime.cli import output
from walltime.compiled.compilation import Compilation
with output.progress_row("cells", 7, patience=0) as row:
    row.update(3)
    shown, state = output.CompilationRow(), Compilation("simulation", "simulations", 90, 30.0)
    for done in range(91):
        shown(replace(state, done=done))
        if done == 45:
            output._display.refresh()
    shown(replace(state, done=90, finished=True))
    assert len(output._display.task_ids) == 1
assert output._display is None
"""
    mine, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", script], stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "120"}) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:  # the other end was closed
                break
            seen += part
            if not part:
                break
    os.close(mine)
    assert process.returncode == 0, seen.decode()
    assert b"compiling for simulations, once" in seen
    assert b"45/90" in seen
    assert b"3/7" in seen


def test_notice__is_printed_once_where_somebody_listens(capsys):
    before = listen(None)
    try:
        notice("nobody listens")
        listen(lambda state: None)
        notice("relaxed runs in plain Python")
        notice("relaxed runs in plain Python")
        notice("easy:extra=none runs in plain Python", "these options")
        notice("easy:extra=literal runs in plain Python", "these options")
    finally:
        listen(before)
    assert capsys.readouterr().err == "walltime: relaxed runs in plain Python\nwalltime: easy:extra=none runs in plain Python\n"


def test_count__is_not_disturbed_by_an_expression_that_is_compiled_meanwhile():
    """What is made of an expression has no module; another thread may compile it while an engine is loaded."""
    entry = next(iter(ENTRIES.values()))
    with event.install_listener("numba:compile", _Counter(entry)):
        schedule = wt.simulate(wt.workloads.Lublin99().generate(20, 16, 0.7, 1), "easy:order=expr:-3*planned/(procs+wait+0.25)")
    assert len(schedule.start) == 20
