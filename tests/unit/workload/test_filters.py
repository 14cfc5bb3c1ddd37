"""The filter language: what it picks, compared with numpy, and one line with the place for whatever is no filter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples
from walltime.errors import PolicyError, WorkloadError
from walltime.workload.cleaning import PUBLISHED
from walltime.workload.filters import OWN, select, span_of

HOUR, DAY = 3600, 86_400


def log(jobs: int = 40) -> wt.Workload:
    number = np.arange(1, jobs + 1)
    return wt.Workload.from_arrays(
        submit=number * 1800,
        runtime=number * 977 % 9000,
        requested=number * 991 % 9000 + 1,
        procs=number % 8 + 1,
        machine_procs=8,
        columns={"user": number % 5 - 1, "status": number % 3 - 1},
    )


LOG = log()
N = {name: getattr(LOG, name) for name in OWN} | dict(LOG.columns)

PICKS = {
    "user=2": N["user"] == 2,
    "user==2": N["user"] == 2,
    "user!=2": N["user"] != 2,
    "user=-1": N["user"] == -1,
    "user>-1": N["user"] > -1,
    "job<=10": N["job_id"] <= 10,
    "job_id<=10": N["job_id"] <= 10,
    "10>=job": N["job_id"] <= 10,
    "13<job<16": (N["job_id"] > 13) & (N["job_id"] < 16),
    "13<=job<=16": (N["job_id"] >= 13) & (N["job_id"] <= 16),
    "16>job>13": (N["job_id"] > 13) & (N["job_id"] < 16),
    "1<procs<user<4": (N["procs"] > 1) & (N["procs"] < N["user"]) & (N["user"] < 4),
    "user=procs": N["user"] == N["procs"],
    "runtime>requested": N["runtime"] > N["requested"],
    "planned = requested": np.ones(40, bool),
    "runtime > 1h": N["runtime"] > HOUR,
    "runtime > 3600s": N["runtime"] > HOUR,
    "runtime > 60m": N["runtime"] > HOUR,
    "submit < 1d": N["submit"] < DAY,
    "submit < 1w": np.ones(40, bool),
    "1h<=submit<2h": (N["submit"] >= HOUR) & (N["submit"] < 2 * HOUR),
    "not user=2": N["user"] != 2,
    "not not user=2": N["user"] == 2,
    "not user=2 and procs=3": (N["user"] != 2) & (N["procs"] == 3),
    "not (user=2 and procs=3)": ~((N["user"] == 2) & (N["procs"] == 3)),
    "user=2 or user=3 and procs=3": (N["user"] == 2) | ((N["user"] == 3) & (N["procs"] == 3)),
    "user=3 and procs=3 or user=2": (N["user"] == 2) | ((N["user"] == 3) & (N["procs"] == 3)),
    "(user=2 or user=3) and procs=3": ((N["user"] == 2) | (N["user"] == 3)) & (N["procs"] == 3),
    "((user=2))": N["user"] == 2,
    "USER=2 AND Job<20 Or NOT procs>2": ((N["user"] == 2) & (N["job_id"] < 20)) | ~(N["procs"] > 2),
    "(user=2 or status=1) and not runtime >= 2h": ((N["user"] == 2) | (N["status"] == 1)) & ~(N["runtime"] >= 2 * HOUR),
    "  user=2\n and\tprocs=3 ": (N["user"] == 2) & (N["procs"] == 3),
    "1<2": np.ones(40, bool),
    "2<1": np.zeros(40, bool),
    "job<999999999999999999": np.ones(40, bool),
    "-999999999999999999w<job": np.ones(40, bool),
}


@pytest.mark.parametrize("text", PICKS)
def test_filter__picks_what_it_says(text):
    mask = select(LOG, text)
    assert mask.dtype == bool
    assert mask.shape == (40,)
    assert mask.tolist() == PICKS[text].tolist()


ARCHIVE = {
    # filter: user it is about (None for any), first and last job that it removes
    "user=21 and 13716<job<16208": (21, 13_717, 16_207),
    "user=374 and 14968<job<28553": (374, 14_969, 28_552),
    "user=197 and 31766<job<33203": (197, 31_767, 33_202),
    "user=328 and 66552<job<68107": (328, 66_553, 68_106),
    "job<=10": (None, 1, 10),
    "user=174": (174, 1, 2**62),
    "job<=14": (None, 1, 14),
    "user=50 and 24439<=job<=64542": (50, 24_439, 64_542),
    "user=31 and 64587<=job<=115040": (31, 64_587, 115_040),
    "user=38 and 178585<=job<=192710": (38, 178_585, 192_710),
}


def test_published_filters__are_all_looked_at_here():
    assert set(ARCHIVE) == {text for filters in PUBLISHED.values() for text in filters}


@pytest.mark.parametrize("text", ARCHIVE)
def test_published_filters__pick_from_their_first_to_their_last_job(text):
    user, first, last = ARCHIVE[text]
    ids = sorted({min(max(job + by, 1), 2**62) for job in (first, last) for by in (-1, 0, 1)})
    for who in (user or 7, (user or 7) + 1):
        jobs = wt.Workload.from_arrays(
            submit=[0] * len(ids),
            runtime=[1] * len(ids),
            procs=[1] * len(ids),
            machine_procs=1,
            job_id=ids,
            columns={"user": np.full(len(ids), who)},
        )
        assert select(jobs, text).tolist() == [user in (None, who) and first <= job <= last for job in ids]


def test_filter__of_a_workload_without_jobs_picks_none():
    empty = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=4)
    assert select(empty, "job=1 or 1<2").tolist() == []


# ----------------------------------------------------------------------------------------------- compared with Python

COLUMNS = ("job", "user", "procs", "runtime", "submit", "status")
SECONDS = {"": 1, "s": 1, "m": 60, "h": HOUR, "d": DAY, "w": 7 * DAY}
SPACE = st.sampled_from(["", " ", "  "])


@st.composite
def operands(draw) -> tuple[str, str]:
    """The same operand in the language and in Python."""
    if draw(st.booleans()):
        name = draw(st.sampled_from(COLUMNS))
        return name, "N['job_id']" if name == "job" else f"N['{name}']"
    number, unit = draw(st.integers(-5, 60)), draw(st.sampled_from(["", "", "", "s", "m", "h", "d", "w"]))
    return f"{number}{unit}", f"({number * SECONDS[unit]})"


@st.composite
def comparisons(draw) -> tuple[str, str]:
    signs = draw(st.lists(st.sampled_from(["=", "==", "!=", "<", "<=", ">", ">="]), min_size=1, max_size=3))
    parts = [draw(operands()) for _ in range(len(signs) + 1)]
    text = parts[0][0]
    python = []
    for k, sign in enumerate(signs):
        text += draw(SPACE) + sign + draw(SPACE) + parts[k + 1][0]
        python.append(f"B({parts[k][1]} {'==' if sign == '=' else sign} {parts[k + 1][1]})")
    return text, f"({' & '.join(python)})"


def joined(parts: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    """Longer filters of filters; Python's `&` and `|` bind like `and` and `or` here: the first more tightly."""
    pair = st.tuples(parts, parts)
    return st.one_of(
        pair.map(lambda p: (f"{p[0][0]} and {p[1][0]}", f"{p[0][1]} & {p[1][1]}")),
        pair.map(lambda p: (f"{p[0][0]} or {p[1][0]}", f"{p[0][1]} | {p[1][1]}")),
        parts.map(lambda p: (f"({p[0]})", f"({p[1]})")),
        parts.map(lambda p: (f"not ({p[0]})", f"~({p[1]})")),
        comparisons().map(lambda p: (f"not {p[0]}", f"~{p[1]}")),
    )


