"""The folder of compiled kernels never gives a stale answer, and need not be writable."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

import walltime
from walltime.engine import jit

# One running job until 10; the second needs the whole machine; the third would end at 10 exactly, so EASY starts it at 2.
SCRIPT = """
import json, walltime as wt
from walltime.engine import jit
from walltime.engine.run import kernel_is_cached
cached = kernel_is_cached()
jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 3, 8], procs=[2, 4, 2], machine_procs=4)
start = wt.simulate(jobs, wt.Easy()).start.tolist()
from walltime.engine.loop import run
compiled, loaded = (sum(count.values()) for count in (run.stats.cache_misses, run.stats.cache_hits))
found = {"start": start, "package": wt.__file__, "cached": cached, "compiled": compiled, "loaded": loaded}
print(json.dumps(found | {"folder": str(jit.cache_folder()), "hash": jit.source_hash()}))
"""
BEFORE, AFTER = "<= state[SHADOW] - state[NOW]", "< state[SHADOW] - state[NOW]"


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """A folder with a copy of the package, whose sources may be edited."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(Path(walltime.__file__).parent, folder / "walltime", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cold(copied, cache) -> list[dict]:
    """What two processes found that started at once with an empty cache; compiling takes long, so it is done once for all tests."""
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


def test_cache_folder__carries_the_hash_of_the_sources():
    assert jit.cache_folder().name == f"kernels-{jit.source_hash()}"
    assert len(jit.source_hash()) == 16
    assert int(jit.source_hash(), 16) >= 0


def test_cache_root__is_walltimes_own_then_xdgs_then_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("WALLTIME_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert jit.cache_root() == tmp_path / "own"
    monkeypatch.delenv("WALLTIME_CACHE")
    assert jit.cache_root() == tmp_path / "xdg" / "walltime"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jit.cache_root() == tmp_path / "home" / ".cache" / "walltime"


def test_cache__is_filled_by_two_processes_at_once(copied, cache, cold):
    for found in cold:
        assert (found["start"], found["cached"], found["compiled"], found["loaded"]) == ([0, 10, 2], False, 1, 0)
    assert cold[0] == cold[1]
    # Neither has spoilt what the other wrote: the next process compiles nothing.
    third = fresh_process(copied, WALLTIME_CACHE=str(cache))
    assert third == cold[0] | {"cached": True, "compiled": 0, "loaded": 1}
    # No half-written file is left behind.
    assert {file.suffix for file in cache.rglob("*") if file.is_file()} == {".nbc", ".nbi"}


def test_cache__is_used_by_the_next_process_and_not_after_an_edit(copied, cache, cold):
    first = cold[0]
    assert (first["start"], first["cached"]) == ([0, 10, 2], False)
    assert Path(first["folder"]) == cache / f"kernels-{first['hash']}"
    compiled = {file: file.stat().st_mtime_ns for file in cache.rglob("*.nbc")}
    assert compiled

    second = fresh_process(copied, WALLTIME_CACHE=str(cache))
    assert (second["start"], second["cached"], second["hash"]) == ([0, 10, 2], True, first["hash"])
    assert {file: file.stat().st_mtime_ns for file in cache.rglob("*.nbc")} == compiled

    # A condition in a helper: a job must end before the shadow time. Numba would not notice, as loop.py stays as it is.
    helper = copied / "walltime" / "engine" / "backfill.py"
    text, stat = helper.read_text(), helper.stat()
    assert text.count(BEFORE) == 1
    helper.write_text(text.replace(BEFORE, AFTER))
    try:
        edited = fresh_process(copied, WALLTIME_CACHE=str(cache))
    finally:
        helper.write_text(text)
        os.utime(helper, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (edited["start"], edited["cached"]) == ([0, 10, 13], False)
    assert edited["hash"] != first["hash"]
    assert Path(edited["folder"]).parent == cache

    # And back again: the first folder is still good.
    third = fresh_process(copied, WALLTIME_CACHE=str(cache))
    assert (third["start"], third["cached"], third["hash"]) == ([0, 10, 2], True, first["hash"])


def test_cache__that_cannot_be_written_is_replaced_by_a_temporary_folder(copied, cache, tmp_path):
    # A file stands where the folder should be; root could write to any folder. The temporary folder is the cache of the test
    # above by another name, so that nothing is compiled twice.
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / f"walltime-{os.getuid()}").symlink_to(cache)
    result = fresh_process(copied, WALLTIME_CACHE=str(in_the_way), TMPDIR=str(temporary))
    assert result["start"] == [0, 10, 2]
    assert Path(result["folder"]) == temporary / f"walltime-{os.getuid()}" / f"kernels-{result['hash']}"
    assert in_the_way.read_text() == "not a folder"


def test_source_hash__depends_on_every_file_of_the_engine(copied):
    script = "from walltime.engine import jit; print(jit.source_hash())"

    def hash_now() -> str:
        environment = os.environ | {"PYTHONPATH": str(copied), "NUMBA_DISABLE_JIT": "1"}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.strip()

    known = {hash_now()}
    for name in ("queue.py", "memory.py", "jit.py"):
        file = copied / "walltime" / "engine" / name
        text = file.read_text()
        file.write_text(text + "\n# edited\n")
        try:
            known.add(hash_now())
        finally:
            file.write_text(text)
    assert len(known) == 4
    assert hash_now() in known
