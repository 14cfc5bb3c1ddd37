"""Logs as sites and data sets give them, read by commands without options: what is read, and every drop."""

import bz2
import gzip
import json
import lzma
import random
from datetime import UTC, datetime

import polars as pl
import pytest

from tests.batch_text import LSF, PBS
from tests.cli import call, one_line
from walltime.logs import read_log

BEGIN = 1_600_000_000


def stamp(seconds, form="%Y-%m-%d %H:%M:%S"):
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def hours(seconds):
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def jobs():
    """Jobs as (number, user, submit, wait, runtime, request, nodes)."""
    rng, submit = random.Random(1), BEGIN
    for k in range(1, 61):
        submit += rng.randrange(400)
        yield k, f"user{k % 7}", submit, rng.randrange(600), rng.randrange(20, 3000), rng.choice([3600, 7200, 86400]), rng.choice([1, 2, 4])


def swf_line(k, submit, wait, run, procs, request, *further, user=1):
    return " ".join(map(str, (k, submit - BEGIN, wait, run, procs, -1, -1, procs, request, -1, 1, user, 1, -1, 1, -1, -1, -1, *further)))


def cerit():
    for k, _, submit, wait, run, request, nodes in jobs():
        hosts = ",".join(str(1241 + i) for i in range(nodes + (k == 5)))
        yield swf_line(k, submit, wait, run, 64 * nodes, request, f"{{{hosts}}}", f"q_{k % 3}d", f"{nodes}:ppn=64:x86_64", user=k % 7)


def frontier():
    for k, _, submit, wait, run, request, nodes in jobs():
        mode = "excl" if k % 4 else "shared"
        procs = 112 * nodes if k != 7 else 999
        soft = request // 2 if k % 3 else -1
        yield swf_line(k, submit, wait, run, procs, request, 8 * nodes, soft, f"frontier:{mode}:{nodes}x112", user=k % 7)


def eagle():
    yield (
        "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,start_time,end_time,"
        "run_time,name,submit_line,state"
    )
    for k, user, submit, wait, run, request, nodes in jobs():
        begin = f"{k},{user},a,short,normal,{request},{nodes},{36 * nodes},0,85000,{stamp(submit)}"
        if k in (9, 10):
            yield f"{begin},,,,x,sbatch,{'CANCELLED' if k == 9 else 'PENDING'}"
        else:
            state = "COMPLETED" if k % 4 else "TIMEOUT"
            yield f'{begin},{stamp(submit + wait)},{stamp(submit + wait + run)},{run},x,"sbatch a,b",{state}'


def thetagpu():
    yield ",user,project,state,submit_time,start_time,end_time,wait_time,run_time,wall_time,node_num,gpu_num,queue"
    for k, user, submit, wait, run, request, nodes in jobs():
        times = ",".join(f"{one - BEGIN}.0" for one in (submit, submit + wait, submit + wait + run))
        yield f"{k - 1},{user},p,{'Pass' if k % 5 else 'Failed'},{times},{wait}.0,{run}.0,{request}.0,{nodes},{8 * nodes},full-node"


def sacct():
    yield "JobID|User|Account|Partition|QOS|Submit|Start|End|Elapsed|Timelimit|NCPUS|NNodes|State"
    form = "%Y-%m-%dT%H:%M:%S"
    for k, user, submit, wait, run, request, nodes in jobs():
        limit = f"{request // 86400}-{hours(request % 86400)}" if request >= 86400 else hours(request)
        times = f"{stamp(submit, form)}|{stamp(submit + wait, form)}|{stamp(submit + wait + run, form)}|{hours(run)}"
        yield f"{k}|{user}|a|batch|normal|{times}|{limit}|{32 * nodes}|{nodes}|{'COMPLETED' if k % 5 else 'CANCELLED by 12'}"
        yield f"{k}.batch||a|||{times}||{32 * nodes}|{nodes}|COMPLETED"


def soft_walltimes():
    yield "; CERIT-SC with soft walltimes"
    for k, _, submit, wait, run, request, nodes in jobs():
        array = "[16921]" if k % 4 == 0 else ""
        soft = run + 300 if k % 3 else -1
        yield f"{k}{array}   {submit}  {wait}   {run}  {4 * nodes}   {4194304 * nodes}  {k % 7}  {k % 3}  {request}  {soft}"


