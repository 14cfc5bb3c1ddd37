"""Batsim's protocol: a simulated machine whose scheduler is another program, such as one of pybatsim.

One message is sent for each instant at which something happens, and one is received. Jobs run for their effective runtimes; network,
storage and energy are not simulated, and requests for them are errors.

Source: https://batsim.readthedocs.io/en/latest/protocol.html
"""

import csv
import heapq
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from walltime.errors import EngineError, PolicyError
from walltime.files import whole_file
from walltime.schedule.schedule import Schedule
from walltime.simulation.decisions import DecidedSimulation
from walltime.wording import shown
from walltime.workload import Workload

WORKLOAD = "w0"
"""The name of the workload, which is the first part of a job's identifier."""
MOST_BYTES = 64 * 2**20
"""Maximum length of a message that is read, bytes."""
MOST_IDLE = 10_000
"""Maximum number of calls of the scheduler while no job runs or will arrive."""
REFUSED = {
    "SET_RESOURCE_STATE": "the processors have no power states",
    "QUERY": "no energy is simulated",
    "REGISTER_JOB": "jobs are the log's",
    "REGISTER_PROFILE": "jobs are the log's",
    "TO_JOB_MSG": "jobs receive no messages",
    "CHANGE_JOB_STATE": "jobs' states follow from their runs",
    "SET_JOB_METADATA": "jobs have no metadata",
    "RESOURCES_ADDED": "the machine does not change",
    "RESOURCES_REMOVED": "the machine does not change",
}
"""Events of a scheduler that are rejected, and the reason."""
NO_PLACES = ("mapping", "additional_io_job", "storage_mapping")
"""Keys that the start of a job must not have, because they concern networks or storage."""
Exchange = Callable[[bytes], bytes]
"""A function that sends a message and returns the answer."""


