"""The validation: its formulas give known values, a planted error is seen, and the page shows what was stored."""

from __future__ import annotations

import doctest
import heapq
import json
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from validation import agreement, formulas, identities, run, theory
from validation.common import Sizes, compare
from validation.formulas import DETERMINISTIC, EXPONENTIAL, HYPER, UNIFORM

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "validation" / "theory.md"
MARK = re.compile(r"^<!-- generated: validation (\S+) -->$", re.MULTILINE)
TINY = Sizes(jobs=3_000, seeds=20, head=300, workloads=2, shakes=2, reference=300, logs=(), quick=True)
SERVICES = (EXPONENTIAL, UNIFORM, HYPER)


def delayed(seconds: int, factor: float = 1.0, chosen=slice(None), calls=lambda number: True):
    """A broken `simulate`: in these of its calls, waits are that much longer, for some of the jobs."""
    number = 0

    def simulate(workload, policy, **options):
        nonlocal number
        number += 1
        schedule = wt.simulate(workload, policy, **options)
        if not calls(number) or not len(schedule):
            return schedule
        start = schedule.start.copy()
        start[chosen] += np.rint(schedule.wait[chosen] * (factor - 1)).astype(np.int64) + seconds
        return replace(schedule, start=start, end=start + schedule.runtime)

    return simulate


# ------------------------------------------------------------------------------------------------------------- formulas


