"""A package over its budget of lines, or without one, is named."""

from collections import Counter

from tools.budgets import faults


def test_faults__name_packages_over_their_budget_and_without_one():
    lines = Counter(auditor=11, cli=10, learn=1)
    assert faults(lines, {"auditor": 10, "cli": 10, "learn": 1}) == ["auditor has 11 lines, its budget is 10"]
    assert faults(lines, {"auditor": 11, "cli": 10}) == ["learn has no budget"]
    assert faults(lines, {"auditor": 11, "cli": 10, "learn": 1, "gone": 5}) == ["gone has a budget, but is not a package"]
