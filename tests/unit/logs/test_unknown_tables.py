"""Tables of no known system: columns, states and single values that are odd, and what becomes of them."""

import json

import pytest

from tests.cli import call
from walltime.logs import read_log

DAY = "2026-03-02"


@pytest.fixture
def read(tmp_path):
    def read(text, name="t.csv", **options):
        (tmp_path / name).write_text(text)
        return read_log(tmp_path / name, **options)

    return read


def rows(log, *names):
    unknown = [-1] * log.records
    return list(zip(*(log.column(name).tolist() if name in log.columns else unknown for name in names), strict=True))


def test_guess__constant_columns_are_no_sizes_and_unused_requests_are_named(read):
    titles = "cluster_id,uid,job_unique_id,user,node_num,gpu_num,cpu_num,submit_time,start_time,end_time,new_status,cores_hint,mem_hint"
    lines = [
        f"3,{k},{70 + k},u{k},{1 + k % 2},{8 + 8 * (k % 2)},0,{1000 + k},{2000 + k},{3000 + k},{'Pass' if k else 'Failed'},1,2"
        for k in range(9)
    ]
    log = read("\n".join([titles, *lines]), "t.csv")
    assert log.column("job_id").tolist() == list(range(70, 79))
    assert rows(log, "allocated_procs", "nodes", "gpus")[:2] == [(1, 1, 8), (2, 2, 16)]
    assert log.column("status").tolist() == [0] + [1] * 8
    assert any(line.startswith("not used: ") and "cores_hint" in line and "mem_hint" in line for line in log.reading)


@pytest.mark.parametrize(
    ("title", "value", "expected"),
    [
        ("mem_gb", "2", 2048),
        ("Memory (MB)", "2048", 2048),
        ("memory_mib", "2048.0", 2048),
        ("req_mem_kb", "1024", 1),
        ("mem_bytes", "1048576", 1),
    ],
)
def test_guess__memory_in_the_unit_of_its_title(title, value, expected, read):
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},{k},{value}" for k in range(1, 6)]
    log = read("\n".join([f"id,submit,start,end,ncpus,{title}", *lines]))
    assert log.column("mem_mb").tolist() == [expected] * 5
    assert "requested" not in log.columns


@pytest.mark.parametrize("title", ["limit_mb", "req_mem_total"])
def test_guess__memory_of_a_request_is_no_duration_and_not_what_was_used(title, read):
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},{k},4000" for k in range(1, 6)]
    log = read("\n".join([f"id,submit,start,end,ncpus,{title}", *lines]))
    assert not {"requested", "memory"} & log.columns.keys()
    assert f"not used: {title}" in log.reading


def test_layouts__name_requests_and_states_that_they_do_not_use(read):
    titles = "id_job,time_submit,time_start,time_end,timelimit,tres_alloc,cpus_req,id_user,state,mem_req,gres_used,priority,exit_code"
    lines = [f'{k},{1000 + k},{2000 + k},{3000 + k},60,"1=4,2=16000,4=1,1002={k}",4,7,3,16,gpu:2,100,0' for k in range(1, 6)]
    log = read("\n".join([titles, *lines]), "t.csv")
    assert log.reading[0].startswith("the layout mit-supercloud")
    assert "not used: mem_req, gres_used, exit_code" in log.reading
    assert rows(log, "gpus", "mem_mb") == [(k, 16_000) for k in range(1, 6)]


@pytest.mark.parametrize("title", ["RUNTIMELIMIT", "Req'd Time", "exec_time", "elapsed_s"])
def test_guess__columns_of_known_titles_whose_values_cannot_be_read_are_named(title, read):
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},{k},as long as it takes" for k in range(1, 6)]
    assert f"not used: {title}" in read("\n".join([f"id,submit,start,end,ncpus,{title}", *lines]), "t.csv").reading


