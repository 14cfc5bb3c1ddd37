"""A cache that cannot be read is made again without a word, whatever is in it."""

import contextlib
import json
import os
import pickle
import random
import shutil
import stat
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.profiles import scaled
from walltime import syntax
from walltime.benchmark.result import _read_part
from walltime.compiled import cache, folder
from walltime.compiled.jit import StoredFunction
from walltime.errors import LogError, OutputError
from walltime.logs.fetch import RECORD, _record, _recorded
from walltime.papers.study import Study
from walltime.simulation.specification import Scheduler
from walltime.tuning.search import CostFolder

FLIPS = min(scaled(60), 60)


class _Runs:
    def __reduce__(self):
        return Path.touch, (Path("RAN"),)


def _flipped(number: int) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        content = bytearray(file.read_bytes())
        place = random.Random(number).randrange(len(content))
        content[place] ^= 1 << number % 8
        file.write_bytes(bytes(content))

    return damage


def _cut(share: float) -> Callable[[Path], None]:
    return lambda file: (file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)]), None)[1]


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "inside").write_text("x")


def _dangling(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere")


DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "one byte": lambda file: file.write_bytes(b"\x80"),
    "text": lambda file: file.write_text("this is text\n" * 50),
    "random": lambda file: file.write_bytes(random.Random(1).randbytes(5000)),
    "short": lambda file: file.write_bytes(random.Random(2).randbytes(31)),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"more"),
    "without checksum": lambda file: file.write_bytes(file.read_bytes()[:-32]),
    "another version": lambda file: file.write_bytes(pickle.dumps("0.0.1") + pickle.dumps(("stamp", {}))),
    "pickle that runs": lambda file: file.write_bytes(pickle.dumps(_Runs())),
    "pickle of another thing": lambda file: file.write_bytes(pickle.dumps([1, 2])),
    "unpicklable": lambda file: file.write_bytes(b"cno.such.module\nThing\n."),
    "huge": lambda file: file.write_bytes(b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "folder": _folder,
    "dangling link": _dangling,
    "unreadable": lambda file: file.chmod(0),
    "missing": Path.unlink,
    **{f"cut to {share}": _cut(share) for share in (0.1, 0.5, 0.99)},
    **{f"flip {number}": _flipped(number) for number in range(FLIPS)},
}


def added(a, b):
    return a + b


def multiplied(a, b):
    return a * b


def kernel(function=added):
    """A fresh compiled form of a function, as in a new process."""
    return StoredFunction(function)


def hits(made) -> int:
    return sum(made.dispatcher.stats.cache_hits.values())


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """The folder of compiled functions, with one function in it."""
    place = tmp_path / "kernels"
    place.mkdir()
    monkeypatch.setattr(cache, "cache_folder", lambda: place)
    monkeypatch.chdir(tmp_path)
    assert kernel()(2, 3) == 5
    assert {file.suffix for file in place.rglob("*.*")} == {".nbi", ".nbc", ".sha256", ".py"}
    again = kernel()
    assert (again(2, 3), hits(again)) == (5, 1)
    return place


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("ending", [".nbi", ".nbc", ".sha256"])
def test_compiled_functions__that_cannot_be_read_are_made_again(kept, damage, ending):
    if damage is DAMAGES["unreadable"] and os.getuid() == 0:
        pytest.skip("root reads files without a permission to read")
    (file,) = kept.rglob(f"*{ending}")
    damage(file)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        damaged = kernel()
        assert (damaged(2, 3), hits(damaged)) == (5, 0)
        again = kernel()
        assert (again(2, 3), hits(again)) == (5, 1), "what was compiled is kept"
    assert not Path("RAN").exists()
    assert stat.S_ISREG(file.stat().st_mode)


@pytest.mark.parametrize("damage", [DAMAGES["text"], _folder, _dangling, Path.unlink])
def test_stand_in_of_a_module__is_written_again(kept, damage):
    (file,) = kept.glob("*.py")
    damage(file)
    again = kernel()
    assert (again(2, 3), hits(again)) == (5, 1)
    assert stat.S_ISREG(file.stat().st_mode)


def test_compiled_function__is_not_read_for_a_function_that_was_edited(kept):
    assert kernel(types.FunctionType(multiplied.__code__, globals(), "added"))(2, 3) == 6


def test_compiled_function__for_arguments_of_other_types_is_kept_as_well(kept):
    made = kernel()
    assert (made(2, 3), made(0.5, 1), hits(made)) == (5, 1.5, 1)
    again = kernel()
    assert (again(0.5, 1), again(2, 3), hits(again)) == (1.5, 5, 2)


def test_compiled_function__that_cannot_be_stored_works(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path / "file" / "kernels")
    (tmp_path / "file").write_text("")
    cache._warn.cache_clear()
    with pytest.warns(RuntimeWarning, match="cannot be stored"):
        assert kernel()(2, 3) == 5


