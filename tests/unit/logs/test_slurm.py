"""Slurm's sacct -P: each pitfall of its output, checked by hand, and real outputs of three versions."""

import gzip
import json
import os
import random
import subprocess

import numpy as np
import polars as pl
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.profiles import scaled
from tests.slurm_text import HEADING, ROWS, TEXT, D, job
from walltime.logs import read_log
from walltime.logs.slurm.command_line import command_requests
from walltime.logs.slurm.fields import state_word
from walltime.logs.slurm.records import KINDS, TEXTS
from walltime.slurm.commands.cluster import FIELDS
from walltime.workload.filters import select


@pytest.fixture
def written(tmp_path):
    def write(text, name="jobs.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def log(written):
    return read_log(written(TEXT))


def error_of(path, **options) -> str:
    with pytest.raises(wt.LogError) as caught:
        read_log(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(row: str, **fields) -> str:
    """A row with other values in some fields."""
    names = HEADING.split("|")
    values = row.split("|")
    for name, value in fields.items():
        values[names.index(name)] = value
    return "|".join(values)


def test_counts__every_row_is_a_record_or_counted(log):
    assert dict(log.dropped) == {"step": 2, "still_pending": 1, "still_running": 1, "never_started": 1, "lost_start": 1}
    assert log.records + sum(log.dropped.values()) == len(ROWS)
    assert dict(log.changed) == {"start_from_step": 1, "shrunk_limit": 1, "eligible_later": 2, "unlimited": 1}
    assert dict(log.noticed) == {"requeued": 1, "het_component": 1, "zone_unknown": 11}
    jobs = log.to_workload(procs=16)
    assert dict(jobs.origin.dropped)["cancelled_before_start"] == 1
    assert (len(jobs), jobs.origin.records) == (10, len(ROWS))


def test_plain_job__has_all_its_values(log):
    found = job(log, 101)
    assert {name: found[name] for name in ("submit", "wait", "runtime", "requested", "status")} == {
        "submit": 0, "wait": 5, "runtime": 600, "requested": 3600, "status": 1,
    }  # fmt: skip
    assert (found["allocated_procs"], found["requested_procs"], found["requested_memory"]) == (4, 4, 2 * 1024**2)
    assert (found["user"], found["group"], found["queue"], found["partition"], found["executable"]) == (
        "ann", "bio", "normal", "main", "plain",
    )  # fmt: skip
    assert (found["nodes"], found["gpus"], found["mem_mb"], found["priority"], found["sched_backfill"]) == (1, 2, 8192, 900, 0)
    assert (log.header.unix_start_time, log.header.time_zone) == (1772445600, "UTC")


def test_held_job__waits_from_when_it_was_eligible(log):
    found = job(log, 102)
    assert (found["submit"], found["held"], found["wait"]) == (300, 240, 120)
    assert (found["allocated_procs"], found["requested_procs"], found["nodes"]) == (8, 2, 2)  # it had whole nodes
    assert (found["status"], found["exit_code"], found["requested"], found["sched_backfill"]) == (0, 3, 86_400, 1)


def test_lost_start__is_taken_from_the_batch_step(log):
    found = job(log, 105)
    assert (found["submit"], found["wait"], found["runtime"]) == (240, 10, 140)


@pytest.mark.parametrize(
    ("number", "requested"),
    [(103, 60), (106, 365 * 86_400), (107, 1200)],
    ids=["an overrun is left", "no limit is a year", "a limit that --time-min shrank is the one that was asked for"],
)
def test_requested(log, number, requested):
    assert job(log, number)["requested"] == requested


def test_array_and_heterogeneous_jobs__know_whose_part_they_are(log):
    assert (job(log, 109)["array_job"], job(log, 109)["array_task"]) == (108, 0)
    assert job(log, 111)["het_job"] == 111


def test_requeued_job__is_a_job_for_each_run(log):
    runs = np.flatnonzero(log.column("job_id") == 113)
    assert log.column("runtime")[runs].tolist() == [10, 60]
    assert log.column("submit")[runs].tolist() == [600, 731]
    assert (log.column("submit") + log.column("wait"))[runs].tolist() == [601, 731]
    assert dict(log.to_workload(procs=16).origin.changed)["duplicate_id"] == 1


@pytest.mark.slow
def test_columns__in_any_order_with_others_between_and_any_separator(written, log):
    names = HEADING.split("|")
    order = sorted(range(len(names)), key=lambda k: names[k][::-1])
    for delimiter in ("|", "\x1f", ";", "@@"):
        lines = [
            delimiter.join([*(text.split("|")[k] for k in order), "more"]) for text in (HEADING.replace("JobName", "jobname%30"), *ROWS)
        ]
        again = read_log(written("\n".join(lines)))
        assert (again.dropped, again.changed, again.noticed) == (log.dropped, log.changed, log.noticed)
        assert all(np.array_equal(values, again.columns[name]) for name, values in log.columns.items())
        assert again.names == log.names


def test_heading__with_final_separators_a_byte_order_mark_line_ends_and_repeated(written, log):
    text = "\ufeff" + "\r\n".join([f"{line}|" for line in (HEADING, *ROWS[:9], HEADING, *ROWS[9:])])
    again = read_log(written(text))
    assert all(np.array_equal(values, again.columns[name]) for name, values in log.columns.items())
    assert again.bad_lines == ()


def test_seconds_since_1970__are_times_too(written, log):
    def seconds(text):
        if not text.startswith(D):
            return text
        hours, minutes, rest = map(int, text[len(D) :].split(":"))
        return str(1772409600 + 3600 * hours + 60 * minutes + rest)

    lines = ["|".join(map(seconds, row.split("|"))) for row in ROWS]
    again = read_log(written("\n".join([HEADING, *lines])))
    assert all(np.array_equal(values, again.columns[name]) for name, values in log.columns.items())
    assert dict(again.noticed) == {"requeued": 1, "het_component": 1}  # no zone is needed


def test_raw_fields__are_taken_before_others(written):
    heading = "JobIDRaw|Submit|Start|Elapsed|ElapsedRaw|Timelimit|TimelimitRaw|NCPUS"
    log = read_log(written(f"{heading}\n7|{D}10:00:00|{D}10:00:05|00:00:07|7|00:02:00|2|3\n"))
    assert [log.column(name).tolist() for name in ("job_id", "runtime", "requested", "allocated_procs")] == [[7], [7], [120], [3]]


def test_without_elapsed__the_runtime_is_from_start_to_end(written):
    log = read_log(written(f"JobID|Submit|Start|End|ReqCPUS\n7|{D}10:00:00|{D}10:00:05|{D}10:01:00|3\n"))
    assert (log.column("runtime").tolist(), log.column("requested_procs").tolist()) == ([55], [3])


def test_delimiter_in_a_last_text__leaves_the_other_fields(written):
    log = read_log(written("\n".join([HEADING, changed(ROWS[0], JobName="a|b ä"), ROWS[2]])))
    assert dict(log.noticed)["delimiter_in_text"] == 1
    assert job(log, 101)["executable"] is None  # which of the two texts has the separator cannot be told
    assert (job(log, 101)["requested"], job(log, 102)["executable"]) == (3600, "held")


def test_delimiter_in_the_only_text__is_part_of_it(written):
    heading = "JobID|JobName|Submit|Elapsed|ReqCPUS"
    log = read_log(written(f"{heading}\n7|a|b; rm -rf / |c|{D}10:00:00|00:00:07|3\n"))
    assert (log.names["executable"], log.column("runtime").tolist()) == (("a|b; rm -rf / |c",), [7])


def test_delimiter_in_two_texts__is_told_by_the_fields_between(written):
    heading = "JobID|JobName|Submit|Elapsed|Comment|ReqCPUS"
    log = read_log(written(f"{heading}\n7|a|b|{D}10:00:00|00:00:07|c|d|3\n"))
    assert (log.names["executable"], log.column("submit").tolist(), log.column("requested_procs").tolist()) == (("a|b",), [0], [3])
    assert dict(log.noticed)["delimiter_in_text"] == 1


def test_delimiter_in_a_text__that_looks_like_the_fields_after_it_is_a_bad_line(golden, written):
    heading = "JobID|JobName|Submit|Elapsed|Comment|ReqCPUS"
    text = f"{heading}\n7|a|{D}10:00:00|00:00:07|{D}10:00:00|00:00:07|c|3\n8|a|{D}10:00:00|00:00:07|c|3\n"
    message = error_of(written(text))
    golden("info", message)
    log = read_log(written(text), skip_bad_lines=True)
    assert ([bad.line for bad in log.bad_lines], log.records) == ([2], 1)


def test_line_end_in_a_text__is_part_of_it(written):
    text = "\n".join([HEADING, changed(ROWS[0], SubmitLine="sbatch --wrap 'a\nb\n\nc'"), changed(ROWS[2], JobName="x\ny"), ROWS[3]])
    log = read_log(written(text))
    assert (log.records, dict(log.noticed)["newline_in_text"]) == (3, 2)
    assert job(log, 102)["executable"] == "x\ny"
    assert job(log, 101)["executable"] == "plain"


def test_line_end_in_another_field__is_a_bad_line(golden, written):
    text = "\n".join([HEADING, changed(ROWS[0], User="a\nnn"), ROWS[2]])
    golden("info", error_of(written(text)))
    log = read_log(written(text), skip_bad_lines=True)
    assert ([bad.line for bad in log.bad_lines], log.records) == ([2, 3], 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("JobIDRaw", "1x1"),
        ("Submit", "2026-03-02T25:00:00"),
        ("Start", "yesterday"),
        ("Elapsed", "1:2:3:4:5"),
        ("AllocCPUS", "4X"),
        ("ReqCPUS", "99999999999999999"),
        ("State", "COMPLETE\x1b[31m"),
    ],
)
def test_bad_value__is_one_line_that_names_it(golden, written, field, value):
    path = written("\n".join([HEADING, ROWS[2], changed(ROWS[0], **{field: value})]))
    golden("info", error_of(path))
    log = read_log(path, skip_bad_lines=True)
    golden("info", (log.records, [bad.reason for bad in log.bad_lines]))


@pytest.mark.parametrize(
    "text",
    [
        "JobID|Start|State\n7|x|COMPLETED\n",
        HEADING,
        f"{HEADING}\n{ROWS[10]}\n",
        "JobID  JobName  State \n------ -------- ------\n7 a COMPLETED\n",
    ],
)
def test_log_without_jobs__says_why(golden, written, text):
    golden("info", error_of(written(text)))


def test_latin_1__is_read_and_counted(written):
    log = read_log(written("\n".join([HEADING, changed(ROWS[0], JobName="Köln"), ROWS[2]]).encode("latin-1")))
    assert (dict(log.changed)["not_utf8"], job(log, 101)["executable"]) == (1, "Köln")


def test_daylight_saving__in_stockholm(written):
    """Clocks went back at 03:00 on 2026-10-25 (01:00 UTC), and forward at 02:00 on 2026-03-29."""
    heading = "JobID|Submit|Start|End|ElapsedRaw|ReqCPUS"
    rows = (
        "1|2026-10-25T01:30:00|2026-10-25T02:10:00|2026-10-25T02:20:00|4200|1",  # 70 min: starts before, ends after
        "2|2026-10-25T02:50:00|2026-10-25T02:10:00|2026-10-25T03:10:00|3600|1",  # submitted before, started after
        "3|2026-10-25T02:30:00|2026-10-25T04:00:00|2026-10-25T05:00:00|3600|1",  # submitted at either
        "4|2026-03-29T02:30:00|2026-03-29T04:00:00|2026-03-29T05:00:00|3600|1",  # a time that never was
    )
    log = read_log(written("\n".join([heading, *rows])), time_zone="Europe/Stockholm")
    begin = log.header.unix_start_time
    submit = (log.column("submit") + begin).tolist()
    midnight = 1792886400  # 2026-10-25 00:00 UTC, 02:00 in Stockholm
    assert submit == [midnight - 1800, midnight + 50 * 60, midnight + 30 * 60, 1774747800]  # the last one 01:30 UTC
    assert (log.column("submit") + begin + log.column("wait")).tolist()[:2] == [midnight + 600, midnight + 4200]
    assert dict(log.changed) == {"ambiguous_time": 1, "skipped_time": 1}
    assert log.header.time_zone == "Europe/Stockholm"
    assert "zone_unknown" not in log.noticed


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("sbatch -t 20 --time-min=3 job.sh", 1200),
        ("sbatch --time-min 3 --time=1-2:30 job.sh", 95_400),
        ("srun --parsable -n4 -t 90:30 --time-min=3 x", 5460),
        ("sbatch --time=10 -t 20 --time-min=3 job.sh", 1200),
        ("sbatch -t 20 --time=10 --time-min=3 job.sh", 600),
        ("sbatch --time-min=3 job.sh -t 20", -1),
        ("sbatch --time-min=3 --wrap 'x -t 20'", -1),
        ("sbatch -t 20 job.sh", -1),
        ("", -1),
    ],
)
def test_asked_limit(line, seconds):
    columns, _ = command_requests(pl.Series([line]))
    assert columns["LIMIT"].tolist() == [seconds]


