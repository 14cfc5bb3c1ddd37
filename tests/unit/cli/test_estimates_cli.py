"""`walltime estimates` and its figure, as a user meets them."""

import json
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from tests.traces import trace_path
from walltime.accuracy import estimate_figures as report
from walltime.cli.main import run
from walltime.papers.printed import printed
from walltime.report.figures import style

HEADER = "; Version: 2.2\n; MaxProcs: 4\n"
KEYS = [
    "schema",
    "trace",
    "sha256",
    "procs",
    "jobs",
    "dropped",
    "estimates",
    "seed",
    "table",
    "percent",
    "distinct",
    "top",
    "top20_percent",
    "emax",
    "emax_rank",
    "emax_percent",
    "largest",
    "mean_accuracy",
    "over_estimate",
    "cut_short",
    "histogram",
    "accuracy_by_runtime",
    "notes",
    "by",
    "hours",
    "requests",
    "accuracy",
    "figure",
    "report",
    "seconds",
    "version",
    "left_out",
]


def record(job: int, runtime: int, requested: int, status: int) -> str:
    return f"{job} {job} -1 {runtime} 1 -1 -1 1 {requested} -1 {status} 1 1 -1 -1 -1 -1 -1\n"


def write(path: Path, rows) -> Path:
    path.write_text(HEADER + "".join(record(k, *row) for k, row in enumerate(rows, 1)))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "small.swf", [(10, 9000, 1), (60, 60, 0), (200, 100, 0), (3000, 3600, 1), (3600, 3600, 1)])


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    status = run([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def as_json(capsys, *arguments: object) -> dict:
    status, out, _ = call(capsys, "estimates", *arguments, "--json")
    assert status == 0
    return json.loads(out)


def test_table__counts_a_small_log(capsys, log):
    found = as_json(capsys, log)
    assert list(found) == KEYS
    # uses: 0, 100, 200, 83 and 100 percent
    assert found["table"] == {"total": 5, "killed": 2, "full": 2, "killed_full": 1, "zero": 1, "short": 2, "few_hours": 4}
    assert found["percent"]["killed_full"] == 50
    assert (found["distinct"], found["top"][0]) == (4, {"seconds": 3600, "jobs": 2, "percent": 40.0})
    assert (found["emax"], found["emax_rank"], found["largest"], found["over_estimate"]) == (9000, 2, 9000, 1)
    assert found["mean_accuracy"] == pytest.approx((10 / 9000 + 1 + 0.5 + 3000 / 3600 + 1) / 5)
    assert sum(found["histogram"]) == 5
    assert (found["seed"], found["figure"], found["notes"]) == (None, None, [])


def test_text__names_rows_values_and_facts(capsys, log):
    status, out, err = call(capsys, "estimates", log)
    assert (status, err) == (0, "")
    for words in ["1 h 00 min", "largest estimate", "mean accuracy", "Unused processor-hours by job outcome"]:
        assert words in out


def test_groups__have_a_row_each(golden, capsys, log):
    found = as_json(capsys, log, "--by", "length:1h", "--by", "users")["by"]
    assert list(found) == ["length:1h", "users"]
    short, long = found["length:1h"]
    assert (short["jobs"], short["median_runtime"], short["median_request"]) == (4, 1600, 1850)
    assert short["mean_use"] == pytest.approx((1 + 1 + 3000 / 3600 + 1) / 4)
    assert (short["under_tenth"], short["full"], long["under_tenth"], long["full"]) == (0, 0.75, 1, 0)
    assert short["share_of_use"] + long["share_of_use"] == pytest.approx(1)
    assert found["users"][0]["jobs"] == 5
    status, out, _ = call(capsys, "estimates", log, "--by", "length:1h")
    assert status == 0
    golden("estimates", out)
    status, _, err = call(capsys, "estimates", log, "--by", "colour")
    assert (status, err.count("\n")) == (2, 1)


def test_kth__stands_beside_the_printed_column(capsys):
    found = as_json(capsys, trace_path("KTH-SP2-1996-2"))
    table = printed("mualem01").tables["T2"]
    for name, value in found["table"].items():
        assert value == pytest.approx(table.value("KTH", quantity=name), rel=0.005)
    assert round(found["top20_percent"], 1) == 74.9


@pytest.mark.slow
def test_reconstructed_log__says_what_is_not_known(golden, capsys):
    status, _, err = call(capsys, "estimates", trace_path("CTC-SP2-1996-3.1-cln.recon"))
    assert status == 0
    golden("estimates", err)
    assert "reconstruction" in err


def test_log_without_estimates__is_one_line_and_no_figure(golden, capsys, tmp_path):
    log = write(tmp_path / "none.swf", [(10, -1, 1), (0, -1, 1), (20, -1, 0)])
    figure = tmp_path / "a.svg"
    status, out, err = call(capsys, "estimates", log, "--figure", figure)
    assert (status, out) == (0, "")
    assert err.count("\n") == 1
    golden("estimates", err)
    assert not figure.exists()
    found = as_json(capsys, log)
    assert list(found) == KEYS
    assert found["table"] is None
    assert as_json(capsys, log, "--estimates", "double")["table"] is None
    assert as_json(capsys, log, "--estimates", "f:4")["table"]["total"] == 3


def test_log_with_some_estimates__says_how_many_have_none(golden, capsys, tmp_path):
    log = write(tmp_path / "some.swf", [(10, -1, 1), (20, 50, 1), (30, 40, -1)])
    _, _, err = call(capsys, "estimates", log)
    golden("estimates", err)


@pytest.mark.slow
def test_model__ends_jobs_at_its_estimates_and_counts_them(capsys):
    found = as_json(capsys, trace_path("KTH-SP2-1996-2"), "--estimates", "mualem01", "--seed", "3")
    assert (found["estimates"], found["seed"], found["over_estimate"]) == ("mualem01", 3, 0)
    assert found["cut_short"] == found["table"]["killed"] > 2000
    assert found["histogram"][101] == 0
    middle = found["histogram"][20:95]
    assert max(middle) < 3 * min(middle)  # mualem01, section 4.3: the histogram is flat again
    again = as_json(capsys, trace_path("KTH-SP2-1996-2"), "--estimates", "mualem01", "--seed", "3")
    assert found["histogram"] == again["histogram"]
    assert found["histogram"] != as_json(capsys, trace_path("KTH-SP2-1996-2"), "--estimates", "mualem01", "--seed", "4")["histogram"]


def test_modal_model__has_the_share_that_was_asked_for(capsys):
    found = as_json(capsys, trace_path("KTH-SP2-1996-2"), "--estimates", "tsafrir05:emax=64800,share=20")
    assert (found["emax"], found["emax_rank"]) == (64_800, 1)
    assert found["emax_percent"] == pytest.approx(20, abs=0.01)
    assert found["top20_percent"] == pytest.approx(89, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--estimates", "best"], 2),
        (["--estimates", "tsafrir05:emax=60"], 2),
        (["--estimates", "tsafrir05"], 1),
        (["--seed", "-1"], 2),
        (["--figure", "a.jpg"], 2),
        (["--figure", "nowhere/a.svg"], 2),
    ],
)
def test_errors__are_one_line(golden, capsys, log, monkeypatch, arguments, status):
    monkeypatch.chdir(log.parent)
    code, _, err = call(capsys, "estimates", log, *arguments)
    assert code == status
    assert err.count("\n") == 1
    golden("estimates", err)


# the figure


@pytest.mark.nightly
@pytest.mark.parametrize(("ending", "begin"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_figure__is_written_with_the_same_bytes_every_time(capsys, log, tmp_path, ending, begin):
    first, second = tmp_path / f"first{ending}", tmp_path / f"second{ending}"
    status, out, _ = call(capsys, "estimates", log, "--figure", first)
    assert status == 0
    assert f"figure written to {first}" in out
    call(capsys, "estimates", log, "--figure", second)
    assert first.read_bytes().startswith(begin)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_figure__leaves_the_users_settings_alone(log):
    before = dict(matplotlib.rcParams)
    report.estimates_figure(np.array([1, 20]), np.array([60, 60]))
    assert dict(matplotlib.rcParams) == before


def test_figure__bars_are_the_histogram_and_curves_the_distributions():
    runtime, requested = np.array([0, 50, 60, 95, 3600, 200]), np.array([60, 100, 60, 100, 7200, 100])
    killed = np.array([False, False, True, False, False, False])
    use, scatter, spread, by_runtime = report.estimates_figure(runtime, requested, killed=killed, emax=7200, title="six jobs").axes
    tops = {round(bar.get_x()): bar.get_y() + bar.get_height() for group in use.containers for bar in group if bar.get_height()}
    assert tops == {0: 1, 50: 2, 100: 1, 95: 1, 104: 1}
    assert [text.get_text() for text in use.get_legend().get_texts()] == ["killed (1)", "others under 90 s (2)", "all others (3)"]
    dots = scatter.lines[1]
    assert sorted(zip(dots.get_xdata() * 60, dots.get_ydata() * 60, strict=True)) == sorted(zip(requested, runtime, strict=True))
    assert "1 ran longer" in scatter.get_title(loc="left")
    estimate = next(line for line in spread.lines if line.get_label() == "estimate")
    assert estimate.get_ydata()[-1] == 100
    assert estimate.get_xdata()[1] == 60
    assert len(by_runtime.lines[0].get_xdata()) == 6


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 250])
def test_figure__stands_any_number_of_jobs_and_peaks(jobs):
    runtime = np.full(jobs, 60)
    requested = np.where(np.arange(jobs) % 2, 60, 100 * 3600)
    figure = report.estimates_figure(runtime, requested)
    with style():
        figure.canvas.draw()


@pytest.mark.slow
def test_figure__cuts_peaks_and_says_how_high_they_are():
    runtime = np.concatenate((np.zeros(5000, int), np.arange(1, 99), np.full(3000, 99), np.full(2000, 100)))
    use = report.estimates_figure(runtime, np.full(len(runtime), 100)).axes[0]
    assert {text.get_text() for text in use.texts} == {"5,000", "3,000", "2,000"}
    assert use.get_ylim()[1] < 100


@pytest.mark.slow
def test_command__loads_no_figure_library_unless_asked(log):
    program = (
        "import sys\nfrom walltime.cli.main import run\nassert run(['estimates', sys.argv[1], '--json']) == 0\n"
        "assert 'matplotlib' not in sys.modules and 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(log)], check=True, capture_output=True)
