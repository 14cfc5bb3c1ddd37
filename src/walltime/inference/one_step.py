"""One-step agreement: at every recorded instant, in the recorded state, what would the policy start?

A simulation that runs freely drifts away from what a machine did, whatever its policy. Here the machine's record is followed, and the
policy is asked at each instant: it makes its pass (one_step_pass.py) in the state that the record has led to. Two shares say how well it
explains the record: of the starts that were recorded, those that it would have made; and of what it would have started, what was started,
however late or promptly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.auditor.decisions import STEPS, Decisions, RecordedJobs, encode_policy
from walltime.auditor.passes import state as s
from walltime.errors import PolicyError, WorkloadError
from walltime.inference.one_step_pass import ASKED, BY_CLOCK, BY_OUTAGE, FREE_TO_START, WINDOW, SiteAnswers, ask_along
from walltime.machine import NO_OVERHEAD, Overhead
from walltime.machine.overheads import release_times
from walltime.machine.windows import Hours
from walltime.policy import Dialect, Policy
from walltime.predictors import Prediction
from walltime.workload import Workload

Array = np.ndarray
IN_THE_WAY = ("nothing", "the clock", "a limit", "not eligible", "an outage", "too few processors", "the order or a reservation")
"""What keeps a policy from a start; the first ones have the numbers of `one_step_pass`."""
TOO_FEW, RESERVED = 5, 6
LONGEST = np.iinfo(np.int64).max // 4
TICK, LATEST = 60, 300
"""A start is prompt within a tick of the wish, s, or within twice the log's own start-up delay where that is at most `LATEST`."""


@dataclass(frozen=True)
class SiteRules:
    """What a site lets start when, besides its policy.

    `windows`: hours, and for which jobs (bool) they hold; `outages`: of the whole machine. `eligible`: the earliest start of each job,
    int64 s, None without. `group`, `at_once`: in which group each job counts, -1 for none, and how many jobs of each group run at once,
    0 for no limit (int64). `overhead`: time that the scheduler takes, by which decisions are before starts, and free processors after ends.
    `procs`: size of the machine, or of a part of it, by default the workload's machine; a wider job is never started. `chosen`: the jobs
    of that part (bool), by default all.
    """

    windows: Sequence[tuple[Hours, Array]] = ()
    outages: Hours | None = None
    eligible: Array | None = None
    group: Array | None = None
    at_once: Array | None = None
    overhead: Overhead = NO_OVERHEAD
    procs: int | None = None
    chosen: Array | None = None


@dataclass(frozen=True)
class OneStep:
    """What a policy would have started along a record. One entry per job of the workload, in its order.

    `counted`: the jobs whose start is recorded. `made`: the policy would have made its start. `wishes`: how many times it began to wish to
    start the job. `delay`: from then to the recorded start, s; negative where the job started sooner than the overheads allow, and -1 where
    the start was not made. `short`: jobs that started although the record leaves fewer processors than they need. `why`: of the starts that
    the policy would not have made, what stood in the way, a place in IN_THE_WAY; 0 for those that it would have made.
    """

    counted: Array
    made: Array
    wishes: Array
    delay: Array
    short: Array
    why: Array

    @classmethod
    def joined(cls, answers: Sequence[OneStep]) -> OneStep:
        """The answers for the parts of a machine, whose jobs are apart."""
        whole = answers[0]
        for other in answers[1:]:
            whole = cls(
                whole.counted | other.counted,
                whole.made | other.made,
                whole.wishes + other.wishes,
                np.where(other.counted, other.delay, whole.delay),
                whole.short | other.short,
                whole.why + other.why,
            )
        return whole

    def only(self, chosen: Array) -> OneStep:
        """The answers for these jobs (bool), as if the others had not been asked for."""
        delay = np.where(chosen, self.delay, -1)
        return OneStep(self.counted & chosen, self.made & chosen, self.wishes * chosen, delay, self.short & chosen, self.why * chosen)

    def score(self, chosen: Array | None = None, within: int = TICK) -> Score:
        """The counts over these jobs (bool, one entry per job), by default all; a start is prompt at most `within` s after the wish."""
        mask = self.counted if chosen is None else self.counted & chosen
        return Score(
            int(mask.sum()), int(self.made[mask].sum()), int(self.prompt(within)[mask].sum()), int(self.wishes[mask].sum()), within
        )

    def prompt(self, within: int) -> Array:
        """The starts that the policy would have made at most so many seconds before, bool."""
        return self.made & (self.delay >= 0) & (self.delay <= within)

    def in_the_way(self, chosen: Array | None = None) -> dict[str, int]:
        """Of how many recorded starts of these jobs what would have kept the policy from making them, the most first."""
        mask = self.counted & ~self.made if chosen is None else self.counted & ~self.made & chosen
        counts = np.bincount(self.why[mask], minlength=len(IN_THE_WAY)).tolist()
        return dict(sorted(((IN_THE_WAY[k], count) for k, count in enumerate(counts) if count), key=lambda one: -one[1]))


