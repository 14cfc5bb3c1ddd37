"""Start times from a snapshot: what is known by hand, what is drawn, what is reported, and how often the intervals hold."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from validation.interval_factors import learn_factors
from validation.start_times import calibrate_outcomes, replay_outcomes, to_history
from walltime.errors import PolicyError
from walltime.machine import Limit, Machine, Partition, Pool, Reservation
from walltime.report.html import render
from walltime.slurm import (
    Draws,
    Outcome,
    Snapshot,
    SnapshotJob,
    explain_wait,
    score_outcomes,
    snapshot_at,
    start_times,
    try_jobs,
)
from walltime.slurm.starts.page import prometheus, start_times_page
from walltime.slurm.starts.replay import Record
from walltime.slurm.starts.sampling import DAY, LEVELS, WEEK, Arrivals, JobsToDraw, Runtimes

NOW = 1_795_000_000
ONE_POOL = Machine((Pool("all", 4, 1),), (Partition("all", ("all",)),), name="four", policy="easy")


def job(number, cpus=1, limit=3600, start=None, **more):
    own = {"user": "alice", "partition": "all", "submit": NOW - 1000 + number}
    return SnapshotJob(job=number, state="waiting" if start is None else "running", cpus=cpus, limit=limit, start=start, **(own | more))


def past(runtimes, requested=3600, user="alice", every=600):
    """A log of a user's jobs that ended before the snapshot."""
    count = len(runtimes)
    return wt.Workload.from_arrays(
        submit=np.arange(count) * every,
        runtime=runtimes,
        procs=np.ones(count),
        requested=np.full(count, requested),
        machine_procs=4,
        columns={"user": np.ones(count, np.int64)},
        origin=wt.workload.Origin(unix_start_time=NOW - 100_000 - every * count, names={"user": (user,)}),
    )


def taken(*jobs, machine=ONE_POOL):
    return Snapshot(NOW, machine, jobs)


def ahead(found):
    return {one.job.label: (one.early - NOW, one.median - NOW, one.late - NOW, one.by_limits - NOW) for one in found.jobs}


# ----------------------------------------------------------------------------------------------------------------- by hand


def test_starts__of_jobs_that_all_ran_as_long():
    found = start_times(taken(job(1, 4, start=NOW - 100), job(2, 3), job(3, 2)), past([1800] * 20), draws=Draws(5, arrivals=False))
    assert {name: (median, limits) for name, (_, median, _, limits) in ahead(found).items()} == {"2": (1700, 3500), "3": (3500, 7100)}
    assert found.of("2").alike == ("user", "requested", "procs") or found.of("2").alike == ("user", "requested")


def test_starts__without_a_history_are_those_by_limits():
    found = start_times(taken(job(1, 4, start=NOW - 100), job(2, 3)), past([]), draws=Draws(3))
    assert ahead(found) == {"2": (3500, 3500, 3500, 3500)}
    assert found.of("2").alike is None
    assert any("run to the limit" in line for line in found.caveats)


def test_starts__a_running_job_is_drawn_from_those_that_ran_longer():
    history = past([100] * 50 + [2000] * 10)
    found = start_times(taken(job(1, 4, start=NOW - 500), job(2, 4)), history, draws=Draws(20, arrivals=False))
    early, median, late, by_limits = ahead(found)["2"]
    assert 0 < early <= median == 1500 <= late <= by_limits == 3100
    later = start_times(taken(job(1, 4, start=NOW - 2500), job(2, 4)), history, draws=Draws(20, arrivals=False))
    assert ahead(later)["2"] == (1100, 1100, 1100, 1100)  # nobody ran so long: to its limit


def test_starts__a_job_beyond_its_limit_ends_at_once():
    found = start_times(taken(job(1, 4, start=NOW - 4000), job(2, 4)), past([]), draws=Draws(2))
    assert ahead(found)["2"][1] == 1


def test_starts__in_the_order_of_slurms_priorities_and_not_before_jobs_are_eligible():
    jobs = (job(1, 4, start=NOW - 100), job(2, 4, priority=1), job(3, 4, priority=9), job(4, 1, priority=5, eligible=NOW + 50_000))
    found = ahead(start_times(taken(*jobs), past([]), draws=Draws(2, arrivals=False)))
    assert [found[label][1] for label in ("3", "2", "4")] == [3500, 7100, 50_000]


def test_starts__limits_of_arrays_hold():
    jobs = [job(7, array=7, task=k, array_limit=2) for k in range(4)]
    found = ahead(start_times(taken(*jobs), past([]), draws=Draws(2, arrivals=False)))
    assert [found[f"7_{k}"][1] for k in range(4)] == [0, 0, 3600, 3600]


