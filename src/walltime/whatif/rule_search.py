"""Which rules has a site, besides its policy? Read off its log, and kept only where they explain months that were not used to find them.

Each rule is chosen by one-step agreement (auditor/one_step.py): in the recorded state, does the policy with this rule start what was
started? A simulation that runs freely does not tell a right rule from a wrong one. Months take turns: in every other one rules are chosen,
the others judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np

from walltime.auditor.one_step import OneStep, SiteRules, one_step
from walltime.errors import WorkloadError
from walltime.machine import Limit, Machine, Outage, Partition, Pool, Window
from walltime.machine.machine import DAY
from walltime.machine.placing import place
from walltime.machine.windows import Hours
from walltime.policy import Easy, Policy, parse_policy
from walltime.whatif.candidate_rules import (
    Part,
    RecordedLog,
    candidate_parts,
    candidate_windows,
    limited_users,
    not_eligible_before,
    periods,
    stopped_stretches,
)
from walltime.whatif.free_runs import free_runs
from walltime.whatif.inference import Inference, InferredRule, MonthAgreement, unread_of
from walltime.wording import human_time
from walltime.workload import Workload, check_workload

__all__ = ["infer"]

Array = np.ndarray
LEAST_GAIN = 0.005
"""A rule that adds less to the agreement of the months that choose is left out."""
MOST_MISFITS = 0.05
"""From this share of starts on for which the record leaves too few processors, log and machine contradict each other."""
POLICIES = ("easy", "fcfs", "hybrid:depth=0", "conservative", "easy:order=sjf", "easy:order=saf", "easy:order=wfp")
"""Policies that are tried last."""
OUTAGES = (3600, 4 * 3600, 12 * 3600)
"""Stretches of at least so many s without jobs are tried as outages."""
DEEPEST = 30
"""With more jobs waiting on average, policies that plan for all of them are not tried."""
LONGEST_DELAY = 600
"""A job that starts so long after the policy would start it waited for something else, s."""
WEEK, MONTH = 7 * DAY, 30 * DAY
ALWAYS = np.iinfo(np.int64).max // 4


class Rules(NamedTuple):
    """All that has been accepted so far."""

    windows: tuple[Window, ...] = ()
    outages: tuple[tuple[int, int], ...] = ()
    parts: tuple[Part, ...] = ()
    at_once: tuple[tuple[int, int], ...] = ()
    policy: Policy = Easy()


class _Suggestion(NamedTuple):
    """A rule in words, with its evidence; all rules with it, and what takes it away again."""

    kind: str
    text: str
    evidence: str
    rules: Rules
    without: Callable[[Rules], Rules]


class _Search:
    """One inference: the record, the months, and the rules accepted so far."""

    def __init__(self, workload: Workload, machine_procs: int, procs_of_node: int, progress: Callable[[int], None] | None):
        wait = workload.recorded_wait
        if wait is None:
            raise WorkloadError(f"{workload.origin.name} records no waits, so nothing can be inferred from it; take a log with starts")
        self.w, self.size, self.node = workload, machine_procs, procs_of_node
        self.log = RecordedLog.of(workload, np.where(wait >= 0, workload.submit + wait, -1))
        self.progress = progress
        self.since = workload.origin.unix_start_time
        self.clock, self.zone = 0, False
        self.rules = Rules()
        self.kept: list[InferredRule] = []
        self.without: list[Callable[[Rules], Rules]] = []
        self.notes: list[str] = []
        self.month = self._months()
        self.choose = self.log.known & (self.month % 2 == 0)
        self.judge = self.log.known & (self.month % 2 == 1)
        if not self.judge.any():
            raise WorkloadError(f"{workload.origin.name} lasts under two months; rules cannot be chosen in one and judged in another")
        self.asked = 0

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
        self.asked += 1
        if self.progress is not None:
            self.progress(self.asked)
        windows, outages = self._hours(rules)
        limits = None
        if rules.at_once:
            limits = np.zeros(int(self.w.columns["user"].max()) + 1, np.int64)
            for user, most in rules.at_once:
                limits[user] = most
        site = SiteRules(windows, outages, eligible, limits)
        rest, size, answers = np.ones(len(self.w), bool), self.size, []
        for part in rules.parts:
            chosen = rest & part.takes(self.w)
            if not (chosen & self.log.known).any():
                continue
            answers.append(one_step(self.w, self.log.start, rules.policy, procs=part.procs, chosen=chosen, rules=site))
            rest, size = rest & ~chosen, size - part.procs
        if (rest & self.log.known).any():
            answers.append(one_step(self.w, self.log.start, rules.policy, procs=size, chosen=rest, rules=site))
        return _joined(answers)

    def _hours(self, rules: Rules) -> tuple[list[tuple[Hours, Array]], Hours | None]:
        hours: list[tuple[Hours, Array]] = []
        if rules.windows:
            machine = self.machine_of(rules._replace(parts=(), at_once=(), outages=()))
            placed = place(self.w, machine)[1]
            for k, window in enumerate(placed.windows):
                hours.append((window, np.array([k in own for own in placed.windows_of])))
        if rules.outages:
            begin, end = (np.array(side, np.int64) for side in zip(*rules.outages, strict=True))
            return hours, Hours(begin, end, True)
        return hours, None

    def machine_of(self, rules: Rules) -> Machine:
        """The rules as a machine."""
        node = self.node
        pools, partitions, rest = [], [], self.size
        for k, part in enumerate(rules.parts, 1):
            pools.append(Pool(f"part{k}", part.procs // node, node))
            partitions.append(Partition(f"part{k}", (f"part{k}",), widest=part.widest, longest=part.longest))
            rest -= part.procs // node * node
        pools.append(Pool("main" if rules.parts else "all", rest // node, node))
        main = pools[-1]
        widest = rest if rules.parts and int(self.w.procs.max()) > rest else None
        partitions.append(Partition(main.name, (main.name,), widest=widest))
        if widest is not None:
            partitions.append(Partition("whole", tuple(pool.name for pool in reversed(pools))))
        outages = tuple(Outage(pool.name, begin, end, announced=int(self.w.submit[0])) for begin, end in rules.outages for pool in pools)
        return Machine(
            tuple(pools),
            tuple(partitions),
            outages=outages,
            limits=tuple(
                Limit(("user",), only=tuple(self._name(user) for user, most in rules.at_once if most == jobs), jobs=jobs)
                for jobs in sorted({most for _, most in rules.at_once})
            ),
            name=f"inferred from {self.w.origin.name}",
            policy=rules.policy.label,
            windows=rules.windows,
            clock=self.clock if rules.windows else None,
        )

    def _name(self, user: int) -> str:
        names = getattr(self.w.origin, "names", {}).get("user", ())
        return names[user - 1] if 0 < user <= len(names) else str(user)

    # ------------------------------------------------------------------ choosing

    def gain(self, old: OneStep, new: OneStep, mask: Array) -> float:
        """What F1 of these jobs gains."""
        return new.score(mask).f1 - old.score(mask).f1

    def runs(self, old: OneStep, new: OneStep) -> tuple[list[int], list[tuple[float, int, int]]]:
        """The months that choose, and what F1 gains, times jobs, in each run of them: from one of them until before another."""
        months = np.unique(self.month[self.choose]).tolist()
        masks = [self.choose & (self.month == month) for month in months]
        total = np.cumsum([0.0, *(self.gain(old, new, mask) * int(mask.sum()) for mask in masks)])
        return months, [(float(total[b] - total[a]), a, b) for a in range(len(months)) for b in range(a + 1, len(months) + 1)]

    def gain_of_months(self, old: OneStep, new: OneStep) -> float:
        """What F1 of the months that choose gains, if a rule may hold in a run of two of them and more only."""
        gains = [gain for gain, a, b in self.runs(old, new)[1] if b - a > 1]
        return max([self.gain(old, new, self.choose), *(gain / int(self.choose.sum()) for gain in gains)])

    def error(self, old: OneStep, new: OneStep) -> float:
        """The standard error of what F1 of the months that judge gains: jackknife over their weeks."""
        week = np.where(self.judge, (self.log.start - int(self.log.start[self.judge].min())) // WEEK, -1)
        _, place = np.unique(week, return_inverse=True)
        scores = []
        for answer in (old, new):
            made, both = (np.bincount(place, column)[1:] for column in (answer.made, answer.counted + answer.wishes))
            scores.append(2 * (made.sum() - made) / np.maximum(both.sum() - both, 1))
        gains = scores[1] - scores[0]
        return float(np.sqrt((len(gains) - 1) * gains.var()))

    def jobs_near(self, begin: int, end: int) -> Array:
        """The jobs that start within two days of a stretch of time (s), bool."""
        return self.log.known & (self.log.start >= begin - 2 * DAY) & (self.log.start < end + 2 * DAY)

    def months_moved(self, old: OneStep, new: OneStep) -> tuple[int, int]:
        """In how many of the months that judge F1 is higher, and in how many it is lower."""
        gains = [self.gain(old, new, self.judge & (self.month == month)) for month in np.unique(self.month[self.judge])]
        return sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)

    def keep(self, suggestion: _Suggestion, old: OneStep, new: OneStep, **times: int | None) -> bool:
        """Keep a rule if the months that judge agree better with it."""
        kind, text, evidence, rules, without = suggestion
        better, worse = self.months_moved(old, new)
        gain, error = self.gain(old, new, self.judge), self.error(old, new)
        rule = InferredRule(kind, text, evidence, gain, error, better, worse, **times)
        if gain <= 2 * error or better <= worse:
            self.notes.append(
                f"Left out: {text}. It explains the months that choose, but not surely those that judge ({rule.agreement}; {rule.months})."
            )
            return False
        self.rules = rules
        self.kept.append(rule)
        self.without.append(without)
        return True


def _joined(answers: Sequence[OneStep]) -> OneStep:
    """The answers for the parts of a machine, whose jobs are apart."""
    whole = answers[0]
    for other in answers[1:]:
        whole = OneStep(
            whole.counted | other.counted,
            whole.made | other.made,
            whole.wishes + other.wishes,
            np.where(other.counted, other.delay, whole.delay),
            whole.short | other.short,
            whole.why + other.why,
        )
    return whole


def infer(
    workload: Workload,
    *,
    procs: int | None = None,
    machine: Machine | None = None,
    progress: Callable[[int], None] | None = None,
) -> Inference:
    """Infer a site's rules from the starts that its log records.

    `procs`: the machine's size, by default that of the log. `machine`: of it only the size of the nodes is taken; a note says what else it
    has. `progress` is told how many rules have been tried. Raises WorkloadError for a
    log without recorded waits or of under two months.
    """
    check_workload(workload)
    nodes = {1} if machine is None else {pool.procs for pool in machine.pools}
    search = _Search(workload, workload.machine_procs if procs is None else procs, min(nodes) if len(nodes) == 1 else 1, progress)
    search.notes += unread_of(machine)
    plain = search.ask(search.rules)
    misfits = float(plain.short[plain.counted].mean())
    if misfits > MOST_MISFITS:
        refused = (
            f"{100 * misfits:.0f} % of the recorded starts need more processors than the record leaves of {search.size:,}: the log, or the "
            "machine's size, does not say what the scheduler saw; nothing is inferred"
        )
        return _result(search, plain, plain, misfits, refused)
    current = _windows(search, plain)
    current = _outages(search, current)
    current = _parts(search, current)
    current = _limits(search, current)
    current = _policy(search, current)
    current = _drop_superseded(search, current)
    return _result(search, plain, current, misfits, "")


def _parts(search: _Search, current: OneStep) -> OneStep:
    """Parts of the machine for small, short jobs."""
    while len(search.rules.parts) < 2:
        best, best_gain, best_part = None, LEAST_GAIN, None
        for part in candidate_parts(search.log, search.size):
            if search.node > 1:
                part = replace(part, procs=-(-part.procs // search.node) * search.node)
            answer = search.ask(search.rules._replace(parts=(*search.rules.parts, part)))
            gain = search.gain(current, answer, search.choose)
            if gain > best_gain:
                best, best_gain, best_part = answer, gain, part
        if best is None or best_part is None:
            return current
        jobs = int((best_part.takes(search.w) & search.log.known).sum())
        sizes = "1 processor" if best_part.widest == 1 else f"up to {best_part.widest:,} processors"
        text = f"jobs of {sizes} and up to {human_time(best_part.longest)} run on a part of {_processors(best_part.procs)}"
        evidence = f"the {jobs:,} such jobs never use more together"
        rules = search.rules._replace(parts=(*search.rules.parts, best_part))
        without = partial(_without, "parts", best_part)
        if not search.keep(_Suggestion("part", text, evidence, rules, without), current, best):
            return current
        current = best
    return current


def _outages(search: _Search, current: OneStep) -> OneStep:
    """Outages of the whole machine, known in advance: the stretches without jobs that explain the days around them."""
    rules, answer = search.rules, current
    for least in OUTAGES:  # a machine that drains before an outage stands still for hours, too
        stretches = [own for own in stopped_stretches(search.log) if own[1] - own[0] >= least]
        stretches = [
            own for own in stretches if search.gain(current, search.ask(rules._replace(outages=(own,))), search.jobs_near(*own)) > 0
        ]
        if not stretches:
            continue
        these = search.rules._replace(outages=tuple(stretches))
        asked = search.ask(these)
        if search.gain(answer, asked, search.choose) > 0:
            rules, answer = these, asked
    stretches = list(rules.outages)
    every = periods(stretches)
    text = f"{len(stretches)} outages of the whole machine, known in advance{f', {every}' if every else ''}"
    evidence = f"nothing runs for an hour and longer while jobs wait, {sum(b - a for a, b in stretches) / 3600:,.0f} h in all"
    suggestion = _Suggestion("outage", text, evidence, rules, lambda rules: rules._replace(outages=()))
    if stretches and search.gain(current, answer, search.choose) > LEAST_GAIN / 5 and search.keep(suggestion, current, answer):
        return answer
    return current


def _windows(search: _Search, current: OneStep) -> OneStep:
    """Rules by the clock, one after the other."""
    if search.since is None:
        search.notes.append("The log does not say when it starts, so rules by the clock cannot be seen.")
        return current
    best_clock, best_found = 0, None
    for clock in _clocks(search.w):
        search.clock = clock
        candidates = candidate_windows(search.log, search.since + clock)
        answers = [(search.ask(search.rules._replace(windows=(one,))), one) for one in candidates]
        gains = [search.gain_of_months(current, answer) for answer, _ in answers]
        if gains and (best_found is None or max(gains) > best_found[0]):
            best_clock, best_found = clock, (max(gains), candidates)
    if best_found is None:
        return current
    search.clock, candidates = best_clock, list(best_found[1])
    while candidates:
        best, gain, window = None, LEAST_GAIN, None
        worth = []
        for one in candidates:
            answer = search.ask(search.rules._replace(windows=(*search.rules.windows, one)))
            own = search.gain_of_months(current, answer)
            if own > 0:
                worth.append(one)
            if own > gain:
                best, gain, window = answer, own, one
        if best is None or window is None:
            return current
        worth.remove(window)
        candidates = worth
        window, best = _period(search, current, window, best)
        rules = search.rules._replace(windows=(*search.rules.windows, window))
        text, evidence = _said(search, window)
        suggestion = _Suggestion("window", text, evidence, rules, partial(_without, "windows", window))
        times = {"since": window.since, "until": window.until}
        if search.keep(suggestion, current, best, **times):  # type: ignore[arg-type]
            current = best
    return current


def _clocks(workload: Workload) -> list[int]:
    """What the site's clock may be ahead of UTC, s: its zone's time in winter, and an hour more or less."""
    since = workload.origin.unix_start_time
    assert since is not None
    zone = workload.origin.tzinfo()
    year = datetime.fromtimestamp(since, UTC).year
    offsets = {datetime(year, month, 15, tzinfo=zone).utcoffset() or timedelta(0) for month in (1, 7)}
    return sorted(int(offset.total_seconds()) for offset in offsets)


def _period(search: _Search, current: OneStep, window: Window, best: OneStep) -> tuple[Window, OneStep]:
    """Whether a window holds all the time, or begins or ends with a month; by the months that choose."""
    months, runs = search.runs(current, best)
    most, first, last = max(runs, key=lambda run: (run[0], run[2] - run[1]))
    if most <= runs[len(months) - 1][0] * 1.02:  # the first run that lasts as long as the log
        return window, best
    since = None if first == 0 else _edge(search, months[first - 1], months[first])
    until = None if last == len(months) else _edge(search, months[last - 1], months[last])
    shorter = replace(window, since=since, until=until)
    answer = search.ask(search.rules._replace(windows=(*search.rules.windows, shorter)))
    if search.gain(best, answer, search.choose) > 0:
        return shorter, answer
    return window, best


def _edge(search: _Search, month: int, following: int) -> int:
    """The middle between two months that choose, in s of the log: the beginning of the month between them where there is one."""
    between = (month + following + 1) // 2
    mine = search.log.known & (search.month >= between)
    return int(search.log.start[mine].min()) if mine.any() else ALWAYS


def _said(search: _Search, window: Window) -> tuple[str, str]:
    """A window in words, and what the log shows of it."""
    days = "every day" if len(window.days) == 7 else "-".join((window.days[0], window.days[-1])) if len(window.days) > 1 else window.days[0]
    who = "jobs"
    if window.longer_than is not None:
        who = f"jobs of over {human_time(window.longer_than)}"
    if window.wider_than is not None:
        who = f"jobs of over {_processors(window.wider_than)}"
    if window.end is None:
        text = f"no job is planned to run across {window.begin} ({days})"
        return text, "far fewer requests cross it than the half hours beside it"
    return f"{who} do not start from {window.begin} to {window.end} ({days})", "far fewer of them start then than are submitted"


def _processors(count: int) -> str:
    return f"{count:,} processor{'' if count == 1 else 's'}"


def _limits(search: _Search, current: OneStep) -> OneStep:
    """Users whose jobs run one, or two, at a time."""
    most = limited_users(search.log)
    users = np.flatnonzero(most)
    if not len(users):
        return current
    every = search.ask(search.rules._replace(at_once=tuple((int(user), int(most[user])) for user in users)))
    column, better = search.w.columns["user"], []
    for user in users.tolist():
        mine = search.choose & (column == user)
        if mine.any() and every.score(mine).wishes < current.score(mine).wishes and search.gain(current, every, mine) > 0:
            better.append((user, int(most[user])))
    if not better:
        return current
    rules = search.rules._replace(at_once=tuple(better))
    answer = search.ask(rules)
    text = f"{len(better)} user{'s' if len(better) > 1 else ''} whose jobs run one or two at a time"
    evidence = "more of their jobs wait than ever run together"
    suggestion = _Suggestion("limit", text, evidence, rules, lambda rules: rules._replace(at_once=()))
    if search.gain(current, answer, search.choose) > LEAST_GAIN and search.keep(suggestion, current, answer):
        return answer
    return current


def _policy(search: _Search, current: OneStep) -> OneStep:
    """The order of the queue, and who may overtake: a named policy where it explains more."""
    best, gain, policy = None, LEAST_GAIN, None
    known = search.log.known
    waiting = float((search.log.start - search.w.submit)[known].sum() / max(np.ptp(search.log.start[known]), 1))
    for name in POLICIES:
        own = parse_policy(name)
        if own == search.rules.policy:
            continue
        if own.passes.kind == "kept" and waiting > DEEPEST:
            search.notes.append(
                f"{name} is not tried: {waiting:.0f} jobs wait on average, and a plan for all of them at every instant takes long."
            )
            continue
        answer = search.ask(search.rules._replace(policy=own))
        if search.gain(current, answer, search.choose) > gain:
            best, gain, policy = answer, search.gain(current, answer, search.choose), own
    if best is None or policy is None:
        return current
    text = f"the policy is {policy.label}"
    evidence = "it explains more starts than EASY in order of arrival"
    rules = search.rules._replace(policy=policy)
    suggestion = _Suggestion("policy", text, evidence, rules, lambda rules: rules._replace(policy=Easy()))
    return best if search.keep(suggestion, current, best) else current


def _without(name: str, value: Part | Window, rules: Rules) -> Rules:
    """The rules without one of them."""
    return rules._replace(**{name: tuple(one for one in getattr(rules, name) if one != value)})  # type: ignore[arg-type]


def _drop_superseded(search: _Search, current: OneStep) -> OneStep:
    """Leave out rules that explain nothing beside those that were kept after them; by the months that choose."""
    k = 0
    while k < len(search.kept) - 1:
        rules = search.without[k](search.rules)
        answer = search.ask(rules)
        if search.gain(answer, current, search.choose) > LEAST_GAIN / 5:
            k += 1
            continue
        search.notes.append(f"Left out: {search.kept[k].text}. The rules below explain as much without it.")
        search.rules, current = rules, answer
        del search.kept[k], search.without[k]
    return current


def _result(search: _Search, plain: OneStep, current: OneStep, misfits: float, refused: str) -> Inference:
    eligible = not_eligible_before(search.log)
    hindsight = current if refused else search.ask(search.rules, eligible)
    made = current.delay[current.made & (current.delay >= 0) & (current.delay <= LONGEST_DELAY)]
    low, middle, high = np.percentile(made, [5, 50, 95]).tolist() if len(made) else (0.0, 0.0, 0.0)
    months = []
    for month in np.unique(search.month[search.log.known]).tolist():
        mask = search.log.known & (search.month == month)
        name = f"month {month + 1}"
        if search.since is not None:
            name = str(np.datetime64(int(search.since + search.log.start[mask].min()), "s").astype("datetime64[M]"))
        months.append(MonthAgreement(name, int(mask.sum()), bool(month % 2), plain.score(mask).f1, current.score(mask).f1))
    machine = search.machine_of(search.rules)
    return Inference(
        log=search.w.origin.name,
        rules=search.kept,
        machine=machine,
        before=plain.score(search.judge),
        after=current.score(search.judge),
        hindsight=hindsight.score(search.judge),
        months=months,
        delay=(low, middle, high),
        misfits=misfits,
        clock=search.clock,
        unix_start_time=search.since,
        notes=search.notes,
        refused=refused,
        free=() if refused else tuple(free_runs(search.w, search.judge, search.machine_of(Rules()), machine)),
    )
