"""The page: whole, self-contained, the same twice, safe, and right in what it says."""

import html
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.errors import raises
from tests.pages import render
from walltime.comparison import write_comparison_page
from walltime.comparison.answers import answer
from walltime.comparison.caveats import caveats_of
from walltime.errors import OutputError, PolicyError, WorkloadError
from walltime.estimates import FModel, UserEstimates
from walltime.policy import SJF, Conservative, Easy, Hybrid, Kind, NoBackfilling, order
from walltime.report.interactive import repeat_command
from walltime.schedule.schedule import Schedule, labels
from walltime.wording import human_difference, human_number, human_percent, human_time
from walltime.workload import Origin, Workload
from walltime.workload.drops import Drop

VOID = {"wbr", "meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags nest, and collects what a test asks about."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.attributes, self.texts, self.tags = [], [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def made(policy=None, wait=0, jobs=300, kind=Kind.IMMEDIATE, origin=None, estimate=2):
    """A schedule of small jobs on a machine that is large enough for whatever waits a test wants."""
    rng = np.random.default_rng(7)
    submit = np.sort(rng.integers(0, 20_000, jobs))
    runtime = rng.integers(1, 600, jobs)
    w = Workload.from_arrays(
        submit=submit,
        runtime=runtime,
        requested=runtime * estimate,
        procs=rng.integers(1, 9, jobs),
        machine_procs=4096,
        origin=origin or Origin("log", sha256="ab" * 32, records=jobs, unix_start_time=10**9, time_zone="Europe/Stockholm"),
    )
    start = w.submit + wait
    kinds = np.full(jobs, kind, np.uint8)
    return Schedule(w, policy or Easy(), start, start + runtime, runtime, kinds, np.full(jobs, -1))


def sentence(*schedules):
    return answer("log", labels(schedules), schedules, [s.summary() for s in schedules])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.44, "0.4 s"),
        (9.97, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (41 * 3600, "41 h 00 min"),
        (172_799, "2 d 00 h"),
        (400 * 86_400, "400 d 00 h"),
        (-90, "-1 min 30 s"),
        (float("inf"), "n/a"),
    ],
)
def test_human_time__two_units(seconds, text):
    assert human_time(seconds) == text


def test_human_numbers__edges():
    assert [human_number(x) for x in (9.996, 99.96, 0)] == ["10.0", "100", "0.00"]
    assert [human_percent(x) for x in (0, 9.96, 99.97, float("nan"))] == ["0 %", "10 %", "> 99.9 %", "n/a"]
    assert human_difference(float("nan")) == ""


def test_labels__tell_policies_apart():
    several = [Easy(), NoBackfilling(order=SJF), Easy(), Conservative(variant="scratch"), Hybrid(depth=1), Easy(backfill_order=SJF)]
    assert labels([made(p, jobs=1) for p in several]) == [
        "EASY (1)",
        "No backfilling [sjf]",
        "EASY (2)",
        "Conservative from scratch",
        "Hybrid (1 reservation)",
        "EASY [backfill sjf]",
    ]


def test_answer__one_policy(golden):
    said = sentence(made(wait=90, kind=Kind.BACKFILLED))
    golden("compare", said, sentence(made()))


def test_answer__better_worse_and_equal(golden):
    fcfs, easy, cons = made(NoBackfilling(), 7200), made(Easy(), 60, kind=Kind.BACKFILLED), made(Conservative(), 120)
    better = sentence(fcfs, easy, cons)
    golden("compare", better)
    worse = sentence(easy, fcfs)
    golden("compare", worse)
    assert worse.endswith(", compared with EASY.")
    equal = sentence(made(NoBackfilling()), made(Conservative()))
    golden("compare", equal)


def test_answer__wait_and_slowdown_may_disagree(golden):
    wait = np.zeros(300, np.int64)
    one = made(NoBackfilling(), 100)
    wait[np.argmax(one.runtime)] = 40_000
    told = sentence(one, made(Easy(), wait))
    golden("compare", told)
    wait[:] = 100
    wait[0] += 30
    assert "are practically the same under FCFS and EASY" in sentence(one, made(Easy(), wait))


def test_answer__many_policies_names_the_best(golden):
    several = [made(Hybrid(depth=d), 1000 - 100 * d) for d in range(1, 7)]
    told = sentence(*several)
    golden("compare", told, sentence(*[made(Hybrid(depth=d)) for d in range(6)]))