def test_starts__under_slurm_with_its_priorities():
    slurm = {"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000", "PriorityWeightFairshare": "100000"}
    machine = replace(ONE_POOL, policy="slurm", slurm=slurm)
    jobs = (job(1, 4, start=NOW - 100), job(2, 4, priority=500), job(3, 4, priority=90_000))
    found = ahead(start_times(taken(*jobs, machine=machine), past([1800] * 200), draws=Draws(4)))
    assert found["3"][1] < found["2"][1]
    assert 1700 <= found["3"][1] <= 1760  # within two backfill cycles of the first end


def test_starts__in_a_reservation_and_around_it():
    """The reservation has the second of two nodes after an hour; the first one is free after 3,000 s."""
    when = datetime.fromtimestamp(NOW, UTC).replace(tzinfo=None)
    course = Reservation("course", "a", when + timedelta(hours=1), when + timedelta(hours=3), "2", 0, ("alice",))
    machine = Machine((Pool("a", 2, 4),), (Partition("all", ("a",)),), name="two", policy="slurm", reservations=(course,))
    jobs = [job(1, 4, start=NOW - 600), job(2, 4, reservation="course"), job(3, 4, limit=7200)]
    jobs += [job(4, 4, limit=1800, reservation="course", user="bob")]  # who may not use it
    found = ahead(start_times(taken(*jobs, machine=machine), past([]), draws=Draws(2, arrivals=False)))
    assert [found[label][1] // 60 for label in ("2", "3", "4")] == [60, 50, 0]
    tried = try_jobs(
        taken(*jobs, machine=machine), past([]), ["procs=4,limit=1h,user=alice,reservation=course"], draws=Draws(2, arrivals=False)
    )
    assert (tried.trials[0].median - NOW) // 60 == 120, "after job 2"


MIXED = Machine(
    (
        Pool("old", 2, 4, 0, memory=16_000, features=("intel",)),
        Pool("a100", 1, 4, 2, memory=64_000, features=("amd", "fast"), gpu_type="a100", weight=5),
        Pool("v100", 1, 4, 2, memory=64_000, features=("intel", "fast"), gpu_type="v100", weight=5),
    ),
    (Partition("all", ("old", "a100", "v100")),),
    name="mixed",
    policy="slurm",
)


@pytest.mark.parametrize(
    ("alone", "several", "count"),
    [
        ({"cpus": 4, "constraints": "amd"}, {"cpus": 4, "constraints": "amd|intel"}, 1),
        ({"cpus": 4, "constraints": "fast"}, {"cpus": 4, "constraints": "intel"}, 2),
        ({"gpus": 2, "node_gpus": 2, "gpu_type": "v100"}, {"gpus": 1, "node_gpus": 1, "gpu_type": "v100"}, 1),
        ({"gpus": 2, "node_gpus": 2}, {"gpus": 1, "node_gpus": 1}, 2),
        ({"memory_mb": 60_000, "node_memory_mb": 60_000}, {"memory_mb": 30_000, "node_memory_mb": 30_000}, 2),
        ({"cpus": 2, "memory_mb": 60_000, "cpu_memory_mb": 30_000}, {"cpus": 2, "memory_mb": 30_000, "cpu_memory_mb": 15_000}, 2),
    ],
)
def test_starts__on_nodes_with_memory_gpus_and_features(alone, several, count):
    """A third of these jobs has to wait if `count` nodes have what they request, and each node has it for one of them."""
    for request, starts in ((alone, count), (several, count + 1)):
        jobs = [job(number, limit=3600, priority=10 - number, **{"cpus": 1, **request}) for number in range(1, count + 2)]
        found = ahead(start_times(taken(*jobs, machine=MIXED), past([]), draws=Draws(2, arrivals=False)))
        assert sum(median < 600 for _, median, _, _ in found.values()) == starts, request


@pytest.mark.parametrize(
    ("runs", "waits", "later"),
    [
        ({"gpus": 2, "gpu_type": "a100"}, {"gpus": 2, "node_gpus": 2, "gpu_type": "a100"}, True),
        ({"gpus": 2, "gpu_type": "a100"}, {"gpus": 2, "node_gpus": 2, "gpu_type": "v100"}, False),
        ({"cpus": 4, "constraints": "amd"}, {"cpus": 4, "constraints": "amd"}, True),
        ({"cpus": 4, "constraints": "amd"}, {"cpus": 4, "constraints": "fast"}, False),
        ({"memory_mb": 120_000, "nodes": 2, "cpus": 2}, {"memory_mb": 30_000, "node_memory_mb": 30_000}, True),
        ({"memory_mb": 60_000}, {"memory_mb": 30_000, "node_memory_mb": 30_000}, False),
    ],
)
def test_starts__running_jobs_hold_what_they_requested(runs, waits, later):
    jobs = [job(1, start=NOW - 100, **{"cpus": 1, **runs}), job(2, **{"cpus": 1, **waits})]
    found = start_times(taken(*jobs, machine=MIXED), past([]), draws=Draws(2, arrivals=False))
    assert (ahead(found)["2"][1] >= 3500) == later
    assert not any("any nodes" in line for line in found.caveats)


def test_starts__jobs_wait_for_licences():
    """Four jobs on an idle machine with three licences, of which a running job holds one until its limit in an hour."""
    machine = replace(MIXED, licences={"matlab": 3, "idl": 9})
    runs = job(1, start=NOW, limit=3600, licences="matlab")
    waits = [
        job(number, limit=7200, priority=10 - number, licences=text) for number, text in enumerate(("matlab:2", "matlab:2,idl", "idl"), 2)
    ]
    found = start_times(taken(runs, *waits, machine=machine), past([]), draws=Draws(2, arrivals=False))
    assert [ahead(found)[label][1] >= 3500 for label in ("2", "3", "4")] == [False, True, False]
    reasons = {one.job.label: one.pending for one in found.jobs}
    assert (reasons["3"].kind, "3 licences of matlab" in reasons["3"].text) == ("limit", True)
    tried = try_jobs(
        taken(runs, *waits, machine=machine), past([]), ["limit=1h,licences=matlab", "limit=1h"], draws=Draws(2, arrivals=False)
    )
    assert [one.median - NOW >= 3600 for one in tried.trials] == [True, False]
    for text, named in (("limit=1h,licences=matlab:4", "matlab"), ("limit=1h,licences=mathlab", "mathlab")):
        with raises(PolicyError, "too_many_licences", named, 3 if named == "matlab" else 0):
            try_jobs(taken(*waits, machine=machine), past([]), [text])
    unknown = start_times(taken(*waits, machine=MIXED), past([]), draws=Draws(2, arrivals=False))
    assert any("licences" in line for line in unknown.caveats), "the machine has none"


def test_tried__on_nodes_with_a_type_of_gpus_and_features():
    waits = job(1, gpus=2, node_gpus=2, gpu_type="v100")
    texts = ["nodes=1,gpus=2,gpu_type=v100,limit=1h", "nodes=1,gpus=2,gpu_type=a100,limit=1h", "procs=4,constraints=amd,limit=1h"]
    found = try_jobs(taken(waits, machine=MIXED), past([]), texts, draws=Draws(2, arrivals=False)).trials
    assert [one.median - NOW >= 3600 for one in found] == [True, False, False]
    for wrong in ("gpu_type=h100,limit=1h", "constraints=intel&amd,limit=1h"):
        with raises(PolicyError, "unknown_features", "all"):
            try_jobs(taken(waits, machine=MIXED), past([]), [wrong])


def test_starts__running_jobs_that_do_not_fit_with_their_memory_count_without_it():
    jobs = [job(number, start=NOW - 100, memory_mb=60_000) for number in (1, 2, 3)]
    found = start_times(taken(*jobs, job(4, 14, constraints="intel|amd"), machine=MIXED), past([]), draws=Draws(2, arrivals=False))
    assert ahead(found)["4"][1] >= 3500  # of 16 processors three are in use
    assert sum("any nodes" in line for line in found.caveats) == 1


def test_starts__a_replayed_moment_has_the_requests_of_the_log():
    columns = {"gpus": [2, 2], "mem_mb": [8_000, 8_000], "mem_mb_per_node": [8_000, 8_000], "wait": [10, 100]}
    named = {"requested_gpu_type": [1, 1], "constraints": [-1, 1], "licences": [1, -1], "nodes": [1, 1]}
    log = wt.Workload.from_arrays(
        submit=[0, 50],
        runtime=[500, 500],
        procs=[1, 1],
        machine_procs=16,
        columns={name: np.array(values) for name, values in (columns | named).items()},
        origin=wt.workload.Origin(
            unix_start_time=NOW, names={"requested_gpu_type": ("a100",), "constraints": ("fast",), "licences": ("idl",)}
        ),
    )
    running, waiting = snapshot_at(Record.of(log, MIXED), 60).jobs
    assert (running.gpus, running.node_gpus, running.gpu_type, running.constraints, running.licences) == (2, 2, "a100", "", "idl")
    assert (waiting.memory_mb, waiting.node_memory_mb, waiting.cpu_memory_mb, waiting.constraints) == (8_000, 8_000, 0, "fast")


def test_starts__more_runs_than_there_is_room_for():
    found = start_times(taken(job(1, 4, start=NOW - 100), job(2, 4, start=NOW - 50), job(3, 4)), past([]), draws=Draws(2))
    assert ahead(found)["3"][1] == 3500
    assert any("no room" in line for line in found.caveats)


def test_starts__a_limit_that_never_lets_it():
    machine = replace(ONE_POOL, limits=(Limit(("user",), jobs=0),))
    found = start_times(taken(job(2), machine=machine), past([]), draws=Draws(2))
    assert (found.jobs[0].early, found.jobs[0].median, found.jobs[0].by_limits) == (None, None, None)
    assert json.loads(json.dumps(found.as_dict()))["jobs"][0]["median"] is None


def test_starts__equal_whatever_the_threads():
    machine = snapshot_at(truth(), 400_000)
    first, second = (start_times(machine, to_history(truth()), draws=Draws(8), workers=workers) for workers in (1, 3))
    assert np.array_equal(first.starts, second.starts)
    assert first.as_dict() == second.as_dict()
    other = start_times(machine, to_history(truth()), draws=Draws(8, seed=1))
    assert not np.array_equal(first.starts, other.starts)


@pytest.mark.parametrize(
    ("call_it", "says"),
    [
        (lambda: start_times(taken(job(1, start=NOW)), past([])), ("no_waiting_jobs",)),
        (lambda: start_times(taken(job(1), machine=replace(ONE_POOL, policy=None)), past([])), ("missing_policy",)),
        (lambda: start_times(taken(job(1)), past([]), draws=Draws(0)), ("number_out_of_range", "samples", "1")),
        (lambda: start_times(taken(job(1)), past([]), policy="easy++"), ("unsupported_predictor",)),
        (lambda: start_times(taken(job(1, 99)), past([])), ("no_waiting_jobs", "1")),
        (lambda: explain_wait(taken(job(1), job(2, start=NOW)), past([]), "2"), ("job_not_waiting", "2")),
        (lambda: explain_wait(taken(job(1), job(3, left_out="held")), past([]), "3"), ("job_not_waiting", "3", "held")),
        (lambda: explain_wait(taken(job(1)), past([]), "x\n"), ("job_not_waiting", "'x")),
    ],
)
def test_starts__what_is_wrong_is_one_line(call_it, says):
    with raises(wt.WalltimeError, *says):
        call_it()


def test_why__tells_what_holds_a_job_back(golden):
    told = explain_wait(taken(job(1, 4, start=NOW - 100), job(2, 3), job(7, 4, array=7, task=1)), past([1800] * 20), "7_1")
    assert told.job == "7_1"
    assert told.held_back.too_few + told.held_back.others == 3500
    golden("slurm-start-times", told.sentences[0])


# ------------------------------------------------------------------------------------------------------------- what is drawn


def test_runtimes__of_the_most_similar_jobs_that_are_enough():
    history = past([600] * 10 + [1200] * 10)
    history = replace(history, columns={**history.columns, "executable": np.repeat([1, 2], 10)})
    columns = {
        "user": np.ones(3, np.int64),
        "executable": np.array([1, 2, 3]),
        "requested": np.full(3, 3600),
        "procs": np.ones(3, np.int64),
    }
    drawn = Runtimes(history, history.submit, JobsToDraw(columns, np.full(3, 3600), np.zeros(3, np.int64)))
    assert [LEVELS[level] for level in drawn.level] == [LEVELS[0], LEVELS[0], LEVELS[1]]
    values = np.array([drawn.draw(np.random.default_rng(k)) for k in range(1000)])
    assert drawn.typical().tolist() == [600, 1200, 900]
    # of n + 1 gaps one is below all the runtimes, one above
    assert (values[:, 0] == 600).mean() == pytest.approx(9 / 11, abs=0.05)
    assert (values[:, 1] < 1200).mean() == pytest.approx(1 / 11, abs=0.04)
    assert (values[:, 1] > 1200).mean() == pytest.approx(1 / 11, abs=0.04)
    assert (values[:, 2] == 600).mean() == pytest.approx(9 / 21, abs=0.05)
    assert 0 <= values.min() < values.max() <= 3600


def test_runtimes__of_a_job_that_runs_lie_between_what_it_has_run_and_its_limit():
    jobs = JobsToDraw({name: np.ones(1, np.int64) for level in LEVELS for name in level}, np.array([3600]), np.array([500]))
    drawn = Runtimes(past([100] * 50 + [1000, 2000] * 5), np.arange(60), jobs)
    values = np.array([drawn.draw(np.random.default_rng(k))[0] for k in range(300)])
    assert 500 < values.min() < 1000
    assert 2000 < values.max() <= 3600


def test_arrivals__are_days_of_the_same_weekday_and_hour():
    now = 5 * WEEK + 12_345
    submit = np.arange(0, now, 3600)
    coming = Arrivals(submit, now, 3 * DAY)
    places, times = coming.draw(np.random.default_rng(1))
    assert (np.diff(times) >= 0).all()
    assert times.min() >= 0
    assert times.max() < 3 * DAY
    assert (submit[places] < now).all()
    assert ((now + times - submit[places]) % WEEK == 0).all()


def test_arrivals__of_a_short_history():
    assert Arrivals(np.array([0]), DAY - 1, DAY).draw(np.random.default_rng(1))[0].size == 0
    places, times = Arrivals(np.arange(0, 2 * DAY, 600), 2 * DAY, 5 * DAY).draw(np.random.default_rng(1))
    assert len(places) == 720
    assert times.max() < 5 * DAY


@pytest.mark.parametrize(("days", "says"), [(20, ""), (5, "6 days of history before the snapshot"), (0, "no new jobs are simulated")])
def test_starts__say_where_the_history_is_short(days, says):
    log = past([60] * (144 * days), every=600) if days else past([])
    found = start_times(taken(job(1, 4, start=NOW - 100), job(2, 3)), log, draws=Draws(2))
    told = [line for line in found.caveats if "history" in line]
    assert [says in line for line in told] == ([True] if says else [])


# --------------------------------------------------------------------------------------------------- scores and what they change


def outcome(k, early, median, late, real, made=None):
    return Outcome(str(k), k * DAY if made is None else made, early, median, late, 2.0 * median, np.nan, real)


@pytest.mark.slow
def test_factors__come_to_rest_where_5_percent_are_beyond_each_end():
    late = np.random.default_rng(1).uniform(-500, 500, 20_000)  # s, so that 450 are 4.5 times the distance of an end
    found = [outcome(k, 900, 1000, 1100, 1000 + late[k]) for k in range(len(late))]
    assert learn_factors(found)["under 1 h"] == pytest.approx((4.5, 4.5), rel=0.1)
    score = score_outcomes(found[:4000])[0]
    assert (score.jobs, score.width) == (4000, 200)
    assert score.inside == pytest.approx(0.2, abs=0.02)
    assert np.isnan(score.error_slurm)


def test_factors__move_by_each_start_in_the_order_in_which_it_is_known():
    inside, late = outcome(0, 900, 1000, 1100, 1050), outcome(1, 900, 1000, 1100, 1500)
    assert learn_factors([]) == {}
    assert learn_factors([inside])["under 1 h"] == pytest.approx((np.exp(-0.00025), np.exp(-0.00025)))
    assert learn_factors([inside, late])["under 1 h"] == pytest.approx((np.exp(-0.0005), np.exp(0.0045)))
    assert learn_factors([late, inside]) == learn_factors([inside, late])
    assert learn_factors([late] * 1000)["under 1 h"] == pytest.approx((np.exp(-0.25), 5), rel=0.01)
    assert learn_factors([replace(late, real=10**6)] * 1000)["under 1 h"][1] == pytest.approx(10)  # no more than that
    assert learn_factors([replace(late, median=np.inf, late=np.inf)])["over 6 h"][0] > 1


def test_calibrated__knows_only_what_had_happened():
    found = [outcome(k, 900.0, 1000.0, 1100.0, 1300.0, made=600 * k) for k in range(60)]
    later = calibrate_outcomes(found)
    assert [one.late for one in later[:3]] == [1100] * 3  # the first has started 1,300 s after it was predicted
    for k in (10, 59):
        assert later[k].late == pytest.approx(1000 + 100 * learn_factors(found[: k - 2])["under 1 h"][1])
    assert [one.late for one in calibrate_outcomes(found, 1300)] == [1100] * 60  # nothing older counts


_KEPT = {}


def truth():
    """A schedule of a generated log whose users are alike to themselves."""
    if "truth" not in _KEPT:
        random = np.random.default_rng(5)
        count = 3000
        user = random.integers(1, 12, count)
        requested = 3600 * 2 ** (user % 4)
        part = np.clip(random.beta(1.2, 1.2, count), 0.02, 1)
        jobs = wt.Workload.from_arrays(
            submit=np.sort(random.integers(0, 1_000_000, count)),
            runtime=(part * requested).astype(np.int64),
            procs=1 + user % 5,
            requested=requested,
            machine_procs=62,
            columns={"user": user},
            origin=wt.workload.Origin(name="made", unix_start_time=NOW),
        )
        _KEPT["truth"] = wt.simulate(jobs, "easy")
    return _KEPT["truth"]


@pytest.mark.nightly
def test_intervals__hold_what_they_promise_where_the_past_is_like_the_future():
    moments = list(range(300_000, 950_000, 25_000))
    found = replay_outcomes(truth(), moments, draws=Draws(60))
    score = score_outcomes(found)[0]
    assert score.jobs > 100
    assert score.inside >= 0.85
    assert score.error < score.error_limits


# ------------------------------------------------------------------------------------------------------- not submitted yet


def tried(found):
    return {one.text: (one.early - NOW, one.median - NOW, one.late - NOW, one.by_limits - NOW) for one in found.trials}


def test_tries__each_is_alone_beside_the_queue():
    snapshot = taken(job(1, 3, start=NOW - 100), job(2, 2))
    texts = ["procs=1,limit=58m", "procs=1,limit=1h", "procs=4,limit=00:10:00", "procs=1,limit=30m"]
    found = try_jobs(snapshot, past([1800] * 20), texts, draws=Draws(5, arrivals=False))
    # Job 1 runs for 1,700 s more, 3,500 by its limit, when job 2 starts, which runs for 1,800.
    assert tried(found) == {
        "procs=1,limit=58m": (0, 0, 0, 0),
        "procs=1,limit=1h": (0, 0, 0, 0),  # beside job 2
        "procs=4,limit=00:10:00": (3500, 3500, 3500, 7100),
        "procs=1,limit=30m": (0, 0, 0, 0),
    }
    whole = try_jobs(taken(job(1, 3, start=NOW - 100), job(2, 4)), past([1800] * 20), texts[:2], draws=Draws(5, arrivals=False))
    assert [one.median - NOW for one in whole.trials] == [0, 3500]  # the hour would delay job 2
    assert [one.by_limits - NOW for one in whole.trials] == [0, 7100]


@pytest.mark.slow
def test_tries__are_as_if_the_job_waited_last():
    snapshot, history = snapshot_at(truth(), 400_000), to_history(truth())
    [one] = try_jobs(snapshot, history, ["procs=3,limit=2h"], draws=Draws(8, seed=3)).trials
    waiting = replace(snapshot, jobs=(*snapshot.jobs, one.job))
    other = start_times(waiting, history, draws=Draws(8, seed=3)).of(one.job.label)
    assert one.by_limits == other.by_limits
    both = try_jobs(snapshot, history, ["procs=3,limit=2h", "procs=3,limit=2h"], draws=Draws(8), workers=2)
    assert both.trials[0].median == both.trials[1].median
    assert both.trials[0].late == both.trials[1].late


def test_tries__under_slurm_with_the_share_of_the_user():
    slurm = {"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000", "PriorityWeightFairshare": "100000"}
    machine = replace(ONE_POOL, policy="slurm", slurm=slurm)
    jobs = (job(1, 4, start=NOW - 100), job(2, 4, priority=500, user="bob"), job(3, 1, priority=90_000))
    found = try_jobs(
        taken(*jobs, machine=machine), past([1800] * 200), ["procs=4,limit=1h,user=alice", "procs=4,limit=1h,user=bob"], draws=Draws(4)
    )
    alice, bob = found.trials
    assert alice.by_limits < bob.by_limits


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("64", ("unknown_option", "'64'", "limit", "procs")),
        ("procs=2,procs=3,limit=1h", ("repeated_option", "procs")),
        ("proc=2,limit=1h", ("unknown_option", "'procs'")),
        ("procs=2", ("missing_option", "limit", "'procs=2'")),
        ("procs=2,limit=soon", ("wrong_value",)),
        ("procs=2,limit=0h", ("wrong_value", "0")),
        ("procs=0,limit=1h", ("wrong_value", "procs")),
        ("procs=2,limit=1h,memory=much", ("wrong_value", "memory")),
        ("procs=2,limit=1h,partition=no", ("unknown_partition", "all")),
    ],
)
def test_tries__what_is_wrong_is_one_line(text, says):
    with raises(PolicyError, *says):
        try_jobs(taken(job(2)), past([]), [text], draws=Draws(1))


