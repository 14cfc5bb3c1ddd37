"""Batsim's protocol: real schedulers of pybatsim, and clients that break the rules."""

import csv
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from walltime.errors import EngineError
from walltime.logs import read_log
from walltime.serve.batsim import MOST_BYTES, BatsimServer, members, spans, write_rows, write_workload, zmq_exchange


@pytest.fixture
def jobs():
    return wt.workloads.Lublin99().generate(60, 16, 0.9, seed=2)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class FirstCome:
    """A scheduler that starts jobs in order of arrival; `twist` changes its answers."""

    def __init__(self, procs, twist=lambda answer: answer):
        self.free, self.queue, self.on, self.twist, self.seen = set(range(procs)), [], {}, twist, []

    def __call__(self, message):
        message, events = json.loads(message), []
        for event in message["events"]:
            data = event["data"]
            self.seen.append(event["type"])
            if event["type"] == "JOB_SUBMITTED":
                self.queue.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.free |= self.on.pop(data["job_id"])
        while self.queue and self.queue[0][1] <= len(self.free):
            job, procs = self.queue.pop(0)
            self.on[job] = set(sorted(self.free)[:procs])
            self.free -= self.on[job]
            alloc = " ".join(map(str, sorted(self.on[job])))
            events.append({"timestamp": message["now"], "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}})
        return self.twist(json.dumps({"now": message["now"], "events": events}).encode())


def test_first_come_first_served__is_fcfs(jobs):
    scheduler, server = FirstCome(16), BatsimServer(jobs)
    schedule = server.run(scheduler)
    assert np.array_equal(schedule.start, wt.simulate(jobs, "fcfs").start)
    assert (scheduler.seen[0], scheduler.seen[-1], scheduler.seen.count("JOB_COMPLETED")) == ("SIMULATION_BEGINS", "SIMULATION_ENDS", 60)
    rows = server.table(schedule)
    assert [row["starting_time"] for row in sorted(rows, key=lambda row: row["job_id"])] == schedule.start[np.argsort(jobs.job_id)].tolist()
    assert server.totals(rows)["nb_jobs_success"] == 60


def answer(kind, **data):
    return json.dumps({"now": 0, "events": [{"timestamp": 0, "type": kind, "data": data}]}).encode()


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (b"", "wrong_message"),
        (b"\xff\xfe", "wrong_message"),
        (b"[" * 100_000, "wrong_message"),
        (b'{"now": 0}', "wrong_message"),
        (b'{"now": 0, "events": [{"timestamp": NaN, "type": "NOTIFY"}]}', "wrong_message"),
        (b'{"now": 0, "events": [{"timestamp": 1e300, "type": "NOTIFY"}]}', "wrong_message"),
        (answer("EXECUTE_JOB", job_id="w0!1"), "wrong_message"),
        (answer("EXECUTE_JOB", job_id="w0!1", alloc="0-99999999999"), "wrong_processors"),
        (answer("EXECUTE_JOB", job_id="w0!1", alloc="0"), "not_waiting"),
        (answer("EXECUTE_JOB", job_id="w1!1", alloc="0"), "unknown_job"),
        (answer("EXECUTE_JOB", job_id="w0!1", alloc="0", mapping={"0": "0"}), "unsupported_event"),
        (answer("SET_RESOURCE_STATE", resources="0", state="1"), "unsupported_event"),
        (answer("CALL_ME_LATER", timestamp=0), "past_time"),
        (answer("SING"), "unsupported_event"),
        (answer("S" * 1000), "unsupported_event"),
    ],
    ids=range(15),
)
def test_wrong_answers__are_errors_of_one_line(jobs, reply, code):
    with pytest.raises(wt.PolicyError) as error:
        BatsimServer(jobs).run(lambda message: reply)
    assert error.value.code == code
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_kill_reject_and_calls():
    jobs = wt.Workload.from_arrays(submit=[0, 0], runtime=[100, 100], procs=[1, 1], machine_procs=2)
    heard = []

    def scheduler(message):
        message = json.loads(message)
        heard.extend((message["now"], event["type"]) for event in message["events"])
        events = []
        for event in message["events"]:
            if event["type"] == "JOB_SUBMITTED" and event["data"]["job_id"] == "w0!1":
                events += [("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "1"}), ("CALL_ME_LATER", {"timestamp": 30.5})]
            elif event["type"] == "REQUESTED_CALL":
                events += [("KILL_JOB", {"job_ids": ["w0!1"]}), ("REJECT_JOB", {"job_id": "w0!2"})]
        decided = [{"timestamp": message["now"], "type": kind, "data": data} for kind, data in events]
        return json.dumps({"now": message["now"], "events": decided}).encode()

    server = BatsimServer(jobs)
    schedule = server.run(scheduler)
    assert (schedule.start.tolist(), schedule.end.tolist(), server.states) == ([0], [31], {0: "COMPLETED_KILLED", 1: "REJECTED"})
    assert (31.0, "JOB_KILLED") in heard
    assert server.table(schedule)[0]["allocated_resources"] == "1"


def test_a_scheduler_that_starts_nothing__ends_in_an_error(jobs):
    with pytest.raises(EngineError) as error:
        BatsimServer(jobs).run(lambda message: b'{"now": 0, "events": []}')
    assert error.value.code == "endless_wait"


def test_spans__are_read_as_written():
    assert spans([0, 1, 2, 5, 7, 8], " ") == "0-2 5 7-8"
    assert members("0-2 5,7-8", 9) == [0, 1, 2, 5, 7, 8]
    assert len(members("0-15 " * 1000, 16)) < 50, "no more than any job needs"


def test_workload__is_read_as_written(jobs, tmp_path):
    write_workload(tmp_path / "jobs.json", jobs)
    again = read_log(tmp_path / "jobs.json").to_workload()
    assert again.machine_procs == 16
    assert np.array_equal(again.submit, jobs.submit - jobs.submit[0])
    for name in ("job_id", "runtime", "requested", "procs"):
        assert np.array_equal(getattr(again, name), getattr(jobs, name)), name


def test_no_scheduler__is_reported_in_time(jobs):
    pytest.importorskip("zmq")
    exchange, close = zmq_exchange(f"tcp://127.0.0.1:{free_port()}", 0.2)
    try:
        with pytest.raises(EngineError) as error:
            BatsimServer(jobs).run(exchange)
    finally:
        close()
    assert error.value.code == "no_answer"


class Listener:
    """A scheduler that listens at `endpoint` in a thread; it dies instead of sending the answer of this number."""

    def __init__(self, scheduler, dies=None):
        zmq = pytest.importorskip("zmq")
        self.context, self.left = zmq.Context(), threading.Event()
        self.socket = self.context.socket(zmq.REP)
        self.endpoint = f"tcp://127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.thread = threading.Thread(target=self._listen, args=(scheduler, dies))

    def _listen(self, scheduler, dies):
        answers = 0
        while not self.left.is_set() and answers != dies:
            if self.socket.poll(50):
                message = self.socket.recv()
                answers += 1
                if answers != dies:
                    answer = scheduler(message)
                    self.socket.send_multipart(answer if isinstance(answer, list) else [answer])
        self.socket.close(0)

    def __enter__(self):
        self.thread.start()
        return self.endpoint

    def __exit__(self, *error):
        self.left.set()
        self.thread.join(10)
        self.context.term()


@pytest.mark.slow
def test_more_than_10_000_messages__are_exchanged(capsys, tmp_path):
    jobs, log = wt.workloads.Lublin99().generate(6000, 64, 0.8, seed=5), tmp_path / "jobs.swf"
    wt.logs.write_swf(log, jobs)
    with Listener(FirstCome(64)) as endpoint:
        status, output, errors = call(capsys, "serve", str(log), "--endpoint", endpoint, "--json")
    record = json.loads(output)
    assert (status, record["nb_jobs_success"]) == (0, 6000), errors
    assert record["messages"] > 10_000


def test_scheduler_that_dies__is_reported_at_once_in_one_line(jobs, capsys, tmp_path):
    log = tmp_path / "jobs.swf"
    wt.logs.write_swf(log, jobs)
    with Listener(FirstCome(16), dies=20) as endpoint:
        status, output, errors = call(capsys, "serve", str(log), "--endpoint", endpoint, "--timeout", "3600")
    assert (status, output, len(errors.splitlines())) == (1, "", 1)
    assert "closed the connection" in errors


def test_answers_in_parts__are_read_as_one(jobs):
    scheduler = FirstCome(16)
    with Listener(lambda message: list(scheduler(message).partition(b","))) as endpoint:
        exchange, close = zmq_exchange(endpoint, 30)
        try:
            schedule = BatsimServer(jobs).run(exchange)
        finally:
            close()
    assert np.array_equal(schedule.start, wt.simulate(jobs, "fcfs").start)


def test_message_that_is_too_long__is_not_read(jobs):
    with Listener(lambda message: bytes(MOST_BYTES + 1)) as endpoint:
        exchange, close = zmq_exchange(endpoint, 30)
        try:
            with pytest.raises(EngineError) as error:
                BatsimServer(jobs).run(exchange)
        finally:
            close()
    assert error.value.code == "connection_lost"


@pytest.mark.slow
def test_evalys__draws_the_schedule(jobs, tmp_path):
    """evalys 4.0.7 installs a package named `tests`, which hides this one, so it is in a folder of its own."""
    folder = os.environ.get("WALLTIME_EVALYS")
    if folder is None:
        pytest.skip("install evalys==4.0.7, seaborn and procset with pip install --no-deps --target FOLDER, and set WALLTIME_EVALYS=FOLDER")
    server = BatsimServer(jobs)
    write_rows(tmp_path / "out_jobs.csv", server.table(server.run(FirstCome(16))))
    code = (
        "import sys, matplotlib; matplotlib.use('Agg')\n"
        "from evalys.jobset import JobSet\n"
        "from matplotlib import pyplot\n"
        "jobs = JobSet.from_csv(sys.argv[1], resource_bounds=(0, 15))\n"
        "jobs.gantt(); pyplot.savefig(sys.argv[2])\n"
        "print(len(jobs.df), jobs.utilisation.load.max(), jobs.utilisation.area.sum())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out_jobs.csv"), str(tmp_path / "gantt.png")]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": folder}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    busy = int((jobs.procs * np.minimum(jobs.runtime, jobs.requested)).sum())
    count, most, area = done.stdout.split()
    assert (int(count), float(area)) == (60, busy)
    assert 0 < float(most) <= 16
    assert (tmp_path / "gantt.png").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["easyBackfill", "schedEasySjfBackfill", "schedFcfs"])
