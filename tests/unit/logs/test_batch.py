"""PBS, Torque, LSF, ALCF and tables with a mapping: what their records become, by hand."""

import polars as pl
import pytest

import walltime as wt
from tests.batch_text import COBALT, LSF, LSF_ROWS, MAPPING, PBS, TABLE
from tests.cli import call, one_line
from walltime.logs import read_log

COLUMNS = ("job_id", "submit", "wait", "runtime", "requested", "allocated_procs", "requested_procs", "status")


@pytest.fixture
def written(tmp_path):
    def write(text, name="log"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def rows(log, *columns):
    return list(zip(*(log.column(name).tolist() for name in columns or COLUMNS), strict=True))


def named(log, column):
    return [None if number < 0 else log.names[column][number - 1] for number in log.column(column).tolist()]


def error_of(path, **options) -> str:
    with pytest.raises(wt.LogError) as caught:
        read_log(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_pbs__takes_the_ends_of_jobs(written):
    log = read_log(written(PBS))
    assert log.format == "pbs"
    assert rows(log) == [
        (123, 2, 3, 600, 3600, 8, 8, 1),
        (124, 100, 100, 461, 93_600, 6, 6, 5),  # deleted while it ran
        (-1, 0, 5, 600, -1, 1, 1, 0),
    ]
    assert rows(log, "gpus", "nodes", "array_job", "array_task", "held")[::2] == [(2, 2, -1, -1, 2), (-1, -1, 125, 3, 0)]
    assert rows(log, "cpu_time", "memory")[0] == (300, 1000)
    assert named(log, "user") == ["ann", "bob", "ann"]
    assert named(log, "group") == ["my project=x", "chem", None]
    assert dict(log.dropped) == {"other_event": 4, "array_summary": 1}
    assert dict(log.noticed) == {"walltime_differs": 1}
    assert log.records + sum(log.dropped.values()) == PBS.count("\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("start=1772445605 exec_host=n1/0*4", "start=17x exec_host=n1/0*4"),
        (" end=1772446205 Exit_status=0 r", " Exit_status=0 r"),
        ("end=1772446205 Exit_status=0 r", "end=1772440000 Exit_status=0 r"),
        ("jobname=plain queue=workq ctime=1772445600 q", "jobname=plain user=root ctime=1772445600 q"),
        (";E;123.srv", ";E;x.srv"),
    ],
)
def test_pbs__bad_record_is_one_line(golden, written, old, new):
    assert PBS.count(old) == 1
    path = written(PBS.replace(old, new))
    golden("info", error_of(path))
    log = read_log(path, skip_bad_lines=True)
    assert (log.records, len(log.bad_lines)) == (2, 1)


def test_lsf__takes_the_fields_that_are_documented(written):
    log = read_log(written(LSF))
    assert log.format == "lsf"
    assert rows(log) == [(1, 0, 100, 300, 3600, 4, 4, 1), (-1, 60, 40, 300, -1, 2, 4, 5), (3, 50, -1, 0, -1, -1, 4, 5)]
    assert named(log, "executable") == ['say "hi"', "b", "c"]
    assert rows(log, "array_job", "array_task", "held", "nodes")[:2] == [(-1, -1, 0, 2), (2, 3, 10, 1)]
    assert dict(log.dropped) == {"other_event": 1}
    assert dict(log.to_workload(procs=4).origin.dropped) == {"other_event": 1, "cancelled_before_start": 1}


def test_lsf__exit_status_is_that_of_wait(written):
    for status, code, signal in ((0, 0, 0), (65280, 255, 0), (9, 0, 9), (512, 2, 0)):
        log = read_log(written(LSF_ROWS[0].replace(' "default" 0 4 ', f' "default" {status} 4 ')))
        assert rows(log, "exit_code", "exit_signal") == [(code, signal)]


def test_lsf__shorter_record_of_an_older_version(written):
    short = LSF_ROWS[0].partition(' "default" 0')[0] + ' "default" 0'
    assert rows(read_log(written(short)))[0][:5] == (1, 0, 100, 300, -1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"ann" "normal"', '1 "ann" "normal"'),
        (" 64 60.0", " 99 60.0"),
        ('"ann" ', '"ann'),
        (" 0 1772445700 ", " 0 1772449999 "),
    ],
)
def test_lsf__bad_record_is_one_line(golden, written, old, new):
    path = written(LSF_ROWS[0].replace(old, new, 1) + "\n" + LSF_ROWS[1])
    golden("info", error_of(path))
    assert read_log(path, skip_bad_lines=True).records == 1


def test_alcf__counts_nodes(written):
    log = read_log(written(COBALT), time_zone="America/Chicago")
    assert (log.format, log.reading[0].split(" (")[0]) == ("mapped", "the layout alcf")
    assert rows(log) == [(101, 0, 600, 3600, 7200, 128, 128, 1), (102, 10, 600, 590, 7200, 1, 2, 0)]
    assert named(log, "queue") == ["default", 'default, "x"']
    assert log.header.unix_start_time == 1672531210 + 6 * 3600
    assert dict(log.noticed) == {"newline_in_text": 1}
    assert dict(read_log(written(COBALT)).noticed)["zone_unknown"] == 2


