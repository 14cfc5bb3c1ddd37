"""Start times that learn from what became of earlier ones: the forest by hand, the intervals forward in time, and live."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from validation.start_times import to_history
from walltime.errors import PolicyError
from walltime.logs.convert import write_workload
from walltime.slurm import Draws, learn_from_history, snapshot_at, start_times
from walltime.slurm.commands import starts
from walltime.slurm.starts import learned
from walltime.slurm.starts.forest import LEVELS, Forest, _quantiles
from walltime.slurm.starts.learned import Replay, _central, fallback_intervals, learn_intervals
from walltime.slurm.starts.page import answer
from walltime.slurm.starts.replay import Record
from walltime.whatif import finished


@pytest.fixture(scope="module")
def log():
    """A log whose waits a simulation recorded."""
    jobs = wt.workloads.Lublin99().generate(jobs=1200, machine_procs=64, load=0.9, seed=3)
    return to_history(wt.simulate(jobs, "easy"))


def planted(jump=1.0, moments=240, jobs=8):
    """Predictions every hour whose jobs start after ten minutes or five hours, as a feature says, times what a log-normal draw gives."""
    random = np.random.default_rng(5)
    made = np.repeat(np.arange(moments) * 3600, jobs)
    slow = random.integers(0, 2, len(made))
    real = np.where(slow, 18_000, 600) * np.exp(0.5 * random.standard_normal(len(made))) * np.where(made > made.max() / 2, jump, 1.0)
    features = np.stack([slow, random.random(len(made))], axis=1)
    return Replay(made, np.arange(len(made)), real, features, np.zeros((3, len(made))), np.zeros(len(made)), np.zeros(len(made)), "easy")


def test_forest__quantiles_by_the_product_limit_estimator():
    # Of four rows the one at 2 is only known to be later: half of what remains after it starts at 3, and the rest at 4.
    nodes = np.array([[0, 0, 0, 0, 4]])
    outcomes = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True]), np.arange(4), np.zeros(4))
    found = np.zeros((1, len(LEVELS)))
    _quantiles(np.zeros((1, 1), np.int64), (nodes, np.zeros(1, np.int64), np.arange(4)[None]), outcomes, LEVELS, found)
    assert found[0][[0, 49]].tolist() == [1, 1]  # up to a quarter
    assert found[0][[50, 124]].tolist() == [3, 3]  # up to 1 - 3/4 * 1/2
    assert found[0][[125, 198]].tolist() == [4, 4]


def test_forest__tells_rows_apart_by_their_features():
    features = np.stack([np.arange(400) % 2, np.arange(400) // 2 % 7], axis=1).astype(float)
    outcome = np.where(features[:, 0] == 1, 8.0, 5.0) + np.linspace(0, 0.1, 400)
    forest = Forest(features, outcome, np.ones(400, bool), np.ones(400), trees=20, leaf=5, tried=2)
    low, high = forest.quantiles(np.array([[0.0, 3.0], [1.0, 3.0]])).T
    assert 5 <= low[0] <= low[99] <= low[-1] <= 5.1
    assert 8 <= high[0] <= high[99] <= high[-1] <= 8.1


def test_central__has_one_in_twenty_before_and_after():
    even, skewed = 100 + 10 * LEVELS, -np.log(1 - LEVELS)
    found = _central(np.stack([even, skewed], axis=1))
    assert pytest.approx(np.array([[100.5, 105, 109.5], -np.log([0.95, 0.5, 0.05])]), rel=1e-6) == found.T


@pytest.mark.slow
def test_learned__no_interval_begins_before_the_earliest_start():
    """Half a day before a maintenance, jobs whose limits end after it cannot start before its end, whatever earlier jobs did."""
    past = planted(moments=100)
    closed = past.made == past.made.max()
    simulated = np.where(closed, [[40_000], [50_000], [90_000]], past.simulated)
    before = learn_intervals(past)
    found = learn_intervals(replace(past, earliest=np.where(closed, 45_000, 0), simulated=simulated))
    assert before[1, closed].max() < 40_000
    assert (found[:, closed] == [[45_000], [50_000], [90_000]]).all()
    assert np.array_equal(found[:, ~closed], before[:, ~closed], equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("jump", [1.0, 6.0])
def test_learned__holds_what_it_says_also_after_a_change(jump):
    past = planted(jump)
    early, median, late = learn_intervals(past)
    judged = past.made > past.made.max() * (0.25 if jump == 1 else 0.8)  # three days after the change, where intervals are too wide yet
    for slow in (0, 1):
        mine = judged & (past.features[:, 0] == slow)
        inside = ((early <= past.real) & (past.real <= late))[mine].mean()
        assert inside >= 0.85
        assert jump > 1 or inside <= 0.95
    if jump == 1:
        assert np.median(np.abs(np.log(median / past.real))[judged]) < 0.5


@pytest.mark.slow
def test_learned__the_likely_time_is_the_simulations_where_that_is_lately_nearer():
    past = planted()
    early, median, late = learn_intervals(past)
    slow = past.features[:, 0] == 1  # of these the simulation mostly knows the start, of the others nothing
    right = slow & (np.random.default_rng(6).random(len(past.made)) < 0.8)
    past.simulated[1] = np.where(right, past.real, np.where(slow, 21_000, 5_000_000))
    with_simulation = learn_intervals(past)
    judged = past.made > past.made.max() / 2
    assert np.isclose(with_simulation[1], past.simulated[1])[judged & right].mean() > 0.5
    assert with_simulation[1][judged & slow & ~right].max() < 86_400
    assert np.array_equal(with_simulation[:, ~slow], np.stack([early, median, late])[:, ~slow], equal_nan=True)
    off = [np.median(np.abs(likely - past.real)[judged & slow]) for likely in (median, with_simulation[1])]
    assert off[1] < 0.7 * off[0]
    assert ((with_simulation[0] <= past.real) & (past.real <= with_simulation[2]))[judged].mean() >= 0.85


def test_learned__says_nothing_where_little_is_known():
    assert np.isnan(learn_intervals(planted(moments=9))).all()


def at_moment(log, moment):
    return start_times(snapshot_at(Record.of(log), moment), log, draws=Draws(10))


def test_fallback__reaches_as_far_ahead_as_the_job_has_waited():
    """Job 1 starts later in the simulations, job 2 by the limits, and job 3 could have started long ago; no job starts before 20."""
    simulated, by_limits = np.array([[0, 10, 0], [5, 20, 0], [9, 30, 0]]), np.array([8, 40, 0])
    found = fallback_intervals(simulated, by_limits, np.array([0, 20, 0]), np.array([1, 2, 700]))
    assert found.tolist() == [[0, 20, 0], [5, 20, 0], [9, 40, 700]]


@pytest.mark.slow
def test_history__teaches_nothing_of_the_future(golden, log):
    record = Record.of(log)
    queue = [int(((record.submit <= t) & (record.start > t)).sum()) for t in record.submit]
    moment = int(record.submit[600 + int(np.argmax(queue[600:900]))])
    later = record.start > moment
    changed = replace(
        log,
        runtime=np.where(record.end > moment, log.runtime + 999, log.runtime),
        columns={**log.columns, "wait": log.columns["wait"] + np.where(later, 5000, 0)},
    )
    one, other = (learn_from_history(at_moment(each, moment), each, moments=40) for each in (log, changed))
    assert one.learned_from > 100
    assert [job.as_dict() for job in one.jobs] == [job.as_dict() for job in other.jobs]
    assert all(moment <= job.early <= job.median <= job.late for job in one.jobs)
    assert [job.median for job in one.jobs] == sorted(job.median for job in one.jobs)
    far = [job.late - moment > max(3 * (job.median - moment), job.median - moment + 3600) for job in one.jobs]
    assert any(far)
    golden("slurm-start-times", " ".join(one.caveats))
    assert not np.array_equal(one.simulated, [[job.early, job.median, job.late] for job in one.jobs])


def test_history__little_known_gives_wide_intervals_and_a_sentence(log):
    record = Record.of(log)
    first = int(record.submit[np.flatnonzero(record.start > record.submit)[0]])
    plain = at_moment(log, first)
    found = learn_from_history(plain, log, moments=5)
    assert "outcomes of only" in " ".join(found.caveats)
    assert all(job.early == first for job in found.jobs)
    assert all(job.late >= job.median for job in found.jobs)
    without = replace(log, columns={name: values for name, values in log.columns.items() if name != "wait"})
    assert "does not record waits" in " ".join(learn_from_history(plain, without).caveats)
    with raises(PolicyError, "number_out_of_range", "1"):
        learn_from_history(plain, log, moments=0)


def test_answer__names_the_interval_of_the_last(log):
    record = Record.of(log)
    moment = int(record.submit[np.flatnonzero(record.start > record.submit)[0]])
    said = answer(at_moment(log, moment))
    assert "90 % interval: " in said
    assert "Slurm says" not in said


@pytest.mark.slow
def test_command__learns_from_the_history_after_a_first_answer(capsys, tmp_path, log, monkeypatch):
    monkeypatch.setattr(starts, "PATIENCE", -1.0)
    write_workload(tmp_path / "log.swf", log)
    record = Record.of(log)
    moment = int(record.submit[900 + np.flatnonzero((record.start > record.submit)[900:])[0]])
    snapshot_at(record, moment).write(tmp_path / "s.json")
    base = ("slurm", "start-times", tmp_path / "s.json", "--history", tmp_path / "log.swf", "--samples", 5)
    _, out, first = call(capsys, *base, "--replayed", 30, "--json")
    assert json.loads(out)["learned_from"] > 100
    assert "first answer" in first
    _, out, first = call(capsys, *base, "--replayed", 0, "--json")
    assert json.loads(out)["learned_from"] is None
    assert "first answer" not in first


def test_replay__takes_finished_moments_from_an_earlier_call(log, monkeypatch, tmp_path):
    """After an interruption as well; other moments, and another record, are predicted anew."""
    monkeypatch.setattr(finished, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(finished, "LEAST_SECONDS", 0.0)
    record, made = Record.of(log), []
    samples = dict.fromkeys(learned.draw_moments(record, 0, int(record.submit[-1]), 4, 0), 2)

    def counted(*arguments, **options):
        made.append(1)
        if len(made) == 3:
            raise KeyboardInterrupt
        return start_times(*arguments, **options)

    monkeypatch.setattr(learned, "start_times", counted)
    with pytest.raises(KeyboardInterrupt):
        learned.replay(record, samples, workers=1)
    first = learned.replay(record, samples, workers=1)
    assert len(made) == 3 + 2
    again = learned.replay(record, samples, workers=1)
    assert len(made) == 3 + 2
    monkeypatch.setattr(learned, "start_times", start_times)
    monkeypatch.setattr(finished, "cache_root", lambda: tmp_path / "empty")
    anew = learned.replay(record, samples, workers=1)
    for one in fields(Replay):
        kept, same, new = (np.asarray(getattr(part, one.name)) for part in (first, again, anew))
        assert np.array_equal(kept, same)
        assert np.array_equal(kept, new)
        assert kept.dtype == new.dtype
