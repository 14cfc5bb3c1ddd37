"""A stretch of a recorded schedule in numbers, the store of such numbers, and what is unusual."""

import json
import re
import shlex
import sys
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.errors import LogError, WorkloadError
from walltime.machine import Limit, Machine, Outage, Partition, Pool, Reservation, Window, write_machine
from walltime.report.page import Drawing
from walltime.weekly_report.archive import METRICS
from walltime.weekly_report.causes import CAUSES, wait_causes
from walltime.weekly_report.command import FOLDER
from walltime.weekly_report.page import causes_sentence, causes_table, period_answer, period_page
from walltime.weekly_report.period import last_week, period, read_trend, unusual, write_trend

HOUR, WEEK = 3600, 7 * 86_400
METRIC_NAMES = {f"walltime_report_{name}" for name, _ in METRICS.values()}


def recorded(submit, wait, runtime, procs, requested=None, unix=None, **columns):
    values = {"wait": np.array(wait), **{name: np.array(value) for name, value in columns.items()}}
    requested = runtime if requested is None else requested
    made = wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=4, columns=values)
    return replace(made, origin=replace(made.origin, name="site", unix_start_time=unix))


def day():
    """Four processors; the first job has three of them for 10 h, the second wants two and waits 10 h, the third one and waits 2 h."""
    return recorded([0, HOUR, 2 * HOUR], [0, 9 * HOUR, 2 * HOUR], [10 * HOUR, HOUR, HOUR], [3, 2, 1], [20 * HOUR, HOUR, 4 * HOUR],
                    user=[1, 2, 2], status=[1, 0, 1])  # fmt: skip


def of_all(found):
    """The hours that all jobs waited, by cause."""
    return {cause: pytest.approx(found.causes[0][cause]) for cause in CAUSES if found.causes[0][cause]}


def test_causes__of_memory_gpus_limits_and_jobs_ahead():
    jobs = [  # submission, wait, runtime (h), processors, GPUs, memory, partition, user
        (0, 0, 10, 1, 0, 80, 1, 1),
        (1, 9, 1, 1, 0, 50, 1, 2),  # 20 of 100 MB are free for 9 h
        (2, 3, 1, 1, 0, 10, 1, 3),  # has room, behind the job that lacks memory
        (0, 0, 4, 1, 2, 0, 2, 4),
        (1, 3, 1, 1, 1, 0, 2, 5),  # no GPU is free
        (1, 3, 1, 4, 0, 0, 2, 6),  # 3 of 4 processors are free
        (12, 0, 2, 1, 0, 1, 1, 7),
        (12, 2, 1, 1, 0, 1, 1, 7),  # one job of a user runs at a time
        (20, 1, 1, 1, 0, 1, 1, 8),  # nothing lacks
        (24, 6, 1, 1, 0, 1, 1, 9),  # 2 h of an outage, 1 of it before it waits
    ]
    submit, wait, runtime, procs, gpus, memory, partition, user = np.array(jobs).T
    made = recorded(submit * HOUR, wait * HOUR, runtime * HOUR, procs, gpus=gpus, mem_mb=memory, partition=partition, user=user)
    made = replace(made, origin=replace(made.origin, names={"partition": ("cpu", "gpu")}))
    machine = Machine(
        (Pool("thin", 1, 4, memory=100), Pool("fat", 1, 4, second=2, memory=100)),
        (Partition("cpu", ("thin",)), Partition("gpu", ("fat",))),
        outages=(Outage("thin", 23 * HOUR, 26 * HOUR),),
        limits=(Limit(("user",), jobs=1),),
    )
    found = period(made, 0, 40 * HOUR, machine)
    assert of_all(found) == {"limit": 2, "second": 3, "memory": 9 + 2, "processors": 3, "behind": 3, "unknown": 1 + 4}
    assert [(row["group"], row["hours"]) for row in found.causes] == [("all jobs", 27), ("partition cpu", 21), ("partition gpu", 6)]
    assert (found.longest[0]["job"], found.longest[0]["cause"], found.longest[0]["cause_share"]) == (3, "memory", 1)
    assert found.numbers.second_utilization == pytest.approx((2 * 4 + 1) / (2 * 40))
    assert "% of the processors and 11 % of the GPUs were used" in period_answer(found)
    assert causes_sentence(found).startswith("Jobs waited 27 h in total: 41 % for memory, ")
    drawings = [block for section in period_page(found).sections for block in section.blocks if isinstance(block, Drawing)]
    assert [drawing.caption for drawing in drawings] == ["Busy processors (area) and GPUs (line), and waiting jobs."]
    assert found.second_total == 2