def test_compiled_functions__of_another_function_are_not_taken_for_this_one(kept):
    assert kernel(multiplied)(2, 3) == 6
    for ending in (".nbi", ".nbc"):
        (mine,), (theirs,) = (list(kept.rglob(f"*{name}*{ending}")) for name in ("added", "multiplied"))
        shutil.copy(theirs, mine)
    assert kernel()(2, 3) == 5


def test_cache_folder__that_cannot_be_used_is_made_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("WALLTIME_CACHE", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / folder.folder_name()).write_text("a file")
    assert folder.cache_folder.__wrapped__() == tmp_path / "own" / folder.folder_name()
    monkeypatch.setenv("WALLTIME_CACHE", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    found = folder.cache_folder.__wrapped__()
    assert found.parent == tmp_path / f"walltime-{os.getuid()}"
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700
    found.parent.chmod(0o777)  # as another user could have made it, and written into it
    elsewhere = folder.cache_folder.__wrapped__()
    assert elsewhere.parent == tmp_path
    assert elsewhere != found
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_sources__that_cannot_be_read_are_hashed_again(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("WALLTIME_CACHE", str(tmp_path))
    files = [folder.PACKAGE / "compiled" / "jit.py"]
    whole = syntax.code_hash(files, folder.PACKAGE)
    memo = tmp_path / "sources"
    damage(memo)
    assert syntax.code_hash(files, folder.PACKAGE) == whole


@pytest.mark.parametrize("damage", DAMAGES)
def test_costs_of_a_search__that_cannot_be_read_are_computed_again(tmp_path, damage):
    schedulers = [Scheduler(wt.Easy()), Scheduler(wt.policy.NoBackfilling())]

    def find(missing):
        return np.array([[1.5, 2.5, float(len(one.label))] for one in missing])

    first = CostFolder(tmp_path, {"a": 1}).costs(schedulers, find)
    file = tmp_path / "costs.jsonl"
    DAMAGES[damage](file)
    if damage == "folder":
        with raises(OutputError, "unusable_folder"):
            CostFolder(tmp_path, {"a": 1})
        return
    again = CostFolder(tmp_path, {"a": 1}).costs(schedulers, find)
    assert again.shape == first.shape
    if not damage.startswith("flip"):  # a digit that is changed is still a number
        assert again.tolist() == first.tolist()
        assert CostFolder(tmp_path, {"a": 1}).costs(schedulers, None).tolist() == first.tolist(), "what was computed again is kept"


@pytest.mark.parametrize("damage", DAMAGES)
def test_windows_of_a_suite__that_cannot_be_read_are_run_again(tmp_path, damage):
    header, row = {"suite": "a"}, {"subject": "s", "jobs": "x", "schedule": "y", "measured": 3, "mean_wait": 1.5}
    part = tmp_path / "r.part"
    assert _read_part(part, header) == {}
    with part.open("a") as file:
        file.writelines(json.dumps(row | {"window": number}) + "\n" for number in range(5))
    assert len(_read_part(part, header)) == 5
    DAMAGES[damage](part)
    if damage == "folder":
        with pytest.raises(OutputError):
            _read_part(part, header)
        return
    found = _read_part(part, header)
    assert all(isinstance(subject, str) and type(window) is int for subject, window in found)
    with part.open("a") as file:
        file.write(json.dumps(row | {"window": 7}) + "\n")
    assert ("s", 7) in _read_part(part, header), "what is run again is kept"


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_results_of_a_paper__that_cannot_be_read_are_computed_again(tmp_path, damage):
    ran = []

    def compute(task, check):
        ran.append(task["n"])
        return {"twice": 2 * task["n"]}

    study = Study.__new__(Study)
    study.__dict__.update(folder=tmp_path, workers=1, progress=None)
    tasks = [{"n": 1}, {"n": 2}]
    assert study.kept("test", tasks, compute) == [{"twice": 2}, {"twice": 4}]
    file = next(file for file in tmp_path.rglob("*.json") if "4" in file.read_text())
    DAMAGES[damage](file)
    if damage == "folder":
        return
    found = study.kept("test", tasks, compute)
    assert found[0] == {"twice": 2}
    if not damage.startswith("flip"):
        assert found[1] == {"twice": 4}


@pytest.mark.parametrize("damage", DAMAGES)
def test_checksums_of_downloads__that_cannot_be_read_are_one_error(tmp_path, damage):
    _record("a.swf", "0" * 64, tmp_path)
    _record("b.swf", "1" * 64, tmp_path)
    DAMAGES[damage](tmp_path / RECORD)
    with contextlib.suppress(LogError):
        assert all(isinstance(one, str) for one in _recorded(tmp_path).values())