@pytest.mark.slow
def test_page__parses_and_needs_nothing_else():
    page = render([made(NoBackfilling(), 3000), made(Easy(), 50, kind=Kind.RESERVED), made(Conservative(), 80)])
    found = Page(page)
    assert found.tags.count("svg") == 14, "13 pictures, and the first once more for a telephone"
    assert len(found.ids) == len(set(found.ids))
    for name, value in found.attributes:
        if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster"):
            assert value.startswith("#")
            assert value[1:] in found.ids
    assert set(re.findall(r"url\((.*?)\)", page)) <= {f"#{i}" for i in found.ids}
    assert re.findall(r"\w+://[\w./]*", page) == ["https://github.com/leeoniya/uPlot"], "the library says where it comes from"
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert all(heading in found.texts for heading in ("The numbers", "Kinds of starts", "Provenance", "Caveats"))
    labelled = [value for name, value in found.attributes if name == "aria-label"]
    assert any("Gantt chart" in label for label in labelled)
    assert ("title", "3,000 s") in found.attributes


@pytest.mark.slow
def test_page__links_to_its_sections():
    page = render([made(), made(NoBackfilling(), 50)])
    links = re.findall(r'<li(?: class="[\w-]+")?><a href="#([\w-]+)">(.*?)</a>', page)
    assert [title for _, title in links] == [title for title in re.findall(r"<h2[^>]*>(.*?)</h2>", page) if title != "Caveats"]
    for name, title in links:
        assert f'<h2 id="{name}">{title}</h2>' in page
    assert '<li class="only-live"><a href="#live-title">' in page
    assert '<li class="only-static"><a href="#section-excerpt-of-the-schedules">' in page


@pytest.mark.nightly
def test_page__the_same_bytes_twice_also_in_another_process(tmp_path):
    schedules = [made(NoBackfilling(), 3000), made(Easy(), 50)]
    one = write_comparison_page(tmp_path / "one.html", schedules).read_bytes()
    assert write_comparison_page(tmp_path / "two.html", schedules).read_bytes() == one
    code = f"import sys; sys.path.insert(0, {str(__file__.rsplit('/', 1)[0])!r}); import test_report as t; "
    code += "sys.stdout.buffer.write(t.render([t.made(t.NoBackfilling(), 3000), t.made(t.Easy(), 50)]).encode())"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == one


@pytest.mark.slow
def test_page__escapes_what_comes_from_files():
    evil = '<script>alert("1")</script>&amp;'
    origin = Origin(
        evil, sha256="0", records=9, drops=(Drop(evil, evil, 3, 6.0, 9, 100.0),), changed={evil: 2}, header=(evil,), time_zone=evil
    )
    page = render([made(origin=origin)], title=evil, notes=[evil], settings={evil: evil, "command": ["walltime", evil]})
    found = Page(page)
    assert found.tags.count("script") == Page(render([made()])).tags.count("script")
    assert "<script>alert" not in page
    assert sum(evil in text for text in found.texts) >= 6


@pytest.mark.slow
def test_page__a_formula_in_a_name_is_only_text():
    assert "$x^2$ on KTH" in render([made(jobs=3)], title="$x^2$ on KTH")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_page__hardly_any_jobs(jobs):
    found = Page(render([made(NoBackfilling(), jobs=jobs), made(Easy(), jobs=jobs)]))
    assert any("there is nothing to compare" in text for text in found.texts) == (jobs == 0)


@pytest.mark.slow
def test_page__jobs_without_runtime_and_no_calendar():
    w = Workload.from_arrays(submit=[5, 5], runtime=[0, 0], procs=[1, 1], machine_procs=1)
    zero = Schedule(w, NoBackfilling(), w.submit, w.submit, w.runtime, np.zeros(2, np.uint8), w.submit)
    Page(render([zero]))


@pytest.mark.slow
def test_page__trim_and_rules_are_said():
    origin = Origin("log", sha256="0", records=305, drops=(Drop("cancelled", "", 5, 0.0, 305, 10.0),), noticed={"zero_runtime": 1})
    found = Page(render([made(wait=5, origin=origin)], trim="tsafrir06"))
    assert "cancelled" in found.texts
    assert "1.6 %" in found.texts
    assert not any(text.startswith("Averages include") for text in found.texts)
    with raises(PolicyError, "unknown_trim"):
        render([made()], trim="p4")


@pytest.mark.slow
def test_write_report__whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with raises(OutputError, "unwritable_file", "report.html"):
        write_comparison_page(target, [made(jobs=2)])
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OutputError) as caught:
        write_comparison_page(tmp_path / "nowhere" / "report.html", [made(jobs=2)])
    assert "\n" not in str(caught.value)


def test_write_report__compares_the_same_jobs_only():
    with raises(WorkloadError, "no_schedule"):
        render([])
    with raises(WorkloadError, "other_jobs"):
        render([made(jobs=5), made(jobs=6)])
    bigger = made(jobs=5)
    with raises(WorkloadError, "other_jobs"):
        render([made(jobs=5), replace(bigger, workload=bigger.workload.with_machine(5000))])