# -------------------------------------------------------------------------------------------------------------- what is told


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    hostile = job(5, 4, name="<script>alert(1)</script>\x1b[31m", user='"><b>\n')
    taken(job(1, 4, start=NOW - 100, user="u"), hostile, job(6, 2, expected=NOW + 60), job(9, left_out="held")).write(folder / "s.json")
    lines = "".join(f"{k} {k * 600} 0 1800 1 -1 -1 1 3600 -1 1 1 1 -1 -1 -1 -1 -1\n" for k in range(1, 60))
    (folder / "log.swf").write_text(f"; MaxProcs: 4\n; UnixStartTime: {NOW - 200_000}\n{lines}")
    return folder


@pytest.mark.slow
def test_command__prints_writes_and_explains(capsys, files):
    status, out, err = call(
        capsys, "slurm", "start-times", files / "s.json", "--history", files / "log.swf", "--samples", 5, "--replayed", 0, "--job", "5",
        "--report", files / "p.html", "--metrics", files / "m.prom",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert "\x1b" not in out
    assert "28 min 20 s" in out
    assert "4 processors of the partition all" in out
    page = (files / "p.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    metrics = (files / "m.prom").read_text()
    assert 'walltime_start_in_seconds{job="5",partition="all",quantile="0.5"} 1700\n' in metrics
    assert 'walltime_jobs{state="held"} 1\n' in metrics
    assert 'walltime_start_in_seconds_slurm{job="6",partition="all"} 60\n' in metrics


def test_command__one_simulation_is_no_plural(capsys, files):
    base = ("slurm", "start-times", files / "s.json", "--history", files / "log.swf", "--samples", 1, "--replayed", 0)
    assert ", 1 simulation under " in call(capsys, *base)[1]
    assert ", 1 simulation under " in call(capsys, *base, "--try", "procs=1,limit=1h")[1]


def test_command__json_has_everything(capsys, files):
    base = ("slurm", "start-times", files / "s.json", "--history", files / "log.swf", "--samples", 3)
    arguments = (*base, "--replayed", 0, "--no-arrivals", "--json")
    found = json.loads(call(capsys, *arguments)[1])
    assert [one["job"] for one in found["jobs"]] == ["5", "6"]
    assert found["totals"] == {"running": 1, "waiting": 2, "held": 1}
    assert found["jobs"][1]["slurm"] == NOW + 60
    assert not found["arrivals"]
    one = json.loads(call(capsys, *arguments, "--job", "6")[1])
    assert [found["job"] for found in one["jobs"]] == ["6"]
    assert one["reasons"]["held_back"]


def test_command__tries_jobs_that_are_not_submitted(capsys, files):
    base = ("slurm", "start-times", files / "s.json", "--history", files / "log.swf", "--samples", 3, "--replayed", 0)
    status, out, err = call(capsys, *base, "--try", "procs=4,limit=10m", "--try", "procs=2,limit=1-0")
    assert (status, err) == (0, "")
    assert "procs=4,limit=10m" in out
    assert "at the latest" in out
    found = json.loads(call(capsys, *base, "--try", "procs=4,limit=10m", "--json")[1])
    assert [one["try"] for one in found["trials"]] == ["procs=4,limit=10m"]
    assert found["trials"][0]["median"] > found["time"]
    assert "leave --job out" in one_line(*call(capsys, *base, "--try", "procs=4,limit=10m", "--job", "5"))


def test_command__what_is_wrong_is_one_line(golden, capsys, files, tmp_path):
    base = ("slurm", "start-times", files / "s.json", "--history", files / "log.swf")
    text = (files / "s.json").read_text()
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(text.replace('"partition": "all"', '"partition": "gone"'))
    assert elsewhere.read_text() != text
    status, out, _ = call(capsys, "slurm", "start-times", elsewhere, *base[3:], "--json")
    assert (status, {one["pending"]["kind"] for one in json.loads(out)["apart"]}) == (0, {"other", "held"})
    assert "runs already" in one_line(*call(capsys, *base, "--job", "1"))
    assert "no job '77'" in one_line(*call(capsys, *base, "--job", "77"))
    golden("slurm-start-times", one_line(*call(capsys, *base, "--metrics", tmp_path / "m.txt")))
    assert "unknown policy" in one_line(*call(capsys, *base, "--policy", "nothing"))
    assert "not a snapshot" in one_line(*call(capsys, "slurm", "start-times", files / "log.swf", "--history", files / "log.swf"))
    assert "cannot be read" in one_line(*call(capsys, "slurm", "start-times", tmp_path / "x.json", "--history", files / "log.swf"))


@pytest.mark.slow
def test_metrics__of_a_job_that_never_starts():
    machine = replace(ONE_POOL, limits=(Limit(("user",), jobs=0),))
    found = start_times(taken(job(2), machine=machine), past([]), draws=Draws(2))
    assert 'quantile="0.5"} +Inf' in prometheus(found)
    assert "never" in render(start_times_page(found, past([1])))


def test_job__that_is_not_there():
    found = start_times(taken(job(2)), past([]), draws=Draws(1))
    with raises(PolicyError, "unknown_job", "'3'"):
        found.of("3")


# ----------------------------------------------------------------------------------------------------------------- never

GPU_NODES = Machine(
    (Pool("thin", 2, 4), Pool("fat", 2, 4, 2)),
    (Partition("all", ("thin", "fat"), max_time=3 * 86_400), Partition("short", ("thin",), max_time=3600)),
    name="six",
    policy="easy",
)


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"limit": 9 * 86_400}, "over_time_limit"),
        ({"limit": 7200, "partition": "short"}, "over_time_limit"),
        ({"limit": None, "reason": "PartitionTimeLimit"}, "over_time_limit"),
        ({"reason": "QOSMaxWallDurationPerJobLimit"}, "over_time_limit"),
        ({"gpus": 3, "node_gpus": 3}, "over_node_gpus"),
        ({"gpus": 5}, "over_partition"),
        ({"gpus": 1, "partition": "short", "limit": 60}, "over_partition"),
        ({"cpus": 17}, "over_partition"),
        ({"nodes": 5}, "over_partition"),
        ({"reason": "QOSMaxCpuPerJobLimit"}, "against_limits"),
        ({"reason": "BadConstraints"}, "against_limits"),
        ({"gpus": 4}, ""),
        ({"gpus": 4, "node_gpus": 2}, ""),
        ({"limit": 3 * 86_400}, ""),
        ({"limit": None}, ""),
        ({"reason": "AssocGrpCpuLimit"}, ""),
        ({"reason": "Priority"}, ""),
    ],
)
def test_never__jobs_that_cannot_start_as_they_are(more, rule):
    found = start_times(taken(job(1), job(2, **more), machine=GPU_NODES), past([]), draws=Draws(2, arrivals=False))
    assert [(one.label, one.left_out) for one in found.snapshot.never] == ([("2", rule)] if rule else [])
    assert [one.job.label for one in found.jobs] == (["1"] if rule else ["1", "2"])
    assert found.as_dict()["totals"].get(rule, 0) == (1 if rule else 0)


