"""Each optional feature can be removed: the other commands work without it."""

import subprocess
import sys

import pytest

from walltime import Workload
from walltime.logs import write_swf

OPTIONAL = (
    "assistant",
    "benchmark",
    "campaign",
    "explanation",
    "inference",
    "learn",
    "papers",
    "serve",
    "slurm",
    "tuning",
    "usage",
    "whatif",
)
COMMANDS = {
    "assistant": ["mcp"],
    "benchmark": ["benchmark"],
    "campaign": ["campaign"],
    "explanation": ["explain"],
    "fairshare": ["fairshare"],
    "inference": ["infer"],
    "learn": ["learn"],
    "papers": ["paper"],
    "serve": ["serve"],
}
COMMANDS |= {"slurm": ["slurm"], "tuning": ["search", "tune"], "usage": ["waste"], "whatif": ["calibrate", "what-if"]}
CODE = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        for one in BLOCKED:
            if name == one or name.startswith(one + "."):
                raise ModuleNotFoundError(f"No module named {name!r}", name=one)
sys.meta_path.insert(0, Blocked())
from walltime.cli.main import run
for arguments in CALLS:
    status = run(arguments)
    print("status", status, *arguments[:1])
print("imported", [name for name in sys.modules if name.startswith(tuple(one + "." for one in BLOCKED))])
"""


@pytest.fixture(scope="module")
def small_log(tmp_path_factory):
    path = tmp_path_factory.mktemp("removable") / "small.swf"
    write_swf(path, Workload.from_arrays(submit=[0, 1, 2, 30], runtime=[10, 10, 5, 8], procs=[3, 4, 1, 2], machine_procs=4))
    return str(path)


def run_without(features, calls):
    code = f"BLOCKED = {[f'walltime.{feature}' for feature in features]}\nCALLS = {calls!r}\n{CODE}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "features",
    [OPTIONAL, *(pytest.param([one], id=one, marks=pytest.mark.nightly) for one in OPTIONAL)],
    ids=lambda features: "all" if len(features) > 1 else None,
)
def test_commands__work_without(features, tmp_path, small_log):
    out = str(tmp_path / "schedule.csv")
    calls = [
        ["--help"],
        ["simulate", small_log, "--policy", "easy", "--out", out],
        ["compare", small_log, "--policy", "fcfs", "--policy", "easy"],
        ["audit", small_log, out, "--policy", "easy"],
        ["info", small_log],
    ]
    done = run_without(features, calls)
    assert [line for line in done.stdout.splitlines() if line.startswith("status")] == [f"status 0 {call[0]}" for call in calls]
    assert done.stdout.splitlines()[-1] == "imported []"
    listed = {line.strip().partition(" ")[0] for line in done.stdout.split("status 0 --help")[0].splitlines()}
    assert {"simulate", "compare", "audit", "info"} <= listed
    assert not listed & {command for feature in features for command in COMMANDS[feature]}


@pytest.mark.slow
def test_command__of_a_missing_feature_is_refused(small_log):
    done = run_without(["explanation"], [["explain", small_log]])
    assert "status 2 explain" in done.stdout
    assert "explain" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_command__that_needs_a_missing_feature_is_refused(small_log):
    done = run_without(["campaign"], [["paper", "run", "feitelson98"]])
    assert "status 2 paper" in done.stdout
    assert "walltime.campaign" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_option__of_a_missing_feature_is_refused(small_log):
    done = run_without(["slurm"], [["calibrate", small_log, "--policy", "easy", "--starts"]])
    assert "status 2 calibrate" in done.stdout
    assert "calibrate --starts" in done.stderr
    assert len(done.stderr.splitlines()) == 1
