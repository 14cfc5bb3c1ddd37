"""Who waits: groups by hand and against slow versions, their averages, and the tables of simulate and compare."""

import json
import subprocess
import sys
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.cli import HEADER, call, one_line
from tests.errors import raises
from tests.strategies import workloads
from walltime.campaign.store import MEASURES as CAMPAIGN_MEASURES
from walltime.campaign.work import group_rows
from walltime.errors import PolicyError, WorkloadError
from walltime.schedule.groups import GROUPINGS, MEASURES, alike_columns, check_known, group_jobs, local_seconds, parse_grouping


def jobs(**columns) -> wt.Workload:
    """Under EASY these four jobs wait 0, 9, 18 and 17 s: none is short enough to be backfilled."""
    return wt.Workload.from_arrays(
        submit=[0, 1, 2, 3],
        runtime=[10, 10, 5, 4],
        requested=[10, 4000, 600, 90_000],
        procs=[3, 4, 1, 2],
        machine_procs=4,
        columns={name: np.array(values) for name, values in columns.items()},
        origin=wt.workload.Origin(unix_start_time=843480031, time_zone="Europe/Stockholm"),
    )


def names(workload: wt.Workload, by: str, edges=None) -> list[str]:
    groups = group_jobs(workload, by, workload.submit, workload.submit + workload.runtime, edges)
    return [groups.names[k] for k in groups.of]


@pytest.mark.parametrize(
    ("by", "edges", "expected"),
    [
        ("size", None, ["3-4", "3-4", "1", "2"]),
        ("size", [2], ["over 2", "over 2", "1-2", "1-2"]),
        ("size", [1, 2, 8], ["3-8", "3-8", "1", "2"]),
        ("length", None, ["up to 10 min", "1 h to 4 h", "up to 10 min", "over 1 d"]),
        ("length", [5, 5400], ["5 s to 90 min", "5 s to 90 min", "5 s to 90 min", "over 90 min"]),
        ("size-length", [[2], [86400]], ["over 2, up to 1 d", "over 2, up to 1 d", "1-2, up to 1 d", "1-2, over 1 d"]),
        ("class", None, ["short narrow"] * 4),
        ("weekday", None, ["Mon"] * 4),
        ("hour", None, ["14"] * 4),
        ("hour-of-week", None, ["Mon 14"] * 4),
        ("month", None, ["1996-09"] * 4),
        ("queue", None, ["unknown", "queue 2", "queue 10", "queue 2"]),
        ("partition", None, ["unknown"] * 4),
        ("users", None, ["user 1", "user 2", "user 1", "unknown"]),
        ("users", 1, ["other users", "user 2", "other users", "unknown"]),
        ("user", None, ["heavy", "heavy", "heavy", "unknown"]),
    ],
)
def test_group_jobs__worked_by_hand(by, edges, expected):
    assert names(jobs(user=[1, 2, 1, -1], queue=[-1, 2, 10, 2]), by, edges) == expected


def test_group_jobs__groups_are_in_their_natural_order():
    workload = jobs(queue=[-1, 2, 10, 2])
    tables = {by: wt.simulate(workload, wt.Easy()).breakdown(by)["group"].to_list() for by in ("size", "length", "queue")}
    assert tables == {
        "size": ["1", "2", "3-4"],
        "length": ["up to 10 min", "1 h to 4 h", "over 1 d"],
        "queue": ["queue 2", "queue 10", "unknown"],
    }


IMPORTED = """
from walltime.workload import columns
columns.GROUPED_COLUMNS += ("cluster",)
import numpy as np
import walltime as wt
from walltime.comparison.tables import GROUPINGS
from walltime.weekly_report import period
from walltime.schedule.groups import TITLES, parse_grouping
from walltime.accuracy.accuracy import COLUMNS
from walltime.whatif import effects
parse_grouping("cluster")
assert all("cluster" in names for names in (GROUPINGS, period.GROUPED_BY, TITLES, COLUMNS, effects.GROUPED_BY))
log = dict(submit=[0, 1, 2], runtime=[1, 2, 3], procs=[1, 1, 1], machine_procs=4, columns={"cluster": np.array([1, 2, 1])})
print(*wt.simulate(wt.Workload.from_arrays(**log), "easy").breakdown("cluster")["group"])
"""


