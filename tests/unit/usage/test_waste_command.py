"""The command `waste`, its page, tables and metrics, and the part of `report`."""

import csv
import io
import json
import re
import subprocess
import sys

import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.waste_month import month, sacct_text, write
from walltime.usage.page import chart

JOBS = month(120)
STATES = ("TIMEOUT", "DEADLINE", "FAILED", "COMPLETED")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("month"), JOBS)


def test_text(golden, files, capsys):
    golden("waste", call(capsys, "waste", files["text"], "--by", "user", "--by", "gpu_type")[1])


def test_text__without_use(golden, files, capsys):
    golden("waste", call(capsys, "waste", files["nothing"], "--by", "user", "--by", "queue")[1])


@pytest.mark.slow
def test_groups__that_are_equal_are_shown_once(tmp_path, capsys):
    (tmp_path / "log").write_text(sacct_text([one | {"account": f"lab-{one['user']}"} for one in JOBS]))
    heads = [line.strip() for line in call(capsys, "waste", tmp_path / "log")[1].splitlines() if line.startswith("By ")]
    assert heads == ["By user and account"]
    assert "By user and account" in call(capsys, "waste", tmp_path / "log", "--by", "group")[1]
    found = wt.waste(wt.read(tmp_path / "log", procs=100))
    assert found.alike["group"] == ["user", "group"]
    assert "group" not in found.distinct
    assert "group" in found.groups


def test_chart__explains_only_colours_that_are_drawn(tmp_path):
    captions = []
    for jobs in (JOBS, [one for one in JOBS if one["cpu"] is not None and not one["gpus"]]):
        (tmp_path / "log").write_text(sacct_text(jobs))
        captions.append(chart(wt.waste(wt.read(tmp_path / "log", procs=100))).caption)
    assert [["Blue" in text, "Orange" in text, "Grey" in text] for text in captions] == [[True] * 3, [True, True, False]]


def test_json__has_the_numbers_of_python(files, capsys):
    record = json.loads(call(capsys, "waste", files["text"], "--json")[1])
    found = json.loads(json.dumps(wt.waste(wt.read(files["text"], procs=10_000)).as_dict()))
    assert {name: record[name] for name in found} == found
    assert set(record["groups"]) == {"user", "group", "partition", "executable", "state", "gpu_type"}


def test_csv__has_all_groups(files, capsys):
    status, out, _ = call(capsys, "waste", files["text"], "--format", "csv")
    assert status == 0
    tables = [list(csv.reader(io.StringIO(part))) for part in out.split("\n\n")] if "\n\n" in out else [list(csv.reader(io.StringIO(out)))]
    rows = [row for table in tables for row in table]
    assert {f"u{k}" for k in range(6)} <= {row[0] for row in rows if row}


@pytest.mark.slow
def test_page__begins_with_the_chart_and_has_sortable_tables(files, capsys, tmp_path):
    page = tmp_path / "waste.html"
    assert call(capsys, "waste", files["text"], "--report", page)[0] == 0
    text = page.read_text()
    assert text.index("<svg") < text.index("<table")
    assert "aria-sort" in text
    assert text.count("<table") >= 9


@pytest.mark.slow
def test_metrics(files, capsys, tmp_path):
    target = tmp_path / "waste.prom"
    assert call(capsys, "waste", files["text"], "--metrics", target)[0] == 0
    lines = target.read_text().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert all(re.fullmatch(r'walltime_waste_\w+(\{(\w+="[^"\n]*",?)+\})?', name) for name in values)
    found = wt.waste(wt.read(files["text"], procs=10_000))
    assert float(values['walltime_waste_hours{resource="cores",kind="used"}']) == found.total.hours["cores"].used
    (first, *_) = found.groups["user"]
    assert (
        float(values[f'walltime_waste_hours_by_user{{username="{first.group}",resource="gpus",kind="measured"}}'])
        == first.hours["gpus"].measured
    )
    assert 'walltime_waste_hours{resource="nodes",kind="used"}' not in values


def test_metrics__have_the_chosen_groups(files, capsys, tmp_path):
    target = tmp_path / "waste.prom"
    call(capsys, "waste", files["text"], "--by", "executable", "--by", "gpu_type", "--metrics", target)
    names = {line.split("{")[0] for line in target.read_text().splitlines() if "hours_by" in line and not line.startswith("#")}
    assert names == {"walltime_waste_hours_by_job_name", "walltime_waste_hours_by_gpu_type"}
    assert '{job_name="align",resource="cores",kind="used"}' in target.read_text()


def test_csv__has_numbers_and_a_name_in_each_column(files, capsys):
    big = files["text"].parent / "big.log"
    big.write_text(sacct_text([job | {"state": "FAILED", "limit": 86_400} for job in month(1200)]))
    tables = [list(csv.reader(io.StringIO(table.strip()))) for table in call(capsys, "waste", big, "--format", "csv")[1].split("\n\n")]
    assert all(all(head) for head, *_ in tables)
    counts = [float(row[head.index("jobs")]) for head, *rows in tables if "jobs" in head for row in rows]
    assert max(counts) == 1200


def test_one_group_more_than_listed__has_its_name(files, capsys):
    accounts = {job["account"] for job in JOBS}
    for listed in (len(accounts) - 1, len(accounts) - 2):
        record = json.loads(call(capsys, "waste", files["text"], "--by", "group", "--listed", listed, "--json")[1])
        names = {one["group"] for one in record["groups"]["group"]}
        assert (names == accounts) == (listed == len(accounts) - 1)