def grid_engine(unit=1, more=""):
    yield "# Version: 8.1.9"
    for k, user, submit, wait, run, request, nodes in jobs():
        times = ":".join(str(unit * one) for one in (submit, submit + wait, submit + wait + run))
        yield (
            f"all.q:node1:users:{user}:x:{k}:sge:0:{times}:0:{0 if k % 5 else 1}:{run}:1.0:0.1:0.0:0:0:0:0:1:0:0:0.0:0:0:0:0:1:1:NONE:"
            f"dep:mpi:{8 * nodes}:0:10.0:0.1:0.0:-u {user} -l h_rt={request} -pe mpi {8 * nodes}:0.0:NONE:1000.0:0:0{more}"
        )


def condor():
    """As `condor_history -long` prints them."""
    for k, user, submit, wait, run, _, nodes in jobs():
        yield f'ClusterId = {k}\nProcId = 0\nOwner = "{user}"\nQDate = {submit}\nJobStartDate = {submit + wait}'
        yield f"CompletionDate = {submit + wait + run}\nRequestCpus = {nodes}\nRemoteWallClockTime = {run}.0\nExitCode = {k % 5 and 1}\n"


def oar():
    """As `oarstat -J` prints them."""
    return json.dumps(
        {
            str(k): {"Job_Id": k, "owner": user, "queue": "default", "state": "Terminated", "submissionTime": submit, "events": []}
            | {"startTime": submit + wait, "stopTime": submit + wait + run, "walltime": request, "assigned_resources": list(range(nodes))}
            for k, user, submit, wait, run, request, nodes in jobs()
        }
    )


def text(lines):
    return ("\n".join(lines) + "\n").encode()


def columns_of(log):
    return {name: values.tolist() for name, values in log.columns.items()}


SIX = {
    "cerit.swf": (cerit, 64, {}, {"more_fields": 60, "node_list_differs": 1}),
    "frontier.swf": (frontier, 112, {}, {"more_fields": 60, "descriptor_differs": 1}),
    "eagle.csv": (eagle, 36, {"still_pending": 1, "cancelled_before_start": 1}, {}),
    "thetagpu.csv": (thetagpu, 1, {}, {}),
    "sacct.txt": (sacct, 32, {"step": 60}, {"zone_unknown": 60}),
    "softwall.swf": (soft_walltimes, 4, {}, {}),
}


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
    assert "--procs N" in " ".join(call(capsys, "info", path)[1].split())


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
    assert f"--procs N (--procs {found['procs']})" in shown
    if name not in ("pbs.acct", "lsb.acct"):
        workload = read_log(path).to_workload(procs=10**6)
        assert workload.runtime.tolist() == [job[4] for job in jobs()]
        assert workload.columns["wait"].tolist() == [job[3] for job in jobs()]
        if "history" not in name and "condor" not in name:
            assert workload.requested.tolist() == [job[5] for job in jobs()]


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


