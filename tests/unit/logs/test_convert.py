"""Converting logs: what goes in comes out again; anonymised ones tell nobody's name; hostile names do no harm anywhere."""

import csv
import json

import numpy as np
import polars as pl
import pytest

import walltime as wt
from tests.batch_text import COBALT, LSF, PBS
from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from tests.slurm_text import HEADING, ROWS, TEXT
from walltime.cli import options as o
from walltime.errors import PolicyError
from walltime.logs import read_log
from walltime.logs.anonymous import read_key
from walltime.logs.convert import ENDINGS

LOGS = {"slurm": TEXT, "pbs": PBS, "lsf": LSF, "cobalt": COBALT, "swf": HEADER + record(1, 0, 5, 2, 9) + record(2, 3, 5, 2, 9, user=7)}
HOSTILE = (
    "$(touch /tmp/owned); `id` && rm -rf ~",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b]0;title\x07\x9b2J",
    'quote " and comma , and \u202e reversed \u2028 line',
    "'already quoted",
    "x" * 5000,
)


@pytest.fixture
def written(tmp_path):
    def write(text, name):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def same_columns(a, b, names=True):
    assert list(a.columns) == list(b.columns)
    for name, values in a.columns.items():
        assert np.array_equal(values, b.columns[name]), name
    assert not names or dict(a.names) == dict(b.names)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_parquet__gives_an_equal_workload(written, tmp_path, capsys, name):
    path = written(LOGS[name], "log.txt")
    assert call(capsys, "convert", path, "--out", tmp_path / "log.parquet")[0] == 0
    before, after = read_log(path), read_log(tmp_path / "log.parquet")
    same_columns(before, after)
    first, second = before.to_workload(procs=4096), after.to_workload(procs=4096)
    for column in ("job_id", "submit", "runtime", "requested", "procs", "planned"):
        assert np.array_equal(getattr(first, column), getattr(second, column))
    assert first.columns.keys() == second.columns.keys()
    for field in ("records", "dropped", "changed", "noticed", "header", "unix_start_time", "time_zone", "names"):
        assert getattr(first.origin, field) == getattr(second.origin, field), field


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_swf__keeps_all_columns_as_numbers(written, tmp_path, capsys, name):
    path = written(LOGS[name], "log.txt")
    assert call(capsys, "convert", path, "--out", tmp_path / "log.swf.gz", "--procs", 64)[0] == 0
    before, after = read_log(path), read_log(tmp_path / "log.swf.gz")
    same_columns(before, after, names=False)
    assert after.header.machine_procs == 64
    assert after.header.unix_start_time == before.header.unix_start_time
    assert call(capsys, "convert", tmp_path / "log.swf.gz", "--out", tmp_path / "again.swf.gz")[0] == 0
    assert (tmp_path / "log.swf.gz").read_bytes() == (tmp_path / "again.swf.gz").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_csv__keeps_columns_and_names(written, tmp_path, capsys, name):
    path = written(LOGS[name], "log.txt")
    assert call(capsys, "convert", path, "--out", tmp_path / "log.csv.gz")[0] == 0
    same_columns(read_log(path), read_log(tmp_path / "log.csv.gz"))


@pytest.mark.slow
def test_convert__says_what_it_did(golden, written, tmp_path, capsys):
    path = written(TEXT, "log.txt")
    status, out, _ = call(capsys, "convert", path, "--out", tmp_path / "log.swf")
    assert status == 0
    assert out.startswith("dropped: 2 step, 1 still_pending, 1 still_running, 1 never_started, 1 lost_start\nchanged: ")
    facts = json.loads(call(capsys, "convert", path, "--out", tmp_path / "log.swf", "--json")[1])
    assert (facts["format"], facts["records"], facts["dropped"]["step"]) == ("slurm", 11, 2)
    assert "Note: dropped: 2 step" in (tmp_path / "log.swf").read_text()
    golden("convert", one_line(*call(capsys, "convert", path, "--out", tmp_path / "log.xlsx")))


