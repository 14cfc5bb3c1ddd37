"""Fair shares in plain Python, for the reference engine: the usage of accounts and users, and their factors."""

import math
from collections.abc import Mapping

from walltime.engine.machines import Shares
from walltime.policy.slurm import SlurmSettings


class FairShares:
    """The tree of accounts and users, with their decayed usage."""

    def __init__(self, shares: Shares, settings: SlurmSettings):
        self.parent, self.shares = shares.parent.tolist(), shares.shares.tolist()
        self.is_user = [leaf == 1 for leaf in shares.leaf.tolist()]
        self.children = [[k for k in range(1, len(self.parent)) if self.parent[k] == above] for above in range(len(self.parent))]
        self.decay = settings.decay
        self.weighs, self.by_tree = settings["priority_weight_fairshare"] > 0, not settings.flag("NO_FAIR_TREE")
        self.dampening = settings["fair_share_dampening_factor"]
        self.used = [0.0] * len(self.parent)
        self._factors = [0.0] * len(self.parent)
        self._is_ranked = False

    def factor(self, user: int) -> float:
        """Return the fair-share factor of a user, 0 to 1."""
        if not self._is_ranked:
            self._rank()
            self._is_ranked = True
        return self._factors[user]

    def add(self, used: Mapping[int, int]) -> None:
        """Decay the usage so far, and add new usage: processor-seconds by user."""
        for k in range(len(self.parent)):
            self.used[k] = self.used[k] * self.decay + used.get(k, 0) if self.is_user[k] else 0.0
        for k in reversed(range(len(self.parent))):
            if not self.is_user[k]:
                for child in reversed(self.children[k]):
                    self.used[k] += self.used[child]
        self._is_ranked = False

    def _rank(self) -> None:
        if not self.weighs:
            return
        if not self.by_tree:
            self._classic(0, 1.0, 0.0)
            return
        users = sum(self.is_user)
        served = self._served(0)
        for place, tied in served:
            for k in tied:
                self._factors[k] = (users - place) / users

    def _served(self, above: int, place: int = 0) -> list[tuple[int, list[int]]]:
        """Return the users below an account, the best served last: groups of tied users, each with the number of users before it."""
        groups: list[tuple[int, list[int]]] = []
        last = None
        for k in sorted(self.children[above], key=lambda k: (-self._level(k), not self.is_user[k], k)):
            if self.is_user[k]:
                if last is not None and last == self._level(k):
                    groups[-1][1].append(k)
                else:
                    groups.append((place, [k]))
                place += 1
                last = self._level(k)
            else:
                below = self._served(k, place)
                groups += below
                place += sum(len(tied) for _, tied in below)
                last = None
        return groups

    def _level(self, k: int) -> float:
        if self.shares[k] == 0:
            return 0.0
        return self.shares[k] / self.used[k] if self.used[k] > 0 else math.inf

    def _classic(self, above: int, share: float, effective: float) -> None:
        """Set the factor 2 ** -(effective usage / share / dampening) of all users below an account with this share and effective usage."""
        total = sum(self.shares[k] for k in self.children[above])
        for k in self.children[above]:
            part = self.shares[k] / total if total else 0.0
            own = self.used[k] / self.used[0] if self.used[0] > 0 else 0.0
            mine = own + (effective - own) * part if above else own
            if self.is_user[k]:
                self._factors[k] = math.exp(-mine / (self.dampening * (share * part)) * 0.6931471805599453) if share * part > 0 else 0.0
            else:
                self._classic(k, share * part, mine)