def test_state_word__takes_no_state_for_another():
    assert [state_word(text) for text in ("CANCELLED by 0", "OUT_OF_ME+", "completed", "RE+", "FAILED by 0", "")] == [
        "CANCELLED", "OUT_OF_MEMORY", None, None, None, "",
    ]  # fmt: skip


def test_missing_machine_size__says_how_many_were_busy(golden, written, capsys):
    line = one_line(*call(capsys, "simulate", written(TEXT), "--policy", "easy")).strip()
    golden("info", line)


@pytest.mark.slow
def test_commands__work_on_a_cluster_s_log(golden, written, tmp_path, capsys):
    path = written(TEXT)
    status, out, _ = call(
        capsys, "simulate", path, "--procs", "8", "--policy", "easy", "--by", "users", "--by", "partition", "--by", "queue"
    )
    assert status == 0
    assert all(name in out for name in ("ann", "debug", "long"))
    status, out, _ = call(capsys, "explain", path, "--procs", "8", "--job", "102", "--no-sooner")
    assert status == 0
    golden("explain", out)
    status, out, _ = call(capsys, "compare", path, "--procs", "8", "--gains", "--report", tmp_path / "r.html")
    assert status == 0
    assert not [line for line in out.splitlines() if "user 1" in line or "user 2" in line]
    facts = json.loads(call(capsys, "info", path, "--procs", "8", "--json")[1])
    assert (facts["format"], facts["dropped"]["step"]) == ("slurm", 2)


