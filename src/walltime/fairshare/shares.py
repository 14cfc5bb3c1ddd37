"""Compute the shares, decayed use and fair-share factors of accounts and users from recorded jobs.

Source: Slurm's manuals on priorities (https://slurm.schedmd.com/priority_multifactor.html, https://slurm.schedmd.com/fair_tree.html).
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from walltime.declared import nearest
from walltime.engine.reference.shares import FairShares
from walltime.errors import WorkloadError
from walltime.machine import Machine
from walltime.machine.placing import qos_values
from walltime.policy import parse_policy
from walltime.policy.slurm import Slurm, SlurmSettings
from walltime.slurm_priorities import tree_of_shares
from walltime.wording import shown
from walltime.workload import MISSING, Array, Workload


@dataclass(frozen=True)
class Association:
    """An account, or a user in an account, at the end of the record."""

    account: str
    """name of the account; empty for users without one"""
    user: str | None
    """name of the user; None for the account itself"""
    shares: int
    """assigned shares"""
    share: float
    """share of the machine, 0 to 1: the product, from the root down, of its parts of the shares among siblings"""
    use: float
    """decayed use, core-hours"""
    used: float
    """share of the machine's decayed use, 0 to 1; nan if there is none"""
    factor: float
    """fair-share factor of a user, 0 to 1; nan for accounts"""
    level: float
    """Slurm's LevelFS: its part of the shares among its siblings, divided by its part of their use; infinite without use"""


@dataclass(frozen=True)
class Cost:
    """Mean simulated waits of the jobs, with the weight of fair share and without it."""

    jobs: int
    """number of the association's jobs that the machine can run"""
    with_weight: float
    """mean wait with fair share, s"""
    without: float
    """mean wait without fair share, s"""


@dataclass(frozen=True)
class FairShare:
    """The associations of a machine at one time of the record; parents precede their children."""

    workload: Workload
    machine: Machine
    settings: SlurmSettings
    at: int
    """end of the last recorded run, s of the log's clock"""
    associations: tuple[Association, ...]
    parents: tuple[int, ...]
    """of each association, the number of its account; the root, number 0, is its own"""
    rate: Array
    """recent use of each association, processor-seconds per second: in the last half-life, or in the whole record without decay"""

    def find(self, user: str | None, account: str | None) -> int:
        """Return the index of an association; raises WorkloadError if there is none, or several."""
        own = [
            k
            for k, one in enumerate(self.associations)
            if one.user == user and (account is None or one.account == account) and (user is not None or one.account)
        ]
        if len(own) == 1:
            return own[0]
        name = shown(account if user is None else user)
        if own:
            accounts = ", ".join(self.associations[k].account or "none" for k in own)
            raise WorkloadError(f"the user {name} has several accounts; name one of them: {accounts}", "several_accounts")
        names = [one.user if user is not None else one.account for one in self.associations if (one.user is None) == (user is None)]
        close = (
            nearest((account if user is None else user) or "", [one for one in names if one])
            or "; give a name from the log or the machine file"
        )
        raise WorkloadError(f"no {'account' if user is None else 'user'} {name}{close}", "unknown_association")

    def rank(self, k: int) -> tuple[int, int]:
        """Return the rank of a user by factor, 1 for the highest, and the number of users."""
        factors = [one.factor for one in self.associations if one.user is not None]
        return 1 + sum(one > self.associations[k].factor for one in factors), len(factors)

    def recovery(self, k: int) -> float:
        """Return the time, s, after which the share of the use falls to the share of the machine, if it starts no more jobs.

        The use of others is assumed to continue as now. The result is 0 if the share is that low already, inf if it never falls so low.
        """
        one, total = self.associations[k], sum(a.use for a in self.associations if a.user is not None) * 3600.0
        mine, share, half_life = one.use * 3600.0, one.share, float(self.settings["priority_decay_half_life"])
        others, rate = total - mine, float(self.rate[0] - self.rate[k])
        if mine <= share * total or mine <= 0:
            return 0.0
        if share <= 0 or rate <= 0:
            return math.inf
        if not half_life:
            return float((mine / share - total) / rate)
        steady = rate * half_life / math.log(2)  # the decayed use that the others keep at their present rate
        left = share * steady / (mine * (1 - share) - share * others + share * steady)  # weight of today's use
        return float(half_life * -math.log2(left))

    def jobs(self, k: int) -> Array:
        """Return a mask (bool, shape (jobs,)) of the jobs of an association."""
        association, shares, *_ = tree_of_shares(self.workload, self.machine)
        parents = shares.parent.tolist()
        below = np.zeros(len(parents), bool)
        below[k] = True
        for child in range(1, len(parents)):
            below[child] |= below[parents[child]]
        return below[association]

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers for JSON; undefined ones are None."""
        rows = [asdict(one) | {"level": one.level if math.isfinite(one.level) else None} for one in self.associations[1:]]
        half_life = self.settings["priority_decay_half_life"]
        return {"at": self.at, "half_life": half_life, "weight": self.settings["priority_weight_fairshare"], "associations": rows}


def slurm_policy(machine: Machine) -> Slurm:
    """Return the machine's policy if it is slurm, else slurm without options."""
    policy = parse_policy(machine.policy or "slurm")
    return policy if isinstance(policy, Slurm) else Slurm()


