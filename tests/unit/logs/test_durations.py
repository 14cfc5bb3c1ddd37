"""Durations in tables: every form of one, and the meaning of 24:00 and of numbers between such texts, decided column by column."""

import random

import polars as pl
import pytest
from hypothesis import given, strategies as st

from tests.errors import raises
from tests.profiles import examples, seeds
from walltime.errors import LogError
from walltime.logs import read_log
from walltime.logs.cells import spans

DAY = 86_400


def split(seconds):
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return hours // 24, hours % 24, hours, minute, second


FORMS = {
    "1-02:03:04": lambda d, h, hours, m, s: f"{d}-{h:02d}:{m:02d}:{s:02d}",
    "0+02:03:04": lambda d, h, hours, m, s: f"{d}+{h:02d}:{m:02d}:{s:02d}",
    "26:03:04": lambda d, h, hours, m, s: f"{hours:02d}:{m:02d}:{s:02d}",
    "1:02:03:04": lambda d, h, hours, m, s: f"{d}:{h:02d}:{m:02d}:{s:02d}",
    "1 day, 2:03:04": lambda d, h, hours, m, s: f"{d} day{'' if d == 1 else 's'}, {h}:{m:02d}:{s:02d}",
    "1 days 02:03:04.5": lambda d, h, hours, m, s: f"{d} days {h:02d}:{m:02d}:{s:02d}.0",
    "P1DT2H3M4S": lambda d, h, hours, m, s: f"P{d}DT{h}H{m}M{s}S",
    "1d 2h 3m 4s": lambda d, h, hours, m, s: f"{d}d {h}h {m}m {s}s",
    "26 hours, 3 minutes, 4 seconds": lambda d, h, hours, m, s: f"{hours} hours, {m} minutes, {s} seconds",
    "26h3m4s": lambda d, h, hours, m, s: f"{hours}h{m}m{s}s",
}
OF_MINUTES = {
    "1-02:03": lambda d, h, hours, m, s: f"{d}-{h}:{m:02d}",
    "1563 min": lambda d, h, hours, m, s: f"{60 * hours + m} min",
    "1563.0/host": lambda d, h, hours, m, s: f"{60 * hours + m}.0/node7",
    "26:03/host": lambda d, h, hours, m, s: f"{hours}:{m:02d}/node7",
}


@pytest.mark.parametrize("form", sorted(FORMS))
@given(lengths=st.lists(st.integers(1, 90 * DAY), min_size=1, max_size=8))
@examples(20)
def test_spans__reads_every_form(lengths, form):
    values, odd = spans(pl.Series([FORMS[form](*split(length)) for length in lengths]))
    assert (values.tolist(), odd.any()) == (lengths, False)


@pytest.mark.parametrize("form", sorted(OF_MINUTES))
@given(minutes=st.lists(st.integers(1, 9000), min_size=1, max_size=8))
@examples(20)
def test_spans__reads_every_form_of_minutes(minutes, form):
    values, odd = spans(pl.Series([OF_MINUTES[form](*split(60 * length)) for length in minutes]))
    assert (values.tolist(), odd.any()) == ([60 * length for length in minutes], False)


@pytest.mark.parametrize("text", ["x", "1:2:3:4:5", "12:", ":30", "1--2", "2026-03-02", "h", "P", "1:00 pm"])
def test_spans__rejects_other_texts(text):
    values, odd = spans(pl.Series([text, "1:00"]))
    assert (values.tolist(), odd.tolist()) == ([-1, 60], [True, False])


def written(folder, limits, runtimes, title="Timelimit", elapsed=True):
    rows = ["JobID,User,Submit,Start,End,Elapsed,NCPUS," + title]
    for job, (limit, runtime) in enumerate(zip(limits, runtimes, strict=True), 1):
        start = 1_772_445_600 + 300 * job
        rows.append(f"{job},u{job % 3},{start - 60},{start},{start + runtime},{runtime if elapsed else ''},4,{limit}")
    path = folder / "t.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def hours_and_minutes(minutes, rng):
    return f"{minutes // 60}:{minutes % 60:02d}"


def lsf(minutes, rng):
    return str(minutes) if rng.random() < 0.4 else f"{minutes // 60:02d}:{minutes % 60:02d}"


def squeue(minutes, rng):
    days, rest = divmod(minutes, 1440)
    if minutes < 60:
        return f"{minutes}:00"
    return f"{days}-{rest // 60:02d}:{rest % 60:02d}:00" if days else f"{rest // 60}:{rest % 60:02d}:00"


