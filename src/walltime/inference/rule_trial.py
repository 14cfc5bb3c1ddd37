"""Trials of rules: the agreement of a policy with the record under rules, and the acceptance of a rule.

Rules are chosen by one-step agreement (one_step.py). Folds are months, or weeks of a short log: every other fold chooses rules, the other
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
from typing import NamedTuple

import numpy as np

from walltime.errors import WorkloadError
from walltime.inference.candidate_rules import EachLimit, InferredPool, RecordedLog, submitted_in
from walltime.inference.free_runs import free_waits
from walltime.inference.inference import InferredRule
from walltime.inference.one_step import OneStep, SiteRules, one_step, prompt_within
from walltime.inference.order_choice import OrderChoice
from walltime.machine import NO_OVERHEAD, Limit, Machine, Outage, Overhead, Partition, Pool, Window
from walltime.machine.machine import DAY
from walltime.machine.windows import Hours, hours_of
from walltime.metrics.recorded import rank_correlation
from walltime.policy import Easy, Policy
from walltime.wording import human_time
from walltime.workload import Workload

Array = np.ndarray
LEAST_GAIN = 0.005
"""Smallest gain in agreement of a rule on the choosing folds."""
WEEK, MONTH = 7 * DAY, 30 * DAY
SHORTEST = 56 * DAY
"""A shorter record has too few weeks for choosing and judging."""
ALWAYS = np.iinfo(np.int64).max // 4
RANKS, ERRORS = 0.01, 1.2
"""Largest fall of the rank correlation of waits, and largest growth of the mean error of a wait, in a free simulation with a rule."""
MONTHS = 8
"""With fewer months, folds are weeks."""


class AtOnce(NamedTuple):
    """A limit of running jobs of a user, by number; if `alike`, for each size and request separately.

    `since`, `until`: applies to jobs submitted between these times of the log, s; None for always.
    """

    user: int
    jobs: int
    alike: bool
    since: int | None = None
    until: int | None = None

    @property
    def kind(self) -> tuple[int, bool, int | None, int | None]:
        """Everything but the user."""
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


def stretches_of(parts: Sequence[InferredPool]) -> list[tuple[int | None, int | None, list[InferredPool]]]:
    """Return the stretches of time (s of the log, None for no bound) in which the same parts exist, with these parts."""
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
    """A rule in words, with its evidence, all rules with it, and a function that removes it."""

    kind: str
    text: str
    evidence: str
    rules: Rules
    without: Callable[[Rules], Rules]


class RuleTrial:
    """An inference: the record, the folds, and the accepted rules; `answer`: the policy's proposals with them."""

    def __init__(self, workload: Workload, machine_procs: int, procs_of_node: int, progress: Callable[[float], None] | None):
        wait = workload.recorded_wait
        if wait is None:
            raise WorkloadError(
                f"{workload.origin.name} records no waits, so nothing can be inferred; use a log with start times", "missing_waits"
            )
        self.w, self.size, self.node = workload, machine_procs, procs_of_node
        self.log = RecordedLog.of(workload, np.where(wait >= 0, workload.submit + wait, -1))
        self.progress = progress
        self.since = workload.origin.unix_start_time
        self.clock, self.zone = 0, False
        self.rules = Rules()
        self.kept: list[InferredRule] = []
        self.without: list[Callable[[Rules], Rules]] = []
        self.notes: list[str] = []
        self.order: OrderChoice | None = None
        self.month = self._months()
        self.week = (self.log.start - int(self.log.start[self.log.known].min())) // WEEK
        if int(self.log.start[self.log.known].max() - self.log.start[self.log.known].min()) < SHORTEST:
            raise WorkloadError(
                f"{workload.origin.name} lasts less than two months, too short to choose and judge rules; use a longer log",
                "log_too_short",
            )
        self.fold, self.unit = (self.month, "months") if len(np.unique(self.month[self.log.known])) >= MONTHS else (self.week, "weeks")
        self.choose = self.log.known & (self.fold % 2 == 0)
        self.judge = self.log.known & (self.fold % 2 == 1)
        self.users = workload.columns.get("user", np.full(len(workload), -1))
        rows = np.stack([self.users, workload.procs, workload.requested], axis=1)
        self.alike = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        self.done, self.until = 0.0, 1.0
        self.workers = os.cpu_count() or 1
        self._windows: dict[tuple[Window, int], tuple[Hours, Array]] = {}
        self._free: tuple[Rules, Array] | None = None
        self.answer = self.ask(self.rules)
        self.within = prompt_within(self.answer, np.where(self.choose, wait, -1))

    def _say(self, done: float) -> None:
        """Report the share of the work that is done, about, from 0 to 1."""
        self.done = done
        if self.progress is not None:
            self.progress(done)

    def _months(self) -> Array:
        """Return the number of the month in which each job started, from 0 on."""
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
        """Yield the proposals under each of these rules, in order, on all cores; this counts as half of the remaining step."""
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
        """Return a policy's proposals on each part of the machine, and on the rest of it."""
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
            # Earlier jobs still wait or run.
            chosen = mine if since is None else mine | (rest & (self.w.submit < since) & (self.log.end > since))
            size = self.size - sum(part.procs for part in there)
            limited = replace(site, group=group, at_once=at_once, procs=size, chosen=chosen)
            answers.append(one_step(self.w, self.log.start, policy, rules=limited).only(mine))
        return OneStep.joined(answers)

    def _groups(self, rules: Rules) -> tuple[Array | None, Array | None]:
        """Return the group of each job, and the limit of each group; None without limits. Limits of single users take precedence."""
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
        """Return a window's times along the log, and the jobs to which it applies, bool; cached for each clock."""
        key = (window, self.clock)
        if key not in self._windows:
            machine = self.machine_of(Rules(windows=(window,)))
            hours, of, _ = hours_of(self.w, machine, np.zeros(len(self.w), np.int64), self.w.requested)
            last = int(max(self.log.start.max(), self.w.submit[-1]))
            along = [one.until(last) for one in hours] or [Hours(np.zeros(0, np.int64), np.zeros(0, np.int64), window.crossing)]
            self._windows[key] = along[0], of.counts > 0
        return self._windows[key]

    def machine_of(self, rules: Rules) -> Machine:
        """Return the rules as a machine."""
        node = self.node
        pools, partitions, rest = [], [], self.size
        for k, part in enumerate(rules.parts, 1):
            pools.append(Pool(f"part{k}", part.procs // node, node))
            kind = {"widest": part.widest, "longest": part.longest, "since": part.since, "until": part.until}
            partitions.append(Partition(f"part{k}", (f"part{k}",), **kind))  # type: ignore[arg-type]
            rest -= part.procs // node * node
        pools.append(Pool("main" if rules.parts else "all", rest // node, node))
        main = pools[-1]
        rests: list[Partition] = []
        for since, until, there in stretches_of(rules.parts):
            names = (main.name, *(pool.name for part, pool in zip(rules.parts, pools, strict=False) if part not in there))
            size = self.size - sum(part.procs // node * node for part in there)
            widest = size if there and int(self.w.procs.max()) > size else None
            rests.append(Partition(main.name + str(len(rests) + 1) * (len(rests) > 0), names, widest=widest, since=since, until=until))
        of_kind = [limit for limit in rules.each if limit.wider_than is not None or limit.longer_than is not None]
        others = [Partition("others", rests[0].pools, widest=limit.wider_than, longest=limit.longer_than) for limit in of_kind]
        partitions += [*others, *rests]
        if any(one.widest is not None for one in rests):
            partitions.append(Partition("whole", tuple(pool.name for pool in reversed(pools))))
        outages = tuple(Outage(pool.name, begin, end, announced=int(self.w.submit[0])) for begin, end in rules.outages for pool in pools)
        kinds = list(dict.fromkeys(one.kind for one in sorted(rules.at_once, key=lambda one: one[1:3])))
        return Machine(
            tuple(pools),
            tuple(partitions),
            outages=outages,
            limits=tuple(
                Limit((limit.by,) if limit.by else (), partition=rests[0].name if limit in of_kind else None, jobs=limit.jobs)
                for limit in rules.each
            )
            + tuple(
                Limit(
                    ("user", "procs", "requested") if alike else ("user",),
                    partition=own.name if rules.parts else None,
                    only=tuple(self._name(one.user) for one in rules.at_once if one.kind == (jobs, alike, since, until)),
                    jobs=jobs,
                    since=since,
                    until=until,
                )
                for jobs, alike, since, until in kinds
                for own in rests
            ),
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

    def gain(self, old: OneStep, new: OneStep, mask: Array, within: int | None = None) -> float:
        """Return the gain in F1 of prompt starts over these jobs; `within`: the largest delay of a prompt start, by default the log's."""
        within = self.within if within is None else within
        return new.score(mask, within).prompt_f1 - old.score(mask, within).prompt_f1

    def starts_gained(self, old: OneStep, new: OneStep, mask: Array) -> float:
        """Return that gain as a number of starts."""
        return self.gain(old, new, mask) * int(mask.sum())

    def runs(self, old: OneStep, new: OneStep) -> tuple[list[int], list[tuple[float, int, int]]]:
        """Return the choosing folds, and the gain in starts of each run of them, with its first fold and the one after its last."""
        folds = np.unique(self.fold[self.choose]).tolist()
        masks = [self.choose & (self.fold == fold) for fold in folds]
        total = np.cumsum([0.0, *(self.starts_gained(old, new, mask) for mask in masks)])
        return folds, [(float(total[b] - total[a]), a, b) for a in range(len(folds)) for b in range(a + 1, len(folds) + 1)]

    def gain_of_run(self, old: OneStep, new: OneStep) -> float:
        """Return the largest gain in F1 on the choosing folds if the rule applies to all of them, or to a run of at least two."""
        gains = [gain for gain, a, b in self.runs(old, new)[1] if b - a > 1]
        return max([self.gain(old, new, self.choose), *(gain / int(self.choose.sum()) for gain in gains)])

    def shortened(
        self, old: OneStep, new: OneStep, during: Callable[[int | None, int | None], Rules]
    ) -> tuple[int | None, int | None, OneStep]:
        """Return the times between which a rule applies, s of the log, None for always; and the proposals with it.

        It begins or ends with a fold if that gains as much as a rule on the choosing folds; `during`: all rules with this rule between two
        times. At the ends of the log it applies even to folds without evidence.
        """
        folds, runs = self.runs(old, new)
        most, first, last = max(runs, key=lambda run: (run[0], (run[1] == 0) + (run[2] == len(folds)), run[1] - run[2]))
        if most <= runs[len(folds) - 1][0] * 1.02:  # the first run that lasts as long as the log
            return None, None, new
        since = None if first == 0 else self._edge(folds[first - 1], folds[first])
        until = None if last == len(folds) else self._edge(folds[last - 1], folds[last])
        answer = self.ask(during(since, until))
        return (since, until, answer) if self.gain(new, answer, self.choose) > LEAST_GAIN else (None, None, new)

    def _edge(self, fold: int, following: int) -> int:
        """Return the middle between two choosing folds, s of the log: the begin of the fold between them, if there is one."""
        mine = self.log.known & (self.fold >= (fold + following + 1) // 2)
        return int(self.log.start[mine].min()) if mine.any() else ALWAYS

    def error(self, old: OneStep, new: OneStep, mask: Array, within: int | None = None) -> float:
        """Return the standard error of the gain in F1 over these jobs, a jackknife over weeks; inf with fewer than two."""
        week = np.where(mask, self.week, -1)
        _, place = np.unique(week, return_inverse=True)
        first = int((week < 0).any())
        scores = []
        for answer in (old, new):
            hit = answer.prompt(self.within if within is None else within)
            made, both = (np.bincount(place, column)[first:] for column in (hit & mask, (answer.counted + answer.proposals) * mask))
            scores.append(2 * (made.sum() - made) / np.maximum(both.sum() - both, 1))
        gains = scores[1] - scores[0]
        return float(np.sqrt((len(gains) - 1) * gains.var())) if len(gains) > 1 else float("inf")

    def jobs_near(self, begin: int, end: int) -> Array:
        """Return the jobs that start within two days of a stretch of time (s), bool."""
        return self.log.known & (self.log.start >= begin - 2 * DAY) & (self.log.start < end + 2 * DAY)

    def weeks_moved(self, old: OneStep, new: OneStep, mask: Array, within: int | None = None) -> tuple[int, int]:
        """Return the numbers of weeks of these jobs in which F1 is higher and lower."""
        gains = [self.gain(old, new, mask & (self.week == week), within) for week in np.unique(self.week[mask])]
        return sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)

    def is_sure(self, old: OneStep, new: OneStep, mask: Array, within: int | None = None) -> bool:
        """Return whether a gain over these jobs exceeds two standard errors, and more weeks gain than by chance."""
        better, worse = self.weeks_moved(old, new, mask, within)
        gain = self.gain(old, new, mask, within)
        return gain > 2 * self.error(old, new, mask, within) and better - worse > np.sqrt(better + worse)

    def keep(
        self,
        suggestion: RuleProposal,
        old: OneStep,
        new: OneStep,
        within: int | None = None,
        *,
        sure: bool = False,
        judge: Array | None = None,
        **times: int | None,
    ) -> bool:
        """Accept a rule if the held-out folds agree significantly better with it, or if `sure`, and if free runs do not agree less."""
        kind, text, evidence, rules, without = suggestion
        judge = self.judge if judge is None else judge
        better, worse = self.weeks_moved(old, new, judge, within)
        gain, error = self.gain(old, new, judge, within), self.error(old, new, judge, within)
        rule = InferredRule(kind, text, evidence, gain, error, better, worse, **times)
        if not sure and not self.is_sure(old, new, judge, within):
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
        self.rules, self.answer, self._free = rules, new, (rules, waits)
        self.kept.append(rule)
        self.without.append(without)
        return True

    def _free_agreement(self, rules: Rules, waits: Array) -> list[tuple[float, float]]:
        """Return the agreement of free runs without these rules, and with them (`waits`), over the held-out jobs.

        The agreement is the rank correlation of waits, and the mean error of a wait, s. If the policy applies from some time on, only jobs
        submitted after it count, because a simulation has one policy. The correlation of equal waits is 0.
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
