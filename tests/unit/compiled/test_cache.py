"""The folder of compiled kernels never gives a stale answer, survives edited comments, and need not be writable."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

import walltime
from walltime import syntax
from walltime.compiled import folder
from walltime.engine.interface.load import ENTRIES

# The analysis of the log of starts is compiled in a second or two, and has helpers in another file. Of three
# jobs one starts at once, and of the two that wait then the longer one before the shorter one.
SCRIPT = """
import json, sys
import numpy as np
from numba.core import event

class Counter(event.Listener):
    names = []
    def on_start(self, event): pass
    def on_end(self, event):
        self.names.append(event.data["dispatcher"].py_func.__module__)

event.register("numba:compile", Counter())
import walltime
from walltime.compiled import cache, folder
from walltime.engine.interface import load
from walltime.engine.kernel.dynamics import EFFECT
from walltime.engine.kernel.memory import ITEM, JOB, NOTE, RUN, records
cached = cache.is_kept(load.ENTRIES["dynamics"].function, folder.cache_folder())
jobs, notes, found = records(JOB, 3), records(NOTE, 3), records(EFFECT, 3)
jobs.start, jobs.runtime, jobs.procs = [0, 10, 18], [10, 8, 3], 4
notes.job, notes.arrived, notes.head = [0, 1, 2], [1, 3, 3], -1
load.load("dynamics")(np.arange(3), jobs, 4, notes, records(ITEM, 3), records(RUN, 4), found)
compiled = sum(name.startswith("walltime.engine.") for name in Counter.names)
print(json.dumps({"shortest": found.shortest.tolist(), "package": walltime.__file__, "cached": cached, "compiled": compiled,
                  "folder": str(folder.cache_folder()), "hash": folder.source_hash()}))
