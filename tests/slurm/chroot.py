"""The Slurm of another Debian, newer than this machine's, in a folder that is made once and kept: that of sid, or of trixie.

Commands in it run by chroot(2), with this machine's /dev, /proc, /sys and /tmp mounted for that command only: nothing is left mounted.
`python -m tests.slurm.chroot [RELEASE ...]` makes the folders, or says why it cannot.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

RELEASES = ("sid", "trixie")
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge", "slurm-wlm-basic-plugins", "slurmdbd", "slurm-wlm-mysql-plugin", "python3-venv")
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
COMMANDS = ("scontrol", "squeue", "sinfo", "sbatch", "scancel", "srun", "sacct", "sacctmgr")
"""What the side-car and others outside call."""
TIMEOUT = 900
ENTER = """\
#!/bin/sh
# Run a command in the chroot; the mounts are seen by it alone, and vanish with it.
exec unshare --mount --propagation private sh -euc '
for folder in dev proc sys tmp; do mount --rbind "/$folder" "{root}/$folder"; done
for name in hosts resolv.conf ssl/certs; do if [ -e "/etc/$name" ]; then mount --bind "/etc/$name" "{root}/etc/$name"; fi; done
exec chroot "{root}" env PATH={path} "$@"' enter "$@"
"""


class NoChrootError(Exception):
    """The folder cannot be made here; the message says why."""


def folder(release: str = "sid") -> Path:
    """Where it is kept: WALLTIME_SLURM_CHROOT, for sid, else a folder below the user's cache."""
    own = os.environ.get("WALLTIME_SLURM_CHROOT") if release == "sid" else None
    cache = os.environ.get("WALLTIME_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "walltime"
    return Path(own) if own else Path(cache).absolute() / f"slurm-{release}"


def is_made(root: Path) -> bool:
    """Whether the folder is there as a whole."""
    return all((root / name).exists() for name in ("usr/bin/sinfo", "usr/sbin/slurmdbd", "usr/bin/python3"))


def version(root: Path) -> str:
    """The version of its package, such as 26.05.5-1."""
    package = (root / "var/lib/dpkg/status").read_text().partition("Package: slurmctld\n")[2].partition("\n\n")[0]
    return package.partition("\nVersion: ")[2].partition("\n")[0]


def made(release: str = "sid") -> Path:
    """The folder, made now if need be: a minute or three. Raises NoChrootError."""
    root = folder(release)
    wrong = missing(release)
    if wrong:
        raise NoChrootError(wrong)
    if is_made(root):
        return root
    root.parent.mkdir(parents=True, exist_ok=True)
    with root.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once make it once
        if not is_made(root):
            make(root, release)
    return root


def missing(release: str) -> str | None:
    """What keeps this machine from having the folder, None if nothing does."""
    if os.geteuid() != 0:
        return "only root can run commands in a chroot"
    if subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True).returncode:
        return "this machine does not let root have mounts of its own"
    if is_made(folder(release)):
        return None
    lacking = [name for name in ("debootstrap", "apt-get") if shutil.which(name, path=PATH) is None]
    if lacking:
        return f"{', '.join(lacking)} cannot be found"
    return None if KEYS.exists() else f"{KEYS} is missing, by which packages are checked; install debian-archive-keyring"


def make(root: Path, release: str) -> None:
    """Make the folder; it gets its name when it is complete."""
    new = root.with_suffix(".new")
    for name in ("proc", "sys"):  # which debootstrap mounts there, and leaves if it is killed
        if os.path.ismount(new / name):
            subprocess.run(["umount", "--lazy", str(new / name)], check=False)
    shutil.rmtree(new, ignore_errors=True)
    log = root.with_suffix(".log")
    words = ["debootstrap", "--force-check-gpg", f"--keyring={KEYS}", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
    environment = {"PATH": PATH, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **proxy()}
    with log.open("wb") as out:
        try:
            done = subprocess.run(
                [*words, release, str(new), mirror()], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired as error:
            raise NoChrootError(f"debootstrap takes longer than {TIMEOUT} s") from error
    if done.returncode:
        raise NoChrootError(f"debootstrap: {' / '.join(log.read_text(errors='replace').splitlines()[-3:])}")
    for name in ("hosts", "resolv.conf"):  # this machine's are mounted over them
        (new / "etc" / name).touch()
    (new / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
    shutil.rmtree(root, ignore_errors=True)  # one that was made with fewer packages
    new.rename(root)


def mirror() -> str:
    """The Debian mirror that this machine's apt uses."""
    words = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages")
    for line in subprocess.run(words, capture_output=True, text=True).stdout.splitlines():
        address, _, component = line.partition(" ")
        if component == "main" and address.rstrip("/").endswith("/debian"):
            return address
    raise NoChrootError("there is no Debian mirror in this machine's apt sources")


def proxy() -> dict[str, str]:
    """The proxy of this machine's apt, for programs that do not ask apt."""
    words = ("apt-config", "--format", "%v%n", "dump", "Acquire::http::Proxy")
    found = subprocess.run(words, capture_output=True, text=True).stdout.strip()
    return {"http_proxy": found} if found else {}


def put_commands(root: Path, into: Path) -> None:
    """Make `into`/enter, which runs a command in the chroot, and Slurm's commands in `into`/bin, which run there."""
    enter = into / "enter"
    enter.write_text(ENTER.format(root=root, path=PATH))
    enter.chmod(0o755)
    (into / "bin").mkdir()
    for name in COMMANDS:
        (into / "bin" / name).write_text(f'#!/bin/sh\nexec {shlex.quote(str(enter))} {name} "$@"\n')
        (into / "bin" / name).chmod(0o755)


if __name__ == "__main__":
    try:
        for one in sys.argv[1:] or ["sid"]:
            print(made(one))
    except NoChrootError as error:
        sys.exit(str(error))
