"""What is stored under a hash of the code stays good when nothing but its text has changed."""

import shutil
from pathlib import Path

import pytest

import walltime
from tests.profiles import PROFILE
from walltime.campaign.cell import RESULTS, Cell, _files, engine_version, files_of_results
from walltime.syntax import syntax_hash, syntax_text

CODE = '''
"""A module."""

LIMIT = 10
"""Jobs."""


class Rules:
    """Some rules."""

    limit: int = LIMIT

    def among(self, jobs, most=3):
        """A docstring."""
        return [job for job in jobs if job < most]  # a comment
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# a comment", ""),
        ("A docstring.", "Another one."),
        ('        """A docstring."""\n', ""),
        ('"""Jobs."""', '"""Jobs, and no more."""'),
        ("\n\n\nclass", "\nclass"),
        ("job < most]", "job<most\n]"),
        ("jobs, most=3)", "jobs: list[int], most: int = 3) -> list[int]"),
    ],
)
def test_syntax__does_not_change_with_the_text(before, after):
    assert before in CODE
    assert syntax_text(CODE.replace(before, after)) == syntax_text(CODE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("= 10", "= 11"),
        ("= 10", "= 10.0"),
        ("job <", "job <="),
        ("most=3", "most=4"),
        ("LIMIT\n", "None\n"),
        ("Rules", "Rule"),
        ("int", "ClassVar[int]"),
    ],
)
def test_syntax__changes_with_what_is_done(before, after):
    assert before in CODE
    assert syntax_text(CODE.replace(before, after)) != syntax_text(CODE)


def test_syntax__of_a_string_that_is_used_counts():
    assert syntax_text("x = 'a'") != syntax_text("x = 'b'")
    assert syntax_text("f('a')") != syntax_text("f('b')")
    assert syntax_text("x = None") != syntax_text("x = 0")


def test_hash__depends_on_names_and_not_on_the_place(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(CODE)
    shutil.copy(tmp_path / "two/a.py", tmp_path / "two/b.py")
    a, b = syntax_hash([tmp_path / "one/a.py"], tmp_path / "one"), syntax_hash([tmp_path / "two/a.py"], tmp_path / "two")
    assert a == b != syntax_hash([tmp_path / "two/b.py"], tmp_path / "two")


# --------------------------------------------------------------------------------------------------- cells of campaigns


@pytest.fixture
def package(tmp_path) -> Path:
    """A copy of the package, whose sources may be edited."""
    shutil.copytree(Path(walltime.__file__).parent, tmp_path / "walltime", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "walltime"


def version_of(package: Path) -> str:
    return syntax_hash(files_of_results(package), package)[:16]


@pytest.mark.nightly
def test_engine_version__stays_when_comments_and_what_gives_no_result_are_edited(package):
    assert version_of(package) == engine_version()
    for file in package.rglob("*.py"):
        file.write_text("# A comment.\n" + file.read_text().replace('"""', '"""Edited. ', 1))
    edited = _files(package, ("compiled/cache.py", "compiled/folder.py", "cli/main.py", "report/page.py", "campaign/store.py"))
    assert len(edited) > 3
    for name in edited:
        with name.open("a") as file:
            file.write("\nEDITED = 1\n")
    assert version_of(package) == engine_version()


RESULTS_DEPEND_ON = (
    "engine/kernel/number/loop.py",
    "engine/interface/number.py",
    *("estimates/fmodel.py", "logs/joblog.py", "metrics/summary.py", "policy/orders.py", "campaign/work.py"),
)


@pytest.mark.slow
def test_engine_version__changes_with_what_results_depend_on(package):
    edits = RESULTS_DEPEND_ON if PROFILE == "nightly" else RESULTS_DEPEND_ON[:2]
    for name in edits:
        text = (package / name).read_text()
        (package / name).write_text(text + "\nEDITED = 1\n")
        assert version_of(package) != engine_version(), name
        (package / name).write_text(text)


@pytest.mark.parametrize("name", RESULTS_DEPEND_ON)
def test_files_of_results__are_those_that_results_depend_on(name):
    package = Path(walltime.__file__).parent
    assert package / name in files_of_results(package)


def test_engine_version__names_modules_that_there_are():
    package = Path(walltime.__file__).parent
    assert all((package / name).exists() for name in RESULTS)


@pytest.mark.slow
def test_cell__keeps_its_key_when_a_comment_in_an_order_of_ones_own_is_edited(tmp_path):
    file = tmp_path / "orders.py"

    def key(text: str) -> str:
        file.write_text(text)
        return Cell.of({"model": "lublin99", "order": f"{file}:narrow"}, 1, "none", False, ()).key(None, 1)

    first = key("def narrow(procs):\n    return -procs\n")
    assert key("def narrow(procs):  # few processors first\n    return -procs\n") == first
    assert key("def narrow(procs):\n    return procs\n") != first
