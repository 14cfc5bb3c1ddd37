"""A package over its budget of lines, or without one, is named."""

from collections import Counter

from tools.budgets import faults, too_many_words, words_by_page


def test_faults__name_packages_over_their_budget_and_without_one():
    lines = Counter(auditor=11, cli=10, learn=1)
    assert faults(lines, {"auditor": 10, "cli": 10, "learn": 1}) == ["auditor has 11 lines, its budget is 10"]
    assert faults(lines, {"auditor": 11, "cli": 10}) == ["learn has no budget"]
    assert faults(lines, {"auditor": 11, "cli": 10, "learn": 1, "gone": 5}) == ["gone has a budget, but is not a package"]


def test_words__generated_parts_do_not_count_and_code_only_in_the_total(tmp_path):
    (tmp_path / "docs" / "reference" / "cli").mkdir(parents=True)
    (tmp_path / "docs" / "reference" / "cli" / "info.md").write_text("many words\n")
    text = "one two\n\n```sh\nthree\n```\n\n<!-- generated: x -->\nfour five\n<!-- end generated -->\n"
    (tmp_path / "docs" / "page.md").write_text(text)
    assert words_by_page(tmp_path) == {"docs/page.md": 5}
    assert words_by_page(tmp_path, code=False) == {"docs/page.md": 2}


def test_words__docs_and_guides_over_their_budgets_are_named():
    assert [line.split(" ")[0] for line in too_many_words({"docs": 1, "guide": 10**6})] == ["docs"]
    assert all(line.startswith("docs/guides/") for line in too_many_words({"docs": 10**6, "guide": 0}))