def test_causes__use_counts_for_the_pools_of_its_partition():
    made = recorded([0, HOUR, HOUR], [0, HOUR, HOUR], [2 * HOUR] * 3, [3, 3, 1], partition=[1, 2, 3])
    made = replace(made, origin=replace(made.origin, names={"partition": ("both", "first", "absent")}))
    machine = Machine((Pool("a", 1, 3), Pool("b", 1, 6)), (Partition("both", ("a", "b")), Partition("first", ("a",))))
    seconds, partition = wait_causes(made, machine, 0, 4 * HOUR)
    # a third of the first job counts in pool a: 2 of 3 processors are free; the third job has no partition there
    assert seconds[1, CAUSES.index("processors")] == HOUR
    assert (partition.tolist(), seconds[2, CAUSES.index("unknown")], seconds.sum()) == ([0, 1, -1], HOUR, 2 * HOUR)


def test_causes__of_a_reservation_that_begins_before_the_job_would_end():
    hours = [(8, 4, 4), (8, 1, 1), (20, 1, 9)]  # submission, wait, request: the second job would have ended before the reservation
    submit, wait, requested = HOUR * np.array(hours).T
    made = recorded(submit, wait, [HOUR] * 3, [1, 1, 1], requested=requested)
    maintenance = Reservation("maintenance", "all", 10 * HOUR, 12 * HOUR, announced=0)
    machine = Machine((Pool("all", 4, 1),), (Partition("all", ("all",)),), reservations=(maintenance,))
    assert of_all(period(made, 0, 30 * HOUR, machine)) == {"reservation": 4, "unknown": 1 + 1}
    late = replace(machine, reservations=(replace(maintenance, announced=9 * HOUR),))
    assert of_all(period(made, 0, 30 * HOUR, late)) == {"reservation": 3, "unknown": 1 + 1 + 1}
    two = replace(machine, reservations=(replace(maintenance, nodes=2),))
    assert of_all(period(made, 0, 30 * HOUR, two)) == {"unknown": 6}, "two nodes are free of it"
    users = replace(made, columns={**made.columns, "reservation": np.array([1, 1, 1])})
    users = replace(users, origin=replace(made.origin, names={"reservation": ("maintenance",)}))
    assert of_all(period(users, 0, 30 * HOUR, machine)) == {"unknown": 6}, "its own jobs"


def test_causes__of_an_announced_outage_that_begins_before_the_job_would_end():
    hours = [(0, 0, 3, 10), (8, 4, 4, 4), (8, 1, 1, 1), (20, 1, 9, 9)]  # submission, wait, runtime, request
    submit, wait, runtime, requested = HOUR * np.array(hours).T
    made = recorded(submit, wait, runtime, [1] * 4, requested=requested)
    maintenance = Outage("all", 10 * HOUR, 12 * HOUR, 4, announced=0)
    machine = Machine((Pool("all", 4, 1),), (Partition("all", ("all",)),), outages=(maintenance,))
    assert of_all(period(made, 0, 30 * HOUR, machine)) == {"processors": 2, "reservation": 2, "unknown": 1 + 1}
    assert "a reservation or an announced outage" in causes_sentence(period(made, 0, 30 * HOUR, machine))
    sudden = replace(machine, outages=(replace(maintenance, announced=None),))
    assert of_all(period(made, 0, 30 * HOUR, sudden)) == {"processors": 2, "unknown": 2 + 1 + 1}
    two = replace(machine, outages=(replace(maintenance, nodes=2),))
    assert of_all(period(made, 0, 30 * HOUR, two)) == {"unknown": 6}, "two nodes are free of it"
    busy = replace(made, submit=made.submit + np.array([8 * HOUR, 0, 0, 0]), procs=np.array([2, 1, 1, 1]))
    assert of_all(period(busy, 0, 30 * HOUR, two)) == {"reservation": 2, "processors": 1, "unknown": 3}, "job 1 is on the others"