def test_sacct_command__asks_for_what_the_reader_reads(golden, written, capsys):
    status, out, _ = call(capsys, "slurm", "sacct-command", "--since", "2026-01-01", "--partition", "a b", "--slurm-version", "26.05")
    assert status == 0
    assert out.startswith("TZ=UTC SLURM_TIME_FORMAT=%s sacct --allusers --duplicates --parsable2 --noconvert")
    assert "--allocations" in call(capsys, "slurm", "sacct-command", "--no-steps")[1]
    asked = set(out.split("--format=")[1].split()[0].lower().split(","))
    read = (KINDS.keys() | set(TEXTS)) - {"elapsed", "timelimit", "ncpus", "uid", "allocgres", "reqgres", "consumedenergy"}
    assert asked == read  # all but the other spellings of the same facts
    old = call(capsys, "slurm", "sacct-command", "--slurm-version", "22.05")[1]
    assert ("Restarts" in out, "Restarts" in old, "SubmitLine" in old) == (True, False, True)
    assert "'--partition=a b'" in out
    assert out.strip().endswith("SubmitLine,AdminComment,JobName | gzip > jobs.txt.gz")
    fields = out.split("--format=")[1].split()[0].split(",")
    row = dict.fromkeys(fields, "") | {"JobIDRaw": "7", "JobID": "7", "Submit": "1772445600", "ElapsedRaw": "5", "ReqCPUS": "2"}
    row |= {"Start": "1772445601", "State": "COMPLETED", "JobName": "a\x1fb"}
    log = read_log(written("\x1f".join(fields) + "\n" + "\x1f".join(row.values()) + "\n"))
    assert (log.records, dict(log.noticed)) == (1, {"delimiter_in_text": 1})
    golden("slurm", one_line(*call(capsys, "slurm", "sacct-command", "--since", "$(x)")))


