"""Classes and objects with the right methods are policies and predictors as they are."""

from __future__ import annotations

import pytest

import walltime as wt
from tests.errors import raises

JOBS = wt.workloads.Lublin99().generate(150, 64, 1.2, 1)


class Narrow:
    def __init__(self, most=64):
        self.most, self.calls = most, []

    def choose(self, now, waiting, running, free):
        self.calls.append(now)
        fitting = [job for job in waiting if job.procs <= free]
        return [job for job in fitting if job.procs <= self.most][:1] or fitting[:1]


class Based(wt.policy.PlainPolicy):
    def __init__(self, most=64):
        self.most = most

    choose = Narrow.choose
    calls: list[int] = []  # noqa: RUF012


class Constant:
    def __init__(self, seconds=60):
        self.seconds, self.seen = seconds, []

    def predict(self, job):
        return self.seconds * (1 + len(self.seen))

    def observe(self, job):
        self.seen.append(job.job_id)


@pytest.mark.parametrize("given", [Narrow, Narrow(8)])
def test_policy__is_taken_as_it_is(given):
    first = wt.simulate(JOBS, given)
    assert first.start.tolist() == wt.simulate(JOBS, given).start.tolist()
    assert first.label == ("Narrow" if given is Narrow else "Narrow:most=8")
    assert given is Narrow or given.calls == []


def test_subclass_with_a_constructor__is_labelled_by_its_arguments():
    labels = [wt.simulate(JOBS, Based(most)).label for most in (8, 9)]
    assert labels == ["Based:most=8", "Based:most=9"]


@pytest.mark.parametrize("given", [Constant, Constant(10)])
def test_predictor__is_taken_as_it_is(given):
    first = wt.simulate(JOBS, "easy", prediction=given)
    assert first.start.tolist() == wt.simulate(JOBS, "easy", prediction=given).start.tolist()
    assert first.label == ("easy:predictor=Constant" if given is Constant else "easy:predictor=Constant:seconds=10")


def test_objects_with_other_options__differ():
    one, other = (wt.simulate(JOBS, "easy", prediction=Constant(seconds)) for seconds in (10, 11))
    assert one.label != other.label
    assert one.predictions.prediction != other.predictions.prediction


def test_other_objects__are_refused():
    with raises(wt.PolicyError, "wrong_type"):
        wt.simulate(JOBS, 3)