@pytest.mark.parametrize(("priority", "cause"), [([9, 50, 100], "priority"), ([9, 200, 100], "unknown"), ([-1, -1, -1], "unknown")])
def test_causes__of_a_later_job_with_a_higher_priority(priority, cause):
    """Three of four processors are busy for 10 h; the third job lacks one from 2 h on, and the second could have started."""
    made = recorded([0, HOUR, 2 * HOUR], [0, 9 * HOUR, 8 * HOUR], [10 * HOUR, HOUR, HOUR], [3, 1, 2], priority=priority)
    expected = {"processors": 8, "unknown": 1}
    expected[cause] = expected.get(cause, 0) + 8
    assert of_all(period(made, 0, 24 * HOUR)) == expected
    assert ("higher priority" in causes_sentence(period(made, 0, 24 * HOUR))) == (cause == "priority")


def test_causes__of_closed_hours():
    made = recorded([9 * HOUR, 9 * HOUR], [8 * HOUR, 0], [HOUR, HOUR], [1, 1], requested=[4 * HOUR, HOUR], unix=1_767_225_600)
    windows = (Window("08:00", "16:00", longer_than=2 * HOUR),)
    machine = Machine((Pool("all", 4, 1),), (Partition("all", ("all",)),), windows=windows, clock=0)
    found = period(made, 0, 24 * HOUR, machine)
    assert of_all(found) == {"window": 7, "unknown": 1}
    assert "closed hours" in [str(head) for head in causes_table(found).columns]


def test_period__worked_example():
    n = period(day(), 0, 24 * HOUR).numbers
    assert (n.submitted, n.started, n.ended, n.waiting_at_end) == (3, 3, 3, 0)
    assert n.mean_wait == pytest.approx(11 / 3 * HOUR)
    assert n.median_wait == 2 * HOUR
    assert n.utilization == pytest.approx((30 + 2 + 1) / 96)
    # the second job waits from 1 to 10 h while one processor is free, the third from 2 to 4 h while one is, which it could have had
    assert n.waited_hours == 11
    assert of_all(period(day(), 0, 24 * HOUR)) == {"processors": 9, "behind": 2}
    assert (n.used_hours, n.unused_hours) == (33, 30 + 3)
    assert (n.failed_hours, n.limit_hours, n.lost_hours) == (0, 2, 2), "a failed job at its limit counts once"


def test_period__hours_of_unknown_statuses_and_limits_are_unknown(golden):
    n = period(recorded([0, 10], [0, 1], [HOUR, HOUR], [1, 1]), 0, 3 * HOUR).numbers
    assert (np.isnan(n.failed_hours), n.limit_hours, n.lost_hours) == (True, 2, 2)
    log = wt.logs.JobLog(2, {"submit": [0, 10], "wait": [0, 1], "runtime": [HOUR, HOUR], "allocated_procs": [1, 1]})
    found = period(log.to_workload(procs=4), 0, 3 * HOUR)
    assert np.isnan([found.numbers.limit_hours, found.numbers.unused_hours, found.numbers.lost_hours]).all()
    assert found.numbers.as_dict()["limit_hours"] is None
    assert [dict(period_page(found).numbers)[name] for name in ("processor-hours of failed jobs and jobs at their limit",)] == ["n/a"]
    golden("report", [period_answer(found), *period_page(found).caveats])


def test_page__names_only_the_lost_hours_that_are_known():
    found = period(recorded([0, 10], [0, 1], [HOUR, HOUR], [1, 1]), 0, 3 * HOUR)
    assert dict(period_page(found).numbers)["processor-hours of jobs at their limit"] == "2"
    assert "Jobs that reached their limit" in period_answer(found)
    assert "Jobs that failed or reached their limit" in period_answer(period(day(), 0, 24 * HOUR))