def caveats_in(*schedules, trim="none", estimates=None):
    return " ".join(caveats_of(schedules, trim, estimates))


def test_caveats__saturated_and_growing(golden):
    n = 4000
    a = np.arange(n)
    w = Workload.from_arrays(submit=a, runtime=a * 0 + 2, procs=a * 0 + 1, machine_procs=1, origin=Origin(sha256="0"))
    late = Schedule(w, NoBackfilling(), 2 * a, 2 * a + 2, w.runtime, np.ones(n, np.uint8), a * 0 - 1)
    told = caveats_in(late, trim="tsafrir06")
    golden("compare", told)
    assert "Only" not in told
    assert "Averages include" not in told


def test_caveats__a_calm_run_has_few():
    told = caveats_in(made(jobs=2000), trim="tsafrir06")
    assert told == ""


def test_caveats__the_lowest_of_many_policies_is_chosen_from_the_results(golden):
    some = [made(jobs=2000)] * 5
    golden("compare", " ".join(caveats_of(some, "tsafrir06")))
    assert "partly luck" not in " ".join(caveats_of(some[:4], "tsafrir06"))


def test_caveats__what_else_can_mislead(golden):
    assert "the word synthetic" in caveats_in(made(origin=Origin()))
    assert "the word synthetic" in caveats_in(made(origin=Origin(sha256="0", header=("; Note: a Synthetic log",))))
    assert "Only 1 job is measured" in caveats_in(made(jobs=1))
    golden("compare", caveats_in(made(wait=100), made(Conservative(), 102)))
    wait = np.zeros(2000, np.int64)
    wait[:15] = 10**7
    assert "the top 1 % contribute" in caveats_in(made(jobs=2000, wait=wait))
    one = made()
    golden("compare", caveats_in(replace(one, workload=one.workload.with_planned(one.runtime + 5))))


def test_repeat_command__only_where_one_line_says_it():
    line = repeat_command([made(NoBackfilling()), made(Hybrid(depth=2))], "tsafrir06")
    assert shlex.split(line)[1:] == shlex.split(
        "compare log --procs 4096 --policy fcfs --policy hybrid:depth=2 --overrun kill --simultaneous batch --trim tsafrir06 "
        "--report report.html"
    )
    mixed = repeat_command([made(NoBackfilling()), made(Easy(order=SJF)), made(Easy(backfill_order=SJF))], "none")
    assert "--policy fcfs --policy easy:order=sjf --policy easy:backfill-order=sjf " in mixed
    assert repeat_command([made(Easy(order=order(lambda procs: procs)))], "none") is None
    assert repeat_command([made(origin=Origin())], "none") is None


@pytest.mark.parametrize("estimates", ["f:4", "badness:3", " F:11,truncated=64800", FModel(4)])
def test_caveats__the_f_model_is_too_good(estimates):
    told = caveats_in(made(jobs=2000), trim="tsafrir06", estimates=estimates)
    assert "the f-model" in told
    assert "results are unrealistically good" in told


def test_caveats__name_the_model_of_the_estimates(golden):
    calm = made(jobs=2000)
    assert caveats_in(calm, trim="tsafrir06", estimates="user") == caveats_in(calm, trim="tsafrir06", estimates=UserEstimates()) == ""
    golden("compare", caveats_in(calm, trim="tsafrir06", estimates="double"))
    assert "unrealistically" not in caveats_in(calm, trim="tsafrir06", estimates="tsafrir05")
    exact = made(jobs=2000, estimate=1)
    golden("compare", caveats_in(exact, trim="tsafrir06", estimates="exact"))


def killed(count, overrun="kill"):
    one = made(jobs=2000)
    requested = one.workload.requested.copy()
    chosen = np.flatnonzero(one.runtime > 1)[:count]
    requested[chosen] = one.runtime[chosen] - 1
    return replace(one, workload=replace(one.workload, requested=requested, planned=requested), overrun=overrun)


def test_caveats__many_killed_jobs(golden):
    golden("compare", caveats_in(killed(1001), trim="tsafrir06"), caveats_in(killed(101), trim="tsafrir06"))
    assert caveats_in(killed(100), trim="tsafrir06") == ""
    assert caveats_in(killed(1001, "continue"), trim="tsafrir06") == ""


def rows(page):
    """The rows of the provenance table: name and value."""
    table = page[page.index("Provenance") :]
    return dict(re.findall(r'<tr><th scope="row">(.*?)</th><td class="wrap">(.*?)</td></tr>', table))


