"""The language of changes: what each does to a machine, and one line for what it does not know."""

from dataclasses import replace

import pytest

from tests.errors import raises
from walltime.errors import PolicyError
from walltime.machine import Limit, Machine, Partition, Pool, Qos, Share
from walltime.whatif import Setting
from walltime.whatif.change import parse_change
from walltime.whatif.change_names import change_name
from walltime.whatif.changes import OF_SETTING, TABLES, apply_change, targets

MACHINE = Machine(
    pools=(Pool("thin", 64, 32), Pool("fat", 8, 64, 4)),
    partitions=(Partition("main", ("thin", "fat"), max_time=172_800), Partition("gpu.long", ("fat",), tier=1)),
    limits=(Limit(("user",), None, jobs=4), Limit((), "main", procs=512)),
    policy="easy",
    slurm={"PriorityWeightAge": "1000"},
    shares=(Share("physics", shares=3), Share("physics", "ann", "physics")),
    qos=(Qos("high", 10),),
)
TODAY = Setting.of(MACHINE)


def changed(text: str, setting: Setting = TODAY) -> Machine:
    return apply_change(parse_change(text), setting)[0].machine


def told(text: str) -> list[str]:
    return apply_change(parse_change(text), TODAY)[1]


def test_nodes__by_percent_are_rounded_up_and_told():
    assert [pool.nodes for pool in changed("nodes+=10%").pools] == [71, 9]
    assert told("nodes+=10%") == ["the machine: nodes 72 → 80", "pool thin: nodes 64 → 71", "pool fat: nodes 8 → 9"]
    assert [pool.nodes for pool in changed("nodes -= 25%").pools] == [48, 6]
    assert [pool.nodes for pool in changed("nodes*=1.5").pools] == [96, 12]
    assert [pool.nodes for pool in changed("nodes+=0%").pools] == [64, 8]
    assert told("nodes+=0%")[0].endswith("(no change)")


@pytest.mark.parametrize(
    ("text", "pool", "value"),
    [
        ("pool.fat.nodes+=4", 1, ("nodes", 12)),
        ("pool.fat.gpus=8", 1, ("second", 8)),
        ("pool.thin.procs-=16", 0, ("procs", 16)),
        ("pool.thin.nodes-=10%", 0, ("nodes", 58)),
        ("pool.thin.memory=64000", 0, ("memory", 64000)),
    ],
)
def test_pool__is_changed_by_its_name(text, pool, value):
    assert getattr(changed(text).pools[pool], value[0]) == value[1]


def test_licences__are_changed_by_their_name():
    setting = replace(TODAY, machine=replace(MACHINE, licences={"matlab": 5, "ansys": 2}))
    assert changed("licences.matlab+=40%", setting).licences == {"matlab": 7, "ansys": 2}
    assert apply_change(parse_change("licences.ansys=1"), setting)[1] == ["licences: ansys 2 → 1"]
    assert change_name(parse_change("licences.ansys+=1")) == "1 more licence of ansys"
    for text, code in (("licences.ansys-=2", "number_out_of_range"), ("licences.abaqus=1", "unknown_name")):
        with raises(PolicyError, code):
            changed(text, setting)
    with raises(PolicyError, "unknown_name"):
        changed("licences.ansys=1")


def test_preemption__can_be_switched_on():
    partition = changed("partition.main.preempt=requeue").partitions[0]
    assert (partition.preempt, changed("partition.main.GraceTime=00:05:00").partitions[0].grace) == ("requeue", 300)
    assert changed("partition.main.grace=0").partitions[0].grace == 0
    assert told("partition.main.PreemptMode=CANCEL") == ["partition main: preempt off → cancel"]
    with raises(PolicyError, "wrong_value"):
        changed("partition.main.preempt=suspend")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("24h", 86_400), ("1-00:00:00", 86_400), ("12:30:00", 45_000), ("90", 5400), ("2-12", 216_000), ("30:00", 1800), ("UNLIMITED", None)],
)
def test_max_time__in_the_spelling_of_slurm(value, seconds):
    assert changed(f"partition.main.MaxTime={value}").partitions[0].max_time == seconds


def test_max_time__in_our_spelling_is_seconds():
    assert changed("partition.main.max_time=3600").partitions[0].max_time == 3600
    assert told("partition.main.MaxTime=24h") == ["partition main: max_time 2 d → 1 d"]