def test_notes__memory_beyond_the_request(golden, capsys, tmp_path):
    # two processors each; memory in KB per processor: a job within its request, one beyond it, and one without a request
    rows = [
        f"{k} {k} 0 3600 2 -1 {used} 2 3600 {asked} 1 1 -1 -1 -1 -1 -1 -1"
        for k, used, asked in ((1, 524288, 1048576), (2, 3145728, 1048576), (3, 1024, -1))
    ]
    (tmp_path / "site.swf").write_text("\n".join(["; MaxProcs: 4", *rows]) + "\n")
    memory = json.loads(call(capsys, "waste", tmp_path / "site.swf", "--json")[1])["total"]["memory"]
    assert [memory[name] for name in ("asked", "allocated", "used", "unused")] == [4, 2 + 6, 1 + 6, 1]
    golden("waste", call(capsys, "waste", tmp_path / "site.swf")[1])
    (tmp_path / "log").write_text(sacct_text([job | {"used_mb": 2 * job["asked_mb"]} for job in JOBS[:4]]))
    golden("waste", call(capsys, "waste", tmp_path / "log", "--by", "user")[1].split("Notes:")[1])


def test_unknown_grouping(golden, files, capsys):
    golden("waste", one_line(*call(capsys, "waste", files["text"], "--by", "month")))


@pytest.mark.slow
def test_report__has_the_waste_of_its_week(files, capsys, tmp_path):
    page = tmp_path / "week.html"
    status, out, err = call(capsys, "report", files["text"], "--procs", 200, "--window", "2026-03-05:2026-03-12", "--json")
    assert status == 0, err
    record = json.loads(out)
    begin, end = (1_772_323_200 + 86_400 * days for days in (4, 11))
    inside = [job for job in JOBS if begin <= job["start"] + job["run"] < end]
    assert 0 < len(inside) < len(JOBS)
    assert record["waste"]["total"]["jobs"] == len(inside)
    assert record["waste"]["total"]["cores"]["allocated"] == pytest.approx(sum(job["procs"] * job["run"] for job in inside) / 3600)
    assert record["waste"]["total"]["lost"] == pytest.approx(
        record["numbers"]["failed_hours"] + record["numbers"]["limit_hours"] + _cancelled(inside)
    )
    price = ("--kwh-price", "0.5", "--report", page)
    out = call(capsys, "report", files["text"], "--procs", 200, "--window", "2026-03-05:2026-03-12", *price)[1]
    kwh = sum(job["joules"] or 0 for job in inside) / 3.6e6
    assert "of the core-hours" in out
    assert f"{kwh:,.0f} kWh, cost {0.5 * kwh:,.2f}" in out
    assert "Patterns of waste" in page.read_text()


def test_report__counts_a_timeout_before_the_limit_as_waste_does(tmp_path, capsys):
    begin = 1_772_323_200
    rows = [f"{k}|u|{begin + 3600 * k}|{begin + 3600 * k + 5}|{begin + 3600 * k + 1800}|1795|30|4|{s}" for k, s in enumerate(STATES)]
    (tmp_path / "log").write_text("\n".join(["JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|State", *rows]) + "\n")
    record = json.loads(call(capsys, "report", tmp_path / "log", "--procs", 8, "--window", "2026-03-01:2026-03-02", "--json")[1])
    hours = {one["cause"]: one["cores"] for one in record["waste"]["lost"]}
    assert hours == {"limit": pytest.approx(2 * 4 * 1795 / 3600), "failed": pytest.approx(4 * 1795 / 3600)}
    assert record["numbers"]["limit_hours"] == pytest.approx(hours["limit"])
    assert record["numbers"]["failed_hours"] == pytest.approx(hours["failed"])


def _cancelled(jobs):
    return sum(job["procs"] * job["run"] for job in jobs if job["state"].startswith("CANCELLED")) / 3600


@pytest.mark.nightly
def test_large_log__is_read_in_1_gb(tmp_path):
    head, *lines = sacct_text(month(20_000)).splitlines()
    split = [line.split("|", 2) for line in lines]
    with (tmp_path / "log").open("w") as file:
        file.write(f"{head}\n")
        for k in range(25):
            for name, _, rest in split:
                number, point, step = name.partition(".")
                own = f"{int(number) + 20_000 * k}{point}{step}"
                file.write(f"{own}|{own}|{rest}\n")
    # Started by a small process, because Linux counts the memory of the process that forks.
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
    command = [sys.executable, "-c", code, sys.executable, "-m", "walltime", "waste", str(tmp_path / "log"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["total"]["jobs"] == 500_000
    assert int(done.stderr.split()[-1]) * 1024 < 1e9


@pytest.mark.parametrize("request_s", [-1, 3600])
def test_log_without_any_hours__has_no_shares(capsys, tmp_path, request_s):
    file = tmp_path / "zero.swf"
    file.write_text(f"; MaxProcs: 4\n1 0 0 0 4 -1 -1 4 {request_s} -1 0 -1 -1 -1 -1 -1 -1 -1\n")
    assert call(capsys, "waste", file)[0] == 0
    assert call(capsys, "waste", file, "--json")[0] == 0
