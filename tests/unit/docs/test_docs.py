"""The Python examples of the documentation and of the README run, and print what they say."""

import doctest
import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import walltime as wt

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LONG = {"audit.md", "learning.md", "campaigns.md", "agents.md", "your-log.md"}
"""Pages whose examples take over a third of a second."""
RUN = [
    pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=[pytest.mark.slow] * (page.name in LONG))
    for page in PAGES
    if FENCE.search(page.read_text())
]


def examples(page: Path) -> doctest.DocTest:
    """All examples of a page, one after the other, with the line numbers that they have there."""
    text = page.read_text()
    code = re.sub(r"[^\n]+", "", text)
    for match in reversed(list(FENCE.finditer(text))):
        line = text.count("\n", 0, match.start(1))
        lines = code.splitlines(keepends=True)
        inside = match[1].splitlines(keepends=True)
        code = "".join(lines[:line] + inside + lines[line + len(inside) :])
    return doctest.DocTestParser().get_doctest(code, {"__name__": "example"}, page.name, str(page), 0)


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_examples__print_what_the_page_says(page, tmp_path, monkeypatch):
    if page.name == "learning.md":
        pytest.importorskip("gymnasium", reason="Gymnasium is not installed; make setup does it")
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(examples(page), out=told.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(told)


LABEL = re.compile(r"\bSPEC\b|\b[ALMQRTWX]-\d\d[a-z]?\b|\bX-[LP]\d?-?[A-Z]?\d+\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages__cite_papers_not_labels(page):
    assert not LABEL.findall(page.read_text())


@pytest.mark.slow
def test_docstrings__cite_papers_not_labels():
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert not LABEL.findall(path.read_text()), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples__stand_in_fences_that_are_run(page):
    outside = FENCE.sub("", page.read_text())
    assert ">>> " not in outside


def test_api_reference__names_what_can_be_imported_as_printed():
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    entries = re.findall(r"^::: (\S+)$", page, re.MULTILINE)
    assert len(entries) > 90
    for entry in entries:
        home, _, name = entry.rpartition(".")
        if name in ("BackfillingEnv", "BackfillingVectorEnv") and importlib.util.find_spec("gymnasium") is None:
            continue  # make setup installs it
        found = getattr(importlib.import_module(home), name)
        assert getattr(found, "__doc__", None), entry


def test_api_reference__has_every_public_name():
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    entries = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    groups = {name for name in dir(wt) if isinstance(getattr(wt, name), ModuleType)}
    values = {"FCFS", "SJF", "WFP", "version", *groups, *(n for n in dir(wt) if n.endswith("Error"))}
    assert len(groups) == 26
    assert {f"walltime.{name}" for name in set(dir(wt)) - values} <= entries


def test_search_from_disk__has_the_index_and_the_worker_as_scripts(tmp_path, monkeypatch):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; make setup does it")
    spec = importlib.util.spec_from_file_location("offline", ROOT / "docs" / "generators" / "offline.py")
    offline = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(offline)
    config = SimpleNamespace(site_dir=str(tmp_path), extra={})
    assert offline.on_config(config).extra["polyfills"] == ["search/worker.js"]
    workers = tmp_path / "assets" / "javascripts" / "workers"
    for folder in (workers, tmp_path / "search"):
        folder.mkdir(parents=True)
    (tmp_path / "search" / "search_index.json").write_text('{"docs": []}')
    with pytest.raises(Exception, match="0 search workers"):
        offline.on_post_build(config)
    (workers / "search.1a.min.js").write_text('let said = "</script>";')
    offline.on_post_build(config)
    assert (tmp_path / "search" / "search_index.js").read_text() == 'var __index = {"docs": []};\n'
    assert 'const text = "let said = \\"</script>\\";\\nlunr.TokenSet' in (tmp_path / "search" / "worker.js").read_text()
    assert (workers / "search.1a.min.js").read_text() == f'let said = "</script>";{offline.DIGITS}'


def test_registries__name_what_their_packages_have():
    for name, variant in wt.predictors.PREDICTORS.variants.items():
        kind = variant.loaded
        assert kind.positional or kind().label == name
        assert getattr(wt.predictors, kind.__name__) is kind
        assert kind.__name__ in dir(wt.predictors)
    for kind in {variant.loaded for variant in wt.policy.POLICIES.variants.values()}:
        assert getattr(wt.policy, kind.__name__) is kind


DESIGN = (ROOT / "docs" / "design.md").read_text()
SOURCE = ROOT / "src" / "walltime"
FOLDERS = [SOURCE / part for part in ("", "engine", "engine/kernel", "slurm/sidecar")] + [ROOT]


def of_design(name):
    return next((folder / name for folder in FOLDERS if (folder / name).exists()), None)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_0-9/]+\.py|(?:[a-z_0-9]+/)+)`", DESIGN))))
def test_design__names_files_and_folders_that_are_there(name):
    assert of_design(name) is not None


@pytest.fixture
def generators(monkeypatch):
    """The folder of the generators, to import from as MkDocs does."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; make setup does it")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generators"))
    return ROOT / "docs" / "generators"


def test_questions__name_pages_and_headings_that_there_are(generators):
    questions = importlib.import_module("questions")
    commands = {f"reference/cli/{name}.md" for name in ("cite", "dialects", "slurm")}
    for one in questions.questions():
        page, _, anchor = one["page"].partition("#")
        notebook = ROOT / "docs" / page.replace(".md", ".ipynb")
        assert page in commands or notebook.is_file() or (ROOT / "docs" / page).is_file(), page
        if anchor:
            heads = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w]+", "-", head.lower().replace("'", "")).strip("-") for head in heads}, one["page"]
    assert {one["for"] for one in questions.questions()} == set(questions.PEOPLE)


def test_api_pages__have_all_entries_and_links_lead_to_them(generators):
    pages = importlib.import_module("reference_pages")
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    written = "".join(pages.api_pages().values())
    assert set(pages.ENTRY.findall(text)) == set(pages.ENTRY.findall(written))
    assert pages.with_api_links("[a](../reference/api.md#benchmarks)") == "[a](../reference/api/benchmarks.md)"
    assert pages.with_api_links("[a](api.md#walltime.Workload)") == "[a](api/workloads.md#walltime.Workload)"
    assert "[`Workload`](api/workloads.md#walltime.Workload)" in pages.api_contents(text)


def test_reading_time__counts_words_and_no_code(generators):
    reading = importlib.import_module("reading_time")
    page = "# Title\n\n" + "word " * 1000 + "\n\n```sh\n" + "code " * 5000 + "\n```\n"
    assert reading.minutes(page) == 5


def test_tooltips__explain_the_first_occurrence_outside_of_headings_links_and_code(generators):
    tooltips = importlib.import_module("tooltips")
    meaning = tooltips.meanings()["shadow time"]
    page = "<h2>Shadow time</h2><p><a>shadow time</a> <code>shadow time</code> Shadow times of the shadow time.</p>"
    told = tooltips.with_tooltips(page)
    assert told == page.replace("Shadow times of", f'<abbr title="{meaning}">Shadow times</abbr> of')


def test_tooltips__terms_of_a_row_have_their_own_meanings(generators):
    meanings = importlib.import_module("tooltips").meanings()
    assert meanings["anchor point"] != meanings["compression"]
    assert all(";" not in meanings[term] for term in ("anchor point", "bounded slowdown", "think time", "soft limit", "TimeMin"))
    assert not {"job", "limit"} & set(meanings)


def test_pages__have_the_title_of_the_navigation():
    nav = re.findall(r'^ +- "?([^"\n]+?)"?: ([\w/-]+\.md)$', (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    for title, name in nav:
        page = ROOT / "docs" / name
        if title != "Home" and page.is_file():  # pages of notebooks are made when the documentation is built
            assert page.read_text().partition("\n")[0] == f"# {title}", name
        assert len(title.split()) <= 6, title


def test_numbers__of_faults_kinds_and_schedulers_are_those_of_the_code():
    def stated(name: str, pattern: str) -> int:
        (number,) = re.findall(pattern, (ROOT / "docs" / name).read_text())
        return int(number)

    from tests.adjust.planted import FAULTS
    from validation.hostile import INPUTS

    assert stated("validation/adjust-failures.md", r"(\d+) errors are inserted into the side-car") == len(FAULTS)
    planted = len(tomllib.loads((ROOT / "validation" / "faults.toml").read_text())["fault"])
    assert stated("validation/evidence.md", r"(\d+) errors are inserted into the aud") == planted
    assert stated("validation/evidence.md", r"inputs of each of (\d+) kinds") == len(INPUTS)
