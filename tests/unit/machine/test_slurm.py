"""What Slurm says of a cluster as a machine: all forms, hostile texts, bad input, and that nothing is lost without a word."""

import json
import shlex
from datetime import datetime

import pytest

from tests.cli import call, one_line
from tests.errors import raises
from tests.slurm_text import samples
from walltime.errors import LogError
from walltime.machine import Limit, Outage, Partition, Pool, Qos, Reservation, Share, read_machine, write_machine
from walltime.machine.machine import parse_machine
from walltime.slurm import read_cluster
from walltime.slurm.client import CLUSTER
from walltime.slurm.cluster import parse_cluster
from walltime.slurm.features import NAMES
from walltime.slurm.records import expand

CONFIG = """\
Configuration data as of 2026-03-02T10:00:00
AccountingStorageEnforce = associations,limits,qos
AuthInfo                = socket=/secret
ClusterName             = lab
PreemptType             = preempt/none
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
SchedulerParameters     = bf_interval=30,bf_max_job_test=200
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE
SlurmctldHost[0]        = head(127.0.0.1)
SLURM_VERSION           = 22.05.8

Slurmctld(primary) at head is UP
"""
PARTITIONS = """\
PartitionName=debug
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=few
   DefaultTime=NONE MaxNodes=2 MaxTime=UNLIMITED MinNodes=0 MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-4]
   PriorityJobFactor=5 PriorityTier=2 OverSubscribe=NO PreemptMode=OFF
   State=UP TotalCPUs=16 TotalNodes=4

PartitionName=main
   AllowGroups=physics AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 MaxNodes=UNLIMITED MaxTime=7-00:00:00 MinNodes=0 MaxCPUsPerNode=2
   Nodes=n[1-4],g1
   PriorityJobFactor=1 PriorityTier=1 OverSubscribe=NO PreemptMode=OFF
   State=UP TotalCPUs=24 TotalNodes=5

"""


def node(name: str, cpus: int = 4, gres: str = "(null)", state: str = "IDLE", partitions: str = "debug,main", more: str = "") -> str:
    """A line of `scontrol -o show node`."""
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.5 AvailableFeatures=(null) "
        f"Gres={gres} OS=Linux 6.1 #1 SMP  RealMemory=4096 AllocMem=0 Sockets=4 State={state} ThreadsPerCore=1 Weight=1 Owner=N/A "
        f"Partitions={partitions}  BootTime=2026-11-20T20:56:39 CfgTRES=cpu={cpus} AllocTRES={more}\n"
    )


BROKEN = " Reason=fan=broken State=IDLE [root@2026-02-01T10:00:00]"
NODES = "".join(node(f"n{k}") for k in range(1, 5)) + node("g1", 8, "gpu:a100:2(S:0-1),gpu:t4:1", partitions="main")
RESERVATIONS = (
    "ReservationName=upgrade StartTime=2026-03-10T08:00:00 EndTime=2026-03-11T18:00:00 Duration=1-10:00:00\n"
    "   Nodes=n[3-4],g1 NodeCnt=3 CoreCnt=16 Features=(null) PartitionName=main Flags=MAINT,SPEC_NODES\n"
    "   TRES=cpu=16\n   Users=root Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)\n\n"
    "ReservationName=course StartTime=2026-03-10T08:00:00 EndTime=2026-03-10T18:00:00 Nodes=n1 Flags=SPEC_NODES Users=ann\n\n"
)
ASSOCIATIONS = """\
Cluster|Account|User|Partition|ParentName|Share|GrpJobs|GrpTRES|GrpTRESMins|GrpTRESRunMins|MaxJobs|MaxTRES|MaxTRESMins
lab|root|||||||||||
lab|physics|||root|3|||||||
lab|physics|ann|||parent|||||5||
lab|physics|ann|debug||2|||||||
other|optics|||root|1|||||||
"""
QOS = """\
Name|Priority|Flags|UsageFactor|Preempt|GrpJobs|GrpTRES|GrpTRESMins|GrpTRESRunMins|MaxJobsPU|MaxTRESPU|MaxJobsPA|MaxTRESPA|MaxTRES|MaxTRESMins
normal|0||1.000000|||||||||||
few|10||1.000000||7|cpu=12,node=3||||gres/gpu=2|3|||
"""
ALL = CONFIG + PARTITIONS + NODES + RESERVATIONS + ASSOCIATIONS + QOS


def read(tmp_path, *texts):
    """The cluster of files with these texts."""
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.txt").write_bytes(text.encode() if isinstance(text, str) else text)
    return read_cluster(*(tmp_path / f"{k}.txt" for k in range(len(texts))))


