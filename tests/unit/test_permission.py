"""A data file runs no code: a walk over every kind of file that the program reads."""

import ast
import importlib
import json
import pkgutil
import threading
from functools import cache
from pathlib import Path

import pytest

import walltime
from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from walltime.cli.schema import FILES, toml_file
from walltime.permission import NotRunError, allow, check_data, may_run, only, python_files, sealed
from walltime.toml_file import TomlFile

PACKAGE = Path(walltime.__file__).parent
READERS = {
    "assistant/server.py": "records that commands of this program print",
    "benchmark/result.py": "results, whose policy is checked: see `SPECIFYING`",
    "cli/records.py": "shipped with the program",
    "comparison/cell_caveats.py": "rules of jobs left out: names and numbers",
    "campaign/executors.py": "tasks that the campaign's own process has packed",
    "campaign/store.py": "the manifest: names and checksums",
    "files.py": "lines of JSON: costs by label and tables of numbers, which are compared and not parsed",
    "learn/training.py": "agents, whose task is checked: see `SPECIFYING`",
    "logs/slurm/jobstats.py": "summaries of jobstats: numbers, of a bounded size",
    "serve/batsim.py": "answers of a scheduler: events, of a bounded size",
    "logs/batsim.py": "the JSON of Batsim: numbers and names",
    "logs/fetch.py": "what was downloaded: names and checksums",
    "logs/input.py": "what the parts of a log in Parquet say of themselves: numbers and names",
    "logs/objects.py": "logs in JSON: numbers and names",
    "logs/qstat.py": "the JSON of qstat: numbers and names",
    "logs/slurm/document.py": "the JSON of sacct: numbers and names",
    "logs/table_file.py": "what a log in Parquet says of itself: numbers and names",
    "papers/printed.py": "shipped with the program",
    "papers/study.py": "a study's rows: numbers and names",
    "weekly_report/period.py": "numbers",
    "slurm/json_records.py": "the JSON of Slurm: numbers and names",
    "slurm/sidecar/bounds.py": "the ledger: numbers and names",
    "slurm/snapshot.py": "snapshots, whose machine is checked: see `SPECIFYING`",
    "toml_file.py": "every TOML file: see `test_toml_files`",
    "whatif/finished.py": "kept simulations: arrays of numbers, without pickles",
    "whatif/calibration.py": "calibrations, whose policy is printed and not parsed",
    "workload/models/model.py": "shipped with the program",
}
"""The modules that read structured files, and why none of these runs code."""
RUNS = {
    "engine/interface/orders.py": "a function around an order that the caller allowed, with its number of arguments",
    "engine/kernel/callbacks.py": "the arguments of an order that the caller allowed, which are names",
    "policy/expressions.py": "an expression's tree, of known functions and numbers",
    "plugins/files.py": "the one place where a Python file is run, which asks `may_run`",
}
"""The modules that run code that they put together, and what it is."""
EVIL = ("{}:X", "easy:order={}:f", "easy:predictor={}:P", "easy:order= {}:f", "hybrid:1,backfill-order={}:f", " {}:X")
POOL = '\n[[pool]]\nname = "a"\nnodes = 8\nprocs = 1\n[[partition]]\nname = "1"\npools = ["a"]\n'