def test_open_quote__loses_one_line_and_no_other(written):
    lines = COBALT.replace('"\n1"', '"1"').splitlines()
    damaged = [lines[0], lines[1].replace('"theta"', '"theta'), lines[2], lines[1]]
    log = read_log(written("\n".join(damaged)), skip_bad_lines=True)
    assert (log.column("job_id").tolist(), [bad.line for bad in log.bad_lines]) == ([102, 101], [2])


def test_mapping__says_what_columns_mean(written):
    log = read_log(written(TABLE), mapping=written(MAPPING, "map.toml"))
    assert rows(log) == [(7, 0, 10, 3600, 5400, 128, -1, 1), (8, 300, 300, 600, 1800, 64, -1, 0)]
    assert (named(log, "user"), named(log, "partition"), log.column("nodes").tolist()) == (["ann", "bob"], ["main", "main"], [2, 1])
    assert dict(log.dropped) == {"still_pending": 1}
    assert (log.header.machine_procs, log.header.unix_start_time, log.header.time_zone) == (128, 1772445600, "Europe/Stockholm")
    assert len(log.to_workload()) == 2


def test_mapping__of_parquet_with_times_of_its_own(written, tmp_path):
    table = pl.read_csv(TABLE.encode()).with_columns(pl.Series("submitted", [10, 20, 30]), pl.Series("began", [15, 30, None]))
    table = table.with_columns(pl.from_epoch("submitted", "s"), pl.from_epoch("began", "s"), spent=pl.Series([3.6, 60.0, None]))
    table.write_parquet(tmp_path / "t.parquet")
    mapping = MAPPING.replace('end = "done"', 'runtime = { column = "spent", unit = "min" }').replace("Europe/Stockholm", "UTC")
    log = read_log(tmp_path / "t.parquet", mapping=written(mapping, "map.toml"))
    assert rows(log, "submit", "wait", "runtime") == [(0, 5, 216), (10, 10, 3600)]
    assert read_log(tmp_path / "t.parquet").reading


@pytest.mark.slow
def test_mapping__formats_patterns_and_times_without_a_beginning(written):
    table = "job;t;len;n\nx-12.y;02.03.2026 10h00;90:00;4\n"
    mapping = """
        delimiter = ";"
        relative_times = false
        [columns]
        job_id = { column = "job", pattern = 'x-(\\d+)' }
        submit = { column = "t", format = "%d.%m.%Y %Hh%M" }
        runtime = "len"
        requested_procs = "n"
    """
    log = read_log(written(table), mapping=written(mapping, "m.toml"))
    assert (rows(log)[0][:4], log.header.unix_start_time) == ((12, 0, -1, 5400), 1772445600)
    relative = 'relative_times = true\n[columns]\nsubmit = "s"\nruntime = "r"\nrequested_procs = "p"\n'
    log = read_log(written("s,r,p\n5,10,2\n7.5,10,2\n"), mapping=written(relative, "m.toml"))
    assert (log.column("submit").tolist(), log.header.unix_start_time) == ([0, 2], None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("procs = 128", "procs = 0"),
        ("procs = 128", "cores = 1"),
        ('unit = "h"', 'unit = "y"'),
        ("times = 64", "times = -1"),
        ("times = 64", "times = inf"),
        ("times = 64", 'pattern = "x"'),
        ('submit = "submitted"', ""),
        ('other = "failed"', 'other = "bad"'),
        ("Europe/Stockholm", "Mars/Olympus"),
        ("[columns]", "[columns"),
        ('user = "who"', '"a b" = "who"'),
    ],
)
def test_mapping__error_is_one_line_that_names_the_key(golden, written, old, new):
    golden("info", error_of(written(TABLE), mapping=written(MAPPING.replace(old, new), "map.toml")))


def test_mapping__of_another_table_names_the_column(golden, written):
    message = error_of(written(TABLE.replace("who", "whose")), mapping=written(MAPPING, "map.toml"))
    golden("info", message)


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), [("1.5", "1,5"), ("12:00:10", "25:00:10"), (",ok", ",what")])
def test_mapping__bad_row_is_one_line(golden, written, old, new):
    mapping = written(MAPPING.replace('other = "failed"', 'failed = ["oops"]'), "map.toml")
    path = written(TABLE.replace(old, new))
    golden("info", error_of(path, mapping=mapping))
    assert [bad.line for bad in read_log(path, mapping=mapping, skip_bad_lines=True).bad_lines] == [2]


def test_commands__take_a_mapping(written, capsys):
    path, mapping = written(TABLE), written(MAPPING, "map.toml")
    assert call(capsys, "simulate", path, "--mapping", mapping, "--policy", "easy")[0] == 0
    assert call(capsys, "info", path)[0] == 0
    assert "cannot be read" in one_line(*call(capsys, "info", path, "--mapping", "missing.toml"))