@pytest.mark.parametrize("newer", [(), ("Constraints", "SubmitLine"), ("Constraints", "Licenses", "Restarts", "SubmitLine")])
def test_sacct_command__asks_for_the_fields_that_sacct_has(newer, capsys, tmp_path):
    known = [*FIELDS.split(","), *newer, "AdminComment", "JobName"]
    (tmp_path / "sacct").write_text(
        f"""#!/bin/sh
for word; do
  case $word in
  --helpformat) printf '%-20s%-20s%-20s%s\\n' {" ".join(sorted(known))}; exit ;;
  --format=*) echo "${{word#--format=}}" ;;
  esac
done
"""
    )
    (tmp_path / "sacct").chmod(0o755)
    out = call(capsys, "slurm", "sacct-command")[1]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", out], cwd=tmp_path, env=environment, check=True)
    assert gzip.decompress((tmp_path / "jobs.txt.gz").read_bytes()).decode().split() == [",".join(known)]


def test_filters__take_names(written):
    jobs = read_log(written(TEXT)).to_workload(procs=16)
    assert jobs.job_id[select(jobs, "user='ann'")].tolist() == [101, 105]
    assert jobs.job_id[select(jobs, "partition != \"main\" or executable='no limit'")].tolist() == [103, 106]
    for text, why in (
        ("user='nobody'", ("unknown_name", "user", "'nobody'")),
        ("user>'ann'", ("wrong_comparison", "'>'")),
        ("'ann'='ann'", ("wrong_comparison", "'='")),
    ):
        with raises(wt.PolicyError, *why):
            select(jobs, text)