@pytest.mark.slow
def test_convert__size_of_the_machine_for_a_converted_log(written, tmp_path, capsys):
    call(capsys, "convert", written(TEXT, "log.txt"), "--out", tmp_path / "a.parquet", "--procs", 16)
    for name in ("b.parquet", "b.swf"):
        assert call(capsys, "convert", tmp_path / "a.parquet", "--out", tmp_path / name, "--procs", 32)[0] == 0
        assert read_log(tmp_path / name).to_workload().machine_procs == 32
    hidden = read_log(tmp_path / "a.parquet", anonymise="a secret key")
    assert (hidden.header.machine_procs, hidden.to_workload().origin.header[-1]) == (16, "; MaxProcs: 16")


@pytest.mark.slow
def test_damaged_parquet__is_one_line(written, tmp_path, capsys):
    call(capsys, "convert", written(TEXT, "log.txt"), "--out", tmp_path / "log.parquet")
    content = (tmp_path / "log.parquet").read_bytes()
    for damaged in (content[:100], content[:-50], b"PAR1"):
        (tmp_path / "bad.parquet").write_bytes(damaged)
        assert "bad.parquet" in one_line(*call(capsys, "info", tmp_path / "bad.parquet", "--procs", "9"))


@pytest.mark.slow
def test_parquet__without_the_metadata_is_a_table_that_is_recognised(written, tmp_path):
    log = read_log(written(TEXT, "log.txt"))
    wt.logs.write_log(tmp_path / "log.parquet", log)
    (tmp_path / "other.parquet").write_bytes((tmp_path / "log.parquet").read_bytes().replace(b"walltime-log", b"walltime-xxx"))
    other = read_log(tmp_path / "other.parquet")
    assert other.format == "mapped"
    assert other.reading
    assert other.column("runtime").tolist() == log.column("runtime").tolist()


@pytest.mark.slow
def test_anonymise__same_person_same_number_in_every_file_of_a_key(written, tmp_path):
    whole = read_log(written(TEXT, "a.txt"), anonymise="a secret key")
    part = read_log(written("\n".join([HEADING, *ROWS[5:]]), "b.txt"), anonymise="a secret key")
    other = read_log(written(TEXT, "a.txt"), anonymise="another key")
    plain = read_log(tmp_path / "a.txt")

    def numbers(log, column):
        return dict(zip(log.column("job_id").tolist(), log.column(column).tolist(), strict=True))

    for column in ("user", "group", "executable"):
        first, second = numbers(whole, column), numbers(part, column)
        assert {job: first[job] for job in second} == second
        assert not set(first.values()) & set(numbers(other, column).values())
        assert len(set(first.values())) == len(plain.names[column])
        assert column not in whole.names
    assert set(whole.names) == {"queue", "partition", "state", "reason"}
    assert np.array_equal(whole.column("submit"), plain.column("submit"))


@pytest.mark.slow
def test_anonymise__no_name_is_in_any_output(written, tmp_path, capsys):
    (tmp_path / "key").write_text("something long and random\n")
    path = written(TEXT, "log.txt")
    for name in ("log.parquet", "log.csv", "log.swf"):
        assert call(capsys, "convert", path, "--out", tmp_path / name, "--anonymise", f"@{tmp_path / 'key'}")[0] == 0
        content = (tmp_path / name).read_bytes()
        assert not [word for word in (b"ann", b"bob", b"overrun", b"again", b"sbatch") if word in content]


def test_anonymise__numbers_of_a_log_without_names(written):
    path = written(LOGS["swf"], "log.swf")
    log = read_log(path, anonymise="a secret key")
    assert len(set(log.column("user").tolist())) == 2
    assert log.column("user").min() > 1000
    assert read_log(path).column("user").tolist() == [1, 7]
    assert log.header.machine_procs == 4


def test_key__is_long_and_may_be_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("KEY", "from the environment")
    assert read_key("env:KEY") == b"from the environment"
    for text, code in (("short", "short_key"), ("@missing", "unreadable_key"), ("env:NO_SUCH", "unreadable_key")):
        with raises(PolicyError, code):
            read_key(text)


def sanitize(text):
    return not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c in "\u202e\u2028" for c in text)