def sbatch(minutes, rng):
    days, rest = divmod(minutes, 1440)
    forms = [str(minutes), f"{minutes}:00"]
    forms += [f"{days}-{rest // 60}", f"{days}-0{rest // 60}:00"] if days and rest % 60 == 0 and rest < 600 else []
    return rng.choice(forms)


@pytest.mark.parametrize("style", [hours_and_minutes, lsf, squeue, sbatch])
@pytest.mark.parametrize("seed", seeds(20))
def test_limits__are_read_as_the_runtimes_decide(style, seed, tmp_path):
    rng = random.Random(seed)
    minutes = [rng.choice((5, 10, 30, 45, 60, 90, 120, 240, 720, 1440, 2880, 4320)) for _ in range(40)]
    runtimes = [max(1, int(60 * limit * rng.uniform(0.1, 1.0))) for limit in minutes]
    log = read_log(written(tmp_path, [style(limit, rng) for limit in minutes], runtimes))
    assert log.column("requested").tolist() == [60 * limit for limit in minutes]


def test_limits__of_qstat_are_hours_and_minutes_by_their_titles(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{job},u,2026-03-02 08:0{job}:00,2026-03-02 09:00:00,0{job}:1{job},{10 * job}:00,4" for job in range(1, 9)]
    path.write_text("\n".join(["Job ID,User,Submit,Start,Elap Time,Req'd Time,NCPUS", *rows]) + "\n")
    log = read_log(path)
    assert log.column("runtime").tolist() == [job * 3660 + 600 for job in range(1, 9)]
    assert log.column("requested").tolist() == [job * 36_000 for job in range(1, 9)]


def test_limits__that_neither_values_nor_titles_decide_are_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{job},u,2026-03-02 08:0{job}:00,2026-03-02 09:00:00,1{job}:30,4" for job in range(1, 9)]
    path.write_text("\n".join(["Job ID,User,Submit,Start,Elapsed,NCPUS", *rows]) + "\n")
    with raises(LogError, "ambiguous_columns", "Elapsed"):
        read_log(path)
    mapping = '[columns]\nsubmit="Submit"\nstart="Start"\nallocated_procs="NCPUS"\nruntime={column="Elapsed", clock="hh:mm"}\n'
    (tmp_path / "m.toml").write_text(mapping)
    assert read_log(path, mapping=tmp_path / "m.toml").column("runtime").tolist() == [3600 * (10 + job) + 1800 for job in range(1, 9)]


@pytest.mark.parametrize("bad", [1, 3])
def test_limits__that_cannot_be_read_are_counted_and_the_others_kept(bad, tmp_path):
    limits = ["as long as it takes"] * bad + ["01:00:00"] * (8 - bad)
    log = read_log(written(tmp_path, limits, [600] * 8))
    assert log.column("requested").tolist() == [-1] * bad + [3600] * (8 - bad)
    assert log.changed["unreadable_duration"] == bad
    assert log.to_workload(procs=64).origin.changed["unreadable_duration"] == bad


def test_mapping__of_a_limit_with_one_colon_is_decided_by_the_values_too(tmp_path):
    path = written(tmp_path, ["2:00", "0:30", "24:00"], [7000, 1700, 80_000])
    (tmp_path / "m.toml").write_text(
        '[columns]\njob_id="JobID"\nsubmit="Submit"\nstart="Start"\nend="End"\nallocated_procs="NCPUS"\nrequested="Timelimit"\n'
    )
    assert read_log(path, mapping=tmp_path / "m.toml").column("requested").tolist() == [7200, 1800, DAY]


def test_times__with_fractions_are_rounded_down_and_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,submit,start,end,procs\n1,10.5,12.0,20.25,4\n2,11,12,20,4\n3,12,12,20,4\n")
    log = read_log(path)
    assert (log.column("submit").tolist(), log.column("runtime").tolist()) == ([0, 1, 2], [8, 8, 8])
    assert log.changed["floored_time"] == 1


def test_job_numbers__of_arrays_are_arrays_and_tasks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("JobID,Submit,Start,End,NCPUS\n52_1,10,12,20,4\n52_12,11,12,20,4\n53,12,12,20,4\n54[3],12,12,20,4\n54[4],12,12,20,4\n")
    log = read_log(path)
    assert log.column("job_id").tolist() == [-1, -1, 53, -1, -1]
    assert log.column("array_job").tolist() == [52, 52, -1, 54, 54]
    assert log.column("array_task").tolist() == [1, 12, -1, 3, 4]
