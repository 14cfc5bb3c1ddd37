"""Lines of more than 18 fields, as newer logs have them: further columns, told of and written back."""

import json

import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.logs import SwfLog, read_swf, write_swf
from walltime.workload.filters import select

GOOD = "1 0 3 60 4 -1 -1 4 90 -1 1 7 -1 -1 -1 -1 -1 -1"
SECOND = "2 5 0 30 2 -1 -1 2 40 -1 1 8 -1 -1 -1 -1 -1 -1"
HEADER = "; MaxProcs: 8\n; Field 19: Nodes (allocated)\n; Field 21: energy\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="log.swf"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_more_fields__go_by_their_numbers(written):
    log = read_swf(written(f"; MaxProcs: 8\n{GOOD} 7 0.5 -1\n{SECOND} 8 1 -1\n"))
    assert log.further == ("field19", "field20", "field21")
    assert log.column("field19").tolist() == [7, 8]
    assert log.column("field20").tolist() == [0.5, 1.0]
    assert log.column("field21").tolist() == [-1, -1]
    assert dict(log.noticed) == {"more_fields": 2}
    jobs = log.to_workload()
    assert jobs.columns["field20"].tolist() == [0.5, 1.0]
    assert "field21" not in jobs.columns
    assert jobs.origin.noticed["more_fields"] == 2
    assert select(jobs, "field19 > 7").tolist() == [False, True]


def test_more_fields__go_by_the_names_that_the_header_declares(written):
    assert read_swf(written(f"{HEADER}{GOOD} 7 0 5\n")).further == ("nodes", "field20", "energy")
    names = "; Fields: " + ", ".join([f"F{n}" for n in range(1, 19)] + ["nodes", "gpus"])
    assert read_swf(written(f"{names}\n{GOOD} 7 0 5\n")).further == ("nodes", "gpus", "field21")


@pytest.mark.parametrize("name", ["procs", "user", "job", "and", "19", "field20", "Field19"])
def test_more_fields__do_not_take_names_that_mean_something_else(written, name):
    assert read_swf(written(f"; Field 19: {name}\n{GOOD} 7\n")).further == ("field19",)


def test_more_fields__of_one_name_twice(written):
    assert read_swf(written(f"; Field 19: x\n; Field 20: x\n{GOOD} 7 8\n")).further == ("x", "field20")


def test_more_fields__in_some_lines_only(written):
    log = read_swf(written(f"{GOOD}\n{SECOND} 9\n{GOOD} 1 2\n"))
    assert log.column("field19").tolist() == [-1, 9, 1]
    assert log.column("field20").tolist() == [-1, -1, 2]
    assert log.column("user").tolist() == [7, 8, 7]
    assert log.noticed == {"more_fields": 2}


def test_more_fields__in_a_later_block_only(written):
    log = read_swf(written("\n".join([GOOD] * 20_000 + [f"{GOOD} 4"])))
    assert log.column("field19").tolist() == [-1] * 20_000 + [4]


def test_more_fields__of_a_skipped_line_do_not_count(written):
    log = read_swf(written(f"{GOOD}\n{GOOD} nan\n{SECOND.replace('40', '-5')} 1 2 3\n"), skip_bad_lines=True)
    assert (log.further, len(log.bad_lines)) == ((), 2)


@pytest.mark.parametrize("text", [f"{HEADER}{GOOD} 7 0 5.25\n{SECOND} -1 -1 3\n", f"{GOOD} -1 -1 5\n{SECOND} -1 -1 -1\n", f"{GOOD} 0 -1\n"])
def test_more_fields__are_written_back(written, tmp_path, text):
    log = read_swf(written(text))
    log.write(tmp_path / "again.swf")
    assert (tmp_path / "again.swf").read_text() == text
    assert read_swf(tmp_path / "again.swf") == log
    assert read_swf(written(f"{GOOD}\n", "other.swf")) != log


@pytest.mark.parametrize("header", [HEADER, "; MaxProcs: 8\n"])
def test_more_fields__of_a_workload_are_written_back(written, tmp_path, header):
    jobs = wt.read(written(f"{header}{GOOD} -1 1 2\n{SECOND} -1 -1 3\n"))
    write_swf(tmp_path / "again.swf", jobs)
    again = wt.read(tmp_path / "again.swf")
    assert list(again.columns) == list(jobs.columns)
    assert all((again.columns[name] == jobs.columns[name]).all() for name in jobs.columns)
    assert read_swf(tmp_path / "again.swf").further == read_swf(tmp_path / "log.swf").further
    assert dict(again.origin.noticed) == dict(jobs.origin.noticed)


def test_write_swf__leaves_out_columns_that_were_no_fields(tmp_path):
    jobs = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1, columns={"nodes": [3]})
    write_swf(tmp_path / "log.swf", jobs)
    assert read_swf(tmp_path / "log.swf").further == ()


def test_log__of_18_fields_has_no_notice(written):
    assert dict(read_swf(written(GOOD)).noticed) == {}
    with pytest.raises(KeyError, match="field19"):
        read_swf(written(GOOD)).column("field19")


def test_log__with_further_fields_made_by_hand():
    log = SwfLog(2, {"job_id": [1, 2], "nodes": [3, -1]}, further=("gpus", "nodes"))
    assert (log.column("gpus").tolist(), dict(log.noticed)) == ([-1, -1], {"more_fields": 1})
    with raises(wt.LogError, "unknown_column", "energy"):
        SwfLog(1, {"energy": [1]}, further=("nodes",))


def test_info__tells_of_more_fields(written, capsys):
    path = written(f"{HEADER}{GOOD} 7 0 5\n{SECOND}\n")
    assert json.loads(call(capsys, "info", path, "--json")[1])["noticed"] == {"more_fields": 1}
    assert "beyond the 18 fields" in " ".join(call(capsys, "info", path)[1].split())
