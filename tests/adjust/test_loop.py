"""Round after round: the end, the metrics, the units."""

import socket
from contextlib import suppress

import pytest

from tests.adjust.test_rules import crowd, sidecar
from tests.cli import call
from walltime.slurm.configuration import SlurmError
from walltime.slurm.sidecar.host import Systemd, systemd_units
from walltime.slurm.sidecar.loop import run_rounds
from walltime.slurm.sidecar.metrics import Metrics


def play(cluster, one, rounds, **options):
    """So many rounds, then the end."""
    reports, ended = [], []
    one.stopped = lambda: bool(ended)

    def done(report):
        reports.append(report)
        if len(reports) == rounds:
            ended.append(1)

    run_rounds(one, 30.0, lambda: bool(ended), cluster.advance, done, **options)
    return reports


def test_the_end_takes_everything_back(tmp_path):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)
    reports = play(cluster, one, rounds=3)
    assert reports[0].set_now == 6
    assert [report.removed for report in reports] == [0, 0, 0, 6, 0]
    assert all(job.time_min == 0 for job in cluster.waiting())
    assert one.watched == []
    assert not any("ended with" in text for text in said)
    one.ledger.close()


def test_an_end_without_an_answer_says_what_is_left(tmp_path):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)
    one.round()
    cluster.down_until = cluster.clock.now + 10_000
    play(cluster, one, rounds=1)
    assert any("ended with 6 jobs" in text for text in said)
    one.ledger.close()


def test_metrics(tmp_path):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)
    metrics = Metrics(tmp_path / "walltime.prom", said.append)
    for _ in range(2):
        metrics.write(one.round(), one)
    lines = (tmp_path / "walltime.prom").read_text().splitlines()
    values = dict(line.removeprefix("walltime_adjust_").split() for line in lines if not line.startswith("#"))
    assert values["jobs_pending"] == values["adjusted_jobs"] == values["set_total"] == "6"
    assert values["acting"] == "1"
    assert values["wanted_jobs"] == "0"
    assert len([line for line in lines if line.startswith("# TYPE")]) == len(values)
    missing = Metrics(tmp_path / "missing" / "walltime.prom", said.append)
    missing.write(one.round(), one)
    assert "missing" in missing.wrong
    one.ledger.close()


def test_a_round_in_a_line(golden):
    report = sidecar(crowd(soft=True))[0].round()
    golden("slurm-adjust", report.line())


def test_units_keep_words_whole():
    unit = systemd_units(["/opt/w", "slurm", "adjust", "--account", "a b", '--x="$y"%'], "walltime")
    assert 'ExecStart=/opt/w slurm adjust --account "a b" "--x=\\"$$y\\"%%"' in unit


@pytest.mark.parametrize(
    "words",
    [
        "Type=notify",
        "WatchdogSec=300",
        "MemoryMax=2G",
        "StateDirectoryMode=0700",
        "UMask=0077",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
    ],
)
def test_the_unit_gives_few_rights_and_has_a_watchdog(words):
    lines = systemd_units(["/opt/w"], "walltime", ["/var/lib/spool"]).splitlines()
    assert words in lines
    assert "CapabilityBoundingSet=" in lines
    assert "ReadWritePaths=-/var/lib/spool" in lines


def test_systemd_hears_of_each_command_of_the_start_and_of_the_end_and_is_not_waited_for(tmp_path):
    cluster = crowd(soft=True)
    one, _ = sidecar(cluster, tmp_path)
    heard = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        systemd = Systemd(str(tmp_path / "notify"))

        def hear():
            with suppress(BlockingIOError):
                while True:
                    heard.append(listening.recv(200).decode())

        one.slurm.alive = lambda: systemd.notify("WATCHDOG=1")
        cluster.fault = lambda words: "hang" if words[0] == "squeue" else None
        one.round()
        hear()
        assert set(heard) == {"WATCHDOG=1"}  # although there was no answer
        for _ in range(1000):  # more than fit into the socket while nobody reads it
            systemd.notify("WATCHDOG=1")
        hear()
        cluster.fault = lambda words: None
        one.slurm.alive = lambda: None
        play(cluster, one, rounds=1, notify=lambda *words: (systemd.notify(*words), hear()))
    assert "READY=1\nWATCHDOG=1" in heard
    assert "STOPPING=1" in heard
    assert any(text.startswith("EXTEND_TIMEOUT_USEC=") for text in heard)
    Systemd(str(tmp_path / "nobody")).notify("READY=1")  # that nobody listens does not matter
    one.ledger.close()


def test_the_user_is_that_of_the_process_whatever_the_environment_says(capsys, tmp_path, monkeypatch):
    from getpass import getuser
    from os import geteuid
    from pwd import getpwuid

    users = []

    def seen(slurm, predict, settings, host, *others):
        users.append(host.user)
        raise SlurmError("this is enough")

    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    monkeypatch.setattr("walltime.slurm.sidecar.round.Sidecar", seen)
    call(capsys, "slurm", "adjust", "--act", "--history", tmp_path / "none.txt", "--ledger", tmp_path)
    assert getuser() == "mallory"
    assert users == [getpwuid(geteuid()).pw_name]
