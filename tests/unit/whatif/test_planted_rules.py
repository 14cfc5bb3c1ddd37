"""Rules planted in generated logs: some are found, none is invented.

A rule takes minutes, so each night tries every eighth one; `python validation/planted_rules.py` tries them all.
"""

from datetime import date

import pytest

from validation.planted_rules import RANDOM, RULES, trial

pytestmark = pytest.mark.nightly
FOUND = (
    "none: plain EASY",
    "no job is planned across 17:00 of a weekday",
    "... of which only until the middle of the log",
    "long requests do not start by day",
    "wide jobs do not start by day",
    "long requests are not planned into the day",
    "maintenance on every second Monday",
    "three users run one job at a time",
    "three users run two jobs at a time",
    "no backfilling",
    "reservations for all",
    "the smallest area first",
    "in order of arrival, wide jobs as if they had come later",
    "a part for small, short jobs from the middle of the log on",
    "three users run one job at a time from the middle of the log on",
    "the smallest area first from the middle of the log on",
    "no job starts in the lunch break of a weekday",
    "small jobs do not start at night",
    "at most two wide jobs of a group",
    "fair share with decay",
    *RANDOM,
)


NIGHTS = 8


@pytest.mark.parametrize("rule", FOUND[date.today().toordinal() % NIGHTS :: NIGHTS])
def test_planted_rule__is_found_and_nothing_is_invented(rule):
    one = trial(rule, 12_000, 1)
    assert one.found
    assert one.invented == ()
    assert one.after >= one.before


def test_rules__are_twenty_two_and_none():
    assert len(RULES) == 23
