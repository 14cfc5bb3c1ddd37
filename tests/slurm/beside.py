"""A side-car beside a real Slurm: its process, the jobs that it meets, and the ways in which something can fail."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from pwd import getpwnam

from tests.slurm.conftest import started, started_newer
from tests.slurm.lab import SETTINGS, Lab, wait_until
from walltime.slurm.configuration import SOFT_LIMIT
from walltime.slurm.sidecar import installed_text
from walltime.slurm.sidecar.self_tests import NAMES

EVERY = 1
OPERATOR = "daemon"
"""A user that there is everywhere, who has no other rights."""
USER = "bin"
"""An ordinary user that there is everywhere; 26.05 gives nobody no association."""
HEADING = "JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes"
KINDS = {"E": 300, "F": 400, "G": 500}
"""Limits (minutes) of jobs that have always taken a few seconds, in the log that the side-car learns from."""
SPAN = {"E": "05:00:00", "F": "06:40:00", "G": "08:20:00"}
"""The same as scontrol prints them."""
LONGEST = "1-00:00:00"
"""The limit of the partition."""
SOFT = {"SchedulerParameters": f"{SETTINGS['SchedulerParameters']},{SOFT_LIMIT}"}


@contextmanager
def cluster(version: str, accounting: bool = False, enforce: bool = False) -> Iterator[Lab]:
    """Slurm `22.05` or `24.11`, where limits are given back, or `26.05` with soft limits; four nodes of 16 processors, and the guard.

    `accounting`: also on the newer ones; 22.05 has it. `enforce`: limits of associations and qualities of service hold.
    """

    def put_guard(lab: Lab) -> None:
        (lab.folder / "job_submit.lua").write_text(
            installed_text("job_submit.lua").replace("sidecars = { }", f"sidecars = {{ [{getpwnam(OPERATOR).pw_uid}] = true }}")
        )
        if lab.accounting:
            lab.run("sacctmgr", "-iQ", "add", "account", "bio")
            lab.run("sacctmgr", "-iQ", "add", "user", f"{getuser()},{USER}", "account=bio")
            lab.run("sacctmgr", "-iQ", "add", "user", OPERATOR, "account=bio", "adminlevel=operator")

    lua = {"JobSubmitPlugins": "lua"} | ({"AccountingStorageEnforce": "associations,limits,qos"} if enforce else {})
    if version == "22.05":
        with started(cpus=16, settings=lua, before=put_guard) as lab:
            yield lab
    elif version == "24.11":
        with started_newer(release="trixie", accounting=accounting, cpus=16, settings=lua, before=put_guard) as lab:
            yield lab
    else:
        with started_newer(accounting=accounting, cpus=16, settings=lua | SOFT, before=put_guard) as lab:
            yield lab


def is_soft(lab: Lab) -> bool:
    """Whether this cluster has soft limits."""
    return SOFT_LIMIT in lab.settings.get("SchedulerParameters", "")


def history(*more: int) -> str:
    """A job log in which jobs with these limits, and more, end soon."""
    lines, begin = [HEADING], int(time.time()) - 86_400
    limits = [*sorted(KINDS.values()), *more]
    for number in range(120):
        submit, limit, user = begin + number * 300, limits[number % len(limits)], (getuser(), USER)[number // 60]
        row = (number + 1, user, user, "main", "COMPLETED", submit, submit, submit + 5, submit + 45, 40, limit, 16, 1)
        lines.append("|".join(map(str, row)))
    return "\n".join(lines) + "\n"


class Adjuster:
    """A side-car of its own process; `pause`: Python that it runs first. `commands`: a folder of commands that it meets first.

    `log`: whether the job log is there.
    """

    def __init__(self, lab: Lab, folder: Path, *options: str, pause: str = "", commands: Path | None = None, log: bool = True):
        environment = lab.environment | {name: os.environ[name] for name in ("PYTHONPATH", "WALLTIME_CACHE") if name in os.environ}
        if commands is not None:
            environment["PATH"] = f"{commands}:{environment['PATH']}"
        self.history, self.ledger = folder / "history.txt", folder / "ledger"
        self.ledger.mkdir(exist_ok=True)
        if log:
            self.history.write_text(history())
        else:
            self.history.unlink(missing_ok=True)
        self.out = folder / "adjust.log"
        words = [
            f"--history={self.history}",
            f"--every={EVERY}",
            "--floor=1",
            "--share=1",
            "--predictor=tang13:key=request,statistic=max,window=1",
        ]
        words += ["--misses=1000", "--overdue=1", "--slip=1000"]  # here all jobs outlive their TimeMin
        chosen = {option.partition("=")[0] for option in options}
        words = [word for word in words if word.partition("=")[0] not in chosen]
        code = f"{pause}\nfrom walltime.cli.main import main\nmain()"
        with self.out.open("ab") as out:
            self._begin = self.out.stat().st_size
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-c", code, "slurm", "adjust", *words),
                    *([f"--ledger={self.ledger}"] if "--act" in options else []),
                    *options,
                ],
                env=environment,
                stdout=out,
                stderr=out,
            )

    @property
    def told(self) -> str:
        """What it has said."""
        return self.out.read_bytes()[self._begin :].decode()

    def says(self, text: str) -> bool:
        """Whether it has said this; fails if it has ended without."""
        said = text in self.told
        assert said or self.process.poll() is None, self.told[-2000:]
        return said

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(60)


class Faults:
    """A folder with an scontrol that can be made to fail; it notes what it is called with.

    `kind`: `fails` or `hangs`; of changes only `late` (made after a while, without an answer) or `lost` (made, but reported as failed);
    empty for none of them.
    """

    def __init__(self, lab: Lab, folder: Path, seconds: float = 3):
        self._folder = folder / "commands"
        self._folder.mkdir()
        real = shutil.which("scontrol", path=lab.path)
        (self._folder / "scontrol").write_text(
            f"""#!/bin/sh
