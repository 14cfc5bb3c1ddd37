"""Dialects: named sets of readings of the rules."""

import pickle

import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.errors import PolicyError
from walltime.policy import DIALECTS, PAPERS, Dialect
from walltime.policy.dialect import VALIDATION


def jobs(submit, runtime, requested, procs, machine=4):
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=machine)


def test_every_dialect_has_its_name_and_source_and_can_be_spelled():
    for name, dialect in DIALECTS.items():
        assert dialect.label == str(dialect) == name
        assert DIALECTS.variants[name].meaning
        assert dialect == Dialect.of(name.upper())
        assert pickle.loads(pickle.dumps(dialect)) == dialect
    assert {*VALIDATION, "papers"} == set(DIALECTS)


def test_single_readings_change_a_dialect():
    changed = Dialect.of("papers:shadow=kept,coincident=sequential")
    assert changed.label == "papers:coincident=sequential,shadow=kept"
    assert Dialect.of(changed.label) == changed
    assert Dialect.of("predictsim:expiry=pass,arrivals=all") == DIALECTS["pyss"]
    assert Dialect.of("predictsim", coincident="batch").changed == {"expiry": "silent", "arrivals": "fitting"}
    assert Dialect.of("pyss:coincident=batch") == PAPERS
    assert Dialect.of("sc17:window=16").label == "papers:window=16"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("french", ("unknown_name", "'french'", "papers", "pyss")),
        ("pys", ("unknown_name", "'pys'", "'pyss'", "papers")),
        ("papers:tense=past", ("unknown_option", "'tense'", "'papers:tense=past'", "coincident", "expiry")),
        ("papers:shadow", ("missing_value", "'papers:shadow'", "shadow=VALUE")),
        ("papers:shadow=long", ("wrong_value", "'papers:shadow=long'", "'long'")),
        ("papers:window=-1", ("wrong_value", "'papers:window=-1'", "0", "'-1'")),
        ("papers:coincident=never", ("wrong_value", "batch", "sequential", "'never'")),
    ],
)
def test_what_is_no_dialect(text, told):
    with raises(PolicyError, *told):
        Dialect.of(text)


def test_readings_of_policies_apply_to_those_that_have_them():
    measured = Dialect.of("mualem01-measured")
    assert measured.apply(wt.Easy()) == wt.Easy(extra="literal", shadow="kept")
    assert measured.apply(wt.Conservative()) == wt.Conservative()
    w = jobs([0, 0, 0, 0], [10, 5, 100, 100], [10, 5, 100, 100], [5, 7, 2, 2], machine=10)
    schedule = wt.simulate(w, "easy", dialect="papers:shadow=kept")
    assert schedule.start.tolist() == wt.simulate(w, wt.Easy(shadow="kept")).start.tolist() == [0, 100, 0, 0]
    assert (schedule.engine, schedule.dialect.label) == ("reference", "papers:shadow=kept")
    assert schedule.audit().ok


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize(("dialect", "starts"), [("papers", [0, 20, 60, 30]), ("papers:expiry=silent", [0, 20, 60, 65])])
def test_expiry__with_and_without_a_pass(engine, dialect, starts):
    # Job 2 is predicted to run for 10 s, like its user's first one, and runs for 40. Job 3 needs the whole machine. Job 4 would delay it
    # as long as job 2 seems to end at 30; the correction at 30, to 70 s, makes room for job 4, which only a pass at 30 can use.
    w = wt.Workload.from_arrays(
        submit=[0, 20, 21, 22],
        runtime=[10, 40, 5, 25],
        requested=[100, 100, 50, 25],
        procs=[4, 2, 4, 2],
        machine_procs=4,
        columns={"user": [1, 1, 2, 3]},
    )
    schedule = wt.simulate(w, "easy:predictor=last", dialect=dialect, engine=engine)
    assert schedule.start.tolist() == starts


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize(
    ("dialect", "policy", "starts"),
    [
        ("papers:expiry=silent", "easy", [0, 20, 60, 35, 65]),
        ("papers:expiry=silent,arrivals=fitting", "easy", [0, 20, 60, 65, 90]),
        ("predictsim", "easy", [0, 20, 60, 65, 90]),
        ("predictsim", "easy:backfill-order=sjf", [0, 20, 60, 35, 65]),
        ("papers:arrivals=fitting", "easy", [0, 20, 60, 30, 65]),
    ],
)
def test_arrivals__that_bring_a_pass(engine, dialect, policy, starts):
    # As above; at 35 a job comes that needs the whole machine, and so brings a pass, or does not.
    w = wt.Workload.from_arrays(
        submit=[0, 20, 21, 22, 35],
        runtime=[10, 40, 5, 25, 10],
        requested=[100, 100, 50, 25, 10],
        procs=[4, 2, 4, 2, 4],
        machine_procs=4,
        columns={"user": [1, 1, 2, 3, 3]},
    )
    schedule = wt.simulate(w, f"{policy},predictor=last" if ":" in policy else f"{policy}:predictor=last", dialect=dialect, engine=engine)
    assert schedule.start.tolist() == starts


def test_batches_and_replications_take_a_dialect():
    w = jobs([0, 0, 0, 1], [10, 5, 100, 100], [10, 5, 100, 100], [5, 7, 2, 2], machine=10)
    batch = wt.simulation.simulate_many(w, [wt.simulation.Case(wt.Easy())], dialect="papers:shadow=kept")
    schedule = wt.simulate(w, "easy", dialect="papers:shadow=kept")
    assert batch.summaries[0].as_dict() == schedule.summary().as_dict()  # there None stands for the load, which is not a number
    replicated = wt.simulation.replicate(lambda seed: w, "easy", [0], dialect="papers:shadow=kept")
    assert replicated.summaries[0].as_dict() == schedule.summary().as_dict()


