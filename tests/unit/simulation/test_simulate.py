"""`walltime.simulate` and the classes behind it refuse what they do not know, and say what is known."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.compiled.cache import is_kept
from walltime.compiled.folder import cache_folder
from walltime.engine.interface.load import ENTRIES, load
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.engine.reference.number import Reference
from walltime.policy import Order, Policy

JOBS = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], requested=[10, 8, 5], procs=[3, 4, 1], machine_procs=4)
both_engines = pytest.mark.parametrize("engine", ["kernel", "reference"])


def problem(**changes):
    arrays = {name: getattr(JOBS, name) for name in ("submit", "runtime", "planned", "procs")}
    return Problem(**{**arrays, "machine": 4, "policy": wt.Easy(), **changes})


def test_simulate__result_says_how_it_was_made():
    schedule = wt.simulate(JOBS, wt.Easy(), coincident="sequential", overrun="continue")
    assert (schedule.coincident, schedule.overrun, schedule.policy) == ("sequential", "continue", wt.Easy())
    assert schedule.workload is JOBS
    assert (schedule.start.dtype, schedule.end.dtype, schedule.kind.dtype, schedule.reserved_start.dtype) == (
        "int64",
        "int64",
        "uint8",
        "int64",
    )
    assert set(schedule.seconds) == {"compile", "simulate"}
    assert schedule.wait.tolist() == [0, 9, 0]


@both_engines
def test_simulate__unknown_coincident(golden, engine):
    with pytest.raises(wt.PolicyError) as caught:
        wt.simulate(JOBS, wt.Easy(), coincident="both", engine=engine)
    golden("compare", str(caught.value))


@both_engines
def test_simulate__unknown_overrun(golden, engine):
    with pytest.raises(wt.PolicyError) as caught:
        wt.simulate(JOBS, wt.Easy(), overrun="forgive", engine=engine)
    golden("compare", str(caught.value))


def test_simulate__unknown_engine():
    with raises(wt.PolicyError, "unknown_engine", "'fast'", "auto", "kernel", "reference"):
        wt.simulate(JOBS, wt.Easy(), engine="fast")


@pytest.mark.parametrize("policy", [7, wt.Easy, None])
def test_simulate__something_that_is_not_a_policy(policy):
    with raises(wt.PolicyError, "wrong_type", "policy", "walltime.Easy", "'easy:order=sjf'"):
        wt.simulate(JOBS, policy)


@dataclass(frozen=True)
class Unheard(Policy):
    """A policy that no engine knows."""


def test_simulate__a_policy_that_the_engines_do_not_know():
    with raises(wt.PolicyError, "unsupported_policy", "Unheard"):
        wt.simulate(JOBS, Unheard(), engine="kernel")
    with raises(wt.PolicyError, "unsupported_policy", "Unheard"):
        wt.simulate(JOBS, Unheard())


def test_simulate__an_order_that_the_kernel_does_not_know():
    @dataclass(frozen=True)
    class Strange(Order):
        name: str = "strange"

    with raises(wt.PolicyError, "unsupported_order"):
        wt.simulate(JOBS, wt.Easy(order=Strange()))


def test_simulate__reports_progress():
    seen = []
    wt.simulate(JOBS, wt.Easy(), progress=seen.append)  # one piece: nothing to report
    assert seen == []
    simulation = NumberEngine(problem())
    pieces = []
    original = simulation.advance
    simulation.advance = lambda budget=1: original(1)
    simulation.run(pieces.append)
    assert pieces == sorted(pieces)
    assert len(pieces) >= 3
    assert pieces[-1] == 3


@pytest.mark.parametrize("name", ["submit", "runtime", "planned", "procs"])
@pytest.mark.parametrize("wrong", [np.zeros(3, np.int32), np.zeros(3), np.zeros(4, np.int64), np.zeros((3, 1), np.int64)], ids=str)
def test_simulation__refuses_arrays_that_do_not_match(name, wrong):
    if name == "submit" and wrong.shape == (4,):
        name = "runtime"  # submit sets the length; then the next one is wrong
    with pytest.raises(ValueError, match=name):
        NumberEngine(problem(**{name: wrong}))


def test_simulation__leaves_the_jobs_untouched():
    arrays = {name: np.array(getattr(JOBS, name)) for name in ("submit", "runtime", "planned", "procs")}
    NumberEngine(problem(**arrays)).run()
    for name, array in arrays.items():
        assert array.tolist() == getattr(JOBS, name).tolist()
        assert array.flags.writeable  # the caller's own array


def test_simulation__takes_arrays_that_are_not_contiguous():
    strided = np.repeat(JOBS.submit, 2)[::2]
    assert not strided.flags.c_contiguous
    simulation = NumberEngine(problem(submit=strided))
    simulation.run()
    assert simulation.start.tolist() == [0, 10, 2]


def test_simulation__before_it_runs_nobody_has_started():
    simulation = NumberEngine(problem())
    assert (simulation.started, simulation.seconds) == (0, 0.0)
    assert simulation.start.tolist() == simulation.reserved_start.tolist() == [-1, -1, -1]


def test_simulation__says_when_jobs_can_never_start():
    # Only reached by going around Workload, which refuses such jobs.
    with raises(wt.errors.EngineError, "endless_wait", "2"):
        NumberEngine(problem(procs=np.array([3, 5, 1]), policy=wt.NoBackfilling())).run()
    reference = Reference(problem(procs=np.array([3, 5, 1]), policy=wt.NoBackfilling()))
    with raises(wt.errors.EngineError, "endless_wait", "2"):
        reference.run()


def test_loop__is_compiled_once_for_each_kind_of_pass():
    assert load("easy") is load("easy")
    kinds = {
        "easy": [wt.NoBackfilling(), wt.Easy(), wt.Hybrid(depth=0), wt.Hybrid(depth=1)],
        "easy-ordered": [wt.NoBackfilling(order=wt.WFP), wt.Easy(order=wt.SJF), wt.Easy(backfill_order=wt.SJF)],
        "scratch": [wt.Hybrid(depth=2, backfill_order=wt.WFP), wt.Conservative(variant="scratch")],
        "conservative": [wt.Conservative(), wt.Conservative(order=wt.SJF)],
    }
    for name, policies in kinds.items():
        for policy in policies:
            simulation = NumberEngine(problem(policy=policy))
            simulation.compile()
            assert simulation._loop is load(name)
            simulation.run()
        assert len(load(name).signatures) == 1
        assert is_kept(ENTRIES[name].function, cache_folder())


def test_machine_with_too_many_processors__is_refused():
    jobs = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=2**31)
    with raises(wt.WorkloadError, "machine_too_large", "2147483646"):
        wt.simulate(jobs, wt.Easy())


def test_simulate__unknown_coincident_without_jobs():
    empty = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=1)
    with pytest.raises(wt.PolicyError):
        wt.simulate(empty, wt.Easy(), coincident="both", engine="reference")


TOO_LONG_TOGETHER = """
import walltime as wt
try:
    jobs = wt.Workload.from_arrays(submit=[0] * 20, runtime=[2**59] * 20, procs=[1] * 20, machine_procs=1)
    start = wt.simulate(jobs, wt.POLICY).start
    print("ends after", sorted(start.tolist()))
except wt.WalltimeError as error:
    print("refused:", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["NoBackfilling()", "Easy()", "Conservative()", "Hybrid(depth=3)"])
def test_simulate__refuses_jobs_that_together_outlast_an_int64(policy):
    # In another process, as this one might not survive it.
    command = [sys.executable, "-c", TOO_LONG_TOGETHER.replace("POLICY", policy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout[:8]) == (0, "refused:")
