"""Which jobs may be adjusted, what is read of the cluster, what may get onto a command line, and the ledger: by hand."""

from dataclasses import replace

import pytest

from tests.adjust.fake import BEGIN, FakeSlurm, Job, row
from tests.errors import raises
from walltime.errors import PolicyError
from walltime.slurm.client import Client, CommandResult, DeniedError, run
from walltime.slurm.configuration import Limits, read_configuration, read_limits
from walltime.slurm.records import ClusterRecords, SlurmError, read_text
from walltime.slurm.sidecar.host import Host
from walltime.slurm.sidecar.ledger import Entry, Ledger, LedgerError, State
from walltime.slurm.sidecar.round import Sidecar
from walltime.slurm.sidecar.selection import exclusion_reason, time_min_of
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import FIELDS, read_queue

CONFIG = "SchedulerType           = sched/backfill\nSLURM_VERSION = 24.11.5\nSchedulerParameters = bf_continue,time_min_as_soft_limit\n"
PARTITIONS = "PartitionName=main Nodes=n[1-4] MaxTime=2-00:00:00\nPartitionName=free Nodes=n[3-9] MaxTime=UNLIMITED\n"
NONE = "No reservations in the system\n"


def records_of(*texts):
    records = ClusterRecords()
    for text in texts:
        read_text(text, records)
    return records


FACTS = read_configuration(records_of(CONFIG, PARTITIONS, NONE))
NOW = float(BEGIN)


def queued(**changes):
    """A waiting job that may be adjusted, but for these changes of its record."""
    [found] = read_queue(row(Job(7, "ann", 1, 60, 60, BEGIN - 100, limit=60, others=changes)) + "\n", tasks=3)
    return found


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"TimeLimit": "UNLIMITED"}, "no time limit"),
        ({"TimeLimit": "NOT_SET"}, "no time limit"),
        ({"PriorityLong": 0}, "held"),
        ({"Reason": "JobHeldAdmin"}, "held"),
        ({"HetJobID": 7}, "heterogeneous"),
        ({"JobArrayID": "7+1"}, "heterogeneous"),
        ({"Deadline": "2027-01-15T08:00:09"}, "Deadline"),
        ({"Licenses": "matlab:1"}, "licences"),
        ({"Licenses": "matlab:1|comsol:1"}, "licences"),
        ({"Reservation": "course"}, "reservation"),
        ({"Partition": "main,nowhere"}, "unknown"),
        ({"Reason": "AssocGrpCPURunMinutesLimit"}, "limits on minutes"),
        ({"Reason": "AssocGrpWallLimit"}, "limits on minutes"),
        ({"Reason": "DependencyNeverSatisfied"}, "cannot start yet"),
        ({"EligibleTime": "2027-01-15T08:00:50"}, "cannot start yet"),
        ({"EligibleTime": "N/A"}, "cannot start yet"),
    ],
)
def test_who_is_never_adjusted(changes, why):
    found = exclusion_reason(queued(**changes), FACTS, Limits(), SidecarSettings(), NOW)
    assert found is None if why is None else why in found


def test_only_chosen_accounts_and_partitions():
    assert exclusion_reason(queued(), FACTS, Limits(), SidecarSettings(account=("bio",)), NOW) is None
    assert "account" in exclusion_reason(queued(), FACTS, Limits(), SidecarSettings(account=("chem",)), NOW)
    assert "partition" in exclusion_reason(queued(Partition="main,free"), FACTS, Limits(), SidecarSettings(partition=("main",)), NOW)


@pytest.mark.parametrize(
    ("nodes", "after", "crosses"),
    [("n[4-5]", 3600, True), ("n[5-6]", 3600, False), ("(null)", 3600, True), ("n4", 3600 + 200, True), ("n4", 3600 + 300, False)],
)
def test_reservations_within_the_users_limit(nodes, after, crosses):
    start, end = ("2027-01-15T08:00:00", "2027-01-15T20:00:00")
    cluster = read_configuration(
        records_of(CONFIG, PARTITIONS, f"ReservationName=m StartTime={start} EndTime={end} Nodes={nodes} Flags=MAINT\n")
    )
    now = cluster.reservations[0].start - after
    assert (exclusion_reason(queued(EligibleTime="1970-01-02T00:00:00"), cluster, Limits(), SidecarSettings(), now) is not None) == crosses
    assert (
        exclusion_reason(queued(EligibleTime="1970-01-02T00:00:00"), cluster, Limits(), SidecarSettings(), cluster.reservations[0].end)
        is None
    )


