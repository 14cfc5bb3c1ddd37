"""The prose linter finds patterns and lengths in pages, docstrings and messages, and passes over code and generated parts."""

import json
import tomllib

import pytest

from tools import prose

CONFIGURATION = tomllib.loads((prose.ROOT / "tools" / "prose.toml").read_text())
RULES, LIMITS = prose.read_rules(CONFIGURATION), CONFIGURATION["limits"]


def found(file):
    return [rule for passage in prose.passages(file) for rule, _ in prose.findings(passage, RULES, LIMITS)]


@pytest.fixture
def page(tmp_path):
    def write(text, name="page.md"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    "text",
    [
        "The plan is made anew.",
        "Of these jobs, ten wait.",
        "A file that is no table.",
        "Mend the file.",
        "What follows is a list.",
        "Only who waits longest starts.",
        "The rule says which job starts.",
        "The log knows its users.",
        "Shown are the first jobs.",
        "No such order; known are easy and fcfs.",
        "Two jobs wait for ever.",
        "It measures what each term is worth.",
        "The job is to wait.",
        "Positive: who uses more waits longer.",
        "It stores from when on the job waits.",
        "Did you mean easy?; try again.",
    ],
)
def test_patterns__are_found_in_sentences(page, text):
    assert len(found(page(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Plain words.",
        "There is no queue.",
        "Users who wait may ask.",
        "What is backfilling?",
        "Run `anew beside`.",
        "Two files, both of which are read.",
        "Did you mean easy? Valid options: easy.",
    ],
)
def test_patterns__pass_plain_sentences_and_quotations(page, text):
    assert found(page(text)) == []


def test_limits__sentences_cells_headings_and_paragraphs(page):
    long = " ".join(["word"] * 45)
    text = f"# a b c d e f g\n\n{long}.\n\n| {' '.join(['cell'] * 16)} | b |\n| --- | --- |\n\n" + "Two words. " * 70
    assert found(page(text)) == ["heading", "sentence", "cell", "paragraph"]


def test_limits__semicolons_of_a_sentence(page):
    assert found(page("One; two; three. Four; five.")) == []
    assert found(page("One; two; three; four.")) == ["semicolon"]


def test_pages__code_and_generated_parts_are_passed_over(page):
    text = "```sh\nmend anew\n```\n\n<!-- generated: x -->\nOf these, anew.\n<!-- end generated -->\n\nPlain.\n"
    assert found(page(text)) == []


def test_modules__docstrings_comments_and_messages_are_read(page):
    text = '"""Make the plan anew."""\n\n# this is done once anew\nraise ValueError(f"{1} is no plan at all")\n'
    assert len(found(page(text, "module.py"))) == 3


def test_modules__lists_rows_and_programs_are_not_one_sentence(page):
    words = " ".join(["word"] * 25)
    listed = f'"""Title.\n\n* {words}\n* {words}\n\na.py   {words}\nb.py   {words}\n"""\n'
    names, program = " ".join(f"name_{k}" for k in range(50)), "title = 1\\n" * 50
    assert found(page(f'{listed}A = "{names}"\nB = "{program} of one two three"\n', "module.py")) == []


def test_notebooks__markdown_cells_are_read(page):
    cells = [{"cell_type": "markdown", "source": ["Made anew."]}, {"cell_type": "code", "source": ["anew = 1"]}]
    assert len(found(page(json.dumps({"cells": cells}), "book.ipynb"))) == 1


@pytest.mark.parametrize(
    ("name", "area"),
    [
        ("src/walltime/engine/a/b.py", "src/walltime/engine"),
        ("src/walltime/api.py", "src/walltime"),
        ("docs/a.md", "docs"),
        ("README.md", "."),
    ],
)
def test_area__is_a_package_or_the_first_folder(name, area):
    assert prose.area(name) == area


def test_docstrings_of_functions__begin_with_a_verb_except_of_properties():
    module = '''
class Log:
    @functools.cached_property
    def size(self):
        """The number of jobs."""

    def jobs(self):
        """The jobs of the log."""

@item("T1", title="x")
def table():
    """Table 1: sizes."""

def read():
    """Read, then check."""

def undocumented(): ...
'''
    assert list(prose.without_verb(module, {"Read"})) == [(7, "The jobs of the log.")]
