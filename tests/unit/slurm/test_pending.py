"""Why waiting jobs of a snapshot are pending: one small machine with GPUs and partitions, and every kind of reason by hand."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.cli import call
from tests.unit.slurm.test_start_times import NOW, job, past, taken
from walltime.machine import Limit, Machine, Outage, Partition, Pool, Window
from walltime.slurm import Draws, start_times

EASY = Machine(
    (Pool("cores", 2, 8), Pool("cards", 2, 8, 4)),
    (Partition("cpu", ("cores",)), Partition("gpu", ("cards",))),
    name="two",
    policy="easy",
)
SLURM = replace(EASY, policy="slurm", pools=(Pool("cores", 2, 8, memory=16_000), Pool("cards", 2, 8, 4, memory=64_000)))


def reasons(*jobs, machine=EASY):
    found = start_times(taken(*jobs, machine=machine), past([1800] * 20), draws=Draws(2, arrivals=False))
    return {one.job.label: one.pending for one in found.jobs}


def gpus(number, count, **more):
    return job(number, **({"cpus": 1, "gpus": count, "node_gpus": 0, "partition": "gpu"} | more))


@pytest.mark.parametrize("machine", [EASY, SLURM])
def test_resources__names_the_gpus_that_are_short_and_the_jobs_ahead(machine):
    found = reasons(
        gpus(1, 4, start=NOW - 100), gpus(2, 2, start=NOW - 100), gpus(3, 4, priority=9), gpus(4, 4, priority=5), machine=machine
    )
    assert {label: (one.kind, one.ahead) for label, one in found.items()} == {"3": ("resources", 0), "4": ("resources", 1)}
    assert found["3"].text == "4 GPUs needed, 2 free in the partition gpu"
    assert "processor" not in found["4"].text


@pytest.mark.parametrize("machine", [EASY, SLURM])
def test_resources__processors_are_those_of_the_partition(machine):
    found = reasons(job(1, 12, partition="cpu", start=NOW - 100), job(2, 6, partition="cpu"), gpus(3, 1), machine=machine)
    assert found["2"].text == "6 processors needed, 4 free in the partition cpu"
    assert found["3"].kind == "starts"


def test_resources__memory_of_single_nodes():
    runs = [job(k, 1, partition="cpu", memory_mb=10_000, node_memory_mb=10_000, start=NOW - 100) for k in (1, 2)]
    found = reasons(*runs, job(3, 1, partition="cpu", memory_mb=8000, node_memory_mb=8000), machine=SLURM)
    assert found["3"].kind == "resources"
    assert "memory" in found["3"].text


def test_priority__free_but_kept_for_jobs_ahead():
    found = reasons(
        job(1, 12, partition="cpu", start=NOW - 100), job(2, 16, partition="cpu", priority=9), job(3, 4, partition="cpu", limit=90_000)
    )
    assert (found["2"].kind, found["3"].kind, found["3"].ahead) == ("resources", "priority", 1)


def test_limit__is_named_with_its_use():
    machine = replace(EASY, limits=(Limit(by=("user",), second=4),))
    found = reasons(gpus(1, 4, start=NOW - 100), gpus(2, 1), gpus(3, 1, user="bob"), machine=machine)
    assert (found["2"].kind, found["3"].kind) == ("limit", "starts")
    assert "4 GPUs (4 in use)" in found["2"].text


def test_reservation__an_outage_that_began_or_begins_before_the_jobs_end():
    now = replace(EASY, outages=(Outage("cores", datetime(2026, 11, 18, 11, 0), datetime(2026, 11, 18, 15, 0), nodes=2),))
    soon = replace(
        EASY,
        outages=(
            Outage(
                "cores", datetime(2026, 11, 18, 11, 30), datetime(2026, 11, 18, 15, 0), nodes=2, announced=datetime(2026, 11, 18, 10, 0)
            ),
        ),
    )
    for machine in (now, soon):
        found = reasons(job(1, 4, partition="cpu"), gpus(2, 1), machine=machine)
        assert (found["1"].kind, found["2"].kind) == ("reservation", "starts")


def test_hours__of_the_site():
    found = reasons(job(1, 4, partition="cpu"), gpus(2, 1), machine=replace(EASY, windows=(Window("10:00", "12:00", partition="cpu"),)))
    assert (found["1"].kind, found["2"].kind) == ("hours", "starts")


def test_reservation__matters_more_than_running_jobs_if_nothing_else_could_help():
    """Both nodes are busy and will be out at 11:30: the job of an hour waits for the outage, the job of ten minutes for processors."""
    at = {"begin": datetime(2026, 11, 18, 11, 30), "end": datetime(2026, 11, 18, 15, 0), "announced": datetime(2026, 11, 18, 10, 0)}
    for machine in (EASY, SLURM):
        found = start_times(
            taken(
                job(1, 16, partition="cpu", start=NOW - 100, limit=600),
                job(2, 4, partition="cpu", limit=3600),
                job(3, 4, partition="cpu", limit=600),
                machine=replace(machine, outages=(Outage("cores", nodes=2, **at),)),
            ),
            past([1800] * 20),
            draws=Draws(2, arrivals=False),
        )
        assert {one.job.label: one.pending.kind for one in found.jobs} == {"2": "reservation", "3": "resources"}
        end = int(at["end"].replace(tzinfo=UTC).timestamp()) - NOW
        assert dict(zip([one.job.label for one in found.jobs], found.earliest.tolist(), strict=True)) == {"2": end, "3": 0}


def test_begin_and_slurms_own_reason():
    found = reasons(
        job(1, 1, partition="cpu", eligible=NOW + 7200),
        job(3, 1, partition="cpu", reason="QOSMaxGRESPerUser"),
        job(4, 1, partition="cpu", reason="Priority"),
        job(5, 1, partition="cpu", reason="Licenses"),
    )
    assert {label: one.kind for label, one in found.items()} == {"1": "begin", "3": "limit", "4": "starts", "5": "other"}
    assert "QOSMaxGRESPerUser" in found["3"].text
    assert "next pass" not in found["3"].text + found["5"].text
    assert "Priority" not in found["4"].text


def test_apart__held_dependent_and_never():
    jobs = (
        job(2, left_out="held"),
        job(3, left_out="dependent", dependency="afterok:1"),
        job(4, 99, partition="cpu"),
        job(5, partition="cpu"),
        job(6, partition="cpu", left_out="closed"),
    )
    found = start_times(taken(*jobs, machine=EASY), past([]), draws=Draws(1, arrivals=False))
    assert [(one.label, why.kind) for one, why in found.apart] == [("2", "held"), ("3", "dependency"), ("4", "never"), ("6", "closed")]
    assert "afterok:1" in found.apart[1][1].text
    assert found.as_dict()["apart"][0]["pending"]["kind"] == "held"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pending")
    jobs = (gpus(1, 8, start=NOW - 100), gpus(2, 2), gpus(3, 1, user="bob"), job(4, left_out="held", user="carol"))
    taken(*jobs, machine=EASY).write(folder / "s.json")
    lines = "".join(f"{k} {k * 600} 0 1800 1 -1 -1 1 3600 -1 1 1 1 -1 -1 -1 -1 -1\n" for k in range(1, 60))
    (folder / "log.swf").write_text(f"; MaxProcs: 4\n; UnixStartTime: {NOW - 200_000}\n{lines}")
    return folder


def run(capsys, files, *more):
    given = ("slurm", "start-times", files / "s.json", "--history", files / "log.swf", "--samples", 2, "--replayed", 0)
    return call(capsys, *given, *more)


@pytest.mark.slow
def test_command__of_one_user_on_terminal_json_and_page(capsys, files):
    status, out, err = run(capsys, files, "--user", "alice", "--report", files / "p.html")
    assert (status, err) == (0, "")
    assert "GPUs needed" in " ".join(out.split())
    assert "bob" not in out
    assert "2 GPUs needed, 0 free" in (files / "p.html").read_text()
    found = json.loads(run(capsys, files, "--user", "bob", "--json")[1])
    assert [(one["job"], one["pending"]["kind"], one["pending"]["ahead"]) for one in found["jobs"]] == [("3", "resources", 1)]
    assert json.loads(run(capsys, files, "--user", "carol", "--json")[1])["apart"][0]["pending"]["kind"] == "held"
    assert json.loads(run(capsys, files, "--job", "4", "--json")[1])["apart"][0]["pending"]["kind"] == "held"


def test_command__a_user_without_waiting_jobs(capsys, files):
    status, _, err = run(capsys, files, "--user", "nobody")
    assert status == 2
    assert "nobody" in err
