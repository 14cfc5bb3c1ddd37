"""Infer the queue order and backfilling of a site: a named policy, order of arrival with handicaps, or a fitted order."""

import math
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from walltime.inference.candidate_rules import FEWEST, not_eligible_before
from walltime.inference.free_runs import engine_of
from walltime.inference.one_step import OneStep
from walltime.inference.order_choice import FORMS, HOUR, Choices, fitted_weights, order_choice, recorded_choices
from walltime.inference.rule_trial import LEAST_GAIN, RuleProposal, Rules, RuleTrial
from walltime.machine.tables import RESOURCES
from walltime.policy import FCFS, Easy, Order, Policy, parse_policy
from walltime.wording import counted, human_time, listed
from walltime.workload import Workload

Array = np.ndarray
EQUAL = ("user", "partition", "qos", "reservation", "constraints", "requested_gpu_type", "gpu_type", "licences", "exclusive")
"""Columns in which comparable jobs must be equal; the user is one because fair share may explain a choice."""


def contradiction(choices: Choices, workload: Workload, policy: Policy) -> str:
    """Return a sentence if recorded choices between comparable jobs contradict a policy's queue order, otherwise an empty string.

    A waiting job is comparable with the job that started if they have equal values in the columns EQUAL and the waiting job requested no
    more of any resource, so that it could have started instead. The order is contradicted if it prefers such a job clearly more often than
    order of arrival does, by two standard errors. Orders that read past use are not checked. `workload`: the log with all columns.
    """
    if policy.order == FCFS or policy.order.history_of or not len(choices.first):
        return ""
    job, started = choices.job, choices.job[choices.first][choices.choice]
    columns = {"procs": workload.procs, "requested": workload.requested, **workload.columns}
    same = np.ones(len(job), bool)
    same[choices.first] = False
    for name in EQUAL:
        if name in columns:
            same &= columns[name][job] == columns[name][started]
    for name in ("procs", "requested", *RESOURCES):
        if name in columns:
            same &= columns[name][job] <= columns[name][started]
    rows = np.flatnonzero(same)
    own, arrival = (_preferred(choices, rows, workload, order) for order in (policy.order, FCFS))
    against, without = len(np.setdiff1d(own, arrival)), len(np.setdiff1d(arrival, own))
    if against < FEWEST or against - without <= 2 * math.sqrt(against + without):
        return ""
    return (
        f"{policy.label} is rejected. In {len(own):,} choices, its order prefers a waiting job of the same user and partition that "
        f"requested no more of any resource than the job that started; order of arrival does so in {len(arrival):,}."
    )


def _preferred(choices: Choices, rows: Array, workload: Workload, order: Order) -> Array:
    """Return the indices of the choices in which an order prefers one of these rows to the job that started."""
    choice = choices.choice[rows]
    first = choices.first[choice]
    scores = {row: _score(choices, row, workload, order) for row in np.unique(np.concatenate([rows, first])).tolist()}
    better = [scores[row] > scores[top] for row, top in zip(rows.tolist(), first.tolist(), strict=True)]
    return np.unique(choice[better])


def _score(choices: Choices, row: int, workload: Workload, order: Order) -> float:
    job = choices.job[row]
    wait, request = round(choices.wait[row] * HOUR), int(workload.requested[job])
    return order.score(wait, request, int(workload.procs[job]), int(workload.submit[job]))


POLICIES = ("easy", "fcfs", "hybrid:depth=0", "conservative", "easy:order=sjf", "easy:order=saf", "easy:order=wfp")
"""Named policies that are tried."""
DEEPEST_SCORED = 100
"""Largest mean queue length for which orders with scores that change while jobs wait are tried."""
DEEPEST = 1000
"""Largest mean queue length for which policies that plan all waiting jobs are tried."""
HALF_LIVES = (86_400, 7 * 86_400)
"""Half-lives of fair share that are tried, s."""
HANDICAPS = (3600, 4 * 3600, 16 * 3600)
"""Handicaps that are tried: how much later, s, a job counts as submitted for each doubling of its processors or request."""