def test_everything_in_one_file_or_each_in_its_own(tmp_path):
    one = read(tmp_path, ALL)
    assert one == read(tmp_path, QOS, ASSOCIATIONS, NODES, RESERVATIONS, PARTITIONS, CONFIG)
    machine = one.machine
    assert (machine.name, machine.policy, machine.second) == ("lab", "slurm", "gpus")
    assert machine.pools == (Pool("n", 4, 4), Pool("g", 1, 8, gpu_types={"a100": 2, "t4": 1}))
    assert machine.partitions == (
        Partition("main", ("n", "g"), tier=1, max_time=604_800),
        Partition("debug", ("n",), tier=2, job_factor=5),
    )
    begin, end = datetime(2026, 3, 10, 8), datetime(2026, 3, 11, 18)
    assert machine.outages == (Outage("g", begin, end, 1, 0), Outage("n", begin, end, 2, 0))
    assert machine.limits == (
        Limit(("user",), "debug", second=2),
        Limit(("group",), "debug", jobs=3),
        Limit((), "debug", jobs=7, procs=12, resources={"node": 3}),
        Limit(("group", "user"), "main", jobs=5),  # normal has none, and few goes before it in debug
    )
    assert machine.shares == (Share("root"), Share("physics", parent="root", shares=3), Share("physics", "ann"))
    assert machine.qos == (Qos("normal", 0), Qos("few", 10))
    assert machine.slurm["SchedulerParameters"] == "bf_interval=30,bf_max_job_test=200"
    assert machine.slurm["SLURM_VERSION"] == "22.05.8"
    assert "AuthInfo" not in machine.slurm
    assert "SlurmctldHost[0]" not in machine.slurm


LICENCES = "LicenseName=matlab\n    Total=30 Used=2 Free=28 Reserved=0 Remote=no\n    LastConsumed=0 LastDeficit=0 LastUpdate=Unknown\n"


@pytest.mark.parametrize(
    ("text", "licences"),
    [
        ("No licenses configured in Slurm.\n", {}),
        (LICENCES, {"matlab": 30}),
        (LICENCES + LICENCES.replace("matlab", "idl").replace("=30", "=2"), {"matlab": 30, "idl": 2}),
        ("LicenseName=matlab Total=30 Used=2 Free=28 Reserved=0 Remote=no\n", {"matlab": 30}),
    ],
)
def test_licences__have_a_file_of_their_own(tmp_path, text, licences):
    found = read(tmp_path, text, ALL)
    assert found.machine.licences == licences
    assert not any("not understood" in note for note in found.notes)


def test_what_cannot_be_expressed_is_said(golden, tmp_path):
    golden("slurm-cluster", read(tmp_path, ALL).notes)


def test_the_file_holds_the_machine_and_the_notes(tmp_path):
    found = read(tmp_path, ALL)
    (tmp_path / "machine.toml").write_text(found.text())
    again = read_machine(tmp_path / "machine.toml")
    assert (again, again.notes) == (found.machine, found.machine.notes)
    assert len(again.notes) == len(set(found.notes)) == 6


@pytest.mark.parametrize(
    ("setting", "policy", "said"),
    [
        ("sched/builtin", "fcfs", ""),
        ("sched/backfill", "slurm", ""),
        ("sched/wiki", "slurm", "Not modelled: other schedulers (SchedulerType=sched/wiki"),
    ],
)
def test_the_scheduler_is_a_policy(tmp_path, setting, policy, said):
    found = read(tmp_path, CONFIG.replace("sched/backfill", setting), NODES)
    assert found.machine.policy == policy
    assert said in " ".join(found.notes)


@pytest.mark.parametrize(
    ("state", "gone"),
    [
        *[(state, True) for state in ("DOWN", "DOWN*", "IDLE+DRAIN", "MIXED+DRAIN", "DOWN+DRAIN+NOT_RESPONDING", "FAIL", "drained")],
        *[
            (state, False)
            for state in ("IDLE", "MIXED", "ALLOCATED+COMPLETING", "IDLE+PLANNED", "IDLE+POWERED_DOWN", "idle~", "IDLE+CLOUD")
        ],
    ],
)
def test_nodes_that_take_no_jobs_are_missing_from_the_time_of_the_reason(golden, tmp_path, state, gone):
    found = read(tmp_path, node("n1") + node("n2", state=state, more=BROKEN))
    assert found.machine.outages == ((Outage("n", datetime(2026, 2, 1, 10), None, 1),) if gone else ())
    golden("slurm-cluster", found.notes)


@pytest.mark.parametrize("more", ["", " Reason=broken", " Reason=broken [root@Unknown]"])
def test_a_node_that_is_down_now_says_nothing_about_the_past(golden, tmp_path, more):
    """Only the state at present, as of a snapshot, has it missing."""
    text = node("n1") + node("n2", state="DOWN+DRAIN", more=more)
    found = read(tmp_path, text)
    assert found.machine.outages == ()
    assert parse_cluster([("now", text)], at_present=True).machine.outages == (Outage("n", 0, None, 1),)
    golden("slurm-cluster", found.notes)


def test_nodes_that_are_down__until_slurm_printed_its_settings(tmp_path):
    down = node("n1") + node("n2", state="DOWN", more=BROKEN) + node("n3", state="DOWN", more=BROKEN.replace("02-01", "02-03"))
    printed = datetime(2026, 3, 2, 10)
    found = read(tmp_path, CONFIG, down).machine
    assert found.outages == (Outage("n", datetime(2026, 2, 1, 10), printed, "2"), Outage("n", datetime(2026, 2, 3, 10), printed, 1))
    later = read(tmp_path, CONFIG, down.replace("2026-02", "2026-04")).machine  # of another day: the end is unknown
    assert [one.end for one in later.outages] == [None, None]