@given(both=st.recursive(comparisons(), joined, max_leaves=8))
@examples(400)
def test_filter__picks_what_numpy_picks(both):
    text, python = both
    expected = eval(python, {"N": N, "B": lambda part: np.broadcast_to(np.asarray(part), 40)})
    assert select(LOG, text).tolist() == np.broadcast_to(expected, 40).tolist(), (text, python)


# -------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "": ("missing_operand",),
    "   ": ("missing_operand",),
    "user": ("missing_comparison",),
    "user=": ("missing_operand",),
    "=3": ("missing_operand", "'='", 1),
    "user=3 and": ("missing_operand",),
    "user=3 or or job=1": ("missing_operand", "'or'", 11),
    "and user=3": ("missing_operand", "'and'", 1),
    "user=3 job=1": ("missing_conjunction", "'job'", 8),
    "user=3)": ("missing_conjunction", "')'", 7),
    "(user=3": ("missing_parenthesis",),
    "(user=3 procs=1": ("missing_parenthesis", "'procs'", 9),
    "()": ("missing_operand", "')'", 2),
    "not": ("missing_operand",),
    "user not 3": ("missing_comparison", "'not'", 6),
    "user < = 3": ("missing_operand", "'='", 8),
    "user=3 and (job<5": ("missing_parenthesis",),
    "user = - 1": ("filter_syntax", "'-'"),
    "user=3.5": ("filter_syntax", "'.'"),
    "user=3 & job=1": ("filter_syntax", "'&'"),
    "user=3x": ("filter_syntax", "'3'"),
    "runtime>2 h": ("missing_conjunction", "'h'", 11),
    "user='anna'": ("unknown_name", "user", "'anna'"),
    "user='anna": ("filter_syntax", '"\'"'),
    "color=3": ("unknown_column", "'color'", *["job_id", "submit", "runtime", "requested", "procs", "planned", "user", "status"]),
    "memory<5 or user=1": ("unknown_column", "'memory'"),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_filter__gets_one_line_that_says_where(text):
    with raises(PolicyError, *WRONG[text], repr(text)):
        select(LOG, text)


