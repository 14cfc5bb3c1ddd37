"""Tables of Slurm's records that other programs changed: other titles, units, forms of durations and words for states."""

import pytest

import walltime as wt
from tests.errors import raises
from walltime.logs import read_log
from walltime.logs.batch_systems import NO_LIMIT

DAY = "2026-03-02"
RUNS = ((1500, 1800), (7000, 7200), (3600, 86_400), (50_000, 129_600))
"""Runtimes and limits, s."""


def clock(seconds, with_seconds=True):
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}" + f":{seconds % 60:02d}" * with_seconds


def table(limit, title="Timelimit", limits=RUNS, heading="JobID,User,Submit,Start,End,Elapsed,NCPUS,State"):
    rows = [
        f"{job},u{job % 2},{DAY} 08:00:00,{DAY} 08:01:00,{DAY} {clock(8 * 3600 + 60 + run)},{clock(run)},4,COMPLETED,{limit(most)}"
        for job, (run, most) in enumerate(limits, 1)
    ]
    return "\n".join([f"{heading},{title}", *rows]) + "\n"


@pytest.fixture
def read(tmp_path):
    def read(text, **options):
        (tmp_path / "log.csv").write_text(text)
        return read_log(tmp_path / "log.csv", **options)

    return read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "title"),
    [
        (lambda s: clock(s, with_seconds=False), "Timelimit"),
        (lambda s: f"{s // 60}:00" if s < 86_400 else f"{s // 86_400}-{clock(s % 86_400)}", "Timelimit"),
        (lambda s: str(s // 60) if s % 7200 else clock(s, with_seconds=False), "RunLimit"),
        (lambda s: f"{s // 86_400}-{s % 86_400 // 3600}" if s >= 86_400 else str(s // 60), "Timelimit"),
        (str, "Timelimit"),
        (lambda s: f"{s / 3600:g}", "Walltime (h)"),
        (lambda s: str(s // 60), "ReqWalltime (min)"),
        (lambda s: f"{s // 60}m", "Timelimit"),
        (lambda s: f"PT{s // 60}M", "Requested walltime"),
        (lambda s: str(s // 60), "TimelimitRaw"),
        (lambda s: f"0 days {clock(s)}" if s < 86_400 else f"1 days {clock(s - 86_400)}", "Timelimit"),
    ],
)
def test_limits__of_any_title_unit_and_form_are_read(limit, title, read):
    log = read(table(limit, title))
    assert (log.format, log.column("requested").tolist()) == ("slurm", [most for _, most in RUNS])
    assert log.column("runtime").tolist() == [run for run, _ in RUNS]


def test_limits__of_jobs_whose_processors_are_in_a_list_of_resources(read):
    text = table(lambda s: clock(s, with_seconds=False), heading="JobID,User,Submit,Start,End,Elapsed,AllocTRES,State")
    log = read(text.replace(",4,COMPLETED,", ',"cpu=4,node=1",COMPLETED,'))
    assert (log.column("requested").tolist(), log.column("allocated_procs").tolist()) == ([most for _, most in RUNS], [4] * 4)


@pytest.mark.slow
def test_limits__without_a_bound_among_hours_and_minutes(read):
    log = read(table(lambda s: "UNLIMITED" if s > 100_000 else clock(s, with_seconds=False)))
    assert (log.column("requested").tolist(), log.changed["unlimited"]) == ([1800, 7200, 86_400, 365 * 86_400], 1)


def test_limits__that_cannot_be_read_are_unknown_and_counted(read):
    log = read(table(lambda s: "soon" if s == 7200 else clock(s)))
    assert (log.column("requested").tolist(), log.changed["unreadable_duration"]) == ([1800, -1, 86_400, 129_600], 1)


def test_limits__that_values_do_not_decide_are_asked_for(read):
    text = table(lambda s: "0:30", limits=[(1000, 0)] * 3).replace(",00:16:40,", ",00:00:20,").replace("End,", "").splitlines()
    rows = [",".join(row.split(",")[:4] + row.split(",")[5:]) for row in text[1:]]
    with raises(wt.LogError, "ambiguous_columns", "Elapsed"):
        read("\n".join([text[0], *(row.replace("00:00:20", "10:20") for row in rows)]))


def test_columns__under_other_titles_are_read_and_the_others_named(read):
    log = read(
        "JobID,Owner,Submit,Start,End,NCPUS,State,GPUs,MaxMem,Queue\n"
        f"1,ann,{DAY} 08:00:00,{DAY} 08:01:00,{DAY} 08:26:00,4,COMPLETED,2,16,day\n"
        f"2,bob,{DAY} 08:00:00,Unknown,{DAY} 08:26:00,4,NODE_FAIL,0,16,night\n"
        f"3,bob,{DAY} 08:00:00,{DAY} 08:01:00,{DAY} 08:26:00,4,FAILED,0,16,night\n"
    )
    assert (log.names["user"], log.names["queue"], log.column("gpus").tolist()) == (("ann", "bob"), ("day", "night"), [2, 0])
    assert dict(log.dropped) == {"never_started": 1}
    assert (log.reading[-1].partition(": ")[2], len(log.reading)) == ("MaxMem", 4)


def test_states__of_another_program_decide_which_jobs_ended(read):
    log = read(
        "JobID,User,Submit,Start,End,NCPUS,Status\n"
        f"1,ann,{DAY} 08:00:00,{DAY} 08:01:00,{DAY} 08:26:00,4,Done\n"
        f"2,bob,{DAY} 08:00:00,{DAY} 08:01:00,{DAY} 08:26:00,4,Cancelled\n"
        f"3,bob,{DAY} 08:00:00,,,4,Pending\n"
        f"4,bob,{DAY} 08:00:00,{DAY} 08:01:00,{DAY} 08:26:00,4,Error\n"
    )
    assert (log.column("status").tolist(), dict(log.dropped)) == ([1, 5, 0], {"still_pending": 1})


@pytest.mark.slow
def test_numbers__that_became_fractions_are_not_steps(read):
    log = read(
        "JobID,User,Submit,Start,End,Elapsed,Timelimit,NCPUS,State\n"
        f"1.0,ann,{DAY} 08:00:00,{DAY} 08:01:00,{DAY} 08:26:00,0 days 00:25:00,0 days 00:30:00,4.0,COMPLETED\n"
        f"2.0,ann,{DAY} 08:00:00,NaT,{DAY} 08:26:00,NaT,NaN,,CANCELLED by 5\n"
    )
    assert (log.column("job_id").tolist(), log.column("wait").tolist(), log.column("allocated_procs").tolist()) == (
        [1, 2],
        [60, -1],
        [4, -1],
    )


def test_output_of_sacct__is_not_compared(read):
    log = read(f"JobID|Submit|Start|End|NCPUS|Timelimit|DerivedExitCode\n1|{DAY}T08:00:00|{DAY}T08:01:00|{DAY}T09:00:00|4|00:30:00|0:0\n")
    assert (log.column("requested").tolist(), log.reading) == ([1800], ())


def test_no_limit__in_other_words():
    from walltime.dataframes import pl
    from walltime.logs.slurm.fields import limits

    values, bad = limits(pl.Series(["unlimited", "infinite", "4294967295", "1.5", "NOT_SET"]), "h")
    assert (values.tolist(), bad.any()) == ([NO_LIMIT, NO_LIMIT, NO_LIMIT, 5400, -1], False)


def test_quotes__around_single_fields_are_those_of_csv(read):
    log = read(
        "JobID,Submit,Start,End,NCPUS,State\n"
        f"52_12,{DAY}T08:00:00,{DAY}T08:01:00,{DAY}T08:26:00,4,COMPLETED\n"
        f'"52_[13-20%2]",{DAY}T08:00:00,Unknown,Unknown,4,PENDING\n'
        f'60+0,{DAY}T08:00:00,{DAY}T08:01:00,{DAY}T08:26:00,4,"COMPLETED"\n'
    )
    assert (log.column("array_task").tolist(), log.column("het_job").tolist(), dict(log.dropped)) == (
        [12, -1],
        [-1, 60],
        {"still_pending": 1},
    )


def test_quotes__around_a_name_are_of_the_name(read):
    log = read(f'JobID|Submit|Start|End|NCPUS|State|JobName\n1|{DAY}T08:00:00|{DAY}T08:01:00|{DAY}T08:26:00|4|COMPLETED|"a"\n')
    assert log.names["executable"] == ('"a"',)


@pytest.mark.parametrize("delimiter", [", ", " | ", "; "])
def test_blanks__beside_the_separator_are_no_part_of_values(delimiter, read):
    log = read(table(lambda s: f"{s / 3600:g}", "Walltime (h)").replace(",", delimiter))
    assert (log.column("requested").tolist(), log.names["user"]) == ([most for _, most in RUNS], ("u1", "u0"))
