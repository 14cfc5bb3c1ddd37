"""Requests that are only in the command lines of jobs."""

import polars as pl
import pytest

from walltime.logs.formats import read_log
from walltime.logs.slurm.command_line import command_requests
from walltime.machine.constraints import satisfies


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-N 2 -c4 --ntasks-per-node=8", {"most_nodes": 2, "cpus_per_task": 4, "tasks_per_node": 8}),
        ("--nodes=1-3 --mem=24G", {"most_nodes": 3, "mem_mb_per_node": 24 * 1024}),
        ("--mem-per-cpu 2000", {"mem_mb_per_cpu": 2000}),
        ("--mem=0", {}),
        ("--gres=gpu:a100:2,shard:3", {"gpus_per_node": 2}),
        ("--gres=gpu:v100", {"gpus_per_node": 1}),
        ("--gres=shard:3", {}),
        ("-G 6", {"gpus_per_node": 0, "GPUS": 6}),
        ("--gpus=6 --gpus-per-node=a100:2", {"gpus_per_node": 2, "GPUS": 6}),
        ("--gpus-per-task=1", {"gpus_per_task": 1}),
        ("--array=1-10%3", {"array_limit": 3}),
        ("-a 1-10", {}),
        ("--nice job.sh", {"nice": 100}),
        ("--nice=-50", {"nice": -50}),
        ("--exclusive", {"exclusive": 1}),
        ("--exclusive=user", {"exclusive": 2}),
        ("--exclusive=mcs", {}),
        ("--spread-job -N2", {"most_nodes": 2, "spread": 1}),
        ("--wrap -c4", {}),
        ("job.sh --mem=1", {}),
    ],
)
def test_command_requests(options, expected):
    found, _ = command_requests(pl.Series(["sbatch job.sh", f"sbatch -t 5 {options}"]))
    assert all(values[0] == -1 for values in found.values())
    assert {name: int(values[1]) for name, values in found.items() if values[1] != -1} == expected


def test_command_requests__include_licences():
    lines = pl.Series(["sbatch -L matlab:2,idl job.sh", "sbatch --licenses=matlab x", "sbatch x -L no"])
    assert command_requests(lines)[1]["licenses"].to_list() == ["matlab:2,idl", "matlab", ""]


def test_command_requests__include_constraints():
    lines = pl.Series(["sbatch -C intel|amd job.sh", "sbatch --constraint=fast x", "sbatch x -C no", None])
    assert command_requests(lines)[1]["constraints"].to_list() == ["intel|amd", "fast", "", ""]


def test_reservation__of_the_command_line_fills_a_blank_field(tmp_path):
    row = "2026-03-09T10:00:00|2026-03-09T10:00:00|2026-03-09T10:05:00|10|1|COMPLETED"
    lines = ["JobIDRaw|Submit|Start|End|Timelimit|AllocCPUS|State|Reservation|SubmitLine"]
    lines += [
        f"{k}|{row}|{given}|sbatch {options} job.sh"
        for k, given, options in ((1, "", "--reservation=lab"), (2, "course", "--reservation lab"), (3, "", ""))
    ]
    (tmp_path / "jobs.txt").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "jobs.txt")
    found = log.to_workload(procs=1)
    assert [found.origin.name_of("reservation", number) for number in found.columns["reservation"].tolist()] == ["lab", "course", "-1"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("a", True),
        ("c", False),
        ("a&c|b", True),
        ("b|c&d", False),
        ("b|(c&d)", True),
        ("(c|a)&b", True),
        ("[c|b]", True),
        ("c*2&d*1", False),
        ("c*2&a*1", True),
        ("", True),
    ],
)
def test_satisfies__from_left_to_right(constraint, expected):
    assert satisfies({"a", "b"}, constraint) is expected


def test_gpus__of_the_command_line_where_the_accounting_has_none(tmp_path):
    options = ("--gres=gpu:a100:2 -N3", "-G4", "--gpus-per-task=v100:1 -c2", "--gres=shard:3", "", "--gres=gpu:2")
    tres = ["cpu=8,node=3", *["cpu=8,node=1"] * 4, "cpu=8,node=1,gres/gpu=1"]
    row = "2026-03-09T10:00:00|2026-03-09T10:00:00|2026-03-09T10:05:00|10|8|8|COMPLETED"
    lines = ["JobIDRaw|Submit|Start|End|Timelimit|AllocCPUS|ReqCPUS|State|ReqTRES|AllocTRES|SubmitLine"]
    lines += [f"{k}|{row}|{has}|{has}|sbatch {more} job.sh" for k, (has, more) in enumerate(zip(tres, options, strict=True), 1)]
    (tmp_path / "jobs.txt").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "jobs.txt")
    assert log.column("gpus").tolist() == log.column("requested_gpus").tolist() == [6, 4, 4, -1, -1, 1]
    assert log.column("requested_gpu_type").tolist() == [1, -1, 2, -1, -1, -1]
    assert log.names["requested_gpu_type"] == ("a100", "v100")
    assert log.changed["gpus_of_line"] == 3