@pytest.mark.parametrize("module", [formulas, theory], ids=lambda module: module.__name__)
def test_examples__of_docstrings_give_what_they_say(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_erlang_c__with_one_and_two_servers_is_as_in_the_books(load):
    assert formulas.erlang_c(1, load) == pytest.approx(load)
    assert formulas.erlang_c(2, load) == pytest.approx(2 * load**2 / (1 + load))


def test_erlang_c__is_the_sum_of_the_textbooks():
    offered, terms = 25.6, [1.0]
    for k in range(1, 33):
        terms.append(terms[-1] * offered / k)
    last = terms[32] / (1 - 0.8)
    assert formulas.erlang_c(32, 0.8) == pytest.approx(last / (sum(terms[:32]) + last))


def test_erlang_c__of_two_servers_at_half_load_is_a_third():
    assert formulas.erlang_c(2, 0.5) == pytest.approx(1 / 3)
    assert formulas.mmc_wait(2, 0.5) == pytest.approx(1 / 3)


def test_pollaczek_khinchine__constant_service_waits_half_as_long():
    assert formulas.pollaczek_khinchine(0.9, 1.0) == pytest.approx(formulas.mmc_wait(1, 0.9))
    assert formulas.pollaczek_khinchine(0.9, 0.0) == pytest.approx(formulas.mmc_wait(1, 0.9) / 2)


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_mdc__with_one_server_is_pollaczek_khinchine(load):
    assert formulas.mdc(1, load) == pytest.approx((formulas.pollaczek_khinchine(load, 0.0), load))


def test_mdc__lies_between_half_and_all_of_exponential_service():
    for servers in (2, 8, 32):
        wait, waits = formulas.mdc(servers, 0.8)
        assert formulas.mmc_wait(servers, 0.8) / 2 < wait < formulas.mmc_wait(servers, 0.8)
        assert waits < formulas.erlang_c(servers, 0.8)


@pytest.mark.parametrize("service", [*SERVICES, DETERMINISTIC], ids=lambda service: service.name)
def test_service__draws_have_the_mean_and_variance_that_it_says(service):
    drawn = service.draw(np.random.default_rng(1), 400_000)
    assert drawn.mean() == pytest.approx(1, abs=0.02)
    assert drawn.var() == pytest.approx(service.scv, rel=0.05)
    for x in (0.3, 1.0, 1.9):
        assert float(service.survival(np.array([x]))[0]) == pytest.approx((drawn > x).mean(), abs=0.01)
        assert float(service.work_up_to(np.array([x]))[0]) == pytest.approx(np.where(drawn <= x, drawn, 0).mean(), abs=0.01)


def shortest_first(load: float, service: formulas.Service, jobs: int, seed: int) -> float:
    """Mean wait of one server in floating point: the shortest waiting job next, none interrupted."""
    chance = random.Random(seed)
    lengths = service.draw(np.random.default_rng(seed), jobs).tolist()
    now, arrivals = 0.0, []
    for _ in range(jobs):
        now += chance.expovariate(load)
        arrivals.append(now)
    free, total, queue, coming = 0.0, 0.0, [], 0
    for _ in range(jobs):
        if not queue:
            free = max(free, arrivals[coming])
        while coming < jobs and arrivals[coming] <= free:
            heapq.heappush(queue, (lengths[coming], arrivals[coming]))
            coming += 1
        length, arrived = heapq.heappop(queue)
        total += free - arrived
        free += length
    return total / jobs


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_shortest_first__formula_is_what_a_plain_simulation_finds(service):
    found = np.array([shortest_first(0.7, service, 20_000, seed) for seed in range(12)])
    assert compare("", 0.7, "", formulas.shortest_first_wait(0.7, service), found).passed
    assert not compare("", 0.7, "", formulas.pollaczek_khinchine(0.7, service.scv), found).passed


def test_shortest_first__classes_make_up_the_whole():
    short, long = (formulas.shortest_first_wait(0.8, EXPONENTIAL, *ends) for ends in ((0.0, 1.0), (1.0, float("inf"))))
    share = 1 - float(np.exp(-1))
    assert share * short + (1 - share) * long == pytest.approx(formulas.shortest_first_wait(0.8, EXPONENTIAL), rel=1e-3)


def test_saturated__two_narrow_jobs_or_one_wide_job_fill_the_machine():
    assert formulas.saturated_utilization(0) == formulas.saturated_utilization(1) == 1
    assert formulas.saturated_utilization(0.5) == pytest.approx(6 / 7)


# --------------------------------------------------------------------------------------------------------------- theory


def test_compare__passes_within_the_limit_only():
    values = np.array([9.0, 10.0, 11.0, 10.0])
    assert compare("", 0.5, "", 10.0, values).deviation == 0
    line = compare("", 0.5, "", 11.0, values)
    assert line.deviation == pytest.approx(-1 / (np.sqrt(2 / 3) / 2))
    assert line.low99 < line.low95 < line.ours < line.high95 < line.high99
    assert not compare("", 0.5, "", 12.0, values).passed
    assert not compare("", 0.5, "", 1.0, np.ones(3) * 2).passed
    assert compare("", 0.5, "", 2.0, np.ones(3) * 2).passed


QUEUES = [
    theory.Queue(EXPONENTIAL, 1, 0.5),
    theory.Queue(EXPONENTIAL, 2, 0.5),
    theory.Queue(UNIFORM, 1, 0.5),
    theory.Queue(DETERMINISTIC, 2, 0.5),
    theory.Queue(EXPONENTIAL, 1, 0.5, shortest_first=True),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_theory__engine_passes_and_waits_that_are_5_percent_longer_do_not(queue):
    sizes = replace(TINY, jobs=40_000, seeds=20)
    lines, laws = theory.replicate(queue, sizes)
    assert all(line.passed for line in lines), lines
    assert laws["exact"] == laws["runs"] == 20
    wrong, _ = theory.replicate(queue, sizes, delayed(0, factor=1.05))
    assert not next(line for line in wrong if line.what == "mean wait").passed


def test_theory__saturated_processors_are_as_busy_as_worked_out():
    assert theory.saturated(0.5, replace(TINY, jobs=20_000)).passed
    assert not theory.saturated(0.5, replace(TINY, jobs=20_000), lambda w, policy: wt.simulate(w, wt.Easy())).passed


@pytest.mark.parametrize("queue", QUEUES[:4], ids=lambda queue: queue.name)
def test_theory__policies_start_every_job_when_the_recursion_does(queue):
    assert set(theory.moved_by_policy(queue, 3_000).values()) == {0}
    moved = theory.moved_by_policy(queue, 3_000, delayed(1, chosen=[7], calls=lambda number: number == 2))
    assert sorted(moved.values())[-2:] == [0, 1]


def test_theory__recursions_agree_where_there_is_one_server():
    submit, service = (np.rint(times).astype(np.int64) for times in QUEUES[0].times(2_000, 3))
    assert theory.lindley(submit, service).tolist() == theory.several_servers(submit, service, 1).tolist()


def test_theory__little_and_utilization_hold_and_a_lost_job_is_seen():
    schedule = wt.simulate(QUEUES[0].workload(20_000, 1), wt.Easy())
    laws = theory.laws(schedule, 2_000, 18_000)
    assert laws["exact"] == 1
    assert abs(laws["little"]) < 0.01
    assert abs(laws["utilization"]) < 0.01
    late = replace(schedule, start=schedule.start + 10_000, end=schedule.end)  # as if nobody was served in the meantime
    assert abs(theory.laws(late, 2_000, 18_000)["utilization"]) > 0.01


# ----------------------------------------------------------------------------------------------------------- identities

PLANTED = {
    "one estimate": lambda w, policy, **o: wt.simulate(w.with_planned(w.requested), policy, **o),
    "allowed": lambda w, policy, **o: replace(wt.simulate(w, wt.Hybrid(depth=0), **o), workload=w),
    "no wild backfills": lambda w, policy, **o: wt.simulate(w.with_planned(w.planned * 10), policy, **o),
}
"""What breaks the identities that look at a single schedule; the others are broken by any difference between two."""


@pytest.mark.parametrize("name", identities.IDENTITIES)
def test_identity__holds_on_random_workloads_and_a_planted_violation_is_found(name):
    check = identities.IDENTITIES[name].check
    workloads = [identities.random_workload(seed) for seed in range(6)]
    found = [check(workload, wt.simulate) for workload in workloads]
    assert sum(finding.jobs for finding in found) > 100
    assert [finding.broken for finding in found] == [0] * 6
    broken = PLANTED.get(name)
    again = [check(workload, broken or delayed(1, chosen=[3], calls=lambda number: number == 2)) for workload in workloads]
    assert sum(finding.broken for finding in again) > 0


def test_identities__random_workloads_have_queues_ties_and_killed_jobs():
    waiting = ties = killed = 0
    for seed in range(10):
        workload = identities.random_workload(seed)
        waiting += int((wt.simulate(workload, wt.Easy()).wait > 0).sum())
        ties += int((np.diff(workload.submit) == 0).sum())
        killed += int((workload.runtime > workload.requested).sum())
    assert min(waiting, ties, killed) > 50


def test_classify__the_shadow_may_hang_on_a_job_of_the_same_instant():
    # At 0 the first two start; the third needs all processors, at 50; the fourth ends at 50 as well, but has no extra processors.
    workload = wt.Workload.from_arrays(
        submit=[0, 0, 0, 0, 0], runtime=[5, 5, 5, 5, 5], requested=[50] * 5, procs=[2, 1, 4, 1, 1], machine_procs=4
    )
    found = identities.classify(wt.simulate(workload, wt.Easy(), dynamics=True))
    assert found == identities.Backfills(extra=0, length=1, same_instant=1, forbidden=0)


def test_effects__of_estimates_are_there_under_easy_and_not_under_fcfs():
    workload = identities.random_workload(7)
    moved = identities.changed_by_factors(workload)
    assert set(moved["fcfs"].values()) == {0}
    assert min(moved["easy"].values()) > 0
    assert identities.wild(workload)["perfect estimates"] == 0


# ------------------------------------------------------------------------------------------------------------ agreement


def test_agreement__engines_agree_and_a_planted_difference_is_found():
    workload = identities.random_workload(3)
    assert agreement.engines(workload, wt.Easy()) == {"jobs": 200, "broken": 0}
    assert agreement.engines(workload, wt.Easy(), delayed(1, chosen=[3], calls=lambda number: number == 2))["broken"] == 1


def test_agreement__readings_are_in_percent_of_the_default():
    workload = identities.random_workload(3)
    found = agreement.readings(workload, "easy", 3)["mean_response"]
    assert found["value"] == pytest.approx(wt.simulate(workload, wt.Easy()).summary().mean_response)
    kept = wt.simulate(workload, wt.Easy(), overrun="extend").summary().mean_response
    assert found["extend"]["once"] == pytest.approx(100 * (kept / found["value"] - 1))
    assert found["shaken"][0] <= found["shaken"][1]
    assert "from scratch" not in found
    assert "from scratch" in agreement.readings(workload, "conservative", 2)["mean_response"]


# ----------------------------------------------------------------------------------------------------- running, the page


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "generators")
    import validation_tables

    yield validation_tables
    for name in ("validation_tables", "performance_tables"):
        sys.modules.pop(name, None)


@pytest.fixture
def stored(tmp_path, monkeypatch) -> Path:
    """What a run of all parts stores, without any log but a synthetic one."""
    monkeypatch.setattr(run, "QUICK", TINY)
    for module in (identities, agreement):
        monkeypatch.setattr(module, "find_logs", lambda sizes: {"made up": identities.random_workload(7)})
        monkeypatch.setattr(
            module, "describe_logs", lambda logs: {name: {"jobs": len(w), "procs": w.machine_procs} for name, w in logs.items()}
        )
    file = tmp_path / "validation.json"
    assert run.main(["--quick", "--out", str(file)]) == 0
    return file


def rendered(tables, file: Path) -> str:
    return MARK.sub(lambda mark: tables.validation(mark[1], file), PAGE.read_text())


def test_page__shows_what_a_run_stored(stored, tables):
    page = rendered(tables, stored)
    assert "Not run" not in page
    assert "small sizes" in page
    assert "made up" in page
    numbers = json.loads(stored.read_text())
    assert list(numbers) == ["theory", "identities", "agreement"]
    numbers["identities"]["result"]["identities"]["doubled"]["found"]["random"]["broken"] = 4321
    stored.write_text(json.dumps(numbers))
    assert "**4,321** of " in rendered(tables, stored)


def test_page__says_what_was_not_run_and_shows_every_part(tmp_path, tables):
    page = rendered(tables, tmp_path / "none.json")
    marks = MARK.findall(PAGE.read_text())
    assert page.count("*Not run") == len(marks)
    assert {mark.partition("/")[0] for mark in marks} == set(tables.PARTS)
    assert {mark.partition("/")[2] for mark in marks if mark.startswith("waits")} == set(tables.FAMILIES)
    assert {mark.partition("/")[2] for mark in marks if mark.startswith("agreement")} == set(agreement.READINGS)


def test_page__numbers_that_were_stored_hold(tables):
    numbers = tables.load()
    assert list(numbers) == list(run.PARTS)
    assert not any(part["quick"] for part in numbers.values())
    assert [bad for name, part in run.PARTS.items() for bad in part.failures(numbers[name]["result"])] == []


def test_run__keeps_other_parts_and_tells_of_failures(tmp_path, monkeypatch, capsys):
    file = tmp_path / "validation.json"
    file.write_text(json.dumps({"theory": {"kept": True}}))
    monkeypatch.setattr(agreement, "run", lambda sizes: {"engines": {"log": {"easy": {"jobs": 2, "broken": 1}}}})
    assert run.main(["--quick", "--only", "agreement", "--out", str(file)]) == 1
    assert "the engines differ on log under easy" in capsys.readouterr().err
    assert json.loads(file.read_text())["theory"] == {"kept": True}
    assert [path.name for path in tmp_path.iterdir()] == ["validation.json"]