@pytest.mark.slow
def test_grouped_columns__a_further_one_is_known_everywhere():
    assert subprocess.run([sys.executable, "-c", IMPORTED], check=True, capture_output=True, text=True).stdout == "cluster 1 cluster 2\n"


def test_breakdown__worked_by_hand():
    table = wt.simulate(jobs(), wt.Easy()).breakdown("size", [2])
    assert table.columns == ["group", *MEASURES]
    assert table.rows() == [
        ("1-2", 2, 13 / 83, 17.5, 17.5, pytest.approx(17.9), 18, (23 + 21) / 2, pytest.approx((2.3 + 2.1) / 2)),
        ("over 2", 2, 70 / 83, 4.5, 4.5, pytest.approx(8.1), 9, (10 + 19) / 2, (1 + 1.9) / 2),
    ]


@given(workloads(), st.sampled_from(sorted(GROUPINGS)))
def test_breakdown__the_groups_share_out_all_jobs(workload, by):
    schedule = wt.simulate(workload, wt.Easy(), engine="reference")
    groups = group_jobs(workload, by, schedule.submit, schedule.end, runtime=schedule.runtime)
    if list(groups.names) == ["unknown"]:
        with raises(WorkloadError, "unknown_start_time" if by in ("month", "hour", "weekday", "hour-of-week") else "missing_column"):
            check_known(workload, by, groups)
        return
    table = schedule.breakdown(by)
    assert table["group"].n_unique() == len(table)
    assert table["jobs"].sum() == len(workload)
    assert (table["jobs"] * table["mean_wait"]).sum() == pytest.approx(schedule.wait.sum())
    assert table["max_wait"].max() == schedule.wait.max()
    assert table["share_of_use"].sum() == pytest.approx(1) or (schedule.runtime == 0).all()
    for row in table.iter_rows(named=True):
        inside = np.array([groups.names[k] == row["group"] for k in groups.of])
        assert row["p90_wait"] == pytest.approx(np.percentile(schedule.wait[inside], 90))


@given(workloads(), st.sampled_from(sorted(GROUPINGS)))
def test_group_rows__of_a_campaign_are_those_of_a_breakdown(workload, by):
    schedule = wt.simulate(workload, wt.Easy(), engine="reference")
    rows = group_rows(schedule, by, "none")
    assert [row["group"] for row in rows] == sorted(row["group"] for row in rows)
    if [row["group"] for row in rows] != ["unknown"]:
        table = {row["group"]: row for row in schedule.breakdown(by).iter_rows(named=True)}
        assert all(row[name] == table[row["group"]][name] for row in rows for name in CAMPAIGN_MEASURES)


@given(st.lists(st.integers(0, 700 * 86_400), min_size=1, max_size=30), st.sampled_from(["Europe/Stockholm", "US/Pacific", "UTC", "-3600"]))
def test_local_seconds__is_the_clock_of_the_standard_library(submits, zone):
    origin = wt.workload.Origin(unix_start_time=843480031, time_zone=zone)
    one = np.ones(len(submits), np.int64)
    workload = wt.Workload.from_arrays(submit=sorted(submits), runtime=one, procs=one, machine_procs=1, origin=origin)
    local = local_seconds(workload, workload.submit)
    assert local is not None
    for submit, seconds in zip(workload.submit.tolist(), local.tolist(), strict=True):
        there = datetime.fromtimestamp(843480031 + submit, origin.tzinfo())
        assert (seconds // 86_400 % 7, seconds // 3600 % 24, seconds % 3600) == (
            there.weekday(),
            there.hour,
            there.minute * 60 + there.second,
        )


@pytest.mark.parametrize(
    ("by", "edges", "said"),
    [
        ("sise", None, ("unknown_grouping", "month", "class", "users", "size")),
        ("month", [3], ("wrong_edges",)),
        ("size", [], ("wrong_edges",)),
        ("size", [8, 8], ("wrong_edges",)),
        ("size", [0], ("wrong_edges",)),
        ("length", [1.5], ("wrong_edges",)),
        ("size-length", [[8]], ("wrong_edges",)),
        ("users", 0, ("number_out_of_range", "1", "0")),
    ],
)
def test_breakdown__refuses(by, edges, said):
    with raises(PolicyError, *said):
        wt.simulate(jobs(user=[1, 1, 1, 1]), wt.Easy()).breakdown(by, edges)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("size:a", ("wrong_value", "sizes", "'size:a'", "8/64", "'a'")),
        ("size-length:8", ("missing_option",)),
        ("length:soon", ("wrong_value", "lengths", "'length:soon'", "'soon'")),
        ("users:few", ("wrong_value", "most", "'users:few'")),
        ("month:3", ("unknown_option", "'3'", "'month:3'")),
        ("sise", ("unknown_name", "'sise'", "'size'")),
    ],
)
def test_parse_grouping__refuses(text, said):
    with raises(PolicyError, *said):
        parse_grouping(text)


