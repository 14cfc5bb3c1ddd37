"""What makes the project one that others can join: workflows, templates, release checks and citations say the same as the code does."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from walltime.cli import cite
from walltime.papers.printed import PAPERS, printed

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
YAML = [*WORKFLOWS, *TEMPLATES, ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
SCRIPTS = [*sorted((ROOT / "tools").glob("*.sh")), ROOT / "packaging" / "install.sh", ROOT / ".ci" / "run"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def load(path: Path):
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def ci() -> dict:
    return load(ROOT / ".github" / "workflows" / "ci.yml")


def commands(workflow: dict) -> list[str]:
    return [step["run"] for job in workflow["jobs"].values() for step in job.get("steps", []) if "run" in step]


# ------------------------------------------------------------------------------------------------------- workflows, scripts


@pytest.mark.parametrize("path", YAML, ids=name_of)
def test_yaml__parses_and_names_no_host(path):
    assert isinstance(load(path), dict)
    assert not re.search(r"https?://|\b(?:[a-z0-9-]+\.)+(?:org|com|io|net)\b", path.read_text())


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_workflow__every_job_runs_and_ends_and_keeps_no_secret(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "uses" in job or {"runs-on", "timeout-minutes", "steps"} <= set(job), name
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= set(workflow["jobs"]), name
    assert "secrets." not in path.read_text()


def test_workflows__every_python_of_the_classifiers_is_tested(project, ci):
    supported = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert supported
    assert project["requires-python"] == f">={supported[0]}"
    for job in ("test", "wheel"):
        assert ci["jobs"][job]["strategy"]["matrix"]["python"] == supported
    told = ", ".join(supported[:-1]) + f" and {supported[-1]}"
    for page in ("README.md", "docs/background/versions.md"):
        assert told in (ROOT / page).read_text(), page


def test_workflows__run_what_there_is():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [(ROOT / ".ci" / "run").read_text(), *(command for path in WORKFLOWS for command in commands(load(path)))]
    for text in texts:
        lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        assert set(re.findall(r"\bmake ([a-z]+)", lines)) <= targets
        assert all((ROOT / tool).is_file() for tool in re.findall(r"\btools/\w+\.\w+", text))


def test_ci__here_and_in_the_workflow_do_the_same(ci):
    here = set(re.findall(r"^ *(?:stage|kept) \w+ \d+ make (\w+)\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))
    there = set(re.findall(r"\bmake (\w+)", "\n".join(commands(ci))))
    assert here == there | {"setup", "slurm"}, "a real Slurm is only here"
    assert {"test", "lowest", "lint", "docs", "wheel"} <= here


def test_wheel__is_tried_out_with_tests_that_exist():
    assert "tools/smoke.sh dist/*.whl" in (ROOT / "tools" / "wheel.sh").read_text()
    copied = re.findall(r"\btests/[\w/]+\.py", (ROOT / "tools" / "smoke.sh").read_text())
    assert copied
    assert all((ROOT / file).is_file() for file in copied)


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_script__is_bash(path):
    assert path.read_text().startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", path], check=True)


def test_pre_commit__uses_the_tools_of_make_lint():
    (repo,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    called = {re.match(r"\.venv/bin/([\w-]+(?: (?:check|format))?)", hook["entry"])[1] for hook in repo["hooks"]}
    checks = re.findall(r"^check ([\w-]+(?: (?:check|format))?)", (ROOT / "tools" / "lint.sh").read_text(), re.MULTILINE)
    assert called == set(checks)


@pytest.mark.parametrize("path", [path for path in TEMPLATES if path.name != "config.yml"], ids=name_of)
def test_issue_template__is_a_form(path):
    form = load(path)
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(field["type"] in {"input", "textarea", "checkboxes"} and field["attributes"]["label"] for field in form["body"])
    assert any(field.get("validations", {}).get("required") for field in form["body"])


# ----------------------------------------------------------------------------------------------------------------- releases


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version__is_the_same_everywhere(release):
    assert release.one_version() == []


def write_versions(root: Path, version: str) -> None:
    (root / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {version}\n")
    (root / "packaging/conda/recipe.yaml").write_text(f'context:\n  version: "{version}"\n')
    (root / "packaging/spack/package.py").write_text(f'    version("{version}")\n')


def test_release__says_what_is_not_ready(release, tmp_path):
    for folder in ("changelog.d", "src/walltime", "packaging/conda", "packaging/spack"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    (tmp_path / "changelog.d" / "13.added.md").write_text("Something.\n")
    write_versions(tmp_path, "0.1.0")
    assert release.problems("v0.2.0", tmp_path) == [
        "CITATION.cff names 0.1.0, not 0.2.0",
        "packaging/conda/recipe.yaml names 0.1.0, not 0.2.0",
        "packaging/spack/package.py names 0.1.0, not 0.2.0",
        "CHANGELOG.md names no version, not 0.2.0",
        "changelog.d/ still has 13.added.md: run towncrier build",
    ]
    write_versions(tmp_path, "0.2.0")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 (2026-12-01)\n\n## 0.1.0 (2026-11-01)\n")
    (tmp_path / "changelog.d" / "13.added.md").unlink()
    assert release.problems("v0.2.0", tmp_path) == []
    assert len(release.problems("v0.3.0", tmp_path)) == 5


@pytest.mark.parametrize("check", ["changelog", "locked", "recipe", "spack", "paper"])
def test_release__finds_nothing_to_mend(release, check):
    assert getattr(release, check)() == []


def test_release__finds_a_python_of_pyenv_that_runs(release, tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert release.interpreter("3.99") is None
    for number, body in (("3.99.0", "exit 1"), ("3.99.1", "exit 0")):
        program = tmp_path / "versions" / number / "bin" / "python3.99"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    assert release.interpreter("3.99") == str(program)


def test_release__extras_are_imported_by_the_names_of_their_modules(release):
    """`make setup` installs all of them."""
    assert [name for name in release.modules() if importlib.util.find_spec(name) is None] == []


def test_release__images_install_every_extra(release, monkeypatch):
    monkeypatch.setattr(release, "_installed", lambda *words: None)
    try:
        assert release.image() == []
    except release.Skipped as why:
        assert "hadolint" in str(why)  # noqa: PT017


def test_release__finds_what_the_recipe_lacks(release, monkeypatch):
    declared = release.project()
    monkeypatch.setattr(release, "project", lambda: {**declared, "dependencies": [*declared["dependencies"], "tomli-w>=1.0"]})
    assert release.recipe() == ["packaging/conda/recipe.yaml lacks 'tomli-w >=1.0'"]
    assert release.spack() == ["packaging/spack/package.py lacks py-tomli-w 1.0 "]
    extras = {**declared["optional-dependencies"], "more": ["pandas>=2.3"]}
    monkeypatch.setattr(release, "project", lambda: {**declared, "optional-dependencies": extras})
    assert release.spack() == [
        "packaging/spack/package.py lacks py-pandas 2.3 more",
        "packaging/spack/package.py and pyproject.toml differ in the extra more",
    ]


# ---------------------------------------------------------------------------------------------------------------- citations


def bibtex() -> dict[str, dict[str, str]]:
    """The entries that `walltime cite` prints, by key."""
    text = "\n".join(cite.entries().values())
    entries = re.findall(r"^@(\w+)\{(\w+),\n(.*?)^\}$", text, re.MULTILINE | re.DOTALL)
    return {key: {"type": kind} | dict(re.findall(r"^  (\w+) += \{(.*)\},?$", fields, re.MULTILINE)) for kind, key, fields in entries}


def plain(text: str) -> str:
    return re.sub(r"[{}]", "", text)


def test_citation__has_what_reference_managers_need():
    cff = load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "type", "version", "license", "authors", "references"} <= set(cff)
    kinds = {"article": {"journal", "volume", "issue"}, "conference-paper": {"conference", "collection-title"}}
    for reference in cff["references"]:
        assert kinds[reference["type"]] | {"title", "authors", "year"} <= set(reference)
        assert ("start" in reference) == ("end" in reference)
        assert all({"family-names", "given-names"} <= set(author) for author in reference["authors"])
        assert re.fullmatch(r"10\.\d{4,}/\S+", reference.get("doi", "10.1234/5"))  # of three of them no source confirms one


def test_bibtex__is_that_of_the_citation_file_and_of_the_papers(project):
    cff, entries = load(ROOT / "CITATION.cff"), bibtex()
    assert list(entries) == ["walltime", *PAPERS]
    assert plain(entries["walltime"]["author"]) == cff["authors"][0]["name"] == project["authors"][0]["name"]
    assert {key: entries["walltime"][key] for key in ("title", "version")} == {key: cff[key] for key in ("title", "version")}
    assert {cff.get("url", ""), project.get("urls", {}).get("Homepage", ""), entries["walltime"].get("url", "")} == {cite.URL}
    assert cite.citation() == f"{cff['authors'][0]['name']}. {cff['title']} (version {cff['version']})."
    for paper, reference in zip(PAPERS, cff["references"], strict=True):
        entry = entries[paper]
        assert entry["type"] == {"article": "article", "conference-paper": "inproceedings"}[reference["type"]]
        assert plain(entry["title"]) == reference["title"] == printed(paper).title
        names = [f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]]
        assert entry["author"] == " and ".join(names)
        assert (entry["year"], entry.get("doi")) == (str(reference["year"]), reference.get("doi"))
        pages = (reference["start"], reference["end"]) if "start" in reference else None  # of one of them no source confirms them
        assert entry.get("pages") == (None if pages is None else "{}--{}".format(*pages))
        assert entry.get("journal", entry.get("booktitle")) == reference.get("journal", reference.get("collection-title"))
        assert (entry.get("volume"), entry.get("number")) == tuple(
            str(reference[k]) if k in reference else None for k in ("volume", "issue")
        )
        assert printed(paper).source.endswith(f"{reference['year']}" + ("" if pages is None else ", pp. {}-{}".format(*pages)))


def test_citation__has_the_address_and_the_year_once_there_are_some(monkeypatch):
    about = {"author": "A", "title": "T", "version": "1", "year": "2027"}
    monkeypatch.setattr(cite, "URL", "https://example.org")
    monkeypatch.setattr(cite, "_about", lambda: about)
    assert cite.citation() == "A (2027). T (version 1). https://example.org"
    assert bibtex()["walltime"] == {
        "type": "software",
        "author": "{A}",
        "title": "T",
        "version": "1",
        "year": "2027",
        "url": "https://example.org",
    }


# ------------------------------------------------------------------------------------------------------------------- modules


def test_modules__only_packages_and_public_modules_have_all():
    public = {"walltime/dataframes.py", "walltime/figures.py", "walltime/workloads.py"}
    files = (ROOT / "src").rglob("*.py")
    having = {str(file.relative_to(ROOT / "src")) for file in files if file.name != "__init__.py" and "__all__ =" in file.read_text()}
    assert having == public
