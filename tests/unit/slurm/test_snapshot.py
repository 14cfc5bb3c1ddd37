"""Snapshots of a cluster: real outputs of three versions of Slurm, each pitfall by hand, and what is wrong in one line."""

import json
import os
import stat
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli import call, one_line
from tests.errors import raises
from walltime.errors import LogError
from walltime.machine import Reservation
from walltime.slurm import SnapshotJob, read_snapshot, snapshot_from_files, take_snapshot
from walltime.slurm.client import CLUSTER, Client, CommandResult, SlurmError
from walltime.slurm.snapshot import SINFO, shown_commands
from walltime.slurm.squeue import BETWEEN, FIELDS, SQUEUE_JSON, SQUEUE_TEXT, read_squeue_json, read_squeue_text

OUTPUTS = Path(__file__).parents[2] / "slurm" / "outputs"


def number(value, form="new"):
    return value if form == "old" else {"set": True, "infinite": False, "number": value}


def record(job=1, state="PENDING", form="new", **more):
    values = {
        "job_id": job,
        "job_state": [state] if form == "new" else state,
        "user_name": "alice",
        "partition": "main",
        "cpus": number(2, form),
        "node_count": number(1, form),
        "time_limit": number(30, form),
        "submit_time": number(1_795_000_000, form),
        "eligible_time": number(1_795_000_000, form),
        "start_time": number(1_795_000_100, form),
        "priority": number(7, form),
        "tres_req_str": "cpu=2,mem=4G,node=1,billing=2",
    }
    return values | more


def read(*records):
    counts, notes = Counter(), []
    return read_squeue_json(records, counts, notes), counts, notes


def snapshot(version):
    name = "cluster.txt"
    return snapshot_from_files([OUTPUTS / version / "squeue.json", OUTPUTS / version / name])


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_real_outputs__of_newer_versions(version):
    found = snapshot(version)
    assert found.slurm.startswith(version)
    assert found.totals() == {"running": 1, "waiting": 8, "ended": 2, "held": 1, "dependent": 1}
    assert [job.label for job in found.waiting] == ["26", *(f"27_{k}" for k in range(6)), "28"]
    tasks = found.waiting[1:7]
    assert {job.array_limit for job in tasks} == {2}
    assert [job.expected is None for job in tasks] == [False, True, True, True, True, True]
    assert found.waiting[-1].time_min == 120
    running = found.running[0]
    assert (running.job, running.cpus, running.nodes, running.limit) == (25, 16, 4, 1800)
    assert found.waiting[0].exclusive
    assert 0 <= found.time - running.start < 60


def test_real_outputs__of_22_05():
    found = snapshot("22.05")
    assert found.slurm == "22.05.8"
    assert found.totals() == {"running": 1, "waiting": 4, "ended": 19, "held": 1, "dependent": 1}
    assert any("do not record when" in note for note in found.notes)
    assert [(job.job, job.left_out) for job in found.apart] == [(17, "dependent"), (19, "held")]
    later = {job.job: job.eligible - found.time for job in found.waiting}
    assert later[20] > 7000
    assert found.machine.policy == "slurm"


@pytest.mark.parametrize("form", ["old", "new"])
def test_json__both_forms_say_the_same(form):
    (waiting, running), counts, notes = read(record(1, form=form), record(2, "RUNNING", form=form, tres_alloc_str="cpu=2,gres/gpu=4"))
    assert (waiting.state, waiting.expected, waiting.start, waiting.limit) == ("waiting", 1_795_000_100, None, 1800)
    assert (waiting.memory_mb, waiting.cpus, waiting.priority) == (4096, 2, 7)
    assert (running.state, running.start, running.expected, running.gpus) == ("running", 1_795_000_100, None, 4)
    assert not counts
    assert not notes


