"""Logs as sites and data sets give them, read by commands without options: what is read, and every drop."""

import bz2
import gzip
import json
import lzma

import numpy as np
import polars as pl
import pytest

from tests.batch_text import LSF, PBS
from tests.cli import call, one_line
from tests.layouts import (
    cerit,
    condor,
    eagle,
    frontier,
    grid_engine,
    jobs,
    lassen_files,
    oar,
    sacct,
    soft_walltimes,
    swf_line,
    text,
    thetagpu,
)
from walltime.logs import read_log


def columns_of(log):
    """All but the states as they are, which a mapping does not keep."""
    return {name: values.tolist() for name, values in log.columns.items() if name != "state"}


SIX = {
    "cerit.swf": (cerit, 64, {}, {"more_fields": 60, "node_list_differs": 1}),
    "frontier.swf": (frontier, 112, {}, {"more_fields": 60, "descriptor_differs": 1}),
    "eagle.csv": (eagle, 36, {"still_pending": 1, "cancelled_before_start": 1}, {}),
    "thetagpu.csv": (thetagpu, 1, {}, {}),
    "sacct.txt": (sacct, 32, {"step": 60}, {"zone_unknown": 60}),
    "softwall.swf": (soft_walltimes, 4, {}, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIX)
def test_six_kinds__are_read_without_options_and_every_drop_is_counted(name, tmp_path, capsys):
    made, each, dropped, noticed = SIX[name]
    path = tmp_path / name
    path.write_bytes(text(made()))
    status, out, error = call(capsys, "info", path, "--json")
    found = json.loads(out)
    assert (status, error) == (0, "")
    assert (found["dropped"], found["noticed"]) == (dropped, noticed)
    assert found["jobs"] == found["records"] - sum(dropped.values()) == 60 - (name == "eagle.csv") * 2
    assert found["users"] == 7
    assert found["procs_estimated"]["seconds"] > 0
    workload = read_log(path).to_workload(procs=10**6)
    expected = [job for job in jobs() if name != "eagle.csv" or job[0] not in (9, 10)]
    assert workload.runtime.tolist() == [job[4] for job in expected]
    assert workload.columns["wait"].tolist() == [job[3] for job in expected]
    assert workload.requested.tolist() == [job[5] for job in expected]
    assert [procs for procs in workload.procs.tolist() if procs != 999] == [
        each * job[6] for job in expected if (name, job[0]) != ("frontier.swf", 7)
    ]
    assert " with --procs " in " ".join(call(capsys, "info", path)[1].split())


PLAIN = {
    "plain.swf": lambda: text(swf_line(k, submit, wait, run, nodes, request) for k, _, submit, wait, run, request, nodes in jobs()),
    "sacct.txt": lambda: text(list(sacct())[1:]),
    "pbs.acct": PBS.encode,
    "lsb.acct": LSF.encode,
    "accounting": lambda: text(grid_engine()),
    "accounting-ms": lambda: text(grid_engine(1000, ":x:1")),
    "history": lambda: text(condor()),
    "condor.json": lambda: json.dumps([ad_of(*job) for job in jobs()]).encode(),
    "oarstat.json": lambda: oar().encode(),
    "t.csv": lambda: frame().write_csv().encode(),
    "untitled.csv": lambda: frame().write_csv(include_header=False).encode(),
    "t.csv.gz": lambda: gzip.compress(frame().write_csv().encode()),
    "t.csv.bz2": lambda: bz2.compress(frame().write_csv().encode()),
    "t.csv.xz": lambda: lzma.compress(frame().write_csv().encode()),
    "t.jsonl": lambda: frame().write_ndjson().encode(),
    "t.json": lambda: frame().write_json().encode(),
}


def ad_of(k, user, submit, wait, run, _, nodes):
    return {"ClusterId": k, "Owner": user, "QDate": submit, "JobStartDate": submit + wait, "CompletionDate": submit + wait + run} | {
        "RequestCpus": nodes
    }


def frame():
    return pl.DataFrame(
        {"job_id": k, "user": user, "submit_time": submit, "start_time": submit + wait, "end_time": submit + wait + run}
        | {"timelimit": request, "cores": 8 * nodes, "nodes": nodes, "state": "COMPLETED"}
        for k, user, submit, wait, run, request, nodes in jobs()
    )


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLAIN, "t.parquet", "t.csv.zst", "parts"])
def test_info__reads_every_format_without_the_size_of_the_machine(name, tmp_path, capsys):
    path = tmp_path / name
    if name == "t.parquet":
        frame().write_parquet(path)
    elif name == "t.csv.zst":
        if not hasattr(pl, "read_lines"):
            pytest.skip("this version of polars cannot unpack Zstandard")
        frame().write_csv(path, compression="zstd")
    elif name == "parts":
        path.mkdir()
        frame()[:30].write_parquet(path / "a.parquet")
        frame()[30:].write_parquet(path / "b.parquet")
    else:
        path.write_bytes(PLAIN[name]())
    status, out, error = call(capsys, "info", path, "--json")
    assert (status, error) == (0, "")
    found = json.loads(out)
    assert found["records"] - sum(found["dropped"].values()) == found["jobs"]
    assert found["procs_estimated"]["procs"] > 0
    shown = " ".join(call(capsys, "info", path)[1].split())
    assert f"correct it with --procs {found['procs']} period" in shown
    if name not in ("pbs.acct", "lsb.acct"):
        workload = read_log(path).to_workload(procs=10**6)
        assert workload.runtime.tolist() == [job[4] for job in jobs()]
        assert workload.columns["wait"].tolist() == [job[3] for job in jobs()]
        if "history" not in name and "condor" not in name:
            assert workload.requested.tolist() == [job[5] for job in jobs()]


