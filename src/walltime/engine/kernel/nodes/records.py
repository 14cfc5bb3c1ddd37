"""The data of the loop for Slurm's scheduling (loop.py): free amounts of nodes over time, the plan, and the usage of accounts.

Everything is a record array with named fields, as in kernel/memory.py; sets of nodes and numbers by node are stored as bits (bits.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.records import record_dtype
from walltime.engine.kernel.pools.memory import Lists

Array = np.ndarray
Records = Any

SLURM_JOB = record_dtype(
    "submit runtime planned procs second nodes most_nodes whole asked members task least most total each per_task memory task_memory "
    "second_row shaped opens spread owner partition tier time_min user place unreserved association charge start kind reserved_start "
    "arrival pending after think limit first count preemption whole_runtime due returns failed awaits priority merit",
    "merit",
)
"""A job: the fields of memory.JOB and of `NodeDemands`, and these:

* `submit`: becomes the time from which the job waits; `runtime`: becomes the time for which it runs, s
* `pending`: number of jobs that must end before it can wait, including the one that it follows
* `limit`: the time limit under which it runs, s; `first`, `count`: its nodes in `Use.ranges`
* `shaped`: whether it may be unable to use all free processors of a node, because of `task`, `least`, `most`, `per_task`, `task_memory` or
  `most_nodes`
* `opens`: how much it may gain where a running job ends, one of OPENS_NONE to OPENS_MEMORY
* `owner`: the number of its user, from 1, negative if it wants nodes for its user alone; 0 for all jobs if no job does
* `whole_runtime`: its `runtime` if nothing cuts it short
* `due`: when it is preempted or loses a node, else NEVER; `returns`: whether it is
  then requeued; `failed`: whether it loses a node; `awaits`: the last end of the jobs that it preempts"""

SLURM_RULES = record_dtype(
    "depth partition_depth interval defer backfill cycle window resolution most_tested most_of_user most_of_partition "
    "most_of_user_in_partition most_started least_age least_priority most_reserved soft half kill starts_only all_count multifactor "
    "timed_limits node_limits fair_tree period dampening preempts youngest reorders strict weight_age weight_share longest_age decay",
    "weight_age weight_share longest_age decay",
)
"""The parameters of policy/slurm.py; times in s. These differ from the options:

* `soft`: whether time_min is a soft limit; `half`: whether running jobs are also planned by it
* `starts_only`: whether `reserved_start` is not needed
* `all_count`: whether each of the first `most_tested` jobs may have a reservation, regardless of its number, age and priority
* `timed_limits`: whether limits count the processor-seconds that running jobs have left until their time limits; `node_limits`: whether
  they count nodes
* `decay`: the factor applied to past usage after each `period`
* `preempts`: whether jobs may preempt others"""

SLURM_STATE = record_dtype(
    "now arrivals arriving started running overdue events waiting next_change news news_for_all next_sum came gone between at_first begun "
    "no_room ranges most_ranges spare_rows planes procs_planes second_end second_bits kinds closed users_counted tested "
    "planned_count blocks spare_sets ahead bounds slack slack_far slack_nodes slack_nodes_far far steps timeline_blocks "
    "gain gain_memory gain_nodes gain_of_whole gain_of_second gain_nodes_of_second changed_until freed freed_nodes lacking_nodes chosen "
    "left_nodes left_procs left_second left_most prefers preemptable lost again until awaited of_memory of_nodes most_of_node"
)
"""Values that change at every event.

Numbers of entries:

* `arrivals`, `started`: numbers of jobs so far
* `arriving`, `running`, `events`, `waiting`, `ranges`, `spare_rows`, `planned_count`, `blocks`, `spare_sets`, `bounds`, `steps`, `chosen`:
  numbers of entries in use
* `overdue`: number of running jobs whose planned end has been postponed

Events:

