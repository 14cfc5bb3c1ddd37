"""Rules on trial: the record, the agreement of a policy with it under rules, and whether a rule is kept.

Each rule is chosen by one-step agreement (one_step.py): in the recorded state, does the policy with this rule promptly start what
was started? Folds, which are months, and weeks of a short log, take turns: in every other one rules are chosen, the others judge. A
simulation that runs freely cannot tell a right rule from a wrong one, but a rule with which it agrees less with the record is not kept.
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
"""A rule that adds less to the agreement of the folds that choose is left out."""
WEEK, MONTH = 7 * DAY, 30 * DAY
SHORTEST = 56 * DAY
"""A shorter record has too few weeks to choose and to judge in."""
ALWAYS = np.iinfo(np.int64).max // 4
RANKS, ERRORS = 0.01, 1.2
"""A rule is left out if, simulated freely, the rank correlation of waits falls by more than the one, or the mean error of a wait grows by
more than the factor: chance moves them by less."""
MONTHS = 8
"""With fewer months, weeks take turns."""


class AtOnce(NamedTuple):
    """How many jobs of a user, by number, run at once; if `alike`, of each size and request apart.

    `since`, `until`: of those submitted then, s of the log; None for always.
    """

    user: int
    jobs: int
    alike: bool
    since: int | None = None
    until: int | None = None

    @property
    def kind(self) -> tuple[int, bool, int | None, int | None]:
        """All but whose they are."""
        return self[1:]


class Rules(NamedTuple):
    """All that has been accepted so far. Of jobs that start before `policy_since`, or from `policy_until` on, plain EASY is asked."""

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
    """The times, from one on and until another (s of the log, None for no bound), between which the same parts are there, and which."""
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


class Suggestion(NamedTuple):
    """A rule in words, with its evidence; all rules with it, and what takes it away again."""

    kind: str
    text: str
    evidence: str
    rules: Rules
    without: Callable[[Rules], Rules]


class RuleTrial:
    """One inference: the record, the months, and the rules accepted so far; `answer`: what the policy starts with these."""

    def __init__(self, workload: Workload, machine_procs: int, procs_of_node: int, progress: Callable[[float], None] | None):
        wait = workload.recorded_wait
        if wait is None:
            raise WorkloadError(
                f"{workload.origin.name} records no waits, so nothing can be inferred from it; take a log with starts", "missing_waits"
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
                f"{workload.origin.name} lasts under two months; rules cannot be chosen in a part of it and judged in another",
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
        """So much of all work is done, about: a share from 0 to 1. How many rules a step tries depends on what it finds."""
        self.done = done
        if self.progress is not None:
            self.progress(done)

    def _months(self) -> Array:
        """The number of the month in which each job started, from 0 on."""
        start = np.maximum(self.log.start, 0)
        if self.since is None:
            return (start - int(start[self.log.known].min())) // MONTH
        months = (start + self.since).astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        return months - int(months[self.log.known].min())

    # ------------------------------------------------------------------ agreement under rules

    def ask(self, rules: Rules, eligible: Array | None = None) -> OneStep:
        """What the policy would have started under these rules."""
        self._say(self.done)
        return self._asked(rules, eligible)

    def ask_all(self, several: Sequence[Rules]) -> Iterator[tuple[Rules, OneStep]]:
        """The same under each of these rules, in this order; a few at a time, on all cores. It counts as half of what the step has left."""
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
        """What a policy would have started on each part of the machine, and on the rest of it."""
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
            # What was there before still waits or runs.
            chosen = mine if since is None else mine | (rest & (self.w.submit < since) & (self.log.end > since))
            size = self.size - sum(part.procs for part in there)
            limited = replace(site, group=group, at_once=at_once, procs=size, chosen=chosen)
            answers.append(one_step(self.w, self.log.start, policy, rules=limited).only(mine))
        return OneStep.joined(answers)

    def _groups(self, rules: Rules) -> tuple[Array | None, Array | None]:
        """In which group each job counts, and how many of each run at once; None without limits. Limits of single users come first."""
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
        """A window's times along the log, and the jobs for which it holds, bool; found once for each clock."""
        key = (window, self.clock)
        if key not in self._windows:
            machine = self.machine_of(Rules(windows=(window,)))
            hours, of, _ = hours_of(self.w, machine, np.zeros(len(self.w), np.int64), self.w.requested)
            last = int(max(self.log.start.max(), self.w.submit[-1]))
            along = [one.until(last) for one in hours] or [Hours(np.zeros(0, np.int64), np.zeros(0, np.int64), window.crossing)]
            self._windows[key] = along[0], of.counts > 0
        return self._windows[key]

    def machine_of(self, rules: Rules) -> Machine:
        """The rules as a machine."""
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
        """What the agreement over these jobs gains: F1 of prompt starts, by default within what is prompt in this log."""
        within = self.within if within is None else within
        return new.score(mask, within).prompt_f1 - old.score(mask, within).prompt_f1

    def starts_gained(self, old: OneStep, new: OneStep, mask: Array) -> float:
        """That gain as a number of starts: of so many jobs more the start is that of the policy."""
        return self.gain(old, new, mask) * int(mask.sum())

    def runs(self, old: OneStep, new: OneStep) -> tuple[list[int], list[tuple[float, int, int]]]:
        """The folds that choose, and what F1 gains, times jobs, in each run of them: from one of them until before another."""
        folds = np.unique(self.fold[self.choose]).tolist()
        masks = [self.choose & (self.fold == fold) for fold in folds]
        total = np.cumsum([0.0, *(self.starts_gained(old, new, mask) for mask in masks)])
        return folds, [(float(total[b] - total[a]), a, b) for a in range(len(folds)) for b in range(a + 1, len(folds) + 1)]

    def gain_of_run(self, old: OneStep, new: OneStep) -> float:
        """What F1 of the folds that choose gains, if a rule may hold in a run of two of them and more only."""
        gains = [gain for gain, a, b in self.runs(old, new)[1] if b - a > 1]
        return max([self.gain(old, new, self.choose), *(gain / int(self.choose.sum()) for gain in gains)])

    def shortened(
        self, old: OneStep, new: OneStep, during: Callable[[int | None, int | None], Rules]
    ) -> tuple[int | None, int | None, OneStep]:
        """Between which times a rule holds, s of the log, None for always; and what is asked with it then.

        It begins or ends with a month if that gains as much as a rule, by the months that choose; `during`: all rules if it does. Where
        months beside these show nothing of it, it does not hold in them, but at the ends of the log.
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
        """The middle between two folds that choose, in s of the log: the beginning of the one between them where there is one."""
        mine = self.log.known & (self.fold >= (fold + following + 1) // 2)
        return int(self.log.start[mine].min()) if mine.any() else ALWAYS

    def error(self, old: OneStep, new: OneStep, mask: Array, within: int | None = None) -> float:
        """The standard error of what F1 of these jobs gains: jackknife over their weeks; inf with fewer than two."""
        week = np.where(mask, self.week, -1)
        _, place = np.unique(week, return_inverse=True)
        first = int((week < 0).any())
        scores = []
        for answer in (old, new):
            hit = answer.prompt(self.within if within is None else within)
            made, both = (np.bincount(place, column)[first:] for column in (hit & mask, (answer.counted + answer.wishes) * mask))
            scores.append(2 * (made.sum() - made) / np.maximum(both.sum() - both, 1))
        gains = scores[1] - scores[0]
        return float(np.sqrt((len(gains) - 1) * gains.var())) if len(gains) > 1 else float("inf")

    def jobs_near(self, begin: int, end: int) -> Array:
        """The jobs that start within two days of a stretch of time (s), bool."""
        return self.log.known & (self.log.start >= begin - 2 * DAY) & (self.log.start < end + 2 * DAY)

    def weeks_moved(self, old: OneStep, new: OneStep, mask: Array, within: int | None = None) -> tuple[int, int]:
        """In how many of the weeks of these jobs F1 is higher, and in how many it is lower."""
        gains = [self.gain(old, new, mask & (self.week == week), within) for week in np.unique(self.week[mask])]
        return sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)

    def is_sure(self, old: OneStep, new: OneStep, mask: Array, within: int | None = None) -> bool:
        """Whether a gain over these jobs is more than two standard errors, and more weeks gain than by chance."""
        better, worse = self.weeks_moved(old, new, mask, within)
        gain = self.gain(old, new, mask, within)
        return gain > 2 * self.error(old, new, mask, within) and better - worse > np.sqrt(better + worse)

    def keep(
        self,
        suggestion: Suggestion,
        old: OneStep,
        new: OneStep,
        within: int | None = None,
        *,
        sure: bool = False,
        judge: Array | None = None,
        **times: int | None,
    ) -> bool:
        """Keep a rule if the folds that judge surely agree better with it, or `sure` says so, and if free runs do not agree less."""
        kind, text, evidence, rules, without = suggestion
        judge = self.judge if judge is None else judge
        better, worse = self.weeks_moved(old, new, judge, within)
        gain, error = self.gain(old, new, judge, within), self.error(old, new, judge, within)
        rule = InferredRule(kind, text, evidence, gain, error, better, worse, **times)
        if not sure and not self.is_sure(old, new, judge, within):
            self.notes.append(
                f"Left out: {text}. It explains the {self.unit} that choose, but not surely those that judge ({rule.agreement}; "
                f"{rule.weeks})."
            )
            return False
        waits = free_waits(self.w, self.machine_of(rules))
        (rank, error_of_wait), (new_rank, new_error) = self._free_agreement(rules, waits)
        if new_rank < rank - RANKS or new_error > error_of_wait * ERRORS:
            self.notes.append(
                f"Left out: {text}. One-step agreement rises with it ({rule.agreement}), but a simulation that runs freely agrees less "
                f"with the record: in the {self.unit} that judge the rank correlation of waits goes from {rank:.2f} to {new_rank:.2f}, and "
                f"a wait is off by {human_time(new_error)} instead of {human_time(error_of_wait)} on average."
            )
            return False
        self.rules, self.answer, self._free = rules, new, (rules, waits)
        self.kept.append(rule)
        self.without.append(without)
        return True

    def _free_agreement(self, rules: Rules, waits: Array) -> list[tuple[float, float]]:
        """How free runs without these rules, and with them (`waits`), agree with the record, over the jobs that judge.

        The rank correlation of waits, and by how much one is off on average, s. Where the policy holds since a time, over the jobs that
        were submitted from then on: a simulation has one policy. Waits that are all alike have ranks by chance: their correlation counts
        as 0.
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
