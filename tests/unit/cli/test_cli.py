"""The command line as a user meets it: results on standard output, one line on standard error for whatever is wrong."""

import contextlib
import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from tests.cli import HEADER, call, one_line, record
from tests.traces import trace_path
from walltime.cli import output
from walltime.cli.main import run
from walltime.engine.interface.load import load
from walltime.report import terminal

KEYS = [
    "trace",
    "sha256",
    "procs",
    "policy",
    "jobs",
    "measured_jobs",
    "dropped",
    "mean_wait",
    "mean_response",
    "mean_slowdown",
    "mean_bounded_slowdown",
    "utilization",
    "offered_load",
    "backfilled_percent",
    "seconds",
    "version",
]


GOOD = HEADER + record(1, 0, 10, 3, 10) + record(2, 1, 10, 4, 12) + record(3, 2, 5, 1, 6) + record(4, 3, 4, 2, 8)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf"
    path.write_text(GOOD)
    return path


def command(*arguments: object, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "walltime.cli.main", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=options.pop("stderr", subprocess.PIPE),
        text=True,
        **options,
    )


# ------------------------------------------------------------------------------------------------------------ results


def test_simulate__prints_one_json_object_with_the_agreed_names(capsys, log):
    status, out, _ = call(capsys, "simulate", log, "--policy", "easy", "--json")
    assert status == 0
    result = json.loads(out)
    assert [key for key in KEYS if key not in result] == []
    assert set(result["seconds"]) == {"read", "compile", "simulate", "measure"}
    # By hand: starts 0, 10, 2, 20, so waits 0, 9, 0, 17.
    assert result["mean_wait"] == 26 / 4
    assert result["mean_response"] == (10 + 19 + 5 + 21) / 4
    assert result["backfilled_percent"] == 25.0
    assert result["utilization"] == (30 + 40 + 5 + 8) / (4 * 24)


def test_simulate__prints_a_readable_table(golden, capsys, log):
    status, out, err = call(capsys, "simulate", log)
    assert (status, err) == (0, "")
    golden("simulate", out)
    assert re.search(r" wait\s+6\.5 s", out)


@pytest.mark.parametrize("ending", ["csv", "parquet", "swf"])
def test_simulate__writes_a_schedule_that_the_auditor_passes(capsys, log, tmp_path, ending):
    out_file = tmp_path / f"s.{ending}"
    assert call(capsys, "simulate", log, "--out", out_file)[0] == 0
    status, out, _ = call(capsys, "audit", log, out_file, "--policy", "easy")
    assert (status, out[:3]) == (0, "ok:")


def test_simulate__counts_what_was_dropped_and_changed(golden, capsys, log):
    log.write_text(GOOD + record(5, 4, 10, 9, 10) + record(6, 5, 10, 1, -1))
    status, out, err = call(capsys, "simulate", log, "--json")
    assert status == 0
    assert json.loads(out)["dropped"] == {"too_wide": 1}
    assert json.loads(out)["changed"] == {"runtime_as_estimate": 1}
    (rule,) = json.loads(out)["left_out"]["rules"]
    assert (rule["rule"], rule["jobs"], rule["of_jobs"], rule["core_seconds"], err) == ("too_wide", 1, 6, 90, "")


@pytest.mark.slow
def test_simulate__says_at_the_end_what_is_left_out_and_first_if_it_is_much(capsys, log, tmp_path):
    log.write_text(GOOD + record(5, 4, 10, 9, 10))
    status, out, err = call(capsys, "simulate", log, "--report", tmp_path / "page.html")
    first, last = out.splitlines()[0], [line for line in out.splitlines() if line.startswith("* Left out: ")]
    assert (status, err, len(last)) == (0, "", 1)
    assert first.endswith(" are left out, so the results cover only the others. Left out: too wide.")
    assert out.count(first) == 1
    page = (tmp_path / "page.html").read_text().replace("&nbsp;", " ")
    assert page.count(f'<p class="answer">{first}') == 1
    caveats = json.loads(call(capsys, "simulate", log, "--json")[1])["caveats"]
    assert caveats[0] == first
    status, out, err = call(capsys, "compare", log, "--format", "csv")
    assert "Left out: 1 of 5 jobs" in err
    assert "left out" not in out
    log.write_text(GOOD + record(5, 4, 0, 9, 10))
    assert not call(capsys, "simulate", log)[1].startswith("20 %"), "a job without work is no loss"