cd {self._folder}
echo "$*" >>calls
case "$(cat kind) $1" in
fails*) echo "Unable to contact slurm controller (connect failure)" >&2; exit 1;;
hangs*) exec sleep 60;;
"late update") (sleep {seconds}; exec {real} "$@") >/dev/null 2>&1 & exec sleep 60;;
"lost update") {real} "$@" >/dev/null 2>&1; echo "Zero Bytes were transmitted or received" >&2; exit 1;;
esac
exec {real} "$@"
"""
        )
        (self._folder / "scontrol").chmod(0o755)
        self.be("")

    @property
    def folder(self) -> Path:
        return self._folder

    def be(self, kind: str) -> None:
        """How scontrol behaves from now on."""
        (self._folder / "new").write_text(kind)
        (self._folder / "new").rename(self._folder / "kind")

    def calls(self) -> list[str]:
        """What scontrol was called with."""
        return (self._folder / "calls").read_text().splitlines()


def shown(lab: Lab, number: int | str, name: str) -> str:
    """A field of scontrol show job."""
    words = lab.run("scontrol", "show", "job", str(number)).split()
    return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))


def runs(lab: Lab, number: int | str) -> bool:
    return shown(lab, number, "JobState") == "RUNNING"


def settable(lab: Lab) -> list[str]:
    """What scontrol shows of all jobs, without what Slurm itself goes on writing."""
    own = ("RunTime=", "StartTime=", "EndTime=", "AccrueTime=", "LastSchedEval=", "JobState=", "Reason=", "SchedNodeList=", "Deadline=")
    own += ("EligibleTime=", "NodeList=", "NumNodes=", "BatchHost=", "PreemptEligibleTime=", "NumCPUs=", "TRES=", "Scheduler=")
    return [word for word in lab.run("scontrol", "show", "job").split() if not word.startswith(own)]


def block(lab: Lab) -> int:
    """A on three nodes of four for an hour, and B, which heads the queue for all four; returns B.

    Without a TimeMin no job of KINDS fits before A's end.
    """
    a = lab.submit("-JA", "-t60", "-N3", "--exclusive", wrap="sleep 3600")
    wait_until("A", lambda: runs(lab, a), 60)
    return lab.submit("-JB", "-t1", "-N4", "--exclusive", wrap="sleep 1")


def small(lab: Lab, kind: str, seconds: int = 600, *options: str, name: str = "") -> int:
    """A job of a kind that has room beside A."""
    return lab.submit(f"-J{name or kind}", f"-t{KINDS[kind]}", "-n1", *options, wrap=f"sleep {seconds}")


def wide(lab: Lab, kind: str, *options: str) -> int:
    """A job of a kind that has no room beside A, so that it waits."""
    return lab.submit(f"-J{kind}", f"-t{KINDS[kind]}", "-N2", "--exclusive", *options, wrap="sleep 1")


def is_whole(lab: Lab, number: int | str, kind: str) -> bool:
    """Whether a running job has its limit.

    Where limits are given back it may also be the longest of the partition: if the side-car had not seen the job wait with its
    TimeMin, nobody knows whether its user had changed the limit.
    """
    return shown(lab, number, "TimeLimit") in (SPAN[kind], *(() if is_soft(lab) else (LONGEST,)))


def wait_whole(lab: Lab, number: int | str, kind: str, timeout: float = 20) -> None:
    """Wait until a running job has its limit; soft limits are never shortened, so nothing is waited for then."""
    if is_soft(lab):
        assert is_whole(lab, number, kind)
    wait_until(f"the limit of {kind}", lambda: is_whole(lab, number, kind), timeout)


def start_tested(lab: Lab, folder: Path, adjusters: list[Adjuster], *words: str, **options) -> Adjuster:
    """A side-car that adjusts."""
    one = Adjuster(lab, folder, "--act", *words, **options)
    adjusters.append(one)
    wait_until("the side-car", lambda: one.says("soft limit:") or one.says("give-back:"), 90)
    return one


def cancel(lab: Lab, *names: str) -> None:
    """Cancel all jobs of these names, and wait until they have gone."""
    for name in names:
        lab.run("scancel", f"--name={name}")
    wait_until("the end of all jobs", lambda: not lab.run("squeue", "--noheader", f"--name={','.join(names)}"), 60)


def end_all(lab: Lab, adjusters: list[Adjuster]) -> None:
    """End side-cars and jobs."""
    for one in adjusters:
        if one.process.poll() is None:
            one.end()
    cancel(lab, *KINDS, NAMES[0])


def as_user(lab: Lab, *words: str) -> str:
    """What a command of an ordinary user prints; raises CommandError."""
    number = str(getpwnam(USER).pw_uid)
    return lab.run("setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", *words)