* `news`, `news_for_all`: whether anything has happened since the last backfill cycle, and since the last full pass
* `next_sum`: the time at which usage is next summed, s
* `came`, `gone`: whether a job arrived, and whether one ended, at this event; `between`: whether this event still lacks its passes
* `at_first`: number of initially running jobs; `begun`: whether they have been placed; `no_room`: the number, from 1, of the first one that
  does not fit, or 0
* `until`, `awaited`: as in memory.STATE

Nodes:

* `planes`: number of bit planes that store each node's free amounts: the first `procs_planes` store processors, the next ones up to
  `second_end` the second resource, the others memory
* `second_bits`: number of planes of each row of `Nodes.types`; the rows are stored in their order
* `kinds`: number of kinds of partitions; `of_memory`, `of_nodes`: the first of the columns of `Use.totals` for memory and for nodes, or 0
* `closed`: whether the main scheduler has closed nodes
* `most_of_node`: the largest number of processors of a node
* `most_ranges`: maximum number of ranges that running jobs can have together
* `preemptable`: number of running jobs that may be preempted; `lost`: number of lost runs; `again`: how many of these jobs were requeued
* `left_nodes`, `left_procs`, `left_second`: while nodes are chosen, the job's remaining needs; `left_most`: how many more nodes it may
  have; `prefers`: whether UNHELD has nodes

The plan (plan.py):

* `users_counted`: the number of this cycle; `tested`: number of jobs tried in it
* `ahead`: number of blocks of the jobs ahead of the job being considered
* `slack` to `far`: results of the last search, as in EARLIEST_START
* `lacking_nodes`: a lower bound on the number of nodes that the job lacked at the last time looked at, as in `gains.note_lack`
* `timeline_blocks`: number of blocks in the timeline, or NOT_MADE
* `gain` to `gain_nodes_of_second`: what has become free since the last cycle, as in RELEASED
* `changed_until`: the end of all changes since the last cycle, s
* `freed`, `freed_nodes`: upper bounds on the processors that a job gains at the next release, and on the nodes on which it gains any"""

OPENS_NONE, OPENS_WHOLE, OPENS_SECOND, OPENS_MEMORY = 0, 1, 2, 3
"""How many more processors a job can use where a running job ends, at most.

They are the processors that the running job has, all processors of its nodes, or all those of its nodes with units of the second resource.
With OPENS_MEMORY, they are those for which its processors and its memory suffice."""

RELEASED = 6
"""Number of the last columns of `Use.gives`: the processors and the memory of a running job, its nodes, and all processors of these nodes.
The last two columns count only its nodes that have units of the second resource: all their processors, and the nodes."""

PARTITION = record_dtype("kind least_loaded reservation closed tried reserved")
"""A partition.

* `kind`: the number of its set of nodes; `least_loaded`: 1 to take the least loaded nodes first, 0 for Slurm's runs of nodes, or FIRST_FIT
* `reservation`: the user reservation of its jobs, as in `engine.machines.Nodes`
* `closed`, `tried`: whether it is closed, and the number of jobs tried, in this pass of the main scheduler
* `reserved`: the number of reservations made in this backfill cycle"""
FIRST_FIT = 2

MEMBERS = record_dtype("row every node_procs first_stretch last_stretch")
"""A set of nodes that jobs may use.

* `row`: the row of the set in `NodeMachine.sets`; `every`: 1 for all nodes of a partition, 0 for some
* `node_procs`: the number of processors of each node if it is the same for all, else 0
* `first_stretch`, `last_stretch`: the range of its stretches"""

STRETCH = record_dtype("place node end weight heavier")
"""Nodes [node, end) that are consecutive in a partition and have the same weight. `place`: the position of the first one in the partition's
list; `weight`: the rank of their weight; `heavier`: the rank of this weight plus 1."""

POOL = record_dtype("node end")
"""The nodes [node, end) of a pool."""

RANGE = np.dtype([(name, np.int32) for name in ("node", "count", "procs", "second", "memory")])
"""Consecutive nodes, and the amounts that a job has of each; `second` has the bits of its planes."""

RUNNING = record_dtype("release expected job row owner first count")
"""A running job.