@pytest.mark.slow
def test_simulate__takes_its_options_to_the_engine(golden, capsys, log, tmp_path):
    def waits(*options: str) -> float:
        return json.loads(call(capsys, "simulate", log, "--json", *options)[1])["mean_wait"]

    assert waits("--policy", "fcfs") == (0 + 9 + 18 + 17) / 4
    assert waits("--policy", "easy", "--procs", "8") < waits("--policy", "easy")
    own = tmp_path / "mine.py"
    own.write_text("import walltime as wt\n\n@wt.order\ndef latest(submit):\n    return submit\n")
    assert waits("--policy", "fcfs", "--order", f"{own}:latest") == waits("--policy", "fcfs", "--order", "sjf")
    own.write_text("def latest(submit, user):\n    return submit + 0 * user\ndef nightly(hour):\n    return hour\n")
    assert waits("--policy", "fcfs", "--order", f"{own}:latest") == waits("--policy", "fcfs", "--order", "sjf")
    assert waits("--order", f"{own}:nightly") == waits("--order", "fcfs")
    undated = log.with_name("undated.swf")
    undated.write_text(log.read_text().replace("; UnixStartTime: 843480031\n", ""))
    refused = one_line(*call(capsys, "simulate", undated, "--order", f"{own}:nightly"))
    golden("simulate", refused)
    assert waits("--policy", "hybrid:0", "--backfill-order", "sjf") <= waits("--policy", "fcfs")
    assert waits("--policy", "easy", "--estimates", "exact") == waits("--policy", "easy")


def test_simulate__splits_by_month_in_local_time(capsys, log):
    months = json.loads(call(capsys, "simulate", log, "--monthly", "--json")[1])["months"]
    assert [(m["year"], m["month"], m["jobs"]) for m in months] == [(1996, 9, 4)]
    assert "1996-09" in call(capsys, "simulate", log, "--monthly")[1]


