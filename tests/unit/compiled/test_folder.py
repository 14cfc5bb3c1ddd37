"""Folders of kernels that nobody uses are removed, and no other ones."""

import os
import shutil
import time
from pathlib import Path

from walltime.compiled import folder

DAY = 86_400


def made(root: Path, name: str, days: float, stamp: bool = True) -> Path:
    """A folder of kernels that was used last so many days ago."""
    place = root / f"kernels-{name}"
    (place / "number").mkdir(parents=True)
    (place / "number" / "loop.run.py311.1.nbc").write_bytes(b"x" * 1000)
    if stamp:
        (place / "used").touch()
    then = time.time() - days * DAY
    for path in (*place.rglob("*"), place):
        os.utime(path, (then, then))
    return place


def test_folders__are_removed_after_a_month_unused(tmp_path):
    current = made(tmp_path, "current", 2)
    stay = [made(tmp_path, "recent", 29), made(tmp_path, "unstamped", 29, stamp=False), tmp_path / "other"]
    gone = [
        made(tmp_path, "old", 31),
        made(tmp_path, "old-unstamped", 31, stamp=False),
        made(tmp_path, "x", 1).rename(tmp_path / ".removed-x"),
    ]
    stay[2].mkdir()
    os.utime(stay[2], (0, 0))
    folder._note_use(current)
    assert all(path.is_dir() for path in (current, *stay))
    assert not any(path.exists() for path in gone)
    assert time.time() - folder.last_use(current) < 60


def test_folder_in_use__stays_however_old_its_kernels_are(tmp_path):
    current, old = made(tmp_path, "current", 2), made(tmp_path, "old", 400)
    (old / "used").touch()
    folder._note_use(current)
    assert old.is_dir()


def test_stamp__is_touched_once_a_day(tmp_path):
    current, old = made(tmp_path, "current", 0.9), made(tmp_path, "old", 31)
    before = folder.last_use(current)
    folder._note_use(current)
    assert folder.last_use(current) == before
    assert old.is_dir(), "nothing is looked for either"


def test_folder__that_cannot_be_removed_stays(tmp_path, monkeypatch):
    current, old = made(tmp_path, "current", 2), made(tmp_path, "old", 31)

    def refuse(*_arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "rename", refuse)
    folder._note_use(current)
    assert old.is_dir()


def test_folder__that_another_process_removes_meanwhile_is_no_error(tmp_path):
    current, old = made(tmp_path, "current", 2), made(tmp_path, "old", 31)
    shutil.rmtree(old)
    assert not folder.remove(old)
    folder._note_use(current)