def test_nodes_down_during_maintenance_are_missing_once(golden, tmp_path):
    down = NODES.replace("NodeName=n4", f"NodeName=n4 State=DOWN {BROKEN}")
    found = read(tmp_path, down, RESERVATIONS)
    assert [(outage.pool, outage.nodes) for outage in found.machine.outages] == [("g", 1), ("n", "3"), ("n", 1)]
    assert found.machine.outages[-1].begin == datetime(2026, 2, 1, 10)
    both = read(tmp_path, CONFIG.replace("03-02T10", "03-10T12"), down.replace("02-01", "03-10"), RESERVATIONS).machine.outages[-1]
    assert (both.begin, both.end) == (datetime(2026, 3, 10, 8), datetime(2026, 3, 11, 18))
    before = read(tmp_path, down.replace("02-01", "03-12"), RESERVATIONS).machine.outages
    assert [outage.nodes for outage in before] == [1, 2, 1]
    twice = read(tmp_path, NODES, RESERVATIONS + RESERVATIONS.replace("=upgrade", "=again").replace("2026-03-11T18", "2026-03-11T19"))
    assert len(twice.machine.outages) == 2
    golden("slurm-cluster", twice.notes)


def test_past_reservations_of_sacctmgr_are_outages_once(tmp_path):
    past = (
        "Cluster|Name|TimeStart|TimeEnd|Flags|NodeNames\n"
        "lab|upgrade|2026-03-10T08:00:00|2026-03-11T18:00:00|MAINT,SPEC_NODES|n[3-4],g1\n"
        "lab|repair|2026-01-10T08:00:00|2026-01-10T12:00:00|MAINT|n[1-2]\n"
        "lab|course|2026-01-12T08:00:00|2026-01-12T12:00:00||n1\n"
    )
    found = read(tmp_path, NODES, RESERVATIONS, past)
    assert found.machine.outages[2:] == (Outage("n", datetime(2026, 1, 10, 8), datetime(2026, 1, 10, 12), "1-2", 0),)
    times = [(datetime(2026, 3, 10, 8), datetime(2026, 3, 10, 18)), (datetime(2026, 1, 12, 8), datetime(2026, 1, 12, 12))]
    assert found.machine.reservations == tuple(Reservation("course", "n", *time, "1", 0, ("ann",)) for time in times)
    unknown = read(
        tmp_path, NODES, "Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\nlab|old|cpu=16|2026-01-02T03:04:05|2026-01-02T04:04:05|0\n"
    )
    assert [note.text for note in unknown.machine.notes if note.feature == "reservations in other forms"] == ["old"]


def test_reservations_of_users_are_tables_for_each_pool(tmp_path):
    """A repeated one of scontrol is repeated from then on; sacctmgr has its past times, and no users."""
    times = "StartTime=2026-03-10T08:00:00 EndTime=2026-03-10T10:00:00"
    shown = (
        f"ReservationName=course {times} Nodes=n[1,3],g1 Flags=DAILY,SPEC_NODES,FLEX Users=ann,bob Accounts=(null)\n"
        f"ReservationName=all {times} Nodes=n[1-4] Flags=MAGNETIC,PURGE_COMP=00:05:00 Users=(null) Accounts=physics,-math\n"
    )
    past = "Cluster|Name|TimeStart|TimeEnd|Flags|NodeName\nlab|course|2026-03-09T08:00:00|2026-03-09T10:00:00|DAILY,FLEX|g1\n"
    found = read(tmp_path, NODES, shown, past).machine
    day, users = (datetime(2026, 3, 10, 8), datetime(2026, 3, 10, 10)), ("ann", "bob")
    assert found.reservations == (
        Reservation("course", "g", *day, 1, 0, users, (), ("FLEX", "DAILY")),
        Reservation("course", "n", *day, "1,3", 0, users, (), ("FLEX", "DAILY")),
        Reservation("all", "n", *day, 4, 0, (), ("physics",), ()),
        Reservation("course", "g", datetime(2026, 3, 9, 8), datetime(2026, 3, 9, 10), 1, 0, users, (), ("FLEX",)),
    )
    assert [note.text for note in found.notes if note.feature == "reservations in other forms"] == ["all"]


def test_licences_are_counted_over_the_machine(tmp_path):
    found = read(tmp_path, CONFIG + "Licenses = matlab:4,idl\n", NODES).machine
    assert found.licences == {"matlab": 4, "idl": 1}


def test_nodes_that_are_not_there(golden, tmp_path):
    found = read(tmp_path, node("n1") + node("n2", state="FUTURE") + node("n3", partitions="") + node("n4", 0))
    assert found.machine.pools == (Pool("n", 1, 4),)
    golden("slurm-cluster", found.notes)


