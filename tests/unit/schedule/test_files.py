"""Schedules written and read: the same starts come back, whole files only, and one line for whatever is wrong."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli import call
from tests.errors import raises
from walltime import Easy, LogError, Workload, WorkloadError, audit, compare, read, read_schedule, simulate
from walltime.errors import OutputError
from walltime.workload import SCHEDULE_COLUMNS, Origin

JOBS = Workload.from_arrays(
    submit=[0, 1, 2, 3], runtime=[10, 10, 5, 4], requested=[10, 12, 6, 8], procs=[3, 4, 1, 2], machine_procs=4, job_id=[7, 8, 9, 12]
)


@pytest.fixture(scope="module")
def schedule():
    return simulate(JOBS, Easy())


@pytest.mark.parametrize("ending", ["csv", "parquet", "swf", "swf.gz"])
def test_schedule__comes_back_from_its_file(schedule, tmp_path, ending):
    path = schedule.write(tmp_path / f"s.{ending}")
    back = read_schedule(path)
    for name in ("job_id", "submit", "start", "end", "procs"):
        expected = {"start": schedule.start, "end": schedule.end}.get(name)
        assert back[name].tolist() == (getattr(JOBS, name) if expected is None else expected).tolist()
    assert audit(JOBS, back, Easy()).ok
    assert list(tmp_path.iterdir()) == [path], "no part of a file is left behind"


def test_schedule_file__may_have_the_former_name_of_a_column(schedule, tmp_path):
    path = schedule.write(tmp_path / "s.csv")
    path.write_text(path.read_text().replace("planned", "believed", 1))
    assert read_schedule(path)["planned"].tolist() == JOBS.planned.tolist()


def test_schedule_file__has_the_declared_columns_in_their_order(schedule, tmp_path):
    names = [column.name for column in SCHEDULE_COLUMNS]
    assert names[:6] == ["job_id", "submit", "start", "end", "procs", "requested"]
    assert (schedule.write(tmp_path / "s.csv")).read_text().splitlines()[0].split(",") == names
    table = pl.read_parquet(schedule.write(tmp_path / "s.parquet"))
    assert table.columns == names
    assert [str(t).lower() for t in table.dtypes] == [column.dtype for column in SCHEDULE_COLUMNS]


def test_parquet_schedule__carries_its_provenance(schedule, tmp_path):
    metadata = pl.read_parquet_metadata(schedule.write(tmp_path / "s.parquet"))
    assert json.loads(metadata["walltime"])["settings"]["policy"] == "easy"


def test_swf_schedule__is_a_log_with_the_simulated_waits(schedule, tmp_path):
    again = read(schedule.write(tmp_path / "s.swf"))
    assert again.columns["wait"].tolist() == schedule.wait.tolist()
    assert again.machine_procs == 4
    assert any("simulated schedule" in line for line in again.origin.header)


def test_schedule_files__are_the_same_bytes_each_time(schedule, tmp_path):
    for ending in ("csv", "parquet", "swf.gz"):
        a, b = schedule.write(tmp_path / f"a.{ending}"), schedule.write(tmp_path / f"b.{ending}")
        assert a.read_bytes() == b.read_bytes()


def test_schedule__is_not_written_in_an_unknown_format(schedule, tmp_path):
    with raises(OutputError, "unknown_file_extension", "swf.gz"):
        schedule.write(tmp_path / "s.xlsx")


def test_schedule__is_not_written_into_a_folder_that_is_not_there(schedule, tmp_path):
    with raises(OutputError, "unwritable_file"):
        schedule.write(tmp_path / "no" / "s.csv")


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


BAD = {
    "missing": (None, "no such file"),
    "empty": ("", "is empty"),
    "without starts": ("job_id,end\n1,2\n", "has no column start"),
    "letters": ("job_id,start,end\n1,2,3\n2,x,4\n", ":3: start is 'x'"),
    "a fraction": ("job_id,start,end\n1,2.5,3\n", ":2: start is '2.5'"),
    "nan": ("job_id,start,end\n1,nan,3\n", ":2: start is 'nan'"),
    "a hole": ("job_id,start,end\n1,,3\n", ":2: start is missing"),
    "a short row": ("job_id,start,end\n1,2,3\n1,2,3,4\n", "cannot be read as a schedule"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_schedule_file__gets_one_line(tmp_path, what):
    content, message = BAD[what]
    path = tmp_path / "s.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(LogError) as error:
        read_schedule(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_schedule_file__of_an_unknown_kind_gets_one_line(tmp_path):
    with raises(LogError, "unknown_file_extension"):
        read_schedule(text(tmp_path / "s.txt", "1 2 3"))
    with raises(LogError, "directory"):
        read_schedule(tmp_path)
    with raises(LogError, "damaged_file"):
        read_schedule(text(tmp_path / "s.parquet", "1 2 3"))


def test_swf_without_waits__is_no_schedule(tmp_path):
    path = text(tmp_path / "s.swf", "; MaxProcs: 4\n3 0 -1 5 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    with raises(LogError, "missing_starts", "3"):
        read_schedule(path)


def test_whole_numbers_with_a_decimal_point__are_read(tmp_path):
    back = read_schedule(text(tmp_path / "s.csv", "job_id, start,end\n1,2.0, 3\n"))
    assert {name: values.tolist() for name, values in back.items()} == {"job_id": [1], "start": [2], "end": [3]}


def test_compare__puts_the_first_schedule_in_the_role_of_the_baseline(schedule):
    comparison = compare(schedule, schedule)
    assert comparison.difference("mean_wait") == [0.0, 0.0]
    assert comparison.table()["policy"].to_list() == ["easy", "easy"]
    assert "mean_wait" in str(comparison)


def test_compare__refuses_schedules_of_different_jobs(schedule):
    other = Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=4)
    with raises(WorkloadError, "other_jobs"):
        compare(schedule, simulate(other, Easy()))
    with raises(WorkloadError, "no_schedule"):
        compare()


def test_schedule_table__is_one_row_per_job(schedule):
    table = schedule.table()
    assert len(table) == len(schedule) == 4
    assert np.array_equal(table["end"].to_numpy(), schedule.end)
    assert repr(schedule) == "<Schedule easy: 4 jobs of workload>"


def test_schedule_table__has_what_one_groups_by():
    """Two users share a machine of 4; the site's clock is an hour ahead of UTC in winter."""
    jobs = Workload.from_arrays(
        submit=[0, 10, 20],
        runtime=[100, 50, 30],
        procs=[4, 4, 1],
        machine_procs=4,
        columns={"user": [1, 2, 1], "wait": [0, 7, 9], "queue": [5, 5, -1]},
        origin=Origin(unix_start_time=0, time_zone="Europe/Stockholm", names={"user": ("ann", "bob")}),
    )
    schedule = simulate(jobs, Easy())
    table = schedule.table()
    assert table["wait"].to_list() == [0, 90, 130]
    assert table["recorded_wait"].to_list() == [0, 7, 9]
    assert table["user"].to_list() == ["ann", "bob", "ann"]
    assert table["queue"].to_list() == [5, 5, -1]
    assert table["kind"].to_list() == ["immediate", "reserved", "reserved"]
    assert table["reserved_start"].to_list() == [None, 100, 150]
    assert [str(time) for time in table["start_time"]] == ["1970-01-01 01:00:00", "1970-01-01 01:01:40", "1970-01-01 01:02:30"]
    offset = replace(jobs, origin=Origin(unix_start_time=0, time_zone="-18000"))
    assert str(simulate(offset, Easy()).table()["submit_time"][0]) == "1969-12-31 19:00:00"
    pytest.importorskip("pandas", reason="pandas is not installed; it is an extra")
    frame = schedule.to_pandas()
    assert frame.groupby("user").wait.mean().to_dict() == {"ann": 65, "bob": 90}
    assert frame["start_time"].dt.hour.tolist() == [1, 1, 1]


