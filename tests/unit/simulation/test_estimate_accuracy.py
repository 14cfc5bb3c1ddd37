"""What users ask for and use, what adjusted walltimes would gain, and what the largest users could ask for."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from tests.pages import outline
from walltime.accuracy import adjusted, estimate_accuracy
from walltime.accuracy.adjusted import EASY_PLUS_PLUS, FEW_UNDER, MOST_ACCURATE, OF_PAPER, USERS, adjust_walltimes, tang13_schemes
from walltime.accuracy.advice import advise_users, advised_jobs
from walltime.accuracy.page import accuracy_page, answer
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Machine, Partition, Pool
from walltime.metrics import requested_time
from walltime.report.html import render

HOUR = 3600
HOSTILE = "<script>alert(1)</script>"


def workload(runtime, requested, procs=1, names=None, submit=None, **columns):
    """Jobs an hour apart on 8 processors."""
    count = len(runtime)
    submit = np.arange(count) * HOUR if submit is None else submit
    columns = {name: np.broadcast_to(np.array(values), count).copy() for name, values in columns.items()}
    made = wt.Workload.from_arrays(
        submit=submit,
        runtime=runtime,
        requested=requested,
        procs=np.broadcast_to(np.array(procs), count).copy(),
        machine_procs=8,
        columns=columns,
    )
    if names is None:
        return made
    return replace(made, origin=replace(made.origin, names=names, unix_start_time=1_600_000_000))


def regular(users=4, jobs=240):
    """Users who ask for four hours and use one or two, on a machine that is nearly full."""
    user = np.arange(jobs) % users + 1
    runtime = np.where(user % 2 == 1, HOUR, 2 * HOUR) - np.arange(jobs) % 7 * 60
    return workload(runtime, [4 * HOUR] * jobs, 4, user=user, group=user, submit=np.arange(jobs) * 2000)


def test_asked_time__by_hand():
    # 2 h of 4 on 2 processors, 1 h of 1 on 3, and 2 h where 1 was asked for on 1: asked 8 + 3 + 1, used 4 + 3 + 2
    found = requested_time(np.array([2, 1, 2]) * HOUR, np.array([4, 1, 1]) * HOUR, np.array([2, 3, 1]))
    assert (found.asked_hours, found.used_hours, found.unused_hours, found.over_hours) == (12, 9, 4, 1)
    assert found.used_share == 0.75
    assert found.mean_accuracy == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert found.median_accuracy == 0.5
    assert found.at_limit == pytest.approx(2 / 3)
    assert found.under_tenth == 0
    assert found.asked_hours == found.used_hours + found.unused_hours - found.over_hours


def test_asked_time__of_no_jobs():
    none = np.zeros(0, np.int64)
    found = requested_time(none, none, none).as_dict()
    assert found["jobs"] == found["asked_hours"] == 0
    assert found["used_share"] is None
    assert found["mean_accuracy"] is None


def test_accuracy__users_that_ask_for_most_come_first():
    jobs = workload(
        [HOUR, HOUR, 30],
        [2 * HOUR, 8 * HOUR, HOUR],
        user=[1, 2, 3],
        group=[1, 1, 2],
        names={"user": ("ann", "bob", "cy"), "group": ("x", "y")},
    )
    found = wt.accuracy.estimate_accuracy(jobs, adjust=False, most=2)
    rows = found.groups["user"]
    assert [row["group"] for row in rows] == ["bob", "ann", "other users"]
    assert [row["asked_hours"] for row in rows] == [8, 2, 1]
    assert [row["used_share"] for row in rows] == pytest.approx([1 / 8, 1 / 2, 1 / 120])
    assert sum(row["share_of_unused"] for row in rows) == pytest.approx(1)
    assert found.table("account")["group"].to_list() == ["x", "y"]
    assert [row["jobs"] for row in found.groups["time"]] == [3]
    assert "partition" not in found.groups


def test_accuracy__how_jobs_end():
    # under a minute; under 10 %; half; 98 %; 99 % and all of it; a short job that ran to its limit
    runtime = [59, 350, 1800, 3528, 3564, 3600, 30]
    found = wt.accuracy.estimate_accuracy(workload(runtime, [HOUR] * 6 + [30], status=[0, 1, 1, 1, 0, 0, 0]), adjust=False)
    assert [row["jobs"] for row in found.ends] == [1, 1, 0, 2, 3]
    assert [row["failed"] for row in found.ends] == [1, 0, 0, 0, 3]
    assert {row["group"]: row["jobs"] for row in found.states} == {"failed": 4, "completed": 3}


def test_accuracy__time_without_a_calendar_is_counted_in_days():
    day = 86_400
    found = wt.accuracy.estimate_accuracy(workload([60, 60, 60], [HOUR] * 3, submit=[0, 40 * day, 70 * day]), adjust=False)
    assert [row["group"] for row in found.groups["time"]] == ["day 1", "day 31", "day 61"]


def test_accuracy__leaves_out_jobs_without_a_limit_and_says_so():
    found = wt.accuracy.estimate_accuracy(workload([HOUR, HOUR], [2 * HOUR, 365 * 86_400], user=1), adjust=False)
    assert found.total.jobs == 1
    assert found.total.asked_hours == 2
    assert any(said.startswith("1 job has no limit") for said in found.caveats)


@pytest.mark.parametrize(
    ("jobs", "options", "error", "words"),
    [
        (workload([10, 20], [10, 20]), {}, WorkloadError, ("missing_requests",)),
        (workload([10], [365 * 86_400]), {}, WorkloadError, ("missing_requests",)),
        (workload([10], [20]), {"most": 0}, PolicyError, ("number_out_of_range", "1", "0")),
    ],
)
def test_accuracy__refuses_with_one_sentence(jobs, options, error, words):
    with raises(error, *words):
        wt.accuracy.estimate_accuracy(jobs, adjust=False, **options)


def test_accuracy__table_names_what_there_is():
    found = wt.accuracy.estimate_accuracy(workload([10], [20]), adjust=False)
    with raises(PolicyError, "unknown_table", "'user'", "size", "length", "time", "ends"):
        found.table()
    assert "processor-hours used" in repr(found)
    assert "<table>" in found._repr_html_()


def test_schemes__without_groups_key_by_request():
    assert {scheme.key for scheme in tang13_schemes(workload([1], [2], user=1))} == {"user", "request"}
    with raises(WorkloadError, "missing_column"):
        tang13_schemes(workload([1], [2]))


@pytest.mark.slow
def test_adjusted__users_first_and_the_scheme_of_few_underestimates():
    found = adjust_walltimes(regular(), replications=3)
    rows = found.rows()
    assert rows[0]["what"] == USERS
    assert rows[0]["policy"] == "easy"
    assert rows[0]["wait_change"] == rows[0]["under"] == 0
    assert rows[1]["what"] == FEW_UNDER
    assert rows[1]["policy"].endswith("predictions-for=selective")
    assert rows[1]["under"] <= 15
    assert rows[1]["accuracy"] > rows[0]["accuracy"] + 0.3
    assert len({row["policy"] for row in rows}) == len(rows)
    assert {OF_PAPER, MOST_ACCURATE} & {row["what"] for row in rows}
    assert rows[-1]["policy"] == "easy:backfill-order=sjf,predictor=tsafrir07"
    assert found.spread.copies == 3
    # the replay is sorted, and says of equal schemes one only
    accuracies = [row["accuracy"] for row in found.schemes(50)]
    assert accuracies == sorted(accuracies, reverse=True)
    assert len(accuracies) == len({tuple(row.values())[1:] for row in found.schemes(50)})
    # what is simulated is what the policy alone gives
    assert rows[0]["mean_wait"] == wt.simulate(regular(), "easy").summary().mean_wait


@pytest.mark.slow
def test_adjusted__on_a_machine_that_slurm_schedules_easy_is_simulated():
    jobs = regular()
    machine = wt.machine.Machine((wt.machine.Pool("all", 2, 4),), (wt.machine.Partition("main", ("all",)),), policy="slurm")
    found = wt.accuracy.estimate_accuracy(jobs, machine=machine, replications=1)
    assert found.adjusted.instead == "slurm"
    assert found.adjusted.rows()[0]["policy"] == "easy"
    assert any("takes no predictions" in said for said in found.caveats)
    own = wt.machine.Machine(machine.pools, machine.partitions, policy="easy:order=sjf")
    assert adjust_walltimes(jobs, machine=own, replications=1).rows()[0]["policy"] == "easy:order=sjf"


def test_adjusted__left_out_on_nodes_where_only_plain_python_simulates_them(monkeypatch):
    pool = Pool("n", 1, 8, memory=1000)
    nodes = Machine((pool,), (Partition("main", ("n",)),), policy="easy")
    jobs = regular(jobs=60)
    monkeypatch.setattr(adjusted, "MOST_PLAIN_JOBS", 59)
    assert estimate_accuracy(jobs, machine=nodes).adjusted is None
    assert estimate_accuracy(jobs, machine=replace(nodes, by_node=False)).adjusted is not None
    monkeypatch.setattr(adjusted, "MOST_PLAIN_JOBS", 60)
    assert estimate_accuracy(jobs, machine=nodes).adjusted is not None


def test_answer__names_a_scheme_with_a_clear_gain_when_the_first_has_none(golden):
    found = estimate_accuracy(regular())
    rows = [{"what": name, "mean_wait": 100.0, "wait_change": change, "wait_clear": clear, "under": 47.0} for name, change, clear in ROWS]

    class Fixed:
        schedules = found.adjusted.schedules

        def rows(self):
            return rows

    golden("estimates", answer(replace(found, adjusted=Fixed())))
    rows[2]["wait_clear"] = False
    golden("estimates", answer(replace(found, adjusted=Fixed())))


ROWS = [(USERS, 0.0, None), (FEW_UNDER, -3.0, False), (EASY_PLUS_PLUS, -35.0, True)]


def test_advice__smallest_request_by_kind_of_job(golden):
    # 24 jobs of 4 processors that use 10 min of 2 h, 24 of 1 that use all but a minute of an hour
    runtime, procs = [600] * 24 + [HOUR - 60] * 24, [4] * 24 + [1] * 24
    names = {"user": ("ann",), "executable": ("ok", "big")}
    jobs = workload(runtime, [2 * HOUR] * 24 + [HOUR] * 24, procs, user=1, executable=[2] * 24 + [1] * 24, names=names)
    [one] = advise_users(jobs)
    assert one.user == "ann"
    golden("estimates", [(kind.kind, kind.walltime, kind.why) for kind in one.kinds])
    assert one.unused_hours == pytest.approx(24 * 4 * 110 / 60 + 24 / 60)
    assert one.less_hours == pytest.approx(24 * 4 * 110 / 60)
    assert one.options == ["--user", "ann", "--job-name", "big", "--job-procs", "4", "--risk", "5"]


def test_advice__kept_where_the_risk_is_too_high_or_jobs_were_killed_at_their_request():
    long = [600] * 4 + [7000] + [600] * 9 + [7000] + [600] * 5  # a tenth of the jobs needs it
    assert advise_users(workload(long, [2 * HOUR] * 20, user=1))[0].kinds[0].walltime is None
    assert advise_users(workload(long, [2 * HOUR] * 20, user=1), risk=10)[0].kinds[0].walltime == 600
    killed = [600] * 18 + [2 * HOUR] * 2
    [kind] = advise_users(workload(killed, [2 * HOUR] * 20, user=1))[0].kinds
    assert (kind.walltime, kind.killed) == (None, 10.0)


def test_advice__nobody_is_advised_to_ask_for_more():
    jobs = workload([600] * 10 + [1200] * 30, [900] * 10 + [2 * HOUR] * 30, user=1, executable=[1] * 40)
    [one] = advise_users(jobs)
    assert one.kinds[0].walltime == 1200
    assert advised_jobs(jobs, one).requested.tolist() == [900] * 10 + [1200] * 30


def test_advice__a_job_that_outran_it_keeps_its_request():
    jobs = workload([600] * 39 + [7000], [2 * HOUR] * 40, user=1)
    [one] = advise_users(jobs)
    assert one.kinds[0].killed == 2.5
    assert advised_jobs(jobs, one).requested.tolist() == [600] * 39 + [2 * HOUR]


def test_advice__names_that_cannot_be_typed_have_no_command():
    jobs = workload([60] * 40, [HOUR] * 40, user=[1] * 20 + [2] * 20, names={"user": ("a\x1b[1m", "-b")})
    told = {one.user: one.options for one in advise_users(jobs)}
    assert told["a\\x1b[1m"] is None
    assert told["-b"][0] == "--user=-b"


def test_advice__too_few_jobs():
    [one] = advise_users(workload([60] * 3, [HOUR] * 3, user=1))
    assert one.kinds == []
    assert one.as_dict()["walltime"] is None
    with raises(PolicyError, "number_out_of_range", "50"):
        advise_users(workload([60] * 3, [HOUR] * 3, user=1), risk=80)


@pytest.mark.slow
def test_page__hostile_names_are_text():
    jobs = workload([60] * 40, [HOUR] * 40, user=1, group=1, executable=1, names=dict.fromkeys(("user", "group", "executable"), (HOSTILE,)))
    page = render(accuracy_page(wt.accuracy.estimate_accuracy(jobs, replications=1)))
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<h1>") == 1
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)


@pytest.mark.slow
def test_page__same_bytes_and_every_figure_is_described(golden):
    jobs = regular()
    found = wt.accuracy.estimate_accuracy(jobs, replications=3)
    page = render(accuracy_page(found))
    assert page == render(accuracy_page(found))
    assert page.count("<figure>") == 4
    assert page.count('role="img" aria-label="') == 5, "the first figure also as a telephone shows it"
    golden("estimates", outline(page))
    assert answer(found) in page.replace("&nbsp;", " ").replace("&#x27;", "'")


def write(path, users=3, jobs=60):
    rows = [record(k, k * 500, 300 + 60 * (k % 4), 2, 7200, user=k % users + 1) for k in range(1, jobs + 1)]
    path.write_text(HEADER + "".join(rows))
    return path


@pytest.mark.slow
def test_cli__page_text_and_json(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = write(tmp_path / "log.swf")
    status, out, err = call(capsys, "estimates", log, "--report", "page.html", "--replications", "2")
    assert status == 0, err
    for words in (
        "Unused processor-hours by job outcome",
        "By user",
        "few underestimates",
        "walltime suggest LOG",
        "Notes:",
        "report written to page.html",
    ):
        assert words in out
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    status, out, _ = call(capsys, "estimates", log, "--json", "--adjusted", "--replications", "2")
    found = json.loads(out)["accuracy"]
    assert status == 0
    assert found["total"]["asked_hours"] == 60 * 2 * 2
    assert found["adjusted"]["spread"] == {"shake": 30, "copies": 2}
    assert len(found["advice"]) == 3
    status, out, _ = call(capsys, "estimates", log, "--json")
    assert json.loads(out)["accuracy"] is None
    assert json.loads(out)["hours"]["total"] == found["total"]
    assert json.loads(out)["hours"]["ends"] == found["ends"]


MACHINE = """
[[pool]]
name = "all"
nodes = 2
procs = 2
[[partition]]
name = "all"
pools = ["all"]
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--procs", "4", "--too-wide", "clip"], ["--machine", "machine.toml"]])
def test_cli__commands_of_the_page_run(capsys, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    log = write(tmp_path / "log.swf")
    log.write_text(log.read_text().replace("; MaxProcs: 4\n", ""))
    (tmp_path / "machine.toml").write_text(MACHINE)
    status, _, err = call(capsys, "estimates", "log.swf", *options, "--report", "page.html", "--replications=1")
    assert status == 0, err
    command = re.search(r"walltime suggest [^\n<]+", (tmp_path / "page.html").read_text())[0]
    assert command.startswith(f"walltime suggest log.swf --procs 4 {'--too-wide clip ' if '--procs' in options else ''}--user ")
    status, out, err = call(capsys, *command.split()[1:])
    assert status == 0, err
    assert "5 %" in out


@pytest.mark.parametrize(
    "options",
    [
        ["--estimates", "f:4", "--report", "page.html"],
        ["--machine", "machine.toml"],
        ["--replications", "3"],
        ["--report", "page.txt"],
        ["--report", "nowhere/page.html"],
    ],
)
def test_cli__wrong_options_get_one_line(golden, capsys, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    golden("estimates", one_line(*call(capsys, "estimates", write(tmp_path / "log.swf"), *options)))


def test_cli__page_of_a_log_without_estimates_is_refused_in_one_line(capsys, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(HEADER + "".join(record(k, k, 60, 1, -1) for k in range(1, 5)))
    assert "has no users' estimates" in one_line(*call(capsys, "estimates", log, "--report", tmp_path / "page.html"))
    assert not (tmp_path / "page.html").exists()
    status, _, err = call(capsys, "estimates", log)
    assert status == 0
    assert "no users' estimates" in err


@pytest.mark.slow
@pytest.mark.parametrize("command", [["estimates", "--replications", "1"], ["compare", "--policy", "easy"]])
def test_cli__no_page_shows_the_key_of_anonymised_names(capsys, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.swf")
    words = [command[0], "log.swf", *command[1:], "--anonymise", "sesame-street", "--report", "page.html"]
    monkeypatch.setattr("sys.argv", ["walltime", *words])
    status, _, err = call(capsys, *words)
    assert status == 0, err
    page = (tmp_path / "page.html").read_text()
    assert "sesame-street" not in page
    assert "--anonymise KEY" in page


SACCT = "JobID|User|JobName|NCPUS|Submit|Start|End|ElapsedRaw|TimelimitRaw|State\n"


def test_suggest__by_user_and_job_name_of_a_slurm_log(golden, capsys, tmp_path):
    lines = []
    for k in range(30):
        name, minutes = ("relax", 10) if k % 2 else ("train", 40)
        day = f"2026-01-{k + 1:02d}"
        lines.append(f"{k + 1}|ann|{name}|2|{day}T08:00:00|{day}T08:00:00|{day}T08:{minutes}:00|{minutes * 60}|120|COMPLETED\n")
    log = tmp_path / "sacct.txt"
    log.write_text(SACCT + "".join(lines))
    words = ["suggest", log, "--procs", "4", "--user", "ann", "--risk", "5", "--json"]
    by_name = [call(capsys, *words, option, "relax") for option in ("--job-name", "--executable")]
    assert by_name[0] == by_name[1]
    found = json.loads(by_name[0][1])
    assert found["like"] == ["user", "executable"]
    assert (found["jobs"], found["suggestions"][0]["walltime"]) == (15, 600)
    golden("estimates", one_line(*call(capsys, *words[:-1], "--job-name", "nosuch")))
