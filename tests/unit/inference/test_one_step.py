"""One-step agreement: what would a policy start in the recorded state, and which rules of a site a log shows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples, workloads
from walltime.errors import PolicyError, WorkloadError
from walltime.inference import infer
from walltime.inference.candidate_rules import RecordedLog, not_eligible_before, periods, stopped_stretches
from walltime.inference.inference import site_text
from walltime.inference.one_step import TICK, OneStep, SiteRules, one_step, prompt_within
from walltime.inference.step_agreement import one_step_on
from walltime.machine import Limit, Machine, Outage, Overhead, Partition, Pool, Window
from walltime.machine.machine import parse_machine
from walltime.machine.windows import Hours
from walltime.policy import parse_policy
from walltime.workload.models import MODELS
from walltime.workload.resampling import with_users

HOUR, DAY = 3600, 86_400
MONDAY = 4 * DAY
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri")


def made(submit, runtime, procs, machine_procs=4, **columns):
    return wt.Workload.from_arrays(
        submit=submit, runtime=runtime, procs=procs, machine_procs=machine_procs, columns={k: np.array(v) for k, v in columns.items()}
    )


def asked(workload, start, policy="easy", **rest):
    return one_step(workload, np.array(start), parse_policy(policy), **rest)


# ------------------------------------------------------------------ by hand


def test_score__a_start_that_the_policy_would_not_make_and_a_wish_that_nobody_followed():
    # Job 1 has the machine until 10. Job 2 (4 procs) is the head; job 3 (1 proc, 20 s) would delay it, yet the record starts it at 5.
    # From 10 on EASY proposes job 2, but at 10 job 3 runs until 25.
    workload = made([0, 1, 2], [10, 10, 20], [3, 4, 1])
    found = asked(workload, [0, 25, 5])
    assert found.matched.tolist() == [True, True, False]
    assert found.proposals.tolist() == [1, 1, 0]
    score = found.score()
    assert (score.jobs, score.matched, score.proposals) == (3, 2, 2)
    assert score.at == pytest.approx(2 / 3)
    assert score.followed == score.followed_promptly == 1
    assert score.f1 == score.prompt_f1 == pytest.approx(4 / 5)


def test_score__a_wish_counts_once_however_long_it_lasts_and_its_length_is_the_delay():
    found = asked(made([0, 5, 9], [3, 3, 3], [1, 1, 1]), [7, 5, 9])
    assert found.proposals.tolist() == [1, 1, 1]
    assert found.delay.tolist() == [7, 0, 0]


def test_score__a_job_that_starts_late_follows_the_wish_but_not_promptly():
    found = asked(made([0, 1000, 2000], [3, 3, 3], [1, 1, 1]), [0, 1060, 2900])
    score = found.score()
    assert (score.within, score.matched, score.prompt) == (TICK, 3, 2)
    assert (score.at, score.followed, score.f1) == (1, 1, 1)
    assert score.prompt_at == score.followed_promptly == score.prompt_f1 == pytest.approx(2 / 3)
    assert found.score(within=59).prompt == 1
    assert found.score(within=900).prompt == 3


def test_prompt_within__is_twice_the_usual_start_up_delay_of_minutes_else_a_tick():
    submit = np.arange(0, 50_000, 1000)
    for delay, within in ((0, TICK), (20, TICK), (53, 106), (150, 300), (151, TICK), (900, TICK)):
        workload = made(submit, np.ones(50, int), np.ones(50, int))
        assert prompt_within(asked(workload, submit + delay), np.full(50, delay)) == within


def test_prompt_within__does_not_count_jobs_that_waited_for_processors():
    # Every second job waits for the end of the one before it; the others start 40 s after their submission.
    submit = np.arange(0, 50_000, 1000)
    wait = np.where(np.arange(50) % 2, 540, 40)
    workload = made(submit, np.where(np.arange(50) % 2, 1, 1500), np.full(50, 4))
    assert prompt_within(asked(workload, submit + wait), wait) == 80


def test_score__a_start_sooner_than_the_overheads_allow_is_not_prompt():
    workload, start = made([0, 1000, 2000], [3, 3, 3], [1, 1, 1]), [10, 1379, 2380]
    found = asked(workload, start, rules=SiteRules(overhead=Overhead(start=379)))
    assert found.matched.all()
    assert found.delay.tolist() == [-369, 0, 1]
    assert found.score().prompt == 2


def test_score__a_wish_given_up_is_not_followed():
    # The second is wished for at 0; the third takes its place from 1 to 10, as is seen when the fourth comes.
    found = asked(made([0, 0, 1, 5], [100, 5, 9, 5], [2, 2, 2, 1]), [0, 10, 1, 20])
    assert found.matched.tolist() == [True, True, False, True]
    assert found.proposals.tolist() == [1, 2, 0, 1]
    assert found.score().followed == pytest.approx(3 / 4)


def test_rules__a_window_a_limit_and_an_eligible_time_are_not_proposed():
    workload = made([0, 0], [5, 5], [1, 1], user=[1, 1])
    everybody = np.ones(2, bool)
    hours = Hours(np.array([0]), np.array([8]), False)
    assert asked(workload, [8, 8], rules=SiteRules([(hours, everybody)])).score().f1 == 1
    assert asked(workload, [0, 5], rules=SiteRules(group=np.array([1, 1]), at_once=np.array([0, 1]))).score().f1 == 1
    assert asked(workload, [0, 3], rules=SiteRules(eligible=np.array([0, 3]))).score().f1 == 1
    for start in ([8, 8], [0, 5], [0, 3]):
        assert asked(workload, start).delay.max() > 0


def test_rules__say_what_stood_in_the_way(golden):
    workload = made([0, 0], [5, 5], [1, 1], user=[1, 1])
    everybody, hours = np.ones(2, bool), Hours(np.array([0]), np.array([8]), False)
    assert asked(workload, [0, 8], rules=SiteRules([(hours, everybody)])).blockers() == {"the clock": 1}
    assert asked(workload, [0, 8], rules=SiteRules(outages=hours)).blockers() == {"an outage": 1}
    assert asked(workload, [0, 0], rules=SiteRules(eligible=np.array([0, 3]))).blockers() == {"not eligible": 1}
    limited = SiteRules(group=np.array([0, 0]), at_once=np.array([1]))
    assert asked(workload, [0, 2], rules=limited).blockers() == {"a limit": 1}
    # The second job's head is the third one: too few processors are free, or all are reserved for it.
    assert asked(made([0, 1], [10, 10], [3, 3]), [0, 1]).blockers() == {"too few processors": 1}
    golden("infer", asked(made([0, 1, 2], [10, 10, 20], [3, 4, 1]), [0, 25, 5]).blockers())
    assert asked(made([0], [5], [9], machine_procs=9), [0], rules=SiteRules(procs=4)).blockers() == {"too few processors": 1}


def test_overheads__move_decisions_before_starts_and_free_processors_after_ends():
    # The first is decided at 0 and starts at 30; it ends at 130, is free at 140, and the second starts 30 s later.
    workload, start = made([0, 10], [100, 50], [4, 4]), [30, 170]
    assert asked(workload, start).delay.tolist() == [30, 40]
    found = asked(workload, start, rules=SiteRules(overhead=Overhead(30, 10)))
    assert found.delay.tolist() == [0, 0]
    assert found.score(within=0).prompt_f1 == 1
    assert asked(workload, start).score(within=30).prompt_f1 == pytest.approx(1 / 2)


def test_short__starts_for_which_the_record_leaves_too_few_processors_are_marked():
    found = asked(made([0, 0], [10, 10], [3, 3]), [0, 0])
    assert found.overcommitted.sum() == 2 or found.overcommitted.sum() == 0  # together they are too wide: each fits alone
    assert asked(made([0, 1], [10, 10], [3, 3]), [0, 1]).overcommitted.tolist() == [False, True]


def test_one_step__a_job_wider_than_the_part_is_never_started_and_stops_nobody():
    found = asked(made([0, 1], [10, 10], [3, 2]), [0, 10], "conservative", rules=SiteRules(procs=2))
    assert found.matched.tolist() == [False, True]


def test_one_step__needs_recorded_starts_and_a_known_policy():
    workload = made([0], [1], [1])
    with raises(WorkloadError, "missing_starts"):
        asked(workload, [-1])

    class Mine(wt.PlainPolicy):
        def choose(self, sight):
            return []

    with raises(PolicyError, "opaque_policy"):
        one_step(workload, np.array([0]), Mine())


# ------------------------------------------------------------------ controls


@pytest.mark.parametrize("policy", ["fcfs", "easy", "hybrid:depth=0", "hybrid:depth=3", "easy:order=sjf", "easy:order=wfp", "conservative"])
def test_control__a_simulated_schedule_agrees_with_its_own_policy_and_less_with_others(policy):
    workload = MODELS["lublin99"].generate(600, 64, 0.9, 3).with_estimates(wt.estimates.FModel(3), seed=1)
    schedule = wt.simulate(workload, policy)
    own = asked(workload, schedule.start, policy, end=schedule.end).score().f1
    assert own >= 0.998
    others = [other for other in ("fcfs", "easy", "easy:order=sjf", "conservative") if other != policy]
    assert all(asked(workload, schedule.start, other, end=schedule.end).score().f1 < own - 0.002 for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("time", ["half-life=86400", "last=200000"])
@pytest.mark.parametrize("used", ["user_used", "user_waited/(1+user_started)"])
def test_control__fair_share_agrees_with_its_own_schedule(used, time):
    workload = with_users(MODELS["lublin99"].generate(600, 64, 0.9, 3).with_estimates(wt.estimates.FModel(3), seed=1), 8, 1)
    policy = f"easy:order=expr:-{used},{time}"
    schedule = wt.simulate(workload, policy)
    assert asked(workload, schedule.start, policy, end=schedule.end).score(within=0).prompt_f1 >= 0.998
    assert asked(workload, schedule.start, end=schedule.end).score(within=0).prompt_f1 < 0.98


@pytest.mark.slow
def test_control__an_order_by_the_past_with_a_limit_on_waiting_agrees_with_its_own_schedule():
    workload = with_users(MODELS["lublin99"].generate(300, 64, 0.9, 3), 5, 0)
    policy = "easy:order=expr:wait-0.3*user_waited,half-life=20,max-wait-share=0.8"
    schedule = wt.simulate(workload, policy)
    assert asked(schedule.workload, schedule.start, policy, end=schedule.end).matched.all()


@given(workloads(), st.sampled_from(["fcfs", "easy", "hybrid:depth=2", "easy:order=sjf"]))
@examples(40)
def test_control__of_any_workload_every_start_is_the_policys(workload, policy):
    schedule = wt.simulate(workload, policy)
    found = one_step(schedule.workload, schedule.start, parse_policy(policy), end=schedule.end)
    assert found.matched.all()
    assert (found.proposals == 1).all()


SITES = {
    "hours": {"windows": (Window("17:00", days=WEEKDAYS), Window("08:00", "17:00", longer_than=8 * HOUR))},
    "limits": {"limits": (Limit(("user",), partition="big", jobs=2),)},
    "jobs alike": {"limits": (Limit(("procs",), partition="big", jobs=1),)},
    "overheads": {"overhead": Overhead(40, 60, 10)},
    "pools": {},
}


@pytest.mark.parametrize("site", SITES)
def test_control__on_machines_a_simulated_schedule_agrees_with_its_own_rules_and_less_with_others(site):
    drawn = MODELS["lublin99"].generate(600, 64, 0.8, 3).with_estimates(wt.estimates.FModel(3), seed=1)
    drawn = with_users(replace(drawn, origin=replace(drawn.origin, unix_start_time=MONDAY)), 6, 1)
    pools = (Pool("small", 16, 1), Pool("big", 48, 1))
    partitions = (Partition("small", ("small",), widest=4, longest=2 * HOUR), Partition("big", ("big",)))
    machine = Machine(pools, partitions, clock=0, **SITES[site])
    for policy, other in (("easy", "fcfs"), ("easy:order=sjf", "easy")):
        schedule = wt.simulate(drawn, policy, machine=machine)
        placed, own = one_step_on(schedule.workload, schedule.start, parse_policy(policy), machine)
        assert own.score().f1 >= 0.998
        assert own.score(within=0).prompt_f1 >= 0.998
        assert one_step_on(placed, schedule.start, parse_policy(other), machine)[1].score().f1 < own.score().f1 - 0.002
        plain = one_step_on(placed, schedule.start, parse_policy(policy), Machine(pools, partitions))[1]
        assert plain.score(within=0).prompt_f1 < own.score(within=0).prompt_f1 - 0.002 or site == "pools"


def test_machines__that_cannot_be_asked_say_why():
    workload = made([0], [1], [1])
    both = Machine((Pool("a", 2, 1), Pool("b", 2, 1)), (Partition("main", ("a", "b")),))
    with raises(PolicyError, "unsupported_machine", "partitions"):
        one_step_on(workload, np.array([0]), wt.Easy(), both)
    alone = (Pool("a", 4, 1),), (Partition("main", ("a",)),)
    with raises(PolicyError, "unsupported_machine", "outages"):
        one_step_on(workload, np.array([0]), wt.Easy(), Machine(*alone, outages=(Outage("a", 5, 9, 1),)))
    with raises(PolicyError, "unsupported_machine", "limits"):
        one_step_on(workload, np.array([0]), wt.Easy(), Machine(*alone, limits=(Limit((), procs=3),)))


# ------------------------------------------------------------------ candidates


def log_of(submit, start, runtime, procs, **columns):
    workload = made(submit, runtime, procs, machine_procs=8, **columns)
    return RecordedLog.of(workload, np.array(start))


def test_candidates__an_outage_is_where_nothing_runs_though_jobs_wait():
    log = log_of([0, 100, 20_000], [0, 9_000, 20_000], [1_000, 100, 100], [1, 1, 1])
    assert stopped_stretches(log) == [(1_000, 9_000)]
    assert periods([(k * 14 * DAY, k * 14 * DAY + HOUR) for k in range(4)]) == "every 14 days"
    assert periods([(0, 1), (5 * DAY, 6 * DAY), (7 * DAY, 8 * DAY)]) == ""


def test_candidates__who_was_passed_over_by_their_own_later_job_was_not_eligible():
    log = log_of([0, 1, 2], [50, 10, 20], [5, 5, 5], [2, 2, 1], user=[1, 1, 1])
    # The second, submitted later, started at 10; the first and the third start soon after ends of their user's jobs, at 25 and at 15.
    assert not_eligible_before(log).tolist() == [25, 1, 15]
    assert not_eligible_before(log, soon=0).tolist() == [10, 1, 2]


# ------------------------------------------------------------------ rules planted in generated logs


def planted(machine=None, policy="easy", jobs=6_000, slower=3):
    """A generated log of months, replayed under hidden rules, with its waits as a record."""
    workload = MODELS["lublin99"].generate(jobs, 64, 0.75, 5).with_estimates(wt.estimates.FModel(2), seed=1)
    times = {name: getattr(workload, name) * slower for name in ("submit", "runtime", "requested", "planned")}
    workload = replace(workload, **times, origin=replace(workload.origin, unix_start_time=MONDAY))
    own = wt.simulate(workload, policy, machine=machine) if machine is not None else wt.simulate(workload, policy)
    return replace(own.workload, columns={**own.workload.columns, "wait": own.start - own.workload.submit})


def site(*windows, **rest):
    return Machine((Pool("all", 64, 1),), (Partition("all", ("all",)),), windows=windows, clock=0, **rest)


@pytest.fixture(scope="module")
def found_window():
    """What is inferred where no job is planned across 17:00."""
    return infer(planted(site(Window("17:00", days=WEEKDAYS)), jobs=4_000, slower=5))


@pytest.mark.nightly
def test_infer__a_planted_window_is_found_and_explains_months_that_were_not_used(golden, found_window):
    found = found_window
    golden("infer", [(rule.kind, rule.text) for rule in found.rules if rule.kind == "window"])
    assert found.after.prompt_f1 > 0.99 > found.before.prompt_f1 + 0.02
    assert parse_machine(site_text(found), "site.toml").windows == found.machine.windows


@pytest.mark.slow
def test_infer__nothing_is_invented_on_what_plain_easy_made():
    steps: list[str] = []
    shares: list[float] = []
    found = infer(planted(), step=steps.append, progress=shares.append)
    assert (steps[0], steps[-1]) == ("step 1 of 7, hours", "step 7 of 7, what others replace")
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert found.rules == []
    assert found.before.prompt_f1 >= 0.998
    assert found.free[0].rank_correlation == pytest.approx(1)


@pytest.mark.slow
def test_infer__stopped_leaves_what_was_found_and_says_where(golden):
    def stop(name: str) -> None:
        if name.startswith("step 2"):
            raise KeyboardInterrupt

    found = infer(planted(site(Window("17:00", days=WEEKDAYS))), step=stop)
    assert found.stopped == "step 2 of 7, outages"
    assert [rule.kind for rule in found.rules] == ["window"]
    assert found.after.prompt_f1 > found.before.prompt_f1
    assert found.free == ()
    golden("infer", site_text(found))


@pytest.mark.slow
def test_infer__overheads_are_found_and_say_what_they_are():
    found = infer(planted(site(overhead=Overhead(60, 120))))
    [rule] = found.rules
    assert rule.kind == "overhead"
    own = found.machine.overhead
    assert abs(own.start - 60) <= 10
    assert abs(own.end - 120) <= 10
    assert parse_machine(site_text(found), "site.toml").overhead == own


@pytest.mark.nightly
def test_infer__agreement_is_told_by_class_with_what_stood_in_the_way(found_window):
    found = found_window
    rows = {(one.by, one.name): one for one in found.groups}
    everything = rows["all", "all jobs"]
    assert everything.score == found.after
    assert everything.before == pytest.approx(found.before.prompt_f1)
    classes = [one for one in found.groups if one.by == "class"]
    assert sum(one.score.jobs for one in classes) == found.after.jobs
    assert sum(one.score.matched for one in classes) == found.after.matched
    assert sum(one.score.prompt for one in classes) == found.after.prompt
    assert sum(everything.blockers.values()) == found.after.jobs - found.after.matched


@pytest.mark.slow
def test_infer__a_record_that_does_not_fit_the_machine_is_refused(golden):
    log = planted()
    found = infer(log, procs=40)
    golden("infer", found.refused)
    assert found.rules == []


def test_infer__needs_waits_and_two_months():
    with raises(WorkloadError, "missing_waits"):
        infer(made([0], [1], [1]))
    with raises(WorkloadError, "log_too_short"):
        infer(made([0, 1], [1, 1], [4, 4], wait=[0, 1]))


def test_only__leaves_out_what_was_asked_of_other_jobs():
    found = asked(made([0, 1], [10, 10], [3, 2], machine_procs=3), [0, 10])
    one = found.only(np.array([False, True]))
    assert (one.score().jobs, one.score().matched) == (1, 1)
    assert not one.matched[0]
    assert OneStep.joined([found.only(np.array([True, False])), one]).score() == found.score()