@pytest.mark.parametrize("ending", ["csv", "parquet", "swf"])
@pytest.mark.parametrize("overrun", ["kill", "extend", "continue"])
@pytest.mark.parametrize("feedback", [False, True])
def test_schedule_file__says_what_really_happened(tmp_path, ending, overrun, feedback):
    """Jobs that are killed, run on, or are submitted late: every format gives the same starts and ends back."""
    jobs = Workload.from_arrays(
        submit=[0, 1, 2, 40],
        runtime=[30, 10, 50, 4],
        requested=[12, 12, 6, 8],
        procs=[3, 4, 1, 2],
        machine_procs=4,
        columns={"preceding_job": np.array([-1, -1, 1, 2]), "think_time": np.array([-1, -1, 3, 0])},
        feedback=feedback,
    )
    schedule = simulate(jobs, Easy(), overrun=overrun)
    back = read_schedule(schedule.write(tmp_path / f"s.{ending}"))
    order = np.argsort(back["job_id"])
    for name in ("submit", "start", "end"):
        assert back[name][order].tolist() == getattr(schedule, name).tolist(), name
    assert audit(jobs, back, Easy(), overrun=overrun).ok


def foreign(folder, shift="", rows=JOBS):
    """The schedule of another program: other titles, fractions of seconds, a job that did not start, and its mapping."""
    made = simulate(rows, Easy())
    lines = ["job,submission_time,starting_time,finish_time,resources"]
    for k in range(len(rows)):
        times = [int(rows.submit[k]), int(made.start[k]), int(made.end[k])]
        lines.append(
            ",".join([str(rows.job_id[k]), *(f"{time + 1_700_000_000 if shift else time}.000" for time in times), str(rows.procs[k])])
        )
    table = text(folder / "theirs.csv", "\n".join([*lines, "99,5.0,,,1"]) + "\n")
    relative = "" if shift else "relative_times = true\n"
    names = {"job_id": "job", "submit": "submission_time", "start": "starting_time", "end": "finish_time", "allocated_procs": "resources"}
    mapping = text(folder / "m.toml", f"{relative}[columns]\n" + "".join(f'{name} = "{title}"\n' for name, title in names.items()))
    return table, mapping


