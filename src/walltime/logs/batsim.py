"""Batsim's workloads: a JSON object with jobs, and the profiles that give their runtimes.

Source: https://batsim.readthedocs.io/en/latest/input-workload.html
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from walltime.errors import LogError
from walltime.logs.batch_systems import RecordError, Run, read_runs
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.workload import MISSING

_HEAD = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*+\{(?=.*"subtime"\s*:)(?=.*"(?:res|profile)"\s*:)(?!.*"JobState")', re.DOTALL)
_ID = re.compile(r"(?:.*[!_:])?([0-9]{1,15})")
"""A job's number, perhaps after the name of its workload, as in w0!12."""
_DEEPEST = 20


def _number(job: Mapping[str, Any], key: str) -> float:
    """Return a number from 0 up; -1 if it is missing or negative, which Batsim uses for no value. Raises RecordError."""
    value = job.get(key, MISSING)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value < 2**53:
        raise RecordError(f"{key} must be a number, not {str(value)[:30]!r}")
    return float(value) if value >= 0 else float(MISSING)


def _duration(profiles: Mapping[str, Any], name: object, depth: int = 0) -> float:
    """Return the runtime, s, of a profile with a fixed duration, or of a sequence of such profiles; -1 if it depends on the machine."""
    profile = profiles.get(str(name))
    if not isinstance(profile, Mapping) or depth > _DEEPEST:
        return float(MISSING)
    parts = profile.get("seq")
    if isinstance(parts, list):
        lengths = [_duration(profiles, part, depth + 1) for part in parts]
        return max(_number(profile, "repeat"), 1) * sum(lengths) if min(lengths, default=MISSING) >= 0 else float(MISSING)
    return _number(profile, "delay")


def _read(state: ReaderState) -> JobLog:
    state.unit = "record"
    try:
        document = json.loads(b"".join(state.file.chunks()))
    except (ValueError, RecursionError) as error:
        raise LogError(f"{state.file.where}: not valid JSON; check that the file is complete", "not_json") from error
    jobs, profiles = document.get("jobs"), document.get("profiles") or {}
    if not isinstance(jobs, list) or not isinstance(profiles, Mapping):
        raise LogError(
            f"{state.file.where}: a workload of Batsim needs a list of jobs, and an object of profiles; add what is missing", "no_jobs"
        )

    def runs(job: Any) -> Iterator[Run]:
        if not isinstance(job, Mapping):
            raise RecordError("the job is not an object")
        match = _ID.fullmatch(str(job.get("id")))
        numbers = {
            "job_id": MISSING if match is None else int(match[1]),
            "submit": _number(job, "subtime"),
            "start": MISSING,
            "runtime": _duration(profiles, job.get("profile")),
            "requested": _number(job, "walltime"),
            "requested_procs": _number(job, "res"),
        }
        yield numbers, {"executable": str(job.get("profile", ""))}, None

    size = document.get("nb_res")
    header = {"MaxProcs": size} if isinstance(size, int) and size > 0 else {}
    return read_runs(state, "batsim", enumerate(jobs, 1), runs, header, absolute=False)


BATSIM = LogFormat("batsim", "a workload of Batsim", (), _HEAD, _read)
"""Workloads of Batsim; their jobs have no recorded waits, and their times count from 0."""