@pytest.mark.parametrize("second", ["gpus", "mem_mb"])
@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"memory_mb": 501, "node_memory_mb": 501}, "over_node_memory"),
        ({"memory_mb": 501, "cpu_memory_mb": 501}, "over_node_memory"),
        ({"memory_mb": 1001, "node_memory_mb": 334}, "over_partition"),
        ({"memory_mb": 500, "node_memory_mb": 500}, ""),
        ({"memory_mb": 1000, "node_memory_mb": 500, "nodes": 2}, ""),
    ],
)
def test_never__memory(second, more, rule):
    pool = Pool("all", 2, 4, 500) if second == "mem_mb" else Pool("all", 2, 4, 2, 500)
    machine = Machine((pool,), (Partition("all", ("all",)),), name="two", policy="easy", second=second)
    found = start_times(taken(job(1), job(2, **more), machine=machine), past([]), draws=Draws(2, arrivals=False))
    assert [(one.label, one.left_out) for one in found.snapshot.never] == ([("2", rule)] if rule else [])


def test_never__a_resource_that_the_machine_does_not_describe_is_not_limited():
    found = start_times(taken(job(1, gpus=9, node_gpus=9, memory_mb=10**6, node_memory_mb=10**6)), past([]), draws=Draws(2))
    assert (found.snapshot.never, ahead(found)["1"][1]) == ([], 0)