@pytest.mark.parametrize("dates", ["", "dates"])
def test_read_schedule__of_another_program_with_a_mapping(tmp_path, dates):
    jobs = replace(JOBS, submit=JOBS.submit + 40, origin=Origin("log", unix_start_time=1_700_000_000 if dates else None))
    table, mapping = foreign(tmp_path, dates, jobs)
    with raises(LogError, "missing_column"):
        read_schedule(table)
    back = read_schedule(table, mapping, jobs)
    made = simulate(jobs, Easy())
    expected = {"job_id": jobs.job_id, "submit": jobs.submit, "start": made.start, "end": made.end, "procs": jobs.procs}
    assert {name: values.tolist() for name, values in back.items()} == {name: values.tolist() for name, values in expected.items()}
    assert audit(jobs, back, Easy()).ok
    own = made.write(tmp_path / "own.csv")
    assert read_schedule(own, mapping, jobs)["start"].tolist() == made.start.tolist(), "such a file needs no mapping"


def test_read_schedule__needs_the_numbers_of_the_jobs(tmp_path):
    table, mapping = foreign(tmp_path)
    mapping.write_text(mapping.read_text().replace('job_id = "job"\n', ""))
    with raises(LogError, "missing_column", "job_id"):
        read_schedule(table, mapping, JOBS)


@pytest.mark.slow
def test_commands__read_the_schedule_of_another_program(tmp_path, capsys):
    table, mapping = foreign(tmp_path)
    log = simulate(JOBS, Easy()).write(tmp_path / "log.swf")
    given = ["--schedule-mapping", mapping]
    assert call(capsys, "audit", log, table, "--policy", "easy", *given)[0] == 0
    assert call(capsys, "audit", log, *given)[0] == 2, "the recorded starts need no mapping of a schedule"
    own = simulate(JOBS, Easy()).write(tmp_path / "own.csv")
    status, out, _ = call(capsys, "diff", own, table, "--log", log, *given, "--json")
    assert (status, json.loads(out)["identical"]) == (0, True)