"""
BEFORE, AFTER = "if parent.rank < rank or", "if parent.rank > rank or"
FOUND, FOUND_AFTER = [True, False, True], [True, True, True]


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """A folder with a copy of the package, whose sources may be edited."""
    place = tmp_path_factory.mktemp("copied")
    shutil.copytree(Path(walltime.__file__).parent, place / "walltime", ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cold(copied, cache) -> list[dict]:
    """What two processes found that started at once with an empty cache."""
    assert not any(cache.iterdir())
    return fresh_processes(2, copied, WALLTIME_CACHE=str(cache))


def fresh_process(package: Path, **environment: str) -> dict:
    return fresh_processes(1, package, **environment)[0]


def fresh_processes(count: int, package: Path, **environment: str) -> list[dict]:
    """So many processes at once; each must end well, without a word of warning."""
    environment = os.environ | {"PYTHONPATH": str(package)} | environment
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    started = [subprocess.Popen(command, env=environment, stdout=PIPE, stderr=PIPE, text=True) for _ in range(count)]
    try:
        outputs = [process.communicate(timeout=300) for process in started]
    finally:
        for process in started:
            process.kill()
    results = []
    for process, (output, complaints) in zip(started, outputs, strict=True):
        assert (process.returncode, complaints) == (0, ""), complaints[-3000:]
        results.append(json.loads(output))
        assert Path(results[-1]["package"]).is_relative_to(package)
    return results


def run_script(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True, timeout=300, check=True
    )


def test_cache_folder__carries_the_hash_of_the_sources():
    assert folder.cache_folder().name == folder.folder_name() == f"kernels-{folder.source_hash()}"
    assert re.fullmatch("[0-9a-f]{16}", folder.source_hash())


def test_cache_root__is_walltimes_own_then_xdgs_then_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("WALLTIME_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert syntax.cache_root() == tmp_path / "own"
    monkeypatch.delenv("WALLTIME_CACHE")
    assert syntax.cache_root() == tmp_path / "xdg" / "walltime"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert syntax.cache_root() == tmp_path / "home" / ".cache" / "walltime"


@pytest.mark.nightly
def test_cache__is_filled_by_two_processes_at_once(copied, cache, cold):
    for found in cold:
        assert (found["shortest"], found["cached"]) == (FOUND, False)
        assert 1 <= found["compiled"] <= ENTRIES["dynamics"].functions  # either may read what the other one has just written
    # Neither has spoilt what the other wrote: the next process compiles nothing.
    third = fresh_process(copied, WALLTIME_CACHE=str(cache))
    assert third == cold[0] | {"cached": True, "compiled": 0}
    # No half-written file is left behind.
    assert {file.suffix or file.name for file in cache.rglob("*") if file.is_file()} == {
        ".nbc",
        ".nbi",
        ".py",
        ".sha256",
        "used",
        "sources",
    }


@pytest.mark.slow
def test_cache__is_not_used_after_an_edit(copied, cache, cold):
    first = cold[0]
    assert Path(first["folder"]) == cache / f"kernels-{first['hash']}"
    # A condition in a helper. Numba would not notice, as dynamics.py stays as it is.
    helper = copied / "walltime" / "engine" / "kernel" / "heap.py"
    text, stat = helper.read_text(), helper.stat()
    assert text.count(BEFORE) == 1
    helper.write_text(text.replace(BEFORE, AFTER))
    try:
        edited = fresh_process(copied, WALLTIME_CACHE=str(cache))
    finally:
        helper.write_text(text)
        os.utime(helper, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (edited["shortest"], edited["cached"], edited["compiled"]) == (FOUND_AFTER, False, ENTRIES["dynamics"].functions)
    assert edited["hash"] != first["hash"]
    assert Path(edited["folder"]).parent == cache

    # And back again: the first folder is still good.
    again = fresh_process(copied, WALLTIME_CACHE=str(cache))
    assert (again["shortest"], again["compiled"], again["hash"]) == (FOUND, 0, first["hash"])


@pytest.mark.nightly
def test_cache__is_used_after_comments_docstrings_and_what_is_not_compiled_were_edited(copied, cache, cold, tmp_path):
    edited = tmp_path / "edited"
    shutil.copytree(copied, edited, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (edited / "walltime" / "engine").rglob("*.py"):
        text = file.read_text().replace('"""', '"""Edited. ', 1).replace("\n\n\n", "\n\n\n# Another line number.\n\n")
        file.write_text(f"# A comment.\n# Another one.\n{text}")
    for name in ("reference/number.py", "interface/number.py"):
        with (edited / "walltime" / "engine" / name).open("a") as file:
            file.write("\nEDITED = 1\n")
    found = fresh_process(edited, WALLTIME_CACHE=str(cache))
    assert (found["shortest"], found["compiled"], found["hash"]) == (FOUND, 0, cold[0]["hash"])


@pytest.mark.slow
def test_cache__that_cannot_be_written_is_replaced_by_a_temporary_folder(copied, cache, cold, tmp_path):
    # A file stands where the folder should be; root could write to any folder. The temporary folder is the cache of the test
    # above by another name, so that nothing is compiled twice.
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / f"walltime-{os.getuid()}").symlink_to(cache)
    result = fresh_process(copied, WALLTIME_CACHE=str(in_the_way), TMPDIR=str(temporary))
    assert (result["shortest"], result["compiled"]) == (FOUND, 0)
    assert Path(result["folder"]) == temporary / f"walltime-{os.getuid()}" / f"kernels-{result['hash']}"
    assert in_the_way.read_text() == "not a folder"


@pytest.mark.nightly
def test_cache__that_vanishes_or_is_damaged_is_made_anew(copied, cache, cold, tmp_path):
    mine = tmp_path / "cache"
    shutil.copytree(cache, mine)
    kept = mine / f"kernels-{cold[0]['hash']}"
    for file in kept.rglob("*dynamics.replay_starts-*.nbc"):
        file.write_bytes(file.read_bytes()[:1000])
    damaged = fresh_process(copied, WALLTIME_CACHE=str(mine))
    assert (damaged["shortest"], damaged["compiled"]) == (FOUND, ENTRIES["dynamics"].functions)
    assert fresh_process(copied, WALLTIME_CACHE=str(mine))["compiled"] == 0

    script = """
import shutil
from walltime.compiled import folder
from walltime.engine.interface import load
shutil.rmtree(folder.cache_folder())
load.load("dynamics")
"""
    assert run_script(script, WALLTIME_CACHE=str(mine), PYTHONPATH=str(copied)).stderr == ""
    assert len(list(kept.rglob("*dynamics.replay_starts-*.nbc"))) == 1


@pytest.mark.slow
def test_source_hash__depends_on_what_is_compiled(copied):
    script = "from walltime.compiled import folder; print(folder.source_hash())"

    def hash_after(name: str, more: str) -> str:
        file = copied / "walltime" / name
        text = file.read_text()
        file.write_text(text + more)
        try:
            return run_script(script, PYTHONPATH=str(copied)).stdout
        finally:
            file.write_text(text)

    known = hash_after("engine/kernel/queue.py", "")
    compiled = ("engine/kernel/number/loop.py", "compiled/jit.py", "compiled/records.py")
    assert len({known, *(hash_after(name, "\nEDITED = 1\n") for name in compiled)}) == 4
    assert {known} == {hash_after(name, "\nEDITED = 1\n") for name in ("engine/interface/number.py", "compiled/cache.py")}


NOT_PARSED = """
import ast
from walltime import syntax
def refuse(source):
    raise RuntimeError("parsed")