@pytest.mark.slow
def test_hostile_names__are_harmless_everywhere(tmp_path, capsys):
    """In a job's name and in what groups are called: terminal, CSV, HTML, JSON."""
    heading = (
        "JobIDRaw\x1fUser\x1fPartition\x1fQOS\x1fAccount\x1fState\x1fSubmit\x1fStart\x1fElapsedRaw\x1fTimelimitRaw\x1fAllocCPUS\x1fJobName"
    )
    rows = [
        "\x1f".join([str(k), name, name, name, name, "COMPLETED", str(1772445600 + k), str(1772445600 + 9 * k), "600", "60", "4", name])
        for k, name in enumerate(HOSTILE, 1)
    ]
    path = tmp_path / "log.txt"
    path.write_text("\n".join([heading, *rows]))
    log = read_log(path)
    assert log.names["executable"] == HOSTILE
    groups = ["--by", "users", "--by", "partition", "--by", "queue"]
    status, out, err = call(capsys, "simulate", path, "--procs", "4", "--policy", "easy", *groups, "--out", tmp_path / "s.csv")
    assert status == 0
    assert sanitize(out + err)
    for job in range(2, len(HOSTILE) + 1):
        assert sanitize(call(capsys, "explain", path, "--procs", "4", "--job", job, "--no-sooner")[1])
    status, out, _ = call(capsys, "compare", path, "--procs", "4", *groups, "--gains", "--report", tmp_path / "r.html")
    assert (status, sanitize(out)) == (0, True)
    page = (tmp_path / "r.html").read_text()
    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page
    assert "\x1b" not in page
    assert call(capsys, "convert", path, "--out", tmp_path / "log.csv")[0] == 0
    with (tmp_path / "log.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
    assert all(map(sanitize, cells))
    assert call(capsys, "convert", path, "--out", tmp_path / "log.parquet")[0] == 0
    assert read_log(tmp_path / "log.parquet").names["user"] == HOSTILE
    assert pl.read_parquet(tmp_path / "log.parquet")["executable"].to_list() == list(HOSTILE)


def test_hostile_bad_line__is_harmless(written, capsys):
    path = written(TEXT + "9\x1b[2J|\x1b]0;x\x07|a\n", "log.txt")
    assert sanitize(one_line(*call(capsys, "convert", path, "--out", path.with_suffix(".csv"))))
    status, out, _ = call(capsys, "info", path, "--procs", "16", "--skip-bad-lines")
    assert (status, sanitize(out)) == (0, True)


def test_names__are_told_and_can_be_asked_for():
    origin = wt.workload.Origin(names={"user": ("a\nb",)})
    assert (origin.name_of("user", 1), origin.name_of("user", 2), origin.name_of("queue", 1)) == ("a\\nb", "2", "1")


def test_hostile_header__is_harmless(written, capsys):
    log = HEADER.replace("Europe/Stockholm", "Europe/\x1b[2JX") + record(1, 0, 5, 2, 9) + record(2, 3, 5, 2, 9)
    status, out, err = call(capsys, "info", written(log, "a\x1b[31m.swf"))
    assert (status, sanitize(out + err)) == (0, True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_command_that_writes_a_log__writes_every_format(capsys, tmp_path, ending):
    """What `convert` writes, `generate` and `clean` do as well, and all of it is read back as the same jobs."""
    assert o.LOGS == ENDINGS
    log, cleaned, converted = (tmp_path / f"{name}{ending}" for name in ("log", "cleaned", "converted"))
    assert call(capsys, "generate", "lublin99", "--jobs", 40, "--procs", 32, "--users", 4, "--seed", 2, "--out", log)[0] == 0
    assert call(capsys, "clean", log, "--procs", 32, "--out", cleaned)[0] == 0
    assert call(capsys, "convert", log, "--out", converted)[0] == 0
    jobs = [wt.read(path, procs=32) for path in (log, cleaned, converted)]
    assert len(jobs[0]) == 40
    for column in ("job_id", "submit", "runtime", "requested", "procs"):
        values = [getattr(one, column).tolist() for one in jobs]
        assert values[0] == values[1] == values[2], column
