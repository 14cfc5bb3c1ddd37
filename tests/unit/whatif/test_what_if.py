"""What a change does: worked by hand, against simulations of the changed machine, and what must hold for any change."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.sites import MACHINE, jobs_of, recorded_as
from tests.strategies import examples, workloads
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Machine, Partition, Pool
from walltime.report.html import render
from walltime.whatif import Difference, calibrate, runs, what_if
from walltime.whatif.answer import answer_of, one_by_one
from walltime.whatif.effects import OtherUsers, doubts, node_hours
from walltime.whatif.page import all_caveats, ranking_table, tables_of, what_if_page

CHANGES = ["nodes+=50%", "policy=fcfs", "partition.main.MaxTime=1h"]


@pytest.fixture(scope="module")
def jobs():
    return recorded_as(jobs_of(MACHINE), MACHINE, "easy", late=200)


@pytest.fixture(scope="module")
def found(jobs):
    return wt.what_if(jobs, MACHINE, CHANGES, replications=3, trim="none", together=True)


def test_what_if__is_what_simulations_of_the_changed_machine_give(jobs, found):
    larger = replace(MACHINE, pools=(Pool("thin", 18, 8), Pool("fat", 3, 16)))
    shorter = replace(MACHINE, partitions=(Partition("main", ("thin",), max_time=3600), MACHINE.partitions[1]))
    wanted = [(larger, "easy"), (MACHINE, "fcfs"), (shorter, "easy"), (replace(shorter, pools=larger.pools), "fcfs")]
    today = wt.simulate(jobs, "easy", machine=MACHINE)
    assert [effect.label for effect in found.effects] == [*CHANGES, "all together"]
    assert found.measures["mean_wait"] == today.wait.mean()
    for effect, (machine, policy) in zip(found.effects, wanted, strict=True):
        schedule = wt.simulate(jobs, policy, machine=machine)
        assert np.array_equal(effect.schedule.start, schedule.start)
        one = effect.differences["mean_wait"]
        assert one.difference == pytest.approx(schedule.wait.mean() - today.wait.mean())
        assert one.copies == 3
        assert one.scatter > 0
        assert effect.differences["p90_wait"].changed == np.percentile(schedule.wait, 90)


def test_what_if__copies_are_shaken_alike_for_every_setting(jobs, found):
    values = []
    for seed in range(3):
        shaken = wt.workloads.shake(jobs, 30, seed)
        a, b = (wt.simulate(shaken, policy, machine=MACHINE).wait.mean() for policy in ("easy", "fcfs"))
        values.append(b - a)
    one = found.effects[1].differences["mean_wait"]
    runs_of = [one.difference, *values]
    assert one.scatter == pytest.approx(wt.metrics.mean_interval(np.array(runs_of)).half_width * np.sqrt(5))


def test_what_if__counts_cut_jobs_and_node_hours(jobs, found):
    effect = found.effects[2]
    main = jobs.columns["partition"] == 1
    cut = main & (jobs.runtime > 3600) & (jobs.requested > 3600)
    assert effect.cost.cut_jobs == int(cut.sum()) > 0
    assert effect.cost.work_lost_hours == pytest.approx(node_hours(found.today)[cut].sum())
    assert effect.cost.cut
    assert effect.cost.cut[0].startswith("user ")
    span = (jobs.submit[-1] - jobs.submit[0]) / 3600
    assert found.cost.capacity == pytest.approx(14 * span)
    assert found.effects[0].cost.capacity == pytest.approx(21 * span)
    for one in (found.cost, *(effect.cost for effect in found.effects)):
        assert one.used + one.idle == pytest.approx(one.capacity)
        assert one.idle >= 0


def test_what_if__names_jobs_that_no_longer_fit(jobs):
    wide = int((jobs.procs > 64).sum())
    found = what_if(jobs, MACHINE, ["partition.main.pools=fat"], replications=0, trim="none").effects[0]
    narrow = int(((jobs.procs > 32) & (jobs.columns["partition"] == 1)).sum())
    assert found.cost.lost_jobs == narrow >= 1, wide
    assert found.cost.rules == {"too_wide_for_partition": narrow}
    assert found.jobs == len(jobs) - narrow
    assert sum(side.jobs for side in (found.gains.shorter, found.gains.equal, found.gains.longer)) == found.jobs


def test_what_if__of_nothing_says_that_nothing_changes(golden, jobs):
    found = what_if(jobs, MACHINE, "nodes+=0%", replications=2)
    (effect,) = found.effects
    assert effect.nothing
    assert effect.differences["mean_wait"].difference == 0
    assert "no change" in found.answer()
    golden("what-if", list(found.caveats))


def test_page__draws_the_interval_of_the_true_change(found):
    [axes] = what_if_page(found).picture.figure.axes
    drawn = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 4]
    for ends, effect in zip(drawn, found.ranked, strict=True):
        assert list(ends) == pytest.approx([100 * effect.record.low, 100 * effect.record.high])
    assert axes.get_xlabel() == "change of the mean wait from today"
    [axes] = what_if_page(replace(found, effects=[replace(effect, record=None) for effect in found.effects])).picture.figure.axes
    assert axes.get_xlabel().startswith("difference in mean wait from today")


def test_page__caption_explains_only_what_is_drawn(found):
    def caption(low, scatter):
        one = replace(found.effects[0].differences["mean_wait"], low=low, high=low, scatter=scatter)
        effect = replace(found.effects[0], record=None, differences=found.effects[0].differences | {"mean_wait": one})
        return what_if_page(replace(found, effects=[effect], calibration=None)).picture.caption

    assert [("thick" in text, "thin" in text) for text in (caption(1.0, 1.0), caption(math.nan, 1.0), caption(math.nan, math.nan))] == [
        (True, True),
        (False, True),
        (False, False),
    ]


@pytest.mark.slow
def test_what_if__below_the_calibration_is_marked_and_above_is_not(golden, jobs):
    exact = recorded_as(jobs_of(MACHINE, jobs=2500), MACHINE, "easy")
    sure = what_if(exact, MACHINE, ["nodes+=50%"], replications=3)
    assert sure.calibration.overall.threshold == 0
    if not sure.calibration.overall.doubt:
        assert sure.effects[0].doubts == []
        golden("what-if", sure.answer())
    off = replace(exact, columns=dict(exact.columns) | {"wait": exact.columns["wait"] + 10**6})
    unsure = what_if(off, MACHINE, ["nodes+=50%"], replications=0)
    assert unsure.effects[0].doubts
    assert "Do not trust" in unsure.answer()
    assert "†" in render(what_if_page(unsure))


@pytest.mark.slow
def test_what_if__without_recorded_waits_says_so(jobs):
    waits = {name: column for name, column in jobs.columns.items() if name != "wait"}
    found = what_if(replace(jobs, columns=waits), MACHINE, ["nodes+=50%"], replications=0)
    assert found.calibration is None
    assert "cannot be compared with the machine" in render(what_if_page(found))
    assert any("records no waits" in caveat for caveat in all_caveats(found))
    assert any("was not measured" in caveat for caveat in all_caveats(found))


def test_what_if__takes_a_calibration_that_is_there(jobs):
    calibration = calibrate(jobs, MACHINE)
    assert what_if(jobs, MACHINE, ["nodes+=50%"], replications=0, calibration=calibration).calibration is calibration
    with raises(WorkloadError, "other_calibration", "machine"):
        what_if(jobs, replace(MACHINE, name="other"), ["nodes+=50%"], replications=0, calibration=calibration)


def test_what_if__of_loads_and_requests(jobs):
    found = what_if(jobs, MACHINE, ["load*=1.3", "requested*=0.5"], replications=0, trim="none")
    load, requested = found.effects
    assert load.schedule.workload.offered_load == pytest.approx(1.3 * jobs.offered_load, rel=0.01)
    assert load.differences["mean_wait"].difference > 0
    halved = np.maximum(np.ceil(jobs.requested / 2), 1)
    assert requested.cost.cut_jobs == int((jobs.runtime > halved).sum())


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ([], {}, ("no_change",)),
        (None, {}, ("no_change",)),
        (["nodes+=50%", "nodes+=50%"], {}, ("repeated_change",)),
        ([3], {}, ("wrong_type",)),
        (["nodes+=50%"], {"replications": -1}, ("number_out_of_range", "replications")),
        (["nodes+=50%"], {"replications": True}, ("number_out_of_range", "replications")),
        (["nodes+=50%"], {"seed": -1}, ("number_out_of_range", "seed")),
        (["partition.big.pools=fat", "partition.big.pools-=thin"], {"together": True}, ("unknown_name",)),
        (["policy=easy:extra=literal"], {"replications": 0}, ("unsupported_policy", "'policy=easy:extra=literal'")),
    ],
)
def test_what_if__wrong_arguments_are_refused(jobs, changes, options, said):
    with raises(PolicyError, *said):
        what_if(jobs, MACHINE, changes, **options)


def test_what_if__settings_of_slurm_that_are_not_modelled_are_told_once(jobs, recwarn):
    machine = replace(MACHINE, policy="slurm", slurm={"SchedulerParameters": "bf_interval=60,bf_licenses"})
    found = what_if(jobs.take(slice(0, 200), ""), machine, ["SchedulerParameters+=bf_max_job_test=9"], replications=0)
    assert [caveat for caveat in found.caveats if "bf_licenses" in caveat] == found.not_modelled
    assert len(found.not_modelled) == 1
    assert not [one for one in recwarn if "not modelled" in str(one.message)]


def test_what_if__progress_counts_every_simulation(jobs):
    seen = []
    what_if(jobs.take(slice(0, 200), ""), MACHINE, ["nodes+=50%", "policy=fcfs"], replications=2, progress=seen.append)
    assert seen[-1] == runs(2, 2) == 18
    assert seen == sorted(seen)


def chains(users: int = 2, length: int = 20) -> wt.Workload:
    """Users in turns on a machine that one job fills: each next job comes 60 s after the end of the one before."""
    place = np.repeat(np.arange(length), users), np.tile(np.arange(users), length)
    start = 1000 * (users * place[0] + place[1])
    submit = np.where(place[0] > 0, start - 1000 * (users - 1) + 60, 0)
    return wt.Workload.from_arrays(
        submit=submit,
        runtime=np.full(len(start), 1000),
        procs=np.full(len(start), 4),
        machine_procs=4,
        columns={"user": place[1] + 1, "wait": start - submit},
    )


def test_what_if__where_users_react_a_faster_machine_gets_more_load():
    jobs = chains()
    found = what_if(jobs, None, ["nodes*=2"], submissions="react", replications=0, trim="none")
    [effect] = found.effects
    before, after = (one.submit.reshape(20, 2) for one in (found.today, effect.schedule))
    assert found.today.submit.tolist() == jobs.submit.tolist()
    assert after.tolist() == [[1060 * k] * 2 for k in range(20)]
    load = [jobs.runtime.sum() / one.max() for one in (before, after)]
    assert load[1] > 1.8 * load[0]
    assert effect.other_users.earlier == (before - after).mean()
    assert not effect.other_users.react
    assert found.linked == 38 / 40
    assert "Users react" in " ".join(found.caveats)
    asked = what_if(jobs, None, ["nodes*=2"], replications=0, trim="none")
    [usual] = asked.effects
    assert usual.other_users.react
    assert usual.other_users.difference == effect.differences["mean_wait"].difference
    assert usual.differences["mean_wait"].difference == effect.other_users.difference
    assert asked.calibration.as_dict() == found.calibration.as_dict()


def test_what_if__users_who_react_submit_later_to_a_smaller_machine(jobs):
    """Which makes it worse, but by less; what a larger one does to the few jobs that follow another is mostly chance."""
    [effect] = what_if(jobs, MACHINE, ["nodes-=25%"], replications=0).effects
    assert effect.other_users.earlier < 0
    assert 0 < effect.other_users.difference < effect.differences["mean_wait"].difference


def test_what_if__a_verdict_that_turns_round_is_a_doubt():
    one = differences_of(100.0, 80.0)
    assert any("the sign changes" in doubt and "+20 s" in doubt for doubt in doubts(one, None, OtherUsers(True, 100.0, 120.0, 0.0)))
    assert not any("the sign changes" in doubt for doubt in doubts(one, None, OtherUsers(True, 100.0, 90.0, 0.0)))
    unknown = doubts(replace(one, copies=1, scatter=float("nan")), None)
    assert any("were not tried" in doubt for doubt in unknown)
    assert not any("n/a" in doubt for doubt in unknown)


def differences_of(today: float, changed: float) -> Difference:
    return Difference("mean_wait", today, changed, changed - today)


def test_what_if__users_of_whom_nothing_is_known_cannot_react(golden, jobs):
    without = replace(jobs, columns={name: value for name, value in jobs.columns.items() if name != "user"})
    found = what_if(without, MACHINE, ["nodes+=50%"], replications=0)
    assert found.effects[0].other_users is None
    golden("what-if", " ".join(found.caveats))
    with raises(WorkloadError, "missing_column"):
        what_if(without, MACHINE, ["nodes+=50%"], replications=0, submissions="react")


def test_answer__says_the_price_in_plain_words(golden, found):
    answer = found.answer()
    cost = found.effects[2].cost
    golden("what-if", answer)
    assert len(answer.split()) <= 115
    assert "MaxTime" not in answer
    before = node_hours(found.today)
    killed = found.effects[2].schedule.runtime < found.today.runtime
    assert cost.work_lost == pytest.approx(before[killed].sum() / before.sum())


def effect_of(name, percent, killed=0, lost=0):
    """One that changes a mean wait of 100 s."""
    cost = SimpleNamespace(cut_jobs=killed, lost_jobs=lost, short_jobs=0, work_lost=0.4)
    wait = Difference("mean_wait", 100.0, 100.0 + percent, percent)
    gains = SimpleNamespace(longer=SimpleNamespace(jobs=0))
    return SimpleNamespace(
        name=name,
        label=name,
        differences={"mean_wait": wait},
        cost=cost,
        gains=gains,
        jobs=50,
        nothing=not percent,
        doubts=[],
        other_users=None,
        percent=percent,
        record=None,
        is_known=False,
        is_chance=False,
        worth=-percent - 40 * bool(killed or lost),
    )


def test_answer__is_the_best_change_with_its_price():
    more, shorter = effect_of("more nodes", -40), effect_of("shorter limit", -60, killed=7)
    said = answer_of([more, shorter])
    assert said.startswith("The best of 2 changes is more nodes: 40 % shorter waits")
    assert "together" not in said
    assert "7 jobs killed" in answer_of([shorter, more])
    assert one_by_one([more, shorter]) == ["Mean wait with each change alone: more nodes -40 %; shorter limit -60 %."]


def test_answer__without_a_change_worth_its_price():
    assert answer_of([effect_of("fewer nodes", 5), effect_of("fcfs", 50)]).startswith("None of the 2 changes gains more than it costs")


def test_answer__of_all_together_only_as_a_second_sentence():
    effects = [effect_of("more nodes", -40), effect_of("fewer nodes", 50, lost=1), effect_of("all together", 10)]
    said = answer_of(effects)
    assert said.startswith("The best of 2 changes is more nodes")
    assert "More nodes and fewer nodes together (one lengthens waits): 10 % longer waits" in said


def test_ranking__is_by_gain_against_price(found):
    worths = [effect.worth for effect in found.ranked[:-1]]
    assert worths == sorted(worths, reverse=True)
    assert found.ranked[-1].label == "all together"
    for effect in found.alone:
        lost, added = effect.cost.work_lost, max(effect.nodes_added, 0)
        assert effect.worth == pytest.approx(-effect.percent - 100 * (lost + added))
    assert found.effects[0].nodes_added == 0.5
    table = tables_of(found)[0]
    assert [row[0].text for row in table.cells] == [effect.name for effect in found.ranked]


def test_ranking__has_one_definition_of_lost_work(found):
    effect = found.effects[2]
    share = f"{100 * effect.cost.work_lost:.0f}"
    assert effect.cost.work_lost == pytest.approx(effect.cost.work_lost_hours / node_hours(found.today).sum())
    assert share in ranking_table(found).column(4)[[one.label for one in found.ranked].index(effect.label)]
    assert not hasattr(effect.cost, "cut_hours")


@pytest.mark.slow
def test_together__only_when_asked_and_never_for_one_value(jobs):
    asked = ["policy=fcfs", "policy=conservative"]
    assert [one.label for one in what_if(jobs, MACHINE, asked, replications=0, trim="none").effects] == asked
    with raises(PolicyError, "same_setting", "policy=fcfs"):
        what_if(jobs, MACHINE, asked, replications=0, together=True)
    with raises(PolicyError, "no_change"):
        what_if(jobs, MACHINE, asked[:1], replications=0, together=True)


def test_against__another_machine_is_an_alternative(jobs):
    other = replace(MACHINE, name="larger", pools=(Pool("thin", 18, 8), Pool("fat", 3, 16)), policy=None)
    found = what_if(jobs, MACHINE, against=[other], replications=0, trim="none")
    same = what_if(jobs, MACHINE, ["nodes+=50%"], replications=0, trim="none")
    assert np.array_equal(found.effects[0].schedule.start, same.effects[0].schedule.start)
    assert found.effects[0].nodes_added == 0.5
    assert "+nodes = 18" in found.effects[0].became


def test_limit__that_strands_jobs_is_reported(jobs):
    found = what_if(jobs, MACHINE, ["limit.new.by=user,procs=32"], replications=0, trim="none")
    [effect] = found.effects
    wide = jobs.procs > 32
    assert effect.cost.stranded_jobs == int(wide.sum()) > 0
    assert effect.cost.stranded == pytest.approx((node_hours(found.today)[wide]).sum() / node_hours(found.today).sum())
    assert any("would never start them" in one for one in found.caveats)
    assert what_if(jobs, MACHINE, ["limit.new.by=user,procs=96"], replications=0).effects[0].cost.stranded_jobs == 0


def test_answer__much_longer_waits_are_so_many_times_as_long(golden):
    golden("what-if", answer_of([effect_of("policy fcfs", 2800)]))
    assert one_by_one([effect_of("policy fcfs", 2800)]) == []


def test_what_if__tables_and_json(golden, found):
    table = found.table()
    assert table["change"].to_list() == ["today", *CHANGES, "all together"]
    assert table["mean_wait_difference"][0] is None
    groups = found.groups()
    assert set(groups["by"]) == {"user", "class", "size", "partition", "queue"}
    value = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert [effect["change"] for effect in value["effects"]] == [*CHANGES, "all together"]
    assert value["calibration"]["verdict"]
    titles = [table.title for table in tables_of(found)]
    golden("what-if", titles[2])
    for table in tables_of(found):
        assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.slow
def test_page__escapes_names_and_is_the_same_again(jobs):
    evil = '<script>alert("x")</script>\x1b[31m'
    origin = replace(jobs.origin, name="<b>log", names={"partition": (evil, "big"), "user": (evil, *(f"u{k}" for k in range(40)))})
    machine = Machine(MACHINE.pools, (Partition(evil, ("thin",)), Partition("big", ("thin", "fat"))), name=evil, policy="easy")
    hostile = replace(jobs, origin=origin)
    change = f"partition.{evil}.MaxTime=1h"
    pages = [render(what_if_page(what_if(hostile, machine, [change, "nodes+=10%"], replications=0))) for _ in range(2)]
    assert pages[0] == pages[1]
    assert "<b>log" not in pages[0]
    assert "<script>alert" not in pages[0]
    assert "\x1b" not in pages[0]
    assert 'src="http' not in pages[0]


@given(workloads(), st.integers(0, 2**31), st.sampled_from(["easy", "fcfs", "slurm", "conservative-scratch"]))
@examples(40)
def test_what_if__holds_for_any_jobs(jobs, seed, policy):
    waits = {"wait": np.random.default_rng(seed).integers(-1, 50, len(jobs))} if len(jobs) and seed % 2 else {}
    jobs = replace(jobs, columns=waits)
    machine = Machine((Pool("a", jobs.machine_procs, 1),), (Partition("p", ("a",)),), policy=policy)
    if not len(jobs):
        return
    found = what_if(jobs, machine, ["nodes+=1", "policy=fcfs", "partition.p.MaxTime=1", "nodes+=0%"], replications=seed % 3, trim="none")
    assert json.dumps(found.as_dict(), allow_nan=False)
    assert found.effects[3].nothing
    for effect in found.effects:
        assert effect.jobs + effect.cost.lost_jobs == len(jobs)
        sides = (effect.gains.shorter, effect.gains.equal, effect.gains.longer)
        assert sum(side.jobs for side in sides) == effect.jobs
        one = effect.differences["mean_wait"]
        assert one.difference == pytest.approx(one.changed - one.today)
        assert effect.cost.used <= effect.cost.capacity + 1e-9
    assert found.answer()
    assert all_caveats(found)
    assert tables_of(found)
