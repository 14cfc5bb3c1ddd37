"""Share of a real Slurm's starts for which the reference engine chooses the same nodes, in the state that the log records.

    python validation/node_choices.py FOLDER...

Each FOLDER has runs of a scenario: `cluster.txt` and `jobs.txt.gz` (of `walltime slurm cluster-command` and `sacct-command`), and, if the
log lacks NodeList, `sacct-full.txt`, a table of sacct with the fields JobIDRaw and NodeList. Every start of the log, also of a run that was
preempted, is one decision: the jobs that run at that second hold their recorded nodes, and the engine chooses nodes for the job. Starts of
the same second are in order of the recorded priority. If the backfill scheduler started a job, the engine first plans the jobs ahead of it
that wait at that second; where these plans leave no room, they are dropped. Nothing of a whole simulation enters, so means over runs cannot
hide a wrong rule.

A log has whole seconds, so its states have several readings: jobs that end in the second of the start have released their nodes or not,
and jobs ahead have been planned or not. Two shares are printed: of the first reading (ended, planned), and of any.

sacct records the nodes of a job, but not how many processors it has of each. Where no reading chooses the recorded nodes of a job, or two
readings choose them with different shares, its shares are guessed; the starts while such jobs run are left out of further shares.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import walltime as wt
from walltime.auditor.slurm_decisions import problem_of
from walltime.engine.reference.nodes import NOTHING, Block, Given, SlurmJob
from walltime.engine.reference.slurm import SlurmReference
from walltime.policy import Slurm
from walltime.simulation.nodes import place_on_nodes
from walltime.slurm.cluster import read_cluster
from walltime.slurm.records import expand

Array = np.ndarray
LOG, NODE_LISTS = "jobs.txt.gz", "sacct-full.txt"
"""The log of a run, and a table of sacct with the fields JobIDRaw and NodeList."""


class Decision(NamedTuple):
    """A start: the job's number, the nodes that it really got, and those chosen here, by the readings of the state; without room none.

    `is_known`: whether it is known what all running jobs hold of their nodes.
    """

    job: int
    real: tuple[str, ...]
    chosen: list[tuple[str, ...]]
    is_known: bool = True

    @property
    def same(self) -> bool:
        """Whether the first reading chooses the same nodes."""
        return self.real == self.chosen[0]

    @property
    def possible(self) -> bool:
        """Whether one of the readings chooses the same nodes."""
        return self.real in self.chosen


def decisions_of(run: Path) -> list[Decision]:
    """Return the decisions of a run, in the order of the starts; none if the nodes of its jobs are not recorded."""
    described, log = read_cluster(run / "cluster.txt"), run / LOG
    names = [name for pool in described.machine.pools for name in described.nodes[pool.name]]
    number_of = {name: k for k, name in enumerate(names)}
    jobs, placement, _ = place_on_nodes(wt.read(log, procs=described.machine.procs), described.machine)
    stand_in: Any = SimpleNamespace(workload=jobs, placement=placement, overrun="kill")
    engine = SlurmReference(problem_of(stand_in, Slurm()))
    backfilled = jobs.columns["sched_backfill"] == 1
    start = jobs.submit + jobs.columns["wait"]
    if "node_list" in jobs.columns:
        lists = [jobs.origin.name_of("node_list", number) for number in jobs.columns["node_list"].tolist()]
    elif not (run / NODE_LISTS).exists():
        return []
    else:
        of_job = _node_lists(run / NODE_LISTS)
        lists = [of_job[job] for job in jobs.job_id.tolist()]
    real = [np.array(sorted(number_of[name] for name in expand(one)), np.int64) for one in lists]
    decisions: list[Decision] = []
    guessed = set[int]()
    priority = jobs.columns.get("priority", np.zeros(len(jobs), np.int64))
    for k in np.lexsort((jobs.submit, -priority, start)).tolist():
        job, now = engine.jobs[k], int(start[k])
        engine.now = now
        _end(engine, now - 1)
        ahead = [other for other in engine.jobs if other.submit <= now and other.start < 0 and start[other.index] >= now]
        is_known = not any(other.index in guessed for other in engine.running)
        before = _choices(engine, job, ahead if backfilled[k] else [])
        ended = _end(engine, now)
        after = _choices(engine, job, ahead if backfilled[k] else [])
        found = [*after, *before]
        chosen = [tuple(names[n] for n in np.sort(given.nodes)) for given in found]
        decisions.append(Decision(int(jobs.job_id[k]), tuple(names[n] for n in real[k]), chosen, is_known))
        same = [given for given in found if np.array_equal(np.sort(given.nodes), real[k])]
        if len({given.amounts[:, np.argsort(given.nodes)].tobytes() for given in same}) > 1:
            guessed.add(k)
        job.given = same[0] if same else _held(engine, job, real[k], guessed)
        _resume(engine, ended)  # for the other reading of a further start in this second
        engine.free[:, job.given.nodes] -= job.given.amounts
        job.start, job.planned = now, now + job.planned
        engine.running.append(job)
    return decisions


def _end(engine: SlurmReference, moment: int) -> list[SlurmJob]:
    """Release the nodes of the jobs that end by a moment, and return these."""
    ended = [job for job in engine.running if job.end <= moment]
    for job in ended:
        engine.running.remove(job)
        engine.free[:, job.given.nodes] += job.given.amounts
    return ended


def _resume(engine: SlurmReference, ended: list[SlurmJob]) -> None:
    """Let jobs hold their nodes again."""
    engine.running += ended
    for job in ended:
        engine.free[:, job.given.nodes] -= job.given.amounts


def _choices(engine: SlurmReference, job: SlurmJob, ahead: list[SlurmJob]) -> list[Given]:
    """Return the nodes chosen for a job after the plans for the jobs ahead, where these leave room, and then without them."""
    found = []
    for blocks in (_planned(engine, job, ahead), engine._outages()):
        usable = engine.usable(job, engine.free, engine.now, job.planned, blocks)
        if engine.is_enough(job, usable):
            found.append(engine.choose(job, usable))
    return found or [NOTHING]


def _planned(engine: SlurmReference, job: SlurmJob, waiting: list[SlurmJob]) -> list[Block]:
    """Return the reservations that backfill makes for the jobs ahead of a job."""
    blocks: list[Block] = engine._outages()
    for other in sorted(waiting, key=lambda one: (-one.tier, -engine.priority(one, engine.now), one.place, one.index)):
        if other is job:
            break
        gap = engine.first_gap(other, other.planned, blocks, engine.now + 60 * engine.settings["bf_window"])
        if gap is not None:
            blocks.append(engine.reservation(other, gap[1], gap[0], other.planned))
    return blocks


def _held(engine: SlurmReference, job: SlurmJob, nodes: Array, guessed: set[int]) -> Given:
    """Return what a job holds of its recorded nodes: by the engine's rules if these suffice, else an equal share of each, a guess."""
    free = np.full_like(engine.free, 0)
    free[:, nodes] = engine.free[:, nodes]
    usable = engine.usable(job, free, 0, 1, [])
    if engine.is_enough(job, usable):
        given = engine.choose(job, usable)
        if np.array_equal(np.sort(given.nodes), nodes):
            return given
    if len(nodes) > 1 and not job.whole:
        guessed.add(job.index)
    total = (job.procs, job.second, 0 if job.whole else job.memory * len(nodes) or job.task_memory * job.procs // job.task)
    parts = [np.full(len(nodes), -(-amount // len(nodes))) for amount in total]
    share = engine.capacity[:, nodes] if job.whole else engine.machine.allocated(np.full(len(nodes), job.second_row), *parts)
    return Given(nodes, np.minimum(share, engine.free[:, nodes]))


def _node_lists(path: Path) -> dict[int, str]:
    """Return the list of nodes of each job, by number; later fields may hold the delimiter."""
    lines = path.read_text().splitlines()
    delimiter = "\x1f" if "\x1f" in lines[0] else "|"
    number, nodes = (lines[0].split(delimiter).index(name) for name in ("JobIDRaw", "NodeList"))
    rows = [line.split(delimiter) for line in lines[1:]]
    return {int(row[number]): row[nodes] for row in rows if row[number].isdecimal()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the share of equal choices of each run, and with `--show` the others."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N different choices of each run")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        for run in sorted(one.parent for one in folder.rglob("cluster.txt")):
            found = decisions_of(run)
            count = max(len(found), 1)
            shares = [
                100 * sum(ones) / count for ones in zip(*((one.same, one.possible, one.chosen[0] == ()) for one in found), strict=True)
            ]
            same, possible, none = shares or (0, 0, 0)
            name = run.relative_to(folder.parent)
            print(f"{name}: {len(found)} starts, same nodes {same:.0f} %, in one reading {possible:.0f} %, without room {none:.0f} %")
            known = [one for one in found if one.is_known]
            if len(known) < len(found):
                shares = [
                    f"{100 * sum(ones) / max(len(known), 1):.0f} %"
                    for ones in zip(*((one.same, one.possible) for one in known), strict=True)
                ]
                print(f"  with known shares of all nodes: {len(known)} starts, same nodes {', in one reading '.join(shares)}")
            for one in [one for one in found if not one.possible][: options.show]:
                print(f"  job {one.job}: {','.join(one.real)}; chosen: {' or '.join(','.join(nodes) or 'none' for nodes in one.chosen)}")


if __name__ == "__main__":
    main()
