"""Dialects: named sets of readings of the rules."""

import pickle

import pytest

import walltime as wt
from tests.cli import call
from walltime.errors import PolicyError
from walltime.policy import DIALECTS, PAPERS, Dialect


def jobs(submit, runtime, requested, procs, machine=4):
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=machine)


def test_every_dialect_has_its_name_and_source_and_can_be_spelled():
    for name, dialect in DIALECTS.items():
        assert dialect.name == name == dialect.label
        assert dialect.source
        assert dialect is Dialect.of(name.upper())
        assert pickle.loads(pickle.dumps(dialect)) == dialect
    assert all(dialect.checked for dialect in DIALECTS.values() if dialect is not PAPERS)


def test_single_readings_change_a_dialect():
    changed = Dialect.of("papers:shadow=kept,coincident=sequential")
    assert changed.label == "papers:coincident=sequential,shadow=kept"
    assert Dialect.of(changed.label) == changed
    assert Dialect.of("predictsim:expiry=pass,arrivals=all") is DIALECTS["pyss"]
    assert Dialect.of("predictsim", coincident="batch").readings() == {"coincident": "batch", "expiry": "silent", "arrivals": "fitting"}
    assert Dialect.of("pyss:coincident=batch") is PAPERS


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("french", "unknown dialect 'french'; known are papers, pyss"),
        ("papers:tense=past", "is no reading of the dialect 'papers:tense=past'; its readings are coincident, expiry"),
        ("papers:shadow", "'shadow' is no reading"),
        ("papers:shadow=long", "unknown reading of shadow 'long'; known are afresh, kept"),
        ("papers:coincident=never", "unknown way to handle simultaneous events 'never'"),
    ],
)
def test_what_is_no_dialect(text, told):
    with pytest.raises(PolicyError, match=told.replace("(", r"\(")):
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
    w = jobs([0, 0, 0, 0], [10, 5, 100, 100], [10, 5, 100, 100], [5, 7, 2, 2], machine=10)
    batch = wt.schedule.simulate_many(w, [wt.schedule.Case(wt.Easy())], dialect="papers:shadow=kept")
    schedule = wt.simulate(w, "easy", dialect="papers:shadow=kept")
    assert batch.summaries[0].as_dict() == schedule.summary().as_dict()  # there None stands for the load, which is not a number
    replicated = wt.schedule.replicate(lambda seed: w, "easy", [0], dialect="papers:shadow=kept")
    assert replicated.summaries[0].as_dict() == schedule.summary().as_dict()


def test_the_command_line_takes_a_dialect(capsys, tmp_path):
    log = tmp_path / "log.swf"
    wt.write_swf(log, jobs([0, 0, 0, 0], [10, 5, 100, 100], [10, 5, 100, 100], [5, 7, 2, 2], machine=10))
    status, out, _ = call(capsys, "simulate", log, "--procs", 10, "--dialect", "papers:shadow=kept", "--json")
    assert status == 0
    assert '"dialect": "papers:shadow=kept"' in out
    assert '"mean_wait": 25.0' in out
    status, _, err = call(capsys, "simulate", log, "--dialect", "french")
    assert status == 2
    assert "unknown dialect 'french'" in err
    assert len(err.strip().splitlines()) == 1
