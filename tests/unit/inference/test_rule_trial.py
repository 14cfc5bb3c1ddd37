"""Rules that come and go: what is asked, and how a machine says them."""

from dataclasses import replace

import numpy as np

import walltime as wt
from walltime.inference.candidate_rules import EachLimit, InferredPool
from walltime.inference.limit_search import _kept_at_first
from walltime.inference.rule_trial import AtOnce, Rules, RuleTrial, stretches_of
from walltime.machine import Limit, Overhead, Window, place
from walltime.policy import parse_policy

DAY = 86_400


def trial(policy="easy", machine=None):
    """A search in a log of 120 days, made under a policy: of 8 processors, with a narrow and a wide job each hour, of two users."""
    submit = np.repeat(np.arange(0, 120 * DAY, 3600), 2)
    long = (np.arange(len(submit)) % 28 == 1) | (np.arange(len(submit)) % 98 == 0)
    log = wt.Workload.from_arrays(
        submit=submit,
        runtime=np.where(long, 12_000, 2_000),
        requested=np.where(long, 14_400, 3_600),
        procs=np.where(np.arange(len(submit)) % 2, 1, 6),
        machine_procs=8,
    )
    log = replace(log, columns={**log.columns, "user": np.arange(len(submit)) % 2 + 1})
    made = wt.simulate(log, policy, machine=machine)
    return RuleTrial(replace(log, columns={**log.columns, "wait": made.start - log.submit}), 8, 1, None)


def test_stretches__are_those_with_the_same_parts():
    first, second = InferredPool(1, 60, 1, until=10), InferredPool(1, 90, 1, since=5)
    assert stretches_of([]) == [(None, None, [])]
    assert stretches_of([first, second]) == [(None, 5, [first]), (5, 10, [first, second]), (10, None, [second])]


def test_machine__has_the_whole_of_it_before_a_part_comes():
    search, part = trial(), InferredPool(1, 3600, 2, since=50 * DAY)
    machine = search.machine_of(Rules(parts=(part,), at_once=(AtOnce(2, 1, False, until=9),)))
    placed, placement = place(search.w, machine)
    names = np.array([one.name for one in machine.partitions])[placement.partition]
    late, narrow = placed.submit >= 50 * DAY, (placed.procs == 1) & (placed.requested == 3600)
    assert set(names[late & narrow]) == {"part1"}
    assert set(names[late & ~narrow]) == {"main2"}
    assert set(names[~late]) == {"main"}
    assert {one.name: one.pools for one in machine.partitions} == {"part1": ("part1",), "main": ("main", "part1"), "main2": ("main",)}
    assert machine.limits == tuple(Limit(("user",), partition=name, only=("2",), jobs=1, until=9) for name in ("main", "main2"))


def test_machine__has_a_partition_for_the_jobs_that_a_limit_counts():
    search, limit = trial(), EachLimit("", 1, longer_than=3600)
    machine = search.machine_of(Rules(each=(limit,)))
    placed, placement = place(search.w, machine)
    names = np.array([one.name for one in machine.partitions])[placement.partition]
    assert set(names[placed.requested > 3600]) == {"all"}
    assert set(names[placed.requested <= 3600]) == {"others"}
    assert {one.pools for one in machine.partitions} == {("all",)}
    assert machine.limits == (Limit((), partition="all", jobs=1),)
    made = wt.simulate(search.w, "easy", machine=machine)
    wait = made.start - made.workload.submit
    log = replace(made.workload, columns={**made.workload.columns, "wait": wait})
    own = RuleTrial(log, 8, 1, None)
    assert own.ask(Rules(each=(limit,))).score(within=0).prompt_f1 == 1
    assert own.answer.score(within=0).prompt_f1 < 1


def test_policy_of_a_time__is_asked_of_the_jobs_that_start_then():
    search, fcfs = trial(), parse_policy("fcfs")
    early = search.log.start < 30 * DAY
    own, part = search.ask(Rules(policy=fcfs)), search.ask(Rules(policy=fcfs, policy_until=30 * DAY))
    assert own.score(early).matched < search.answer.score(early).matched
    assert part.score(early) == own.score(early)
    assert part.score(~early) == search.answer.score(~early)
    assert search.machine_of(Rules(policy=fcfs, policy_until=30 * DAY)).policy == "easy"
    assert search.machine_of(Rules(policy=fcfs, policy_since=30 * DAY)).policy == "fcfs"


def test_shortened__begins_with_the_month_in_which_a_rule_does():
    late = Limit(("user",), only=("2",), jobs=1, since=60 * DAY)
    search = trial(machine=replace(trial().machine_of(Rules()), limits=(late,)))
    limit = AtOnce(2, 1, False)
    whole = search.ask(Rules(at_once=(limit,)))

    def during(since, until):
        return Rules(at_once=(limit._replace(since=since, until=until),))

    since, until, answer = search.shortened(whole, during)
    assert abs(since - 60 * DAY) < 15 * DAY
    assert until is None
    assert search.gain(answer, search.judge, old=whole) > 0


def test_without__removes_what_one_rule_added():
    window, other = Window("08:00"), Window("17:00")
    before, after = Rules(windows=(window,)), Rules(windows=(window, other))
    later = after._replace(policy=parse_policy("fcfs"), policy_since=5, overhead=Overhead(3))
    assert later.without(before, after) == later._replace(windows=(window,))
    assert later.without(Rules(), before) == later._replace(windows=(other,))
    assert later.without(after, later) == after


def test_kept_at_first__allows_one_start_in_a_hundred():
    over = np.zeros(400, bool)
    assert _kept_at_first(over) == 400
    over[[150, 300, 301, 302, 303]] = True
    assert _kept_at_first(over) == 302
    assert _kept_at_first(np.ones(3, bool)) == 0
