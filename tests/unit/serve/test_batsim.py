"""Batsim's protocol: real schedulers of pybatsim, and clients that break the rules."""

import csv
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from walltime.errors import EngineError
from walltime.logs import read_log
from walltime.serve.batsim import BatsimServer, members, spans, write_workload, zmq_exchange


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
    ],
    ids=range(14),
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


@pytest.mark.slow
def test_easy_of_pybatsim__schedules_a_log(jobs, tmp_path, capsys):
    pytest.importorskip("zmq")
    program = shutil.which("pybatsim", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("pybatsim is not installed; install pybatsim==3.2.1")
    port, log = free_port(), tmp_path / "jobs.swf"
    wt.logs.write_swf(log, jobs)
    client = subprocess.Popen(
        [program, "easyBackfill", "-s", f"tcp://127.0.0.1:{port}", "-v", "error"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        arguments = [
            "serve",
            str(log),
            "--endpoint",
            f"tcp://127.0.0.1:{port}",
            "--out",
            str(tmp_path / "out"),
            "--timeout",
            "30",
            "--json",
        ]
        status, output, errors = call(capsys, *arguments)
    finally:
        client.kill()
        said = client.communicate()[0]
    assert status == 0, (errors, said)
    record = json.loads(output)
    assert record["nb_jobs_success"] == record["nb_jobs_finished"] == len(jobs)
    with (tmp_path / "out_jobs.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["job_id"]))
    columns = (("job_id", "job_id"), ("start", "starting_time"), ("end", "finish_time"))
    assert wt.audit(jobs, {name: np.array([int(row[theirs]) for row in rows]) for name, theirs in columns}).ok
    for row in rows:
        assert len(members(row["allocated_resources"], 16)) == int(row["requested_number_of_resources"])
