"""Layouts that nobody named: titles in other words, zones by abbreviation, columns of a fixed width, documents of batch systems."""

import gzip
import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tests.cli import call, one_line
from tests.errors import raises
from tests.layouts import batsim, bjobs, completed, day_clock, flux, jobs, markdown, qstat, sacct, shown, soft_walltimes, text
from walltime.errors import LogError
from walltime.logs import read_log
from walltime.logs.clock import ABBREVIATIONS
from walltime.logs.input import LogFile


def at(seconds, form="%Y-%m-%d %H:%M:%S", hours=0.0):
    return datetime.fromtimestamp(seconds + int(hours * 3600), UTC).strftime(form)


def table(titles, row, sign=","):
    lines = [[str(cell) for cell in row(k, user, s, s + w, s + w + r, r, q, n)] for k, user, s, w, r, q, n in jobs()]
    return "\n".join([titles, *map(sign.join, lines)]) + "\n"


def zoned(word, hours, form="%Y-%m-%d %H:%M:%S {}"):
    def times(*seconds):
        return [at(one, form.format(word), hours) for one in seconds]

    return table("id,start time,end time,time of submission,cores,limit", lambda k, u, s, b, e, r, q, n: [k, *times(b, e, s), n, q])


def in_words():
    titles = "Job ID,Submit Time (UTC),Start Time (UTC),End Time (UTC),Wall Time (s),Requested Wall Time (hours),Core Count,Username"
    return table(titles, lambda k, u, s, b, e, r, q, n: [k, at(s), at(b), at(e), r, q / 3600, n, u])