def test_the_command_line_takes_a_dialect(capsys, tmp_path):
    log = tmp_path / "log.swf"
    wt.logs.write_swf(log, jobs([0, 0, 0, 0], [10, 5, 100, 100], [10, 5, 100, 100], [5, 7, 2, 2], machine=10))
    status, out, _ = call(capsys, "simulate", log, "--procs", 10, "--dialect", "papers:shadow=kept", "--json")
    assert status == 0
    assert '"dialect": "papers:shadow=kept"' in out
    assert '"mean_wait": 25.0' in out
    status, _, err = call(capsys, "simulate", log, "--dialect", "french")
    assert status == 2
    assert "unknown dialect 'french'" in err
    assert len(err.strip().splitlines()) == 1


def starts(workload, scheduler, **options):
    return wt.simulate(workload, scheduler, **options).start.tolist()


def test_decisions__a_committed_job_starts_before_one_that_would_now_come_first():
    # At 1 job 2 is chosen, and needs the whole machine until 10; job 3 arrives at 2, is shorter, and would come first at 10.
    w = jobs([0, 1, 2], [10, 8, 5], [10, 8, 5], [3, 4, 4])
    assert starts(w, wt.NoBackfilling(order=wt.SJF)) == [0, 15, 10]
    assert starts(w, wt.NoBackfilling(order=wt.SJF, decisions="committed")) == [0, 10, 18]


def test_decisions__the_next_job_is_chosen_at_once():
    # Jobs 3 and 4 arrive while job 2 is committed; when it starts, the shorter one of the two is chosen and starts beside it.
    w = jobs([0, 1, 2, 2], [10, 8, 5, 4], [10, 8, 5, 4], [3, 3, 1, 1])
    assert starts(w, wt.NoBackfilling(order=wt.SJF, decisions="committed")) == [0, 10, 14, 10]


def test_window__only_the_first_jobs_to_arrive_are_ordered():
    # All wait until 10, each for the whole machine. In a window of two job 4, the shortest, gets in when one has left.
    w = jobs([0, 1, 2, 3], [10, 8, 5, 4], [10, 8, 5, 4], [4, 4, 4, 4])
    assert starts(w, wt.NoBackfilling(order=wt.SJF)) == [0, 19, 14, 10]
    assert starts(w, wt.NoBackfilling(order=wt.SJF, window=2)) == [0, 19, 10, 15]
    assert starts(w, wt.NoBackfilling(order=wt.SJF, window=1)) == starts(w, wt.NoBackfilling())


def test_window__nobody_beyond_it_is_backfilled():
    w = jobs([0, 1, 2, 3], [10, 8, 9, 4], [10, 8, 9, 4], [3, 4, 2, 1])
    assert starts(w, wt.Easy()) == [0, 10, 18, 3]
    assert starts(w, wt.Easy(window=2)) == [0, 10, 18, 18]


def test_ends__before_the_shadow_time_or_by_it():
    w = jobs([0, 1, 2], [10, 8, 8], [10, 8, 8], [3, 4, 1])
    assert starts(w, wt.Easy()) == [0, 10, 2]
    assert starts(w, wt.Easy(ends="before")) == [0, 10, 18]


def test_extra_nodes__none_means_that_all_end_by_the_shadow_time():
    w = jobs([0, 1, 2], [10, 8, 20], [10, 8, 20], [2, 3, 1])
    assert starts(w, wt.Easy()) == [0, 10, 2]
    assert starts(w, wt.Easy(extra="none")) == [0, 10, 10]


def test_shadow_time__once_is_not_found_anew_when_a_job_ends_early():
    # The head, job 3, is to start at 20; job 1 ends at 5 instead of 10, and job 2 at 10 instead of 20. Job 4, of 12 s, arrives at 6:
    # it fits before 20, which `kept` has found anew at 5 as well. At 5 nothing changes for the head, which needs both to end.
    w = jobs([0, 0, 1, 11], [10, 30, 5, 12], [20, 40, 5, 12], [2, 1, 4, 1])
    assert starts(w, wt.Easy(shadow="once", extra="none")) == [0, 0, 30, 11]


def test_arrivals_first__terminations_of_one_instant_come_one_by_one():
    # Jobs 1 and 2 end at 10. Under `sequential` both count as gone, so job 3 has room; else job 4 takes what the first one leaves.
    w = jobs([0, 0, 1, 2], [10, 10, 8, 5], [10, 10, 8, 5], [2, 2, 4, 2])
    assert starts(w, wt.Hybrid(depth=0), coincident="sequential") == [0, 0, 10, 18]
    assert starts(w, wt.Hybrid(depth=0), coincident="arrivals-first") == [0, 0, 15, 10]


def test_arrivals_first__and_terminations_first():
    # At 10 job 1 ends and job 3 arrives, which comes first. Before that termination there is room for neither.
    w = jobs([0, 1, 10], [10, 8, 5], [20, 8, 5], [3, 3, 2])
    assert starts(w, wt.NoBackfilling(order=wt.SJF), coincident="arrivals-first") == [0, 15, 10]
    assert starts(w, wt.NoBackfilling(order=wt.SJF), coincident="one-by-one") == [0, 10, 18]


@pytest.mark.parametrize("option", [{"window": -1}, {"window": 1.5}, {"decisions": "none"}, {"ends": "after"}])
def test_readings_that_there_are_not(option):
    with pytest.raises(PolicyError):
        wt.Easy(**option)