def test_never__trial_jobs():
    texts = ["procs=1,limit=9d,partition=all", "procs=1,limit=1h,partition=all", "procs=4,nodes=1,gpus=3,limit=1h,partition=all"]
    found = try_jobs(taken(job(1), machine=GPU_NODES), past([]), texts, draws=Draws(2))
    assert [one.median is None for one in found.trials] == [True, False, True]
    assert [bool(one.as_dict().get("never")) for one in found.trials] == [True, False, True]
    assert all(one.never for one in try_jobs(taken(machine=GPU_NODES), past([]), [*texts[:1], "procs=17,limit=1h,partition=all"]).trials)


def test_never__is_the_answer_of_the_command(tmp_path, capsys):
    log, snapshot = tmp_path / "log.swf", tmp_path / "now.json"
    log.write_text("; MaxProcs: 16\n; UnixStartTime: 1794000000\n1 0 5 60 1 -1 -1 1 600 -1 1 1 -1 -1 1 -1 -1 -1\n")
    taken(job(1), job(2, limit=9 * 86_400), machine=GPU_NODES).write(snapshot)
    usual = ("slurm", "start-times", snapshot, "--history", log, "--samples", 2, "--replayed", 0, "--json")
    status, out, _ = call(capsys, *usual)
    assert (status, [(one["job"], one["rule"]) for one in json.loads(out)["never"]]) == (0, [("2", "over_time_limit")])
    status, out, _ = call(capsys, *usual, "--job", "2")
    assert (status, json.loads(out)["never"][0]["job"], json.loads(out)["jobs"]) == (0, "2", [])
    taken(job(2, limit=9 * 86_400), machine=GPU_NODES).write(snapshot)
    status, out, _ = call(capsys, *usual[:-1])
    assert status == 0
    assert "exceeds the longest time" in " ".join(out.split())