@pytest.mark.slow
def test_sacct__without_a_heading_gives_the_jobs_of_the_one_with_it(tmp_path, capsys):
    for name, first in (("with.txt", 0), ("without.txt", 1)):
        (tmp_path / name).write_bytes(text(list(sacct())[first:]))
    whole, untitled = read_log(tmp_path / "with.txt"), read_log(tmp_path / "without.txt")
    same = ("submit", "wait", "runtime", "requested", "allocated_procs", "nodes", "status", "job_id", "user")
    assert [untitled.column(name).tolist() for name in same] == [whole.column(name).tolist() for name in same]
    assert untitled.names["user"] == whole.names["user"]
    assert dict(untitled.dropped) == dict(whole.dropped) == {"step": 60}
    assert "submit is 'column6' (times such as 2020-09-13T12:30:01, by their order)" not in untitled.reading
    assert any(line.startswith("submit is 'column6' (times such as 2020-09-13T") for line in untitled.reading)
    assert call(capsys, "mapping", tmp_path / "without.txt", "--out", tmp_path / "m.toml")[0] == 0
    again = read_log(tmp_path / "without.txt", mapping=tmp_path / "m.toml")
    assert columns_of(again) == columns_of(untitled)


@pytest.mark.slow
def test_untitled__what_two_columns_may_be_is_asked(golden, tmp_path, capsys):
    ends = [(job, f"{job[2]},{job[2] + job[3]},{job[2] + job[3] + job[4]}") for job in jobs()]
    lines = [f"{k},{times},{nodes},{8 * nodes},{3 + k % 2}" for (k, *_, nodes), times in ends]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    error = one_line(*call(capsys, "simulate", tmp_path / "t.csv", "--policy", "easy"))
    golden("info", error)
    (tmp_path / "t.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n")
    assert call(capsys, "info", tmp_path / "t.csv")[0] == 0
    (tmp_path / "t.csv").write_text("\n".join(f"{k},{submit},{submit + wait},{nodes}" for k, _, submit, wait, _, _, nodes in jobs()) + "\n")
    golden("info", one_line(*call(capsys, "simulate", tmp_path / "t.csv", "--policy", "easy")))


def test_steps__of_a_table_are_no_jobs(tmp_path):
    table = pl.DataFrame([dict(zip(lines[0].split("|"), line.split("|"), strict=True)) for lines in [list(sacct())] for line in lines[1:]])
    table.write_csv(tmp_path / "by_pandas.csv", separator=";")
    log = read_log(tmp_path / "by_pandas.csv")
    assert (log.records, dict(log.dropped)) == (60, {"step": 60})