ASSOCIATIONS = "Account|ParentName|User|MaxWall|GrpTRESRunMins|MaxTRESMins|GrpTRESMins|GrpWall|Share\n"
QOS = "Name|MaxWall|Flags|GrpTRESRunMins|MaxTRESRunMinsPA|MaxTRESRunMinsPU|MaxTRESMins|GrpTRESMins|GrpWall|Priority\n"
LIMITS = read_limits(
    records_of(
        ASSOCIATIONS + "root||||||||1\nscience|root|||cpu=100||||1\nbio|science|||||||1\nbio||ann||||||1\nart|root|||||||1\n"
        "art||cy||cpu=3||||1\nlaw|root||||||99|1\nfund|root||10:00:00||cpu=5|||1\nfund||eve|1-00:00:00|||||1\nlab|fund|||||||1\n",
        QOS
        + "normal|||||||||0\nshort|05:00:00||cpu=9||||||0\nlong|4-00:00:00|DenyOnLimit,PartitionTimeLimit|||||||0\nspent|||||||cpu=4||0\n",
    )
)


@pytest.mark.parametrize("without", ["", "MaxTRESMins", "Flags"])
def test_limits_are_read_of_what_sacctmgr_prints__or_are_unknown(without):
    cluster = FakeSlurm(4)
    client = Client(lambda words, timeout: cluster([word.replace(f",{without}", "") if without else word for word in words], timeout))
    if without:
        with raises(SlurmError, "unknown_output", without):
            client.limits()
    else:
        assert client.limits().minutes == {("account", "bio"), ("qos", "normal")}


def enforced(words):
    return replace(FACTS, settings=FACTS.settings | {"AccountingStorageEnforce": words})


@pytest.mark.parametrize(
    ("changes", "enforce", "left"),
    [
        ({}, "limits", True),
        ({"Account": "art"}, "limits", False),
        ({"Account": "art", "QOS": "short"}, "limits", True),
        ({"Account": "art", "UserName": "cy"}, "limits", True),
        ({"Account": "fund"}, "limits", True),
        ({"Account": "law"}, "limits", False),
        ({"Account": "law"}, "limits,safe", True),
        ({"Account": "art", "QOS": "spent"}, "limits", False),
        ({"Account": "art", "QOS": "spent"}, "safe", True),
    ],
)
def test_jobs_whose_limits_on_minutes_slurm_would_test_with_time_min_are_left_alone(changes, enforce, left):
    why = exclusion_reason(queued(**changes), enforced(enforce), LIMITS, SidecarSettings(), NOW)
    assert (why == "limits on minutes") == left


def test_the_limits_of_a_partitions_qos_count_and_unknown_ones_do():
    cluster = read_configuration(
        records_of(CONFIG + "AccountingStorageEnforce = limits\n", PARTITIONS.replace("MaxTime=2", "QoS=short MaxTime=2"), NONE)
    )
    assert exclusion_reason(queued(Account="art"), cluster, LIMITS, SidecarSettings(), NOW) == "limits on minutes"
    assert "could not be read" in exclusion_reason(queued(), enforced("safe"), Limits(known=False), SidecarSettings(), NOW)


@pytest.mark.parametrize(
    ("changes", "enforce", "longest"),
    [
        ({}, "limits", 2880),
        ({"QOS": "short"}, "limits", 300),
        ({"QOS": "short"}, "none", 2880),
        ({"QOS": "short", "TimeLimit": "6:00:00"}, "limits", 360),
        ({"QOS": "long"}, "limits", 5760),
        ({"Account": "fund"}, "limits", 600),
        ({"Account": "lab"}, "limits", 600),
        ({"Account": "fund", "UserName": "eve"}, "limits", 1440),
        ({"Partition": "free"}, "limits", None),
        ({"Partition": "free", "QOS": "short"}, "limits", 300),
    ],
)
def test_the_longest_limit_is_that_of_partition_qos_and_association(changes, enforce, longest):
    assert LIMITS.longest(queued(**changes), enforced(enforce)) == longest


def test_time_min():
    bounds = SidecarSettings(floor=10, gain=0.5)
    assert [time_min_of(s, 60, bounds) for s in (1, 600, 601, 1800, 1801, float("nan"))] == [10, 10, 11, 30, None, None]
    assert time_min_of(1, 10, bounds) is None


