"""The lowest versions that CI tests are those of pyproject.toml."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("lowest", ROOT / "tools" / "lowest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lowest__takes_the_lower_bounds(tool):
    assert tool.lowest(["numpy>=2.0", "numba >= 0.61, <0.69", "a-b[c]>=1; python_version<'3.12'"]) == {
        "numpy": "2.0",
        "numba": "0.61",
        "a-b": "1",
    }
    with pytest.raises(ValueError, match="numpy<3"):
        tool.lowest(["numpy<3"])


def test_locked__reads_versions_and_platforms(tool):
    text = "numpy==2.4.6 \\\n    --hash=sha256:0\n    # via numba\nzipp==4.1.2 ; python_full_version < '3.12' \\\n    --hash=sha256:0\n"
    assert tool.locked(text) == {"numpy": "2.4.6", "zipp": "4.1.2 ; python_full_version < '3.12'"}


def test_constraints__name_every_package_once(tool):
    lines = tool.constraints()
    names = [line.partition("==")[0] for line in lines]
    assert len(names) == len(set(names))
    lower = re.search(r'"numba>=([0-9.]+)"', (ROOT / "pyproject.toml").read_text())[1]
    assert f"numba=={lower}" in lines
    assert any(line.startswith("pytest==") for line in lines)
    assert not any(line.startswith("llvmlite") for line in lines)
