"""A whole Slurm cluster on this machine, for tests: munge, MariaDB, slurmdbd, slurmctld and many slurmd, all of one user.

All nodes are this machine, each with as many processors as it is said to have. Nothing needs systemd or cgroups, nothing is installed,
and all that is written goes into one folder, in memory if /dev/shm has room, which is removed in the end.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from tempfile import mkdtemp

from tests.slurm.chroot import put_commands

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "mariadbd", "mariadb-install-db", "slurmdbd", "sacct")
PACKAGES = "slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins slurmdbd slurm-wlm-mysql-plugin mariadb-server"
"""The packages of Debian that have these programs."""
NEEDED = 1 << 30
"""Bytes of memory that must be free for a lab in /dev/shm; it takes a fifth of them."""
SETTINGS = {
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_interval=2,bf_continue,bf_resolution=1,bf_max_job_test=500,sched_interval=2,batch_sched_delay=1,"
    "default_queue_depth=1000",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "PriorityType": "priority/basic",
}
PARTITIONS = ("PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=60 State=UP",)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SLURM_CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ReturnToService=2
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SwitchType=switch/none
KillWait=5
MinJobAge=600
JobCompType=jobcomp/none
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} CPUs={cpus} RealMemory=4096 {node} State=UNKNOWN
"""