* `release`: when the plan expects it to release its nodes, s: its `expected` end, or later once that has passed
* `row`: its row of `Use.free`; `owner`, `first`, `count`: as in SLURM_JOB"""

OUT = record_dtype("begin end phase row reservation loss")
"""An outage.

* `phase`: 0 unknown or over, 1 known or begun; `row`: the row of its set of nodes in `NodeMachine.sets`
* `reservation`: the user reservation whose jobs may use the nodes, 0 for none; `loss`: as in `Nodes.losses`"""

EARLIEST_START = record_dtype(
    "considered begin slack slack_far slack_nodes slack_nodes_far far gained gained_far gained_nodes gained_nodes_far opens task_memory "
    "unsettled promised"
)
"""The earliest start of a waiting job, as found when the job was last tried.

* `considered`: 0 if the job was passed over; the other fields then have no meaning
* `begin`: its earliest possible start, given the jobs ahead of it; `promised`: whether nodes are reserved for it from then on
* `slack`, `slack_far`: the fewest processors that the job lacked at any time before `far`, and at any time from `far` on
* `slack_nodes`, `slack_nodes_far`: the fewest nodes on which more had to become free, at these times
* `gained`, `gained_far`: upper bounds on the processors that the job has gained since then, at any time, and after `far`, given its `opens`
  and `task_memory`; `gained_nodes`, `gained_nodes_far`: the same of nodes. While one of two is below its slack before and after `far`, no
  earlier start has become possible.
* `unsettled`: all changes end by this time, so a reservation that begins earlier must be checked again"""

BLOCK = record_dtype("begin valid_from end first_word last_word row whole with_second nodes nodes_with_second")
"""Nodes that are reserved in [valid_from, end) for a job planned to start at `begin`: the row of their set, and its words.

* `whole`, `with_second`: all processors of these nodes, and of those with units of the second resource; `nodes`, `nodes_with_second`: the
  numbers of these nodes"""

BOUND = record_dtype(
    "kind every asked nodes length job time blocks slack slack_far slack_nodes slack_nodes_far far gained gained_far "
    "gained_nodes gained_nodes_far opens task_memory"
)
"""A request of a job, and a time before which no larger request of a job behind it can be met, since blocks only take nodes.

* `time`: that time, s, after this number of `blocks` of jobs ahead
* `kind`: the kind of the job's partition; `every`: as in its set of nodes
* the last seven fields are as in EARLIEST_START"""
BOUNDS = 64

PREEMPTION_CLASS = record_dtype("preempts preempted requeue rank grace exempt")
"""A class of jobs as in `problem.Preemption`; whether it preempts others, and whether it may be preempted."""

LOST = record_dtype("job start end requeued kind failed")
"""A run as in `problem.LostRuns`."""

RUN = record_dtype("place end weight nodes procs second")
"""Consecutive usable nodes of a partition with the same weight, by their positions in it, and their total amounts."""

COUNTED = np.dtype([("stamp", np.int64), ("count", np.int64)])
"""Number of jobs (`count`) that have been tested in the cycle with the number `stamp`."""

LEAF = record_dtype("parent leaf shares used rank new", "used rank")
"""An account or user.