def test_breakdown__without_jobs():
    nothing = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=1)
    assert len(wt.simulate(nothing, wt.Easy()).breakdown("size")) == 0
    assert len(wt.simulate(nothing, wt.Easy()).breakdown("size-length")) == 0


# ------------------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def log(tmp_path):
    rows = [(1, 0, 10, 3, 10, 1), (2, 1, 10, 4, 12, 2), (3, 2, 5, 1, 6, 1), (4, 3, 4, 2, 8, 2)]
    lines = [f"{job} {at} -1 {run} {procs} -1 -1 {procs} {req} -1 1 {user} 1 -1 -1 -1 -1 -1\n" for job, at, run, procs, req, user in rows]
    path = tmp_path / "small.swf"
    path.write_text(HEADER + "".join(lines))
    return path


def test_simulate__by(capsys, log):
    status, out, _ = call(capsys, "simulate", log, "--by", "users", "--by", "size:2")
    assert status == 0
    assert "By users" in out
    assert "user 2" in out
    assert "over 2" in out
    found = json.loads(call(capsys, "simulate", log, "--by", "users", "--json")[1])["breakdowns"]
    assert [(row["group"], row["jobs"], row["mean_wait"]) for row in found["users"]] == [("user 2", 2, 13), ("user 1", 2, 0)]


def test_compare__by(capsys, log):
    status, out, _ = call(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--by", "users")
    assert status == 0
    assert "Mean wait by users" in out
    # FCFS starts the jobs at 0, 10, 20 and 20
    assert any(line.split() == ["user", "1", "2", "42", "%", "9", "s", "0", "s", "(-100", "%)"] for line in out.splitlines())
    runs = json.loads(call(capsys, "compare", log, "--by", "users", "--json")[1])["runs"]
    assert [run["breakdowns"]["users"][1]["mean_wait"] for run in runs] == [9, 0, 0]


@pytest.mark.parametrize("command", ["simulate", "compare"])
@pytest.mark.parametrize("options", [["--by", "sise"], ["--by", "queue"], ["--by", "size", "--replications", "2", "--shake", "5"]])
def test_by__refuses(golden, capsys, log, command, options):
    golden(command, one_line(*call(capsys, command, log, *options)))


def test_breakdown__goes_by_the_simulated_runtimes():
    jobs = wt.Workload.from_arrays(
        submit=[0, 10_000], runtime=[50_000, 100], requested=[600, 600], procs=[1, 1], machine_procs=1, columns={"user": [7, 8]}
    )
    schedule = wt.simulate(jobs, "fcfs")
    assert schedule.breakdown("class")["group"].to_list() == ["short narrow"], "the long job was ended at its limit"
    shares = dict(schedule.breakdown("users").select("group", "share_of_use").iter_rows())
    assert shares == {"user 7": 600 / 700, "user 8": 100 / 700}
    assert schedule.summary().offered_load == schedule.offered_load == 700 / 10_000
    assert wt.replicate(lambda seed: jobs, "fcfs", [1]).summaries[0].offered_load == 700 / 10_000


def test_alike_columns__columns_with_equal_groups_are_in_one_list():
    columns = {"user": [1, 2, 1, 3], "group": [7, 5, 7, 6], "queue": [1, 1, 1, 2], "partition": [-1] * 4, "executable": [2, 2, 2, 5]}
    jobs = wt.Workload.from_arrays(
        submit=[0] * 4, runtime=[1] * 4, procs=[1] * 4, machine_procs=1, columns={name: np.array(one) for name, one in columns.items()}
    )
    assert alike_columns(jobs, columns) == [["user", "group"], ["queue", "executable"]]
    assert alike_columns(jobs, ["state"]) == []
