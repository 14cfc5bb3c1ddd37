"""One-step agreement: compare the jobs that a policy would start at each recorded instant, in the recorded state, with the recorded starts.

A free simulation diverges from the record under any policy. Here the simulation follows the record, and at each instant the policy makes a
scheduling pass (one_step_pass.py) in the recorded state, which proposes jobs to start. Two shares measure how well the policy explains the
record: the recorded starts that it proposed (recall), and its proposals that the site followed (precision), promptly or late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.decisions import STEPS, Decisions, RecordedJobs, encode_policy
from walltime.auditor.passes import state as s
from walltime.errors import PolicyError, WorkloadError
from walltime.inference.one_step_pass import ASKED, BY_CLOCK, BY_OUTAGE, FREE_TO_START, WINDOW, SiteAnswers, ask_along
from walltime.machine import NO_OVERHEAD, Overhead
from walltime.machine.overheads import release_times
from walltime.machine.windows import Hours
from walltime.policy import Policy
from walltime.policy.dialect import PAPERS
from walltime.provenance import plain
from walltime.workload import Array, Workload

BLOCKERS = ("nothing", "the clock", "a limit", "not eligible", "an outage", "too few processors", "the order or a reservation")
"""Reasons why a policy does not propose a recorded start; the index of the first five is their number in `one_step_pass`."""
TOO_FEW, RESERVED = 5, 6
LONGEST = np.iinfo(np.int64).max // 4
TICK, LATEST = 60, 300
"""A start is prompt within `TICK` s after the proposal, or within twice the log's start-up delay if this is longer but at most `LATEST`."""


@dataclass(frozen=True)
class SiteRules:
    """The rules, other than its policy, that determine when a site starts jobs.

    `windows`: closed hours, each with the jobs (bool) to which they apply. `outages`: outages of the whole machine. `eligible`: the
    earliest start of each job, int64 s, or None. `group`: the group of each job, -1 for none; `at_once`: the limit on running jobs of each
    group, 0 for no limit; int64. `overhead`: the scheduler's delays, from decisions to starts and from ends to free processors. `procs`:
    size of the machine or of a part of it, by default the workload's machine; wider jobs never start. `chosen`: the jobs of that part
    (bool), by default all.
    """

    windows: Sequence[tuple[Hours, Array]] = ()
    outages: Hours | None = None
    eligible: Array | None = None
    group: Array | None = None
    at_once: Array | None = None
    overhead: Overhead = NO_OVERHEAD
    procs: int | None = None
    chosen: Array | None = None


class OneStep(NamedTuple):
    """The proposals of a policy along the record; all fields have one entry per job, in the order of the workload.

    `counted`: whether the start is recorded. `matched`: whether the policy proposed that start. `proposals`: number of times that it began
    to propose the job. `delay`: time from the proposal to the recorded start, s; negative if the job started sooner than the overheads
    allow, meaningless without a match. `overcommitted`: whether the job started with too few free processors in the record. `why`: the
    reason why a start was not proposed, an index into BLOCKERS; 0 for matches.
    """

    counted: Array
    matched: Array
    proposals: Array
    delay: Array
    overcommitted: Array
    why: Array

    @classmethod
    def joined(cls, answers: Sequence[OneStep]) -> OneStep:
        """Return the union of the results for disjoint parts of a machine."""
        return cls(*(np.sum(columns, axis=0, dtype=columns[0].dtype) for columns in zip(*answers, strict=True)))

    def only(self, chosen: Array) -> OneStep:
        """Return the results for these jobs (bool) alone."""
        return OneStep(*(column * chosen for column in self))

    def score(self, chosen: Array | None = None, within: int = TICK) -> Score:
        """Return the counts over these jobs (bool), by default all; a start is prompt at most `within` s after the proposal."""
        mask = self.counted if chosen is None else self.counted & chosen
        columns = (self.counted, self.matched, self.prompt(within), self.proposals)
        jobs, matched, prompt, proposals = (int(column[mask].sum()) for column in columns)
        return Score(jobs, matched, prompt, proposals, within)

    def prompt(self, within: int) -> Array:
        """Return the matched starts at most `within` s after the proposal, bool."""
        return self.matched & (self.delay >= 0) & (self.delay <= within)

    def blockers(self, chosen: Array | None = None) -> dict[str, int]:
        """Return the number of unmatched starts of these jobs by reason, the most frequent first."""
        mask = self.counted & ~self.matched if chosen is None else self.counted & ~self.matched & chosen
        counts = np.bincount(self.why[mask], minlength=len(BLOCKERS)).tolist()
        return dict(sorted(((BLOCKERS[k], count) for k, count in enumerate(counts) if count), key=lambda one: -one[1]))


