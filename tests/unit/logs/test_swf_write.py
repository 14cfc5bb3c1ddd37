"""Writing logs: nothing is lost, and a file is there whole or not at all."""

import gzip
import hashlib
import os

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.errors import raises
from tests.profiles import examples
from tests.traces import trace_path
from walltime.errors import LogError, OutputError, WorkloadError
from walltime.files import whole_file
from walltime.logs import Comment, SwfLog, read, read_swf, write_swf
from walltime.workload import SWF_COLUMNS, Origin, Workload

LIMIT = 2**53 - 1
WORKLOAD_ARRAYS = ("job_id", "submit", "runtime", "requested", "planned", "procs")


def numbers(column):
    """Everything that a field of a log may hold."""
    timelike = column.name in ("submit", "runtime", "requested")
    least = 0 if timelike else -LIMIT
    whole = st.just(-1) | st.integers(0, 10) | st.integers(least, LIMIT)
    if column.dtype == "int64" and column.unit != "s":
        return whole
    return whole | st.floats(least, 1e9, allow_nan=False, allow_infinity=False)


@st.composite
def logs(draw):
    size = draw(st.integers(1, 6))
    columns = {column.name: draw(st.lists(numbers(column), min_size=size, max_size=size)) for column in SWF_COLUMNS if draw(st.booleans())}
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0")
    comments = draw(
        st.lists(st.builds(Comment, st.integers(0, size), st.text(letters, max_size=20).map(lambda text: "; " + text)), max_size=4)
    )
    return SwfLog(size, columns, tuple(comments))


def workload(**fields) -> Workload:
    arrays = {"submit": [0, 5, 5], "runtime": [60, 0, 9], "procs": [4, 2, 8], "requested": [90, 1, 5], "machine_procs": 8}
    return Workload.from_arrays(**arrays | fields)


def assert_same_jobs(ours: Workload, theirs: Workload):
    for name in WORKLOAD_ARRAYS:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    assert ours.machine_procs == theirs.machine_procs


@given(log=logs(), ending=st.sampled_from([".swf", ".swf.gz"]))
def test_write__any_log_is_read_back_as_it_was(tmp_path_factory, log, ending):
    path = tmp_path_factory.getbasetemp() / f"any{ending}"
    log.write(path)
    again = read_swf(path)
    assert again == log
    assert [array.dtype for array in again.columns.values()] == [array.dtype for array in log.columns.values()]


@pytest.mark.parametrize(
    "column", [{"cpu_time": [1.5, 2.0]}, {"submit": [0.1, 1e-7]}, {"memory": [4503599627370495.5, -1]}, {"user": [-7, 2**53 - 1]}]
)
def test_write__values_are_exact(tmp_path, column):
    log = SwfLog(2, column)
    log.write(tmp_path / "x.swf")
    assert read_swf(tmp_path / "x.swf") == log


def test_write__text_is_that_of_the_format(tmp_path):
    log = SwfLog(2, {"job_id": [1, 2], "cpu_time": [1.5, 2.0]}, (Comment(0, "; MaxProcs: 8"), Comment(1, ";x"), Comment(2, "; end")))
    log.write(tmp_path / "x.swf")
    rest = " ".join(["-1"] * 12)
    expected = f"; MaxProcs: 8\n1 -1 -1 -1 -1 1.5 {rest}\n;x\n2 -1 -1 -1 -1 2 {rest}\n; end\n"
    assert (tmp_path / "x.swf").read_text() == expected


def test_write__log_of_many_blocks(tmp_path):
    log = SwfLog(20_001, {"job_id": np.arange(20_001)}, (Comment(10_000, "; half"), Comment(20_001, "; end")))
    log.write(tmp_path / "x.swf.gz")
    assert read_swf(tmp_path / "x.swf.gz") == log


def test_write__gzip_is_the_same_every_time(tmp_path):
    log = SwfLog(1, {"job_id": [1]})
    for name in ("a.swf.gz", "b.swf.GZ"):
        log.write(tmp_path / name)
    first, second = (tmp_path / "a.swf.gz").read_bytes(), (tmp_path / "b.swf.GZ").read_bytes()
    assert first == second
    assert first[4:8] == b"\0\0\0\0", "no time of writing"
    assert gzip.decompress(first).startswith(b"1 -1")