@pytest.mark.parametrize("wrong", [{"every": 0}, {"floor": 1}, {"every": 300}, {"share": 0}, {"gain": 2}, {"changes": 0}, {"tasks": 0}])
def test_impossible_bounds(wrong):
    with pytest.raises(PolicyError):
        SidecarSettings(**wrong)


def test_tasks_of_an_array_have_their_own_names():
    rows = [row(Job(9, "ann", 1, 60, 60, 0, limit=60, others={"JobArrayID": keys})) for keys in ("9_[1-7:2,20%3]", "9_0", "9_[]")]
    assert [found.key for found in read_queue("\n".join(rows), tasks=3)] == ["9_1", "9_3", "9_5", "9_0"]


def test_no_field_that_is_asked_for_can_be_written_by_a_user():
    assert not {"name", "comment", "command", "submitline", "workdir", "stdout", "admincomment", "wckey"} & {
        name.lower() for name in FIELDS
    }


def test_the_mode_is_that_of_the_settings():
    assert FACTS.soft_limit
    assert not read_configuration(records_of(CONFIG.replace("24.11.5", "23.02.1"), PARTITIONS, NONE)).soft_limit
    assert not read_configuration(records_of(CONFIG.replace("soft_limit", "soft_limits"), PARTITIONS, NONE)).soft_limit
    assert FACTS.longest(["main"]) == 2880
    assert FACTS.longest(["main", "free"]) is None


@pytest.mark.parametrize("text", ["{", "7", "7|PENDING|", row(Job(7, "ann", 1, 60, 60, 0)).replace("7|", "x|", 1), "|" * 40])
def test_what_is_no_queue(text):
    with pytest.raises(SlurmError):
        read_queue(text, tasks=1)


@pytest.mark.parametrize("texts", [[], ["x"], [CONFIG], [CONFIG, PARTITIONS], [CONFIG, "PartitionName=a Nodes=n MaxTime=soon\n", NONE]])
def test_what_is_no_cluster(texts):
    with pytest.raises(SlurmError):
        read_configuration(records_of(*texts))


def test_commands_are_lists_and_keys_are_numbers():
    asked = []

    def runner(words, timeout):
        asked.append(list(words))
        return CommandResult(0, "", "")

    slurm = Client(runner)
    slurm.set_time_min("7_3", 12)
    slurm.set_limit("7", None)
    assert asked == [["scontrol", "update", "JobId=7_3", "TimeMin=12"], ["scontrol", "update", "JobId=7", "TimeLimit=UNLIMITED"]]
    for key in ("7 TimeLimit=1", "7;reboot", "-1", "", "7_", "0", "7\n"):
        with pytest.raises(SlurmError):
            slurm.set_limit(key, 1)
    assert len(asked) == 2


def test_answers_of_commands(tmp_path):
    assert run(["sh", "-c", "echo a; echo b >&2; exit 3"], 10) == CommandResult(3, "a\n", "b\n")
    assert run(["sh", "-c", "sleep 5"], 0.2).status is None
    assert run([str(tmp_path / "nothing")], 1).status == 127
    with pytest.raises(DeniedError):
        Client(lambda words, timeout: CommandResult(1, "", "slurm_update error: Access/permission denied")).set_time_min("7", 1)


ENTRY = Entry("7_1", "ann", 12, 60, None, 0, True, State.INTENT, 5.0)


