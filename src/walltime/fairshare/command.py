"""`walltime fairshare`: shares, decayed use and fair-share factors, their effect on waits, and when they recover."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, machine_in
from walltime.cli.output import PageOutput, caveats
from walltime.errors import PolicyError
from walltime.tables import Cell, Column, Table
from walltime.wording import UNDEFINED, counted, human_percent, human_time, sanitize, time_form

if TYPE_CHECKING:
    from walltime.fairshare.shares import Cost, FairShare


LISTED = 40
"""Number of associations in the printed table."""


@manual(
    "guides/slurm-policy",
    ("Show the shares and the use of all accounts and users.", "fairshare jobs.txt.gz --machine machine.toml"),
    ("Explain the factor of a user, with its effect on waits.", "fairshare jobs.txt.gz --machine machine.toml --user u1"),
)
def fairshare(
    trace: o.TraceArgument,
    *,
    user: Annotated[str | None, o.option("Explain the factor of this user, by name.", group=o.JOBS)] = None,
    account: Annotated[str | None, o.option("Explain this account, by name; with --user, the user in this account.", group=o.JOBS)] = None,
    waits: Annotated[
        bool, o.option("Simulate the log with and without fair share, to show the effect on waits.", "--waits/--no-waits")
    ] = True,
    stretch: RecordedWindow,
    reading: LogOptions,
    machine_file: o.MachineOption = None,
    output: PageOutput,
) -> None:
    """Show the shares, decayed use and fair-share factors of accounts and users, their effect on waits, and when they recover."""
    from walltime.fairshare.shares import cost_in_waits, fair_share
    from walltime.provenance import version

    machine = machine_in(machine_file)
    if machine is None:
        raise PolicyError("give the machine with its shares and Slurm's settings: --machine FILE", "no_machine")
    workload = stretch.alone(reading.load(trace, machine)[0])
    found = fair_share(workload, machine)
    record = {"trace": workload.origin.name, "sha256": workload.origin.sha256, **found.as_dict()}
    blocks: list[Table] = []
    if user is None and account is None:
        answer = [_overview(found)]
        places = [k for k in _in_order(found, 0) if k]
        used = [k for k in places if found.associations[k].use] or places
        blocks.append(_table(found, places))
        shown = [_table(found, used[:LISTED], len(places) - len(used[:LISTED]))]
    else:
        k = found.find(user, account)
        cost = cost_in_waits(found, k) if waits and found.settings["priority_weight_fairshare"] else None
        answer = [*_answer(found, k), *([] if cost is None else [_price(cost, "account" if user is None else "user")])]
        path = [place for place in _path(found, k) if place]
        blocks.append(_table(found, path))
        shown = list(blocks)
        record |= {"association": {"account": found.associations[k].account, "user": found.associations[k].user}}
        record |= {"recovery": found.recovery(k), "waits": None if cost is None else asdict(cost)}
    notes = _notes(found)
    record |= {"version": version()}
    if output.report is not None:
        output.write_blocks("fairshare", f"Fair share in the log {workload.origin.name}", answer, [*blocks, *caveats(notes)], workload)
    output.show(record, [*answer, *shown, *caveats(notes)], blocks)


def _in_order(found: FairShare, k: int) -> Iterator[int]:
    """Yield an association and all below it, siblings in descending order of use."""
    yield k
    children = [child for child, parent in enumerate(found.parents) if child and parent == k]
    for child in sorted(children, key=lambda child: -found.associations[child].use):
        yield from _in_order(found, child)


def _path(found: FairShare, k: int) -> list[int]:
    """Return the association and the accounts above it, from the root down."""
    path = [k]
    while path[0]:
        path.insert(0, found.parents[path[0]])
    return path


def _called(found: FairShare, k: int) -> str:
    one = found.associations[k]
    return sanitize(one.account) if one.user is None else sanitize(one.user)


def _answer(found: FairShare, k: int) -> list[str]:
    """Return sentences on an association's share, use and factor, and on the time until they recover."""
    one = found.associations[k]
    name = f"{'The account' if one.user is None else 'User'} {_called(found, k)}"
    used = "nothing was used yet" if math.isnan(one.used) else f"{human_percent(100 * one.used)} of the use"
    sentence = f"{name} has {human_percent(100 * one.share)} of the shares and {used} ({_hours(one.use)} core-hours after decay)"
    if one.user is not None:
        place, users = found.rank(k)
        sentence += f": fair-share factor {one.factor:.3f}, rank {place} of {counted(users, 'user')}"
    after = found.recovery(k)
    if not after:
        return [f"{sentence}.", "The use is within the share."]
    if math.isinf(after):
        why = "no other jobs ran lately" if one.share else "there are no shares"
        return [f"{sentence}.", f"The use does not fall to the share, as {why}."]
    return [f"{sentence}.", f"Without new jobs, the use falls to the share in {human_time(after)}, if the other users continue as before."]


