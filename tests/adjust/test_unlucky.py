"""Ways in which a job could end early although no single command fails: slow answers, what is missing at the start, a lost ledger."""

import fcntl
import os
import shutil
import threading

import pytest

from tests.adjust.fake import BEGIN, FakeSlurm, Job
from tests.adjust.test_rules import crowd, sidecar
from tests.cli import call
from tests.errors import raises
from walltime.slurm.client import CommandResult
from walltime.slurm.sidecar.ledger import Ledger, LedgerError, open_ledger
from walltime.slurm.sidecar.loop import run_rounds
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.settings import SidecarSettings


def short_soon(others=0):
    """A cluster on which job 3, of 600 minutes, is backfilled with a limit of 10, beside so many jobs that wait."""
    jobs = [Job(1, "ann", 3, 7 * 3600, 420, BEGIN), Job(2, "ann", 4, 60, 60, BEGIN)]
    jobs += [Job(k, "ann", 4, 1200, 500, BEGIN) for k in range(4, 4 + others)]
    jobs += [Job(3, "bob", 1, 6000, 600, BEGIN + 1200)]
    cluster = FakeSlurm(4, sorted(jobs, key=lambda job: job.submit))
    cluster.advance(60)
    return cluster


def go(cluster, one, seconds):
    """Rounds for so long."""
    end = cluster.clock.now + seconds
    while cluster.clock.now < end:
        begin = cluster.clock.now
        one.round()
        cluster.advance(max(30 - (cluster.clock.now - begin), 1))


def until(cluster, one, holds, seconds=7200):
    end = cluster.clock.now + seconds
    while not holds():
        assert cluster.clock.now < end
        go(cluster, one, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "jobs"), [pytest.param(1, 700, marks=pytest.mark.nightly), (8, 60)])
def test_slow_updates_do_not_keep_a_short_job_waiting(tmp_path, seconds, jobs):
    """A reservation takes everything back just before a job starts short."""
    cluster = short_soon(jobs)
    one, _ = sidecar(cluster, tmp_path)
    one.settings = SidecarSettings(share=1.0, changes=10_000)
    until(
        cluster,
        one,
        lambda: ("3" in cluster.jobs and cluster.jobs["3"].state == "PENDING" and cluster.jobs["3"].time_min) or cluster.backfilled,
    )
    cluster.slow = lambda words: seconds if words[1] == "update" else 0
    cluster.reservations = [("upgrade", cluster.clock.now + 3000, cluster.clock.now + 4000)]
    cluster.nodes += 1  # room for a job that still has its TimeMin
    rounds = []
    while cluster.clock.now < BEGIN + 2 * 3600:
        begin = cluster.clock.now
        one.round()
        rounds.append(cluster.clock.now - begin)
        cluster.advance(max(30 - rounds[-1], 1))
    assert max(rounds) < 300  # half of the floor
    assert cluster.violations == []
    one.ledger.close()


def test_a_round_of_slow_changes_looks_at_short_jobs_again_and_ends_before_all_is_taken_back(tmp_path):
    cluster = crowd(soft=True)
    one, _ = sidecar(cluster, tmp_path)
    one.round()
    assert sum(job.time_min > 0 for job in cluster.waiting()) == 6
    looks = []

    def runner(words, timeout):
        if words[0] == "squeue" and any(word.startswith("--jobs=") for word in words):
            looks.append(cluster.clock.now)
        return cluster(words, timeout)

    one.slurm._runner = runner
    one.stopped = lambda: True
    cluster.slow = lambda words: 15 if words[1] == "update" else 0
    begin = cluster.clock.now
    assert one.round().removed == 2  # in the 30 s of a round
    assert [time - begin for time in looks] == [0, 30]
    one.round()
    one.round()
    assert not any(job.time_min for job in cluster.waiting())
    one.ledger.close()


def test_a_stop_with_many_entries_gives_back_first_and_asks_systemd_to_wait(golden, tmp_path):
    cluster = short_soon(60)
    one, said = sidecar(cluster, tmp_path)
    one.settings = SidecarSettings(share=1.0, changes=10_000)
    until(cluster, one, lambda: sum(job.time_min > 0 for job in cluster.waiting()) > 55)
    cluster.advance(1200)  # job 3 has come, and has waited for somebody to look at it
    one.round()
    cluster.advance(10)
    cluster.slow = lambda words: 15 if words[1] == "update" else 0
    cluster.updates.clear()
    told = []
    one.stopped = lambda: True
    run_rounds(one, 30.0, lambda: True, cluster.advance, lambda report: None, lambda *words: told.extend(words))
    assert [job.key for job in cluster.waiting() if job.time_min] == []
    assert cluster.violations == []
    kinds = [words[-1].partition("=")[0] for words in cluster.updates]
    if "TimeLimit" in kinds:
        assert kinds.index("TimeLimit") == 0
    assert sum(word.startswith("EXTEND_TIMEOUT_USEC=") for word in told) > 10
    golden("slurm-adjust", [text for text in said if text.startswith("stopping")][-1])
    one.ledger.close()


