"""Builds the conda recipe of dist/, installs it, and runs the recipe's tests, without a channel from outside: python tools/conda.py SITE.

The channel is made here: Python itself, and a package for each distribution that the recipe needs, from the site-packages folder SITE of
an environment that has them. So the recipe's syntax, names, bounds, build, installation and tests are checked, but not the packages of
other channels. Needs py-rattler, py-rattler-build and packaging.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler.index import index_fs
from rattler_build import Stage0Recipe, ToolConfiguration, assemble_package
from rattler_build.progress import SimpleProgressCallback
from release import CONDA, ROOT, project

PLATFORM = "linux-64"
LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
LEFT_OUT = ("__pycache__", "site-packages", "dist-packages", "test", "idlelib", "config-*")


def needed(site: Path) -> dict[str, Distribution]:
    """Return the distributions in a folder that the project needs to be built and to run, by name."""
    there = {canonicalize_name(one.name): one for one in distributions(path=[str(site)])}
    found: dict[str, Distribution] = {}
    waiting = ["pip", "hatchling", *(canonicalize_name(Requirement(text).name) for text in project()["dependencies"])]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = there[name]
            waiting += [name for name, _ in requirements(there[name])]
    return found


def requirements(one: Distribution) -> list[tuple[str, str]]:
    """Return the names and bounds that a distribution requires on this machine without extras."""
    wanted = [Requirement(text) for text in one.requires or ()]
    return [(canonicalize_name(r.name), str(r.specifier)) for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]


def package(name: str, version: str, files: Path, depends: list[str], channel: Path) -> None:
    """Put a package of the files in a folder into the channel."""
    assemble_package(
        name, version, PLATFORM, "0", channel / PLATFORM, files_dir=files, depends=depends, compression_level=1, detect_prefix=False
    )


def make_channel(site: Path, channel: Path) -> None:
    """Make the channel."""
    for folder in (PLATFORM, "noarch"):
        (channel / folder).mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        files, base = Path(name), Path(sys.base_prefix)
        (files / "bin").mkdir()
        for program in ("python", f"python{LIBRARY.removeprefix('lib/python')}"):  # commands of packages name the second
            shutil.copy(os.path.realpath(sys.executable), files / "bin" / program)
        shutil.copytree(base / LIBRARY, files / LIBRARY, ignore=shutil.ignore_patterns(*LEFT_OUT))
        package("python", ".".join(map(str, sys.version_info[:3])), files, [], channel)
    for name, one in needed(site).items():
        with tempfile.TemporaryDirectory() as folder:
            for file in one.files or ():
                if ".." not in file.parts and "__pycache__" not in file.parts:
                    target = Path(folder) / LIBRARY / "site-packages" / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(site / file, target)
            depends = [f"{CONDA.get(other, other)} {bounds}".strip() for other, bounds in requirements(one)]
            package(CONDA.get(name, name), one.version, Path(folder), ["python", *depends], channel)
    asyncio.run(index_fs(channel))


def main() -> None:
    """Build, install and test; the exit status is that of the recipe's tests."""
    with tempfile.TemporaryDirectory() as name:
        channel = Path(name) / "channel"
        make_channel(Path(sys.argv[1]), channel)
        recipe = Stage0Recipe.from_file(ROOT / "packaging" / "conda" / "recipe.yaml")
        built = recipe.run_build(
            tool_config=ToolConfiguration(test_strategy="native"),
            output_dir=Path(name) / "built",
            channels=[channel.as_uri()],
            progress_callback=SimpleProgressCallback(),
        )
        print("\n".join(f"conda: {file.name} is built, installed and tested" for one in built for file in map(Path, one.packages)))


if __name__ == "__main__":
    main()