def test_schedulers_of_pybatsim__schedule_a_log(jobs, tmp_path, capsys, scheduler):
    pytest.importorskip("zmq")
    program = shutil.which("pybatsim", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("pybatsim is not installed; install pybatsim==3.2.1")
    endpoint, log = f"tcp://127.0.0.1:{free_port()}", tmp_path / "jobs.swf"
    wt.logs.write_swf(log, jobs)
    # schedFcfs prints 300 KB: a pipe that nobody reads would stop it after 11 jobs
    with (tmp_path / "printed").open("w") as printed:
        client = subprocess.Popen([program, scheduler, "-s", endpoint, "-v", "error"], cwd=tmp_path, stdout=printed, stderr=printed)
        try:
            status, output, errors = call(capsys, "serve", str(log), "--endpoint", endpoint, "--out", str(tmp_path / "out"), "--json")
        finally:
            client.kill()
            client.wait()
    assert status == 0, (errors, (tmp_path / "printed").read_text())
    record = json.loads(output)
    assert record["nb_jobs_success"] == record["nb_jobs_finished"] == len(jobs)
    with (tmp_path / "out_jobs.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["job_id"]))
    given = [members(row["allocated_resources"], 16) for row in rows]
    assert [len(one) for one in given] == jobs.procs.tolist()
    starts = np.array([int(row["starting_time"]) for row in rows])
    ends = np.array([int(row["finish_time"]) for row in rows])
    assert wt.audit(jobs, {"job_id": jobs.job_id, "start": starts, "end": ends}).ok
    if scheduler == "schedFcfs":  # on consecutive processors only
        assert all(one[-1] - one[0] == len(one) - 1 for one in given)
        assert (np.diff(starts[np.argsort(jobs.submit, kind="stable")]) >= 0).all()
    else:
        assert np.array_equal(starts, wt.simulate(jobs, "easy").start)
