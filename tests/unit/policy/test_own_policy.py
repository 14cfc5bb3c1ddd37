"""Policies of one's own with memory: their life cycle, options, and errors."""

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises

JOBS = wt.Workload.from_arrays(
    submit=[0, 1, 2, 3], runtime=[10, 5, 5, 5], procs=[4] * 4, machine_procs=4, columns={"user": np.array([0, 1, 1, 2])}
)
FILE = '''
class Weekly:
    """Users who have waited most go first."""

    def __init__(self, seconds=0):
        self.least, self.waited = seconds, {}

    def started(self, job, now):
        self.waited[job.user] = self.waited.get(job.user, 0) + job.wait

    def rank(self, job):
        waited = self.waited.get(job.user, 0)
        return -waited if waited > self.least else 0

    def choose(self, now, waiting, running, free):
        for job in sorted(waiting, key=self.rank):
            if job.procs <= free:
                free -= job.procs
                yield job


class Wrong(Weekly):
    def ended(self, job, now):
        return job.runtime / 0


class Asks(Weekly):
    def choose(self, now, waiting, running, free):
        return waiting[0].runtime


class Nothing:
    pass
'''


class Diary(wt.PlainPolicy):
    def __init__(self):
        self.seen = []

    def begin(self, procs):
        self.seen.append(("begin", procs))

    def submitted(self, job, now):
        self.seen.append(("submitted", job.job_id, int(now)))

    def started(self, job, now):
        self.seen.append(("started", job.job_id, int(now), job.wait))

    def ended(self, job, now):
        self.seen.append(("ended", job.job_id, int(now), job.runtime))

    def choose(self, now, waiting, running, free):
        pages.append(list(self.seen))
        return waiting[:1] if free == 4 else ()


pages = []


@pytest.fixture
def file(tmp_path):
    (tmp_path / "own.py").write_text(FILE)
    return tmp_path / "own.py"


def test_life__is_told_in_order_and_is_of_one_run():
    jobs = wt.Workload.from_arrays(submit=[0, 10], runtime=[10, 5], procs=[4, 4], machine_procs=4)
    policy = Diary()
    for _ in range(2):
        pages.clear()
        wt.simulate(jobs, policy)
        begin = [("begin", 4), ("submitted", 1, 0)]
        assert pages[0] == begin
        assert pages[1] == [*begin, ("started", 1, 0, 0), ("ended", 1, 10, 10), ("submitted", 2, 10)]
    assert policy.seen == [], "each run has a copy"


def test_class_without_a_base__is_made_anew_for_each_run(file):
    """By hand: job 2 waits 9 s and user 1 then goes before nobody; of jobs 3 (user 1) and 4 (user 2), 3 arrived first, and has waited."""
    first = wt.simulate(JOBS, f"{file}:Weekly")
    assert first.start.tolist() == [0, 10, 15, 20]
    assert np.array_equal(first.start, wt.simulate(JOBS, f"{file}:Weekly").start)
    jobs = JOBS.take(np.arange(4) != 2, "without job 3")
    later = wt.Workload.from_arrays(
        submit=[0, 1, 2, 11], runtime=[10, 5, 5, 5], procs=[4] * 4, machine_procs=4, columns={"user": np.array([0, 1, 2, 1])}
    )
    assert wt.simulate(later, f"{file}:Weekly").start.tolist() == [0, 10, 20, 15], "job 4 is of a user who has waited"
    assert wt.simulate(later, f"{file}:Weekly,seconds=9").start.tolist() == [0, 10, 15, 20]
    assert len(jobs) == 3


def test_options__are_those_of_the_class_and_of_predictions(file):
    scheduler = wt.simulation.parse_scheduler(f"{file}:Weekly,seconds=9,predictor=tang13:key=user,window=all")
    assert scheduler.policy.options == (("seconds", 9),)
    assert scheduler.policy.label == f"{file}:Weekly,seconds=9"
    assert scheduler.policy.title == "Weekly [seconds 9]"
    assert "key=user" in scheduler.prediction.predictor.label
    assert wt.simulation.parse_scheduler(scheduler.label).label == scheduler.label


