"""Tables that explain themselves, and the mappings that are shipped: each on a small file of the layout that its source describes."""

import json
import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from tests.cli import call
from tests.profiles import scaled
from validation.hostile import trials
from walltime.errors import LogError
from walltime.logs import read_log
from walltime.logs.catalogue import shipped

BEGIN = 1_600_000_000
JOBS = 40


def stamp(seconds, zone=""):
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") + zone


def jobs():
    """Jobs as (number, user, submit, wait, runtime, request, nodes)."""
    rng, submit = random.Random(7), BEGIN
    for number in range(1, JOBS + 1):
        submit += rng.randrange(300)
        yield number, f"u{number % 5}", submit, rng.randrange(500), rng.randrange(10, 3500), rng.choice([3600, 7200]), rng.choice([1, 2, 4])


def row_of(name, number, user, submit, wait, runtime, request, nodes):
    """One job in the layout of a data set, by title."""
    start, end = submit + wait, submit + wait + runtime
    times = {"submit_time": stamp(submit), "start_time": stamp(start), "end_time": stamp(end)}
    state = "COMPLETED" if number % 4 else "FAILED"
    rows = {
        "eagle": {"job_id": number, "user": user, "account": "a", "partition": "short", "qos": "normal", "wallclock_req": request}
        | {"nodes_req": nodes, "processors_req": nodes, "gpus_req": 0, "mem_req": 1000, **times, "run_time": runtime, "state": state},
        "kestrel": {"id": number, "job_id": number, "account_hash": "f00", "partition": "short", "nodes_req": nodes}
        | {"processors_req": nodes, "memory_req": 1, "wallclock_req": request, "qos": "normal", "gpus_requested": 0, **times},
        "f-data": {"jid": f"job_{number}", "usr": user, "jnam": "x", "cnumr": nodes, "cnumat": nodes, "nnumr": 1, "nnuma": 1}
        | {"adt": stamp(submit, "+00:00"), "qdt": stamp(submit, "+00:00"), "sdt": stamp(start, "+00:00"), "edt": stamp(end, "+00:00")}
        | {"elpl": float(request), "avgpcon": 90.5, "exit state": state.lower(), "duration": float(runtime)},
        "pm100": {"job_id": number, "user_id": number % 5, "group_id": 1, "partition": 1, "qos": "q", "eligible_time": stamp(submit)}
        | {**times, "run_time": runtime, "time_limit": request // 60, "num_cores_req": nodes, "num_cores_alloc": nodes}
        | {"num_nodes_alloc": 1, "num_gpus_alloc": 4, "job_state": state, "state_reason": "None"},
        "adastra": {"job_id": number, "user_id": number % 5, **times, "run_time": runtime, "time_limit": request // 60}
        | {"num_nodes_alloc": nodes, "job_state": state, "cpu_power_consumption": 1, "mem_power_consumption": 1},
        "lassen": {"allocation_id": number, "primary_job_id": number, "num_nodes": nodes, "job_submit_time": f"{stamp(submit)}.0"}
        | {"begin_time": f"{stamp(start)}.0", "end_time": f"{stamp(end)}.0", "time_limit": request, "queue": "pbatch", "exit_status": 0},
        "helios": {"job_id": number, "user": user, "vc": "vcA", "gpu_num": nodes, "cpu_num": 4, "node_num": 1, "state": state, **times}
        | {"duration": runtime, "queue": wait},
        "acme": {"job_id": number, "user": user, "node_num": 1, "gpu_num": nodes, "cpu_num": 8, "type": "Other", "state": state}
        | {"submit_time": stamp(submit, "+08:00"), "start_time": stamp(start, "+08:00"), "end_time": stamp(end, "+08:00")}
        | {"duration": runtime, "queue": wait, "gpu_time": 9.0},
        "alibaba-gpu-2020": {"job": f"{number:024x}", "task": "worker", "n": f"{nodes}.0", "status": "Terminated"}
        | {"start": f"{start - BEGIN}.0", "end": f"{end - BEGIN}.0", "cpu": "600.0", "mem": "29.29", "gpu": "50.0", "type": "MISC"},
        "mit-supercloud": {"id_job": number, "id_user": number % 5, "partition": "gpu", "timelimit": request // 60, "cpus_req": nodes}
        | {"nodes_alloc": 1, "time_submit": submit, "time_eligible": submit, "time_start": start, "time_end": end}
        | {"state": 3 if number % 4 else 5, "tres_alloc": f"1={nodes},2=170000,4=1,1002=2"},
        "philly": {"status": "Pass", "vc": "ee9e8c", "jobid": f"application_1506638472019_{number}", "user": user}
        | {"submitted_time": los_angeles(submit), "attempts": attempts(start, end, nodes)},
    }
    return rows[name]


def los_angeles(seconds):
    return datetime.fromtimestamp(seconds, ZoneInfo("America/Los_Angeles")).strftime("%Y-%m-%d %H:%M:%S")


def attempts(start, end, gpus):
    """A first attempt that ended early, and a second one on as many nodes as GPUs, as Philly writes them."""
    detail = [{"ip": f"m{k}", "gpus": ["gpu0"]} for k in range(gpus)]
    first = {"start_time": los_angeles(start), "end_time": los_angeles(start + 1), "detail": detail[:1]}
    return [first, {"start_time": los_angeles(start + 2), "end_time": los_angeles(end), "detail": detail}]


def columns_of(log):
    return {name: values.tolist() for name, values in log.columns.items()}


def file_of(name, folder):
    """A file in the layout of a data set."""
    if name == "cerit-soft-walltimes":
        path = folder / "cerit.swf"
        lines = [
            f"{n}{'[16921]' if n % 2 else ''}   {submit}  {wait} {run}\t{size} {size}000,5 {user} default {request} "
            f"{run + 60 if n % 3 else -1}"
            for n, user, submit, wait, run, request, size in jobs()
        ]
        path.write_text("; a header\n;\n" + "\n".join(lines) + "\n")
        return path
    if name == "philly":
        (folder / "cluster_job_log").write_text(json.dumps([row_of(name, *job) for job in jobs()]))
        return folder / "cluster_job_log"
    table = pl.DataFrame([row_of(name, *job) for job in jobs()], infer_schema_length=None)
    if name in ("f-data", "pm100", "adastra"):
        table.write_parquet(folder / "t.parquet")
        return folder / "t.parquet"
    table.write_csv(folder / "t.csv", include_header=name != "alibaba-gpu-2020")
    return folder / "t.csv"


@pytest.mark.parametrize("name", shipped())
def test_shipped__reads_its_layout_by_recognition_and_by_name(name, tmp_path):
    path = file_of(name, tmp_path)
    log = read_log(path)
    assert f"known: {name}," in log.reading[0]
    assert not log.dropped
    numbers, users, submits, waits, runtimes, requests, sizes = (list(values) for values in zip(*jobs(), strict=True))
    found = log.to_workload(procs=10_000)
    if name == "alibaba-gpu-2020":  # in order of the starts
        assert sorted(zip(found.runtime.tolist(), found.procs.tolist(), strict=True)) == sorted(zip(runtimes, sizes, strict=True))
        return
    assert found.runtime.tolist() == runtimes
    assert found.procs.tolist() == sizes
    assert found.submit.tolist() == [submit - submits[0] for submit in submits]
    assert found.columns["wait"].tolist() == waits
    if name not in ("helios", "acme", "philly"):
        assert found.requested.tolist() == requests
    assert found.job_id.tolist() == numbers
    again = read_log(path, mapping=name)
    assert columns_of(again) == columns_of(log)
    if name == "eagle":
        assert [log.names["user"][number - 1] for number in log.column("user")] == users


def test_shipped__cerit_has_soft_walltimes_and_arrays(tmp_path):
    log = read_log(file_of("cerit-soft-walltimes", tmp_path))
    assert log.column("soft_walltime")[:3].tolist()[2] == -1
    assert log.column("array")[:2].tolist() == [16921, -1]


def test_shipped__all_say_where_they_come_from():
    for name, mapping in shipped().items():
        assert mapping.about.title, name
        assert mapping.about.source, name
        assert mapping.about.page.startswith("https://"), name


def test_fetch__knows_where_the_data_sets_are(capsys):
    sets = {one["name"]: one for one in json.loads(call(capsys, "fetch", "--json")[1])["data_sets"]}
    assert sets.keys() == shipped().keys()
    assert (sets["philly"]["size"], sets["f-data"]["licence"]) == ("6.6 GB, 0.98 GB compressed", "")
    status, _, error = call(capsys, "fetch", "philly")
    assert status == 1
    assert "https://github.com/msr-fiddle/philly-traces" in error


def test_guess__thetagpu_of_lumos_whose_first_column_has_no_title(tmp_path):
    lines = ["," + "user,project,submit_time,start_time,end_time,wait_time,run_time,wall_time,node_num,gpu_num,queue,state"]
    for n, user, submit, wait, run, request, size in jobs():
        times = ",".join(stamp(one) for one in (submit, submit + wait, submit + wait + run))
        lines.append(f"{n - 1},{user},p,{times},{wait},{run},{request},{size},{8 * size},full-node,{'COMPLETED' if n % 4 else 'FAILED'}")
    path = tmp_path / "thetagpu.csv"
    path.write_text("\n".join(lines) + "\n")
    log = read_log(path)
    assert (log.records, dict(log.dropped)) == (JOBS, {})
    assert [log.column(name).tolist() for name in ("runtime", "wait", "requested")] == [[job[k] for job in jobs()] for k in (4, 3, 5)]
    assert log.column("gpus").tolist() == [8 * job[6] for job in jobs()]


def test_info__of_sacct_without_the_size_of_the_machine(tmp_path, capsys):
    lines = ["JobID|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|NCPUS|NNodes|State"]
    for n, user, submit, wait, run, _, size in jobs():
        times = "|".join(stamp(one).replace(" ", "T") for one in (submit, submit + wait, submit + wait + run))
        elapsed = f"{run // 3600:02d}:{run // 60 % 60:02d}:{run % 60:02d}"
        lines.append(f"{n}|{user}|a|batch|{times}|{elapsed}|02:00:00|{size}|1|{'COMPLETED' if n > 2 else 'PENDING'}")
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join(lines) + "\n")
    status, out, _ = call(capsys, "info", path, "--json")
    record = json.loads(out)
    assert status == 0
    assert record["records"] - sum(record["dropped"].values()) == record["jobs"], record
    assert "--procs" in call(capsys, "info", path)[1]


HEAD = "Job;Owner;Time Limit;Cores;Submitted;Started;Ended;Status\n"


def table(minutes=True):
    lines = [
        f"{n};{user};{request // (60 if minutes else 1)};{size};{submit * 1000};{(submit + wait) * 1000};{(submit + wait + run) * 1000};"
        f"{'done' if n % 4 else 'cancelled by user'}"
        for n, user, submit, wait, run, request, size in jobs()
    ]
    return HEAD + "\n".join(lines) + "\n"


@pytest.mark.parametrize("minutes", [True, False])
def test_guess__finds_columns_times_in_milliseconds_and_the_unit_of_limits(tmp_path, minutes):
    path = tmp_path / "t.csv"
    path.write_text(table(minutes))
    log = read_log(path)
    assert log.column("requested").tolist() == [job[5] for job in jobs()]
    assert log.column("wait").tolist() == [job[3] for job in jobs()]
    assert sorted(set(log.column("status").tolist())) == [1, 5]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "json", "blanks", "unnamed"])