LAYOUTS = {
    "words.csv": in_words,
    "camel.csv": lambda: table(
        "jobSubmitDateTime;jobStartDateTime;jobEndDateTime;procs;req_hours",
        lambda k, u, s, b, e, r, q, n: [at(s, "%d.%m.%Y %H:%M:%S"), at(b, "%d.%m.%Y %H:%M:%S"), at(e, "%d.%m.%Y %H:%M:%S"), n, q / 3600],
        ";",
    ),
    "us.csv": lambda: table(
        "job_id,submit_us,start_us,end_us,cores,limit_s", lambda k, u, s, b, e, r, q, n: [k, s * 10**6, b * 10**6, e * 10**6, n, q]
    ),
    "walltimes.csv": lambda: table(
        "id,queued at,Walltime,requested walltime,slots", lambda k, u, s, b, e, r, q, n: [k, at(s), day_clock(r), day_clock(q), n]
    ),
    "pods.csv": lambda: table(
        "name,num_gpu,creation_time,scheduled_time,deletion_time,timelimit",
        lambda k, u, s, b, e, r, q, n: [f"pod-{k}", n, s - 1_600_000_000, b - 1_600_000_000, e - 1_600_000_000, q],
    ),
    "mst.csv": lambda: zoned("MST", -7),
    "date.csv": lambda: zoned("CEST", 2, "%a %b %d %H:%M:%S {} %Y"),
    "12h.csv": lambda: zoned("JST", 9, "%a %d %b %Y %I:%M:%S %p {}"),
    "batsim.json": batsim,
    "qstat.json": qstat,
    "flux.json": flux,
    "jobcomp.log": completed,
    "scontrol.txt": shown,
    "bjobs.json": bjobs,
    "table.md": markdown,
    "soft.csv": lambda: "\n".join(
        ",".join(line.split()) for line in soft_walltimes() if not line.startswith(";") and "," not in line.split()[5]
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_layout__is_read_without_options(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(LAYOUTS[name]())
    status, out, error = call(capsys, "info", path, "--json")
    assert (status, error) == (0, "")
    found = json.loads(out)
    expected = list(jobs()) if name != "soft.csv" else [job for job in jobs() if found["jobs"] == 60]
    assert (found["jobs"], found["dropped"]) == (len(expected), {})
    log = read_log(path)
    workload = log.to_workload(procs=10**6)
    assert workload.runtime.tolist() == [job[4] for job in expected]
    assert workload.requested.tolist() == [job[5] for job in expected]
    assert (workload.submit - workload.submit[0]).tolist() == [job[2] - expected[0][2] for job in expected]
    if name in ("words.csv", "mst.csv", "date.csv", "12h.csv"):
        assert log.header.unix_start_time + log.column("submit")[0] == expected[0][2]
        assert "zone_unknown" not in log.noticed


def test_zone__of_several_meanings_needs_that_of_the_site(golden, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(zoned("IST", 5.5))
    golden("info", one_line(*call(capsys, "info", path)))
    log = read_log(path, time_zone="Asia/Kolkata")
    assert log.header.unix_start_time + log.column("submit")[0] == next(jobs())[2]
    assert "IST may be" in one_line(*call(capsys, "info", path, "--time-zone", "Europe/Stockholm"))


def test_zones__are_those_of_the_iana_files():
    known = {}
    for zone in available_timezones():
        for year in (2001, 2012, 2016, 2026):
            for month in (1, 7):
                local = datetime(year, month, 15, tzinfo=UTC).astimezone(ZoneInfo(zone))
                known.setdefault(local.tzname(), set()).add(local.utcoffset().total_seconds() / 3600)
    checked = {word: known[word] for word in ABBREVIATIONS if word in known}
    assert len(checked) > 30
    assert {word: hours for word, hours in checked.items() if not hours <= set(ABBREVIATIONS[word])} == {}
    assert {word for word in ("EST", "MST", "CET", "JST", "AEDT") if len(checked[word]) > 1} == set()


WIDTHS = {"JobID": -12, "User": 9, "Submit": 19, "Start": 19, "End": 19, "Timelimit": 10, "AllocCPUS": 10, "State": 10, "JobName": 10}


def fixed(change=lambda line: line, widths=WIDTHS):
    def line(cells):
        cut = [
            cell if len(cell) <= abs(width) else f"{cell[: abs(width) - 1]}+" for cell, width in zip(cells, widths.values(), strict=True)
        ]
        return (
            " ".join(cell.rjust(width) if width > 0 else cell.ljust(-width) for cell, width in zip(cut, widths.values(), strict=True)) + " "
        )

    lines = [line(list(widths)), line(["-" * abs(width) for width in widths.values()])]
    form = "%Y-%m-%dT%H:%M:%S"
    for k, user, s, w, r, q, n in jobs():
        limit = day_clock(q + 11 * 86_400) if k % 10 == 0 else day_clock(q)
        cells = [str(k), f"{user}_name", at(s, form), at(s + w, form), at(s + w + r, form), limit, str(n), "OUT_OF_MEMORY", "a b|c"]
        lines += [line(cells), line([f"{k}.interactive", "", *cells[2:5], "", *cells[6:]])]
    return "\n".join(map(change, lines)) + "\n"


def test_sacct__of_a_fixed_width_is_read_as_far_as_it_goes(golden, tmp_path, capsys):
    path = tmp_path / "sacct.txt"
    path.write_text("\ufeff" + fixed())
    log = read_log(path)
    assert (log.format, log.records, dict(log.dropped), log.noticed["cut_text"]) == ("slurm", 60, {"step": 60}, 60)
    assert log.column("allocated_procs").tolist() == [job[6] for job in jobs()]
    assert log.column("requested").tolist() == [job[5] + 11 * 86_400 if job[0] % 10 == 0 else job[5] for job in jobs()]
    assert {log.names["user"][number - 1] for number in log.column("user")} == {f"{job[1]}_name"[:8] for job in jobs()}
    path.write_text(fixed(lambda line: line[1:] if line.startswith("20 ") else line))
    golden("info", one_line(*call(capsys, "convert", path, "--out", tmp_path / "o.csv")))
    assert len(read_log(path, skip_bad_lines=True).bad_lines) == 1
    path.write_text(fixed(lambda line: line.replace(" Start", " Began")))
    golden("info", one_line(*call(capsys, "info", path)))


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        (b"PK\x03\x04\x14\0", "a zip archive"),
        (b"a.txt" + b"\0" * 252 + b"ustar\0", "a tar archive"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (
            b" ID      OWNER   SUBMITTED   RUN_TIME ST PRI SIZE CMD\n 12.0  bob  3/2 10:00 0+01:00:00 C 0 0.0 sim\n",
            "a list of HTCondor's jobs",
        ),
        (b"JOBID   USER   STAT  QUEUE  FROM_HOST  EXEC_HOST\n101  bob  DONE  normal  login1  n7\n", "a list of LSF's jobs"),
        (b"\nJob <101>, Job Name <sim>, User <bob>, Status <DONE>\n", "a list of LSF's jobs"),
        (b"\nserver:\n   Req'd  Req'd   Elap\nJob ID   Username Queue  Jobname\n-------- ----- ----- -----\n", "a list of PBS's jobs"),
        (b"Job id    Name    User   Time Use S Queue\n--------- ------- ------ -------- - -----\n", "a list of PBS's jobs"),
        (b"job-ID  prior   name  user  state submit/start at\n----------------\n  101 0.5 sim bob r\n", "a list of Grid Engine's jobs"),
        (
            b"    JOBID PARTITION  NAME  USER ST  TIME  NODES\n   101  batch  sim  bob  R  10:00  1\n",
            "a list of Slurm's jobs that have not ended",
        ),
    ],
)
def test_foreign_file__is_named_in_the_error(begins, said, tmp_path, capsys):
    (tmp_path / "log").write_bytes(begins)
    assert f"this is {said}" in call(capsys, "info", tmp_path / "log")[2].splitlines()[-1]


def test_json__of_another_system_whose_times_lack_the_year_is_refused_with_its_columns(tmp_path):
    rows = [
        {"JOBID": str(k), "STAT": "DONE", "NALLOC_SLOT": "4", "SUBMIT_TIME": "Mar  2 10:00", "START_TIME": "Mar  2 10:05"} for k in range(3)
    ]
    (tmp_path / "log.json").write_text(json.dumps({"COMMAND": "bjobs", "JOBS": 3, "RECORDS": rows}))
    with raises(LogError, "unknown_columns", "SUBMIT_TIME"):
        read_log(tmp_path / "log.json")


def test_times__of_lsf_may_have_a_letter_for_the_kind_of_the_end(tmp_path):
    (tmp_path / "t.csv").write_text(
        "JOBID,STAT,USER,NALLOC_SLOT,SUBMIT_TIME,START_TIME,FINISH_TIME\n"
        + "".join(f"{k},DONE,u,4,Mar  2 10:00:00 2026,Mar  2 10:0{k}:00 2026,Mar  2 11:0{k}:00 2026 {'LXE'[k]}\n" for k in range(3))
    )
    assert read_log(tmp_path / "t.csv").column("runtime").tolist() == [3600] * 3


def test_table_of_unknown_titles__is_refused_with_them(golden, tmp_path, capsys):
    (tmp_path / "log.csv").write_bytes(text(["Auftrag;Beginn;Ende;Kerne", "1;2026-01-02 03:04:05;2026-01-02 03:05:05;4"]))
    golden("info", one_line(*call(capsys, "simulate", tmp_path / "log.csv", "--policy", "easy")))


def test_table_of_short_titles__is_a_question_with_its_rows_and_read_when_answered(golden, tmp_path, capsys):
    table = tmp_path / "log.csv"
    rows = [(f"{1_700_000_000 + 60 * k}", f"{1_700_000_010 + 60 * k}", f"{1_700_003_600 + 60 * k}", f"{k % 3 + 1}", "a") for k in range(7)]
    table.write_text("sub,beg,fin,c,note\n" + "".join(",".join(row) + "\n" for row in rows))
    asked = one_line(*call(capsys, "simulate", table, "--policy", "easy"))
    golden("info", asked)
    assert [", ".join(row[:3]) in asked for row in rows] == [True] * 5 + [False] * 2
    assert call(capsys, "mapping", table, "--out", tmp_path / "x.toml")[0] == 0
    log = read_log(table, mapping=tmp_path / "x.toml")
    assert log.columns["runtime"].tolist() == [3590] * 7
    assert log.columns["wait"].tolist() == [10] * 7
    assert log.columns["allocated_procs"].tolist() == [1, 2, 3, 1, 2, 3, 1]


def test_table_of_short_titles__keeps_what_other_titles_say(tmp_path, capsys):
    table = tmp_path / "log.csv"
    since = 1_700_000_000
    table.write_text(
        "key,job_id,sub,beg,fin,cores,k,username,hash\n"
        + "".join(
            f"{90 - k},{k},{since + k},{since + 9 + 40 * k},{since + 2000 + 700 * k},2,{k % 2 + 1},u{k % 3},{k % 2 + 10:016x}\n"
            for k in range(40)
        )
    )
    code, printed, _ = call(capsys, "mapping", table)
    assert code == 0
    assert [
        f"{name} is '{title}'" in printed for name, title in (("job_id", "job_id"), ("allocated_procs", "cores"), ("user", "username"))
    ] == [True] * 3
    assert [word in printed for word in ("'key'", "'k'", "'hash'")] == [False] * 3


def test_times_that_titles_and_values_put_in_other_orders__are_no_question(golden, tmp_path, capsys):
    table = tmp_path / "log.csv"
    table.write_text(
        "fin,submit,beg,cores\n" + "".join(f"{1000 + k},{2000 + k},{3000 + k},2\n" for k in range(1_700_000_000, 1_700_000_009))
    )
    golden("info", one_line(*call(capsys, "simulate", table, "--policy", "easy")))


@pytest.mark.slow
def test_markdown__is_read_alike_in_pieces_packed_and_with_the_titles_of_slurm(tmp_path, monkeypatch):
    whole = tmp_path / "table.md"
    whole.write_text(markdown())
    expected = read_log(whole)
    packed = tmp_path / "table.md.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + whole.read_bytes().replace(b"\n", b"\r\n")))
    assert {name: values.tolist() for name, values in read_log(packed).columns.items()} == {
        name: values.tolist() for name, values in expected.columns.items()
    }
    monkeypatch.setattr("walltime.logs.input._CHUNK", 500)
    monkeypatch.setattr("walltime.logs.input._LATER_CHUNKS", 70)
    file = LogFile(whole)
    lines = file.content().decode().splitlines()
    assert lines[0] == "job id|user|account|submit time|start time|end time|cores|limit (s)"
    assert lines[1] == ""
    assert [line.split("|")[0] for line in lines[2:]] == [str(job[0]) for job in jobs()]
    assert {line.count("|") for line in lines[2:]} == {7}
    titled = tmp_path / "sacct.md"
    first, *others = (f"| {line.replace('|', ' | ')} |" for line in sacct())
    titled.write_text("\n".join([first, f"|{'---|' * first.count(' | ')}---|", *others]))
    assert read_log(titled).format == "slurm"
    assert len(read_log(titled).columns["submit"]) == 60


def test_folder_of_swf__asks_which(golden, tmp_path, capsys):
    for name in ("b.swf", "a.swf.gz"):
        (tmp_path / name).write_text("1 2 3")
    said = one_line(*call(capsys, "info", tmp_path))
    golden("info", said)
