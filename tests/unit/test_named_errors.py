"""What is of another type than it should be gets an error of the package, in one line that names the cure."""

import re
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.cli import HEADER, call, one_line, record

JOBS = wt.Workload.from_arrays(submit=[0, 100, 200], runtime=[50, 60, 70], procs=[1, 2, 3], machine_procs=4)
WRONG_WORKLOADS = ["log.swf", Path("log.swf"), 5, None, [JOBS]]


def message_of(error, function, *arguments, **options) -> str:
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("given", WRONG_WORKLOADS, ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda w: wt.simulate(w, wt.Easy()),
        lambda w: wt.simulate_many(w, [wt.simulation.Case()]),
        lambda w: wt.audit(w, {}),
        lambda w: wt.replicate(lambda seed: w, wt.Easy(), seeds=[1]),
    ],
    ids=["simulate", "simulate_many", "audit", "replicate"],
)
def test_workload__of_another_type(golden, function, given):
    message = message_of(wt.WorkloadError, function, given)
    assert "walltime.read" in message
    if isinstance(given, str | Path):
        golden("compare", message)


@pytest.mark.parametrize("given", ["log.swf", Path("log.swf"), JOBS, 5])
def test_compare__of_no_schedules(golden, given):
    golden("compare", message_of(wt.WorkloadError, wt.compare, given))


def test_compare__of_a_list_says_how_to_spread_it():
    schedule = wt.simulate(JOBS, wt.NoBackfilling())
    assert "unpack the list with an asterisk, *schedules" in message_of(wt.WorkloadError, wt.compare, [schedule, schedule])


@pytest.mark.parametrize("given", ["log.swf", Path("log.swf"), JOBS, 5])
def test_replicate__of_no_function(golden, given):
    golden("compare", message_of(wt.WorkloadError, wt.replicate, given, wt.Easy(), seeds=[1]))


@pytest.mark.parametrize("seeds", [5, "12", None, [], ["1"], [0, 1.5], [0, -1]])
def test_replicate__of_no_seeds(golden, seeds):
    golden("compare", message_of(wt.PolicyError, wt.replicate, lambda seed: JOBS, wt.Easy(), seeds))


@pytest.mark.parametrize("seeds", [range(2), [0, 1], np.arange(2), (seed for seed in (0, 1))], ids=["range", "list", "array", "generator"])
def test_replicate__takes_seeds_of_any_kind(seeds):
    assert wt.replicate(lambda seed: wt.workloads.shake(JOBS, 9, seed), wt.NoBackfilling(), seeds).seeds == [0, 1]


@pytest.mark.parametrize(
    "seed", ["1", 1.0, None, True, -1, 2**64, 10**5000], ids=["text", "float", "None", "bool", "negative", "large", "huge"]
)
@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda seed: wt.workloads.shake(JOBS, 9, seed), wt.PolicyError),
        (lambda seed: wt.workloads.scale_load(JOBS, 0.5, "interarrival", seed), wt.PolicyError),
        (lambda seed: JOBS.with_estimates(wt.estimates.FModel(4), seed), wt.WorkloadError),
        (lambda seed: JOBS.with_estimates(wt.estimates.UserEstimates(), seed), wt.WorkloadError),
        (lambda seed: wt.estimates.FModel(4).draw(JOBS, seed), wt.WorkloadError),
        (lambda seed: wt.workloads.Lublin99().generate(5, 8, seed=seed), wt.WorkloadError),
        (lambda seed: wt.simulate_many(JOBS, [wt.simulation.Case(estimates=wt.estimates.FModel(4), seed=seed)]), wt.PolicyError),
        (lambda seed: wt.simulate_many(JOBS, [wt.simulation.Case(seed=seed)]), wt.PolicyError),
    ],
    ids=["shake", "scale_load", "with_estimates", "user", "draw", "generate", "case", "case without estimates"],
)
def test_seed__of_another_type(function, error, seed):
    assert "seed must be " in message_of(error, function, seed)


def test_cases__of_another_type(golden):
    assert "give [case] for one" in message_of(wt.PolicyError, wt.simulate_many, JOBS, wt.simulation.Case())
    golden("compare", message_of(wt.PolicyError, wt.simulate_many, JOBS, [wt.Easy()]))
    golden("compare", message_of(wt.PolicyError, wt.simulate_many, JOBS, 5))


@pytest.mark.parametrize("name", ["wait", "as_dict", "__class__", 5])
def test_measure__that_is_not_known(golden, name):
    schedule = wt.simulate(JOBS, wt.NoBackfilling())
    comparison = wt.compare(schedule, schedule)
    several = wt.replicate(lambda seed: JOBS, wt.NoBackfilling(), [1, 2])
    batch = wt.simulate_many(JOBS, [wt.simulation.Case()])
    for message in (
        message_of(wt.PolicyError, comparison.difference, name),
        message_of(wt.PolicyError, several.values, name),
        message_of(wt.PolicyError, several.difference, name, several),
        message_of(wt.PolicyError, batch.values, name),
    ):
        golden("compare", message)


def test_measure__of_dynamics_that_were_not_noted():
    assert "simulate with dynamics=True" in message_of(wt.PolicyError, wt.simulate_many(JOBS, [wt.simulation.Case()]).values, "sjfness")


# The library names Python's arguments, the command line its options.


def test_library__names_no_options_of_the_command_line():
    source = Path(wt.__file__).parent
    for file in source.rglob("*.py"):
        if "cli" in file.relative_to(source).parts or "commands" in file.parts or file.stem.endswith("command"):
            continue
        for match in re.finditer(r"raise \w+\((?:[^()]|\([^()]*\))*\)", file.read_text()):
            ours = re.sub(r"\b(sacct|squeue|sinfo) --json|\bscontrol --oneliner", "", match[0])  # those of other programs may be named
            assert not re.search(r"(?<![\w(-])--[a-z]", ours), f"{file.name}: {match[0]}"


@pytest.mark.parametrize(("command", "text"), [("simulate", f"{HEADER}bad\n"), ("simulate", record(1, 0, 10, 1, 20))])
def test_command_line__names_its_options(golden, tmp_path, capsys, command, text):
    path = tmp_path / "log.swf"
    path.write_text(text)
    error = one_line(*call(capsys, command, path))
    golden("compare", error.rstrip())