def inferred_policy(search: RuleTrial) -> None:
    """Infer the queue order and backfilling: a named policy, or an order with fitted weights if it explains more starts."""
    known = search.log.known
    waiting = float((search.log.start - search.w.submit)[known].sum() / max(np.ptp(search.log.start[known]), 1))
    named, said_of = [], compiled(search, dict(_fair_shares(search))) if waiting <= DEEPEST_SCORED else {}
    for own in (*map(parse_policy, POLICIES), *said_of):
        if own == search.rules.policy:
            continue
        if own.passes.kind == "kept" and waiting > DEEPEST:
            search.notes.append(
                f"{own.label} is not tried: {waiting:.0f} jobs wait on average, and planning all of them at every instant takes too long."
            )
            continue
        named.append(search.rules._replace(policy=own))
    tries: list[tuple[float, Policy, str, OneStep]] = []  # over the folds that choose rules, or some of them

    def note_best(several: Iterable[tuple[Policy, str, OneStep]], least: float) -> float:
        """Append the candidate with the largest gain to `tries` if it exceeds `least`; return the larger of both."""
        gains = [(search.gain_of_run(answer), policy, said, answer) for policy, said, answer in several]
        best = max(gains, key=lambda one: one[0], default=None)
        if best is None or best[0] <= least:
            return least
        tries.append(best)
        return best[0]

    gained = note_best(((rules.policy, said_of.get(rules.policy, ""), answer) for rules, answer in search.ask_all(named)), LEAST_GAIN)
    gained += LEAST_GAIN / 2  # a name is kept where it explains about as much
    weights, weighed = _best_weights(search)
    note_best([(weighted(weights), order_text(weights), weighed)] if any(weights) else [], gained)
    orders = _fitted_orders(search)
    if waiting > DEEPEST_SCORED and orders:
        search.notes.append(
            f"Fitted orders and fair share are not tried: {waiting:.0f} jobs wait on average, and scoring all of them at every instant "
            "takes too long."
        )
        orders = []
    answers = search.ask_all([search.rules._replace(policy=policy) for policy, _ in orders])
    note_best(((*one, answer) for one, (_, answer) in zip(orders, answers, strict=True)), gained)
    every = None if search.requests is None else _choices(search, search.log.known, search.size)
    for _, policy, said, answer in sorted(tries, key=lambda one: -one[0]):
        if search.requests is not None and every is not None and (reason := contradiction(every, search.requests, policy)):
            search.notes.append(reason)
            continue
        text = f"the policy is {policy.label}{': ' if said else ''}{said}"
        evidence = "it explains more starts than EASY in order of arrival"
        since, until, answer = search.shortened(answer, partial(_while, search.rules, policy))
        if search.keep(RuleProposal("policy", text, evidence, _while(search.rules, policy, since, until), since, until), answer):
            return


def _fair_shares(search: RuleTrial) -> Iterator[tuple[Policy, str]]:
    """Yield fair-share orders, each with a description: by user and by group, if the log has at least two of them."""
    for key, whose in (("user", "users"), ("group", "groups")):
        if len(np.unique(search.w.columns.get(key, ()))) > 1:
            for half_life in HALF_LIVES:
                policy = parse_policy(f"easy:order=expr:-{key}_used,half-life={half_life}")
                yield policy, f"jobs of {whose} that have used less come first, and use counts half after {human_time(half_life)}"


def compiled(search: RuleTrial, policies: dict[Policy, str]) -> dict[Policy, str]:
    """Return the policies that the compiled engine can simulate with the accepted rules, and add a note on the others."""
    machine = search.machine_of(search.rules)
    fast = {policy: said for policy, said in policies.items() if engine_of(search.w, policy, machine) == "kernel"}
    if slow := len(policies) - len(fast):
        search.notes.append(
            f"{counted(slow, 'fair-share order')} not tried: with the inferred limits or parts, the compiled engine cannot simulate such "
            "orders."
        )
    return fast


def _while(rules: Rules, policy: Policy, since: int | None = None, until: int | None = None) -> Rules:
    """Return the rules with this policy between two log times, s."""
    return rules._replace(policy=policy, policy_since=since, policy_until=until)