def test_giving_back_needs_nothing_but_the_ledger_and_squeue(tmp_path):
    cluster = short_soon()
    end_short(cluster, sidecar(cluster, tmp_path)[0])
    one, _ = sidecar(cluster, tmp_path)
    one.slurm._runner = lambda words, timeout: CommandResult(None, "", "no answer") if words[1] == "show" else cluster(words, timeout)
    assert not one.round().answered
    assert cluster.jobs["3"].limit == 600
    one.ledger.close()


def end_short(cluster, one):
    """Until job 3 runs short, beside a side-car that does not look any more."""
    until(cluster, one, lambda: "3" in cluster.jobs and (cluster.jobs["3"].time_min or cluster.jobs["3"].start))
    while cluster.jobs["3"].state == "PENDING":
        cluster.advance(10)
    assert cluster.jobs["3"].limit == 10
    one.ledger.close()


@pytest.mark.parametrize("missing", ["history", "metrics", "long", "spool", "stdout", "stop file"])
def test_what_is_missing_at_the_start_keeps_from_adjusting_and_not_from_giving_back(tmp_path, monkeypatch, capsys, missing):
    cluster = short_soon()
    (tmp_path / "ledger").mkdir()
    end_short(cluster, sidecar(cluster, tmp_path / "ledger")[0])
    log = tmp_path / "log.txt"
    log.write_text("nonsense" if missing == "history" else "")
    (tmp_path / "spool").mkdir(mode=0o755)
    if missing == "spool":
        (tmp_path / "spool").chmod(0o777)
    words = ["slurm", "adjust", "--act", "--history", tmp_path / "none.txt" if missing == "history" else log]
    words += ["--ledger", tmp_path / "ledger", "--spool", tmp_path / "spool"]
    words += ["--metrics", tmp_path / {"metrics": "none", "long": "x" * 300}.get(missing, "") / "walltime.prom"]
    if missing == "stop file":
        words += ["--stop-file", tmp_path / ("x" * 300)]  # the file system does not answer whether there is one
    rounds = []

    def wait(self, seconds):
        rounds.append(1)
        cluster.advance(seconds)
        for thread in threading.enumerate():  # the job log is read in real time, and the cluster's time is virtual
            if thread.name == "job log":
                thread.join()

    monkeypatch.setattr("walltime.slurm.client.run", cluster)
    monkeypatch.setattr("walltime.slurm.client.Client.__init__.__defaults__", (cluster, 20.0, lambda: None))
    monkeypatch.setattr("walltime.slurm.sidecar.host.SystemClock", lambda: cluster.clock)
    monkeypatch.setattr("walltime.slurm.sidecar.host.Signals.wait", wait)
    monkeypatch.setattr("walltime.slurm.sidecar.host.Signals.stop_requested", lambda self: len(rounds) > 10)
    if missing == "stdout":
        monkeypatch.setattr("typer.echo", lambda *arguments, **options: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    status, out, _ = call(capsys, *words)
    assert status == 0
    assert cluster.jobs["3"].limit == 600
    assert all(job.time_min == 0 for job in cluster.waiting())
    if missing not in ("stdout", "stop file"):
        assert "ALARM" in out


def test_a_ledger_that_can_only_be_read_gives_back(golden, tmp_path):
    cluster = short_soon()
    end_short(cluster, sidecar(cluster, tmp_path)[0])
    ledger = Ledger(tmp_path)
    entries = ledger.entries()
    ledger.close()
    uri = f"{(tmp_path / 'ledger.sqlite').as_uri()}?mode=ro"
    real = __import__("sqlite3").connect
    with pytest.MonkeyPatch.context() as patch:  # root can write anything, so the disk says no
        patch.setattr("sqlite3.connect", lambda path, **options: real(uri, **options | {"uri": True}))
        one, said = sidecar(cluster, tmp_path)
        assert one.entries == entries
        assert any("ALARM" in text and "cannot be written" in text for text in said)
        report = one.round()
        golden("slurm-adjust", report.why)
        assert cluster.jobs["3"].limit == 600
    one.round()
    golden("slurm-adjust", said)
    one.ledger.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["removed", "emptied", "damaged", "older"])