@dataclass(frozen=True)
class Score:
    """How well a policy explains the starts of some jobs.

    `jobs`: recorded starts; `made`: those that the policy would have made; `prompt`: those that it would have made at most `within` s
    before. `wishes`: how often the policy began to wish to start a job. A wish is followed if the job starts while the policy still wishes
    it, however late, so pure delay shows only in the prompt shares: these judge rules.
    """

    jobs: int
    made: int
    prompt: int
    wishes: int
    within: int = TICK

    @property
    def at(self) -> float:
        """The share of the recorded starts that the policy would have made."""
        return _share(self.made, self.jobs)

    @property
    def prompt_at(self) -> float:
        """The share of the recorded starts that the policy would have made promptly."""
        return _share(self.prompt, self.jobs)

    @property
    def followed(self) -> float:
        """The share of the wishes that were followed."""
        return _share(self.made, self.wishes)

    @property
    def followed_promptly(self) -> float:
        """The share of the wishes that were followed promptly."""
        return _share(self.prompt, self.wishes)

    @property
    def f1(self) -> float:
        """The harmonic mean of both shares, however late the starts are."""
        return _share(2 * self.made, self.jobs + self.wishes)

    @property
    def prompt_f1(self) -> float:
        """The harmonic mean of both prompt shares: the agreement by which rules are chosen and judged."""
        return _share(2 * self.prompt, self.jobs + self.wishes)

    def as_dict(self) -> dict[str, Any]:
        """The counts and the shares, ready for JSON; an undefined share is None."""
        shares = {name: getattr(self, name) for name in ("at", "prompt_at", "followed", "followed_promptly", "f1", "prompt_f1")}
        return asdict(self) | {name: None if np.isnan(value) else value for name, value in shares.items()}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def prompt_within(answer: OneStep, wait: Array) -> int:
    """How many seconds after a wish a start is still prompt, given recorded waits (int64 s, one per job).

    A scheduler's start-up delay is the median wait of the jobs that the policy wishes to start at their submission; twice that is allowed
    if it is more than a tick and at most a few minutes. A longer median is no start-up delay, so that only a tick is allowed.
    """
    at_once = wait[answer.made & (answer.delay == wait)]
    usual = 2 * int(np.median(at_once)) if len(at_once) else 0
    return usual if TICK < usual <= LATEST else TICK


def one_step(
    workload: Workload,
    start: Array,
    policy: Policy,
    *,
    end: Array | None = None,
    rules: SiteRules | None = None,
    dialect: Dialect | str = "papers",
    prediction: Prediction | str | None = None,
    progress: Callable[[int], None] | None = None,
) -> OneStep:
    """Ask a policy at every recorded instant what it would start.

    `start`: recorded starts, int64 s, one per job; jobs with a negative one are left out. `end`: by default `start` and the runtime.
    `rules`: of the site, or of a part of its machine. Raises PolicyError for a policy whose passes are unknown here, and WorkloadError
    where no start is recorded.
    """
    rules, reading, own = rules or SiteRules(), Dialect.of(dialect), Prediction.of(prediction)
    counted = start >= 0 if rules.chosen is None else (start >= 0) & rules.chosen
    job = np.flatnonzero(counted)
    if not len(job):
        raise WorkloadError(f"{workload.origin.name} records no starts of these jobs; take a log with waits", "missing_starts")
    size, site = workload.machine_procs if rules.procs is None else rules.procs, rules.overhead
    encoded = encode_policy(reading.apply(policy), reading, own, size, False, histories=True)
    if encoded is None:
        raise PolicyError(
            f"{policy.label} decides in ways of its own, so it cannot be asked; take one of the known policies", "opaque_policy"
        )
    ended = release_times(site, start + workload.runtime if end is None else end)
    submit = release_times(Overhead(tick=site.tick), workload.submit)
    decided = np.where(counted, np.maximum(start - site.start, np.minimum(submit, start)), start)
    sooner = np.maximum(decided, submit) - (start - site.start)
    start = decided
    estimate = release_times(site, site.start + np.maximum(workload.believed, 1))
    recorded = RecordedJobs(job, submit[job], start[job], ended[job], (ended - start)[job], estimate[job], None, None)
    along = Decisions(workload, recorded, reading.apply(policy), own, encoded)
    place = along.recorded.job
    asked = _asked(workload, rules, place)
    asked.jobs.eligible[workload.procs[place] > size] = LONGEST
    state = along.memory.state
    while True:
        status = ask_along(*along.memory, asked, STEPS // 20)
        if status == s.DONE:
            break
        if status == s.ASKS:
            along.answer()
        elif progress is not None:
            progress(int(state.started))
    made, wishes, delay, short, why = (np.zeros(len(workload), np.int64) for _ in range(5))
    for column, name in ((made, "hit"), (wishes, "episodes"), (delay, "delay"), (short, "short"), (why, "forbidden")):
        column[place] = asked.jobs[name]
    delay = np.where((made > 0) & (sooner > 0), -sooner, delay)
    free = why == FREE_TO_START
    why = np.where((free & (short == 1)) | (workload.procs > size), TOO_FEW, np.where(free, RESERVED, why))
    return OneStep(counted, made.astype(bool), wishes, delay, short.astype(bool), np.where(counted & (made == 0), why, 0))


def _asked(workload: Workload, rules: SiteRules, place: Array) -> SiteAnswers:
    """Memory for the answers."""
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