def test_period__that_begins_before_the_log_is_cut():
    jobs = recorded([3 * 86_400, 4 * 86_400], [0, 60], [86_400, 86_400], [4, 4])
    found = period(jobs, 0, WEEK)
    assert (found.numbers.begin, found.numbers.end, found.missing) == (3 * 86_400, WEEK, 3 * 86_400)
    assert found.numbers.utilization == pytest.approx(2 / 4, rel=1e-3)
    assert period(jobs, 3 * 86_400 - HOUR, WEEK).missing == 0, "the first hours of a log may have no submission"


def test_answer__of_a_machine_that_is_too_small_says_so():
    found = period(recorded([0, 0], [0, 1], [HOUR, HOUR], [4, 4], requested=[9 * HOUR] * 2, status=[0, 1]), 0, HOUR + 2)
    assert found.numbers.utilization == pytest.approx(2, rel=0.01)
    assert found.numbers.lost_hours / found.numbers.used_hours == 0.5
    assert "the machine's size is wrong" in period_answer(found)
    assert any("true size" in caveat for caveat in period_page(found).caveats)


def test_period__only_what_lies_within_it():
    found = period(day(), 3 * HOUR, 6 * HOUR)
    n = found.numbers
    assert (n.submitted, n.started, n.ended, n.waiting_at_end) == (0, 1, 1, 1)
    assert (n.waited_hours, of_all(found)) == (3 + 1, {"processors": 3, "behind": 1})


def test_period__held_up_and_users(golden):
    found = period(day(), 0, 24 * HOUR)
    golden("report", causes_sentence(found))
    assert [(row["user"], row["limit_hours"], row["failed_hours"]) for row in found.users] == [("2", 2, 0), ("1", 0, 0)]
    assert [(row["job"], row["cause"]) for row in found.longest[:2]] == [(2, "processors"), (3, "behind")]


def test_unusual__more_than_nine_of_ten_changes():
    before = [10.0, 11.0] * 6
    assert unusual(20.0, before) == (9.0, True)
    assert unusual(12.0, before) == (1.0, False)
    assert unusual(20.0, before[:8]) == (9.0, None)
    change, large = unusual(1.0, [])
    assert np.isnan(change)
    assert large is None


def test_report__of_a_log_without_a_whole_week_covers_the_log(tmp_path, capsys):
    log = tmp_path / "log.swf"
    lines = ["; MaxProcs: 4", "; UnixStartTime: 1772582400", "; TimeZoneString: UTC"]  # a Wednesday
    log.write_text("\n".join([*lines, *(f"{k} {k * HOUR} 60 600 2 -1 -1 2 1200 -1 1 1 -1 -1 1 -1 -1 -1" for k in range(1, 9))]) + "\n")
    status, out, err = call(capsys, "report", log, "--json")
    assert (status, len(err.splitlines())) == (0, 1)
    numbers = json.loads(out)["numbers"]
    assert (numbers["begin"], numbers["end"]) == (HOUR, 8 * HOUR + 661)  # when the last job has ended
    assert [numbers[name] for name in ("submitted", "started", "ended")] == [8, 8, 8]


def test_last_week__monday_to_sunday_at_the_site():
    monday = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp())
    jobs = recorded([0, 10 * 86_400], [0, 1], [1, 1], [1, 1], unix=monday)
    assert last_week(jobs) == (0, WEEK)  # the last job came on Thursday of the second week
    assert last_week(recorded([0, 10 * 86_400], [0, 1], [1, 1], [1, 1])) == (10 * 86_400 + 1 - WEEK, 10 * 86_400 + 1)


def weekly(weeks=14, more=0):
    """A job of each hour, the waits of the last week ten times as long; and so many jobs more in its last hour."""
    count = weeks * 168 + more
    submit = np.minimum(np.arange(count), weeks * 168 - 1) * HOUR
    wait = 60 * (1 + np.arange(count) // 168 % 2)
    wait[-168 - more :] = 1200
    return recorded(submit, wait, np.full(count, 600), np.ones(count, int), unix=int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()))


def test_answer__says_what_changed(golden):
    found = period(weekly(), 13 * WEEK, 14 * WEEK)
    assert len(found.before) == 13
    golden("report", period_answer(found))
    page = period_page(found)
    assert page.picture is not None
    assert [value for _, value in page.numbers] == ["20 min 00 s", "4.2 %", "n/a"]  # requests that all equal the runtimes are no limits