ACCOUNTING_CONF = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
# for slurmdbd the "password" is the socket of munge
AccountingStoragePass={folder}/munge.sock
"""

SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser={user}
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


class NoLabError(Exception):
    """Slurm cannot be run here; the message says why."""


class CommandError(Exception):
    """A command of Slurm failed; the message has what it printed."""


def missing(accounting: bool = True) -> str | None:
    """What is missing for a lab, None if it can be started."""
    programs = [name for name in PROGRAMS[: None if accounting else 4] if shutil.which(name, path=PATH) is None]
    return f"{', '.join(programs)} cannot be found; on Debian: apt-get install --no-install-recommends {PACKAGES}" if programs else None


@dataclass
class Lab:
    """A cluster; use as a context manager.

    `nodes`, `cpus`: its nodes and the processors of each. `settings`: further lines of slurm.conf, by name. `partitions`: its lines of
    partitions; `node`: more words of the line of the nodes; `gres`: the content of gres.conf. `before`: is called when
    accounts can be made, before slurmctld starts. `root`: the folder of another Debian, whose Slurm it is, as `chroot.made` makes it.
    `accounting`: whether there is a slurmdbd. `folder` has everything while it runs.
    """

    nodes: int = 4
    cpus: int = 4
    settings: dict[str, str] = field(default_factory=dict)
    partitions: Sequence[str] = PARTITIONS
    node: str = ""
    gres: str = ""
    before: Callable[[Lab], None] | None = None
    root: Path | None = None
    accounting: bool = True
    folder: Path = field(init=False)
    port: int = field(init=False)
    """The first of nodes + 3 TCP ports in a row."""
    _daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Where Slurm's commands are."""
        return PATH if self.root is None else f"{self.folder}/bin:{PATH}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands to this cluster."""
        return {"PATH": self.path, "SLURM_CONF": f"{self.folder}/slurm.conf", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(self.folder)}

    def run(self, *words: str) -> str:
        """What a command of Slurm prints; raises CommandError."""
        done = subprocess.run(self._inside(words), env=self.environment, cwd="/tmp", capture_output=True, text=True)
        if done.returncode:
            raise CommandError(f"{shlex.join(words)[:200]}: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stdout

    def shell(self, command: str) -> str:
        """What a line of bash prints."""
        return self.run("bash", "-c", command)

    def submit(self, *options: str, wrap: str = "true") -> int:
        """Submit a job; returns its number."""
        printed = self.run("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={wrap}")
        return int(printed.partition(";")[0])

    def _inside(self, words: Sequence[str]) -> list[str]:
        """A command where this cluster's programs are; MariaDB is this machine's."""
        here = self.root is None or words[0].startswith("mariadb")
        return list(words) if here else [f"{self.folder}/enter", *words]

    def wait_for_jobs(self, timeout: float) -> None:
        """Wait until no job waits or runs and the accounting has the end of all of them."""
        wait_until("the last job", lambda: not self.run("squeue", "--noheader"), timeout, every=1)
        # accounting is written later than the queue changes
        unfinished = ("sacct", "-nXPa", "--format=JobID", "--starttime=now-1day", "--state=PENDING,RUNNING")
        wait_until("the accounting", lambda: not self.run(*unfinished).strip(), 60, every=1)

    def __enter__(self) -> Lab:
        reason = None if self.root is not None and not self.accounting else missing(self.accounting)
        if reason:
            raise NoLabError(reason)
        memory = Path("/dev/shm")
        fits = memory.is_dir() and shutil.disk_usage(memory).free > NEEDED
        self.folder = Path(mkdtemp(prefix="lab-", dir=memory if fits else None))
        self.port = free_ports(self.nodes + 3)
        self.folder.chmod(0o755)
        if self.root is not None:
            put_commands(self.root, self.folder)
        for name in ("state", "sql/tmp"):
            (self.folder / name).mkdir(parents=True)
        try:
            self._start()
        except CommandError as error:
            self.stop()
            raise NoLabError(str(error)) from error
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        folder, user = self.folder, getuser()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        files = [f"--{name}={folder}/munge.{end}" for name, end in (("socket", "sock"), ("key-file", "key"), ("pid-file", "pid"))]
        files += [f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
        self._daemon("munged", "--foreground", "--force", *files)
        wait_until("munged", lambda: (folder / "munge.sock").exists(), 20)
        values = {
            "folder": folder,
            "user": user,
            "host": socket.gethostname().partition(".")[0],
            "port": self.port,
            "dbd_port": self.port + 1,
            "sql_port": self.port + 2,
            "ports": f"[{self.port + 3}-{self.port + 2 + self.nodes}]",
            "nodes": f"n[1-{self.nodes}]",
            "cpus": self.cpus,
            "node": self.node,
        }
        self._conf = SLURM_CONF.format(**values) + (ACCOUNTING_CONF.format(**values) if self.accounting else "")
        self._write_conf()
        (folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if self.version() >= (23, 11) else "")
        (folder / "gres.conf").write_text(self.gres)
        if self.accounting:
            (folder / "slurmdbd.conf").write_text(SLURMDBD_CONF.format(**values))
            (folder / "slurmdbd.conf").chmod(0o600)
            self._start_database(user)
            self._daemon("slurmdbd", "-D")
            wait_until("slurmdbd", lambda: self._works("sacctmgr", "-n", "show", "cluster"), 60)
            self.run("sacctmgr", "-iQ", "add", "cluster", "lab")
        if self.before is not None:
            self.before(self)
        self.start_controller()
        for k in range(1, self.nodes + 1):
            self._daemon("slurmd", "-D", "-N", f"n{k}")
        idle = ("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N")
        wait_until("slurmd", lambda: len(set(self.run(*idle).split())) == self.nodes, 60)

    def _write_conf(self) -> None:
        lines = [f"{name}={value}" for name, value in (SETTINGS | self.settings).items()]
        (self.folder / "slurm.conf").write_text(self._conf + "\n".join((*lines, *self.partitions)) + "\n")

    def reconfigure(self, **settings: str) -> None:
        """Change lines of slurm.conf and have slurmctld read them."""
        self.settings |= settings
        self._write_conf()
        self.run("scontrol", "reconfigure")

    def start_controller(self) -> None:
        """Start slurmctld."""
        self._daemon("slurmctld", "-D")
        wait_until("slurmctld", lambda: self._works("scontrol", "ping"), 60)

    def stop_controller(self, how: int = signal.SIGTERM) -> None:
        """End slurmctld; jobs go on."""
        daemon = next(daemon for daemon in self._daemons if "slurmctld" in str(daemon.args))
        self._daemons.remove(daemon)
        daemon.send_signal(how)
        daemon.wait(60)

    def _start_database(self, user: str) -> None:
        sql = self.folder / "sql"
        # several of them at once would be too many for the kernel's asynchronous input and output
        options = ["--no-defaults", f"--user={user}", f"--datadir={sql}/data", "--innodb-use-native-aio=0"]
        options.append(f"--tmpdir={sql}/tmp")  # in a shared one the next server that starts removes this one's tables
        self.run("mariadb-install-db", *options, "--auth-root-authentication-method=socket", "--skip-test-db")
        self._daemon(
            "mariadbd",
            *options,
            f"--socket={sql}/sock",
            "--bind-address=127.0.0.1",
            f"--port={self.port + 2}",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=64M",
            "--innodb-lock-wait-timeout=900",
            "--innodb-flush-log-at-trx-commit=0",
        )
        client = ("mariadb", "--no-defaults", "-S", f"{sql}/sock")
        wait_until("mariadbd", lambda: self._works(*client, "-e", "SELECT 1"), 60)
        self.run(
            *client,
            "-e",
            "CREATE DATABASE slurm_acct_db; CREATE USER slurm@127.0.0.1 IDENTIFIED BY 'slurm'; "
            "GRANT ALL ON slurm_acct_db.* TO slurm@127.0.0.1;",
        )

    def version(self) -> tuple[int, ...]:
        """Slurm's, such as (22, 5, 8)."""
        return tuple(int(part) for part in self.run("sinfo", "--version").split()[1].split("-")[0].split("."))

    def _works(self, *words: str) -> bool:
        self._check_alive()
        return subprocess.run(self._inside(words), env=self.environment, cwd="/tmp", capture_output=True).returncode == 0

    def _check_alive(self) -> None:
        for daemon in self._daemons:
            if daemon.poll() is not None:
                name = next(word for word in PROGRAMS if any(word == Path(str(part)).name for part in daemon.args))  # type: ignore[union-attr]
                log = self.folder / f"{name}.out"
                raise NoLabError(f"{name} ended: {log.read_text(errors='replace')[-500:]}")

    def _daemon(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            program = name if self.root is not None else shutil.which(name, path=PATH)
            assert program is not None
            self._daemons.append(
                subprocess.Popen(
                    self._inside([program, *words]),
                    env=self.environment,
                    cwd="/tmp",
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )

    def stop(self) -> None:
        """End all jobs, then the daemons, the last one first."""
        if any("slurmctld" in str(daemon.args) and daemon.poll() is None for daemon in self._daemons):
            for partition in self.partitions:  # a killed slurmd would leave its jobs alive
                name = partition.split()[0].partition("=")[2]
                for more in (["--state=PENDING"], ["--signal=KILL"], []):
                    subprocess.run(self._inside(["scancel", *more, f"--partition={name}"]), env=self.environment, capture_output=True)
            wait_until("the end of all jobs", lambda: not self.run("squeue", "--noheader"), 15, must=False)
        for daemon in reversed(self._daemons):
            if daemon.poll() is None:
                daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self._daemons):
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_ports(count: int) -> int:
    """The first of so many TCP ports in a row that are free."""
    for _ in range(100):
        first = random.randrange(20_000, 32_000)
        try:
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise NoLabError(f"there are no {count} free ports in a row")


def wait_until(what: str, holds: Callable[[], bool], timeout: float, every: float = 0.1, must: bool = True) -> None:
    """Wait until something holds; raises NoLabError if it does not in time (s)."""
    end = time.monotonic() + timeout
    while True:
        try:
            if holds():
                return
        except CommandError as error:
            if time.monotonic() > end:
                raise NoLabError(f"{what}: {error}") from error
        if time.monotonic() > end:
            if must:
                raise NoLabError(f"{what} did not come within {timeout:g} s")
            return
        time.sleep(every)


if __name__ == "__main__":
    sys.exit(missing())