def _price(cost: Cost, whose: str) -> str:
    """Return a sentence on the effect of fair share on the waits of a user's or an account's jobs."""
    if not cost.jobs:
        return "No job of this log counts towards it, so its effect on waits is unknown."
    now, without = map(time_form([cost.with_weight, cost.without]), (cost.with_weight, cost.without))
    mean = f"the wait of the {whose}'s job" if cost.jobs == 1 else f"the mean wait of the {whose}'s {cost.jobs:,} jobs"
    if now == without:
        return f"In the simulation of this log, fair share does not change {mean} ({now})."
    change = "lengthens" if cost.with_weight > cost.without else "shortens"
    return f"In the simulation of this log, fair share {change} {mean} from {without} to {now}."


def _hours(use: float) -> str:
    return f"{use:,.0f}" if use >= 10 or not use else f"{use:.2f}"


def _overview(found: FairShare) -> str:
    """Return a sentence on the number of users who used more than their shares."""
    users = [one for one in found.associations if one.user is not None]
    over = sum(one.used > one.share for one in users)
    return f"{over:,} of {counted(len(users), 'user')} used more than their shares."


def _table(found: FairShare, places: Sequence[int], left_out: int = 0) -> Table:
    """Return the table of associations, with the number of associations left out."""
    rows = []
    for k in places:
        one = found.associations[k]
        level = "no use" if math.isinf(one.level) else f"{one.level:,.2f}"
        factor = Cell(UNDEFINED) if math.isnan(one.factor) else Cell(f"{one.factor:.3f}", value=one.factor)
        used = Cell(UNDEFINED) if math.isnan(one.used) else Cell(human_percent(100 * one.used), value=one.used)
        rows.append(
            [
                sanitize(one.account) or "none",
                "" if one.user is None else sanitize(one.user),
                Cell(f"{one.shares:,}", value=one.shares),
                Cell(human_percent(100 * one.share), value=one.share),
                Cell(_hours(one.use), value=one.use),
                used,
                Cell(level, value=one.level if math.isfinite(one.level) else None),
                factor,
            ]
        )
    heads: list[str | Column] = ["account", "user", "shares", "of the machine", "core-hours", "of the use", "level", "factor"]
    half_life = found.settings["priority_decay_half_life"]
    decay = f"Use decays with a half-life of {human_time(half_life)}." if half_life else "Use does not decay."
    remark = f"{decay} Level: LevelFS of sshare, the part of the shares in the account above divided by the part of its use."
    rest = f" {counted(left_out, 'association')} with less use or none left out; a page and --json have all." if left_out else ""
    return Table(heads, rows, "Shares and use", f"{remark}{rest}", texts=2)


def _notes(found: FairShare) -> list[str]:
    """Return notes on the settings, and on the time to which the numbers apply."""
    notes = [f"Use is counted from the first recorded job to the last recorded end, {found.workload.origin.when(found.at)}."]
    if found.machine.policy and not found.machine.policy.startswith("slurm"):
        notes.append(f"The policy of the machine is {sanitize(found.machine.policy)}, which has no fair share; Slurm's rules are assumed.")
    elif not found.settings["priority_weight_fairshare"]:
        notes.append("Fair share has no weight in the priorities of this machine (PriorityWeightFairShare=0).")
    return notes