def test_memory_is_the_second_resource_where_it_is_allocated(golden, tmp_path):
    found = read(tmp_path, CONFIG.replace("CR_CORE", "CR_CORE_MEMORY"), node("n1"))
    assert (found.machine.second, found.machine.pools[0].second) == ("mem_mb", 4096)
    both = read(tmp_path, CONFIG.replace("CR_CORE", "CR_CORE_MEMORY"), NODES)
    assert both.machine.second == "gpus"
    golden("slurm-cluster", both.notes)


def test_whole_nodes(golden, tmp_path):
    whole = PARTITIONS.replace("PriorityTier=2 OverSubscribe=NO", "PriorityTier=2 OverSubscribe=EXCLUSIVE")
    assert [one.exclusive for one in read(tmp_path, whole, NODES).machine.partitions] == [False, True]
    linear = read(tmp_path, CONFIG.replace("cons_tres", "linear"), PARTITIONS, NODES)
    assert [one.exclusive for one in linear.machine.partitions] == [False, True]
    golden("slurm-cluster", linear.notes)
    newer = PARTITIONS.replace("OverSubscribe=NO", "OverSubscribe=NO Exclusive=NODE")
    assert [one.exclusive for one in read(tmp_path, newer, NODES).machine.partitions] == [False, True]
    shared = read(tmp_path, PARTITIONS.replace("PriorityTier=2 OverSubscribe=NO", "PriorityTier=2 OverSubscribe=FORCE:4"), NODES)
    golden("slurm-cluster", shared.notes)


def test_lighter_nodes_are_taken_first(tmp_path):
    found = read(tmp_path, node("fat1").replace("Weight=1", "Weight=20") + node("thin1"))
    assert found.machine.partitions[0].pools == ("thin", "fat")


def test_partitions_that_are_not_up_or_have_no_nodes(golden, tmp_path):
    found = read(tmp_path, PARTITIONS.replace("State=UP", "State=DOWN") + "PartitionName=empty\n   Nodes=(null) State=UP\n", NODES)
    assert [one.name for one in found.machine.partitions] == ["main", "debug"]
    golden("slurm-cluster", found.notes)
    fewer = read(tmp_path, PARTITIONS, node("n1"))
    golden("slurm-cluster", fewer.notes)


@pytest.mark.parametrize("known", [True, False])
def test_hidden_partitions__are_named_as_unknown(tmp_path, known):
    secret = "PartitionName=secret Hidden=YES MaxTime=1-00:00:00 Nodes=n1 State=UP TotalNodes=1\n" if known else ""
    found = read(tmp_path, PARTITIONS + secret, node("n1", partitions="main,secret") + node("n2"))
    (limit,) = [one.max_time for one in found.machine.partitions if one.name == "secret"]
    told = [note for note in found.notes if "secret" in note]
    assert (limit, told == []) == ((86_400, True) if known else (None, False))
    assert all("--all" in note for note in told)


def test_limits_that_are_not_enforced_are_none(golden, tmp_path):
    found = read(tmp_path, CONFIG.replace("associations,limits,qos", "none"), PARTITIONS, NODES, ASSOCIATIONS, QOS)
    assert found.machine.limits == ()
    golden("slurm-cluster", found.notes)


def test_the_only_quality_of_service_limits_all_jobs(golden, tmp_path):
    only = "\n".join(QOS.splitlines()[::2]).replace("few|10", "normal|0") + "\n"
    assert read(tmp_path, NODES, only).machine.limits[0] == Limit(("user",), None, second=2)
    several = read(tmp_path, NODES, QOS)
    assert several.machine.limits[0] == Limit(("queue", "user"), second=2, only=("few",))
    golden("slurm-cluster", several.notes)


# ---------------------------------------------------------------------------------------------------------------------- limits


def table(heading: str, *rows: dict[str, str]) -> str:
    """A table of sacctmgr --parsable2 with these values."""
    names = heading.split("|")
    return "\n".join([heading, *("|".join(row.get(name, "") for name in names) for row in rows)]) + "\n"


def qos(*rows: dict[str, str]) -> str:
    return table(CLUSTER["qos"][-1].removeprefix("format=").replace(",", "|"), *rows)


def associations(*rows: dict[str, str]) -> str:
    return table(CLUSTER["associations"][-1].removeprefix("format=").replace(",", "|"), *rows)


def limits(tmp_path, *texts: str) -> list[Limit]:
    return list(read(tmp_path, CONFIG, *texts).machine.limits)


SHORT = {"Name": "short", "MaxTRESPU": "cpu=8,gres/gpu=2", "MaxJobsPA": "4", "GrpJobs": "9"}
LONG = {"Name": "long", "GrpTRES": "cpu=16", "MaxJobsPU": "3", "MaxWall": "7-00:00:00", "MaxTRES": "cpu=8"}


