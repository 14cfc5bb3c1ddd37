"""A policy of the user's own in plain Python, on the reference engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.strategies import CLOCKS_FORWARD
from walltime.policy import Calendar, Moment

JOBS = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[9, 4, 3, 2], requested=[10, 5, 3, 2], procs=[2, 2, 1, 1], machine_procs=3)


@dataclass(frozen=True)
class WidestFirst(wt.PlainPolicy):
    """Start the widest job that fits, until none does."""

    def choose(self, now, waiting, running, free):
        for job in sorted(waiting, key=lambda job: (-job.procs, job.index)):
            if job.procs <= free:
                free -= job.procs
                yield job


def test_plain_policy__decides_who_starts():
    # 1 on arrival, beside it 3, at 2, until 5, and 4, at 5. 2 (two wide) waits for 1, until 9.
    schedule = wt.simulate(JOBS, WidestFirst())
    assert schedule.start.tolist() == [0, 9, 2, 5]
    assert schedule.kind.tolist() == [0, 1, 2, 2]
    assert schedule.reserved_start.tolist() == [-1] * 4
    assert schedule.end.tolist() == [9, 13, 5, 7]
    assert schedule.policy.name == "WidestFirst"


def test_plain_policy__runs_on_the_reference_engine_and_says_so():
    schedule = wt.simulate(JOBS, WidestFirst())
    assert schedule.start.tolist() == [0, 9, 2, 5]
    assert schedule.engine == "reference"
    with raises(wt.PolicyError, "unsupported_policy", "WidestFirst"):
        wt.simulate(JOBS, WidestFirst(), engine="kernel")


def test_plain_policy__that_backfills_without_reservations_equals_hybrid_zero():
    @dataclass(frozen=True)
    class FirstFit(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            for job in waiting:
                if job.procs <= free:
                    free -= job.procs
                    yield job

    own, built_in = wt.simulate(JOBS, FirstFit()), wt.simulate(JOBS, wt.Hybrid(depth=0))
    assert own.start.tolist() == built_in.start.tolist() == [0, 9, 2, 5]
    assert own.kind.tolist() == built_in.kind.tolist()


def test_plain_policy__is_told_the_time_and_the_jobs():
    seen = []

    @dataclass(frozen=True)
    class Watching(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            seen.append((now, [job.index for job in waiting], [(job.index, job.start, job.expected_end) for job in running], free))
            return [job for job in waiting[:1] if job.procs <= free]

    wt.simulate(JOBS, Watching())
    assert seen[:3] == [(0, [0], [], 3), (1, [1], [(0, 0, 10)], 1), (2, [1, 2], [(0, 0, 10)], 1)]
    assert (9, [1, 2, 3], [], 3) in seen


def test_plain_policy__choosing_a_job_that_does_not_fit():
    @dataclass(frozen=True)
    class Greedy(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return waiting

    with raises(wt.PolicyError, "choice_too_large", "Greedy", "2", "1"):
        wt.simulate(JOBS, Greedy())


def test_plain_policy__choosing_a_job_twice():
    @dataclass(frozen=True)
    class Twice(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return [*waiting[:1], *waiting[:1]]

    with raises(wt.PolicyError, "choice_not_waiting", "Twice", "1"):
        wt.simulate(JOBS, Twice())


def test_plain_policy__choosing_a_running_job():
    @dataclass(frozen=True)
    class Again(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return running or waiting

    with raises(wt.PolicyError, "choice_not_waiting", "Again", "1"):
        wt.simulate(JOBS, Again())


def test_plain_policy__that_never_starts_anybody(golden):
    @dataclass(frozen=True)
    class Idle(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return ()

    with pytest.raises(wt.errors.EngineError) as caught:
        wt.simulate(JOBS, Idle())
    golden("simulate", str(caught.value))
    one = wt.Workload.from_arrays(submit=[5], runtime=[1], procs=[1], machine_procs=1, job_id=[77])
    with raises(wt.errors.EngineError, "endless_wait", "1", "77", "5"):
        wt.simulate(one, Idle())


def test_plain_policy__without_choose_is_not_implemented():
    with raises(wt.PolicyError, "missing_method", "PlainPolicy"):
        wt.simulate(JOBS, wt.PlainPolicy())


# ------------------------------------------------------------------------------------------------------- what it is shown


def policy_of(choose) -> wt.PlainPolicy:
    """A policy that chooses so."""
    return dataclass(frozen=True)(type("Mine", (wt.PlainPolicy,), {"choose": lambda self, *arguments: choose(*arguments)}))()


def first_fit(now, waiting, running, free):
    """Whoever fits, in order of arrival."""
    for job in waiting:
        if job.procs <= free:
            free -= job.procs
            yield job


COLUMNS = {name: np.arange(4) + 10 * k for k, name in enumerate(("user", "group", "executable", "queue"))}
DATED = wt.Workload.from_arrays(
    submit=JOBS.submit,
    runtime=JOBS.runtime,
    requested=JOBS.requested,
    planned=JOBS.requested + 1,
    procs=JOBS.procs,
    machine_procs=3,
    job_id=[7, 8, 9, 11],
    columns=COLUMNS,
    origin=wt.workload.Origin(unix_start_time=CLOCKS_FORWARD - 2, time_zone="Europe/Stockholm"),
)


def test_jobs__tell_what_a_scheduler_knows():
    seen = {}

    def look(now, waiting, running, free):
        names = ("job_id", "submit", "wait", "planned", "requested", "procs", "user", "group", "executable", "queue", "partition")
        for job in (*waiting, *running):
            seen[int(now), job.index] = tuple(getattr(job, name) for name in names)
        return first_fit(now, waiting, running, free)

    wt.simulate(DATED, policy_of(look))
    assert seen[2, 1] == (8, 1, 1, 6, 5, 2, 1, 11, 21, 31, -1)
    assert seen[9, 1] == (8, 1, 8, 6, 5, 2, 1, 11, 21, 31, -1)
    assert seen[2, 0] == (7, 0, 0, 11, 10, 2, 0, 10, 20, 30, -1)  # it runs, and has not waited


def test_jobs__know_the_date_at_the_site():
    seen = []

    def look(now, waiting, running, free):
        seen.append((now.local.isoformat(), [job.submitted.hour for job in waiting], now.at(now.local) == now))
        return first_fit(now, waiting, running, free)

    wt.simulate(DATED, policy_of(look))
    assert seen[0] == ("2023-03-26T01:59:58+01:00", [1], True)
    assert seen[2] == ("2023-03-26T03:00:00+02:00", [1, 3], True)


def test_moment__is_a_number_and_finds_the_times_of_dates():
    now = Moment(100, Calendar(CLOCKS_FORWARD - 7200, ZoneInfo("Europe/Stockholm")))  # midnight, 100 s ago
    assert (now, now + 1, f"{now} s", int(now), type(now + 1)) == (100, 101, "100 s", 100, int)
    assert now.at(now.local.replace(hour=1, minute=0, second=0)) == 3600
    assert now.at(now.local.replace(hour=4, minute=0, second=0)) == 3 * 3600  # an hour is left out
    assert now.at(datetime(2023, 3, 26, 4)) == 3 * 3600  # a date without a zone is of the site's
    with raises(wt.WorkloadError, "date_out_of_range", "1970", "1000000000000000"):
        _ = Moment(10**15, Calendar(CLOCKS_FORWARD, ZoneInfo("UTC"))).local
    with raises(wt.WorkloadError, "unknown_start_time"):
        Moment(1).at(datetime(2023, 3, 26, 4))


def test_jobs__of_a_log_without_dates_and_columns():
    def look(now, waiting, running, free):
        assert now.local is None
        assert [job.submitted for job in waiting] == [None] * len(waiting)
        assert [(job.user, job.partition, job.requested - job.planned) for job in waiting] == [(-1, -1, 0)] * len(waiting)
        return first_fit(now, waiting, running, free)

    assert wt.simulate(JOBS, policy_of(look)).start.tolist() == [0, 9, 2, 5]


def test_jobs__do_not_tell_what_nobody_knows():
    def look(now, waiting, running, free):
        for job in waiting:
            for name in ("runtime", "end", "start", "expected_end"):
                with pytest.raises(AttributeError, match=name):
                    getattr(job, name)
        for job in running:
            assert job.expected_end == job.start + job.planned
            for name in ("runtime", "end"):
                with pytest.raises(AttributeError, match=name):
                    getattr(job, name)
        for job in (*waiting, *running):
            with pytest.raises(AttributeError, match=r"'memory'.*index.*user.*expected_end"):
                _ = job.memory
            with pytest.raises(AttributeError):
                job.priority = 1  # a view has no room for more
            # Wherever one looks: what is in the object does not hold a runtime.
            inside = {slot: getattr(job, slot) for kind in type(job).__mro__ for slot in getattr(kind, "__slots__", ())}
            assert set(inside) - {"expected_end", "start"} == {"_views", "planned", "index", "procs", "submit"}
            assert set(vars(job._views)) == {"log", "now", "_waiting", "_running"}
            assert set(job._views.log.columns) == {"requested", "job_id", "user", "group", "executable", "queue"}
        return first_fit(now, waiting, running, free)

    wt.simulate(DATED, policy_of(look))


def test_jobs__are_equal_if_they_are_the_same_job():
    shown = {}

    def look(now, waiting, running, free):
        for job in (*waiting, *running):
            assert shown.setdefault(job.index, job) == job
            assert {shown[job.index]} == {job}
        assert len({*waiting, *running}) == len(waiting) + len(running)
        return first_fit(now, waiting, running, free)

    wt.simulate(JOBS, policy_of(look))
    assert repr(shown[1]) == "<job number 2, 2 processors, waits>"


def test_jobs__of_a_predictor_are_planned_with_its_predictions():
    seen = {}

    def look(now, waiting, running, free):
        for job in waiting:
            seen[job.index] = (job.planned, job.requested)
        for job in running:
            assert job.expected_end == job.start + job.planned
        return first_fit(now, waiting, running, free)

    wt.simulate(JOBS, policy_of(look), prediction=wt.predictors.ExactRuntime())
    assert seen == {0: (9, 10), 1: (4, 5), 2: (3, 3), 3: (2, 2)}


# ---------------------------------------------------------------------------------------------------------------- wake-ups


def test_wake_up__comes_even_if_nothing_happens():
    asked = []

    def choose(now, waiting, running, free):
        asked.append(int(now))
        return wt.policy.Choice(wake_at=40) if now < 40 else first_fit(now, waiting, running, free)

    schedule = wt.simulate(JOBS, policy_of(choose))
    assert asked[:5] == [0, 1, 2, 3, 40]
    assert schedule.start.tolist() == [40, 49, 40, 43]
    assert not schedule.audit().violations


def test_wake_up__holds_though_something_else_happens_before():
    asked = []

    def choose(now, waiting, running, free):
        asked.append(int(now))
        if now == 0:
            return wt.policy.Choice(waiting, wake_at=5)
        return [] if now < 5 else first_fit(now, waiting, running, free)

    assert wt.simulate(JOBS, policy_of(choose)).start.tolist() == [0, 9, 5, 8]
    assert asked == [0, 1, 2, 3, 5, 8, 9, 10, 13]


@pytest.mark.parametrize("coincident", ["batch", "sequential", "one-by-one"])
def test_wake_up__at_the_time_of_an_event_is_no_event_of_its_own(coincident):
    asked = []

    def choose(now, waiting, running, free):
        asked.append(int(now))
        return wt.policy.Choice(first_fit(now, waiting, running, free), wake_at=9) if now < 9 else first_fit(now, waiting, running, free)

    plain = wt.simulate(JOBS, policy_of(first_fit), coincident=coincident)
    assert wt.simulate(JOBS, policy_of(choose), coincident=coincident).start.tolist() == plain.start.tolist()
    assert asked.count(9) == 1


@pytest.mark.slow
def test_wake_up__of_a_function_that_yields():
    def choose(now, waiting, running, free):
        if now < 20:
            return wt.policy.Choice(wake_at=20)
        yield from first_fit(now, waiting[:1], running, free)
        return wt.policy.Choice(waiting[1:2] if now == 25 else (), wake_at=now + 5) if waiting else None

    jobs = wt.Workload.from_arrays(submit=[0, 0, 0], runtime=[50, 50, 50], procs=[1, 1, 1], machine_procs=3)
    assert wt.simulate(jobs, policy_of(choose)).start.tolist() == [20, 25, 25]


@pytest.mark.parametrize("wake_at", [3, 2, -1, 4.5, 10.0, "10", True, 2**60, float("nan")])
def test_wake_up__that_cannot_be(wake_at):
    def choose(now, waiting, running, free):
        return wt.policy.Choice((), wake_at=wake_at if now == 3 else now + 1)

    with pytest.raises(wt.PolicyError) as caught:
        wt.simulate(JOBS, policy_of(choose))
    expected = f"wake_at of Mine must be None or a whole number of seconds later than now (3), not {wake_at!r}"
    assert str(caught.value) == expected


def test_wake_up__may_be_a_whole_number_of_numpy():
    assert wt.simulate(
        JOBS,
        policy_of(lambda now, waiting, running, free: wt.policy.Choice(waiting[:1] if now % 100 == 50 else (), wake_at=np.int64(now) + 1)),
    ).start.tolist() == [50, 150, 250, 350]


def test_wake_up__that_leads_to_nothing_for_ever(golden, monkeypatch):
    monkeypatch.setattr("walltime.engine.reference.engine.PATIENCE", 30)
    with pytest.raises(wt.errors.EngineError) as caught:
        wt.simulate(JOBS, policy_of(lambda now, waiting, running, free: wt.policy.Choice(wake_at=now + 1)))
    golden("simulate", str(caught.value))


def test_wake_up__is_forgotten_when_all_jobs_have_ended():
    asked = []

    def choose(now, waiting, running, free):
        asked.append(int(now))
        return wt.policy.Choice(first_fit(now, waiting, running, free), wake_at=1000)

    wt.simulate(JOBS, policy_of(choose))
    assert max(asked) == 13


@pytest.mark.parametrize("answer", [None, 3, wt.policy.Choice(None)])
def test_answer__that_is_none(answer):
    with raises(wt.PolicyError, "wrong_choice", "test_plain.py", "Mine"):
        wt.simulate(JOBS, policy_of(lambda now, waiting, running, free: answer))


def test_answer__of_what_is_no_job():
    with raises(wt.PolicyError, "wrong_choice", "test_plain.py", "Mine", "0"):
        wt.simulate(JOBS, policy_of(lambda now, waiting, running, free: [job.index for job in waiting]))