@pytest.mark.parametrize("form", ["old", "new"])
def test_json__memory_types_of_gpus_and_constraints(form):
    each = {"tres_req_str": "cpu=2,mem=8G,node=2,billing=2,gres/gpu=4,gres/gpu:a100=4", "node_count": number(2, form)}
    (on_nodes, in_total, per_cpu, running), counts, notes = read(
        record(
            1,
            form=form,
            **each,
            tres_per_node="gres/gpu:a100:2",
            memory_per_node=number(4096, form),
            features="intel&(rack1|rack2)",
            licenses="idl:2",
        ),
        record(2, form=form, **each, tres_per_job="gres/gpu:a100:4"),
        record(3, form=form, memory_per_cpu=number(2048, form)),
        record(4, "RUNNING", form=form, tres_alloc_str="cpu=2,mem=4G,gres/gpu:v100=1", memory_per_node=number(4096, form)),
    )
    assert (on_nodes.gpus, on_nodes.node_gpus, on_nodes.gpu_type, on_nodes.constraints) == (4, 2, "a100", "intel&(rack1|rack2)")
    assert (on_nodes.memory_mb, on_nodes.node_memory_mb, on_nodes.cpu_memory_mb) == (8192, 4096, 0)
    assert (on_nodes.licences, in_total.licences) == ("idl:2", "")
    assert (in_total.gpus, in_total.node_gpus, in_total.gpu_type, in_total.node_memory_mb) == (4, 0, "a100", 4096)
    assert (per_cpu.memory_mb, per_cpu.node_memory_mb, per_cpu.cpu_memory_mb, per_cpu.gpu_type) == (4096, 0, 2048, "")
    assert (running.gpus, running.gpu_type, running.node_memory_mb, running.memory_mb) == (1, "v100", 0, 4096)
    assert not counts
    assert not notes


def test_json__no_limit_and_states():
    infinite = {"set": False, "infinite": True, "number": 0}
    jobs, counts, _ = read(
        record(1, time_limit=infinite),
        record(2, "COMPLETING"),
        record(3, "SUSPENDED"),
        record(4, "TIMEOUT"),
        record(5, het_job_id=number(5)),
        record(6, priority=number(0), state_reason="JobHeldAdmin"),
        record(7, dependency="afterany:1(unfulfilled)"),
        record(8, job_state=["RUNNING", "CONFIGURING"]),
        record(9, state_reason="PartitionDown"),
    )
    assert jobs[0].limit is None
    assert [(job.job, job.left_out) for job in jobs] == [(1, ""), (5, "het"), (6, "held"), (7, "dependent"), (8, ""), (9, "closed")]
    assert counts == {"ended": 2, "suspended": 1}


def test_json__a_pending_array_is_its_tasks():
    jobs, _, _ = read(record(249, array_job_id=number(249), array_task_id={"set": False}, array_task_string="1-9%3"))
    assert [job.label for job in jobs] == [f"249_{k}" for k in range(1, 10)]
    assert {job.array_limit for job in jobs} == {3}


@pytest.mark.parametrize(
    "bad",
    [
        7,
        {},
        record(job_id=-1),
        record(job_id=True),
        record(job_state=[]),
        record(cpus="many"),
        record(cpus={"set": True, "infinite": False, "number": 1e300}),
        record(name=["x"]),
        record(2, "RUNNING", start_time=number(0)),
        record(3, array_job_id=number(3), array_task_string="1-x"),
        record(3, array_job_id=number(3), array_task_string="1-3,..."),
        record(submit_time=2**70),
    ],
)
def test_json__a_bad_record_is_counted_and_told(bad):
    jobs, counts, notes = read(record(1), bad)
    assert [job.job for job in jobs] == [1]
    assert counts == {"bad_record": 1}
    assert "\n" not in notes[0]


@pytest.mark.slow
def test_json__arrays_that_are_too_long_are_counted():
    jobs, counts, _ = read(record(3, array_job_id=number(3), array_task_string="0-4000000000"), record(4))
    assert [job.job for job in jobs] == [4]
    assert counts == {"too_many_tasks": 1}


HOSTILE = [None, "", "x", -1, 2**63, 1e308, True, [], {}, [[]], {"set": True}, {"set": True, "infinite": True}, "a\x1b[31m\n", "%s" * 9]


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_json__whatever_the_values_nothing_but_counts(version, tmp_path):
    import random

    draw = random.Random(5)
    records = json.loads((OUTPUTS / version / "squeue.json").read_text())["jobs"]
    for _ in range(400):
        chosen = dict(draw.choice(records))
        for name in draw.sample(sorted(chosen), 3):
            chosen[name] = draw.choice(HOSTILE)
        jobs, counts, notes = read(chosen)
        assert len(notes) == counts["bad_record"]
        for job in jobs:
            assert SnapshotJob.of(job.as_dict()) == job
    assert [SnapshotJob.of(job.as_dict()) for job in read(*records)[0]] == read(*records)[0]