def test_limits_of_several_qos_hold_for_their_jobs(tmp_path):
    assert limits(tmp_path, PARTITIONS.replace("QoS=few", "QoS=N/A"), NODES, qos(SHORT, LONG)) == [
        Limit(("queue", "user"), procs=8, second=2, only=("short",)),
        Limit(("queue", "group"), jobs=4, only=("short",)),
        Limit(("queue",), jobs=9, only=("short",)),
        Limit(("queue", "user"), jobs=3, only=("long",)),
        Limit(("queue",), procs=16, only=("long",)),
    ]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", [Limit(("user",), "debug", procs=2), Limit(("queue", "user"), "main", procs=8, only=("short",))]),
        (
            "DenyOnLimit,OverPartQOS",
            [
                Limit(("user",), "debug", procs=2, among={"queue": ("long",)}),
                Limit(("queue", "user"), procs=8, only=("short",)),
            ],
        ),
    ],
)
def test_the_qos_of_a_partition_goes_before_that_of_the_job(tmp_path, flags, expected):
    few, short = {"Name": "few", "MaxTRESPU": "cpu=2"}, {"Name": "short", "MaxTRESPU": "cpu=8", "Flags": flags}
    assert limits(tmp_path, PARTITIONS, NODES, qos(few, short, {"Name": "long"})) == expected


def test_a_qos_of_several_partitions_counts_their_jobs_together(tmp_path):
    both = PARTITIONS.replace("QoS=N/A", "QoS=few")
    assert limits(tmp_path, both, NODES, qos({"Name": "few", "GrpTRES": "cpu=2"}, {"Name": "normal"})) == [
        Limit((), procs=2, among={"partition": ("main", "debug")})
    ]


ACCOUNTS = (
    {"Account": "root"},
    {"Account": "science", "ParentName": "root", "GrpTRES": "cpu=20"},
    {"Account": "physics", "ParentName": "science", "MaxJobs": "6"},
    {"Account": "optics", "ParentName": "science"},
    {"Account": "physics", "User": "ann", "MaxJobs": "2"},
    {"Account": "physics", "User": "bob"},
    {"Account": "optics", "User": "ann", "GrpTRES": "cpu=3"},
)


def test_limits_of_associations_hold_where_no_qos_has_them(tmp_path):
    rows = associations(*({"Cluster": "lab"} | row for row in ACCOUNTS))
    each, plain = ("group", "user"), PARTITIONS.replace("QoS=few", "QoS=N/A")
    below = {"group": ("science", "physics", "optics")}
    assert limits(tmp_path, plain, NODES, rows) == [
        Limit(each, jobs=2, among={"group": ("physics",), "user": ("ann",)}),
        Limit(each, jobs=6, among={"group": ("physics",), "user": ("bob",)}),
        Limit(each, procs=3, among={"group": ("optics",)}),
        Limit((), procs=20, among=below),
    ]
    free = qos({"Name": "normal"}, {"Name": "wide", "GrpTRES": "cpu=1000"})
    assert limits(tmp_path, plain, NODES, rows, free)[-1] == Limit((), procs=20, among={"queue": ("normal",)} | below)
    assert limits(tmp_path, plain, NODES, rows, qos({"Name": "wide", "GrpTRES": "cpu=1000"})) == [
        Limit((), procs=1000),
        *(Limit(each, jobs=most, among={"group": ("physics",), "user": (user,)}) for most, user in ((2, "ann"), (6, "bob"))),
    ]


def test_limits_on_what_a_machine_does_not_have_are_noted(golden, tmp_path):
    rare = {
        "Name": "rare",
        "GrpTRES": "node=2,gres/gpu:a100=1,mem=2G,license/cad=3,bb/x=4,billing=9",
        "GrpWall": "600",
        "MaxTRESRunMinsPU": "mem=9",
        "UsageFactor": "2.000000",
    }
    found = read(tmp_path, CONFIG, NODES, qos(rare | {"Flags": "NoReserve,DenyOnLimit"}), associations({"Account": "a", "MaxWall": "60"}))
    resources = {"node": 2, "mem": 2048, "license/cad": 3}
    assert found.machine.limits == (Limit((), resources={**resources, "gres/gpu:a100": 1}),)
    assert parse_machine(write_machine(found.machine), "here").limits == found.machine.limits
    golden("slurm-cluster", found.notes)
    one_type = read(tmp_path, CONFIG, NODES.replace(",gpu:t4:1", ""), qos(rare))
    assert one_type.machine.limits == (Limit((), second=1, resources=resources),)


def test_minutes_of_running_jobs(tmp_path):
    """Those of the QOS come before those of the account; the machine file has them as run_minutes."""
    rows = qos({"Name": "normal"}, {"Name": "long", "MaxTRESRunMinsPU": "cpu=9", "GrpTRESRunMins": "cpu=100,mem=7"})
    accounts = {"Account": "root"}, {"Account": "a", "ParentName": "root", "GrpTRESRunMins": "cpu=50"}
    users = associations(*({"Cluster": "lab", **row} for row in accounts))
    found = read(tmp_path, CONFIG, NODES, rows, users)
    assert found.machine.limits == (
        Limit(("queue", "user"), only=("long",), run_minutes=9),
        Limit(("queue",), only=("long",), run_minutes=100),
        Limit((), among={"queue": ("normal",), "group": ("a",)}, run_minutes=50),
    )
    assert "limits on other resources" in {note.feature for note in found.machine.notes}
    assert parse_machine(write_machine(found.machine), "m.toml").limits == found.machine.limits