@pytest.fixture
def evil(tmp_path, monkeypatch) -> Path:
    """A Python file that leaves a mark when it runs, in the folder of the call."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text(
        "import pathlib\npathlib.Path('RAN').touch()\nimport walltime as wt\n"
        "class X(wt.PlainPolicy):\n    def choose(self, now, waiting, running, free):\n        return waiting[:1] if not running else []\n"
        "def f(procs):\n    return procs\n"
        "class P:\n    def predict(self, job):\n        return 60\n    def observe(self, job):\n        pass\n"
    )
    (tmp_path / "x.swf").write_text(HEADER + "".join(record(k, 10 * k, 60, 2, 100) for k in range(1, 4)))
    return tmp_path


@cache
def _calls(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Call):
            names.add(ast.unparse(node.func))
    return names


def _modules_that_call(*names: str) -> set[str]:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        if _calls(file) & set(names):
            found.add(file.relative_to(PACKAGE).as_posix())
    return found


@pytest.mark.slow
def test_readers__are_all_in_the_table_above():
    readers = (
        "json.load",
        "json.loads",
        "np.load",
        "pickle.load",
        "pickle.loads",
        "tomllib.load",
        "tomllib.loads",
        "marshal.loads",
        "json.JSONDecoder",
    )
    assert _modules_that_call(*readers) == set(READERS)
    assert _modules_that_call("exec", "eval", "spec.loader.exec_module", "runpy.run_path") == set(RUNS)
    assert _modules_that_call("pickle.load", "pickle.loads") == {"campaign/executors.py"}
    for file in PACKAGE.rglob("*.py"):
        assert "allow_pickle" not in file.read_text(), f"{file} may read pickles"


def test_toml_files__refuse_a_python_file_that_the_call_does_not_allow(evil):
    kinds = {}
    for module in pkgutil.walk_packages(walltime.__path__, "walltime."):
        if module.name != "walltime.__main__":
            kinds |= {id(one): one for one in vars(importlib.import_module(module.name)).values() if isinstance(one, TomlFile)}
    assert {id(toml_file(name)) for name in FILES} <= set(kinds)
    assert len(kinds) == 6, "with the side-car's settings"
    for kind in kinds.values():
        for text in EVIL:
            for content in ({"a": text.format("evil.py")}, {"a": [{"b": {"c": [text.format("evil.py")]}}]}, {text.format("evil.py"): 1}):
                with raises(NotRunError, "python_file", "kind.toml", "evil.py"):
                    kind.value(content, "kind.toml")
    assert not (evil / "RAN").exists()


SNAPSHOT = {"kind": "walltime snapshot", "version": 1, "jobs": [], "counts": {}, "time": 10**9, "notes": [], "time_zone": "UTC"}


def _specifying(folder: Path, policy: str) -> dict[str, list[list[str]]]:
    """A file of each kind that holds specifications, with this one in it, and calls that read it."""
    from walltime.slurm import snapshot

    (folder / "machine.toml").write_text(f"policy = {json.dumps(policy)}" + POOL)
    (folder / "plan.toml").write_text(f'[fixed]\ntrace = "x.swf"\nprocs = 8\npolicy = {json.dumps(policy)}\n')
    other = '[fixed]\ntrace = "x.swf"\nprocs = 8\nmachine = "machine.toml"\n'
    (folder / "plan-on.toml").write_text(other)
    (folder / "order.toml").write_text(f"scheduler = {json.dumps(policy)}\n")
    (folder / "result.json").write_text(json.dumps({"schema": 1, "suite": "classic", "policy": policy, "windows": [], "files": {}}))
    (folder / "agent").mkdir(exist_ok=True)
    (folder / "agent" / "settings.json").write_text(json.dumps({"task": {"warm": policy}, "settings": {}}))
    document = SNAPSHOT | {"kind": snapshot.KIND, "version": snapshot.VERSION, "machine": (folder / "machine.toml").read_text()}
    (folder / "snapshot.json").write_text(json.dumps(document))
    on = ["--machine", "machine.toml"]
    calls = ["simulate", "compare", "calibrate", "infer", "report"]
    return {
        "machine": [
            *([name, "x.swf", *on] for name in calls),
            ["what-if", "x.swf", *on, "--change", "pool.a.nodes+=1"],
            ["explain", "x.swf", *on, "--job", "2"],
            ["audit", "x.swf", "x.swf", *on],
            ["estimates", "--report", "p.html", "x.swf", *on],
        ],
        "plan": [["campaign", "run", "plan.toml"], ["campaign", "run", "plan-on.toml"]],
        "order": [["simulate", "x.swf", "--order", "order.toml"]],
        "result": [["benchmark", "verify", "result.json"]],
        "agent": [["learn", "evaluate", "agent", "--log", "x.swf"]],
        "snapshot": [["slurm", "start-times", "snapshot.json", "--history", "x.swf"]],
    }


@pytest.mark.parametrize("spelled", EVIL)
def test_files_with_specifications__run_no_code(evil, capsys, spelled):
    for kind, calls in _specifying(evil, spelled.format("evil.py")).items():
        for words in calls:
            status, out, err = call(capsys, *words)
            assert one_line(status, out, err), words
            assert (status, "--own" in err, "evil.py" in err) == (2, True, True), (kind, words, err)
            assert not (evil / "RAN").exists(), words


def test_own__allows_the_file_that_it_names_and_no_other(evil, capsys):
    _specifying(evil, "evil.py:X")
    (evil / "other.py").write_text("")
    assert call(capsys, "simulate", "x.swf", "--machine", "machine.toml", "--own", "other.py")[0] == 2
    assert not (evil / "RAN").exists()
    assert call(capsys, "simulate", "x.swf", "--machine", "machine.toml", "--own", "other.py", "--own", "./evil.py")[0] == 0
    assert (evil / "RAN").exists()
    assert call(capsys, "campaign", "run", "plan.toml", "--own", evil / "evil.py")[0] == 0
    assert call(capsys, "simulate", "x.swf", "--machine", "machine.toml")[0] == 2, "the next call allows nothing"


def test_own__a_file_that_is_not_there_is_reported(evil, capsys):
    status, _, err = call(capsys, "simulate", "x.swf", "--own", "none.py")
    assert (status, err) == (2, "walltime: --own none.py: no such file; check its name\n")


def test_named_on_the_command_line__runs_without_own(evil, capsys):
    for words in (["--policy", "evil.py:X"], ["--order=evil.py:f"], ["--policy", "easy:order=evil.py:f"], ["--predictor", "evil.py:P"]):
        assert call(capsys, "simulate", "x.swf", "--procs", 8, *words)[0] == 0
        assert (evil / "RAN").exists()


def test_python__runs_what_it_names_and_not_what_a_file_names(evil):
    import walltime as wt

    _specifying(evil, "evil.py:X")
    with pytest.raises(NotRunError):
        wt.machine.read_machine("machine.toml")
    assert not (evil / "RAN").exists()
    with only("evil.py"):
        machine = wt.machine.read_machine("machine.toml")
    assert len(wt.simulate(wt.read("x.swf", procs=8), "evil.py:X")) == 3
    assert machine.policy == "evil.py:X"


def test_sealed__holds_in_threads_and_ends_with_the_call(evil):
    from walltime.policy import parse_order

    seen = []

    def try_it() -> None:
        with pytest.raises(NotRunError):
            parse_order("evil.py:f")
        seen.append(may_run(Path("evil.py")))

    with sealed(["simulate", "--policy", "other.py:X"]):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
        allow("evil.py")
        assert may_run(Path("evil.py"))
    assert seen == [False]
    assert may_run(Path("evil.py")), "in Python the caller names what runs"
    with only(), pytest.raises(NotRunError):
        check_data("evil.py:f", "x")
    assert python_files("mine.csv:f") == []
