"""Accounting records of batch systems: the same jobs in every form, and the odd records of each system with their right values."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.accounting_records import (
    BEGIN,
    FORMS,
    class_ads,
    condor,
    fifty_jobs,
    grid_engine,
    grid_engine_rows,
    lsf,
    pbs_record,
    pbs_rows,
    qstat,
    torque,
)
from tests.cli import call
from walltime.logs import read_log

TABLE = json.loads((Path(__file__).parents[3] / "docs/generators/records.json").read_text())
ONE = (7, BEGIN, BEGIN + 60, BEGIN + 960, 1, 4, 0, 3600, True)


@pytest.fixture
def read(tmp_path):
    def read(text, name="log", **options):
        (tmp_path / name).write_text(text)
        return read_log(tmp_path / name, **options)

    return read


def rows(log, *names):
    unknown = [-1] * log.records
    return list(zip(*(log.column(name).tolist() if name in log.columns else unknown for name in names), strict=True))


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("container", TABLE["containers"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_fifty_jobs__are_the_same_in_every_form(container, line_end, tmp_path):
    jobs, contents = fifty_jobs(), TABLE["containers"][container]
    (tmp_path / "log").write_bytes(FORMS[container](jobs).replace("\n", line_end).encode())
    log = read_log(tmp_path / "log", time_zone="UTC")
    numbers, submit, start, end, nodes, each, gpus, limit, done = (np.array(values) for values in zip(*jobs, strict=True))
    assert log.column("job_id").tolist() == numbers.tolist()
    waits = [-1] * 50 if "no starts" in contents["times"] else (start - submit).tolist()
    assert rows(log, "submit", "wait", "runtime") == list(zip((submit - submit[0]).tolist(), waits, (end - start).tolist(), strict=True))
    assert log.to_workload(procs=100).procs.tolist() == (nodes * each).tolist()
    values = {"gpus": nodes * gpus, "requested": limit, "status": done.astype(int), "mem_mb": nodes * 2048}
    known = {name for name in values if name in log.columns and log.column(name).max() > 0}
    assert {name for name in values if name in contents} == known
    for name in known:
        assert np.maximum(log.column(name), 0).tolist() == values[name].tolist(), name
    assert not log.changed


def test_pbs__runs_that_were_put_back_are_jobs_of_their_own(read):
    again = (7, BEGIN, BEGIN + 1160, BEGIN + 1760, 1, 4, 0, 3600, True)
    resources = "exec_host=n1/0*4 Resource_List.ncpus=4"
    log = read(pbs_record(ONE, resources, "R") + pbs_record(again, resources))
    assert rows(log, "submit", "wait", "runtime", "status") == [(0, 60, 900, 0), (960, 200, 600, 1)]
    assert log.changed["submitted_again"] == 1


@pytest.mark.parametrize(
    ("text", "limit"),
    [("90", 90), ("90:00", 5400), ("2:00:00:00", 172_800), ("01:00:00.5", 3600), ('"02:00:00"', 7200), ("-1", -1), ("00:00:00", -1)],
)
def test_pbs__limits_in_every_form(text, limit, read):
    log = read(pbs_record(ONE, "Resource_List.ncpus=4").replace("walltime=01:00:00", f"walltime={text}"))
    assert (rows(log, "requested"), dict(log.changed)) == ([(limit,)], {})


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("walltime=01:00:00", "walltime=soon", "unreadable_duration"),
        ("walltime=01:00:00", "walltime=1:0:0:0:0", "unreadable_duration"),
        ("walltime=01:00:00", "walltime=UNLIMITED", "unlimited"),
        ("Exit_status=0", "Exit_status=ok", "unreadable_value"),
        ("resources_used.walltime=", "resources_used.cput=x resources_used.walltime=", "unreadable_value"),
        ("session=1", "run_count=two", "unreadable_value"),
        ("session=1", "resources_used.mem=much", "unreadable_value"),
        ("session=1", "Resource_List.nodect=1:ppn=4:gpu=2:reqmem=64:gpu", None),
    ],
)
def test_pbs__a_value_that_cannot_be_read_costs_no_job(old, new, rule, read):
    text = pbs_record(ONE, "Resource_List.ncpus=4")
    assert old in text
    log = read(text.replace(old, new))
    assert rows(log, "wait", "runtime", "requested_procs") == [(60, 900, 4)]
    assert {**log.changed, **log.noticed} == ({rule: 1} if rule else {})


@pytest.mark.parametrize(
    ("text", "kilobytes"),
    [("8gb", 2 * 1024**2), ("1.5gb", 393_216), ("10.00M", 2560), ("4194304", 1024), ("512mw", 1024**2), ("8192kb", 2048)],
)
def test_pbs__memory_in_every_unit(text, kilobytes, read):
    record = pbs_record(ONE, f"Resource_List.ncpus=4 resources_used.mem={text}")
    log = read(record.replace("Resource_List.mem=2048mb", f"Resource_List.mem={text}"))
    assert rows(log, "memory", "requested_memory") == [(kilobytes, kilobytes)]


def test_pbs__jobs_that_never_started_have_a_start_of_0(read):
    record = pbs_record(ONE, "Resource_List.ncpus=4")
    never = record.replace(f"start={ONE[2]}", "start=0").replace(f"end={ONE[3]}", "end=0").replace("7.srv", "8.srv")
    log = read(never + record)
    assert (rows(log, "job_id", "submit"), log.dropped) == ([(7, 0)], {"never_started": 1})


def test_pbs__phases_of_a_job_are_not_jobs_and_equal_records_are_one(read):
    record = pbs_record(ONE, "Resource_List.ncpus=4")
    log = read(pbs_record(ONE, "Resource_List.ncpus=4", "e") + pbs_record(ONE, "Resource_List.ncpus=4", "u") + record + record)
    assert (log.records, log.dropped) == (1, {"other_event": 2, "repeated_record": 1})


def test_qstat__jobs_that_have_not_ended_and_arrays(read):
    ended, running, queued, array, idle = (qstat((number, *ONE[1:])) for number in (1, 2, 3, 4, 5))
    running |= {"job_state": "R", "obittime": ""}
    del idle["stime"], idle["obittime"]
    jobs = {"1.srv": ended, "2.srv": running, "3.srv": queued | {"job_state": "Q"}, "4[].srv": array, "4[2].srv": array, "5.srv": idle}
    log = read(json.dumps({"pbs_version": "22", "Jobs": jobs}), time_zone="Europe/Stockholm")
    assert rows(log, "job_id", "array_task", "wait", "runtime", "status") == [(1, -1, 60, 900, 1), (-1, 2, 60, 900, 1)]
    assert log.dropped == {"still_running": 1, "still_pending": 1, "array_summary": 1, "never_started": 1}
    assert log.header.unix_start_time == BEGIN - 3600
    assert read(json.dumps({"pbs_version": "22", "Jobs": jobs})).noticed["zone_unknown"] == 2


@pytest.mark.parametrize("written", [str, float, lambda time: f"{datetime.fromtimestamp(int(time), UTC):%Y-%m-%d %H:%M:%S}"])
def test_pbs__tables_have_times_in_every_form(written, tmp_path):
    rows_of_jobs = [
        row | {name: written(row[name]) for name in ("ctime", "qtime", "etime", "start", "end")} for row in pbs_rows(fifty_jobs())
    ]
    pl.DataFrame(rows_of_jobs).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.acct").write_text(FORMS["OpenPBS, PBS Professional"](fifty_jobs()))
    table, text = read_log(tmp_path / "t.parquet"), read_log(tmp_path / "t.acct")
    names = ("job_id", "submit", "wait", "runtime", "allocated_procs", "gpus", "requested", "status", "mem_mb")
    assert (table.format, rows(table, *names)) == ("pbs", rows(text, *names))


def test_torque__runs_that_the_server_aborted_end_with_their_record(read):
    started = torque(ONE).partition(" session=")[0].replace(";E;", ";S;").replace("10:16:00", "10:01:00") + "\n"
    log = read(started + "03/02/2026 10:05:00;A;7.srv;\n" + torque((8, *ONE[1:])))
    assert rows(log, "job_id", "wait", "runtime", "status") == [(7, 60, 240, 0), (8, 60, 900, 1)]


@pytest.mark.parametrize(("identity", "task"), [("7-3.srv", 3), ("7[3].srv", 3), ("7[12]", 12)])
def test_torque__tasks_of_arrays_in_both_forms(identity, task, read):
    log = read(pbs_record(ONE, "Resource_List.ncpus=4").replace("7.srv", identity))
    assert rows(log, "job_id", "array_job", "array_task") == [(-1, 7, task)]


def test_torque__requeued_runs_have_only_a_time(read):
    again = (7, BEGIN, BEGIN + 1160, BEGIN + 1760, 1, 4, 0, 3600, True)
    started = torque(ONE).partition(" session=")[0].replace(";E;", ";S;").replace("10:16:00", "10:01:00") + "\n"
    log = read(started + "03/02/2026 10:16:00;R;7.srv;\n" + torque(again))
    assert rows(log, "submit", "wait", "runtime", "allocated_procs", "status") == [(0, 60, 900, 4, 0), (960, 200, 600, 4, 1)]
    log = read(started + started.replace("10:01:00", "10:19:20") + torque(again))
    assert (log.records, log.noticed["lost_run"]) == (1, 1)


@pytest.mark.parametrize(
    ("resources", "procs", "nodes", "gpus"),
    [
        ("exec_host=login2/0 Resource_List.mppdepth=2 Resource_List.mppnppn=12 Resource_List.mppwidth=240", 480, 20, -1),
        ("exec_host=nid30/0 Resource_List.size=2048", 2048, -1, -1),
        ("exec_host=login1/0 Resource_List.procs=64 Resource_List.neednodes=64", 64, -1, -1),
        (
            "exec_vnode=(login:ncpus=1) Resource_List.mppnppn=2 Resource_List.mppwidth=64 Resource_List.ncpus=1 Resource_List.nodect=1",
            64,
            32,
            -1,
        ),
        ("Resource_List.nodes=1:ppn=28:gpus=2:default Resource_List.nodect=1", 28, 1, 2),
        ("exec_host=n7/0-27 Resource_List.nodes=1:ppn=28 Resource_List.gpu=2", 28, -1, 2),
        ("exec_host=n7/0-27 Resource_List.nodect=1:ppn=24:gpu=4:gpu", 28, 1, 4),
        ("exec_host=login1/0 Resource_List.nodes=64:ppn=16 Resource_List.nodect=64", 1024, 64, -1),
        ("exec_host=login1/0 Resource_List.select=4:ncpus=24:vntype=cray_compute Resource_List.ncpus=96", 96, -1, -1),
        ("Resource_List.nodes=2:ib:ppn=8:gpus=1:exclusive_process+1:big:ppn=1 Resource_List.nodect=3", 17, 3, 2),
        ("exec_host=n1/0,2-3+n2/5 Resource_List.nodes=1:ppn=3+1:ppn=1 Resource_List.gres=gpu:2", 4, -1, 2),
        ("exec_vnode=(n1[0]:ncpus=4:mem=2gb+n1[1]:ncpus=4:ngpus=1)+(n2[0]:ncpus=8) Resource_List.select=1:ncpus=8+1:ncpus=8", 16, -1, 1),
        ("Resource_List.select=2:ncpus=8:ngpus=1+1:ncpus=4 Resource_List.nodect=3", 20, 3, 2),
        ("exec_host=n7/0-3+n8/0-3 exec_gpus=n7-gpu/0+n7-gpu/1+n8-gpu/0+n8-gpu/1 Resource_List.nodes=2:ppn=4:gpus=2", 8, -1, 4),
        ("exec_vnode=(n1:ncpus=4:ngpus=4)+(n2:ncpus=4:ngpus=4) Resource_List.select=2:ncpus=4:ngpus=4:gpu_type=a", 8, -1, 8),
    ],
)
def test_pbs__sizes_of_every_kind(resources, procs, nodes, gpus, read):
    log = read(pbs_record(ONE, resources))
    assert log.to_workload(procs=4096).procs.tolist() == [procs]
    assert rows(log, "nodes", "gpus")[0] == (nodes, gpus)


def test_lsf__limits_and_gpus_are_read_and_a_start_before_the_submission_is_moved(read):
    early = (8, BEGIN + 100, BEGIN + 70, BEGIN + 700, 2, 2, 2, 7200, True)
    log = read(lsf(ONE) + lsf(early))
    assert rows(log, "submit", "wait", "requested", "gpus") == [(0, 60, 3600, -1), (70, 0, 7200, 4)]
    assert log.changed == {"start_before_submit": 1}
    log = read(lsf(early).replace(" 0 7200 0 0 ", " 0 7201 0 0 ").replace("num=2:mode", "num=1/task:mode"))
    assert rows(log, "requested", "gpus") == [(-1, 4)]
    assert read(lsf(early).replace("1 1042", '2 1086 "-1 -1 -1 -1 -1 -1 -1 -1 -1 1800 -1 -1 " 1042')).column("requested").tolist() == [1800]


@pytest.mark.parametrize(
    ("old", "new", "gpus"),
    [
        ("num=2:mode=shared", "mode=exclusive_process:num=1:j_exclusive=yes", 2),
        ("num=2:mode=shared", "num=3/host", 6),
        ("num=2:mode=shared", "num=1/task", 8),
        ('1 1042 "num=2:mode=shared"', "0", -1),
        ('1 1042 "num=2:mode=shared" 0 3600 0 0 "select[type==any] rusage[mem=100]"', '0 0 3600 0 0 "rusage[ngpus_physical=2.00]"', 4),
        ('1 1042 "num=2:mode=shared" 0 3600 0 0 "select[type==any] rusage[mem=100]"', '0 0 3600 0 0 "rusage[ngpus=1/task]"', 8),
    ],
)
def test_lsf__gpus_of_hosts_and_of_tasks(old, new, gpus, read):
    text = lsf((7, BEGIN, BEGIN + 60, BEGIN + 960, 2, 4, 2, 3600, True))
    assert old in text
    assert rows(read(text.replace(old, new)), "gpus", "requested") == [(gpus, 3600)]


def test_lsf__runs_that_were_put_back_and_equal_records(read):
    again = (7, BEGIN, BEGIN + 1160, BEGIN + 1760, 1, 4, 0, 3600, True)
    log = read("#a comment\n" + lsf(ONE) + lsf(again) + lsf(ONE))
    assert rows(log, "submit", "wait") == [(0, 60), (960, 200)]
    assert (log.dropped, log.changed) == ({"repeated_record": 1}, {"submitted_again": 1})


def failed(code, **values):
    start, end = values.get("start", ONE[2]), values.get("end", ONE[3])
    return grid_engine((*ONE[:2], start, end, *ONE[4:])).replace(f":{end}:0:0:", f":{end}:{code}:{values.get('status', 0)}:")


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (failed(0), [(60, 900, 1)]),
        (failed(26, start=0, end=0), []),
        (failed(21, end=ONE[2]), []),
        (failed(100, status=137), [(60, 900, 0)]),
        (failed(37, status=137), [(60, 900, 0)]),
        (failed(25), [(60, 900, 0)]),
        (failed(0, status=1), [(60, 900, 0)]),
    ],
)
def test_grid_engine__failed_says_whether_a_job_ran(record, expected, read):
    other = grid_engine((9, BEGIN, BEGIN, BEGIN + 5, 1, 1, 0, 60, True))
    log = read(record + other)
    assert rows(log, "wait", "runtime", "status") == [*expected, (0, 5, 1)]
    assert log.dropped == ({} if expected else {"never_started": 1})


def test_grid_engine__rescheduled_runs_tasks_and_parts_of_parallel_jobs(read):
    again = grid_engine((7, BEGIN, BEGIN + 1160, BEGIN + 1760, 1, 4, 0, 3600, True))
    task = grid_engine(ONE).replace(":4:0:1.5:", ":4:3:1.5:")
    part = grid_engine(ONE).replace(":0.0:NONE:1.2G", ":0.0:1.n2:1.2G")
    log = read(failed(25) + again + task + part)
    assert rows(log, "job_id", "array_job", "array_task", "submit", "wait") == [
        (7, -1, -1, 0, 60),
        (7, -1, -1, 960, 200),
        (-1, 7, 3, 0, 60),
    ]
    assert (log.dropped, log.changed) == ({"step": 1}, {"submitted_again": 1})


@pytest.mark.parametrize(
    ("request_", "limit", "soft"),
    [("h_rt=24:0:0", 86_400, -1), ("h_rt=3600", 3600, -1), ("cpu=24:00:00", -1, -1), ("s_rt=3000,h_rt=1:30:00", 5400, 3000)],
)
def test_grid_engine__requests_may_contain_colons(request_, limit, soft, read):
    log = read(grid_engine(ONE).replace("h_rt=01:00:00", request_))
    assert rows(log, "requested", "soft_walltime") == [(limit, soft)]
    assert not log.bad_lines
    other = (8, *ONE[1:])
    unlimited = read(grid_engine(ONE).replace("h_rt=01:00:00", "h_rt=INFINITY") + grid_engine(other).replace("h_rt=01:00:00", "h_rt=soon"))
    assert (unlimited.changed["unlimited"], unlimited.changed["unreadable_duration"]) == (1, 1)


@pytest.mark.parametrize("text", ["1..5", "1e", "1-2", "1e+5e+5", "9" * 400])
def test_grid_engine__processor_time_that_is_no_number_is_unknown(text, read):
    log = read(grid_engine(ONE).replace(":4:0:1.5:", f":4:0:{text}:"))
    assert rows(log, "wait", "runtime", "cpu_time") == [(60, 900, -1)]


@pytest.mark.parametrize("unit", [1, 1000, 10**6])
def test_grid_engine__json_lines_in_every_unit(unit, read):
    jobs = grid_engine_rows([(number, *ONE[1:]) for number in (1, 2, 3, 4, 5)], unit)
    jobs[1] |= {"failed": 26, "start_time": 0, "end_time": 0}
    jobs[2] |= {"failed": 100, "exit_status": 137}
    jobs[3] |= {"task_number": 7}
    jobs[4] |= {"pe_taskid": "1.n2"}
    log = read("\n".join(map(json.dumps, jobs)), "accounting.jsonl")
    assert (log.format, log.dropped) == ("sge", {"never_started": 1, "step": 1})
    assert rows(log, "job_id", "array_task", "wait", "runtime", "requested", "status", "exit_code") == [
        (1, -1, 60, 900, 3600, 1, 0),
        (3, -1, 60, 900, 3600, 0, 137),
        (-1, 7, 60, 900, 3600, 1, 0),
    ]


def test_htcondor__evicted_removed_and_waiting_jobs(read):
    ads = [condor((number, *ONE[1:])) for number in range(1, 8)]
    ads[0] |= {"JobCurrentStartDate": BEGIN + 5000, "CompletionDate": BEGIN + 6000, "RemoteWallClockTime": 1800.0}
    ads[0] |= {"LastRemoteWallClockTime": 1000.0, "NumJobStarts": 2}
    ads[1] |= {"JobStatus": 3, "CompletionDate": 0, "EnteredCurrentStatus": BEGIN + 500, "RemoteWallClockTime": 440.0, "ExitCode": None}
    ads[2] |= {"JobStatus": 3, "JobStartDate": None, "JobCurrentStartDate": None, "NumJobStarts": 0, "RemoteWallClockTime": 0.0}
    ads[3] |= {"JobStatus": 1}
    ads[4] |= {"JobStatus": 2}
    ads[5] |= {"CompletionDate": BEGIN + 2000}
    ads[6] |= {"ProcId": 4, "ExitCode": None}
    log = read(json.dumps([{key: value for key, value in ad.items() if value is not None} for ad in ads]))
    assert rows(log, "job_id", "array_task", "submit", "wait", "runtime", "status") == [
        (1, -1, 0, 60, 800, 0),
        (1, -1, 860, 4140, 1000, 1),
        (2, -1, 0, 60, 440, 5),
        (6, -1, 0, 60, 900, 1),
        (-1, 4, 0, 60, 900, 1),
    ]
    assert log.dropped == {"never_started": 1, "still_pending": 1, "still_running": 1}
    assert (log.changed, log.noticed) == ({"submitted_again": 1}, {"elapsed_differs": 1})


def test_htcondor__signals(read):
    ads = [condor((number, *ONE[1:])) for number in (1, 2, 3)]
    ads[0] |= {"ExitBySignal": True, "ExitSignal": 9}
    ads[1] |= {"ExitBySignal": False}
    log = read(json.dumps([{key: value for key, value in ad.items() if value is not None} for ad in ads]))
    assert rows(log, "status", "exit_signal") == [(0, 9), (1, 0), (1, -1)]


def in_xml(name, value):
    """An attribute as in `condor_history -xml`, and a list."""
    tag, text = {int: ("i", value), float: ("r", f"{value:.15E}" if isinstance(value, float) else "")}.get(type(value), ("s", value))
    return f'    <a n="{name}"><{tag}>{text}</{tag}></a>\n    <a n="Of{name}"><l><un/><b v="t"/></l></a>\n'


@pytest.mark.parametrize("form", ["lines", "list", "texts", "lower", "one ad", "csv", "blanks", "parquet", "xml", "new", "new in a list"])
def test_htcondor__every_form_of_ads(form, read, tmp_path):
    ads = [condor((number, *ONE[1:])) for number in (1, 2)]
    texts = [{name: str(value) for name, value in ad.items()} for ad in ads]
    if form == "parquet":
        pl.DataFrame(ads).write_parquet(tmp_path / "log")
        log = read_log(tmp_path / "log")
    else:
        written = {
            "lines": "\n".join(map(json.dumps, ads)),
            "list": json.dumps(ads),
            "texts": json.dumps(texts),
            "lower": json.dumps([{name.lower(): value for name, value in ad.items()} for ad in ads]),
            "one ad": "".join(f"{name} = {json.dumps(value)}\n" for name, value in ads[0].items()),
            "csv": "\n".join([",".join(ads[0]), *(",".join(ad.values()) for ad in texts)]) + "\n",
            "xml": '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
            + "".join(f"<c>\n{''.join(map(in_xml, ad, ad.values()))}</c>\n" for ad in ads)
            + "</classads>\n",
            "blanks": "\n".join([" ".join(ads[0]), *("  ".join(ad.values()) for ad in texts)]) + "\n",
        }
        new = "\n".join(
            f"[ {' '.join(f'{name} = {json.dumps(value)};' for name, value in ad.items())} L = {{ 1; 2 }}; M = [ a = 1 ] ]" for ad in ads
        )
        written |= {"new": new.replace("; ", ";\n  "), "new in a list": "{" + new.replace("]\n[", "],\n[") + "}"}
        log = read(written[form])
    expected = (60, 900, 4, 3600, 1)
    assert log.format == "htcondor"
    assert set(rows(log, "wait", "runtime", "allocated_procs", "requested", "status")) == {expected}


def test_htcondor__new_ads_with_texts_that_hold_signs_of_their_own(read):
    ad = " ".join(f"{name} = {json.dumps(value)};" for name, value in (condor(ONE) | {"Owner": 'a;n]"n'}).items())
    log = read(f"[ {ad[:-1]} ]\n")
    assert log.dropped == {}
    assert rows(log, "runtime", "allocated_procs") == [(900, 4)]


def test_htcondor__universes_and_equal_ads(read):
    ads = [condor((number, *ONE[1:])) for number in range(1, 4)]
    ads[0] |= {"JobUniverse": 7}
    ads[1] |= {"JobUniverse": 11, "CurrentHosts": 3}
    log = read(json.dumps([*ads, ads[2]]))
    assert rows(log, "job_id", "allocated_procs") == [(2, 12), (3, 4)]
    assert log.dropped == {"submit_host": 1, "repeated_record": 1}


def test_htcondor__history_file_has_marks_between_jobs(read):
    text = class_ads(fifty_jobs()).replace("\n\n", '\n*** Offset = 0 ClusterId = 1 Owner = "ann" CompletionDate = 5\n')
    assert (read(text).format, read(text).records) == ("htcondor", 50)


def test_batsim__workload_with_other_keys_names_before_numbers_and_a_size(read):
    profiles = {"d": {"type": "delay", "delay": 50}, "c": {"type": "parallel", "cpu": 1e9, "com": 0}}
    profiles["s"] = {"type": "composed", "repeat": 2, "seq": ["d", "d"]}
    jobs = [("w0!1", 10.5, 4, "d", 100), ("w0!2", 12, 16, "d", -1), ("w0!3", 13, 2, "s", 300), ("4", 14, 1, "c", 60)]
    listed = [dict(zip(("id", "subtime", "res", "profile", "walltime"), job, strict=True)) for job in jobs]
    log = read(json.dumps({"description": "slurm and others", "date": "x", "nb_res": 8, "jobs": listed, "profiles": profiles}, indent=1))
    assert rows(log, "job_id", "submit", "requested", "runtime") == [
        (1, 0.5, 100, 50),
        (2, 2, -1, 50),
        (3, 3, 300, 200),
        (4, 4, 60, -1),
    ]
    found = log.to_workload()
    assert (found.machine_procs, found.job_id.tolist(), found.submit.tolist()) == (8, [1, 3], [1, 3])
    assert found.origin.dropped == {"too_wide": 1, "unknown_runtime": 1}
    assert found.origin.changed["rounded_time"] == 1


@pytest.mark.parametrize(("value", "procs"), [("1,024", 1024), ("128.0", 128), ("1e3", 1000), ("  64 nodes", 64)])
def test_swf__sizes_in_the_header_in_other_forms(value, procs, read):
    assert read(f"; MaxProcs: {value}\n1 0 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n", "l.swf").header.machine_procs == procs


def test_info__shows_a_log_with_a_bad_line_that_other_commands_reject(tmp_path, capsys):
    path = tmp_path / "l.swf"
    good = [f"{k} {k} 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1" for k in range(1, 9)]
    path.write_text("; MaxProcs: 8\n" + "\n".join([*good, "9 9 5 -1359980917 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1"]) + "\n")
    status, out, _ = call(capsys, "info", path, "--json")
    found = json.loads(out)
    assert (status, found["jobs"], found["dropped"], found["bad_lines"][0]["line"]) == (0, 8, {"bad_line": 1}, 10)
    assert call(capsys, "convert", path, "--out", tmp_path / "o.csv")[0] == 1


QACCT = """\
==============================================================
qname        long.q
owner        eve
jobname      fit
jobnumber    31
taskid       4
qsub_time    Tue Mar  3 08:00:00 2026
start_time   Tue Mar  3 08:00:30 2026
end_time     Tue Mar  3 08:10:30 2026
slots        2
failed       100 : assumedly after job
exit_status  137                  (Killed)
category     -l h_rt=900
==============================================================
qname        long.q
owner        eve
jobname      lost
jobnumber    32
taskid       undefined
qsub_time    Tue Mar  3 08:00:00 2026
start_time   -/-
end_time     -/-
slots        1
failed       1   : assumedly before job
exit_status  0
"""


def test_grid_engine__qacct_shows_killed_tasks_and_jobs_that_never_started(read):
    log = read(QACCT, time_zone="Europe/Stockholm")
    columns = ("array_job", "array_task", "wait", "runtime", "allocated_procs", "requested", "status", "exit_code")
    assert rows(log, *columns) == [(31, 4, 30, 600, 2, 900, 0, 137)]
    assert log.dropped == {"never_started": 1}
    assert "; UnixStartTime: 1772521200" in log.header_lines


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-n 3 -c 2 --gres=gpu:a100:2", (6, -1, 2, -1, 600)),
        ("-N 2 --ntasks-per-node=4 --mem=1G", (8, 2, 0, 2048, 600)),
        ("--nodes=2 -n 2 --mem-per-cpu=500 --gpus-per-task=1", (2, 2, 2, 1000, 600)),
        ("-n 24 --ntasks-per-node=12 --gpus-per-node=2", (24, 2, 4, -1, 600)),
    ],
)
def test_slurm_simulator__requests_by_any_option(options, expected, read):
    log = read(
        f"-dt 5 -e submit_batch_job | -J jobid_9 -sim-walltime -1 --uid=ann -t 00:10:00 {options} x.sh\n-dt 9 -e cancel_job | jobid_9\n"
    )
    assert rows(log, "allocated_procs", "requested_nodes", "gpus", "mem_mb", "runtime") == [expected]
    assert log.dropped == {"other_event": 1}


def test_slurm_simulator__a_size_that_is_no_number_costs_its_line_only(read):
    good = "-dt 5 -e submit_batch_job | -J a_1 -sim-walltime 9 -n 2 x.sh"
    log = read("\n".join([good, good.replace("-n 2", "-n " + "9" * 21), good.replace("-n 2", "-n two")]), skip_bad_lines=True)
    assert (rows(log, "allocated_procs"), len(log.bad_lines)) == ([(2,)], 2)
