"""A folder of Parquet files that `walltime convert` wrote is one log, with the header of its parts."""

from tests.cli import call, record
from tests.errors import raises
from walltime.errors import LogError
from walltime.logs import read, read_log


def write_parts(tmp_path, capsys, *headers):
    """Convert two jobs for each header to one Parquet file in a folder; returns the folder."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for k, header in enumerate(headers):
        log = tmp_path / f"{k}.swf"
        log.write_text(header + record(2 * k + 1, 10 * k, 60, 2, 100) + record(2 * k + 2, 10 * k + 5, 60, 2, 100))
        assert call(capsys, "convert", log, folder / f"{k}.parquet")[0] == 0
    return folder


def test_parts__keep_the_size_of_the_machine_and_their_counts(tmp_path, capsys):
    header = "; MaxProcs: 64\n; UnixStartTime: 1000000000\n"
    folder = write_parts(tmp_path, capsys, header, header + "; Note: the second month\n")
    assert read_log(folder).records == 4
    jobs = read(folder)
    assert jobs.machine_procs == 64
    assert jobs.origin.unix_start_time == 1_000_000_000


def test_parts__that_begin_at_different_times_are_no_log(tmp_path, capsys):
    folder = write_parts(tmp_path, capsys, *(f"; MaxProcs: 64\n; UnixStartTime: {start}\n" for start in (10**9, 2 * 10**9)))
    with raises(LogError, "different_headers"):
        read_log(folder)