@pytest.mark.parametrize("spelled", ["Wrong", "Asks", "Weekly,hours=3", "Weekly,hours", "Nothing", "Absent"])
def test_errors__are_one_line_with_file_and_line(golden, file, capsys, tmp_path, monkeypatch, spelled):
    wt.logs.write_swf(tmp_path / "log.swf", JOBS)
    monkeypatch.chdir(tmp_path)  # the messages cut long paths
    golden("simulate", one_line(*call(capsys, "simulate", "log.swf", "--policy", f"{file.name}:{spelled}")))


CHOOSE = "    def choose(self, now, waiting, running, free):\n        return "
PREDICT = "    def predict(self, job):\n        return "
OBSERVE = "    def observe(self, job):\n        pass\n"


@pytest.mark.parametrize(
    ("option", "text", "line", "said"),
    [
        ("--policy", "class Mine:\n    def choose(self, jobs):\n        return 1\n", 2, "but 5 were given; write it as choose(self, now, "),
        ("--policy", f"class Mine:\n    def begin(self):\n        pass\n\n{CHOOSE}[]\n", 2, "write it as begin(self, procs)"),
        ("--policy", f"class Mine:\n{CHOOSE}7\n", 2, "choose of Mine returned 7, which is not a job"),
        ("--policy", "class Mine:\n    pass\n", 1, "'Mine' of"),
        ("--policy", f"class Mine:\n    def __init__(self, hours):\n        pass\n\n{CHOOSE}[]\n", 1, "cannot be created with no options"),
        ("--policy", f"import json\n\nclass Mine:\n{CHOOSE}json.loads('')\n", 5, "choose of Mine raises JSONDecodeError"),
        ("--policy", "import walltime\n\nclass Mine(walltime.PlainPolicy):\n    pass\n", 3, "has no method choose(self, now, "),
        ("--order", "def Mine(job):\n    return 1\n", 1, "the order 'Mine' has unknown parameters: job"),
        ("--order", "\ndef Mine():\n    return 1\n", 2, "has no parameters"),
        ("--order", "\ndef Mine(user_waited):\n    return user_waited\n", 2, "set the period"),
        ("--predictor", f"class Mine:\n    def predict(self):\n        return 1\n\n{OBSERVE}", 2, "write it as predict(self, job)"),
        ("--predictor", f"class Mine:\n{PREDICT}'abc'\n\n{OBSERVE}", 2, "which is not a number of seconds"),
        ("--predictor", f"class Mine:\n{PREDICT}1\n\n    def observe(self):\n        pass\n", 5, "write it as observe(self, job)"),
        ("--predictor", f"class Mine:\n{PREDICT}1\n", 1, "needs a method observe(self, job)"),
        ("--predictor", f"class Mine:\n    def __init__(self):\n        {{}}['a']\n\n{PREDICT}1\n\n{OBSERVE}", 3, "the making of"),
    ],
)
def test_faults_of_a_signature_or_an_answer__name_file_and_line(capsys, tmp_path, option, text, line, said):
    (tmp_path / "bad.py").write_text(text)
    wt.logs.write_swf(tmp_path / "log.swf", JOBS)
    policy = () if option == "--policy" else ("--policy", "easy")
    message = one_line(*call(capsys, "simulate", tmp_path / "log.swf", *policy, option, f"{tmp_path}/bad.py:Mine"))
    assert f"{tmp_path}/bad.py:{line}: " in message
    assert said in message


@pytest.mark.parametrize(("text", "line"), [("x = (\n", 1), ("import walltime\n\n1 / 0\n", 3)])
def test_files_that_cannot_be_loaded__are_named_with_the_line(tmp_path, text, line):
    (tmp_path / "bad.py").write_text(text)
    with raises(wt.PolicyError, "own_code_failure", line, "bad.py"):
        wt.simulation.parse_scheduler(f"{tmp_path}/bad.py:Mine")


def test_predictors_of_ones_own__say_where_they_fail(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def predict(self, job):\n        return job.nothing\n\n    def observe(self, job):\n        pass\n"
    )
    with raises(wt.PolicyError, "own_code_failure", "mine.py", "3", "AttributeError", "'nothing'"):
        wt.simulate(JOBS, "easy", prediction=f"{tmp_path}/mine.py:Mine")