* `used`: its decayed usage, in parts of a processor-second (`problem.CHARGE`); `new`: its usage since the last sum
* `rank`: its fair-share factor"""


USABLE, CLOSED, FITTING, OTHERS, UNHELD, SECOND, CAPACITY = 0, 1, 2, 3, 4, 5, 6
"""Rows of `NodeMachine.sets`: the usable nodes; those that the main scheduler has closed; those that suffice for a job by themselves; those
that other users have; and those whose weight is increased by 1 (limits.py). SECOND are the nodes with units of the second resource, and
CAPACITY is the first plane of capacities."""


class NodeMachine(NamedTuple):
    """The machine.

    * `members`: the sets of nodes that jobs may use, by `SLURM_JOB.members`
    * `classes`, `may`: as in `problem.Preemption`
    * `shaped`: scratch, int64: planes of what a job can use of each node, like those of `Use.free`, then planes of a quotient and a
      remainder
    * `sets`: all sets of nodes, int64, shape (rows, words), in this order: scratch, planes of the amounts of each node, partitions by kind,
      `members`, outages, and nodes reserved for jobs
    """

    partitions: Records
    members: Records
    stretches: Records
    pools: Records
    outages: Records
    sets: Array
    shaped: Array
    classes: Records
    may: Array


class Victims(NamedTuple):
    """Scratch for the jobs that may be preempted: a `heap`, and indices of running jobs in `order`, int64."""

    heap: Records
    order: Array


class Use(NamedTuple):
    """The nodes of running jobs, and the amounts that are free over time if no job starts.

    * `running`: the running jobs in order of release
    * `free`: planes of the free amounts of each node, shape (rows, planes, words): row 0 is for the present, a running job's row for the
      time from its release on
    * `totals`: the total free amounts of each row, shape (rows, columns): processors by kind of partition, then, if the machine has any,
      units of the second resource by kind, and memory by kind. If nodes have several processors, the last columns count the nodes with a
      free processor.
    * `gives`: the amounts that the job of a row releases, in the same columns, and those of RELEASED. The columns of nodes count only those
      whose processors are all the job's.
    * `spare`: rows not in use
    * `ranges`: the nodes of each job and their amounts; `lost`: the runs that ended early
    """

    running: Records
    free: Array
    totals: Array
    gives: Array
    spare: Array
    ranges: Records
    lost: Records
    victims: Victims


class Timeline(NamedTuple):
    """Upper bounds on the free amounts over time: the `times` of steps, int64 s, and `sums` from each step on, shape (columns, steps)."""

    times: Array
    sums: Array


class Choice(NamedTuple):
    """Nodes that are chosen for a job, as ranges; `runs`, `heap`: scratch."""

    chosen: Records
    runs: Records
    heap: Records


class BackfillPlan(NamedTuple):
    """The plan of backfill (plan.py).

    * `earliest_starts`: records of the first jobs of the queue, in its order; `blocks`: the nodes reserved for these jobs, in the same
      order
    * `spare_sets`: rows of `NodeMachine.sets` that are not in use
    * `amounts`: by row of `NodeMachine.sets`, the amounts that are free on the nodes of its block when it begins, in the columns of
      `Use.totals`
    * `bounds`: times before which these jobs cannot start
    """

    earliest_starts: Records
    blocks: Records
    spare_sets: Array
    amounts: Array
    bounds: Records
    timeline: Timeline
    choice: Choice


class Tree(NamedTuple):
    """The tree of shares.

    * `children`: the children of each account or user; `order`: the same lists, sorted by shares divided by usage, the highest first
    * `stack`: scratch memory; `sums`: normalised shares
    """

    leaves: Records
    children: Lists
    order: Array
    stack: Array
    sums: Array


class Traffic(NamedTuple):
    """Jobs that wait, arrive or end.

    * `at_first`: the initially running jobs; `arrivals`, `ends`: heaps
    * `queue`: the waiting jobs, and `needs`: the fewest processors that each of them needs
    * `followers`: which jobs follow which; `limits`, `limits_of`: the limits, and those of each job; `tree`: the data for priorities
    * `counted`: the tested jobs of each user (from row 1 on) in each partition (from column 1 on); row and column 0 count all users and all
      partitions
    * `changes`: the changes of outages, in order of time
    """

    at_first: Array
    arrivals: Records
    ends: Records
    queue: Array
    needs: Array
    followers: Lists
    limits: Records
    limits_of: Lists
    tree: Tree
    counted: Records
    changes: Records


class SlurmMemory(NamedTuple):
    """All data of one simulation."""

    state: Records
    rules: Records
    jobs: Records
    site: NodeMachine
    use: Use
    plan: BackfillPlan
    traffic: Traffic