@pytest.mark.slow
def test_page__says_what_was_chosen_and_done():
    one = made(Easy(order=SJF))
    w = replace(one.workload, origin=one.workload.origin.after("the first 300 jobs").after("load 0.9"))
    one = replace(one, workload=w)
    settings = {"command": ["walltime", "compare", "my log.swf"], "seed": 3, "estimates": "f:4", "feedback": False}
    found = rows(render([one], settings=settings))
    assert (found["seed"], found["estimates"], found["feedback"]) == ("3", "f:4", "no")
    assert found["steps"] == "the first 300 jobs; load 0.9"
    assert (found["order"], found["backfill_order"]) == ("sjf", "sjf")
    assert rows(render([made(NoBackfilling()), made(Easy(backfill_order=SJF))]))["backfill_order"] == "sjf"
    several = [made(NoBackfilling()), made(Easy(backfill_order=SJF)), made(Easy())]
    found = rows(render(several))
    assert (found["backfill_order"], found["steps"]) == ("none; sjf; fcfs", "none")


@pytest.mark.slow
def test_page__feedback_is_said(golden):
    one = made()
    page = render([replace(one, workload=one.workload.with_feedback(), submitted=one.workload.submit)])
    assert rows(page)["feedback"] == "yes"
    golden("compare", [text for text in Page(page).texts if "preceding" in text])
    assert "that precede them" not in render([one])


@pytest.mark.slow
def test_page__a_command_is_quoted_for_the_shell():
    words = ["walltime", "compare", "my log.swf", "--remove", "user=3 & more", "it's"]
    page = render([made()], settings={"command": words})
    line = html.unescape(re.search(r"Command to reproduce this page</h3>\s*<pre tabindex=\"0\">(.*?)</pre>", page, re.DOTALL)[1])
    assert line == "walltime compare 'my log.swf' --remove 'user=3 & more' 'it'\"'\"'s'"
    assert shlex.split(line) == shlex.split(html.unescape(rows(page)["command"])) == words
    assert ">walltime compare x</pre>" in render([made()], settings={"command": "walltime compare x"})


@pytest.mark.nightly
def test_page__no_command_where_none_says_it_all():
    one = made()
    for steps, feedback, settings in ((("load 0.9",), False, {}), ((), True, {}), ((), False, {"estimates": "f:4"})):
        w = replace(one.workload, origin=replace(one.workload.origin, steps=steps), feedback=feedback)
        assert "Command to reproduce this page" not in render([replace(one, workload=w)], settings=settings)
    assert "Command to reproduce this page" in render([one], settings={"estimates": "user"})


@pytest.mark.slow
def test_page__says_which_numbers_a_trim_leaves_alone():
    trimmed, whole = render([made()], trim="tsafrir06"), render([made()])
    for said in (
        "utilization, offered load, makespan, months and the queue over time still include all jobs",
        "All jobs, including those that",
    ):
        assert said in trimmed
        assert said not in whole


def over_months(policy, wait, days, start=10**9):
    submit = np.arange(0, days * 86_400, 43_200)
    origin = Origin("log", sha256="0", unix_start_time=start, time_zone="Europe/Stockholm")
    w = Workload.from_arrays(submit=submit, runtime=submit * 0 + 3600, procs=submit * 0 + 1, machine_procs=9, origin=origin)
    begin = w.submit + wait
    return Schedule(w, policy, begin, begin + 3600, w.runtime, np.zeros(len(w), np.uint8), w.submit * 0 - 1)


@pytest.mark.slow
def test_page__months():
    one, two = over_months(NoBackfilling(), 3600, 80), over_months(Easy(), 0, 80)
    page = render([one, two])
    table = page[page.index(">By month</h2>") : page.index(">Distribution of waits</h2>")]
    assert table.index("<details>") < table.index("<table")
    assert "3 months, 2001-09 to 2001-11" in table
    october = one.monthly()[1]
    cells = ["2001-10</th>", f"{october.load:.3f}", f"{october.jobs:,}", "2 h 00 min", "1 h 00 min", "-50 %", "2.00", "1.00", "-50 %"]
    row = re.search(r"<tr>((?:(?!<tr>).)*2001-10</th>.*?)</tr>", table, re.DOTALL)[1]
    assert re.findall(r">([^<>]+)<", row) == [cells[0].removesuffix("</th>"), *cells[1:]]
    assert table.count(">difference<") == 2
    Page(page)
    three = render([one, two, over_months(Conservative(), 60, 80)])
    assert ">difference<" not in three
    assert "response, conservative" in three


@pytest.mark.slow
@pytest.mark.parametrize(("days", "start"), [(5, 10**9), (31 * 125, 10**9), (80, None), (80, 10**14)])
def test_page__months_only_where_there_are_some(days, start):
    assert "By month" not in render([over_months(NoBackfilling(), 0, days, start)])