def cost_in_waits(shares: FairShare, k: int) -> Cost:
    """Simulate the log with the weight of fair share and without it, and return the mean waits of an association's jobs.

    Raises the errors of `walltime.simulate`.
    """
    from walltime.simulation import simulate

    policy, workload = slurm_policy(shares.machine), shares.workload
    numbers = workload.job_id[shares.jobs(k)]
    waits = []
    for one in (policy, replace(policy, priority_weight_fairshare=0)):
        schedule = simulate(workload, one, machine=shares.machine)
        own = np.isin(schedule.workload.job_id, numbers)
        waits.append(float(schedule.wait[own].mean()) if own.any() else math.nan)
    return Cost(int(own.sum()), *waits)


def fair_share(workload: Workload, machine: Machine) -> FairShare:
    """Return the shares and the use of all accounts and users at the end of the last recorded job.

    Raises WorkloadError if the log does not record waits or users.
    """
    settings = slurm_policy(machine).settings(machine.slurm)
    assert settings is not None
    wait = workload.columns.get("wait")
    if wait is None or not (wait >= 0).any():
        raise WorkloadError(
            f"{workload.origin.name} does not record when jobs started, so their use is unknown; use another log", "no_waits"
        )
    if not (workload.columns.get("user", np.full(len(workload), MISSING)) >= 0).any():
        raise WorkloadError(f"{workload.origin.name} does not record users, which fair share needs; use another log", "no_users")
    workload = workload.take(wait >= 0, "jobs whose start is recorded")
    association, tree, _, names = tree_of_shares(workload, machine)
    start = workload.submit + workload.columns["wait"]
    end = start + workload.runtime
    at, charge = int(end.max()), workload.procs * qos_values(workload, machine, lambda one: one.usage_factor, 1.0)
    half_life = settings["priority_decay_half_life"]
    recent = max(at - half_life, int(start.min())) if half_life else int(start.min())
    weight = math.log(2) / half_life if half_life else 0.0
    decayed = (np.exp2((end - at) / half_life) - np.exp2((start - at) / half_life)) / weight if half_life else workload.runtime * 1.0
    lately = np.maximum(end - np.maximum(start, recent), 0) * charge / max(at - recent, 1)
    used, rate = (np.bincount(association, values, len(tree.parent)) for values in (decayed * charge, lately))
    shares = FairShares(
        tree, replace(settings, values={**settings.values, "priority_weight_fairshare": 1})
    )  # factors without a weight, too
    shares.add({k: round(value) for k, value in enumerate(used) if value})
    parents, own = tree.parent.tolist(), tree.shares.tolist()
    for k in reversed(range(1, len(parents))):
        used[parents[k]] += used[k]
        rate[parents[k]] += rate[k]
    below = np.zeros(len(parents))
    np.add.at(below, tree.parent[1:], tree.shares[1:])
    share, level = np.ones(len(parents)), np.full(len(parents), math.inf)
    for k in range(1, len(parents)):
        part = own[k] / below[parents[k]] if below[parents[k]] else 0.0
        share[k] = share[parents[k]] * part
        level[k] = part * used[parents[k]] / used[k] if used[k] else math.inf
    rows = [
        Association(
            account or "",
            user,
            own[k],
            float(share[k]),
            float(used[k]) / 3600,
            float(used[k] / used[0]) if used[0] else math.nan,
            shares.factor(k) if user is not None else math.nan,
            float(level[k]),
        )
        for k, (account, user) in enumerate(names)
    ]
    return FairShare(workload, machine, settings, at, tuple(rows), tuple(parents), rate)