def test_guess__of_every_kind_of_table(tmp_path, kind):
    frame = pl.DataFrame([row_of("eagle", *job) for job in jobs()]).select(
        "job_id", "user", "submit_time", "run_time", "nodes_req", "start_time"
    )
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "jsonl":
        frame.write_ndjson(path)
    elif kind == "json":
        frame.write_json(path)
    elif kind == "blanks":
        rows = [f"{n}   {user} {submit}\t{run}  {size}" for n, user, submit, _, run, _, size in jobs()]
        path.write_text("# made by hand\njob user  submit runtime cores\n" + "\n".join(rows) + "\n")
    else:
        frame.with_row_index("").write_csv(path)
    found = read_log(path).to_workload(procs=100)
    assert found.runtime.tolist() == [job[4] for job in jobs()]
    assert found.procs.tolist() == [job[6] for job in jobs()]


def test_guess__takes_a_first_column_without_a_title_for_the_number_of_the_job(tmp_path, capsys):
    """The layout of the ThetaGPU log in the lumos study."""
    path = tmp_path / "theta_gpu.csv"
    rows = [
        f"{n - 1},{user},full-node,{submit}.0,{wait}.0,{run}.0,{limit}.0,{size},{8 * size},{'Failed' if n % 3 == 0 else 'Pass'}"
        for n, user, submit, wait, run, limit, size in jobs()
    ]
    path.write_text(",user,queue,submit_time,wait_time,run_time,wall_time,node_num,gpu_num,state\n" + "\n".join(rows) + "\n")
    log = read_log(path)
    assert log.column("job_id").tolist() == [job[0] - 1 for job in jobs()]
    assert sorted(set(log.column("status").tolist())) == [0, 1]
    assert "job_id is the first column, which has no title" in log.reading
    assert call(capsys, "mapping", path, "--out", tmp_path / "m.toml")[0] == 0
    assert read_log(path, mapping=tmp_path / "m.toml").column("job_id").tolist() == log.column("job_id").tolist()