def test_suggest__takes_names(golden, written, capsys):
    rows = [changed(ROWS[0], JobIDRaw=str(k), JobName="again", User="ann") for k in range(1, 30)]
    path = written("\n".join([HEADING, *rows]))
    status, out, _ = call(capsys, "suggest", path, "--procs", "8", "--user", "ann", "--executable", "again")
    assert status == 0
    golden("suggest", out)
    assert "has no user 'zoe'" in one_line(*call(capsys, "suggest", path, "--procs", "8", "--user", "zoe"))


def number(value):
    return {"set": value is not None, "infinite": False, "number": value or 0}


def json_job(job, state, submit, start, end, **more):
    """A job as `sacct --json` of Slurm 24.11 has it, as far as it is read."""
    return {
        "job_id": job,
        "name": "a job",
        "user": "ann",
        "account": "bio",
        "qos": "normal",
        "partition": "main",
        "state": {"current": state, "reason": "None"},
        "time": {"submission": submit, "eligible": submit, "start": start, "end": end, "elapsed": end - start, "limit": number(30)},
        "required": {"CPUs": 4},
        "tres": {"allocated": [{"type": "cpu", "count": 4}, {"type": "gres", "name": "gpu:a100", "count": 2}], "requested": []},
        "array": {"job_id": 0, "task_id": number(None)},
        "het": {"job_id": 0},
        "exit_code": {"return_code": number(0), "signal": {"id": number(None)}},
        "flags": ["STARTED_ON_BACKFILL"],
        "steps": [],
        **more,
    }


JOBS = [
    json_job(1, ["COMPLETED"], 1772445600, 1772445605, 1772446205),
    json_job(2, ["PENDING", "REQUEUED"], 1772445600, 1772445605, 1772445606),
    json_job(2, ["PENDING"], 1772445606, 0, 0),
    json_job(3, ["RUNNING"], 1772445606, 1772445700, 0),
    json_job(4, "TIMEOUT", 1772445700, 1772445701, 1772447509, priority=7, restart_cnt=1),
    json_job(5, ["CANCELLED"], 1772445700, 0, 1772447509, array={"job_id": 5, "task_id": number(3)}),
]


def document(jobs) -> str:
    return json.dumps({"meta": {"slurm": {"release": "24.11.5"}}, "jobs": jobs, "errors": []})