def test_answer__names_what_else_was_unusual(golden):
    found = period(weekly(more=50), 13 * WEEK, 14 * WEEK)
    golden("report", period_answer(found))


def test_store__trends_go_further_back_than_the_log(tmp_path):
    found = period(weekly(), 13 * WEEK, 14 * WEEK)
    write_trend(tmp_path / "weeks", [*found.before, found.numbers], 1000)
    kept = [one.as_dict() for one in read_trend(tmp_path / "weeks", 1000)]
    assert kept == [one.as_dict() for one in (*found.before, found.numbers)]
    assert read_trend(tmp_path / "none", 0) == []
    (tmp_path / "weeks" / "period-1-2.json").write_text("{}")
    with raises(LogError, "not_a_period"):
        read_trend(tmp_path / "weeks", 0)


def test_period__refuses_what_has_no_answer():
    with raises(WorkloadError, "missing_waits"):
        period(wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1), 0, 1)
    with raises(WorkloadError, "empty_window"):
        period(day(), 100 * HOUR, 101 * HOUR)


@pytest.mark.slow
def test_cli__page_store_and_timer(golden, capsys, monkeypatch, tmp_path):
    lines = ["; MaxProcs: 4", "; UnixStartTime: 1772409600", "; TimeZoneString: UTC"]
    lines += [f"{k + 1} {k * HOUR} {60 * (k % 5)} 600 2 -1 -1 2 1200 -1 {k % 2} {k % 3 + 1} -1 -1 1 -1 -1 -1" for k in range(30 * 24)]
    log = tmp_path / "log.swf"
    log.write_text("\n".join(lines) + "\n")
    page, weeks = tmp_path / "week.html", tmp_path / "weeks"
    status, out, err = call(capsys, "report", log, "--week", "--store", weeks, "--report", page)
    assert (status, err) == (0, "")
    golden("report", out)
    assert len(list(weeks.iterdir())) == 4
    assert "Causes of waiting" in page.read_text()
    status, out, _ = call(capsys, "report", log, "--window", "7d:14d", "--json")
    assert status == 0
    assert '"mean_wait": 120' in out
    monkeypatch.setattr(sys, "argv", ["walltime", "report", "--print-timer"])
    status, out, _ = call(capsys, "report", "--print-timer")
    assert "OnCalendar=Mon" in out
    assert "30 6 * * 1  cd /var/lib/walltime-report" in out
    status, out, _ = call(capsys, "report", log, "--print-timer", "--json")
    units = json.loads(out)
    assert list(units) == ["schema", "walltime-report.service", "walltime-report.timer", "cron"]
    assert "OnCalendar=Mon" in units["walltime-report.timer"]
    assert units["cron"].startswith("30 6 * * 1  cd /var/lib/walltime-report")
    assert call(capsys, "report")[0] == 2
    assert call(capsys, "report", log, "--week", "--window", "0d:1d")[0] == 2


@pytest.mark.slow
def test_timer__prints_commands_that_run_with_the_given_options(capsys, monkeypatch, tmp_path):
    folder = tmp_path / "it's a 100 % $HOME"
    folder.mkdir()
    lines = ["; MaxProcs: 4", "; UnixStartTime: 1767571200"]
    lines += [f"{k + 1} {k * HOUR} {60 * (k % 5)} 600 2 -1 -1 2 1200 -1 {k % 2} {k % 3 + 1} -1 -1 1 -1 -1 -1" for k in range(15 * 24)]
    (folder / "log.swf").write_text("\n".join(lines) + "\n")
    (folder / "machine.toml").write_text(write_machine(Machine((Pool("a", 8, 1),), (Partition("1", ("a",)),))))
    monkeypatch.chdir(folder)
    words = ["report", "log.swf", "--cluster=machine.toml", "--report", "page.html", "--procs", "8", "--week", "--print-timer"]
    monkeypatch.setattr(sys, "argv", ["walltime", *words])
    assert "log.swf" in call(capsys, *words)[1]
    monkeypatch.setattr(sys, "argv", ["walltime", *words, "--json"])
    units = json.loads(call(capsys, *words, "--json")[1])
    monkeypatch.chdir(tmp_path)
    started = next(line for line in units["walltime-report.service"].splitlines() if line.startswith("ExecStart="))
    systemd = re.sub(r"\\(.)", r"\1", started.partition(' -c "')[2].removesuffix('"').replace("%%", "%").replace("$$", "$"))
    cron = units["cron"].partition("  ")[2].replace("\\%", "%")
    assert systemd == cron
    assert f'"{folder}"' in units["walltime-report.service"]
    shell = cron.replace(FOLDER, shlex.quote(str(tmp_path)))
    command = shlex.split(shell.partition(" && ")[2])
    assert command[1:3] == ["report", str(folder / "log.swf")]
    status, _, err = call(capsys, *command[1:])
    assert (status, err) == (0, "")
    assert (folder / "page.html").exists()
    assert list((tmp_path / "weeks").iterdir())


