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
ExecStart={command}
Restart=always
RestartSec=5
KillSignal=SIGTERM
TimeoutStopSec=300
OOMScoreAdjust=-500
StateDirectory=walltime-adjust
ProtectSystem=full
ProtectHome=read-only
PrivateTmp=yes
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
# the command that walltime slurm sacct-command prints, in a script that writes another file and renames it
ExecStart=/usr/local/sbin/walltime-history

# /etc/systemd/system/walltime-history.timer
[Timer]
OnCalendar=*-*-* *:07:00
RandomizedDelaySec=300

[Install]
WantedBy=timers.target
"""
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def service(words: Sequence[str], user: str) -> str:
    """The units that run these words as this user, to be cut into three files."""
    return SERVICE.format(command=" ".join(_word(word) for word in words), user=user)


def _word(word: str) -> str:
    """A word as systemd reads it.

    >>> _word("a b%$"), _word("--act")
    ('"a b%%$$"', '--act')
    """
    word = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
