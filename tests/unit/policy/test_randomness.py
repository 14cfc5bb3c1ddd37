"""Policies and predictors of one's own that draw random numbers: the same for a seed, others for another one."""

from __future__ import annotations

import json
import random
import warnings
from threading import Thread

import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.campaign import Store, Threads, read_plan, run_campaign
from walltime.simulation import Case, replicate, simulate_many

pytestmark = pytest.mark.slow  # compiles functions of its own

JOBS = wt.workloads.Lublin99().generate(300, 64, 1.3, 1)
OWN = """
class Lottery:
    def begin(self, procs, rng):
        self.rng = rng
    def choose(self, now, waiting, running, free):
        for place in self.rng.permutation(len(waiting)):
            if waiting[place].procs <= free:
                free -= waiting[place].procs
                yield waiting[place]

class Guessing:
    def begin(self, rng):
        self.rng = rng
    def predict(self, job):
        return int(self.rng.integers(1, 1 + job.requested))
    def observe(self, job):
        pass
"""


def starts(scheduler: str, **options) -> list[int]:
    return wt.simulate(JOBS, scheduler, **options).start.tolist()


def test_seed__reaches_policies_and_predictors(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    for scheduler in (f"{file}:Lottery", f"easy:predictor={file}:Guessing"):
        assert starts(scheduler) == starts(scheduler, seed=0) != starts(scheduler, seed=1)
    assert starts(f"easy:predictor={file}:Guessing", seed=1) == starts(f"easy:predictor={file}:Guessing", seed=1, engine="reference")
    with raises(wt.PolicyError, "wrong_type"):
        starts("easy", seed=-1)


def test_replications_and_batches__have_their_seeds_on_any_number_of_threads(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    policy = wt.policy.parse_policy(f"{file}:Lottery")
    waits = [replicate(lambda seed: JOBS, policy, range(4), workers=workers).values("mean_wait").tolist() for workers in (1, 3)]
    assert waits[0] == waits[1]
    assert len(set(waits[0])) == 4
    batch = simulate_many(JOBS, [Case(policy, seed=seed) for seed in range(4)])
    assert batch.values("mean_wait").tolist() == waits[0]


def test_seed__is_an_option_and_a_key_of_campaigns(capsys, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    log = tmp_path / "log.swf"
    wt.logs.write_swf(log, JOBS)
    words = ("simulate", log, "--policy", f"{tmp_path}/own.py:Lottery", "--json", "--seed")
    waits = [json.loads(call(capsys, *words, seed)[1])["mean_wait"] for seed in (0, 0, 1)]
    assert waits[0] == waits[1] != waits[2]
    assert call(capsys, "compare", log, "--policy", f"{tmp_path}/own.py:Lottery", "--policy", "easy", "--replications", "2")[0] == 0
    plan = tmp_path / "plan.toml"
    plan.write_text('[campaign]\nseeds = 2\n[fixed]\ntrace = "log.swf"\n[grid]\npolicy = ["own.py:Lottery", "easy"]\n')
    own = [tmp_path / "own.py"]
    done = run_campaign(read_plan(plan, own=own), executor=Threads(2))
    assert done.run == 3  # nothing in EASY is random
    table = Store(tmp_path / "plan.results").table()
    assert sorted(table["mean_wait"].to_list())[-3:] == sorted([waits[0], waits[2], *table.filter(table["policy"] == "easy")["mean_wait"]])


@pytest.mark.parametrize("draw", ["random.random()", "numpy.random.rand()", "shuffled()", "helper()", "neighbour()", "Inner().number"])
def test_global_numbers__are_seeded_for_each_run_and_warned_of_once(tmp_path, draw):
    file = tmp_path / "careless.py"
    (tmp_path / "beside.py").write_text("import random\n\ndef neighbour():\n    return random.random()\n")
    file.write_text(
        "import random, numpy\nfrom random import random as shuffled\nfrom beside import neighbour\n\n"
        "class Inner:\n    @property\n    def number(self):\n        return random.random()\n\n"
        "def helper():\n    return random.random()\n\n"
        "class Careless:\n    def predict(self, job):\n"
        f"        return 1 + int(job.requested * {draw})\n    def observe(self, job):\n        pass\n"
    )
    scheduler = f"easy:predictor={file}:Careless"
    with pytest.warns(UserWarning, match="Careless draws from the global random numbers"):
        first = starts(scheduler)
    before = random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert starts(scheduler) == first != starts(scheduler, seed=1)
    assert random.getstate() == before
    policy = scheduler
    waits = [replicate(lambda seed: JOBS, policy, range(6), workers=workers).values("mean_wait").tolist() for workers in (1, 3)]
    assert waits[0] == waits[1]


def test_class_beside_one_that_draws__is_not_warned_of(tmp_path):
    file = tmp_path / "mixed.py"
    file.write_text(
        "import random\n\nclass Careless:\n    def choose(self, now, waiting, running, free):\n        return [random.choice(waiting)]\n\n"
        "class Careful:\n    def choose(self, now, waiting, running, free):\n        return waiting[:1] if not running else ()\n"
    )
    other = Thread(target=lambda: [random.random() for _ in range(10**6)])  # as the threads of a Dask worker do
    other.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        starts(f"{file}:Careful")
    other.join()