def test_grid_engine__fields_and_names(tmp_path):
    (tmp_path / "accounting").write_bytes(text(grid_engine()))
    log = read_log(tmp_path / "accounting")
    assert log.format == "sge"
    assert log.column("allocated_procs").tolist() == [8 * job[6] for job in jobs()]
    assert [log.names["user"][number - 1] for number in log.column("user")] == [job[1] for job in jobs()]
    assert log.column("status").tolist() == [int(job[0] % 5 > 0) for job in jobs()]
    assert (log.names["queue"], log.names["parallel_environment"]) == (("all.q",), ("mpi",))


@pytest.mark.parametrize("named", [False, True])
def test_frontier__fields_are_known_by_the_header_or_by_their_values(golden, named, tmp_path, capsys):
    header = ["; Field 19: used_gpus", "; Field 20: soft_walltime"] if named else []
    (tmp_path / "log.swf").write_bytes(text([*header, *frontier()]))
    log = read_log(tmp_path / "log.swf")
    assert log.further == ("used_gpus", "soft_walltime", "descriptor")
    assert log.column("used_gpus").tolist() == [8 * job[6] for job in jobs()]
    assert log.column("soft_walltime")[:3].tolist() == [next(jobs())[5] // 2, log.column("requested")[1] // 2, -1]
    assert log.column("exclusive")[:4].tolist() == [1, 1, 1, 0]
    shown = call(capsys, "info", tmp_path / "log.swf")[1]
    assert f"field 19 is used_gpus ({'named in the header' if named else 'by its values'})" in shown
    golden("info", shown)


@pytest.fixture
def lassen(tmp_path):
    folder = tmp_path / "lassen"
    folder.mkdir()
    for name, content in lassen_files().items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("mapping", [None, "lassen"])
def test_lassen__three_files_are_joined(mapping, lassen):
    log = read_log(lassen, mapping=mapping)
    assert log.records == 60
    assert log.column("gpus").tolist() == [4 * job[6] if job[0] % 6 else -1 for job in jobs()]
    expected = [sum(1000 * k + i for i in range(nodes)) if k != 3 else -1 for k, *_, nodes in jobs()]
    assert log.column("energy").tolist() == expected
    workload = log.to_workload(procs=1000)
    assert workload.runtime.tolist() == [job[4] for job in jobs()]
    assert [log.names["user"][number - 1] for number in log.column("user")] == [job[1] for job in jobs()]


def test_lassen__without_the_other_files_and_with_one_that_cannot_be_joined(golden, lassen, capsys):
    alone = read_log(lassen / "final_csm_allocation_history_hashed.csv")
    assert (alone.records, "energy" in alone.columns) == (60, False)
    (lassen / "final_csm_step_history.csv.gz").unlink()
    assert "gpus" not in read_log(lassen).columns
    (lassen / "final_csm_allocation_node_history.csv").write_text("allocation,energy\n1,2\n")
    golden("info", one_line(*call(capsys, "info", lassen)))


ROUND = {
    **{name: lambda name=name: text(SIX[name][0]()) for name in ("eagle.csv", "thetagpu.csv", "softwall.swf")},
    **{name: PLAIN[name] for name in ("oarstat.json", "untitled.csv", "t.csv", "t.csv.xz", "t.jsonl", "t.json")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ROUND, "lassen"])
def test_mapping__written_and_read_again_gives_the_same_log(name, tmp_path, lassen, capsys):
    path = lassen if name == "lassen" else tmp_path / name
    if name != "lassen":
        path.write_bytes(ROUND[name]())
    assert call(capsys, "mapping", path, "--out", tmp_path / "m.toml")[0] == 0
    log, again = read_log(path), read_log(path, mapping=tmp_path / "m.toml")
    assert columns_of(again) == columns_of(log)
    assert dict(again.names) == {column: texts for column, texts in log.names.items() if column != "state"}
    assert (dict(again.dropped), dict(again.noticed)) == (dict(log.dropped), dict(log.noticed))


@pytest.mark.parametrize("name", ["cerit.swf", "frontier.swf"])
@pytest.mark.parametrize("ending", [".swf", ".parquet"])
def test_clean__keeps_the_fields_that_are_known_by_their_values(name, ending, tmp_path, capsys):
    (tmp_path / name).write_bytes(text(SIX[name][0]()))
    out = tmp_path / f"out{ending}"
    assert call(capsys, "clean", tmp_path / name, "--procs", "10000", "--out", out)[0] == 0
    log, again = read_log(tmp_path / name), read_log(out)
    for column in log.further:
        assert again.column(column).tolist() == log.column(column).tolist(), column
    assert dict(again.names) == dict(log.names)
    if ending == ".swf":
        assert again.layout == log.layout
        assert all("named in the header" in line for line in again.fields[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".swf"])
@pytest.mark.parametrize("name", ["frontier.swf", "softwall.swf", "oarstat.json"])
def test_clean__keeps_all_columns_in_tables(name, ending, tmp_path, capsys):
    """Also those that descriptors were read into, and those of tables."""
    (tmp_path / name).write_bytes(text(SIX[name][0]()) if name in SIX else PLAIN[name]())
    out = tmp_path / f"out{ending}"
    assert call(capsys, "clean", tmp_path / name, "--procs", "100000", "--remove", "job<=3", "--out", out)[0] == 0
    before = read_log(tmp_path / name).to_workload(procs=100_000)
    again = read_log(out).to_workload(procs=100_000)
    kept = before.job_id > 3
    expected = {column: values[kept].tolist() for column, values in before.columns.items()}
    lost = expected.keys() - again.columns.keys()
    assert not (lost - {column for column in lost if set(expected[column]) == {-1}})
    for column in expected.keys() & again.columns.keys():
        if column not in before.origin.names:
            assert again.columns[column].tolist() == expected[column], column


@pytest.mark.parametrize("how", ["bom", "ms", "windows", "tabs"])
def test_soft_walltimes__are_recognised_however_they_are_written(how, tmp_path):
    lines = list(soft_walltimes())
    if how == "ms":
        lines = [line.replace(f"   {job[2]}  ", f"   {job[2]}000  ") for line, job in zip(lines[1:], jobs(), strict=True)]
    content = {
        "bom": b"\xef\xbb\xbf" + text(lines),
        "ms": text(lines),
        "windows": text(lines).replace(b"\n", b"\r\n"),
        "tabs": text("\t".join(line.split()) for line in lines[1:]),
    }[how]
    (tmp_path / "soft.txt").write_bytes(content)
    workload = read_log(tmp_path / "soft.txt").to_workload(procs=10**6)
    assert workload.runtime.tolist() == [job[4] for job in jobs()]
    assert np.diff(workload.submit).tolist() == np.diff([job[2] for job in jobs()]).tolist()


def test_table__that_begins_with_a_semicolon_is_not_taken_for_swf(tmp_path):
    head = "; exported\njob_id;user;submit_time;start_time;end_time;timelimit;cores\n"
    rows = [f"{k};{user};{s};{s + wait};{s + wait + run};{request};{nodes}" for k, user, s, wait, run, request, nodes in jobs()]
    (tmp_path / "t.txt").write_text(head + "\n".join(rows) + "\n")
    assert read_log(tmp_path / "t.txt").to_workload(procs=64).runtime.tolist() == [job[4] for job in jobs()]


@pytest.mark.slow
@pytest.mark.parametrize("odd", [{"a": 1}, ["x"], 2**70, True, "text"])
def test_objects__with_values_of_several_kinds_in_a_column_are_read_or_refused_in_one_line(odd, tmp_path, capsys):
    for title in ("owner", "submissionTime", "walltime", "events"):
        jobs_said = json.loads(oar())
        next(iter(jobs_said.values()))[title] = odd
        (tmp_path / "oarstat.json").write_text(json.dumps(jobs_said))
        status, out, err = call(capsys, "info", tmp_path / "oarstat.json", "--json", "--skip-bad-lines")
        assert (status == 0 and json.loads(out)["records"] == 60) or (status == 1 and err.count("\n") == 1)