def test_guess__gpus_in_lists_of_resources(read):
    lines = [f'{k},{1000 + k},{2000 + k},{3000 + k},{4 + k},"cpu=4,gres/gpu={k},mem={k}000M,node=1"' for k in range(1, 6)]
    log = read("\n".join(["id,submit,start,end,ncpus,req_tres", *lines]), "t.csv")
    assert rows(log, "gpus", "mem_mb") == [(k, 1000 * k) for k in range(1, 6)]


ENDED = [
    ("ann", f"{DAY} 08:00:00", f"{DAY} 08:05:00", f"{DAY} 09:05:00", 3600, "ok"),
    ("bob", f"{DAY} 08:01:00", "", f"{DAY} 08:03:00", 0, "failed"),
    ("bob", f"{DAY} 08:02:00", "None", f"{DAY} 08:04:00", 0, "node failure"),
    ("eve", f"{DAY} 08:03:00", "1970-01-01 00:00:00", f"{DAY} 08:07:00", 0, "failed"),
    ("eve", f"{DAY} 08:04:00", "0", f"{DAY} 08:07:00", 0, "deadline"),
    ("ann", f"{DAY} 08:06:00", f"{DAY} 08:07:00", f"{DAY} 08:07:00", 0, "failed"),
    ("ann", f"{DAY} 08:07:00", "", f"{DAY} 08:08:00", 0, "cancelled"),
]


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("elapsed", [True, False])
@pytest.mark.parametrize("mark", [" ", "T"])
def test_jobs_that_ended_without_a_start__are_dropped(sign, elapsed, mark, read):
    titles = ["user", "submitted", "started", "finished", *(["seconds run"] if elapsed else []), "cores", "outcome"]
    lines = [[user, *times, *([str(spent)] if elapsed else []), "4", word] for user, *times, spent, word in ENDED]
    text = "\n".join(sign.join(line) for line in [titles, *lines]).replace(f"{DAY} ", DAY + mark) + "\n"
    log = read(text.replace("seconds run", "runtime"))
    assert rows(log, "wait", "runtime", "status") == [(300, 3600, 1), (60, 0, 0), (-1, 0, 5)]
    assert log.dropped == {"never_started": 4}
    assert len(log.to_workload(procs=8)) == 2


def test_oar__ends_usually_as_terminated_and_has_states_of_its_own(read):
    times = [(60, 960), (60, 960), (0, 99), (60, 0), (0, 0), (0, 0), (60, 0)]
    states = ["Terminated", "Error", "Error", "Running", "Waiting", "Hold", "Finishing"]
    jobs = {
        str(number): {
            **{"Job_Id": number, "owner": "ann", "state": state, "submissionTime": 1_772_445_600 + number, "walltime": 3600},
            **{"startTime": start and 1_772_445_600 + start, "stopTime": end and 1_772_445_600 + end, "assigned_resources": [1, 2]},
        }
        for number, (state, (start, end)) in enumerate(zip(states, times, strict=True), 1)
    }
    log = read(json.dumps(jobs), "oar.json")
    assert rows(log, "job_id", "runtime", "allocated_procs", "requested", "status") == [(1, 900, 2, 3600, 1), (2, 900, 2, 3600, 0)]
    assert log.dropped == {"still_pending": 2, "still_running": 2, "never_started": 1}


@pytest.mark.parametrize("word", ["Terminated", "DONE", "Completed", "finished"])
@pytest.mark.parametrize(
    ("title", "codes"),
    [("exit_code", ["0", "256", "", "-1"]), ("ExitStatus", ["0.0", "1.0", "0.0", "-1"]), ("exitcode", ["0:0", "0:9", "0:0", ""])],
)
def test_states__that_are_complete_are_failures_with_another_exit_code(word, title, codes, read):
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},4,{word},{code}" for k, code in enumerate(codes, 1)]
    text = "\n".join([f"id,submit,start,end,cores,state,{title}", *lines])
    log = read(text)
    assert log.column("status").tolist() == [1, 0, 1, 1]
    assert any(repr(title) in line for line in log.reading)
    assert not any(line.startswith("not used") for line in log.reading)
    objects = [dict(zip(text.split("\n")[0].split(","), line.split(","), strict=True)) for line in lines]
    assert read("\n".join(map(json.dumps, objects)), "t.jsonl").column("status").tolist() == [1, 0, 1, 1]