def test_fair_share_of_qos_and_associations(tmp_path):
    """Priorities of associations, use factors and NoReserve are read; outputs without these columns have the defaults."""
    rows = qos({"Name": "normal"}, {"Name": "scavenger", "UsageFactor": "0.250000", "Flags": "NoReserve,DenyOnLimit"})
    of_users = {"User": "ann"}, {"User": "bob", "Priority": "5"}
    users = associations(*({"Cluster": "lab", "Account": "a", "Share": "1", **row} for row in ({"Priority": "30"}, *of_users)))
    found = read(tmp_path, CONFIG, NODES, rows, users).machine
    assert [(one.name, one.usage_factor, one.no_reserve) for one in found.qos] == [("normal", 1.0, False), ("scavenger", 0.25, True)]
    assert [(one.user, one.priority) for one in found.shares] == [(None, 30), ("ann", None), ("bob", 5)]
    assert parse_machine(write_machine(found), "m.toml") == found
    with raises(LogError, "wrong_value", "UsageFactor", "'twice'"):
        read(tmp_path, CONFIG, NODES, qos({"Name": "normal", "UsageFactor": "twice"}))


def test_every_silent_feature_is_noted(tmp_path):
    settings = (
        "TopologyPlugin = topology/tree\nFairShareDampeningFactor = 5\nSuspendTime = 300 sec\nResvOverRun = 5 min\nLicenses = matlab:4\n"
    )
    config = CONFIG.replace("CR_CORE", "CR_CORE_MEMORY,CR_PACK_NODES,CR_ONE_TASK_PER_CORE") + settings
    partitions = PARTITIONS.replace("PreemptMode=OFF", "PreemptMode=OFF LLN=YES Unheard=1")
    nodes = NODES.replace("AvailableFeatures=(null)", "AvailableFeatures=intel,fast") + node(
        "m1", gres="gpu:1g.10gb:7,mps:100", partitions="main"
    )
    found = read(tmp_path, config, partitions, nodes, RESERVATIONS)
    expected = {"other generic resources", "cores bound to GPUs", "topology"}
    expected |= {"Unheard", "packing of tasks", "one task per core", "power saving", "overrun of reservations"}
    expected |= {"processors per node and partition"}
    assert found.machine.slurm["FairShareDampeningFactor"] == "5"
    assert {note.feature for note in found.machine.notes} - {""} == expected
    assert expected - {"Unheard"} <= NAMES
    assert {(pool.features, pool.memory > 0) for pool in found.machine.pools} == {(("fast", "intel"), True), ((), True)}
    assert [(one.name, one.least_loaded) for one in found.machine.partitions] == [("main", True), ("debug", True)]
    apart = read(
        tmp_path, node("a", gres="gpu:a100:2", partitions="x") + node("b", gres="gpu:t4:2", partitions="y") + node("c", partitions="x")
    )
    assert [note.feature for note in apart.machine.notes if note.feature] == []
    assert [pool.gpu_type for pool in apart.machine.pools] == ["a100", "t4", ""]


def test_nodes_with_several_types_of_gpus(tmp_path):
    """MIG profiles are types; GPUs without a type, next to typed ones, make a node's GPUs one kind, which is noted."""
    nodes = node("a", gres="gpu:a100:2(S:0-1),gpu:1g.10gb:14(S:0-1)", partitions="x") + node("b", gres="gpu:a100:4", partitions="x")
    found = read(tmp_path, nodes + node("c", gres="gpu:a100:2,gpu:1", partitions="y")).machine
    assert [(pool.second, dict(pool.by_type)) for pool in found.pools] == [(16, {"a100": 2, "1g.10gb": 14}), (4, {"a100": 4}), (3, {})]
    assert found.type_rows == {"a100": 0, "1g.10gb": 1}
    assert [dict(note.above) for note in found.notes if note.feature == "GPU types"] == [{"y": 0}]
    assert parse_machine(write_machine(found), "m.toml") == found


def test_features_that_most_nodes_have_alone__are_left_out(tmp_path):
    nodes = "".join(node(f"n{k}", partitions="x").replace("AvailableFeatures=(null)", f"AvailableFeatures=rack{k}") for k in range(40))
    found = read(tmp_path, nodes)
    assert [(pool.nodes, pool.features) for pool in found.machine.pools] == [(40, ())]
    [features] = [note for note in found.machine.notes if note.feature == "node features"]
    assert features.above == {"x": 0}


# ------------------------------------------------------------------------------------------------------------------------ JSON


def sinfo(*nodes: str, cpus: tuple[int, int] = (4, 4), partition: str = "main", state: str = "IDLE") -> dict[str, object]:
    """An entry of sinfo --json of Slurm 24.11."""
    limit = {"set": True, "infinite": False, "number": 90}
    return {
        "node": {"state": [state]},
        "nodes": {"nodes": list(nodes)},
        "cpus": {"minimum": cpus[0], "maximum": cpus[1]},
        "memory": {"minimum": 4096, "maximum": 4096},
        "weight": {"minimum": 1, "maximum": 1},
        "gres": {"total": ""},
        "partition": {
            "name": partition,
            "flags": ["DEFAULT"] if partition == "main" else [],
            "nodes": {"configured": ",".join(nodes)},
            "maximums": {"time": limit},
            "partition": {"oversubscribe": "EXCLUSIVE", "state": ["UP"]},
            "priority": {"tier": 3, "job_factor": 2},
            "qos": {"assigned": ""},
        },
    }


