"""A folder of Parquet files that `walltime convert` wrote is one log, with the header of its parts; so is a folder of CSV files."""

import gzip

import pytest

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


ROWS = "job,submit,start,end,cpus\n1,100,200,300,4\n2,110,200,310,4\n"
MORE = ROWS.replace("\n1", "\n3").replace("\n2", "\n4")


@pytest.mark.parametrize(
    ("second", "records"),
    [(MORE, 4), ("\ufeff" + MORE.replace("job", '"job"'), 4), ("3,100,200,300,4\n", 3), (MORE.replace("start,end", "end,start"), None)],
)
def test_folder_of_csv__has_the_same_titles_in_each_file(second, records, tmp_path):
    (tmp_path / "1.csv").write_text(ROWS)
    (tmp_path / "2.csv").write_text(second)
    if records is None:
        with raises(LogError, "different_headers"):
            read_log(tmp_path, skip_bad_lines=True)
    else:
        assert read_log(tmp_path).column("job_id").tolist() == list(range(1, records + 1))


def test_openb__the_folder_has_a_list_of_nodes_too(tmp_path):
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n")
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    pods += "openb-pod-0000,12000,16384,1,460,,LS,Running,0,900,10\nopenb-pod-0001,6000,2048,0,0,,LS,Running,5,900,5\n"
    (tmp_path / "openb_pod_list_default.csv.gz").write_bytes(gzip.compress(pods.encode()))
    (tmp_path / "openb_pod_list_cpu050.csv").write_text(pods)
    log = read_log(tmp_path)
    assert [log.column(name).tolist() for name in ("allocated_procs", "gpus", "mem_mb")] == [[12000, 6000], [460, 0], [16384, 2048]]