def test_guess__asks_what_is_doubtful_with_both_readings_and_five_rows(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("job,submit,runtime,cores\n" + "".join(f"{n},0{n}/0{n + 1}/2024 10:00:00,60,4\n" for n in range(1, 8)))
    with pytest.raises(LogError, match=r"'submit' day or month first .*03/04/2024 10:00:00, 04/05/2024 10:00:00, 05/06/2024 10:00:00;"):
        read_log(path)
    assert call(capsys, "mapping", path, "--out", tmp_path / "m.toml")[0] == 0
    text = (tmp_path / "m.toml").read_text()
    assert "# DOUBTFUL: " in text
    assert read_log(path, mapping=tmp_path / "m.toml").records == 7


def test_mapping_command__writes_what_was_recognised(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(table())
    status, out, _ = call(capsys, "mapping", path, "--out", tmp_path / "m.toml", "--json")
    assert (status, json.loads(out)["doubts"]) == (0, [])
    log, again = read_log(path), read_log(path, mapping=tmp_path / "m.toml")
    assert {name: values.tolist() for name, values in again.columns.items()} == {
        name: values.tolist() for name, values in log.columns.items()
    }
    assert "f-data" in call(capsys, "mapping")[1]
    assert "Owner" in call(capsys, "info", path)[1]


def test_guess__names_what_is_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("submit,runtime,colour\n1,2,red\n3,4,blue\n")
    with pytest.raises(LogError, match=r"not recognised .*neither allocated_procs nor requested_procs.*they are submit, runtime, colour"):
        read_log(path)


@pytest.mark.parametrize("kind", ["unknown-table", "json-lines", "mapping", "table"])
def test_hostile__mutated_tables_and_mappings_give_one_line_errors_only(kind):
    assert trials(kind, scaled(125), seed=5) == []