@pytest.mark.parametrize("with_spool", [True, False], ids=["spool", "no spool"])
def test_a_lost_ledger_ends_no_job(tmp_path, how, with_spool):
    cluster = short_soon(3)
    folder, spool = tmp_path / "ledger", tmp_path / "spool"
    folder.mkdir()
    spool.mkdir(mode=0o755)
    Ledger(folder).close()
    shutil.copy(folder / "ledger.sqlite", tmp_path / "older")
    said = []

    def start():
        ledger = open_ledger(folder, said.append)
        ledger.close()
        one, told = sidecar(cluster, folder, spool=Spool(spool) if with_spool else None)
        said.extend(told)
        one.say = one.restorer.say = said.append
        return one

    end_short(cluster, start())
    cluster.advance(30)
    for name in ("ledger.sqlite-wal", "ledger.sqlite-shm"):
        (folder / name).unlink(missing_ok=True)
    if how == "removed":
        (folder / "ledger.sqlite").unlink()
    elif how == "older":
        shutil.copy(tmp_path / "older", folder / "ledger.sqlite")
    else:
        (folder / "ledger.sqlite").write_bytes(b"" if how == "emptied" else b"nothing of the kind\n" * 500)
    one = start()
    if with_spool:
        one.round()
        assert cluster.jobs["3"].limit == 600  # its file said so
    go(cluster, one, 8000)
    assert any("ALARM" in text for text in said)
    assert any("not in the ledger" in text for text in said)
    assert cluster.violations == []
    assert cluster.jobs["3"].state == "COMPLETED"
    one.ledger.close()


@pytest.mark.parametrize("beside", ["disk full", "no job log", "stopped", "exposed"])
def test_a_lost_ledger_ends_no_job_while_nothing_may_be_adjusted(tmp_path, beside):
    """Only the test of the guard says whose the TimeMin of an unknown job is, so it is made whatever keeps from adjusting."""
    cluster = short_soon(3)
    end_short(cluster, sidecar(cluster, tmp_path)[0])
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"ledger.sqlite{end}").unlink(missing_ok=True)
    one, _ = sidecar(cluster, tmp_path)
    if beside == "disk full":

        def full(*arguments):
            raise LedgerError("database or disk is full")

        one.ledger.write = one.ledger.note = one.ledger.remember = full
    elif beside == "no job log":
        one.blocked = lambda: "there is no job log"
    elif beside == "stopped":
        one.stopped = lambda: True
    else:
        one.ledger.exposed = "others may reach into it"
    go(cluster, one, 8000)
    assert cluster.violations == []
    assert cluster.jobs["3"].state == "COMPLETED"
    assert not any(job.time_min for job in cluster.waiting())
    one.ledger.close()


@pytest.mark.parametrize("how", ["removed", "emptied", "older", "without its lock file", "the same"])
def test_another_ledger_is_noticed(tmp_path, how):
    Ledger(tmp_path).close()
    shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "older")
    Ledger(tmp_path).close()
    if how == "removed":
        (tmp_path / "ledger.sqlite").unlink()
    elif how == "emptied":
        (tmp_path / "ledger.sqlite").write_bytes(b"")
    elif how == "older":
        shutil.copy(tmp_path / "older", tmp_path / "ledger.sqlite")
    elif how == "without its lock file":
        (tmp_path / "lock").unlink()
    ledger = Ledger(tmp_path)
    assert bool(ledger.lost) == (how != "the same")
    ledger.close()
    ledger = Ledger(tmp_path)
    assert not ledger.lost
    ledger.close()


def test_a_short_job_that_is_put_back_unseen_is_repaired_while_it_waits(tmp_path):
    cluster = short_soon()
    one, _ = sidecar(cluster, tmp_path)
    until(cluster, one, lambda: "3" in cluster.jobs and cluster.jobs["3"].time_min)
    while cluster.jobs["3"].state == "PENDING":
        cluster.advance(10)
    cluster.nodes = 3  # so that it does not start again
    cluster.requeue(cluster.jobs["3"])
    assert cluster.jobs["3"].limit == 10
    one.round()
    assert cluster.jobs["3"].limit == 600
    one.ledger.close()


def test_an_unknown_time_min_is_set_to_0_where_its_user_cannot_have_set_it(golden, tmp_path):
    cluster = crowd()
    one, said = sidecar(cluster, tmp_path)
    cluster.jobs["3"].time_min = 7
    until(cluster, one, lambda: cluster.jobs["3"].time_min == 0)
    golden("slurm-adjust", [text for text in said if "ALARM" in text])
    one.ledger.close()