def test_partition__in_both_spellings_with_a_dot_in_its_name():
    assert changed("partition.gpu.long.PriorityTier=5").partitions[1].tier == 5
    assert changed("partition.gpu.long.tier=0").partitions[1].tier == 0
    assert changed("partition.main.PriorityJobFactor+=4").partitions[0].job_factor == 5
    assert changed("partition.gpu.long.OverSubscribe=EXCLUSIVE").partitions[1].exclusive
    assert not changed("partition.gpu.long.OverSubscribe=NO").partitions[1].exclusive
    assert changed("partition.main.pools-=fat").partitions[0].pools == ("thin",)
    assert changed("partition.gpu.long.pools+=thin").partitions[1].pools == ("fat", "thin")


def test_limit__is_changed_by_its_number_and_can_go(golden):
    assert changed("limit.1.jobs=8").limits[0].jobs == 8
    assert changed("limit.2.procs-=50%").limits[1].procs == 256
    assert changed("limit.1.jobs=none").limits == (MACHINE.limits[1],)
    assert told("limit.1.jobs=none") == ["limit 1 is gone"]
    golden("what-if", told("limit.1.procs=none"))


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("limit.new.by=user,gpus=8", Limit(("user",), second=8)),
        ("limit.new.by=user,qos=high,cpus=64", Limit(("user",), procs=64, among={"queue": ("high",)})),
        ("limit.new.by=none,partition=gpu.long,jobs=3", Limit((), jobs=3, among={"partition": ("gpu.long",)})),
        ("limit.new.by=user,user=ann,user=bob,procs=9", Limit(("user",), procs=9, among={"user": ("ann", "bob")})),
    ],
)
def test_limit__new_for_users_qualities_of_service_and_partitions(text, limit):
    assert changed(text).limits == (*MACHINE.limits, limit)


@pytest.mark.parametrize(
    "text", ["limit.new.by=user,cores=8", "limit.new.by=user", "limit.new.by=colour,jobs=3", "limit.new.by=user,jobs=0"]
)
def test_limit__new_without_sense_is_an_error(text):
    with pytest.raises(PolicyError):
        changed(text)


def test_move__nodes_go_from_one_partition_to_another():
    machine = changed("move=4:main:gpu.long")
    assert [(pool.name, pool.nodes, pool.procs) for pool in machine.pools] == [
        ("thin", 60, 32),
        ("fat", 8, 64),
        ("thin-in-gpu.long", 4, 32),
    ]
    assert [one.pools for one in machine.partitions] == [("thin", "fat"), ("fat", "thin-in-gpu.long")]
    for text in ("move=64:main:gpu.long", "move=1:gpu.long:main", "move=1:main:none", "move=main:gpu.long", "move=0:main:gpu.long"):
        with pytest.raises(PolicyError):
            changed(text)


def test_qos_and_shares():
    assert changed("qos.high.Priority=20").qos[0].priority == 20
    assert changed("share.physics.shares=1").shares[0].shares == 1
    assert changed("share.physics.ann.shares=2").shares[1].shares == 2