def test_anonymised__quotes_nobody(tmp_path):
    found = replace(
        snapshot("24.11"), notes=("Record 3 of squeue: bob.", "The reservation bob_1 is not for maintenance: not modelled.", "2 x.")
    )
    assert found.anonymised(b"a long key").notes == ("2 x.",)
    course = Reservation("bob_1", found.machine.pools[0].name, 0, 9, users=("bob",), accounts=("bobs",))
    inside = replace(found.jobs[0], reservation="bob_1")
    hidden = replace(found, jobs=(inside,), machine=replace(found.machine, reservations=(course,))).anonymised(b"a long key")
    assert hidden.jobs[0].reservation == hidden.machine.reservations[0].name
    hidden.write(tmp_path / "snapshot.json")
    assert "bob" not in (tmp_path / "snapshot.json").read_text()


def text(**values):
    own = dict.fromkeys(FIELDS.values(), "1")
    own |= {"id": "7", "job_id": "7", "array_job_id": "7", "job_state": "PENDING", "user_name": "bob", "partition": "main"}
    own |= {"submit_time": "1795000000", "start_time": "N/A", "time_limit": "1-02:00:00", "tres_per_node": "gres:gpu:a100:2"}
    own |= {"shared": "OK", "dependency": "(null)", "state_reason": "Priority"}
    return BETWEEN.join((own | values).values())


def test_text__fields_arrays_and_hostile_names():
    counts, notes = Counter(), []
    lines = [
        text(name=f"odd{BETWEEN}name, ä\x1b[31m"),
        text(id="9_[1-3%2]", job_id="9", array_job_id="9"),
        text(id="5_1", job_id="15", array_job_id="5", job_state="RUNNING", start_time="2026-11-20T10:00:00"),
        text(job_state="COMPLETED"),
        text(state_reason="JobHeldUser", priority="0", id="8", job_id="8"),
        "only|three|fields",
        text(cpus="x"),
    ]
    jobs = read_squeue_text(lines, counts, notes)
    assert [(job.label, job.left_out) for job in jobs] == [("7", ""), ("9_1", ""), ("9_2", ""), ("9_3", ""), ("5_1", ""), ("8", "held")]
    assert (jobs[0].limit, jobs[0].gpus, jobs[0].gpu_type, jobs[0].name) == (93600, 2, "a100", f"odd{BETWEEN}name, ä\x1b[31m")
    assert jobs[4].start == 1_795_168_800
    assert counts == {"ended": 1, "bad_record": 2}
    assert len(notes) == 2


def test_file__is_private_and_comes_back_as_it_was(tmp_path):
    found = snapshot("24.11")
    old = os.umask(0)
    try:
        found.write(tmp_path / "s.json")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "s.json").stat().st_mode) == 0o600
    assert read_snapshot(tmp_path / "s.json") == found


def test_anonymised__has_the_numbers_of_the_log(tmp_path):
    from walltime.logs.anonymous import number_for

    found = snapshot("24.11").anonymised(b"a long key")
    found.write(tmp_path / "s.json")
    said = (tmp_path / "s.json").read_text()
    assert not any(name in said for name in ("alice", "bob", "carol", "physics", "chemistry"))
    assert found.running[0].user == str(number_for("user", "alice", b"a long key"))
    assert read_snapshot(tmp_path / "s.json") == found


def edited(tmp_path, **changes):
    snapshot("24.11").write(tmp_path / "s.json")
    document = json.loads((tmp_path / "s.json").read_text())
    document |= {key: value for key, value in changes.items() if key != "job"}
    if "job" in changes:
        document["jobs"][0] |= changes["job"]
    (tmp_path / "s.json").write_text(json.dumps(document))
    return tmp_path / "s.json"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "other"}, ("not_a_snapshot",)),
        ({"version": 99}, ("unknown_version", "99")),
        ({"time": "now"}, ("wrong_field", "time")),
        ({"time": 0}, ("wrong_field", "time", "0")),
        ({"machine": "[["}, ("wrong_field", "TOML")),
        ({"jobs": [3]}, ("wrong_field",)),
        ({"job": {"cpus": "x"}}, ("wrong_field", "cpus")),
        ({"job": {"limit": -5}}, ("wrong_field", "limit")),
        ({"job": {"colour": "x"}}, ("wrong_field", "'colour'")),
        ({"job": {"state": "gone"}}, ("wrong_field",)),
    ],
)
def test_file__what_is_wrong_is_one_line(tmp_path, changes, says):
    with raises(LogError, *says):
        read_snapshot(edited(tmp_path, **changes))


def test_job__that_runs_since_nobody_knows_when():
    with raises(LogError, "missing_start"):
        SnapshotJob.of({"job": 1, "state": "running"})