def test_write__replaces_a_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "x.swf"
    path.write_text("old")
    SwfLog(1, {"job_id": [1]}).write(path)
    assert len(read_swf(path)) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_write__gives_a_new_file_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    SwfLog(1, {"job_id": [1]}).write(tmp_path / "x.swf")
    assert (tmp_path / "x.swf").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_write__follows_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.swf").symlink_to(tmp_path / "folder" / "real.swf")
    SwfLog(1, {"job_id": [1]}).write(tmp_path / "link.swf")
    assert (tmp_path / "link.swf").is_symlink()
    assert len(read_swf(tmp_path / "folder" / "real.swf")) == 1


def test_write__device_is_written_to_and_stays_a_device():
    SwfLog(1, {"job_id": [1]}).write(os.devnull)
    with raises(LogError, "empty_file"):
        read_swf(os.devnull)


def test_write__missing_folder_is_one_line(golden, tmp_path):
    with pytest.raises(OutputError) as caught:
        SwfLog(1, {"job_id": [1]}).write(tmp_path / "no" / "x.swf")
    golden("info", str(caught.value))


def test_write__directory_is_an_error(tmp_path):
    with raises(OutputError, "unwritable_file"):
        SwfLog(1, {"job_id": [1]}).write(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".swf", ".swf.gz"])
@pytest.mark.parametrize(
    ("error", "seen"),
    [(OSError(28, "No space left on device"), OutputError), (KeyboardInterrupt(), KeyboardInterrupt)],
    ids=["full", "stopped"],
)
def test_write__what_fails_half_way_leaves_the_old_file(tmp_path, monkeypatch, ending, error, seen):
    path = tmp_path / f"x{ending}"
    path.write_text("old")

    def fail(*_):
        raise error

    monkeypatch.setattr("walltime.logs.swf._tokens", fail)
    with pytest.raises(seen) as caught:
        SwfLog(1, {"job_id": [1]}, (Comment(0, "; half"),)).write(path)
    assert seen is KeyboardInterrupt or str(caught.value).endswith("cannot be written (no space left on device); choose another path")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_whole_file__is_not_there_before_it_is_complete(tmp_path):
    with whole_file(tmp_path / "x") as file:
        file.write(b"half")
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").read_bytes() == b"half"


# Workloads as logs.


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_write_swf__jobs_are_the_same(tmp_path, ending):
    jobs = workload()
    write_swf(tmp_path / f"x.swf{ending}", jobs)
    again = read(tmp_path / f"x.swf{ending}")
    assert_same_jobs(again, jobs)
    assert again.origin.changed == again.origin.dropped == {}


def test_write_swf__minimal_header(tmp_path):
    jobs = workload(origin=Origin(name="a  b\nc", unix_start_time=17, time_zone="Europe/Rome"))
    write_swf(tmp_path / "x.swf", jobs)
    log = read_swf(tmp_path / "x.swf")
    assert {key: value for key, (value,) in log.header.items()} == {
        "Version": "2.2",
        "Computer": "a b c",
        "MaxJobs": "3",
        "MaxRecords": "3",
        "UnixStartTime": "17",
        "TimeZoneString": "Europe/Rome",
        "MaxNodes": "8",
        "MaxProcs": "8",
    }


def test_write_swf__time_zone_may_be_an_offset(tmp_path):
    write_swf(tmp_path / "x.swf", workload(origin=Origin(time_zone="-3600")))
    assert read_swf(tmp_path / "x.swf").header["TimeZone"] == ("-3600",)
    assert read(tmp_path / "x.swf").origin.time_zone == "-3600"


def test_write_swf__header_of_the_log_is_kept(tmp_path):
    header = (";  MaxProcs: 8", "; Note: one", ";       two", ";")
    write_swf(tmp_path / "x.swf", workload(origin=Origin(header=header)))
    assert read_swf(tmp_path / "x.swf").header_lines == header


def test_write_swf__header_says_the_machine_of_the_workload(tmp_path):
    jobs = workload(origin=Origin(header=("; MaxNodes: 4", "; MaxProcs: 8"))).with_machine(16)
    write_swf(tmp_path / "x.swf", jobs)
    assert read_swf(tmp_path / "x.swf").header_lines == ("; MaxNodes: 4", "; Note: the log had MaxProcs: 8", "; MaxProcs: 16")
    assert_same_jobs(read(tmp_path / "x.swf"), jobs)


def test_write_swf__extra_header_lines_come_last(tmp_path):
    write_swf(tmp_path / "x.swf", workload(origin=Origin(header=("; MaxProcs: 8",))), extra_header=["; Note: seed 1", "Note: seed 2"])
    assert read_swf(tmp_path / "x.swf").header_lines == ("; MaxProcs: 8", "; Note: seed 1", "; Note: seed 2")


