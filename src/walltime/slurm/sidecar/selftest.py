"""Two jobs of the side-car's own that show, before anything else is changed, that what is shortened can be given back.

The first one, held, gets a TimeMin and then another TimeLimit: the guard in job_submit.lua must take the TimeMin away, since after a change
of the limit nobody but Slurm would know the user's limit any more. Then it runs, its limit is lowered, as backfill would do it, and the
side-car raises it again, which a user without rights could not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from walltime.slurm.client import Client
from walltime.slurm.queue import QueueJob
from walltime.slurm.records import SlurmError

NAME = "walltime-self-test"
LIMIT, CHANGED, SHORT = 10, 15, 12
"""Minutes: the limit at submission, the one it is changed to, and the one that it is shortened to."""
PATIENCE = 1800.0
"""Seconds after which a job that has not started is given up, and another one is submitted."""
GUARD = """\
-- /etc/slurm/job_submit.lua, or a part of it, with JobSubmitPlugins=lua.
-- A change after which a waiting job is another one (its limit, partition, account ...) takes the side-car's TimeMin away, and the
-- side-car looks at the job anew. Put the number of the side-car's user into the first list: of other users' jobs it may change TimeMin,
-- and raise limits, and nothing else. Nobody but it, root, and operators in the second list, may set TimeMin.
local sidecars = { }
local operators = { [0] = true }
local unset = { [slurm.NO_VAL] = true, [slurm.NO_VAL16 or 65534] = true, [slurm.NO_VAL64 or -2] = true, [254] = true, [""] = true }
local function is_set(value)
  return value ~= nil and not unset[value]
end
local matters = { "partition", "qos", "account", "dependency", "reservation", "licenses" }
local others = { "partition", "qos", "account", "dependency", "reservation", "licenses", "features", "req_nodes", "exc_nodes", "comment",
  "admin_comment", "name", "wckey", "priority", "nice", "begin_time", "min_nodes", "max_nodes", "deadline", "burst_buffer" }
local times = { begin_time = true, deadline = true }
function slurm_job_submit(job, partitions, uid)
  if not operators[uid] and not sidecars[uid] and is_set(job.time_min) then
    slurm.log_user("--time-min is reserved for the scheduler")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
  local sets_time_min = is_set(job.time_min)
  if sets_time_min and job.time_min ~= 0 and not operators[uid] and not sidecars[uid] then
    slurm.log_user("TimeMin is reserved for the scheduler")
    return slurm.ERROR
  end
  if sidecars[uid] and record.user_id ~= uid then
    for _, name in ipairs(others) do
      if is_set(job[name]) and not (job[name] == 0 and times[name]) then
        slurm.log_user("the side-car may not change " .. name)
        return slurm.ERROR
      end
    end
    if is_set(job.time_limit) and job.time_limit < record.time_limit then
      slurm.log_user("the side-car may not lower limits")
      return slurm.ERROR
    end
  end
  local changes = is_set(job.time_limit)
  for _, name in ipairs(matters) do
    changes = changes or is_set(job[name])
  end
  if changes and not sets_time_min then
    job.time_min = 0
  end
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""


@dataclass
class SelfTest:
    """The test of one slurmctld; `step` it once a round until it has `passed` or `failed`, which says why.

    `options`: words for sbatch, such as a partition. `guard_only`: limits need not be given back, so that the guard is all that is tested.
    """

    slurm: Client
    options: Sequence[str]
    say: Callable[[str], None]
    guard_only: bool = False
    passed: bool = False
    failed: str = ""
    guarded: bool = False
    _key: str = ""
    _stage: str = "submit"
    _since: float = 0.0
    _seen: list[str] = field(default_factory=list)

    def step(self, queue: Sequence[QueueJob], monotonic: float, user: str) -> None:
        """Go on with the test; raises SlurmError if Slurm did not answer, and may then be stepped again."""
        if self.passed or self.failed:
            return
        if self._stage == "submit":
            for left in self.slurm.jobs_named((NAME,), user):  # by a side-car that was killed
                self.slurm.cancel(left)
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

    def _look_at_guard(self, job: QueueJob, monotonic: float) -> None:
        if job.limit != CHANGED:
            self._retry(monotonic)  # an update was lost
            return
        if job.time_min:
            self._fail("a changed limit leaves TimeMin as it is: the guard in job_submit.lua is missing; see --print-guard")
            return
        self.guarded = True
        if self.guard_only:
            self.slurm.cancel(self._key)
            self.passed = True
            self.say("self-test: the guard works")
        else:
            self.slurm.release(self._key)
            self._go_on("start", monotonic)

    @property
    def key(self) -> str:
        """The number of its job while it is under way."""
        return "" if self.passed or self.failed else self._key

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
