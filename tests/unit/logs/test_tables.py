"""Tables that explain themselves, and the mappings that are shipped: each on a small file of the layout that its source describes."""

import csv
import gzip
import io
import json
import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from tests.cli import call
from tests.errors import raises
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
        "openb": {"name": f"openb-pod-{number:04d}", "cpu_milli": nodes, "memory_mib": 2048, "num_gpu": number % 3, "gpu_milli": 460}
        | {"gpu_spec": "", "qos": "LS", "pod_phase": "Succeeded" if number % 4 else "Failed", "creation_time": submit}
        | {"deletion_time": end, "scheduled_time": start},
        "alcf": {"JOB_NAME": f"{number}.theta", "COBALT_JOBID": number, "MACHINE_NAME": "theta", "QUEUED_TIMESTAMP": stamp(submit)}
        | {"START_TIMESTAMP": stamp(start), "END_TIMESTAMP": stamp(end), "USERNAME_GENID": user, "QUEUE_NAME": "q", "EXIT_STATUS": 0}
        | {"WALLTIME_SECONDS": request, "RUNTIME_SECONDS": runtime, "NODES_USED": nodes},
        "gwf": dict(enumerate([number, submit, wait, runtime, nodes, runtime - 1, 5000.0, nodes, request, -1, number % 4 and 1, user]))
        | dict(enumerate(["g", "x", "q", -1, "s", "s/c", "UNITARY", *[-1] * 10], 12)),
        "slurm-simulator": dict(enumerate([number, submit, wait, runtime, nodes, -1, -1, -1, request, 4000, -1, user, "a", -1, "q", "p"]))
        | {16: "", 17: -1, 18: ""},
    }
    return {str(title): value for title, value in rows[name].items()}


def los_angeles(seconds):
    return datetime.fromtimestamp(seconds, ZoneInfo("America/Los_Angeles")).strftime("%Y-%m-%d %H:%M:%S")


def attempts(start, end, gpus):
    """A first attempt that ended early, and a second one on as many nodes as GPUs, as Philly writes them."""
    detail = [{"ip": f"m{k}", "gpus": ["gpu0"]} for k in range(gpus)]
    first = {"start_time": los_angeles(start), "end_time": los_angeles(start + 1), "detail": detail[:1]}
    return [first, {"start_time": los_angeles(start + 2), "end_time": los_angeles(end), "detail": detail}]


UNTITLED = {"alibaba-gpu-2020": ",", "gwf": "\t", "slurm-simulator": ";"}
"""Layouts without titles, and their separators."""


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
    table.write_csv(folder / "t.csv", include_header=name not in UNTITLED, separator=UNTITLED.get(name, ","))
    return folder / "t.csv"


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", shipped())
def test_shipped__reads_its_layout_by_recognition_and_by_name(name, tmp_path):
    path = file_of(name, tmp_path)
    log = read_log(path)
    assert f"layout {name} (" in log.reading[0]
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
    if name not in ("helios", "acme", "philly", "openb"):
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
    status, _, error = call(capsys, "fetch", "eagle")
    assert status == 1
    assert "https://data.openei.org/submissions/5860" in error


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


@pytest.mark.slow
def test_guess__takes_a_first_column_without_a_title_for_the_number_of_the_job(golden, tmp_path, capsys):
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
    golden("info", log.reading)
    assert call(capsys, "mapping", path, "--out", tmp_path / "m.toml")[0] == 0
    assert read_log(path, mapping=tmp_path / "m.toml").column("job_id").tolist() == log.column("job_id").tolist()


