"""What every workload model keeps to: any machine, any number of jobs, the load asked for, and the same bytes each time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples
from walltime.errors import PolicyError, WorkloadError
from walltime.workload.models import MODELS, parse_model
from walltime.workload.models.model import WorkloadModel, stream, stretch_to

every_model = pytest.mark.parametrize("name", list(MODELS))


def same(a, b):
    names = ("job_id", "submit", "runtime", "requested", "procs", "planned")
    return (
        all(np.array_equal(getattr(a, n), getattr(b, n)) for n in names)
        and a.columns.keys() == b.columns.keys()
        and all(np.array_equal(a.columns[n], b.columns[n]) for n in a.columns)
        and a.machine_procs == b.machine_procs
    )


@every_model
@pytest.mark.parametrize("procs", [1, 2, 3, 100, 100_000])
@pytest.mark.parametrize("jobs", [1, 2, 100, 1000])
def test_generate__any_machine_and_any_number_of_jobs(name, procs, jobs):
    made = MODELS[name].generate(jobs, procs, seed=1)
    assert (len(made), made.machine_procs) == (jobs, procs)
    assert made.procs.min() >= 1
    assert made.procs.max() <= procs
    assert (made.requested == np.maximum(made.runtime, 1)).all()
    assert made.runtime.min() >= 0
    assert (np.diff(made.submit) >= 0).all()


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("procs", [1, 2, 3, 100, 700])
@pytest.mark.parametrize("load", [0.01, 0.688, 1.5])
def test_generate__load_is_within_one_percent(name, procs, load):
    for jobs in (100, 2000):
        made = MODELS[name].generate(jobs, procs, load, seed=2)
        assert made.offered_load == pytest.approx(load, rel=0.01)


@pytest.mark.slow
@every_model
def test_generate__load_on_a_huge_machine(name):
    assert MODELS[name].generate(200_000, 100_000, 1.0, seed=2).offered_load == pytest.approx(1.0, rel=0.01)


@examples(60)
@given(
    name=st.sampled_from(sorted(MODELS)),
    jobs=st.integers(1, 150),
    procs=st.integers(1, 300),
    load=st.none() | st.floats(0.01, 1.5),
    seed=st.integers(0, 2**64 - 1),
)
def test_generate__anything_possible(name, jobs, procs, load, seed):
    try:
        made = MODELS[name].generate(jobs, procs, load, seed)
    except WorkloadError as error:
        assert "which whole seconds cannot resolve" in str(error) or "all run 0 s" in str(error)  # noqa: PT017
        return
    assert same(made, MODELS[name].generate(jobs, procs, load, seed))
    if load is not None and jobs >= 100:
        assert made.offered_load == pytest.approx(load, rel=0.01)


@every_model
def test_generate__seeds_differ(name):
    a, b = (MODELS[name].generate(300, 64, 0.7, seed) for seed in (1, 2))
    assert not np.array_equal(a.submit, b.submit)
    assert not np.array_equal(a.runtime, b.runtime)


@every_model
def test_generate__says_what_it_is(name):
    made = MODELS[name].generate(50, 64, 0.7, seed=9)
    assert made.origin.name == f"{name}-50-64-0.7-9"
    assert made.origin.unix_start_time == 0
    assert any(f"synthetic workload of the model {name}, load 0.7, seed 9" in line for line in made.origin.header)
    assert "; MaxProcs: 64" in made.origin.header


@every_model
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 8, None, 0), ("number_out_of_range", "1", "0")),
        ((-3, 8, None, 0), ("number_out_of_range", "1", "-3")),
        ((5, 0, None, 0), ("number_out_of_range", "1", "0")),
        ((5, 8, 0.0, 0), ("number_out_of_range", "0", "1.5")),
        ((5, 8, -0.5, 0), ("number_out_of_range", "1.5", "-0.5")),
        ((5, 8, 1.6, 0), ("number_out_of_range", "0", "1.5", "1.6")),
        ((5, 8, math.nan, 0), ("number_out_of_range", "0", "1.5")),
        ((5, 8, None, -1), ("number_out_of_range", "0", "2", "64", "-1")),
        ((5, 8, None, 2**64), ("number_out_of_range", "0")),
        ((5.5, 8, None, 0), ("wrong_type", "number", "5.5")),
        ((5, "8", None, 0), ("wrong_type", "number", "'8'")),
        ((5, 8, None, True), ("wrong_type", "seed")),
        ((200, 100_000, 1e-30, 0), ("arrivals_too_long",)),
        pytest.param((200, 100_000, 1e-300, 0), ("arrivals_too_long",), marks=pytest.mark.slow),
    ],
)
def test_generate__bad_parameters(name, arguments, message):
    with raises(WorkloadError, *message):
        MODELS[name].generate(*arguments)


def test_generate__a_load_that_whole_seconds_cannot_give():
    with raises(WorkloadError, "arrivals_too_dense", "feitelson96", 100, 100000, 1.5):
        MODELS["feitelson96"].generate(100, 100_000, 1.5, seed=3)


@pytest.mark.nightly
@every_model
def test_generate__a_million_jobs_have_the_load_asked_for(name):
    made = MODELS[name].generate(1_000_000, 512, 0.7, seed=1)
    assert made.offered_load == pytest.approx(0.7, rel=1e-4)


def test_generate__repetitions_are_jobs_that_the_engine_can_replay():
    made = MODELS["feitelson96"].generate(500, 64, 0.7, seed=1)
    schedule = wt.simulate(made, wt.Easy())
    assert (schedule.end == schedule.start + made.runtime).all()


def test_stream__each_purpose_and_seed_has_its_own():
    draws = {
        tuple(stream(model, seed, what).integers(0, 2**32, 3).tolist())
        for model in ("a", "b")
        for seed in (0, 1, 2**32, 2**64 - 1)
        for what in ("x", "y")
    }
    assert len(draws) == 16


@examples(100)
@given(st.floats(1e-6, 1e12), st.floats(0.5, 3))
def test_stretch_to__finds_the_factor(wanted, power):
    factor = stretch_to(lambda f: f**power, wanted)
    assert factor**power == pytest.approx(wanted, rel=1e-9)


def test_model__without_a_way_to_generate():
    with pytest.raises(NotImplementedError):
        WorkloadModel().generate(1, 1)


# ------------------------------------------------------------------------------------------------------------------ names


@every_model
def test_parse_model__knows_every_name(name):
    assert parse_model(name) == MODELS[name]
    assert MODELS[name].name == str(MODELS[name]) == name
    assert parse_model(f" {name.upper()} ") == MODELS[name]
    assert MODELS[name].name == name


def test_parse_model__parameters():
    assert parse_model("downey97:size_rule=16,keep_cycle=no").size_rule == 16
    assert parse_model("downey97:keep_cycle=no").keep_cycle is False
    assert parse_model("downey97:most_parallelism=32").most_parallelism == 32.0
    changed = parse_model("feitelson96-fs:think_time=60,mean_gap=1e3")
    assert (changed.name, changed.think_time, changed.mean_gap) == ("feitelson96-fs", 60, 1000.0)
    assert str(changed) == "feitelson96-fs:mean-gap=1000,think-time=60"
    assert changed.changes == "mean_gap=1000.0, think_time=60, variant='s'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ("unknown_name", "''", *MODELS.variants)),
        ("lublin", ("unknown_name", "'lublin'", "'lublin99'")),
        ("jann97:order=3", ("unknown_option", "'order'", "'jann97:order=3'")),
        ("lublin99:classes=typeless", ("unknown_option", "'classes'", "longest", "longest-gap", "keep-cycle")),
        ("lublin99:longest", ("missing_value", "'lublin99:longest'", "longest=VALUE")),
        ("feitelson96:think_time=soon", ("wrong_value", "think-time", "'soon'")),
        ("feitelson96:mean_gap=long", ("wrong_value", "mean-gap", "'long'")),
        ("feitelson96:same_runtime=maybe", ("wrong_value", "same-runtime", "'maybe'")),
        ("feitelson96:mean_gap=-1", ("wrong_value", "mean-gap", "'-1'")),
        ("feitelson96:mean_gap=nan", ("wrong_value", "mean-gap", "'nan'")),
        ("downey97:size_rule=x", ("wrong_value", "size-rule")),
    ],
)
def test_parse_model__unknown(text, message):
    with raises(PolicyError, *message):
        parse_model(text)
