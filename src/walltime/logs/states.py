"""Words for job states in tables of unknown systems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

KINDS = {
    "failed": r"incomplete|unfinished|unsuccess|not |fail|error",
    "completed": r"complet(?!ing)|done|success|succeed|finish(?!ing)|ok$|exited|^pass|^cd$",
    "cancelled": r"cancel|abort|deleted|revoked|killed|^ca$",
    "pending": r"^(pend|queued|wait|held|hold|idle|tolaunch|resubmit|psusp|pd$)",
    "running": r"^(run$|running|completing|launching|suspended|ususp|ssusp|resuming|finishing|transferring|r$)",
}
OF_OAR = {"completed": "^terminated$"}
"""The usual end of a job in OAR; elsewhere it is a failure."""
FAILURES = r"fail|error|incomplete|unfinished|timeout|memory|preempt|evict|revoked|deadline"
EXIT_CODE = re.compile(r"-?[0-9]+(?:\.0*)?(?::[0-9]+)?")
"""An exit code, perhaps followed by a signal as in Slurm's 0:9."""


def words_by_kind(texts: Iterable[str], kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the distinct states by kind: the first kind whose pattern a state matches, or else `failed`."""
    words: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        kind = next((kind for kind, pattern in kinds.items() if re.search(pattern, text.lower())), "failed")
        words.setdefault(kind, []).append(text)
    return words