def test_write_swf__header_line_must_be_one_line(tmp_path):
    with raises(LogError, "wrong_comment"):
        write_swf(tmp_path / "x.swf", workload(), extra_header=["Note: a\nb"])
    assert list(tmp_path.iterdir()) == []


def test_write_swf__wait_replaces_that_of_the_log(tmp_path):
    jobs = workload(columns={"wait": [1, 2, 3], "user": [4, 5, -1]})
    write_swf(tmp_path / "x.swf", jobs)
    assert read(tmp_path / "x.swf").columns["wait"].tolist() == [1, 2, 3]
    write_swf(tmp_path / "x.swf", jobs, wait=np.array([7, 8, 9]))
    again = read(tmp_path / "x.swf")
    assert again.columns["wait"].tolist() == [7, 8, 9]
    assert again.columns["user"].tolist() == [4, 5, -1]


def test_write_swf__wait_must_fit_the_jobs(tmp_path):
    with raises(WorkloadError, "wrong_length", "wait", "2"):
        write_swf(tmp_path / "x.swf", workload(), wait=np.array([1, 2]))


def test_write_swf__columns_that_are_no_field_are_left_out(tmp_path):
    write_swf(tmp_path / "x.swf", workload(columns={"predicted": [1, 2, 3]}))
    assert "predicted" not in read(tmp_path / "x.swf").columns


def test_write_swf__known_processors_are_kept(tmp_path):
    jobs = workload(columns={"allocated_procs": [4, -1, 8], "requested_procs": [3, 2, -1]})
    write_swf(tmp_path / "x.swf", jobs)
    again = read(tmp_path / "x.swf")
    assert_same_jobs(again, jobs)
    assert again.columns["allocated_procs"].tolist() == [4, -1, 8]
    assert again.columns["requested_procs"].tolist() == [3, 2, -1]


LINE = "{} {} 0 60 {} -1 -1 {} 90 -1 {} 7 -1 -1 -1 -1 -1 -1"


@pytest.mark.parametrize("options", [{"requested_first": True}, {"too_wide": "clip"}, {"partial": "parts"}], ids=str)
def test_write_swf__jobs_chosen_by_options_are_read_back_without_them(tmp_path, options):
    rows = [(1, 0, 2, 3, 1), (2, 1, 99, 4, 1), (3, 2, -1, 5, 1), (3, 3, 2, 5, 2), (3, 4, 2, 5, 3)]
    (tmp_path / "in.swf").write_text("\n".join(["; MaxProcs: 8", *(LINE.format(*row) for row in rows)]))
    jobs = read(tmp_path / "in.swf", **options)
    write_swf(tmp_path / "out.swf", jobs)
    again = read(tmp_path / "out.swf")
    assert_same_jobs(again, jobs)
    assert again.origin.dropped == {}


def test_write_swf__cancelled_job_of_no_length_is_still_a_job(tmp_path):
    jobs = workload(columns={"status": [5, 5, 1]})
    write_swf(tmp_path / "x.swf", jobs)
    again = read(tmp_path / "x.swf")
    assert_same_jobs(again, jobs)
    assert again.columns["status"].tolist() == [5, -1, 1]


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(1, 9), st.integers(1, 8), st.integers(-1, 8), st.integers(-1, 5)),
        min_size=1,
    )
)
@examples(50)
def test_write_swf__any_workload_is_read_back(tmp_path_factory, rows):
    submit, runtime, requested, procs, allocated, status = (list(column) for column in zip(*rows, strict=True))
    arrays = {"submit": submit, "runtime": runtime, "requested": requested, "procs": procs, "machine_procs": 8}
    jobs = Workload.from_arrays(**arrays, columns={"allocated_procs": allocated, "status": status})
    path = tmp_path_factory.getbasetemp() / "workload.swf"
    write_swf(path, jobs)
    assert_same_jobs(read(path), jobs)


@pytest.mark.slow
def test_kth__workload_is_read_back(tmp_path):
    jobs = read(trace_path("KTH-SP2-1996-2"))
    write_swf(tmp_path / "x.swf.gz", jobs)
    again = read(tmp_path / "x.swf.gz")
    assert_same_jobs(again, jobs)
    assert again.origin.header == jobs.origin.header
    assert again.origin.noticed == jobs.origin.noticed
    assert again.origin.sha256 == hashlib.sha256((tmp_path / "x.swf.gz").read_bytes()).hexdigest()
    assert all(np.array_equal(values, jobs.columns[name]) for name, values in again.columns.items())