def test_policy_load_and_requests():
    assert apply_change(parse_change("policy=easy:order=sjf"), TODAY)[0].scheduler().label == "easy:order=sjf"
    assert apply_change(parse_change("policy=easy++"), TODAY)[0].scheduler().label == "easy:backfill-order=sjf,predictor=tsafrir07"
    assert apply_change(parse_change("load*=1.1"), TODAY)[0].load == pytest.approx(1.1)
    assert apply_change(parse_change("requested*=0.8"), TODAY)[0].requested == pytest.approx(0.8)
    assert apply_change(parse_change("estimates=exact"), TODAY)[0].estimates == "exact"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes", "WHAT=VALUE"),
        ("nodes=", "WHAT=VALUE"),
        ("=4", "WHAT=VALUE"),
        ("nodes+=4", "pool.thin.nodes, pool.fat.nodes"),
        ("nodes+=ten", "there are several pools"),
        ("nodes+=ten%", "not a valid number"),
        ("nodes-=100%", "must be left"),
        ("nodes+=-5%", "not a valid number"),
        ("nodes=50%", "+= or -="),
        ("pool.thin.nodes*=10%", "*= with a factor"),
        ("pool.thin.nodes+=1.5", "not a valid number"),
        ("pool.thick.nodes+=4", "Valid options: thin, fat"),
        ("pool.thin.ram=4", "Valid options: nodes, procs, memory, gpus"),
        ("partition.long.MaxTime=24h", "Valid options: main, gpu.long"),
        ("partition.main.Colour=red", "MaxTime, PriorityTier"),
        ("partition.main.MaxTime=soon", "not a duration"),
        ("partition.main.MaxTime+=1h", "not with +="),
        ("partition.main.OverSubscribe=MAYBE", "EXCLUSIVE"),
        ("partition.main.exclusive=true", "nodes of one size"),
        ("partition.main.pools=thick", "thick"),
        ("partition.main.pools-=thick", "Valid pools: thin, fat"),
        ("partition.gpu.long.pools-=fat", "no pools"),
        ("limit.3.jobs=1", "there is no limit"),
        ("limit.x.jobs=1", "there is no limit 'x'"),
        ("limit.1.procs+=1", "set it with ="),
        ("limit.1.users=1", "Valid options: jobs, procs, gpus"),
        ("qos.low.priority=1", "Valid options: high; others are given in the machine's file"),
        ("qos.high.weight=1", "Valid options: priority"),
        ("share.biology.shares=1", "physics.ann"),
        ("policy=fastest", "unknown policy"),
        ("policy+=easy", "not with +="),
        ("load=0.9", "changed with *="),
        ("load*=much", "must be a number from 0.01 to 100, not 'much'"),
        ("load*=nan", "must be a number from 0.01 to 100"),
        ("estimates=guess", "guess"),
        ("colour=red", ", ".join(targets()[:4])),
        ("polcy=easy", "Did you mean 'policy'?"),
        ("partition.mian.MaxTime=24h", "Did you mean 'main'?"),
        ("partition.main.MaxTme=24h", "Did you mean 'MaxTime'?"),
        ("SchedulerParameter+=bf_continue", "Did you mean 'SchedulerParameters'?"),
        ("machine.colour=red", ", ".join(targets()[:4])),
        ("SchedulerSpeed=9", "SchedulerParameters"),
        ("SchedulerParameters+=bf_continue", "policy slurm"),
    ],
)
def test_what_cannot_be_changed__is_told_in_one_line(text, said):
    with pytest.raises(PolicyError) as caught:
        apply_change(parse_change(text), TODAY)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_changes__are_written_as_they_are_read():
    for text in ("nodes+=10%", "partition.main.MaxTime=12h", "SchedulerParameters+=bf_max_job_test=1000", "load*=1.1"):
        assert str(parse_change(text)) == text
        assert parse_change(str(parse_change(text))) == parse_change(text)
    assert str(parse_change(" nodes -= 25% ")) == "nodes-=25%"


def test_tables__name_fields_of_the_machine():
    for table in TABLES.values():
        assert set(table.keys.values()) <= set(table.declared)
    assert {"policy", "nodes", "soft"} <= set(OF_SETTING)
    assert [TABLES["partition"].signs(field) for field in ("max_time", "exclusive", "pools", "tier")] == [
        ("=",),
        ("=",),
        ("=", "+=", "-="),
        ("=", "+=", "-=", "*="),
    ]


def test_parameters_of_slurm__are_added_replaced_and_removed():
    machine = Machine(MACHINE.pools, MACHINE.partitions, policy="slurm", slurm={"SchedulerParameters": "bf_interval=30,bf_continue"})
    setting = Setting(machine, "slurm")
    for text, value in (
        ("SchedulerParameters+=bf_max_job_test=1000", "bf_interval=30,bf_continue,bf_max_job_test=1000"),
        ("SchedulerParameters+=bf_interval=60", "bf_interval=60,bf_continue"),
        ("schedulerparameters-=bf_continue", "bf_interval=30"),
        ("SchedulerParameters=bf_window=2880", "bf_window=2880"),
    ):
        assert changed(text, setting).slurm["SchedulerParameters"] == value
    assert changed("PriorityWeightAge=5", setting).slurm["PriorityWeightAge"] == "5"
    for text, said in (
        ("SchedulerParameters-=bf_window", ("unknown_name", "bf_interval", "bf_continue")),
        ("PriorityWeightAge+=5", ("wrong_operator", "+=")),
    ):
        with raises(PolicyError, *said):
            apply_change(parse_change(text), setting)