@dataclass(frozen=True)
class Score:
    """The agreement of a policy with the recorded starts of some jobs.

    `jobs`: recorded starts; `matched`: starts that the policy proposed; `prompt`: starts at most `within` s after the proposal.
    `proposals`: how often the policy began to propose a job. A proposal is followed if the job starts while it is still proposed, however
    late. A mere delay lowers only the prompt shares, which are used to judge rules.
    """

    jobs: int
    matched: int
    prompt: int
    proposals: int
    within: int = TICK

    @property
    def at(self) -> float:
        """Return the share of the recorded starts that the policy proposed."""
        return _share(self.matched, self.jobs)

    @property
    def prompt_at(self) -> float:
        """Return the share of the recorded starts that followed a proposal promptly."""
        return _share(self.prompt, self.jobs)

    @property
    def followed(self) -> float:
        """Return the share of the policy's proposals that the site followed."""
        return _share(self.matched, self.proposals)

    @property
    def followed_promptly(self) -> float:
        """Return the share of the policy's proposals that the site followed promptly."""
        return _share(self.prompt, self.proposals)

    @property
    def f1(self) -> float:
        """Return the harmonic mean of recall and precision; late starts count."""
        return _share(2 * self.matched, self.jobs + self.proposals)

    @property
    def prompt_f1(self) -> float:
        """Return the harmonic mean of recall and precision over prompt starts, by which rules are chosen and judged."""
        return _share(2 * self.prompt, self.jobs + self.proposals)

    @property
    def text(self) -> str:
        """Return the shares, in words that follow the name of a policy and end a sentence."""
        return (
            f"would have made {100 * self.at:.0f} % of the recorded starts ({100 * self.prompt_at:.0f} % at most {self.within} s earlier). "
            f"The site in turn made {100 * self.followed:.0f} % of the starts that the policy proposed "
            f"({100 * self.followed_promptly:.0f} % within {self.within} s)."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and shares for JSON; undefined shares are None."""
        shares = {name: getattr(self, name) for name in ("at", "prompt_at", "followed", "followed_promptly", "f1", "prompt_f1")}
        values: dict[str, Any] = plain(asdict(self) | shares)
        return values


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def prompt_within(answer: OneStep, wait: Array) -> int:
    """Return the largest delay of a prompt start, s, given recorded waits (int64 s, one per job).

    A scheduler's start-up delay is the median wait of the jobs that the policy proposes at their submission. Twice this delay is allowed if
    it is longer than a tick and at most a few minutes; a longer median is not a start-up delay.
    """
    at_once = wait[answer.matched & (answer.delay == wait)]
    usual = 2 * int(np.median(at_once)) if len(at_once) else 0
    return usual if TICK < usual <= LATEST else TICK


def one_step(workload: Workload, start: Array, policy: Policy, *, end: Array | None = None, rules: SiteRules | None = None) -> OneStep:
    """Return the proposals of a policy at every recorded instant.

    `start`: recorded starts, int64 s, one per job; jobs with a negative start are excluded. `end`: by default `start` plus the runtime.
    `rules`: the rules of the site, or of a part of its machine. Raises PolicyError for a policy with its own passes, WorkloadError without
    recorded starts.
    """
    rules = rules or SiteRules()
    counted = start >= 0 if rules.chosen is None else (start >= 0) & rules.chosen
    job = np.flatnonzero(counted)
    if not len(job):
        raise WorkloadError(f"{workload.origin.name} does not record when these jobs started; use a log with waits", "missing_starts")
    size, site = workload.machine_procs if rules.procs is None else rules.procs, rules.overhead
    encoded = encode_policy(policy, PAPERS, None, size, False, histories=True)
    if encoded is None:
        raise PolicyError(f"{policy.label} makes its own passes, so its proposals are unknown; use a built-in policy", "opaque_policy")
    ended = release_times(site, start + workload.runtime if end is None else end)
    submit = release_times(Overhead(tick=site.tick), workload.submit)
    decided = np.where(counted, np.maximum(start - site.start, np.minimum(submit, start)), start)
    sooner = np.maximum(decided, submit) - (start - site.start)
    start = decided
    estimate = release_times(site, site.start + np.maximum(workload.planned, 1))
    recorded = RecordedJobs(job, submit[job], start[job], ended[job], (ended - start)[job], estimate[job], None, None)
    along = Decisions(workload, recorded, policy, None, encoded)
    place = along.recorded.job
    asked = _asked(workload, rules, place)
    asked.jobs.eligible[workload.procs[place] > size] = LONGEST
    while (status := ask_along(*along.memory, asked, STEPS // 20)) != s.DONE:
        if status == s.ASKS:
            along.answer()
    columns = np.zeros((5, len(workload)), np.int64)
    columns[:, place] = [asked.jobs[name] for name in ("hit", "episodes", "delay", "short", "forbidden")]
    matched, proposals, delay, overcommitted, why = columns
    delay = np.where((matched > 0) & (sooner > 0), -sooner, delay)
    free = why == FREE_TO_START
    why = np.where((free & (overcommitted == 1)) | (workload.procs > size), TOO_FEW, np.where(free, RESERVED, why))
    return OneStep(counted, matched.astype(bool), proposals, delay, overcommitted.astype(bool), np.where(counted & (matched == 0), why, 0))


def _asked(workload: Workload, rules: SiteRules, place: Array) -> SiteAnswers:
    """Return the arrays of the compiled pass: the jobs, the site's rules, and space for the policy's proposals."""
    jobs = np.zeros(len(place), ASKED).view(np.recarray)
    jobs.since = jobs.last = jobs.user = jobs.delay = -1
    jobs.eligible = -LONGEST if rules.eligible is None else rules.eligible[place]
    at_once = np.zeros(0, np.int64)
    if rules.at_once is not None and rules.group is not None:
        at_once, jobs.user = rules.at_once, rules.group[place]
    own = [*rules.windows, *([] if rules.outages is None else [(rules.outages, np.ones(len(workload), bool))])]
    windows = np.zeros(len(own), WINDOW).view(np.recarray)
    bounds = np.cumsum([0, *(len(hours.begin) for hours, _ in own)])
    windows.next, windows.last = bounds[:-1], bounds[1:]
    windows.crossing = [int(hours.crossing) for hours, _ in own]
    windows.kind = [*[BY_CLOCK] * len(rules.windows), *[BY_OUTAGE] * (len(own) - len(rules.windows))]
    begins, ends = (np.concatenate([np.zeros(0, np.int64), *(getattr(hours, name) for hours, _ in own)]) for name in ("begin", "end"))
    windows_of = np.array([mask[place] for _, mask in own], np.uint8).reshape(len(windows), len(place))
    lists = (np.zeros(len(place), np.int64) for _ in range(4))
    return SiteAnswers(jobs, windows, windows_of, begins, ends, at_once, np.zeros(len(at_once), np.int64), *lists)