def mask_or_error(text: str) -> np.ndarray | str:
    try:
        return select(LOG, text)
    except PolicyError as error:
        return str(error)


@given(text=st.text(alphabet="user job=<>!()and or not 0123456789-shmdw.\n", max_size=30))
@examples(500)
def test_any_text__is_a_filter_or_gets_one_line(text):
    result = mask_or_error(text)
    assert "\n" not in result if isinstance(result, str) else result.shape == (40,)


DEEP = {
    "5000 digits": ("job<" + "9" * 5000, "a number of 5000 digits (character 5); at most 18"),
    "19 digits": ("procs=1 and -1000000000000000000d<job", "a number of 19 digits (character 13); at most 18"),
    "3000 brackets": ("(" * 3000 + "job=1" + ")" * 3000, "over 100 nested parentheses or nots"),
    "101 brackets": ("(" * 101 + "job=1" + ")" * 101, "over 100 nested parentheses or nots"),
    "5000 nots": ("not " * 5000 + "job=1", "over 100 nested parentheses or nots"),
    "nots and brackets": ("not (" * 51 + "job=1" + ")" * 51, "over 100 nested parentheses or nots"),
    "a long column": ("c" * 9000 + "=1", "names the unknown column 'ccc"),
    "a long rest": ("job=1 " + "c" * 9000, "needs 'and' or 'or' at 'ccc"),
}


@pytest.mark.parametrize("what", DEEP)
def test_monstrous_text__gets_one_short_line(what):
    text, message = DEEP[what]
    with pytest.raises(PolicyError) as caught:
        select(LOG, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    "text", ["(" * 100 + "job=1" + ")" * 100, "not " * 100 + "job=1", " or ".join(["not (job=1) and (job=1) or job=1"] * 300)]
)
def test_long_text__that_is_not_deep_is_a_filter(text):
    assert select(LOG, text).tolist() == (N["job_id"] == 1).tolist()


def test_span__has_dates_of_the_logs_time_zone():
    jobs = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    here = replace(jobs, origin=replace(jobs.origin, unix_start_time=0, time_zone="Europe/Stockholm"))
    assert span_of(here, "1970-01-02:1970-01-03") == (23 * 3600, 47 * 3600)
    assert span_of(jobs, "1d:2d") == (86_400, 172_800)
    with raises(WorkloadError, "unknown_start_time"):
        span_of(jobs, "1970-01-02:1970-01-03")
    with raises(PolicyError, "wrong_date"):
        span_of(here, "1970-02-30:1970-03-03")