class BatsimServer:
    """A simulation whose decisions come as messages of Batsim's protocol.

    `exchange` sends a message and returns the answer. Raises PolicyError for an answer that breaks the protocol or the rules of the
    machine, EngineError if jobs would wait forever.
    """

    def __init__(self, workload: Workload, overrun: str = "kill"):
        self.simulation = DecidedSimulation(workload, overrun=overrun)
        self.workload, self.messages = workload, 0
        self.states: dict[int, str] = {}
        self._calls: list[int] = []
        self._events: list[dict[str, Any]] = []
        self._last = False
        runtime, requested = np.asarray(self.simulation._runtime), workload.requested
        cut = "COMPLETED_WALLTIME_REACHED"
        self._final = np.where((workload.runtime > requested) & (runtime == requested), cut, "COMPLETED_SUCCESSFULLY").tolist()

    def run(self, exchange: Exchange, progress: Callable[[int], None] | None = None) -> Schedule:
        """Simulate until all jobs have ended or were rejected, and return the schedule."""
        simulation = self.simulation
        self._note("SIMULATION_BEGINS", self._machine())
        self._ask(exchange)
        idle = 0
        while not simulation.done:
            idle = idle + 1 if simulation.next_event is None else 0
            if idle > MOST_IDLE:
                raise EngineError(
                    f"the scheduler was called {MOST_IDLE:,} times while no job ran, and started none; check its decisions", "endless_wait"
                )
            self._go_on(None if not self._calls else self._calls[0])
            if self._calls and self._calls[0] <= simulation.now:
                while self._calls and self._calls[0] <= simulation.now:
                    heapq.heappop(self._calls)
                self._note("REQUESTED_CALL", {})
            self._ask(exchange)
            if progress is not None:
                progress(len(self.states))
        self._note("SIMULATION_ENDS", {})
        self._ask(exchange)
        return simulation.finish()

    def _machine(self) -> dict[str, Any]:
        """Return the data of the first event: the processors, and a profile for each runtime."""
        count, simulation = self.workload.machine_procs, self.simulation
        hosts = [{"id": k, "name": f"p{k}", "state": "idle", "properties": {}, "zone_properties": {}} for k in range(count)]
        options = ("dynamic-jobs-enabled", "dynamic-jobs-acknowledged", "profile-reuse-enabled", "profiles-forwarded-on-submission")
        return {
            **{"nb_resources": count, "nb_compute_resources": count, "nb_storage_resources": 0},
            **{"allow_compute_sharing": False, "allow_storage_sharing": False},
            "config": {**dict.fromkeys(options, False), "forward-unknown-events": False, "redis-enabled": False},
            **{"compute_resources": hosts, "storage_resources": []},
            "workloads": {WORKLOAD: self.workload.origin.name},
            "profiles": {WORKLOAD: profiles(simulation._runtime)},
        }

    def name_of(self, k: int) -> str:
        """Return the identifier of a job by its index."""
        return f"{WORKLOAD}!{self.workload.job_id[k]}"

    def _note(self, kind: str, data: Mapping[str, Any]) -> None:
        self._events.append({"timestamp": float(self.simulation.now), "type": kind, "data": data})

    def _go_on(self, until: int | None) -> None:
        """Advance to the next instant, at most to `until` (s), and record its events."""
        happened = self.simulation.advance(until)
        for k in happened.ended:
            self._completed(k, self._final[k])
        for k in happened.submitted:
            self._note("JOB_SUBMITTED", {"job_id": self.name_of(k), "job": batsim_job(self.workload, k, self.simulation._runtime[k])})
        if not self._last and self.simulation._arrived == len(self.workload):
            self._last = True
            self._note("NOTIFY", {"type": "no_more_static_job_to_submit"})

    def _completed(self, k: int, state: str) -> None:
        self.states[k] = state
        alloc = spans(self.simulation._given[k], " ")
        self._note("JOB_COMPLETED", {"job_id": self.name_of(k), "job_state": state, "return_code": 0, "alloc": alloc})

    def _ask(self, exchange: Exchange) -> None:
        """Send the events, and carry out the decisions in the answer."""
        message = {"now": float(self.simulation.now), "events": self._events}
        self._events = []
        self.messages += 1
        answer = exchange(json.dumps(message).encode())
        where = f"the scheduler's answer {self.messages}"
        try:
            decisions = json.loads(answer, parse_constant=_no_number)["events"]
            kinds = [(str(one["type"]), one.get("data") or {}, _seconds(one["timestamp"])) for one in decisions]
            if not all(isinstance(data, Mapping) for _, data, _ in kinds):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            remedy = "send an object with the keys now and events, each event with timestamp, type and data"
            raise PolicyError(f"{where} is not a message of Batsim's protocol: {shown(answer[:60])}; {remedy}", "wrong_message") from error
        for kind, data, moment in kinds:
            while self.simulation.now < moment:
                self._go_on(moment)
            try:
                self._decide(kind, data)
            except (PolicyError, KeyError, TypeError, ValueError) as error:
                text = str(error) if isinstance(error, PolicyError) else f"wrong data {shown(dict(data))}; see Batsim's protocol"
                code = error.code if isinstance(error, PolicyError) else "wrong_message"
                raise PolicyError(f"{where}, {kind[:40]}: {text}", code) from error

    def _decide(self, kind: str, data: Mapping[str, Any]) -> None:
        simulation = self.simulation
        match kind:
            case "EXECUTE_JOB":
                if place := next((name for name in NO_PLACES if data.get(name)), None):
                    raise PolicyError(
                        f"{place} needs a network or storage, which are not simulated; use Batsim itself", "unsupported_event"
                    )
                simulation.start(self._number(data["job_id"]), members(data["alloc"], self.workload.machine_procs))
            case "REJECT_JOB":
                number = self._number(data["job_id"])
                simulation.reject(number)
                self.states[simulation.index_of(number)] = "REJECTED"
            case "KILL_JOB":
                numbers = [self._number(one) for one in data["job_ids"]]
                running = [number for number in numbers if self.states.get(simulation.index_of(number)) is None]
                for number in running:
                    simulation.kill(number)
                    self._completed(simulation.index_of(number), "COMPLETED_KILLED")
                progress = {self.name_of(simulation.index_of(number)): {"profile": "", "progress": 0.0} for number in running}
                self._note("JOB_KILLED", {"job_ids": list(progress), "job_progress": progress})
            case "CALL_ME_LATER":
                moment = _seconds(data["timestamp"])
                if moment <= simulation.now:
                    raise PolicyError(f"the time {moment} s is not later than now, {simulation.now} s; choose a later one", "past_time")
                heapq.heappush(self._calls, moment)
            case "NOTIFY":
                pass  # no further jobs will be registered; this is always true
            case _:
                why = REFUSED.get(kind, "the protocol has no such event")
                raise PolicyError(
                    f"not supported, as {why}. Valid events: EXECUTE_JOB, REJECT_JOB, KILL_JOB, CALL_ME_LATER, NOTIFY", "unsupported_event"
                )

    def _number(self, name: object) -> int:
        workload, _, number = str(name).partition("!")
        if workload != WORKLOAD or not number.isdecimal() or len(number) > 18:
            raise PolicyError(f"there is no job {shown(name)}; identifiers are as in {WORKLOAD}!1", "unknown_job")
        return int(number)

    def table(self, schedule: Schedule) -> list[dict[str, Any]]:
        """Return the rows of Batsim's out_jobs.csv, by end; `schedule`: as `run` returns it."""
        index = {number: k for k, number in enumerate(self.workload.job_id.tolist())}
        rows = []
        for number, submit, start, end in zip(
            *(a.tolist() for a in (schedule.workload.job_id, schedule.submit, schedule.start, schedule.end)), strict=True
        ):
            k = index[number]
            state, ran, requested = self.states[k], end - start, float(self.workload.requested[k])
            rows.append(
                {
                    **{"job_id": number, "workload_name": WORKLOAD, "profile": profile_name(self.simulation._runtime[k])},
                    **{"submission_time": submit, "requested_number_of_resources": int(self.workload.procs[k])},
                    **{"requested_time": requested, "success": int(state == "COMPLETED_SUCCESSFULLY"), "final_state": state},
                    **{"starting_time": start, "execution_time": ran, "finish_time": end, "waiting_time": start - submit},
                    **{"turnaround_time": end - submit, "stretch": (end - submit) / max(ran, 1)},
                    **{"allocated_resources": spans(self.simulation._given[k], " "), "consumed_energy": -1, "metadata": ""},
                }
            )
        return sorted(rows, key=lambda row: (row["finish_time"], row["job_id"]))

    def totals(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the only row of Batsim's out_schedule.csv."""
        states = list(self.states.values())
        count, good, machine = len(rows), states.count("COMPLETED_SUCCESSFULLY"), self.workload.machine_procs
        makespan = max((row["finish_time"] for row in rows), default=0)
        busy = sum(row["execution_time"] * row["requested_number_of_resources"] for row in rows)
        means = {
            f"{what}_{name}": function([row[column] for row in rows]) if rows else 0
            for name, column in (("slowdown", "stretch"), ("turnaround_time", "turnaround_time"), ("waiting_time", "waiting_time"))
            for what, function in (("max", max), ("mean", lambda values: sum(values) / len(values)))
        }
        ends = {"nb_jobs": len(states), "nb_jobs_finished": count, "nb_jobs_success": good, "nb_jobs_rejected": states.count("REJECTED")}
        killed = {"nb_jobs_killed": count - good, "success_rate": good / max(len(states), 1)}
        times = {"makespan": makespan, "nb_computing_machines": machine, "time_computing": busy, "time_idle": machine * makespan - busy}
        return {**ends, **killed, **means, **times, "consumed_joules": 0}


def profile_name(runtime: int) -> str:
    """Return the name of the profile of a runtime."""
    return f"delay{runtime}"


def profiles(runtimes: Sequence[int]) -> dict[str, Any]:
    """Return Batsim's delay profiles for these runtimes, s."""
    return {profile_name(one): {"type": "delay", "delay": one} for one in dict.fromkeys(runtimes)}


def batsim_job(workload: Workload, k: int, runtime: int) -> dict[str, Any]:
    """Return a job as Batsim describes it."""
    walltime = int(workload.requested[k])
    own = {"id": f"{WORKLOAD}!{workload.job_id[k]}", "subtime": int(workload.submit[k]), "walltime": walltime}
    return {**own, "res": int(workload.procs[k]), "profile": profile_name(runtime)}


def write_workload(path: Path, workload: Workload) -> None:
    """Write a workload as Batsim's JSON, with the runtime of each job as a delay profile. Raises OutputError."""
    runtimes = workload.runtime.tolist()
    jobs = [{**batsim_job(workload, k, runtimes[k]), "id": str(workload.job_id[k])} for k in range(len(workload))]
    document = {"nb_res": workload.machine_procs, "jobs": jobs, "profiles": profiles(runtimes)}
    with whole_file(path) as file:
        file.write(json.dumps(document, indent=1).encode())


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV; raises OutputError."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["job_id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def spans(numbers: Sequence[int], between: str) -> str:
    """Return sorted numbers as Batsim writes them: 0-3 7."""
    parts: list[list[int]] = []
    for one in numbers:
        if parts and one == parts[-1][1] + 1:
            parts[-1][1] = one
        else:
            parts.append([one, one])
    return between.join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def members(text: object, most: int) -> list[int]:
    """Parse spans of numbers such as 0-3 7 or 0-3,7; raises PolicyError for other texts, and for numbers that are not below `most`."""
    numbers: list[int] = []
    for part in str(text).replace(",", " ").split():
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or max(len(first), len(last)) > 18 or int(last or first) >= most:
            raise PolicyError(f"{shown(part)} does not name processors from 0 to {most - 1}; write them as in 0-3 7", "wrong_processors")
        numbers += range(int(first), int(last or first) + 1)[: most + 1 - len(numbers)]  # no more than is too many for any job
    return numbers


def _seconds(moment: object) -> int:
    """Return a time in whole seconds, rounded up; raises ValueError."""
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not 0 <= moment < 2**53:
        raise ValueError(moment)
    return math.ceil(moment)


def _no_number(text: str) -> float:
    raise ValueError(text)


def zmq_exchange(endpoint: str, seconds: float) -> tuple[Exchange, Callable[[], None]]:
    """Return a function that exchanges messages with a scheduler at an endpoint of ZeroMQ, and one that closes the connection.

    The exchange raises EngineError if no answer comes within this many seconds, or if the connection is lost. Raises PolicyError if
    pyzmq is missing, or for a wrong endpoint.
    """
    try:
        import zmq
    except ModuleNotFoundError as error:
        raise PolicyError("Batsim's protocol needs pyzmq; install walltime[batsim]", "missing_package") from error
    context = zmq.Context()
    socket = context.socket(zmq.REQ)
    socket.linger, socket.maxmsgsize = 0, MOST_BYTES
    losses, poller = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED), zmq.Poller()
    for one in (socket, losses):
        poller.register(one, zmq.POLLIN)

    def close() -> None:
        socket.disable_monitor()
        socket.close()
        losses.close()
        context.term()

    def exchange(message: bytes) -> bytes:
        socket.send(message)
        happened = dict(poller.poll(round(1000 * seconds)))
        if socket in happened or socket.poll(0):
            return b"".join(socket.recv_multipart())
        if losses in happened:
            why = f"the scheduler at {endpoint} closed the connection, or answered with more than {MOST_BYTES >> 20} MiB"
            raise EngineError(f"{why}; read the scheduler's own messages", "connection_lost")
        why = f"no answer from a scheduler at {endpoint} within {seconds:g} s"
        raise EngineError(f"{why}; check that it runs, and that its output is read, or raise the timeout", "no_answer")

    try:
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        close()
        raise PolicyError(
            f"{shown(endpoint)} is not a ZeroMQ endpoint; write one such as tcp://localhost:28000", "wrong_endpoint"
        ) from error
    return exchange, close