def _best_weights(search: RuleTrial) -> tuple[tuple[int, int], OneStep]:
    """Return the best handicaps, s, for a doubling of the processors and of the request, with the proposals under them."""
    best, answer = (0, 0), search.answer
    for steps in (HANDICAPS, (1,)):
        for place in (0, 1):
            now = best
            around = (now[place] // 2, now[place] * 2) if steps == (1,) else (*steps, *(-step for step in steps))
            pairs = [(value, now[1]) if place == 0 else (now[0], value) for value in around]
            pairs = [weights for weights in pairs if weights not in (now, (0, 0))]
            several = search.ask_all([search.rules._replace(policy=weighted(weights)) for weights in pairs])
            for weights, (_, asked) in zip(pairs, several, strict=True):
                if search.gain(asked, search.choose, old=answer) > 0:
                    best, answer = weights, asked
    return best, answer


def _choices(search: RuleTrial, chosen: Array, size: int) -> Choices:
    """Return the recorded choices of the chosen jobs (bool) on `size` processors; jobs that seem to be held are not alternatives."""
    windows = [search.along(window) for window in search.rules.windows]
    return recorded_choices(search.log, size, chosen, windows, not_eligible_before(search.log))


def _fitted_orders(search: RuleTrial) -> list[tuple[Policy, str]]:
    """Return orders fitted by a conditional logit model, with descriptions, and set `search.order`.

    The fit uses the jobs outside the parts of the machine, in the folds that choose rules.
    """
    rest, size = search.log.known.copy(), search.size
    for part in search.rules.parts:
        rest, size = rest & ~part.takes(search.w), size - part.procs
    choices = _choices(search, rest, size)
    search.order = order_choice(choices, search.log, search.choose, search.judge)
    if search.order is None:
        return []
    orders = []
    for form in FORMS:
        weights = fitted_weights(choices, search.log, search.choose, form)
        if weights.get("wait"):  # the waits of all jobs grow equally, so this is the order of arrival with handicaps
            back = (round(-weights[name] / weights["wait"] * 3600 * math.log(2)) for name in ("log-procs", "log-planned"))
            handicaps = (next(back), next(back))
            orders.append((weighted(handicaps), order_text(handicaps)) if any(handicaps) else (Easy(), ""))
        elif any(weights.values()):
            orders.append((linear(weights), linear_text(weights)))
    return orders


def linear(weights: dict[str, float]) -> Policy:
    """Return EASY with the order `linear:`, with rounded weights, scaled so that the largest is 1 or -1."""
    most = max(abs(weight) for weight in weights.values())
    rounded = {name: round(weight / most, 3) for name, weight in weights.items()}
    return parse_policy("easy:order=linear:" + ",".join(f"{name}={weight:g}" for name, weight in rounded.items() if weight))


def linear_text(weights: dict[str, float]) -> str:
    """Describe this order in words."""
    more, less = (
        {"wait": "a longer wait", "procs": "more processors", "planned": "a longer request"},
        {"wait": "a shorter wait", "procs": "fewer processors", "planned": "a shorter request"},
    )
    each = [(more if weight > 0 else less)[name.removeprefix("log-")] for name, weight in weights.items() if weight]
    return f"a job comes first if it has {listed(each)}"


def weighted(weights: tuple[int, int]) -> Policy:
    """Return EASY in order of arrival with handicaps, s, for each doubling of the processors and of the request."""
    terms = zip(weights, ("procs", "planned"), strict=True)
    return parse_policy(
        "easy:order=expr:-elapsed" + "".join(f"{-weight / math.log(2):+.0f}*log({name})" for weight, name in terms if weight)
    )


def order_text(weights: tuple[int, int]) -> str:
    """Describe this order in words."""
    each = [
        f"each doubling of its {name} moves a job {'back' if weight > 0 else 'forward'} by {human_time(abs(weight))}"
        for weight, name in zip(weights, ("processors", "request"), strict=True)
        if weight
    ]
    return f"by arrival, but {listed(each)}"
