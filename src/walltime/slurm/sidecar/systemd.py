"""Units for systemd."""

from __future__ import annotations

import re
from collections.abc import Sequence

SERVICE = """\
# /etc/systemd/system/walltime-adjust.service
[Unit]
Description=TimeMin of waiting jobs, from the accuracy of earlier requests
After=network-online.target munge.service slurmctld.service
# after a crash limits are to be given back soon, however often it crashes
StartLimitIntervalSec=0

[Service]
# a user with AdminLevel=Operator in Slurm's accounting, and no other rights
User={user}
Type=notify
NotifyAccess=main
ExecStart={command}
Restart=always
RestartSec=5
KillSignal=SIGTERM
# it asks for more time while it gives back and takes back
TimeoutStopSec=300
TimeoutStartSec=600
# less than the least TimeMin; every command of Slurm that it gets an answer to, or not, counts as a sign of life
WatchdogSec=300
OOMScoreAdjust=-500
MemoryMax=2G
StateDirectory=walltime-adjust
StateDirectoryMode=0700
UMask=0077
ProtectSystem=strict
ReadWritePaths={folders}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
LockPersonality=yes
CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target

# /etc/systemd/system/walltime-history.service
[Unit]
Description=The job log that walltime-adjust learns from

[Service]
Type=oneshot
User={user}
UMask=0027
# what walltime slurm sacct-command --no-submit-line --no-job-names prints, in a script that writes another file and renames it: texts of
# users are not learned from, as sacct prints them so that they can forge other jobs
ExecStart=/usr/local/sbin/walltime-history

# /etc/systemd/system/walltime-history.timer
[Timer]
OnCalendar=*-*-* *:07:00
RandomizedDelaySec=300

[Install]
WantedBy=timers.target
"""
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def service(words: Sequence[str], user: str, folders: Sequence[str] = ()) -> str:
    """The units that run these words as this user, who may write into these folders, to be cut into three files."""
    written = " ".join(_word(f"-{folder}") for folder in folders)
    return SERVICE.format(command=" ".join(_word(word) for word in words), user=user, folders=written).replace("ReadWritePaths=\n", "")


def _word(word: str) -> str:
    """A word as systemd reads it.

    >>> _word("a b%$"), _word("--act")
    ('"a b%%$$"', '--act')
    """
    word = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
