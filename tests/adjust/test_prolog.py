"""The prolog's give-back: its script on synthetic commands, its folder, and the self-test with and without it."""

import os
import stat
import subprocess

import pytest

from tests.adjust.fake import BEGIN, FakeSlurm, Job
from tests.adjust.test_rules import sidecar
from tests.errors import raises
from walltime.errors import OutputError
from walltime.slurm.sidecar.prolog import YEAR, Spool, script

SQUEUE = """#!/bin/sh
echo "squeue $*" >> {folder}/calls
printf '%s\\n' '{answer}'
"""
SCONTROL = """#!/bin/sh
echo "scontrol $* $SLURM_CONF" >> {folder}/calls
exit {status}
"""


@pytest.fixture
def prolog(tmp_path, monkeypatch):
    """Runs the script for a job with this environment, beside a squeue that answers so; returns the updates that it asked for."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("SLURM_CONF", "/etc/a b/slurm.conf")

    def call(answer, status=0, **environment):
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        for name, text in (("squeue", SQUEUE), ("scontrol", SCONTROL), ("sleep", "#!/bin/sh\n")):
            path = tmp_path / "bin" / name
            path.write_text(text.format(folder=tmp_path, answer=answer, status=status))
            path.chmod(0o755)
        file = tmp_path / "prolog"
        file.write_text(script(tmp_path / "spool"))
        file.chmod(0o755)
        done = subprocess.run([file], env=environment, capture_output=True, timeout=60)  # no PATH, no SLURM_CONF
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return [line for line in (calls.read_text().splitlines() if calls.exists() else []) if line.startswith("scontrol")]

    return call


UPDATE = "scontrol update JobId={key} TimeLimit={minutes} /etc/a b/slurm.conf"


@pytest.mark.parametrize(
    ("limit", "raised"),
    [("9:00", True), ("59:59", False), ("58:01", True), ("08:09", True), ("1:00:00", False), ("1:01:01", False), ("1-00:00:00", False)],
)
def test_a_limit_is_raised_and_never_lowered(prolog, tmp_path, limit, raised):
    Spool(tmp_path / "spool").put("7", 60, 60)
    assert prolog(f"{limit}    5:00", SLURM_JOB_ID="7") == ([UPDATE.format(key="7", minutes=60)] if raised else [])


def test_a_task_of_an_array_has_its_own_name(prolog, tmp_path):
    Spool(tmp_path / "spool").put("7_3", 60, 60)
    assert prolog("9:00 5:00", SLURM_JOB_ID="12", SLURM_ARRAY_JOB_ID="7", SLURM_ARRAY_TASK_ID="3") == [UPDATE.format(key="7_3", minutes=60)]
    assert prolog("9:00 5:00", SLURM_JOB_ID="12") == []


@pytest.mark.parametrize(
    "answer", ["9:00 N/A", "9:00 0:00", "UNLIMITED 5:00", "INVALID 5:00", "", "9:00", "odd TimeLimit=1 x", "$(touch /tmp/x) 5:00"]
)
def test_other_answers_change_nothing(prolog, tmp_path, answer):
    Spool(tmp_path / "spool").put("7", 60, 60)
    assert prolog(answer, SLURM_JOB_ID="7") == []


@pytest.mark.parametrize("content", ["", "\n", "60; reboot\n", "-5\n", "08\n", "0\n", "9999999\n", "60 1\n", "60"])
def test_a_file_with_something_else_is_not_believed(prolog, tmp_path, content):
    (tmp_path / "spool" / "7").write_text(content)
    assert prolog("9:00 5:00", SLURM_JOB_ID="7") == []


@pytest.mark.parametrize("key", ["", "../7", "7;reboot", "7 8", "$(reboot)", "_7", "7_", "7_1_2", "*", "-7"])
def test_no_other_file_is_read(prolog, tmp_path, key):
    Spool(tmp_path / "spool").put("7", 60, 60)
    assert prolog("9:00 5:00", SLURM_JOB_ID=key) == []
    (tmp_path / "spool" / "8").symlink_to(tmp_path / "spool" / "7")
    assert prolog("9:00 5:00", SLURM_JOB_ID="8") == []


def test_a_failing_scontrol_is_asked_again_and_does_not_fail_the_job(prolog, tmp_path):
    Spool(tmp_path / "spool").put("7", 60, 60)
    assert prolog("9:00 5:00", status=1, SLURM_JOB_ID="7") == 3 * [UPDATE.format(key="7", minutes=60)]


def test_the_folder(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir(mode=0o755)
    spool = Spool(folder)
    spool.put("7", 60, 60)
    spool.put("7_3", 60, None)
    assert {one.name: one.read_text() for one in folder.iterdir()} == {"7": "60 60\n", "7_3": f"60 {YEAR}\n"}
    assert stat.S_IMODE((folder / "7").stat().st_mode) == 0o644
    (folder / "readme").write_text("stays")
    (folder / ".walltime-0.part").write_text("left by one that was killed")
    Spool(folder).keep({"7": (61, 70)})
    assert {one.name: one.read_text() for one in folder.iterdir()} == {"7": "61 70\n", "readme": "stays"}
    (folder / "7").unlink()
    (folder / "7").mkdir()
    with raises(OutputError, "unwritable_file"):
        spool.remove("7")
    folder.chmod(0o775)
    with raises(OutputError, "unusable_folder"):
        Spool(folder)
    with raises(OutputError, "unusable_folder"):
        Spool(folder / "missing")


def short_cluster(tmp_path, with_prolog=True):
    """A job of three nodes, a wide one that heads the queue, and a long one that backfill starts shortened."""
    cluster = FakeSlurm(4, [Job(1, "ann", 3, 3600, 70, BEGIN), Job(2, "ann", 4, 60, 60, BEGIN), Job(3, "bob", 1, 3000, 120, BEGIN + 1200)])
    (tmp_path / "spool").mkdir(exist_ok=True)
    cluster.spool = tmp_path / "spool" if with_prolog else None
    cluster.advance(60)
    return cluster


def rounds(cluster, one, count):
    reports = []
    for _ in range(count):
        reports.append(one.round())
        cluster.advance(30)
    return reports


@pytest.mark.parametrize("with_prolog", [True, False], ids=["prolog", "no prolog"])
@pytest.mark.parametrize("needs", [True, False], ids=["needed", "not needed"])
def test_the_self_test_says_which_give_back_works(tmp_path, with_prolog, needs):
    cluster = short_cluster(tmp_path, with_prolog)
    one, said = sidecar(cluster, tmp_path, spool=Spool(tmp_path / "spool"), need_prolog=needs)
    reports = rounds(cluster, one, 16)
    assert "self-test: passed" in said
    assert ("self-test: the prolog works" in said) == with_prolog
    assert any("prolog missing" in text for text in said) == (not with_prolog)
    assert any("give-back mode without the prolog" in text for text in said) == (not with_prolog and not needs)
    assert ("prolog missing" in reports[-1].why) == (needs and not with_prolog)
    assert not any(job.user == "sidecar" for job in (*cluster.running(), *cluster.waiting()))
    rounds(cluster, one, 40)
    assert ("3" in cluster.backfilled) == (with_prolog or not needs)
    assert cluster.violations == []
    one.ledger.close()


def test_the_prolog_gives_back_while_the_side_car_is_gone(tmp_path):
    cluster = short_cluster(tmp_path)
    folder = tmp_path / "spool"
    one, _ = sidecar(cluster, tmp_path, spool=Spool(folder))
    while "3" not in cluster.jobs or not cluster.jobs["3"].time_min:
        rounds(cluster, one, 1)
    one.ledger.close()  # killed
    cluster.advance(4000)
    assert cluster.jobs["3"].limit == 120
    assert cluster.jobs["3"].state == "COMPLETED" or cluster.jobs["3"].state == "RUNNING"
    assert cluster.violations == []


def test_a_folder_that_cannot_be_written_keeps_from_adjusting_only_where_the_prolog_is_needed(tmp_path, monkeypatch):
    for needs in (True, False):
        (tmp_path / str(needs)).mkdir()
        cluster = short_cluster(tmp_path / str(needs))
        spool = Spool(tmp_path / str(needs) / "spool")
        one, said = sidecar(cluster, tmp_path / str(needs), spool=spool, need_prolog=needs)
        rounds(cluster, one, 16)

        def full(key, known, longest):
            raise OutputError("no space left on device")

        monkeypatch.setattr(spool, "put", full)
        rounds(cluster, one, 30)
        assert any("for the prolog" in text for text in said)
        assert any("job 3: TimeMin" in text for text in said) == (not needs)
        assert cluster.violations == []
        one.ledger.close()


def test_a_prolog_that_stops_working_is_noticed(golden, tmp_path):
    cluster = short_cluster(tmp_path)
    one, said = sidecar(cluster, tmp_path, spool=Spool(tmp_path / "spool"), need_prolog=True)
    rounds(cluster, one, 16)
    cluster.spool = None
    rounds(cluster, one, 160)  # until nodes are free for the test's job
    golden("slurm-adjust", [text for text in said if "ALARM" in text], one.tests.prolog)
    assert cluster.violations == []
    one.ledger.close()


def test_printing_needs_nothing_else(tmp_path):
    assert os.access("/bin/sh", os.X_OK)
    text = script(tmp_path / "it's")
    assert subprocess.run(["sh", "-n"], input=text.encode(), capture_output=True).returncode == 0
