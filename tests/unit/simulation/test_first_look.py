"""A first look at a log: every policy, sorted, with intervals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import walltime as wt
from tests.cli import HEADER, call, record
from validation.later_policies import first_look
from walltime.policy import POLICIES, parse_policy, policy_variants
from walltime.simulation.spread import shaking_spread


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "log.swf"
    rng = np.random.default_rng(1)
    rows = [record(k + 1, 40 * k, int(rng.integers(1, 200)), int(rng.integers(1, 5)), 250) for k in range(60)]
    file.write_text(HEADER + "".join(rows))
    return file


def test_every__has_all_policies_once_and_can_be_read():
    policies = [parse_policy(label) for label in policy_variants()]
    assert [policy.label for policy in policies] == list(policy_variants())
    assert len(set(policies)) == len(policy_variants())
    assert {type(policy) for policy in policies} == {
        form.loaded
        for name, form in POLICIES.variants.items()
        if form.loaded().machines["number"].engine and name != "plan"  # too slow for a first look
    }


def test_first_look__sorts_and_compares_with_the_baseline(log):
    jobs = wt.read(log)
    labels = ["fcfs", "easy", "easy:order=saf"]
    schedules = [wt.simulate(jobs, label) for label in labels]
    spread = shaking_spread(schedules, copies=3)
    looks = first_look(schedules, labels, 1, spread)
    means = [look.means["mean_bounded_slowdown"].mean for look in looks]
    assert means == sorted(means)
    easy = next(look for look in looks if look.label == "easy")
    assert easy.differences["mean_wait"].mean == 0.0
    assert easy.verdict("mean_wait") == "unclear"
    fcfs = next(look for look in looks if look.label == "fcfs")
    runs = [[s.mean_wait for s in (own, *shaken)] for own, shaken in zip(spread.own, spread.shaken, strict=True)]
    assert fcfs.differences["mean_wait"].mean == pytest.approx(np.mean(np.subtract(runs[0], runs[1])))
    found = fcfs.differences["mean_wait"]
    assert (found.mean, found.half_width) == pytest.approx(spread.difference("mean_wait", 1, 0)), "as compare has it for two"
    assert fcfs.verdict("mean_wait") == ("worse" if found.low > 0 else "better" if found.high < 0 else "unclear")


def test_first_look__without_copies_has_no_intervals(log):
    jobs = wt.read(log)
    looks = first_look([wt.simulate(jobs, "easy"), wt.simulate(jobs, "fcfs")], ["easy", "fcfs"], 0, None)
    assert all(math.isnan(look.means["mean_wait"].low) and look.verdict("mean_wait") == "unclear" for look in looks)


@pytest.mark.slow
def test_compare__of_all_policies(log, capsys):
    code, out, _ = call(capsys, "compare", log, "--policy", "all")
    assert code == 0
    assert "vs EASY" in out
    assert "±" in out
    assert "partly lucky" in out


@pytest.mark.slow
def test_compare__of_all_policies_as_json(log, capsys):
    code, out, _ = call(capsys, "compare", log, "--policy", "all", "--json", "--no-spread")
    assert code == 0
    value = json.loads(out)
    assert {entry["policy"] for entry in value["runs"]} == set(policy_variants())
    slowdowns = [entry["mean_bounded_slowdown"] for entry in value["runs"]]
    assert (value["runs"][0]["policy"], slowdowns[1:]) == ("easy", sorted(slowdowns[1:]))
    assert f"{len(policy_variants())} policies" in " ".join(value["caveats"])