def test_guess__asks_what_is_doubtful_with_both_readings_and_five_rows(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("job,submit,runtime,cores\n" + "".join(f"{n},0{n}/0{n + 1}/2024 10:00:00,60,4\n" for n in range(1, 8)))
    with raises(LogError, "ambiguous_columns", "'submit'", "03/04/2024", "10:00:00", "04/05/2024", "05/06/2024"):
        read_log(path)
    assert call(capsys, "mapping", path, "--out", tmp_path / "m.toml")[0] == 0
    text = (tmp_path / "m.toml").read_text()
    assert "# DOUBTFUL: " in text
    assert read_log(path, mapping=tmp_path / "m.toml").records == 7


@pytest.mark.slow
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
    with raises(LogError, "unknown_columns", "allocated_procs", "requested_procs", "submit", "runtime", "colour"):
        read_log(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unknown-table", "json-lines", "mapping", "table"])
def test_hostile__mutated_tables_and_mappings_give_one_line_errors_only(kind):
    assert trials(kind, scaled(60), seed=5) == []


TIMES_OF = {"submit_time", "start_time", "end_time", "job_submit_time", "begin_time", "adt", "qdt", "sdt", "edt", "eligible_time"}


def written_otherwise(name, how):
    """The rows of a layout as other groups would publish them: the text of a file, `how` names what is different."""
    rows = [row_of(name, *job) for job in jobs()]
    if how in ("epoch", "epoch ms", "us", "zone"):
        for row in rows:
            for title in TIMES_OF & row.keys():
                begin = pl.Series([str(row[title]).removesuffix(".0")[:19]]).str.to_datetime("%Y-%m-%d %H:%M:%S").dt.epoch("s")[0]
                zone = 8 * 3600 if str(row[title]).endswith("+08:00") else 0
                texts = {
                    "epoch": begin - zone,
                    "epoch ms": 1000 * (begin - zone),
                    "us": f"{datetime.fromtimestamp(begin, UTC):%m/%d/%Y %H:%M:%S}",
                }
                row[title] = texts.get(how, f"{datetime.fromtimestamp(begin - zone, UTC):%Y-%m-%dT%H:%M:%S}.25+00")
    if how == "capitals":
        rows = [{title.upper().replace("_", " "): value for title, value in row.items()} for row in rows]
    if how == "more columns":
        rows = [{"": place, **row, "comment": 'two\nlines, "quoted"'} for place, row in enumerate(rows)]
    titles = sorted(rows[0]) if how == "order" else list(rows[0])
    out = io.StringIO(newline="")
    separator = {"semicolon": ";", "tab": "\t", "pipe": "|"}.get(how, ",")
    quoting = csv.QUOTE_ALL if how == "quoted" else csv.QUOTE_MINIMAL
    table = csv.writer(out, delimiter=separator, quoting=quoting, lineterminator="\r\n" if how == "crlf" else "\n")
    table.writerow(titles)
    table.writerows([[row[title] for title in titles] for row in rows])
    begin = "# of a site\n\n" if how == "comments" else ""
    return (begin + out.getvalue()).encode({"utf-16": "utf-16", "mark": "utf-8-sig"}.get(how, "utf-8"))


HOW = ("order", "capitals", "more columns", "semicolon", "tab", "pipe", "mark", "utf-16", "crlf", "quoted", "comments")
HOW += ("epoch", "epoch ms", "us", "zone")
SHORT = ("capitals", "utf-16", "comments", "epoch ms", "us")
"""Of these, what is in `make quick`, too."""


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("how", [pytest.param(how, marks=[] if how in SHORT else pytest.mark.slow) for how in HOW])
def test_shipped__is_recognised_however_it_is_written(how, tmp_path):
    names = sorted(set(shipped()) - {"cerit-soft-walltimes", "philly", *UNTITLED})
    for name in names if how in ("order", "semicolon") else names[HOW.index(how) % 3 :: 3]:
        path = tmp_path / f"{name}.csv"
        path.write_bytes(written_otherwise(name, how))
        log = read_log(path)
        assert f"layout {name} (" in log.reading[0]
        found = log.to_workload(procs=10_000)
        assert found.runtime.tolist() == [job[4] for job in jobs()], name
        assert found.procs.tolist() == [job[6] for job in jobs()], name
        assert found.submit.tolist() == [job[2] - next(jobs())[2] for job in jobs()], name
        if how == "semicolon":
            assert columns_of(read_log(path, mapping=name)) == columns_of(log)


RUNTIMES = {"run_time", "duration"}
LIMITS = {"wallclock_req", "elpl", "time_limit", "timelimit"}
STATES = {"state", "job_state", "exit state"}
CELLS = {
    "thousands": (RUNTIMES | {"wallclock_req", "elpl"}, ";", lambda value: f"{int(value):,}"),
    "thousands with blanks": (RUNTIMES, ",", lambda value: f"{int(value):,}".replace(",", "\u202f")),
    "thousands with points": (RUNTIMES, ";", lambda value: f"{int(value):,}".replace(",", ".")),
    "milliseconds": (RUNTIMES, ",", lambda value: 1000 * int(value)),
    "hours": (RUNTIMES, ",", lambda value: f"{value / 3600:.6f}"),
    "digits": (TIMES_OF, ",", lambda value: "".join(sign for sign in str(value)[:19] if sign.isdigit())),
    "short states": (STATES, ",", lambda value: "CD" if value.upper() == "COMPLETED" else "F"),
    "lists of states": (STATES, ",", lambda value: f'["{value}"]'),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", CELLS)
def test_shipped__is_read_with_cells_in_other_forms(how, tmp_path):
    titles, delimiter, written = CELLS[how]
    for name in ("eagle", "f-data", "adastra"):
        rows = [row_of(name, *job) for job in jobs()]
        rows = [{title: written(value) if title in titles else value for title, value in row.items()} for row in rows]
        out = io.StringIO(newline="")
        table = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
        table.writeheader()
        table.writerows(rows)
        (tmp_path / "t.csv").write_bytes(out.getvalue().encode())
        log = read_log(tmp_path / "t.csv")
        assert f"layout {name} (" in log.reading[0]
        found = log.to_workload(procs=10_000)
        assert found.runtime.tolist() == [job[4] for job in jobs()], name
        assert found.requested.tolist() == [job[5] for job in jobs()], name
        assert found.submit.tolist() == [job[2] - next(jobs())[2] for job in jobs()], name
        assert log.column("status").tolist() == [int(job[0] % 4 > 0) for job in jobs()], name


def test_shipped__says_which_states_it_does_not_know_and_in_which_unit_limits_are(golden, tmp_path):
    rows = [row_of("eagle", *job) | {"wallclock_req": job[5] // 60, "state": "xyz"} for job in jobs()]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    log = read_log(tmp_path / "t.csv")
    golden("info", log.reading)
    assert "status" not in log.columns or (log.column("status") == -1).all()
    assert log.column("requested").tolist() == [job[5] for job in jobs()]


def test_job_numbers__that_are_no_numbers_are_not_taken_for_their_first_digits(tmp_path):
    rows = [row_of("eagle", *job) | {"job_id": f"0x{job[0]:x}" if job[0] % 2 else f"{job[0]}_7"} for job in jobs()]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    numbers = read_log(tmp_path / "t.csv").to_workload(procs=10_000).job_id
    assert len(set(numbers.tolist())) == JOBS
    assert numbers[1::2].tolist() == list(range(2, JOBS + 1, 2))


OTHERS = {
    "PBS": "Job_Id,Job_Owner,queue,qtime,start,end,Resource_List.ncpus,Resource_List.walltime,resources_used.walltime,Exit_status\n"
    "7.pbs,ann,q,{submit},{start},{end},8,02:00:00,00:50:00,0\n8.pbs,bob,q,{submit},{start},{end},4,01:00:00,00:50:00,1\n",
    "SGE": "job_number,owner,qname,qsub_time,start_time,end_time,slots,ru_wallclock\n"
    "7,ann,q,09/13/2020 12:26:40,09/13/2020 12:28:20,09/13/2020 13:18:20,8,3000\n"
    "8,bob,q,09/13/2020 12:26:40,09/13/2020 12:28:20,09/13/2020 13:18:20,4,3000\n",
    "HTCondor": "ClusterId,Owner,QDate,JobStartDate,CompletionDate,RequestCpus\n"
    "7,ann,{submit},{start},{end},8\n8,bob,{submit},{start},{end},4\n",
    "Batsim": "job_id,submission_time,requested_number_of_resources,requested_time,starting_time,execution_time,waiting_time\n"
    "7,0.0,8,7200.0,100.0,3000.0,100.0\n8,0.0,4,3600.0,100.0,3000.0,100.0\n",
    "AccaSim": "job_id,queue_time,start_time,end_time,duration,requested_cores,user_id\n"
    "7,{submit},{start},{end},3000,8,ann\n8,{submit},{start},{end},3000,4,bob\n",
    "LSF": "JOBID,USER,STAT,SUBMIT_TIME,START_TIME,FINISH_TIME,SLOTS,RUNLIMIT\n"
    "7,ann,DONE,Sep 13 12:26:40 2020,Sep 13 12:28:20 2020,Sep 13 13:18:20 2020,8,120\n"
    "8,bob,EXIT,Sep 13 12:26:40 2020,Sep 13 12:28:20 2020,Sep 13 13:18:20 2020,4,60\n",
    "sacct by pandas": "JobID,User,Submit,Start,End,Elapsed,Timelimit,NCPUS,State\n"
    "7_1,ann,2020-09-13 12:26:40,2020-09-13 12:28:20,2020-09-13 13:18:20,0 days 00:50:00,0 days 02:00:00,8,COMPLETED\n"
    "8,bob,2020-09-13 12:26:40,2020-09-13 12:28:20,2020-09-13 13:18:20,0 days 00:50:00,UNLIMITED,4,CANCELLED by 12\n",
    "own titles": "job_id,user,submit,wait,runtime,requested,allocated_procs\n"
    "7,ann,2020-09-13 12:26:40,100,00:50:00,02:00:00,8\n8,bob,2020-09-13 12:26:40,100,00:50:00,01:00:00,4\n",
    "US": 'Job ID,User,Submitted,Started,Finished,"Run Time, s",CPUs\n"1,007",ann,09/13/2020 12:26:40 PM,09/13/2020 12:28:20 PM,'
    '09/13/2020 01:18:20 PM,"3,000",8\n"1,008",bob,09/13/2020 12:26:40 PM,09/13/2020 12:28:20 PM,09/13/2020 01:18:20 PM,"3,000",4\n',
    "German": "Job;Submit;Start;Runtime;Limit;Cores\n7;13.09.2020 12:26:40;13.09.2020 12:28:20;3000,0;7200,0;8\n"
    "8;13.09.2020 12:26:40;13.09.2020 12:28:20;3000,0;3600,0;4\n",
    "JSON of columns": '{{"job": [7, 8], "submitted_at": [{submit}, {submit}], "started_at": [{start}, {start}],'
    ' "finished_at": [{end}, {end}], "cores": [8, 4]}}',
    "JSON in an object": '{{"version": 1, "jobs": ['
    '{{"jobId": 7, "submitTime": {submit}, "startTime": {start}, "endTime": {end}, "numCores": 8}},'
    ' {{"jobId": 8, "submitTime": {submit}, "startTime": {start}, "endTime": {end}, "numCores": 4}}]}}',
}


@pytest.mark.parametrize("kind", OTHERS)
def test_guess__of_tables_of_other_systems(kind, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text(OTHERS[kind].format(submit=BEGIN, start=BEGIN + 100, end=BEGIN + 3100))
    log = read_log(path)
    found = log.to_workload(procs=64)
    assert (found.runtime.tolist(), found.columns["wait"].tolist(), sorted(found.procs.tolist())) == ([3000, 3000], [100, 100], [4, 8])
    if log.column("requested")[0] > 0:
        assert log.column("requested").tolist() == [7200, 31_536_000 if kind == "sacct by pandas" else 3600]
    if kind == "sacct by pandas":  # its rows are Slurm's records: the task of an array has no number of its own
        assert (log.format, log.column("array_job").tolist(), log.column("job_id").tolist()) == ("slurm", [7, -1], [-1, 8])
    else:
        assert log.column("job_id").tolist() in ([7, 8], [1007, 1008])


def test_guess__a_job_that_never_started_has_no_runtime(tmp_path):
    """Slurm's database has 0 for the start of a job that was cancelled in the queue: it did not run since 1970."""
    path = tmp_path / "t.csv"
    rows = [f"{k},{BEGIN + k},{BEGIN + k + 9 if k else 0},{BEGIN + k + 99},4,{'COMPLETED' if k else 'CANCELLED'}" for k in range(5)]
    path.write_text("id_job,time_submit,time_start,time_end,cpus_req,state\n" + "\n".join(rows) + "\n")
    workload = read_log(path).to_workload(procs=4)
    assert (len(workload), workload.origin.dropped) == (4, {"cancelled_before_start": 1})


def test_guess__walltime_that_is_the_runtime_is_no_request(golden, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{k},{BEGIN + k},{BEGIN + k},{BEGIN + 2 * k + 99},{k + 99},4" for k in range(5)]
    path.write_text("job,submit_time,start_time,end_time,walltime,cores\n" + "\n".join(rows) + "\n")
    log = read_log(path)
    assert "requested" not in log.columns
    golden("info", log.reading[-1])


def test_shipped__cerit_with_times_that_count_from_an_unknown_beginning(tmp_path):
    path = tmp_path / "soft.txt"
    lines = [f"{900 + k}[16921]   {60 * k}   5  100  2 4194304 u{k % 2} q_2h  7200   -1" for k in range(20)]
    path.write_text("; a header\n" + "\n".join(lines) + "\n")
    log = read_log(path)
    assert "layout cerit-soft-walltimes (" in log.reading[0]
    assert log.column("submit")[:3].tolist() == [0, 60, 120]
    assert log.to_workload(procs=8).origin.unix_start_time is None


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".jsonl"])
def test_folder__is_read_as_its_parts_in_order(ending, tmp_path, capsys):
    table = pl.DataFrame([row_of("f-data", *job) for job in jobs()], infer_schema_length=None)
    folder = tmp_path / "log"
    (folder / "b").mkdir(parents=True)
    for name, part in (("a_03", table[:25]), ("b/a_04", table[25:])):
        text = part.write_ndjson() if ending == ".jsonl" else part.write_csv()
        if ending == ".parquet":
            part.write_parquet(folder / f"{name}{ending}")
        else:
            (folder / f"{name}{ending}").write_bytes(gzip.compress(text.encode()) if ending == ".csv.gz" else text.encode())
    log = read_log(folder)
    assert "layout f-data (" in log.reading[0]
    assert log.column("job_id").tolist() == list(range(1, JOBS + 1))
    (folder / "more.tsv").write_text("a\tb\n")
    status, _, error = call(capsys, "info", folder)
    assert (status, "several kinds (" in error) == (1, True)


def test_own_table__a_column_without_a_value_is_unknown_and_one_of_texts_is_refused(golden, tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text("job_id,submit,runtime,allocated_procs,requested\n1,0,5,2,\n2,3,5,2,\n")
    assert read_log(path).column("requested").tolist() == [-1, -1]
    path.write_text("job_id,submit,runtime,allocated_procs,requested\n1,0,5,2,60\n2,3,5,2,an hour\n")
    golden("info", call(capsys, "info", path)[2])


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", shipped())
def test_mapping_command__round_trip_of_every_shipped_layout(name, tmp_path, capsys):
    path = file_of(name, tmp_path)
    assert call(capsys, "mapping", path, "--out", tmp_path / "m.toml")[0] == 0
    log, again = read_log(path), read_log(path, mapping=tmp_path / "m.toml")
    assert columns_of(again) == columns_of(log)
    assert dict(again.names) == dict(log.names)
    assert (dict(again.dropped), dict(again.changed), dict(again.noticed)) == (dict(log.dropped), dict(log.changed), dict(log.noticed))
    assert dict(again.header) == dict(log.header)


PHILLY = {
    "order": lambda rows: [{title: row[title] for title in sorted(row)} for row in rows],
    "more": lambda rows: [row | {"note": ["a", {"b": 1}], "": 4} for row in rows],
    "ms": lambda rows: [row | {"submitted_time": epoch_ms(row["submitted_time"])} for row in rows],
    "no user": lambda rows: [{title: value for title, value in row.items() if title not in ("user", "status")} for row in rows],
    "lines": lambda rows: rows,
    "no attempt": lambda rows: [row | ({"attempts": []} if k < 3 else {}) for k, row in enumerate(rows)],
}


def epoch_ms(text):
    return 1000 * int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=ZoneInfo("America/Los_Angeles")).timestamp())


@pytest.mark.slow
@pytest.mark.parametrize("how", PHILLY)
def test_philly__is_read_however_it_is_written(how, tmp_path):
    rows = PHILLY[how]([row_of("philly", *job) for job in jobs()])
    path = tmp_path / "cluster_job_log"
    path.write_text("\n".join(map(json.dumps, rows)) if how == "lines" else json.dumps(rows))
    for mapping in (None, "philly"):
        log = read_log(path, mapping=mapping)
        found = log.to_workload(procs=10_000)
        expected = list(jobs())[3 if how == "no attempt" else 0 :]
        assert found.runtime.tolist() == [job[4] for job in expected]
        assert found.procs.tolist() == [job[6] for job in expected]
        assert found.columns["wait"].tolist() == [job[3] for job in expected]
        assert sum(found.origin.dropped.values()) == (3 if how == "no attempt" else 0)
        assert ("user" in log.columns) == (how != "no user")


ALIBABA = ("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["heading", "order", "more", "quoted", "gz", "blank cells", "ms"])
def test_alibaba__is_read_however_it_is_written(how, tmp_path):
    rows = [list(map(str, row_of("alibaba-gpu-2020", *job).values())) for job in jobs()]
    if how == "blank cells":
        rows = [[*row[:6], "", "", "", ""] for row in rows]
    if how == "ms":
        rows = [[*row[:4], *(f"{BEGIN * 1000 + 1000 * float(one):.0f}" for one in row[4:6]), *row[6:]] for row in rows]
    titles = list(ALIBABA) if how in ("heading", "order", "more", "ms") else None
    if how == "order":
        order = [5, 4, 3, 2, 1, 0, 9, 8, 7, 6]
        titles, rows = [titles[k] for k in order], [[row[k] for k in order] for row in rows]
    if how == "more":
        titles, rows = [*titles, "wait_time", "user"], [[*row, "3", f"u{k % 4}"] for k, row in enumerate(rows)]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL if how == "quoted" else csv.QUOTE_MINIMAL, lineterminator="\n").writerows(
        [*([titles] if titles else []), *rows]
    )
    content = out.getvalue().encode()
    path = tmp_path / "pai_task_table.csv"
    path.write_bytes(gzip.compress(content) if how == "gz" else content)
    expected = sorted((job[4], job[6]) for job in jobs())
    for mapping in (None, "alibaba-gpu-2020"):
        found = read_log(path, mapping=mapping).to_workload(procs=10_000)
        assert sorted(zip(found.runtime.tolist(), found.procs.tolist(), strict=True)) == expected
        assert sum(found.origin.dropped.values()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["tabs", "no comments", "header behind", "no arrays", "gz", "blank lines", "crlf"])
def test_cerit__is_read_however_it_is_written(how, tmp_path):
    text = file_of("cerit-soft-walltimes", tmp_path).read_text()
    lines = text.splitlines()
    changed = {
        "tabs": "\n".join("\t".join(line.split()) for line in lines),
        "no comments": "\n".join(line for line in lines if not line.startswith(";")),
        "header behind": "\n".join([*lines, "; a comment", ";"]),
        "no arrays": text.replace("[16921]", ""),
        "blank lines": text.replace("\n", "\n\n"),
        "crlf": text.replace("\n", "\r\n"),
    }
    content = changed.get(how, text).encode()
    path = tmp_path / "other.swf"
    path.write_bytes(gzip.compress(content) if how == "gz" else content)
    for mapping in (None, "cerit-soft-walltimes"):
        found = read_log(path, mapping=mapping).to_workload(procs=10_000)
        assert found.runtime.tolist() == [job[4] for job in jobs()]
        assert found.columns["wait"].tolist() == [job[3] for job in jobs()]
        assert found.requested.tolist() == [job[5] for job in jobs()]
        assert sum(found.origin.dropped.values()) == 0


@pytest.mark.parametrize(("limit", "soft"), [(3600, 1800), (60, 30)], ids=["s", "min"])
def test_guess__keeps_soft_walltimes_and_predictions_in_the_unit_of_requests(limit, soft, tmp_path):
    lines = [
        f"{k},u{k % 3},{1_600_000_000 + 60 * k},{1_600_000_100 + 60 * k},{1_600_001_100 + 60 * k + k},{limit},4,"
        f"{soft if k % 2 else -1},{'00:20:00' if k % 3 else ''}"
        for k in range(1, 40)
    ]
    (tmp_path / "t.csv").write_text(
        "job_id,user,submit,start,end,timelimit,cores,Soft Walltime,predicted_runtime\n" + "\n".join(lines) + "\n"
    )
    log = read_log(tmp_path / "t.csv")
    assert log.column("requested").tolist() == [3600] * 39
    assert log.column("soft_walltime").tolist() == [1800 if k % 2 else -1 for k in range(1, 40)]
    assert log.column("predicted").tolist() == [1200 if k % 3 else -1 for k in range(1, 40)]