def test_sinfo_of_newer_versions(tmp_path):
    entries = [sinfo("n1", "n2"), sinfo("n3", state="DOWN"), sinfo("n3", partition="debug", state="DOWN")]
    for entry in entries[1:]:
        entry["reason"] = {"description": "broken fan", "time": {"set": True, "infinite": False, "number": 1769940000}, "user": {}}
    machine = read(tmp_path, json.dumps({"sinfo": entries})).machine
    assert machine.pools == (Pool("n", 2, 4), Pool("n-2", 1, 4))
    assert machine.partitions == (Partition("main", ("n", "n-2"), True, 3, 5400, 2), Partition("debug", ("n-2",), True, 3, 5400, 2))
    assert machine.outages == (Outage("n-2", datetime(2026, 2, 1, 10), None, 1),)


def test_nodes_and_partitions_of_slurmrestd(golden, tmp_path):
    common = {"cpus": 4, "real_memory": 4096, "partitions": ["main"]}
    down = {"state": ["DOWN", "DRAIN"], "reason": "broken fan", "reason_changed_at": {"set": True, "infinite": False, "number": 1769940000}}
    nodes = [{"name": "n1", "state": ["IDLE"], "reason_changed_at": {"set": True, "number": 0}}, {"name": "n2", **down}]
    maximums = {"time": {"set": True, "number": 1440}, "oversubscribe": {"jobs": 1}}
    main = {"name": "main", "flags": ["DEFAULT"], "nodes": {"configured": "n[1-2]"}, "maximums": maximums}
    main |= {"defaults": {"time": {"set": True, "number": 60}}, "priority": {"tier": 1, "job_factor": 1}}
    found = read(tmp_path, json.dumps({"nodes": [common | one for one in nodes]}), json.dumps({"partitions": [main]}))
    assert found.machine.outages == (Outage("n", datetime(2026, 2, 1, 10), None, 1),)
    golden("slurm-cluster", found.notes)


def test_nodes_of_scontrol_go_before_those_of_sinfo(tmp_path):
    found = read(tmp_path, json.dumps({"sinfo": [sinfo("n1", cpus=(64, 64))]}), node("n1", partitions="main"))
    assert found.machine.procs == 4
    assert found.machine.partitions[0].tier == 3


def test_nodes_that_sinfo_lumps_together(tmp_path):
    with raises(LogError, "ambiguous_nodes", "2", "4", "8"):
        read(tmp_path, json.dumps({"sinfo": [sinfo("n1", "n2", cpus=(4, 8))]}))


# ------------------------------------------------------------------------------------------------------------- hostile and bad


def test_comments_cannot_say_anything_anew(tmp_path):
    evil = 'Comment=x CPUTot=9999 Partitions=evil State=DOWN Reason=y NodeName=n9 Extra=\x1b[31m"\\\N{RIGHT-TO-LEFT OVERRIDE}'
    assert read(tmp_path, node("n1", more=f" {evil}")).machine == read(tmp_path, node("n1")).machine


def test_hostile_names_are_harmless(tmp_path):
    name = 'a"\\\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}x'
    text = f"PartitionName={name}\n   Nodes=n1 OverSubscribe=FORCE:2 AllowGroups=b State=EVIL\x07\n"
    found = read(tmp_path, text, node("n1", partitions=name), "MaxArraySize = 1\x1b\n")
    assert all(note.isprintable() for note in found.notes)
    assert len(found.notes) == 3
    (tmp_path / "machine.toml").write_text(found.text())
    assert read_machine(tmp_path / "machine.toml") == found.machine


