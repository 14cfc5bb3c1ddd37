"""The seam between formats of logs and everything else: a format of its own is recognised, read, and told of like SWF."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.logs import FORMATS, JobLog, LogFormat, Rule, all_rules, write_swf
from walltime.logs.catalogue import catalogue_entry

SWF_LINE = "1 0 3 60 4 -1 -1 4 90 -1 1 7 -1 -1 -1 -1 -1 -1\n"
TINY = "job,submit,runtime,procs\n7,100,60,4\n8,105,30,2\n9,106,-,1\n10,107,5,8\n"


def read_tiny(state):
    rows = [line.split(",") for _, line in state.lines()][1:]
    known = [row for row in rows if row[2] != "-"]
    job, submit, runtime, procs = (np.array([int(row[k]) for row in known]) for k in range(4))
    columns = {"job_id": job, "submit": submit - 100, "runtime": runtime, "allocated_procs": procs, "nodes": procs // 2}
    about = {"format": "tiny", "header_lines": ("; MaxProcs: 4", "; UnixStartTime: 100", "; Computer: tiny"), "endings": (".tiny",)}
    dropped = {"without_end": len(rows) - len(known)}
    return JobLog(len(known), columns, **about, path=state.file.path, sha256=state.file.sha256, dropped=dropped)


TINY_FORMAT = LogFormat(
    "tiny",
    "Tiny log",
    (".tiny",),
    re.compile(rb"\Ajob,submit,"),
    read_tiny,
    (Rule("without_end", "drop", "The job has not ended."),),
)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr("walltime.logs.formats.FORMATS", [*FORMATS, TINY_FORMAT])


@pytest.fixture
def written(tmp_path):
    def write(content, name):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def error_of(path, **options) -> str:
    with pytest.raises(wt.LogError) as caught:
        wt.read(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["jobs", "jobs.csv", "jobs.swf", "jobs.tiny.gz"])
def test_format__is_recognised_by_content_whatever_the_name(tiny, written, name):
    path = written(gzip.compress(TINY.encode()) if name.endswith(".gz") else TINY, name)
    log = wt.logs.read_log(path)
    assert (log.format, log.name, log.records) == ("tiny", name.removesuffix(".gz").removesuffix(".tiny"), 3)
    jobs = wt.read(path)
    assert (jobs.job_id.tolist(), jobs.machine_procs, jobs.columns["nodes"].tolist()) == ([7, 8], 4, [2, 1])
    assert dict(jobs.origin.dropped) == {"without_end": 1, "too_wide": 1}
    assert jobs.origin.records == 4
    assert jobs.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert jobs.origin.unix_start_time == 100


def test_format__is_told_of_by_info(golden, tiny, written, capsys):
    path = written(TINY, "jobs.txt")
    facts = json.loads(call(capsys, "info", path, "--json")[1])
    assert (facts["format"], facts["records"], facts["jobs"], facts["header"]["Computer"]) == ("tiny", 4, 2, ["tiny"])
    status, out, _ = call(capsys, "info", path)
    assert status == 0
    golden("info", out)
    assert "tiny" in out


def test_format__can_be_simulated_and_written_as_swf(tiny, written, tmp_path):
    jobs = wt.read(written(TINY, "jobs.txt"))
    write_swf(tmp_path / "jobs.swf", jobs)
    again = wt.read(tmp_path / "jobs.swf")
    assert (again.submit.tolist(), again.procs.tolist(), again.machine_procs) == ([0, 5], [4, 2], 4)
    assert again.origin.unix_start_time == 100
    assert wt.logs.read_log(tmp_path / "jobs.swf").header["Computer"] == ("tiny",)


def test_format__by_name_where_nothing_recognises_the_content(golden, tiny, written):
    golden("info", error_of(written("1 2 3\n", "jobs.swf.gz")))


def test_format__swf_is_recognised_by_a_comment_or_a_record(written):
    assert wt.logs.read_log(written(f"; MaxProcs: 4\n{SWF_LINE}", "a")).format == "swf"
    assert wt.logs.read_log(written(SWF_LINE, "b.csv")).format == "swf"
    assert len(wt.read(written(f"; MaxProcs: 4\nbad\n{SWF_LINE}", "c"), skip_bad_lines=True)) == 1


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "\n\n<b>", b"\x89PNG\r\n\0", "x" * 1000])
def test_unknown_format__is_one_line_that_says_what_is_known(golden, written, content, capsys):
    path = written(content, "jobs.log")
    message = error_of(path)
    golden("info", message)
    names = ", ".join(known.name for known in FORMATS)
    assert len(message) < len(str(path)) + len(names) + 150
    assert "unknown format" in one_line(*call(capsys, "info", path))


def test_rules__are_those_of_all_formats(tiny):
    names = [rule.name for rule in all_rules()]
    assert "more_fields" in names
    assert "without_end" in names
    assert len(set(names)) == len(names)


def test_read__from_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(f"; MaxProcs: 4\n{SWF_LINE}".encode(),))
    writer.start()
    assert len(wt.read(pipe)) == 1
    writer.join()


# What can be wrong with a table.


@pytest.mark.parametrize("name", ["procs", "Nodes", "job", "and", "two words", ""])
def test_table__further_columns_have_names_that_filters_can_use(name):
    with raises(wt.LogError, "unknown_column"):
        JobLog(1, {name: [1]})


def test_table__header_is_parsed_from_lines():
    log = JobLog(1, {"submit": [1]}, header_lines=("; MaxProcs: 8", "; Note: one", "; Note: two"))
    assert dict(log.header) == {"MaxProcs": ("8",), "Note": ("one", "two")}
    with pytest.raises(KeyError, match="nodes"):
        log.column("nodes")


# What is no log.


def test_read__of_a_path_that_does_not_exist(golden, tmp_path):
    golden("info", error_of(tmp_path / "KTH"))
    assert error_of("a\0b.swf").startswith("a\\x00b.swf: cannot be read")
    assert "cannot be read" in error_of("x" * 5000)


def test_read__of_a_directory(golden, tmp_path):
    golden("info", error_of(tmp_path))


@pytest.mark.parametrize("value", [5, None, 1.5, ["KTH-SP2"], {"a": 1}])
@pytest.mark.parametrize("reader", [wt.read, wt.logs.read_log, wt.logs.read_swf])
def test_read__of_something_else(reader, value):
    with raises(wt.LogError, "wrong_type"):
        reader(value)


def test_read__of_a_workload(golden):
    jobs = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    golden("info", error_of(jobs))


# The catalogue.


@pytest.fixture
def nothing_here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WALLTIME_TRACES", raising=False)
    monkeypatch.setenv("WALLTIME_LOGS", str(tmp_path / "logs"))


@pytest.mark.parametrize(("variable", "folder"), [("WALLTIME_LOGS", "fetched"), ("WALLTIME_TRACES", "traces")])
@pytest.mark.parametrize("name", ["KTH-SP2", "kth-sp2", catalogue_entry("KTH-SP2").file])
def test_read__knows_the_names_of_the_catalogue(nothing_here, monkeypatch, tmp_path, variable, folder, name):
    (tmp_path / folder).mkdir()
    monkeypatch.setenv(variable, str(tmp_path / folder))
    (tmp_path / folder / catalogue_entry(name).file).write_bytes(gzip.compress(f"; MaxProcs: 4\n{SWF_LINE}".encode()))
    assert len(wt.read(name)) == 1
    assert wt.logs.read_log(name).path == str(tmp_path / folder / catalogue_entry(name).file)


def test_read__of_a_catalogue_log_that_is_missing_says_what_the_command_line_says(golden, nothing_here, capsys):
    message = error_of("KTH-SP2")
    golden("info", message)
    assert one_line(*call(capsys, "info", "KTH-SP2")) == f"walltime: {message}\n"


def test_read__a_file_goes_before_the_catalogue(nothing_here):
    Path("KTH-SP2").write_text(f"; MaxProcs: 4\n{SWF_LINE}")
    assert len(wt.read("KTH-SP2")) == 1


@pytest.mark.slow
def test_swf__is_read_without_what_only_other_formats_need(written):
    path = written(f"; MaxProcs: 4\n{SWF_LINE}", "a.swf")
    code = f"import sys, walltime; walltime.read({str(path)!r}); print('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