def test_page__names_the_cluster_as_its_file_does():
    machine = Machine((Pool("a", 4, 1),), (Partition("1", ("a",)),), name="talos")
    assert period_page(period(day(), 0, 24 * HOUR, machine)).title.startswith("talos, ")
    assert period_page(period(day(), 0, 24 * HOUR)).title.startswith("site, ")


@pytest.fixture
def month(tmp_path):
    """A log of 30 days from Monday 2 March 2026."""
    lines = ["; MaxProcs: 4", "; UnixStartTime: 1772409600", "; TimeZoneString: UTC"]
    lines += [f"{k + 1} {k * HOUR} {60 * (k % 5)} 600 2 -1 -1 2 1200 -1 {k % 2} {k % 3 + 1} -1 -1 1 -1 -1 -1" for k in range(30 * 24)]
    log = tmp_path / "log.swf"
    log.write_text("\n".join(lines) + "\n")
    return log


@pytest.mark.slow
def test_archive__has_a_page_for_each_week_and_an_index(capsys, tmp_path, month):
    folder = tmp_path / "site"
    for window in ("2026-03-02:2026-03-09", "2026-03-09:2026-03-16"):
        assert call(capsys, "report", month, "--window", window, "--archive", folder)[0] == 0
    assert {path.name for path in folder.glob("*.html")} == {"2026-03-02.html", "2026-03-09.html", "index.html"}
    index = (folder / "index.html").read_text()
    assert index.index('<a href="2026-03-09.html">') < index.index('<a href="2026-03-02.html">')
    assert len(list(folder.glob("period-*.json"))) == 2


@pytest.mark.slow
def test_mail_and_metrics__of_a_week(capsys, tmp_path, month):
    mail, metrics = tmp_path / "mail.txt", tmp_path / "week.prom"
    options = ("--report", tmp_path / "week.html", "--metrics", metrics, "--mail-command", f"tee {mail}")
    assert call(capsys, "report", month, *options)[0] == 0
    assert mail.read_text().startswith("Subject: log, 2026-03-23 to 2026-03-29\n")
    assert mail.read_text().endswith(f"Report: {tmp_path / 'week.html'}\n")
    values = dict(line.rsplit(" ", 1) for line in metrics.read_text().splitlines() if not line.startswith("#"))
    assert (values["walltime_report_jobs_started"], values["walltime_report_mean_wait_seconds"]) == ("168", "119.64285714285714")
    assert values["walltime_report_end_timestamp_seconds"] == "1774828800"
    shown = call(capsys, "report", "--print-dashboard")[1]
    assert all(one["expr"] in METRIC_NAMES for panel in json.loads(shown)["panels"] for one in panel["targets"])


@pytest.mark.slow
@pytest.mark.parametrize("command", ["false", "no-such-program", "sh -c 'echo no route >&2; exit 1'"])
def test_mail__that_fails_is_one_line(golden, capsys, tmp_path, month, command):
    golden("report", one_line(*call(capsys, "report", month, "--report", tmp_path / "week.html", "--mail-command", command)))
    assert (tmp_path / "week.html").exists()


def test_mail__needs_a_page(golden, capsys, month):
    golden("report", one_line(*call(capsys, "report", month, "--mail-command", "cat")))