def test_untitled__what_two_columns_may_be_is_asked(tmp_path, capsys):
    ends = [(job, f"{job[2]},{job[2] + job[3]},{job[2] + job[3] + job[4]}") for job in jobs()]
    lines = [f"{k},{times},{nodes},{8 * nodes},{3 + k % 2}" for (k, *_, nodes), times in ends]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    error = one_line(*call(capsys, "info", tmp_path / "t.csv"))
    assert "is 'column6' the processors, or is 'column7' the processors? It begins 8, " in error
    (tmp_path / "t.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n")
    assert call(capsys, "info", tmp_path / "t.csv")[0] == 0
    (tmp_path / "t.csv").write_text("\n".join(f"{k},{submit},{submit + wait},{nodes}" for k, _, submit, wait, _, _, nodes in jobs()) + "\n")
    assert "there is no runtime (nor start and end)); say what they mean with --mapping FILE; they are column1, column2" in one_line(
        *call(capsys, "info", tmp_path / "t.csv")
    )


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
def test_frontier__fields_are_known_by_the_header_or_by_their_values(named, tmp_path, capsys):
    header = ["; Field 19: used_gpus", "; Field 20: soft_walltime"] if named else []
    (tmp_path / "log.swf").write_bytes(text([*header, *frontier()]))
    log = read_log(tmp_path / "log.swf")
    assert log.further == ("used_gpus", "soft_walltime", "descriptor")
    assert log.column("used_gpus").tolist() == [8 * job[6] for job in jobs()]
    assert log.column("soft_walltime")[:3].tolist() == [next(jobs())[5] // 2, log.column("requested")[1] // 2, -1]
    assert log.column("exclusive")[:4].tolist() == [1, 1, 1, 0]
    shown = call(capsys, "info", tmp_path / "log.swf")[1]
    assert f"field 19 is used_gpus ({'named in the header' if named else 'by its values'})" in shown
    assert "descriptors are read as nodes and processors on each, 60 of them; 45 exclusive, 15 shared" in shown


LASSEN = (
    "allocation_id,primary_job_id,launch_node_name,isolated_cores,user_flags,system_flags,ssd_min,ssd_max,num_nodes,num_processors,num_gpus,"
    "projected_memory,type,job_type,hashed_user_id,hashed_user_group_id,begin_time,end_time,exit_status,job_submit_time,queue,requeue,"
    "time_limit,smt_mode,core_blink",
    "allocation_id,node_name,shared,energy,gpfs_read,gpfs_write,ib_tx,ib_rx,power_cap,power_shifting_ratio,power_cap_hit,gpu_usage,"
    "gpu_energy,cpu_usage,memory_usage_max",
    "allocation_id,step_id,begin_time,end_time,num_nodes,num_processors,num_gpus,num_tasks,projected_memory,user_flags,exit_status,"
    "total_u_time,total_s_time,omp_thread_limit",
)
"""The headings of the three files, as the README of the data set has them."""


@pytest.fixture
def lassen(tmp_path):
    allocations, nodes_of, steps = ([heading] for heading in LASSEN)
    for k, user, submit, wait, run, request, nodes in jobs():
        begin, end = f"{stamp(submit + wait)}.25", f"{stamp(submit + wait + run)}.25"
        allocations.append(
            f"{k},{1000 + k},l1,0,,,0,0,{nodes},{44 * nodes},0,0,user-managed,batch,{user},g,{begin},{end},{0 if k % 4 else 1},"
            f"{stamp(submit)}.25,pbatch,,{request},4,f"
        )
        energies = [1000 * k + i for i in range(nodes)]
        nodes_of += [f"{k},l{i},f,{energy if k != 3 else -1},0,0,1,1,3050,100,0,5,{k},9,9" for i, energy in enumerate(energies)]
        steps += [f"{k},{i},{begin},{end},{nodes},{nodes},{4 * nodes - i},1,0,,0,1,1,1" for i in range(2 if k % 6 else 0)]
    folder = tmp_path / "lassen"
    folder.mkdir()
    (folder / "final_csm_allocation_history_hashed.csv").write_bytes(text(allocations))
    (folder / "final_csm_allocation_node_history.csv").write_bytes(text(nodes_of))
    (folder / "final_csm_step_history.csv.gz").write_bytes(gzip.compress(text(steps)))
    return folder


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


def test_lassen__without_the_other_files_and_with_one_that_cannot_be_joined(lassen, capsys):
    alone = read_log(lassen / "final_csm_allocation_history_hashed.csv")
    assert (alone.records, "energy" in alone.columns) == (60, False)
    (lassen / "final_csm_step_history.csv.gz").unlink()
    assert "gpus" not in read_log(lassen).columns
    (lassen / "final_csm_allocation_node_history.csv").write_text("allocation,energy\n1,2\n")
    assert "there is no column 'allocation_id' to join it by" in one_line(*call(capsys, "info", lassen))


ROUND = {
    **{name: lambda name=name: text(SIX[name][0]()) for name in ("eagle.csv", "thetagpu.csv", "softwall.swf")},
    **{name: PLAIN[name] for name in ("history", "oarstat.json", "untitled.csv", "t.csv", "t.csv.xz", "t.jsonl", "t.json")},
}


@pytest.mark.parametrize("name", [*ROUND, "lassen"])
def test_mapping__written_and_read_again_gives_the_same_log(name, tmp_path, lassen, capsys):
    path = lassen if name == "lassen" else tmp_path / name
    if name != "lassen":
        path.write_bytes(ROUND[name]())
    assert call(capsys, "mapping", path, "--out", tmp_path / "m.toml")[0] == 0
    log, again = read_log(path), read_log(path, mapping=tmp_path / "m.toml")
    assert columns_of(again) == columns_of(log)
    assert dict(again.names) == dict(log.names)
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