def test_an_answer_without_jobs_forgets_nothing_and_is_an_alarm(golden, tmp_path):
    cluster = short_soon(3)
    one, said = sidecar(cluster, tmp_path)
    until(cluster, one, lambda: sum(job.time_min > 0 for job in cluster.waiting()) >= 3)
    cluster.blind = True
    go(cluster, one, 75 * 60)
    golden("slurm-adjust", [text for text in said if "ALARM" in text])
    assert len(one.entries) >= 3
    cluster.blind = False
    go(cluster, one, 3 * 3600)
    assert cluster.violations == []
    assert not any("not in the ledger" in text for text in said)
    one.ledger.close()


def test_a_ledger_of_another_cluster_changes_nothing(tmp_path):
    cluster = crowd(soft=True)
    one, _ = sidecar(cluster, tmp_path)
    one.round()
    one.ledger.close()
    other = crowd(soft=True)
    other.name = "other"
    one, said = sidecar(other, tmp_path)
    assert "another cluster" in one.round().why
    assert "another cluster" in one.round().why
    assert other.updates == []
    assert sum("ALARM" in text for text in said) == 1
    one.ledger.close()


def test_a_ledger_of_a_later_version_is_not_touched(tmp_path):
    ledger = Ledger(tmp_path)
    ledger._base.execute("PRAGMA user_version = 99")
    ledger.close()
    with raises(OSError, "later_version"):
        Ledger(tmp_path)


def test_silence_for_half_the_floor_is_an_alarm_and_is_no_answer(tmp_path):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)
    assert one.round().answered
    cluster.down_until = cluster.clock.now + 100_000
    go(cluster, one, 290)
    assert not any("ALARM" in text for text in said)
    assert not one.round().answered
    go(cluster, one, 60)
    assert sum("Slurm has not answered" in text for text in said) == 1
    one.ledger.close()


@pytest.mark.nightly
def test_the_whole_queue_is_asked_for_at_its_own_pace(tmp_path):
    """A hundred thousand jobs wait; what may be short is looked at in each round all the same."""
    cluster = short_soon()
    asked = []
    whole = "".join(
        f"{k}|PENDING|zoe|bio|main|normal|Priority|1:00:00|0:00|{'2027-01-15T08:00:00|' * 2}N/A|0|1|1|9|N/A|N/A|(null)|(null)|\n"
        for k in range(10**6, 10**6 + 100_000)
    )

    def runner(words, timeout):
        answer = cluster(words, timeout)
        if words[0] == "squeue":
            asked.append("watched" if any(word.startswith("--jobs") for word in words) else "whole")
            if asked[-1] == "whole" and "--states=all" not in words and not any("--name" in word for word in words):
                cluster.advance(19)
                return answer._replace(out=answer.out + whole)
        return answer

    one, _ = sidecar(cluster, tmp_path)
    one.slurm._runner = runner
    one.settings = SidecarSettings(share=1.0, account=("bio",), changes=3)
    go(cluster, one, 600)
    assert asked.count("whole") <= 6
    assert asked.count("watched") > 2 * asked.count("whole")
    assert cluster.violations == []
    one.ledger.close()


def test_nobody_else_can_take_the_lock(tmp_path):
    tmp_path.chmod(0o755)
    ledger = Ledger(tmp_path)
    assert [oct(path.stat().st_mode & 0o777) for path in (tmp_path, tmp_path / "lock", tmp_path / "ledger.sqlite")] == [
        "0o700",
        "0o600",
        "0o600",
    ]
    ledger.close()
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to("/etc/hostname")
    ledger = Ledger(tmp_path)
    assert "cannot be written" in ledger.unwritable  # and what is short can still be read
    ledger.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_cannot_lock_the_ledger(tmp_path):
    tmp_path.chmod(0o755)
    Ledger(tmp_path).close()
    pid = os.fork()
    if not pid:
        status = 0
        try:
            os.setgid(65534)
            os.setuid(65534)
            with (tmp_path / "lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            status = 7
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@pytest.mark.parametrize("soft", [False, True], ids=["give-back", "soft-limit"])
def test_a_lost_guard_is_noticed_by_a_limit_that_changes_under_a_time_min(tmp_path, soft):
    cluster = short_soon(2)
    cluster.soft = soft
    one, said = sidecar(cluster, tmp_path)
    until(cluster, one, lambda: cluster.jobs["4"].time_min)
    cluster.guard = False
    cluster.user_changes_limit(cluster.jobs["4"], 900)
    go(cluster, one, 200)
    assert any("ALARM" in text and "job 4" in text and "guard" in text for text in said)
    assert any("self-test: FAILED" in text for text in said)
    assert all(job.time_min == 0 for job in cluster.waiting())
    one.ledger.close()
