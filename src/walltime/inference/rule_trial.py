"""Measure the agreement of a policy with the record under candidate rules, and decide which rules are accepted.

Rules are chosen by one-step agreement (one_step.py). Folds are months, or weeks in a short log: every other fold chooses rules, the other
folds are held out and judge them. A free simulation cannot distinguish a right rule from a wrong one, but a rule that reduces its agreement
with the record is rejected.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from walltime.distinct import distinct_rows
from walltime.errors import WorkloadError
from walltime.inference.candidate_rules import EachLimit, InferredPool, RecordedLog, submitted_in
from walltime.inference.free_runs import free_waits
from walltime.inference.inference import InferredRule
from walltime.inference.one_step import OneStep, SiteRules, one_step, prompt_within
from walltime.inference.order_choice import OrderChoice
from walltime.machine import NO_OVERHEAD, Limit, Machine, Outage, Overhead, Partition, Pool, Window
from walltime.machine.tables import DAY
from walltime.machine.windows import Hours, hours_of
from walltime.metrics.recorded import rank_correlation
from walltime.policy import Easy, Policy
from walltime.wording import human_time
from walltime.workload import Array, Workload

LEAST_GAIN = 0.005
"""A rule must gain more agreement than this on the folds that choose rules."""
WEEK, MONTH = 7 * DAY, 30 * DAY
SHORTEST = 56 * DAY
"""A shorter record has too few weeks to choose rules and to judge them."""
ALWAYS = np.iinfo(np.int64).max // 4
RANKS, ERRORS = 0.01, 1.2
"""Largest decrease of the rank correlation of waits, and largest factor on the mean error of a wait, that a rule may cause in a free
simulation."""
MONTHS = 8
"""In a log with fewer months, folds are weeks."""


class AtOnce(NamedTuple):
    """A limit on running jobs of a user (a number); if `alike`, for each combination of size and request separately.

    `since`, `until`: it applies to jobs submitted between these log times, s; None for no bound.
    """

    user: int
    jobs: int
    alike: bool
    since: int | None = None
    until: int | None = None

    @property
    def kind(self) -> tuple[int, bool, int | None, int | None]:
        """Return all fields except the user; limits of several users with equal kinds are described together."""
        return self[1:]


class Rules(NamedTuple):
    """All accepted rules. Plain EASY applies to jobs that start before `policy_since`, or from `policy_until` on."""

    windows: tuple[Window, ...] = ()
    outages: tuple[tuple[int, int], ...] = ()
    parts: tuple[InferredPool, ...] = ()
    overhead: Overhead = NO_OVERHEAD
    at_once: tuple[AtOnce, ...] = ()
    each: tuple[EachLimit, ...] = ()
    policy: Policy = Easy()
    policy_since: int | None = None
    policy_until: int | None = None

    def without(self, before: Rules, after: Rules) -> Rules:
        """Return these rules without the rule by which `after` differs from `before`."""
        changed: dict[str, Any] = {}
        for name in self._fields:
            old, new, now = (getattr(rules, name) for rules in (before, after, self))
            if new != old:
                changed[name] = tuple(one for one in now if one in old or one not in new) if isinstance(now, tuple) else old
        return self._replace(**changed)


def stretches_of(parts: Sequence[InferredPool]) -> list[tuple[int | None, int | None, list[InferredPool]]]:
    """Return the periods (begin, end in log time, s, None for no bound) in which the same parts exist, with these parts."""
    edges = sorted({edge for part in parts for edge in (part.since, part.until) if edge is not None})
    stretches = []
    for since, until in pairwise([None, *edges, None]):
        there = [
            part
            for part in parts
            if (part.since is None or (since is not None and part.since <= since))
            and (part.until is None or (until is not None and until <= part.until))
        ]
        stretches.append((since, until, there))
    return stretches


class RuleProposal(NamedTuple):
    """A candidate rule: its description and evidence, the set of rules that includes it, and the log times, s, between which it applies."""

    kind: str
    text: str
    evidence: str
    rules: Rules
    since: int | None = None
    until: int | None = None


class RuleTrial:
    """The state of an inference: the record, the folds, the accepted rules, and `answer`, the policy's proposals under these rules.

    `apart`: jobs (bool) that use processors, but neither choose nor judge rules; by default none.
    """

    def __init__(
        self,
        workload: Workload,
        machine_procs: int,
        procs_of_node: int,
        progress: Callable[[float], None] | None,
        apart: Array | None = None,
    ):
        wait = workload.recorded_wait
        if wait is None:
            raise WorkloadError(
                f"{workload.origin.name} records no waits, so nothing can be inferred; use a log with start times", "missing_waits"
            )
        self.w, self.size, self.node = workload, machine_procs, procs_of_node
        self.log = RecordedLog.of(workload, np.where(wait >= 0, workload.submit + wait, -1))
        if apart is not None:
            self.log = self.log._replace(known=self.log.known & ~apart)
        self.progress = progress
        self.since, self.clock = workload.origin.unix_start_time, 0
        self.rules = Rules()
        self.kept: list[InferredRule] = []
        self.changes: list[tuple[Rules, Rules]] = []
        self.notes: list[str] = []
        self.requests: Workload | None = None
        """the log with all columns, if it has requests that inference does not model"""
        self.order: OrderChoice | None = None
        self.month = self._months()
        starts = self.log.start[self.log.known]
        self.week = (self.log.start - int(starts.min())) // WEEK
        if np.ptp(starts) < SHORTEST:
            raise WorkloadError(
                f"{workload.origin.name} covers less than two months, which is too short to choose and test rules; use a longer log",
                "log_too_short",
            )
        self.fold, self.unit = (self.month, "months") if len(np.unique(self.month[self.log.known])) >= MONTHS else (self.week, "weeks")
        self.choose = self.log.known & (self.fold % 2 == 0)
        self.judge = self.log.known & (self.fold % 2 == 1)
        self.users = workload.columns.get("user", np.full(len(workload), -1))
        self.alike = distinct_rows([self.users, workload.procs, workload.requested])[1]
        self.done, self.until = 0.0, 1.0
        self.workers = os.cpu_count() or 1
        self._windows: dict[tuple[Window, int], tuple[Hours, Array]] = {}
        self._free: tuple[Rules, Array] | None = None
        self.answer = self.ask(self.rules)
        self.within = prompt_within(self.answer, np.where(self.choose, wait, -1))

    def _say(self, done: float) -> None:
        """Report the completed share of the work, approximately, 0 to 1."""
        self.done = done
        if self.progress is not None:
            self.progress(done)

    def _months(self) -> Array:
        """Return the month in which each job started, counted from 0."""
        start = np.maximum(self.log.start, 0)
        if self.since is None:
            return (start - int(start[self.log.known].min())) // MONTH
        months = (start + self.since).astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        return months - int(months[self.log.known].min())

    # ------------------------------------------------------------------ agreement under rules

    def ask(self, rules: Rules, eligible: Array | None = None) -> OneStep:
        """Return the policy's proposals under these rules."""
        self._say(self.done)
        return self._asked(rules, eligible)

    def ask_all(self, several: Sequence[Rules]) -> Iterator[tuple[Rules, OneStep]]:
        """Yield the proposals under each set of rules, in order, computed on all cores; this counts as half of the rest of the step."""
        each = (self.until - self.done) / 2 / max(len(several), 1)
        with ThreadPoolExecutor(self.workers) as pool:
            left, running = deque(several), deque[tuple[Rules, Future[OneStep]]]()
            try:
                while left or running:
                    while left and len(running) <= self.workers:
                        running.append((left[0], pool.submit(self._asked, left.popleft())))
                    rules, future = running.popleft()
                    answer = future.result()
                    self._say(self.done + each)
                    yield rules, answer
            finally:
                pool.shutdown(cancel_futures=True)

    def _asked(self, rules: Rules, eligible: Array | None = None) -> OneStep:
        windows = [self.along(window) for window in rules.windows]
        outages = None
        if rules.outages:
            begin, end = (np.array(side, np.int64) for side in zip(*rules.outages, strict=True))
            outages = Hours(begin, end, True)
        site = SiteRules(windows, outages, eligible, overhead=rules.overhead)
        answer = self._along_parts(rules, site, rules.policy)
        if rules.policy_since is None and rules.policy_until is None:
            return answer
        since, until = (rules.policy_since or 0), (ALWAYS if rules.policy_until is None else rules.policy_until)
        inside = (self.log.start >= since) & (self.log.start < until)
        return OneStep.joined([answer.only(inside), self._along_parts(rules, site, Easy()).only(~inside)])

    def _along_parts(self, rules: Rules, site: SiteRules, policy: Policy) -> OneStep:
        """Return a policy's proposals on all parts of the machine and on the rest of it."""
        rest, answers = np.ones(len(self.w), bool), []
        for part in rules.parts:
            chosen = rest & part.takes(self.w)
            if (chosen & self.log.known).any():
                answers.append(one_step(self.w, self.log.start, policy, rules=replace(site, procs=part.procs, chosen=chosen)))
            rest &= ~chosen
        group, at_once = self._groups(rules)
        for since, until, there in stretches_of(rules.parts):
            mine = rest & submitted_in(self.w, since, until)
            if not (mine & self.log.known).any():
                continue
            # Jobs from earlier periods may still wait or run.
            chosen = mine if since is None else mine | (rest & (self.w.submit < since) & (self.log.end > since))
            size = self.size - sum(part.procs for part in there)
            limited = replace(site, group=group, at_once=at_once, procs=size, chosen=chosen)
            answers.append(one_step(self.w, self.log.start, policy, rules=limited).only(mine))
        return OneStep.joined(answers)

    def _groups(self, rules: Rules) -> tuple[Array | None, Array | None]:
        """Return the group of each job and the limit of each group, None without limits; limits of single users take precedence."""
        if not (rules.at_once or rules.each):
            return None, None
        group = np.full(len(self.w), -1)
        at_once: list[int] = []
        for limit in rules.each:
            of = limit.groups(self.w)
            group = np.where(of >= 0, len(at_once) + of, group)
            at_once += [limit.jobs] * (int(of.max()) + 1)
        for one in rules.at_once:
            mine = (self.users == one.user) & submitted_in(self.w, one.since, one.until)
            kinds, of = np.unique(self.alike[mine] if one.alike else np.zeros(np.count_nonzero(mine)), return_inverse=True)
            group[mine] = len(at_once) + of
            at_once += [one.jobs] * len(kinds)
        return group, np.array(at_once, np.int64)

    def along(self, window: Window) -> tuple[Hours, Array]:
        """Return a window's closed hours during the log, and the jobs to which it applies, bool; cached for each clock."""
        key = (window, self.clock)
        if key not in self._windows:
            machine = self.machine_of(Rules(windows=(window,)))
            hours, of, _ = hours_of(self.w, machine, np.zeros(len(self.w), np.int64), self.w.requested)
            last = int(max(self.log.start.max(), self.w.submit[-1]))
            along = [one.until(last) for one in hours] or [Hours(np.zeros(0, np.int64), np.zeros(0, np.int64), window.crossing)]
            self._windows[key] = along[0], of.counts > 0
        return self._windows[key]

    def machine_of(self, rules: Rules) -> Machine:
        """Return the machine that these rules describe."""
        node, parts = self.node, rules.parts
        own = [Pool(f"part{k}", part.procs // node, node) for k, part in enumerate(parts, 1)]
        main = Pool("main" if parts else "all", self.size // node - sum(pool.nodes for pool in own), node)
        pools = (*own, main)
        rests: list[Partition] = []
        for since, until, there in stretches_of(parts):
            names = (main.name, *(pool.name for part, pool in zip(parts, own, strict=True) if part not in there))
            size = self.size - sum(part.procs // node * node for part in there)
            widest = size if there and int(self.w.procs.max()) > size else None
            rests.append(Partition(f"{main.name}{len(rests) + 1 if rests else ''}", names, widest=widest, since=since, until=until))
        partitions = [
            Partition(pool.name, (pool.name,), widest=part.widest, longest=part.longest, since=part.since, until=part.until)
            for part, pool in zip(parts, own, strict=True)
        ]
        limits = []
        for each in rules.each:
            of_kind = each.wider_than is not None or each.longer_than is not None
            limits.append(Limit((each.by,) if each.by else (), partition=rests[0].name if of_kind else None, jobs=each.jobs))
            partitions += [Partition("others", rests[0].pools, widest=each.wider_than, longest=each.longer_than)] if of_kind else []
        for jobs, alike, since, until in dict.fromkeys(one.kind for one in sorted(rules.at_once, key=lambda one: one[1:3])):
            users = tuple(self._name(one.user) for one in rules.at_once if one.kind == (jobs, alike, since, until))
            by = ("user", "procs", "requested") if alike else ("user",)
            where: list[str | None] = [rest.name for rest in rests] if parts else [None]
            limits += [Limit(by, partition=name, only=users, jobs=jobs, since=since, until=until) for name in where]
        whole = [Partition("whole", (main.name, *(pool.name for pool in reversed(own))))] if any(one.widest for one in rests) else []
        return Machine(
            pools,
            (*partitions, *rests, *whole),
            outages=tuple(Outage(pool.name, *stop, announced=int(self.w.submit[0])) for stop in rules.outages for pool in pools),
            limits=tuple(limits),
            name=f"inferred from {self.w.origin.name}",
            policy=(rules.policy if rules.policy_until is None else Easy()).label,
            windows=rules.windows,
            clock=self.clock if rules.windows else None,
            overhead=rules.overhead,
        )

    def _name(self, user: int) -> str:
        names = getattr(self.w.origin, "names", {}).get("user", ())
        return names[user - 1] if 0 < user <= len(names) else str(user)

    # ------------------------------------------------------------------ choosing

    def gain(self, new: OneStep, mask: Array, within: int | None = None, *, old: OneStep | None = None) -> float:
        """Return the gain in the F1 score of prompt starts over these jobs; `old`: by default the proposals under the accepted rules.

        `within`: the largest delay of a prompt start, by default the log's.
        """
        within = self.within if within is None else within
        return new.score(mask, within).prompt_f1 - (old or self.answer).score(mask, within).prompt_f1

    def runs(self, new: OneStep) -> tuple[list[int], list[tuple[float, int, int]]]:
        """Return the folds that choose rules and, for each run of consecutive folds, its gain in starts and its range [first, last)."""
        folds = np.unique(self.fold[self.choose]).tolist()
        masks = [self.choose & (self.fold == fold) for fold in folds]
        total = np.cumsum([0.0, *(self.gain(new, mask) * int(mask.sum()) for mask in masks)])
        return folds, [(float(total[b] - total[a]), a, b) for a in range(len(folds)) for b in range(a + 1, len(folds) + 1)]

    def gain_of_run(self, new: OneStep) -> float:
        """Return the largest gain in F1 if the rule applies to all folds that choose rules, or only to a run of at least two of them."""
        gains = [gain for gain, a, b in self.runs(new)[1] if b - a > 1]
        return max([self.gain(new, self.choose), *(gain / int(self.choose.sum()) for gain in gains)])

    def best(self, several: Sequence[Rules], gain: Callable[[OneStep], float], least: float = LEAST_GAIN) -> tuple[Rules, OneStep] | None:
        """Return the rules with the largest gain and their proposals; None if no gain is larger than `least`."""
        best = None
        for rules, answer in self.ask_all(several):
            if (own := gain(answer)) > least:
                best, least = (rules, answer), own
        return best

    def shortened(self, new: OneStep, during: Callable[[int | None, int | None], Rules]) -> tuple[int | None, int | None, OneStep]:
        """Return the log times between which a rule applies, s, None for no bound, and the proposals with it.

        The rule is limited to a run of folds if this gains as much agreement as an accepted rule must. `during` returns the rules with this
        rule between two times. At both ends of the log, the rule also applies to folds without evidence.
        """
        folds, runs = self.runs(new)
        most, first, last = max(runs, key=lambda run: (run[0], (run[1] == 0) + (run[2] == len(folds)), run[1] - run[2]))
        if most <= runs[len(folds) - 1][0] * 1.02:  # the first run that lasts as long as the log
            return None, None, new
        since = None if first == 0 else self._edge(folds[first - 1], folds[first])
        until = None if last == len(folds) else self._edge(folds[last - 1], folds[last])
        answer = self.ask(during(since, until))
        return (since, until, answer) if self.gain(answer, self.choose, old=new) > LEAST_GAIN else (None, None, new)

    def _edge(self, fold: int, following: int) -> int:
        """Return the log time, s, midway between two folds that choose rules: the start of the held-out fold between them, if any."""
        mine = self.log.known & (self.fold >= (fold + following + 1) // 2)
        return int(self.log.start[mine].min()) if mine.any() else ALWAYS

    def error(self, new: OneStep, mask: Array, within: int | None = None, *, old: OneStep | None = None) -> float:
        """Return the standard error of the gain in F1 over these jobs, from a jackknife over weeks; inf with fewer than two weeks."""
        week = np.where(mask, self.week, -1)
        _, place = np.unique(week, return_inverse=True)
        first = int((week < 0).any())
        scores = []
        for answer in (old or self.answer, new):
            hit = answer.prompt(self.within if within is None else within)
            made, both = (np.bincount(place, column)[first:] for column in (hit & mask, (answer.counted + answer.proposals) * mask))
            scores.append(2 * (made.sum() - made) / np.maximum(both.sum() - both, 1))
        gains = scores[1] - scores[0]
        return float(np.sqrt((len(gains) - 1) * gains.var())) if len(gains) > 1 else float("inf")

    def weeks_moved(self, new: OneStep, mask: Array, within: int | None = None, *, old: OneStep | None = None) -> tuple[int, int]:
        """Return the numbers of weeks in which F1 over these jobs increases and decreases."""
        gains = [self.gain(new, mask & (self.week == week), within, old=old) for week in np.unique(self.week[mask])]
        return sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)

    def is_sure(self, new: OneStep, mask: Array, within: int | None = None, *, old: OneStep | None = None) -> bool:
        """Return whether the gain over these jobs exceeds two standard errors, and significantly more weeks gain than lose."""
        better, worse = self.weeks_moved(new, mask, within, old=old)
        gain = self.gain(new, mask, within, old=old)
        return gain > 2 * self.error(new, mask, within, old=old) and better - worse > np.sqrt(better + worse)

    def keep(self, proposal: RuleProposal, new: OneStep, within: int | None = None, *, judge: Array | None = None) -> bool:
        """Accept a rule if it significantly improves the agreement on held-out folds and makes no free simulation worse."""
        kind, text, evidence, rules, *times = proposal
        judge = self.judge if judge is None else judge
        measured = self.gain(new, judge, within), self.error(new, judge, within), *self.weeks_moved(new, judge, within)
        rule = InferredRule(kind, text, evidence, *measured, *times)
        if not self.is_sure(new, judge, within):
            self.notes.append(
                f"Left out: {text}. It explains the {self.unit} used to choose rules, but not clearly the held-out ones "
                f"({rule.agreement}; {rule.weeks})."
            )
            return False
        waits = free_waits(self.w, self.machine_of(rules))
        (rank, error_of_wait), (new_rank, new_error) = self._free_agreement(rules, waits)
        if new_rank < rank - RANKS or new_error > error_of_wait * ERRORS:
            self.notes.append(
                f"Left out: {text}. One-step agreement rises with it ({rule.agreement}), but a free simulation agrees less with the "
                f"record: in the held-out {self.unit} the rank correlation of waits changes from {rank:.2f} to {new_rank:.2f}, and the "
                f"mean error of a wait from {human_time(error_of_wait)} to {human_time(new_error)}."
            )
            return False
        self.kept.append(rule)
        self.changes.append((self.rules, rules))
        self.rules, self.answer, self._free = rules, new, (rules, waits)
        return True

    def _free_agreement(self, rules: Rules, waits: Array) -> list[tuple[float, float]]:
        """Return the agreement of free simulations under the accepted rules and under these rules (`waits`), over the held-out jobs.

        The agreement is the rank correlation of waits, and the mean error of a wait, s. If the policy applies from some time on, only jobs
        submitted after it count, because a simulation has one policy. The correlation is 0 if all waits are equal.
        """
        if self._free is None or self._free[0] != self.rules:
            self._free = self.rules, free_waits(self.w, self.machine_of(self.rules))
        old = self._free[1]
        mine = self.judge & submitted_in(self.w, rules.policy_since, None) & (old >= 0) & (waits >= 0)
        recorded = (self.log.start - self.w.submit)[mine]
        return [
            (float(np.nan_to_num(rank_correlation(recorded, own[mine]))), float(np.abs(own[mine] - recorded).mean()) if mine.any() else 0.0)
            for own in (old, waits)
        ]