syntax.ast = type("ast", (), {"parse": refuse})
from walltime.compiled import folder
print(folder.source_hash())
"""
PARSED = "from walltime.compiled import folder; print(folder.source_hash())"


@pytest.mark.nightly
def test_source_hash__is_remembered_by_what_is_written_in_the_sources(copied, tmp_path):
    environment = {"PYTHONPATH": str(copied), "WALLTIME_CACHE": str(tmp_path / "cache")}
    memo = tmp_path / "cache" / "sources"
    first = run_script(PARSED, **environment).stdout
    assert run_script(NOT_PARSED, **environment).stdout == first
    lines = memo.read_text().splitlines()
    assert [len(line) for line in lines] == [64 + 1 + 64 + 1 + 16]  # of the file, of its syntax, and the mark of the line

    helper = copied / "walltime" / "engine" / "kernel" / "heap.py"
    text = helper.read_text()
    try:
        helper.write_text(f"{text}# A comment.\n")
        assert run_script(PARSED, **environment).stdout == first
        helper.write_text(f"{text}EDITED = 1\n")
        assert run_script(PARSED, **environment).stdout != first
    finally:
        helper.write_text(text)
    assert len(memo.read_text().splitlines()) == 3
    assert [file.name for file in memo.parent.iterdir()] == ["sources"], "nothing is left of what was written"

    memo.write_text("damaged \0\n" + "0" * 130)
    assert run_script(PARSED, **environment).stdout == run_script(NOT_PARSED, **environment).stdout == first


@pytest.mark.slow
def test_sources__need_not_be_remembered(copied, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    assert run_script(PARSED, PYTHONPATH=str(copied), WALLTIME_CACHE=str(tmp_path / "file")).stderr == ""


@pytest.mark.slow
def test_sources__that_are_remembered_do_not_become_ever_more(copied, tmp_path):
    memo = tmp_path / "sources"
    memo.write_text(
        "".join(f"{one} {one} {syntax._mark(one, one)}\n" for one in (f"{number:064}" for number in range(2 * syntax.SOURCES_KNOWN)))
    )
    run_script(PARSED, PYTHONPATH=str(copied), WALLTIME_CACHE=str(tmp_path))
    assert len(memo.read_text().splitlines()) == syntax.SOURCES_KNOWN


def test_what_is_compiled__is_in_the_kernel_and_depends_on_nothing_else():
    engine = folder.PACKAGE / "engine"
    for file in engine.rglob("*.py"):
        text = file.read_text()
        if engine / "kernel" not in file.parents:
            assert not re.search(r"^@(entry|kernel|called_kernel)", text, re.MULTILINE), f"{file.name} is compiled"
            continue
        for line in re.findall(r"^\s*(?:from|import) .*walltime.*$", text, re.MULTILINE):
            used = re.search(r"from walltime\.(engine\.kernel|engine\.machines|engine\.problem|compiled|ragged)\b[.\w]* import", line)
            assert used is not None, f"{file}: {line}: the folder's name must depend on all that compiled code depends on"


WITHOUT_PASS = """
from numba.core import typed_passes
del typed_passes.NopythonRewrites
"""
WITHOUT_OPTION = """
from numba.core.registry import cpu_target
for owner in cpu_target.options.__mro__:
    if "_nrt" in vars(owner):
        del owner._nrt
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "warning"),
    [(WITHOUT_PASS, "NopythonRewrites"), (WITHOUT_OPTION, "_nrt")],
    ids=["passes", "_nrt"],
)
def test_another_numba__gives_one_warning_and_the_same_numbers(change, warning, tmp_path):
    script = f"""{change}
import numpy as np
from walltime.compiled import cache, folder
from walltime.engine.interface import load
from walltime.engine.kernel.dynamics import EFFECT
from walltime.engine.kernel.memory import ITEM, JOB, NOTE, RUN, records
jobs, notes, found = records(JOB, 3), records(NOTE, 3), records(EFFECT, 3)
jobs.start, jobs.runtime, jobs.procs = [0, 10, 18], [10, 8, 3], 4
notes.job, notes.arrived, notes.head = [0, 1, 2], [1, 3, 3], -1
load.load("dynamics")(np.arange(3), jobs, 4, notes, records(ITEM, 3), records(RUN, 4), found)
assert cache.is_kept(load.ENTRIES["dynamics"].function, folder.cache_folder())
print(found.shortest.tolist(), sum(load.ENTRIES["dynamics"].function.dispatcher.stats.cache_hits.values()))
"""
    results = [run_script(script, WALLTIME_CACHE=str(tmp_path)) for _ in range(2)]
    for result in results:
        assert result.stderr.count("RuntimeWarning") == 1, result.stderr
        assert warning in result.stderr
    plain = run_script(script.removeprefix(change), WALLTIME_CACHE=str(tmp_path / "plain"))
    assert plain.stderr == ""
    assert plain.stdout.split("]")[0] == results[0].stdout.split("]")[0]
    assert results[1].stdout.split("]")[1].strip() == "1", "the second process reads what the first one compiled"