def test_terminated__is_a_failure_where_other_jobs_completed(read):
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},4,{word}" for k, word in enumerate(["Completed", "Terminated", "Completed"], 1)]
    assert read("\n".join(["id,submit,start,end,cores,state", *lines])).column("status").tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("title", "value", "rule"),
    [("nodes", "two", "unreadable_value"), ("gpus", "many", "unreadable_value"), ("limit", "some", "unreadable_duration")],
)
def test_one_value_that_cannot_be_read__is_unknown_and_the_column_is_kept(title, value, rule, read):
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},{k},{value if k == 2 else 3600}" for k in range(1, 7)]
    log = read("\n".join([f"id,submit,start,end,cores,{title}", *lines]))
    name = "requested" if title == "limit" else title
    assert log.column(name).tolist() == [3600, -1, 3600, 3600, 3600, 3600]
    assert {**log.changed, **log.noticed} == {rule: 1}


@pytest.mark.parametrize("column", range(6))
def test_one_essential_value_that_cannot_be_read__is_a_bad_line_and_not_a_lost_column(column, read):
    lines = [[str(k), str(1_772_445_600 + k), str(1_772_446_600 + k), str(1_772_447_600 + k), "4", "3600"] for k in range(1, 7)]
    lines[3][column] = "x?"
    text = "\n".join(map(",".join, [["id", "submit", "start", "end", "cores", "limit"], *lines]))
    log = read(text, skip_bad_lines=True)
    assert (log.records, len(log.bad_lines)) == ((6, 0) if column in (0, 5) else (5, 1))
    assert len(log.columns) >= 5


def test_wait__that_the_times_tell_may_be_negative_or_unreadable(read):
    waits = ["-0.000000", "1.5", "-3", "later", "4"]
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},4,{wait}" for k, wait in enumerate(waits, 1)]
    log = read("\n".join(["id,submit,start,end,cores,wait", *lines]))
    assert log.column("wait").tolist() == [1000] * 5
    assert log.changed == {"unreadable_duration": 2}


@pytest.mark.parametrize(("nodes", "expected"), [([1, 3, 2], [1, 3, 2]), ([2, 2, 2], [64, 64, 64])])
def test_processors_that_never_differ__are_those_of_a_node_where_the_nodes_differ(nodes, expected, read):
    lines = [f"{k},{1000 + k},{2000 + k},{3000 + k},64,{count}" for k, count in enumerate(nodes, 1)]
    log = read("\n".join(["id,submit,start,end,cores,nodes", *lines]))
    assert log.column("allocated_procs").tolist() == expected
    assert any(line.startswith("not used: 'cores'") for line in log.reading) == (expected != [64] * 3)


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        ("a,b,c\n1,x,2\n2,y,3\n", ["", "", ""]),
        ("job,submit,start,end\n1,1000,2000,3000\n2,1001,2001,3001\n", ["job_id", "submit", "start", "end"]),
        (
            "Job ID,Submit,Start,Elapsed,NCPUS\n1,1000,2000,11:30,4\n2,1001,2001,12:30,4\n",
            ["job_id", "submit", "start", "runtime", "allocated_procs"],
        ),
    ],
)
def test_info__shows_the_columns_of_a_table_that_is_not_recognised(text, meanings, tmp_path, capsys):
    (tmp_path / "t.csv").write_text(text)
    status, out, err = call(capsys, "info", tmp_path / "t.csv", "--json")
    assert (status, [column["meaning"] for column in json.loads(out)["columns"]]) == (1, meanings)
    assert err.count("\n") == 1