class Fake:
    """Runs nothing: answers from the saved outputs."""

    def __init__(self, without=()):
        self.without, self.called = without, []

    def __call__(self, words, timeout):
        words = tuple(words)
        self.called.append(words)
        if words[0] in self.without or words in self.without:
            return CommandResult(127, "", f"there is no {words[0]} here")
        if words == SQUEUE_JSON:
            return CommandResult(0, (OUTPUTS / "24.11" / "squeue.json").read_text(), "")
        if words == SQUEUE_TEXT:
            return CommandResult(0, text(partition="main") + "\n", "")
        if words == SINFO:
            return CommandResult(0, (OUTPUTS / "24.11" / "sinfo.json").read_text(), "")
        return CommandResult(
            0, (OUTPUTS / "24.11" / "cluster.txt").read_text() if words[-1] == "config" else "No reservations in the system\n", ""
        )


def test_take__runs_only_what_reads():
    fake = Fake()
    found = take_snapshot(Client(fake))
    assert found.totals()["waiting"] == 8
    assert set(fake.called) <= {SQUEUE_JSON, *CLUSTER.values()}
    assert all(words[0] in ("squeue", "scontrol", "sacctmgr", "sinfo") for words in fake.called)
    assert all("--all" in words for words in fake.called if words[0] in ("squeue", "sinfo")), "hidden partitions are part of the machine"
    assert all("show" in words for words in fake.called if words[0] in ("scontrol", "sacctmgr"))


def test_take__in_text_where_there_is_no_json():
    found = take_snapshot(Client(Fake(without=(SQUEUE_JSON, "sacctmgr"))))
    assert [note.partition(":")[0] for note in found.notes[:3]] == ["squeue --json failed", "Left out", "Left out"]
    assert found.waiting[0].user == "bob"


def test_take__nodes_of_sinfo_where_scontrol_does_not_tell_them():
    found = take_snapshot(Client(Fake(without=(CLUSTER["nodes"],))))
    assert found.machine.procs == take_snapshot(Client(Fake())).machine.procs


def test_take__says_what_is_missing():
    with raises(LogError, "no_slurm"):
        take_snapshot(Client(Fake(without=("squeue",))))


def test_client__does_not_wait_for_ever_says_what_failed_and_uses_no_shell():
    with raises(SlurmError, "command_failure"):
        Client(timeout=0.1).output("sleep", "5")
    with raises(SlurmError, "command_failure"):
        Client().output("no-such-command")
    with raises(SlurmError, "command_failure", "1"):
        Client().output("false")
    assert Client().output("echo", "$HOME; touch x") == "$HOME; touch x\n"
    assert Client().output("printenv", "TZ") == "UTC\n"


def test_shown_commands__are_what_a_shell_would_run():
    shown = next(line for line in shown_commands() if "--format=$" in line)
    said = subprocess.run(["bash", "-c", f"printf %s {shown.partition('--noheader ')[2]}"], capture_output=True, check=True)
    assert said.stdout.decode() == SQUEUE_TEXT[-1]


@pytest.mark.slow
def test_command__shows_takes_and_complains_in_one_line(golden, capsys, tmp_path):
    status, out, err = call(capsys, "slurm", "snapshot", "--show-commands")
    assert (status, err) == (0, "")
    assert out.count("\n") == 9
    folder = OUTPUTS / "24.11"
    status, out, _ = call(
        capsys, "slurm", "snapshot", "--from", folder / "squeue.json", "--from", folder / "cluster.txt", "--out", tmp_path / "s.json"
    )
    assert status == 0
    golden("slurm-snapshot", out)
    status, out, _ = call(capsys, "slurm", "snapshot", "--from", folder / "squeue.json", "--from", folder / "cluster.txt", "--json")
    assert json.loads(out)["totals"]["waiting"] == 8
    golden("slurm-snapshot", one_line(*call(capsys, "slurm", "snapshot", "--from", folder / "squeue.json")))
    assert "squeue --json" in one_line(*call(capsys, "slurm", "snapshot", "--from", folder / "cluster.txt"))
    assert "cannot be read" in one_line(*call(capsys, "slurm", "snapshot", "--from", tmp_path / "none"))
    with raises(LogError, "unreadable_file"):
        snapshot_from_files([tmp_path / ("n" * 300)])
    assert "--from" in one_line(*call(capsys, "slurm", "snapshot", "--time", "5"))
    assert "is not a time" in one_line(*call(capsys, "slurm", "snapshot", "--from", folder, "--time", "noon"))
    assert "unknown time zone" in one_line(*call(capsys, "slurm", "snapshot", "--from", folder, "--time-zone", "Nowhere"))
    golden("slurm-snapshot", one_line(*call(capsys, "slurm", "snapshot", "--from", folder, "--out", tmp_path / "x.txt")))