def test_the_ledger_is_on_disk_and_belongs_to_one(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.write(ENTRY, 5.0)
    with raises(LedgerError, "ledger_in_use"):
        Ledger(tmp_path)
    ledger.note("tested", "yes")
    ledger.close()
    again = Ledger(tmp_path)
    assert again.entries() == {"7_1": ENTRY}
    assert again.noted("tested") == "yes"
    again.forget(["7_1"])
    assert again.entries() == {}
    again.close()


def test_a_ledger_that_is_none(tmp_path):
    (tmp_path / "ledger.sqlite").write_text("nothing of the kind, but long enough to be looked at\n" * 50)
    with raises(LedgerError, "not_a_ledger"):
        Ledger(tmp_path)
    with raises(LedgerError, "unusable_ledger"):
        Ledger(tmp_path / "missing")


def sidecar(cluster, tmp_path=None, spool=None, need_prolog=False, **options):
    said = []
    ledger = None if tmp_path is None else Ledger(tmp_path)
    settings, host = SidecarSettings(share=1.0, need_prolog=need_prolog), Host(cluster.clock, "sidecar", said.append, **options)
    return Sidecar(Client(cluster), lambda job, now: 600.0, settings, host, ledger, spool), said


def crowd(**options):
    """A cluster whose nodes are all busy, with jobs that wait."""
    jobs = [Job(1, "ann", 4, 5000, 120, BEGIN), *(Job(k, "ann", 4, 1200, 60, BEGIN) for k in range(2, 8))]
    cluster = FakeSlurm(4, jobs, **options)
    cluster.advance(60)
    return cluster


def test_a_dry_run_changes_nothing_and_says_what_it_would():
    cluster = crowd(soft=True)
    report = sidecar(cluster)[0].round()
    assert cluster.updates == []
    assert list(report.wanted.values()) == [10] * 6
    assert report.why == "dry run"


def test_without_the_guard_nothing_is_changed(golden, tmp_path):
    cluster = crowd(guard=False)
    one, said = sidecar(cluster, tmp_path)
    for _ in range(5):
        report = one.round()
        cluster.advance(30)
    golden("slurm-adjust", report.why)
    assert all(job.time_min == 0 for job in cluster.waiting())
    assert any("self-test: FAILED" in text for text in said)
    one.ledger.close()


def test_a_full_disk_stops_all_changes(tmp_path, monkeypatch):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)

    def full(entry, now, detail=""):
        raise LedgerError("database or disk is full")

    monkeypatch.setattr(one.ledger, "write", full)
    one.round()
    assert cluster.updates == []
    assert any("ALARM" in text for text in said)
    one.ledger.close()


def test_a_dropped_option_takes_all_back_first(tmp_path):
    cluster = crowd(soft=True)
    one, _ = sidecar(cluster, tmp_path)
    one.round()
    assert sum(job.time_min == 10 for job in cluster.waiting()) == 6
    cluster.updates.clear()
    cluster.soft = False
    report = one.round()
    assert [words[-1] for words in cluster.updates[:6]] == ["TimeMin=0"] * 6
    assert report.adjusted == 0
    one.ledger.close()


def test_users_own_time_min_and_the_stop_file(golden, tmp_path):
    cluster = crowd(soft=True)
    cluster.jobs["3"].time_min = 5
    stop = []
    one, _ = sidecar(cluster, tmp_path, stopped=lambda: bool(stop))
    report = one.round()
    golden("slurm-adjust", report.reasons)
    stop.append(1)
    one.round()
    assert [job.time_min for job in cluster.waiting()] == [0, 5, 0, 0, 0, 0]
    one.ledger.close()


def test_limits_on_the_number_of_changes(tmp_path):
    cluster = crowd(soft=True)
    one, _ = sidecar(cluster, tmp_path)
    one.settings = SidecarSettings(share=0.5)
    one.round()
    assert sum(job.time_min > 0 for job in cluster.waiting()) == 3
    one.settings = SidecarSettings(share=1.0, changes=4)
    one.round()
    assert sum(job.time_min > 0 for job in cluster.waiting()) == 4
    one.ledger.close()


def test_not_all_tasks_of_an_array_become_records(golden, tmp_path):
    cluster = crowd(soft=True)
    for place, job in enumerate(cluster.waiting()):
        job.others = {"JobArrayID": f"2_{place}"}
    asked = []

    def runner(words, timeout):
        if words[1] != "update":
            return cluster(words, timeout)
        key, minutes = (word.partition("=")[2] for word in words[2:])
        asked.append(key)
        return cluster(("scontrol", "update", f"JobId={int(key.partition('_')[2]) + 2}", f"TimeMin={minutes}"), timeout)

    one, _ = sidecar(cluster, tmp_path)
    one.slurm, one.settings = Client(runner), SidecarSettings(share=1.0, tasks=2)
    one.round()
    report = one.round()
    assert asked == ["2_0", "2_1"]
    golden("slurm-adjust", report.reasons)
    one.ledger.close()


def test_a_denial_leaves_advice_only(tmp_path):
    cluster = crowd(soft=True)

    def runner(words, timeout):
        return CommandResult(1, "", "Access/permission denied") if words[1] == "update" else cluster(words, timeout)

    one, _ = sidecar(cluster, tmp_path)
    one.slurm = Client(runner)
    one.round()
    assert "denied" in one.round().why
    one.ledger.close()