@pytest.mark.parametrize("title", ["job_walltime", "slurm_time_limit", "JobTimeLimit", "wall_limit", "oar_job_walltime", "job_walltime_s"])
def test_guess__titles_may_begin_with_the_system_or_the_word_job(title, read):
    rows = "".join(f"{k},{100 * k},{100 * k + 50},{100 * k + 350},4,{3600 * k}\n" for k in range(1, 5))
    assert read(f"job_id,submit,start,end,cpus,{title}\n{rows}").column("requested").tolist() == [3600, 7200, 10800, 14400]


def test_guess__a_walltime_that_is_the_runtime_is_no_request(read):
    rows = "".join(f"{k},{100 * k},{100 * k + 50},{100 * k + 50 + 60 * k},4,{60 * k}\n" for k in range(1, 5))
    assert "requested" not in read(f"job_id,submit,start,end,cpus,job_walltime\n{rows}").columns


@pytest.mark.parametrize("sign", ["|", ","])
def test_nul_bytes__change_texts_and_make_numbers_unreadable(sign, read):
    titles = "JobIDRaw|User|State|Submit|Start|End|ElapsedRaw|Timelimit|AllocCPUS\n"
    table = titles + "".join(f"{k}|a|COMPLETED|{DAY}T10:00:00|{DAY}T10:01:00|{DAY}T11:01:00|3600|02:00:00|4\n" for k in range(1, 6))
    log = read(table.replace("3|a", "3|\0").replace("5|a|COMPLETED|2", "5|a|COMPLETED|\0").replace("|", sign), skip_bad_lines=True)
    assert log.column("job_id").tolist() == [1, 2, 3, 4]
    assert ([bad.line for bad in log.bad_lines], dict(log.dropped), dict(log.changed)["not_utf8"]) == ([6], {}, 2)


def test_guess__quoted_decimal_commas_in_a_column_where_all_numbers_have_them(read):
    lines = [f'{k},{1000 + k},{2000 + k},{3000 + k},{k},"{k % 4},5","1,2{k}"' for k in range(1, 9)]
    log = read("\n".join(["id,submit,start,end,ncpus,walltime_hours,mem_gb", *lines]))
    assert log.column("requested").tolist() == [3600 * (k % 4) + 1800 for k in range(1, 9)]
    assert log.column("mem_mb").tolist() == [1024 * float(f"1.2{k}") for k in range(1, 9)]


@pytest.mark.parametrize("texts", [["1,200", "2,400"], ["1,5", "2"], ["1,5", "1.5"], ["1,5", "1,200.5"]])
def test_guess__other_commas_are_as_before(texts, read):
    lines = [f'{k},{1000 + k},{2000 + k},{3000 + k},{k},"{texts[k % 2]}"' for k in range(1, 9)]
    log = read("\n".join(["id,submit,start,end,ncpus,walltime", *lines]))
    expected = {"1,200": [2400, 1200], "1.5": [1.5, -1], "1,200.5": [1200.5, -1], "2": [2, -1]}
    assert log.column("requested").tolist() == (expected.get(texts[0]) or expected[texts[1]]) * 4


def test_guess__a_limit_in_milliseconds_like_the_times(read):
    lines = [
        f"{k},{1_700_000_000_000 + k * 1000},{1_700_000_100_000},{1_700_000_100_000 + 500_000 * k},{k},{3_600_000}" for k in range(1, 7)
    ]
    log = read("\n".join(["id,submit,start,end,ncpus,timelimit", *lines]))
    assert log.column("requested").tolist() == [3600] * 6
    assert any("milliseconds" in line for line in log.reading if line.startswith("requested"))
    lines = [line.replace("3600000", "3600") for line in lines]
    assert read("\n".join(["id,submit,start,end,ncpus,timelimit", *lines])).column("requested").tolist() == [3600] * 6
