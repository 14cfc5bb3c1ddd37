"""Two jobs of the side-car's own that show, before anything else is changed, that what is shortened can be given back.

The first one, held, gets a TimeMin and then another TimeLimit: the guard in job_submit.lua must take the TimeMin away, since after a change
of the limit nobody but Slurm would know the user's limit any more. Then it runs, its limit is lowered, as backfill would do it, and the
side-car raises it again, which a user without rights could not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from walltime.adjust.commands import Slurm
from walltime.adjust.facts import SlurmError
from walltime.adjust.queue import QueuedJob

NAME = "walltime-self-test"
LIMIT, CHANGED, SHORT = 10, 15, 12
"""Minutes: the limit at submission, the one it is changed to, and the one that it is shortened to."""
PATIENCE = 1800.0
"""Seconds after which a job that has not started is given up, and another one is submitted."""
GUARD = """\
-- /etc/slurm/job_submit.lua, or a part of it, with JobSubmitPlugins=lua.
-- A user who changes the limit of a waiting job takes the side-car's TimeMin away with it: the side-car will see the new limit.
-- Nobody but root may set TimeMin otherwise; put the numbers of the side-car's user and of other operators here.
local operators = { [0] = true }
function slurm_job_submit(job, partitions, uid)
  if not operators[uid] and job.time_min ~= nil and job.time_min ~= slurm.NO_VAL then
    slurm.log_user("--time-min is reserved for the scheduler")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
  local sets_time_min = job.time_min ~= nil and job.time_min ~= slurm.NO_VAL
  if sets_time_min and job.time_min ~= 0 and not operators[uid] then
    slurm.log_user("TimeMin is reserved for the scheduler")
    return slurm.ERROR
  end
  if job.time_limit ~= nil and job.time_limit ~= slurm.NO_VAL and not sets_time_min then
    job.time_min = 0
  end
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""


@dataclass
class SelfTest:
    """The test of one slurmctld; `step` it once a round until it has `passed` or `failed`, which says why.

    `options`: words for sbatch, such as a partition.
    """

    slurm: Slurm
    options: Sequence[str]
    say: Callable[[str], None]
    passed: bool = False
    failed: str = ""
    _key: str = ""
    _stage: str = "submit"
    _since: float = 0.0
    _seen: list[str] = field(default_factory=list)

    def step(self, queue: Sequence[QueuedJob], monotonic: float, user: str) -> None:
        """Go on with the test; raises SlurmError if Slurm did not answer, and may then be stepped again."""
        if self.passed or self.failed:
            return
        if self._stage == "submit":
            for left in queue:  # by a side-car that was killed
                if left.name == NAME and left.user == user:
                    self.slurm.cancel(left.key)
            self._key = self.slurm.submit_test(NAME, LIMIT, 600, self.options)
            self._go_on("guard", monotonic)
            self.slurm.set_time_min(self._key, 1)
            self.slurm.set_limit(self._key, CHANGED)
            return
        job = next((job for job in queue if job.key == self._key), None)
        if job is None or not (job.waits or job.runs):
            self._go_on("submit", monotonic)  # somebody cancelled it, or it ended before it was looked at
            self._seen.append("gone")
            if len(self._seen) >= 3:
                self._fail("three self-test jobs left the queue before they could be looked at")
        elif self._stage == "guard":
            self._look_at_guard(job, monotonic)
        elif self._stage == "start" and job.runs:
            self.slurm.set_limit(self._key, SHORT)
            self._go_on("short", monotonic)
        elif self._stage == "short" and job.limit == SHORT:
            self.slurm.set_limit(self._key, CHANGED)
            self._go_on("back", monotonic)
        elif self._stage == "back":
            if job.limit == CHANGED:
                self.slurm.cancel(self._key)
                self.passed = True
                self.say("self-test: passed")
            else:
                self._fail("the limit of a running job could not be raised")
        elif monotonic - self._since > PATIENCE:
            self.slurm.cancel(self._key)
            self._go_on("submit", monotonic)

    def _look_at_guard(self, job: QueuedJob, monotonic: float) -> None:
        if job.limit != CHANGED:
            self._retry(monotonic)  # an update was lost
        elif job.time_min:
            self._fail("a changed limit leaves TimeMin as it is: the guard in job_submit.lua is missing; see --print-guard")
        else:
            self.slurm.release(self._key)
            self._go_on("start", monotonic)

    def _retry(self, monotonic: float) -> None:
        self.slurm.cancel(self._key)
        self._go_on("submit", monotonic)

    def _go_on(self, stage: str, monotonic: float) -> None:
        self._stage, self._since = stage, monotonic

    def _fail(self, why: str) -> None:
        self.failed = why
        self.say(f"self-test: FAILED: {why}")
        try:
            self.slurm.cancel(self._key)
        except SlurmError:
            self.say("self-test: its job could not be cancelled")