@pytest.mark.parametrize(
    "text",
    [
        "",
        "JobID|State\n1|COMPLETED\n",
        b"\x1f\x8b\xff\x00",
        CONFIG,
        node("n1", partitions="(null)"),
        node("n1").replace("CPUEfctv=4", "CPUEfctv=four"),
        NODES + RESERVATIONS.replace("2026-03-10T08:00:00", "1772442000"),
        NODES + RESERVATIONS.replace("n[3-4]", "n[3-999999999]"),
        NODES + RESERVATIONS.replace("n[3-4]", "n[a-b]"),
        PARTITIONS.replace("7-00:00:00", "long") + NODES,
        '{"jobs": []}',
        "{",
        '{"a":' * 100_000,
        '{"sinfo": [{}]}',
        '{"nodes": [7]}',
    ],
)
def test_bad_input_is_one_line(golden, tmp_path, capsys, text):
    (tmp_path / "x.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    golden("slurm-cluster", one_line(*call(capsys, "slurm", "cluster", tmp_path / "x.txt")))


def test_a_missing_file_is_one_line(golden, tmp_path, capsys):
    golden("slurm-cluster", one_line(*call(capsys, "slurm", "cluster", tmp_path / "no")))


@pytest.mark.slow
def test_lists_of_nodes():
    assert expand("n[1-3,07-08],login") == ["n1", "n2", "n3", "n07", "n08", "login"]
    with raises(LogError, "too_many_nodes", "1,000,000"):
        expand("r[1-2000]c[1-2000]")


# ------------------------------------------------------------------------------------------------------------- the command line


def test_the_command_makes_a_file(golden, tmp_path, capsys):
    (tmp_path / "cluster.txt").write_text(ALL)
    status, out, err = call(capsys, "slurm", "cluster", tmp_path / "cluster.txt", "--out", tmp_path / "machine.toml")
    assert (status, err) == (0, "")
    first = "nodes 5, processors 24, GPUs 3, pools 2, partitions 2, outages 2, limits 4, shares 3, QOS 2; policy slurm"
    assert out.splitlines()[0] == first
    golden("slurm-cluster", out)
    assert out.splitlines()[-1] == f"written to {tmp_path / 'machine.toml'}"
    assert call(capsys, "slurm", "cluster", tmp_path / "cluster.txt")[1] == (tmp_path / "machine.toml").read_text()
    facts = json.loads(call(capsys, "slurm", "cluster", tmp_path / "cluster.txt", "--json")[1])
    assert (facts["machine"], facts["policy"], facts["nodes"], len(facts["notes"])) == ("lab", "slurm", 5, 6)


def test_the_command_to_run_on_the_cluster(capsys):
    status, out, _ = call(capsys, "slurm", "cluster-command", "--out", "a b.txt")
    assert status == 0
    assert out.startswith("{ scontrol show config; ")
    assert out.endswith("; } > 'a b.txt'\n")
    assert all(shlex.join(words) in out for words in CLUSTER.values())
    assert json.loads(call(capsys, "slurm", "cluster-command", "--json")[1])["command"].endswith("> cluster.txt")


@pytest.mark.parametrize("version", ["", "24.11", "26.05"])
def test_outputs_of_real_clusters(golden, version):
    folder = samples() / version
    names = ("config", "partition", "node")
    files = [folder / f"scontrol-show-{name}.txt" for name in names if (folder / f"scontrol-show-{name}.txt").exists()]
    by_text, by_json = read_cluster(*files), read_cluster(folder / "sinfo.json")
    assert by_json.machine.pools == (Pool("n", 4, 4),)
    assert {one.name for one in by_json.machine.partitions} == {"main", "debug"} == {one.name for one in by_text.machine.partitions}
    if version:
        assert by_json.machine.partitions == by_text.machine.partitions
        assert by_text.machine.slurm["SLURM_VERSION"].startswith(version)
        golden("slurm-cluster", by_text.notes)  # only n1 was saved


def test_preemption__by_partition(tmp_path):
    config = CONFIG.replace("preempt/none", "preempt/partition_prio\nPreemptMode = REQUEUE")
    partitions = PARTITIONS.replace("PreemptMode=OFF", "PreemptMode=REQUEUE GraceTime=120", 1)
    found = read(tmp_path, config, partitions, NODES)
    assert [(one.name, one.preempt, one.grace) for one in found.machine.partitions] == [("main", "off", 0), ("debug", "requeue", 120)]
    assert [note for note in found.machine.notes if "reempt" in str(note)] == []
    off = read(tmp_path, config.replace("= REQUEUE", "= OFF"), partitions, NODES)
    assert not off.machine.preempts
    suspended = read(tmp_path, config, partitions.replace("=REQUEUE", "=SUSPEND"), NODES)
    assert not suspended.machine.preempts
    assert "suspension" in {note.feature for note in suspended.machine.notes}


def test_preemption__by_qos(tmp_path):
    config = CONFIG.replace("preempt/none", "preempt/qos\nPreemptMode = CANCEL")
    rows = (
        {"Name": "high", "Priority": "10", "Preempt": "low,idle", "GraceTime": "00:00:00", "PreemptMode": "cluster"},
        {"Name": "low", "GraceTime": "00:01:00", "PreemptMode": "cluster", "PreemptExemptTime": "00:10:00"},
        {"Name": "idle", "GraceTime": "00:00:00", "PreemptMode": "requeue"},
    )
    names = ("Name", "Priority", "Flags", "UsageFactor", "Preempt", "PreemptMode", "GraceTime", "PreemptExemptTime")
    table = "\n".join("|".join(row.get(name, "") for name in names) for row in (dict(zip(names, names, strict=True)), *rows)) + "\n"
    assert read(tmp_path, config, NODES, table).machine.qos == (
        Qos("high", 10, preempts=("low", "idle")),
        Qos("low", preempt="cancel", grace=60, exempt=600),
        Qos("idle", preempt="requeue"),
    )
    assert {"PreemptMode", "GraceTime", "PreemptExemptTime"} <= set(CLUSTER["qos"][-1].removeprefix("format=").split(","))
