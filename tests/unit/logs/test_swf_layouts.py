"""Fields beyond the 18th that are texts, and the layouts that are known by them."""

import bz2
import json
import lzma
import random

import numpy as np
import polars as pl
import pytest

from tests.cli import call
from tests.errors import raises
from walltime.errors import LogError
from walltime.logs import read_log
from walltime.logs.joblog import estimated_size


def metacentrum(jobs=300, differ=()):
    """A log in the layout of MetaCentrum and CERIT; jobs in `differ` have another size in the descriptor."""
    rng = random.Random(1)
    lines, submit = ["; Computer: CERIT"], 0
    for job in range(1, jobs + 1):
        submit += rng.randrange(200)
        nodes, each = rng.choice([1, 1, 2, 3]), rng.choice([1, 4, 64])
        hosts = ",".join(str(rng.randrange(2000)) for _ in range(nodes))
        procs = nodes * each
        said = f"{nodes + (job in differ)}:ppn={each}:x86_64"
        fields = [job, submit, 9, rng.randrange(1, 5000), procs, -1, -1, procs, 7200, -1, 1, job % 9, 1, -1, 1, -1, -1, -1]
        lines.append(" ".join([*map(str, fields), f"{{{hosts}}}", "q_1d", said]))
    return "\n".join(lines) + "\n"


FRONTIER = """\
; Field 19: used_gpus
; Field 20: soft_walltime
1 0 5 100 280000 -1 -1 280000 7200 -1 1 7 1 -1 1 -1 -1 -1 20000 3600 frontier:excl:2500x112
2 9 5 100 112 -1 -1 112 7200 -1 1 8 1 -1 1 -1 -1 -1 8 -1 frontier:shared:1x112
"""


@pytest.fixture
def written(tmp_path):
    def write(content, name="log.swf"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_metacentrum__is_read_and_named_and_differences_counted(written):
    log = read_log(written(metacentrum(differ=(3, 7))))
    assert (log.layout, log.records, dict(log.noticed)) == (
        "MetaCentrum/CERIT",
        300,
        {"descriptor_differs": 2, "node_list_differs": 2, "more_fields": 300},
    )
    assert log.further == ("node_list", "queue_name", "descriptor")
    assert log.names["queue_name"] == ("q_1d",)
    assert log.names["descriptor"][0].endswith(":x86_64")
    differ = log.column("nodes") * log.column("procs_per_node") != log.column("requested_procs")
    assert (np.flatnonzero(differ) + 1).tolist() == [3, 7]
    jobs = log.to_workload(procs=1000)
    assert len(jobs) == 300
    assert "nodes" in jobs.columns


def test_frontier__descriptor_is_nodes_times_processors(written):
    log = read_log(written(FRONTIER))
    assert log.layout == "Frontier"
    columns = ("nodes", "procs_per_node", "exclusive", "used_gpus", "soft_walltime")
    assert [log.column(name).tolist() for name in columns] == [[2500, 1], [112, 112], [1, 0], [20000, 8], [3600, -1]]
    assert not log.noticed.get("descriptor_differs")


def test_texts__written_and_read_again_are_equal(written, tmp_path):
    log = read_log(written(metacentrum()))
    log.write(tmp_path / "again.swf.gz")
    again = read_log(tmp_path / "again.swf.gz")
    assert again == log
    assert dict(again.names) == dict(log.names)


@pytest.mark.slow
def test_texts__in_some_blocks_only(written):
    lines = [f"{k} {k} 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 -1 -1 -1 {'x' if k == 29_000 else k % 3 - 1}" for k in range(1, 30_001)]
    log = read_log(written("\n".join(lines)))
    texts = [None, *log.names["field19"]]
    assert [texts[max(log.column("field19")[k - 1], 0)] for k in (1, 2, 3, 29_000, 29_001)] == ["0", "1", None, "x", None]


def test_texts__in_the_first_18_fields_are_bad_lines(written):
    with raises(LogError, "bad_line", "5", "allocated_procs", "'x'"):
        read_log(written(FRONTIER.replace("100 112 -1", "100 x -1")))


def test_info__without_the_size_estimates_it(written, capsys):
    path = written(FRONTIER)
    status, out, _ = call(capsys, "info", path, "--json")
    found = json.loads(out)
    assert (status, found["layout"], found["jobs"]) == (0, "Frontier", 2)
    assert found["procs_estimated"] == {"procs": 280112, "seconds": 91, "nodes": 2501, "nodes_seconds": 91, "unshared": False}
    assert "correct it with --procs 280112 " in " ".join(call(capsys, "info", path)[1].split())
    assert json.loads(call(capsys, "info", path, "--procs", "300000", "--json")[1])["procs_estimated"] is None
    assert call(capsys, "simulate", path, "--policy", "easy")[0] == 1


def test_size__of_a_log_that_does_not_say_when_jobs_ran_is_the_widest_job(written):
    text = FRONTIER.replace(" 0 5 100 280000", " 0 -1 100 280000").replace(" 9 5 100", " 9 -1 100")
    estimate = estimated_size(read_log(written(text)))
    assert (estimate.procs, estimate.seconds) == (280000, None)


@pytest.mark.parametrize(("ending", "pack"), [("bz2", bz2.compress), ("xz", lzma.compress)])
def test_packed__is_read_as_the_plain_file(written, ending, pack):
    plain, packed = read_log(written(FRONTIER)), read_log(written(pack(FRONTIER.encode()), f"log.swf.{ending}"))
    assert packed == plain
    assert packed.name == plain.name == "log"
    with raises(LogError, "damaged_archive"):
        read_log(written(pack(FRONTIER.encode())[:-20], f"cut.swf.{ending}"))


@pytest.mark.skipif(not hasattr(pl, "read_lines"), reason="this version of polars cannot unpack Zstandard")
def test_packed__with_zstandard(written, tmp_path):
    rows = FRONTIER.splitlines()
    pl.DataFrame({rows[0]: rows[1:]}).write_csv(tmp_path / "log.swf.zst", compression="zstd")
    assert read_log(tmp_path / "log.swf.zst") == read_log(written(FRONTIER))
    (tmp_path / "cut.swf.zst").write_bytes((tmp_path / "log.swf.zst").read_bytes()[:-20])
    with raises(LogError, "damaged_archive"):
        read_log(tmp_path / "cut.swf.zst")


@pytest.mark.parametrize("name", ["x.swf", "x.swf.gz", "x.parquet", "x.csv"])
def test_generate__writes_every_format_that_convert_writes(capsys, tmp_path, name):
    assert call(capsys, "generate", "lublin99", "--jobs", "200", "--out", tmp_path / name)[0] == 0
    assert call(capsys, "generate", "lublin99", "--jobs", "200", "--out", tmp_path / "same.swf")[0] == 0
    jobs, same = (read_log(tmp_path / file).to_workload(procs=128) for file in (name, "same.swf"))
    assert jobs.submit.tolist() == same.submit.tolist()
    assert jobs.runtime.tolist() == same.runtime.tolist()


@pytest.mark.parametrize(("key", "hint"), [("procs", "requested_procs"), ("Submit", "'submit'"), ("Requested Procs", "'requested_procs'")])
def test_mapping__wrong_key_names_the_right_one(written, key, hint):
    mapping = written(f'[columns]\n"{key}" = "t"\nruntime = "r"\nallocated_procs = "procs"\n', "m.toml")
    with raises(LogError, "unknown_column", hint):
        read_log(written("procs,t,r\n1,0,9\n", "t.csv"), mapping=mapping)
