"""How much the tests try: by WALLTIME_PROFILE `default` (what one waits for), `quick` (a part of it) or `nightly` (much more, at random).

A test names a count, and SCALES says what part of it a profile takes. What is counted are Hypothesis's examples and seeds. Which tests run
at all is said by the markers in pyproject.toml.
"""

from __future__ import annotations

import os

from hypothesis import settings

SCALES = {"quick": 0.02, "default": 0.02, "nightly": 1}
PROFILE = os.environ.get("WALLTIME_PROFILE") or "default"
if PROFILE not in SCALES:
    raise ValueError(f"WALLTIME_PROFILE is {PROFILE!r}; known are {', '.join(SCALES)}")


def scaled(count: int) -> int:
    """This part of the count in this profile; one at least."""
    return max(1, round(count * SCALES[PROFILE]))


# The same examples in every run, but for those of a night. A failure prints what reproduces it.
def _examples(count: int) -> int:
    """Three times the part, as examples choose among forms, and far fewer would miss some; all of them at night."""
    return min(count, 3 * scaled(count))


settings.register_profile(PROFILE, max_examples=_examples(100), deadline=None, derandomize=PROFILE != "nightly", print_blob=True)
settings.load_profile(PROFILE)


def examples(count: int) -> settings:
    """So many examples, scaled; everything else is the profile's."""
    return settings(max_examples=_examples(count))


def seeds(count: int) -> range:
    """So many seeds, scaled, the first ones: for workloads too large for Hypothesis."""
    return range(scaled(count))