def test_compare__puts_policies_side_by_side(capsys, log):
    status, out, _ = call(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--json")
    result = json.loads(out)
    assert status == 0
    assert [run["policy"] for run in result["runs"]] == ["fcfs", "easy"]
    status, out, _ = call(capsys, "compare", log, "--monthly")
    assert [name for name in ("FCFS", "EASY", "Conservative") if name not in out] == []


@pytest.mark.slow
def test_compare__writes_a_report_that_needs_nothing_else(capsys, log, tmp_path):
    page = tmp_path / "r.html"
    assert call(capsys, "compare", log, "--report", page)[0] == 0
    html = page.read_text()
    assert "<svg" in html
    assert not re.search(r"(src|href)=.https?:", html)


def test_info__says_what_is_odd(capsys, log):
    log.write_text(GOOD + record(5, 4, 10, 9, 10) + record(6, 2, 0, 1, 5) + record(7, 9, 10, 1, 5))
    status, out, _ = call(capsys, "info", log, "--json")
    facts = json.loads(out)
    assert status == 0
    assert facts["dropped"] == {"too_wide": 1}
    assert facts["changed"] == {"reordered": 1}
    assert facts["noticed"] == {"zero_runtime": 1, "runtime_over_estimate": 1}
    assert facts["header"]["Version"] == ["2.2"]
    status, out, _ = call(capsys, "info", log)
    assert "too_wide" in out
    assert "1996-09-23" in out


def test_one_bad_line__is_no_plural(capsys, log):
    log.write_text(GOOD + "1 2 3\n")
    _, out, err = call(capsys, "info", log)
    assert "1 bad line skipped" in out
    assert "1 of 5 lines skipped as unreadable" in err
    log.write_text("1 2 3\n")
    assert "the first of 1 bad line is line 1" in call(capsys, "info", log)[2]


def test_skipped_lines__are_counted_and_listed(capsys, log):
    log.write_text(GOOD + "oops\n" + record(9, "x", 1, 1, 1))
    status, out, _ = call(capsys, "simulate", log, "--skip-bad-lines", "--json")
    assert status == 0
    assert json.loads(out)["dropped"] == {"bad_line": 2}
    assert [(one["rule"], one["jobs"], one["share_of_work"]) for one in json.loads(out)["left_out"]["rules"]] == [("bad_line", 2, None)]
    status, out, _ = call(capsys, "info", log, "--skip-bad-lines")
    assert "2 bad lines skipped" in out
    assert [bad["line"] for bad in json.loads(call(capsys, "info", log, "--skip-bad-lines", "--json")[1])["bad_lines"]] == [9, 10]


def test_header_with_two_sizes__is_named(capsys, log):
    log.write_text("; MaxProcs: 4\n; MaxProcs: 128\n; Note: a\n; Note: b\n" + record(1, 0, 10, 1, 10))
    for command in (("info",), ("simulate", "--policy", "easy")):
        err = call(capsys, command[0], log, *command[1:])[2]
        assert "MaxProcs (4, 128)" in err
        assert "Note" not in err
    log.write_text("; MaxProcs: 4\n; MaxProcs: 4\n" + record(1, 0, 10, 1, 10))
    assert call(capsys, "info", log)[2] == ""


def test_window_before_the_log__is_named_by_dates(capsys, log):
    log.write_text("; MaxProcs: 4\n; UnixStartTime: 1767225600\n1 0 5 10 1 -1 -1 1 10 -1 1 1 1 1 -1 -1 -1 -1\n")
    for command in ("info", "report", "calibrate"):
        err = call(capsys, command, log, "--window", "2025-12-01:2025-12-08", *(["--policy", "easy"] * (command == "calibrate")))[2]
        assert "2025-12-01 00:00 to 2025-12-08 00:00" in err, command


def test_audit__names_the_first_violation_and_exits_with_1(golden, capsys, log, tmp_path):
    schedule = tmp_path / "s.csv"
    schedule.write_text("job_id,start,end\n1,0,10\n2,5,15\n3,2,7\n4,20,24\n")
    status, out, _ = call(capsys, "audit", log, schedule, "--policy", "easy")
    assert status == 1
    golden("simulate", out)
    status, out, _ = call(capsys, "audit", log, schedule, "--json")
    assert status == 1
    assert json.loads(out)["first"]["time"] == 5


def test_version_and_help__answer():
    assert run(["--version"]) == 0
    for name in ("demo", "info", "simulate", "compare", "audit"):
        assert run([name, "--help"]) == 0


# ---------------------------------------------------------------------------------------------------------- bad input


BAD_LOGS = {
    "an empty file": (b"", "empty"),
    "a binary file": (b"\x00\x01\x02" * 100, "not a text"),
    "a truncated gzip file": (gzip.compress(GOOD.encode() * 200)[:-40], "truncated"),
    "a line of 17 fields": ((GOOD + "5 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n").encode(), ":9: .*17"),
    "letters in a number": ((GOOD + record(5, "12a", 1, 1, 1)).encode(), ":9: .*12a"),
    "a negative submit": ((GOOD + record(5, -7, 1, 1, 1)).encode(), ":9: .*-7"),
    "a negative runtime": ((GOOD + record(5, 7, -3, 1, 1)).encode(), ":9: .*-3"),
    "a request of NaN": ((GOOD + record(5, 7, 3, 1, "NaN")).encode(), ":9: .*(?i:nan)"),
    "no machine size": (record(1, 0, 1, 1, 1).encode(), "--procs"),
    "only jobs wider than the machine": ((HEADER + record(1, 0, 1, 9, 1)).encode(), "too_wide"),
    "only header lines": (HEADER.encode(), "no job"),
}


@pytest.mark.parametrize("what", BAD_LOGS)
def test_bad_log__gets_one_line_and_no_output_file(capsys, tmp_path, what):
    content, message = BAD_LOGS[what]
    path = tmp_path / "bad.swf"
    path.write_bytes(content)
    out_file = tmp_path / "out.csv"
    error = one_line(*call(capsys, "simulate", path, "--out", out_file))
    assert re.search(message, error), error
    assert str(path) in error or "bad" in error
    assert not out_file.exists()


def test_missing_log__gets_one_line(capsys, tmp_path):
    assert "no such file" in one_line(*call(capsys, "simulate", tmp_path / "none.swf"))


def test_folder_as_log__gets_one_line(capsys, tmp_path):
    assert "directory" in one_line(*call(capsys, "info", tmp_path))


def test_job_wider_than_the_machine__stops_the_run_if_asked(capsys, log):
    log.write_text(GOOD + record(5, 4, 10, 9, 10))
    error = one_line(*call(capsys, "simulate", log, "--too-wide", "error"))
    assert re.search(r"job 5 .*9 .*4", error)


BAD_CALLS = {
    "no processors": (["--procs", "0"], "--procs"),
    "negative processors": (["--procs", "-4"], "--procs"),
    "an unknown policy": (["--policy", "esay"], "fcfs, easy, conservative, conservative-scratch, double"),
    "a hybrid without a depth": (
        ["--policy", "hybrid:depth=x"],
        "option depth of the policy 'hybrid:depth=x' must be a whole number of 0 or more",
    ),
    "an unknown order": (["--order", "lifo"], "fcfs, sjf, wfp"),
    "an unknown backfill order": (["--backfill-order", "lifo"], "fcfs, sjf, wfp"),
    "an order file that is not there": (["--order", "none.py:f"], "none.py: no such file"),
    "unknown estimates": (["--estimates", "lucky"], "user, exact, double, factor, f, badness"),
    "an unknown overrun rule": (["--overrun", "shrug"], "kill"),
    "an unknown trim": (["--trim", "p9"], "tsafrir06"),
    "an output of unknown kind": (["--out", "s.doc"], ".csv"),
    "an option that there is not": (["--polcy", "easy"], "--polcy"),
}


@pytest.mark.parametrize("what", BAD_CALLS)
def test_bad_call__gets_one_line_and_status_2(capsys, log, what):
    options, message = BAD_CALLS[what]
    status, out, err = call(capsys, "simulate", log, *options)
    assert status == 2
    assert message in one_line(status, out, err)


def test_no_trace__gets_one_line(capsys):
    assert "LOG" in one_line(*call(capsys, "simulate"))


def test_unwritable_output__leaves_nothing_behind(capsys, log, tmp_path):
    for option, name in (("--out", "s.csv"), ("--report", "r.html")):
        command_name = "simulate" if option == "--out" else "compare"
        error = one_line(*call(capsys, command_name, log, option, tmp_path / "none" / name))
        assert "cannot be written" in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["small.swf"]


def test_log_without_start_time__has_no_months(capsys, log):
    log.write_text(GOOD.replace("; UnixStartTime: 843480031\n", ""))
    assert "UnixStartTime" in one_line(*call(capsys, "simulate", log, "--monthly"))


# -------------------------------------------------------------------------------------------- terminal, signals, pipes


@pytest.mark.parametrize("width", [140, 80, 60, 40])
def test_tables__cut_no_number_on_narrow_terminals(capsys, log, monkeypatch, width):
    from rich.console import Console

    monkeypatch.setattr(terminal, "console", lambda: Console(width=width, highlight=False))
    texts = ("easy", "fcfs", "easy:backfill-order=sjf,predictor=last", "hybrid:depth=1000")
    _, out, _ = call(capsys, "compare", log, *(word for text in texts for word in ("--policy", text)))
    table = out.partition("\n\n")[2].partition("\n\nNotes:")[0].partition("\n±")[0]
    assert all(len(line) <= width for line in table.splitlines())
    assert "…" not in out
    words = table.split()
    for number in ("backfilled", "slowdown", "wait", "longest"):
        assert number in words
    for command in ("simulate", "info", "estimates"):
        assert "…" not in call(capsys, command, log)[1], command


SHELLS = {
    "bash": {"COMP_WORDS": "walltime\nsim", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "walltime sim"},
    "fish": {"_TYPER_COMPLETE_ARGS": "walltime sim", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHELLS)
def test_completion__knows_the_commands(name):
    shell = SHELLS[name] | {"_WALLTIME_COMPLETE": f"complete_{name}"}
    program = "import sys; sys.argv = ['walltime']; from walltime.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | shell, capture_output=True, text=True, check=False)
    assert "simulate" in re.findall(r"\w+", done.stdout)
    assert "compare" not in done.stdout


def test_cite__prints_bibtex(golden, capsys):
    status, out, _ = call(capsys, "cite")
    assert status == 0
    assert out.startswith("The walltime developers. walltime: ")
    assert "\n\n@software{walltime,\n" in out
    assert out.count("@") == 8
    assert call(capsys, "cite", "tang13")[1].startswith("@article{tang13,")
    golden("cite", one_line(*call(capsys, "cite", "me")))


@pytest.mark.parametrize(
    "repeated", [("--head", "6", "--head", "8"), ("--order=sjf", "--order", "wfp"), ("--json", "--json"), ("--policy", "fcfs") * 2]
)
def test_option_given_twice__is_refused_where_one_would_win(golden, capsys, log, repeated):
    golden("simulate", one_line(*call(capsys, "simulate", log, *repeated)))


def test_option_given_twice__holds_where_it_can(capsys, log):
    assert (
        call(
            capsys,
            "simulate",
            log,
            "--remove",
            "user=7",
            "--remove",
            "user=8",
            "--",
        )[0]
        == 0
    )


@pytest.mark.slow
def test_reader_that_leaves__is_no_error(log):
    process = subprocess.run(
        f"{sys.executable} -m walltime.cli.main info {log} --json | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert process.stderr == ""
    assert process.stdout == "{\n"


def long_log(path: Path, jobs: int = 60_000) -> Path:
    """An overloaded machine: the queue grows without end, so that conservative backfilling takes minutes."""
    lines = "".join(record(i, i, 50 + i * 7 % 1000, 1 + i % 4, 2000 + i * 13 % 5000) for i in range(1, jobs + 1))
    path.write_text(HEADER + lines)
    return path


@pytest.mark.nightly
def test_interrupt__stops_the_run_and_leaves_no_file(golden, tmp_path):
    log, out = long_log(tmp_path / "long.swf"), tmp_path / "s.csv"
    process = command("simulate", log, "--policy", "conservative", "--out", out)
    load("conservative")
    time.sleep(6)
    assert process.poll() is None, "the run must still be going"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    golden("simulate", err.splitlines()[-1])
    assert [p.name for p in tmp_path.iterdir()] == ["long.swf"]


def read_to_the_end(terminal: int) -> None:
    with contextlib.suppress(OSError), open(terminal, "rb", buffering=0) as output:
        while output.read(4096):
            pass


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.swf", "out.parquet", "out.csv.gz"])
def test_asked_to_end__leaves_no_file_as_ctrl_c_does(tmp_path, name):
    log = tmp_path / "log.swf"
    log.write_text(HEADER + record(1, 0, 10, 1, 20))
    # Short sleeps: a signal that arrives just before a long one would be seen at its end only.
    stopped = "import os, sys, time\nos.fsync = lambda _: (print('writing', flush=True), [time.sleep(0.01) for _ in range(6000)])\n"
    call_of = f"sys.argv = {['walltime', 'convert', str(log), '--out', str(tmp_path / name)]!r}\nfrom walltime.cli.main import main\nmain()"
    with subprocess.Popen([sys.executable, "-c", stopped + call_of], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, "walltime: interrupted; no file was left half-written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["log.swf"]


def test_lines__say_now_and_then_what_remains(golden, monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    with output.progress_row("easy", 400, "jobs") as row:
        for now[0], done in [(0.0, 100), (4.0, 150), (10.0, 200), (15.0, 300), (20.0, 300), (31.0, 400)]:
            row.update(done)
        now[0] = 60.0
        row.update(0, description="fcfs", note="a note")
    golden("simulate", capsys.readouterr().err.splitlines())


def test_interrupt_that_python_drops__is_raised_again_at_the_next_progress(monkeypatch):
    monkeypatch.setattr(output, "_interrupted", threading.Event())
    output.raise_if_interrupted()
    with contextlib.suppress(KeyboardInterrupt):
        output.interrupt()
    with pytest.raises(KeyboardInterrupt):
        output.raise_if_interrupted()
    with pytest.raises(KeyboardInterrupt):
        output.Row("a run", 10)


@pytest.mark.slow
def test_progress_bar__shows_on_a_terminal_after_a_second(tmp_path):
    log = long_log(tmp_path / "long.swf")
    mine, theirs = pty.openpty()
    process = command("simulate", log, "--policy", "conservative", stderr=theirs)
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 60
    while b"conservative" not in seen and time.monotonic() < deadline:
        seen += os.read(mine, 4096)
    process.send_signal(signal.SIGINT)
    # A terminal that nobody reads would hold the program up.
    threading.Thread(target=read_to_the_end, args=(mine,), daemon=True).start()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"/60000" in seen.replace(b",", b"") or b"conservative" in seen


# ------------------------------------------------------------------------------------------------------------ real log


@pytest.mark.slow
def test_kth__runs_from_the_command_line(capsys, tmp_path):
    trace = trace_path("KTH-SP2-1996-2.swf.gz")
    out = tmp_path / "kth.parquet"
    status, text, _ = call(capsys, "simulate", trace, "--policy", "conservative", "--out", out, "--json")
    result = json.loads(text)
    assert (status, result["jobs"], result["procs"]) == (0, 28_489, 100)
    assert pl.read_parquet(out).height == 28_489
    assert call(capsys, "audit", trace, out, "--policy", "conservative")[0] == 0


# ------------------------------------------------------------------------------------------------------ what users met


@pytest.mark.slow
def test_killed_jobs__are_killed_in_every_format(capsys, tmp_path):
    trace = trace_path("KTH-SP2-1996-2.swf.gz")
    for ending in ("csv", "swf"):
        out = tmp_path / f"kth.{ending}"
        assert call(capsys, "simulate", trace, "--out", out)[0] == 0
        assert call(capsys, "audit", trace, out, "--policy", "easy")[0] == 0


SILENT = {
    "replications that are all the same": ["--replications", "3"],
    "a backfill order that the policy does not have": ["--policy", "fcfs", "--backfill-order", "sjf"],
    "a way to scale without a load": ["--scale-by", "users"],
    "a split without months": ["--month-of", "start"],
    "a machine that nobody has": ["--procs", "99999999999999999999"],
}


@pytest.mark.parametrize("what", SILENT)
def test_option_that_would_do_nothing__is_refused(capsys, log, what):
    status, out, err = call(capsys, "simulate", log, *SILENT[what])
    assert status == 2
    one_line(status, out, err)


@pytest.mark.parametrize(
    "option", [["simulate", "--out", "none/s.csv"], ["compare", "--report", "none/r.html"], ["compare", "--report", "r.txt"]]
)
def test_output_that_cannot_be_written__is_refused_before_the_run(capsys, log, monkeypatch, option):
    monkeypatch.setattr("walltime.simulation.simulate", lambda *args, **kwargs: pytest.fail("it ran"))
    status, out, err = call(capsys, option[0], log, *option[1:])
    assert status == 2
    one_line(status, out, err)


def test_feedback__leaves_its_trace_in_the_result(capsys, tmp_path):
    log = tmp_path / "f.swf"
    assert call(capsys, "generate", "feitelson96", "--jobs", "300", "--procs", "16", "--load", "0.8", "--out", log)[0] == 0
    plain, fed = (json.loads(call(capsys, "simulate", log, "--json", *options)[1]) for options in ([], ["--feedback"]))
    assert (plain["feedback"], fed["feedback"]) == (False, True)
    assert plain["mean_wait"] != fed["mean_wait"]


def test_feedback_that_changes_nothing__says_so(capsys, log):
    status, _, err = call(capsys, "simulate", log, "--feedback")
    assert status == 0
    assert "--feedback has no effect" in err


@pytest.mark.slow
def test_full_device__gets_one_line(log):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "walltime.cli.main", "info", str(log)], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be printed" in done.stderr


@pytest.mark.slow
def test_other_encoding_and_closed_output__are_no_error(log):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-m", "walltime.cli.main", "info", str(log)], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(f"{sys.executable} -m walltime.cli.main info {log} >&-", shell=True, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_start_time_that_no_calendar_has__is_shown_as_it_is(capsys, log):
    log.write_text(GOOD.replace("843480031", "99999999999999999"))
    assert "beyond the calendar's range" in call(capsys, "info", log)[1]


def test_estimates_below_the_runtimes__are_said_in_one_line(golden, capsys, log):
    status, out, err = call(capsys, "simulate", log, "--estimates", "f:2,truncated=5", "--json")
    assert (status, json.loads(out)["killed"]) == (0, 2)
    golden("simulate", err)


def test_convert__takes_the_file_as_a_word_or_as_an_option(capsys, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(HEADER + record(1, 0, 600, 1, 6000))
    for words in ([tmp_path / "a.csv"], ["--out", tmp_path / "a.csv"]):
        assert call(capsys, "convert", log, *words)[0] == 0
        assert (tmp_path / "a.csv").is_file()
        (tmp_path / "a.csv").unlink()
    assert "one output file is needed" in one_line(*call(capsys, "convert", log))
    assert "one output file is needed" in one_line(*call(capsys, "convert", log, tmp_path / "a.csv", "--out", tmp_path / "b.csv"))
    assert "file extension" in one_line(*call(capsys, "convert", log, tmp_path / "a.txt"))


def test_progress__long_work_says_early_how_long_it_takes(golden, capsys, monkeypatch):
    from walltime.cli import output

    clock = iter([0.0, 0.0, 1.0, 4.0, 5.0, 15.0])
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    lines = output.Lines("readings", 100)
    for done in (0, 1, 4, 5, 15):
        lines.update(done)
    said = capsys.readouterr().err.splitlines()
    golden("simulate", said)


def test_progress__is_said_again_where_the_work_tells_of_it_seldom(golden, capsys, monkeypatch):
    from walltime.cli import output

    clock = iter([0.0, 2.0, 2.0, 6.0, 16.0, 17.0, 30.0])
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    lines = output.Lines("readings", 100)
    lines.again()  # at 2 s, before anything is known
    for done in (0, 8):  # at 2 and 6 s
        lines.update(done)
    for _ in range(3):  # at 16, 17 and 30 s
        lines.again()
    said = capsys.readouterr().err.splitlines()
    golden("simulate", said)


def test_test_share__all_jobs_run_and_the_last_are_measured(log, capsys):
    whole = json.loads(call(capsys, "simulate", log, "--json")[1])
    part = json.loads(call(capsys, "simulate", log, "--test-share", 0.4, "--json")[1])
    assert part["jobs"] == whole["jobs"]
    assert 0 < part["measured_jobs"] <= -(-4 * whole["jobs"] // 10)
    both = json.loads(call(capsys, "compare", log, "--policy", "easy", "--test-share", 0.4, "--json")[1])
    assert both["runs"][0]["mean_wait"] == part["mean_wait"]
    assert "both select the measured jobs" in one_line(*call(capsys, "compare", log, "--trim", "tsafrir06", "--test-share", 0.4))
    assert "above 0 and at most 1" in one_line(*call(capsys, "simulate", log, "--test-share", 0))
    assert "--test-share" in one_line(*call(capsys, "compare", log, "--test-share", 0.4, "--replications", 3, "--shake", 30))