def test_json__of_several_states(written):
    log = read_log(written(document(JOBS), "jobs"))
    assert (log.format, log.records, dict(log.dropped)) == ("slurm", 4, {"still_pending": 1, "still_running": 1})
    found = job(log, 1)
    assert (found["runtime"], found["wait"], found["requested"], found["allocated_procs"], found["gpus"]) == (600, 5, 1800, 4, 2)
    assert (found["user"], found["sched_backfill"], found["exit_code"]) == ("ann", 1, 0)
    assert (job(log, 2)["state"], job(log, 2)["runtime"]) == ("REQUEUED", 1)
    assert (job(log, 4)["priority"], job(log, 4)["restarts"], job(log, 4)["status"]) == (7, 1, 0)
    assert (job(log, 5)["array_task"], job(log, 5)["runtime"], job(log, 5)["status"]) == (3, 0, 5)


@pytest.mark.parametrize(
    "change",
    [
        {"job_id": "x"},
        {"job_id": None},
        {"state": {"current": ["DONE\x1b[2J"]}},
        {"time": [1]},
        {"time": {"submission": 1.5}},
        {"tres": {"allocated": {"cpu": 1}}},
        {"steps": [1]},
    ],
)
def test_json__bad_record_is_one_line(golden, written, change):
    path = written(document([JOBS[0] | change, JOBS[4]]), "jobs.json")
    golden("info", error_of(path))
    log = read_log(path, skip_bad_lines=True)
    assert (log.records, len(log.bad_lines)) == (1, 1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "form", ["{}", "cpu=4,gres/gpu:a100={}", "gres/gpu:{}", "mem={}M", "{}-00:00:00", "2026-03-02T10:00:{}", "[1-{}]", "x={}"]
)
@pytest.mark.slow
@pytest.mark.parametrize("field", ["JobID", "NNodes", "Timelimit", "ReqTRES", "AllocTRES", "SubmitLine"])
def test_number_of_thousands_of_digits__is_a_bad_line_or_harmless(written, field, form):
    rows = [changed(ROWS[0], **{field: form.format("9" * 5000)}), *ROWS[1:]]
    log = read_log(written("\n".join([HEADING, *rows])), skip_bad_lines=True)
    assert log.records + sum(log.dropped.values()) + len(log.bad_lines) == len(ROWS)


@pytest.mark.parametrize("text", ['{"jobs": "slurm"}', '{"jobs": [], "slurm": 1', '{"slurm": ' + "9" * 5000 + "}", "[" * 100_000, "\xff{"])
def test_json__that_is_none_is_one_line(written, text):
    assert "jobs.json" in error_of(written(text, "jobs.json"))


@pytest.mark.slow
def test_json__steps_of_srun_alone_are_no_jobs(written):
    log = read_log(written(document([one | {"steps": [{"step": {"id": {"step_id": "0"}}}]} for one in JOBS]), "jobs.json"))
    plain = read_log(written(document(JOBS), "jobs.json"))
    assert log.column("job_id").tolist() == plain.column("job_id").tolist()
    assert log.dropped == plain.dropped


@pytest.mark.slow
def test_json__job_without_times_is_counted(written):
    log = read_log(written(document([JOBS[0], JOBS[4] | {"time": None}]), "jobs.json"))
    assert log.records + sum(log.dropped.values()) == 2


@pytest.mark.slow
def test_json__damaged_values_are_bad_records_or_harmless(written):
    rng = random.Random(1)
    values = (
        None,
        -1,
        2**70,
        1.5,
        "x",
        "",
        [],
        {},
        [None],
        {"set": True},
        {"set": True, "number": "9"},
        {"infinite": True},
        True,
        "\x1b[2J",
    )

    def damage(value):
        place = rng.randrange(3)
        if isinstance(value, dict) and value and place:
            key = rng.choice(list(value))
            return value | {key: damage(value[key])}
        if isinstance(value, list) and value and place:
            return [damage(value[0]), *value[1:]]
        return rng.choice(values)

    for _ in range(scaled(200)):
        jobs = [damage(one) if rng.random() < 0.4 else one for one in JOBS]
        try:
            log = read_log(written(document(jobs), "jobs.json"), skip_bad_lines=True)
        except wt.LogError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert log.records + sum(log.dropped.values()) + len(log.bad_lines) == len(jobs)
        if jobs[0] is JOBS[0]:
            assert (job(log, 1)["runtime"], job(log, 1)["user"]) == (600, "ann") or 1 in log.column("job_id").tolist()[1:]
