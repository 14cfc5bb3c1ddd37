"""The files on which a user's Python file depends: modules that it imports, files that its classes declare, and files that it opens."""

import ast
import functools
import os
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from walltime.errors import PolicyError
from walltime.wording import printable

_CODE = (".py", ".pyc", ".so", ".nbi", ".nbc")
_OUTSIDE = ("/proc/", "/sys/", "/dev/", *{f"{sysconfig.get_path(kind)}/" for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
_of_module: dict[str, Path] = {}
"""The user's file to which each watched module belongs, by the module's name in tracebacks."""
_opened: dict[Path, set[Path]] = {}
"""The files opened by each user's file and its modules since the start of the process."""
_passed: set[Path] = set()
"""The logs that were given to users' readers; their checksums are known."""
_installing = threading.Lock()
_here = threading.local()


def watch(file: Path, modules: Iterable[Path]) -> None:
    """Record from now on which files a user's Python file, and the local modules that it imports, open for reading."""
    with _installing:
        if not _of_module:
            sys.addaudithook(_notice)
        _of_module.update({str(one): file for one in (file, *modules)})


def opened(file: Path) -> set[Path]:
    """Return the files that a user's Python file has opened in this process, even long ago: their content may be kept in memory."""
    return _opened.get(file.resolve(), set()) - _passed


def passed(log: Path) -> None:
    """Exclude this log from the opened files, because it is the input of a user's reader."""
    _passed.add(log.resolve())


def _notice(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a file that a watched module opens, directly or through a library."""
    if event != "open" or getattr(_here, "busy", False) or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    path, mode, flags = os.fsdecode(arguments[0]), arguments[1], arguments[2]
    if path.endswith(_CODE) or path.startswith(_OUTSIDE):
        return
    if any(letter in mode for letter in "wxa+") if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR):
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename not in _of_module:
        frame = frame.f_back
    if frame is None:
        return
    _here.busy = True
    try:
        whole = Path(path).resolve()
        if whole.is_file():
            _opened.setdefault(_of_module[frame.f_code.co_filename], set()).add(whole)
    finally:
        _here.busy = False


_INSTALLED = tuple(Path(folder) for folder in {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
_KNOWN = frozenset((*sys.stdlib_module_names, "walltime"))


def local_modules(file: Path) -> list[Path]:
    """Return the modules that a Python file imports, directly or not, without the installed ones; sorted, absolute.

    They are searched for in the file's folder and along `sys.path`.
    """
    file = file.resolve()
    found, ahead = {file}, [file]
    while ahead:
        for module in _imported(ahead.pop()):
            if module not in found:
                found.add(module)
                ahead.append(module)
    return sorted(found - {file})


def dependencies(file: Path) -> list[Path]:
    """Return the `local_modules` of a file, and the files that classes in it or in these declare, as in `files = ["model.json"]`.

    Declared files are relative to the folder of the Python file. Raises PolicyError for a missing one.
    """
    modules = local_modules(file)
    declared = [(module, module.parent / name) for module in (file.resolve(), *modules) for name in _declared(module, _modified(module))]
    for module, one in declared:
        if not one.is_file():
            raise PolicyError(f"{printable(module)}: a class declares the file {printable(one)}, which does not exist", "missing_file")
    return [*modules, *sorted({one.resolve() for _, one in declared})]


def undeclared(file: Path) -> list[str]:
    """Return a sentence for each file that a user's Python file has opened in this process and that no class of it declares."""
    known = set(dependencies(file))
    return [
        f"{printable(file.name)} opens {printable(one)}, which no class declares; declare it as in files = [{printable(one.name)!r}]"
        for one in sorted(opened(file) - known)
    ]


def is_local(part: Any) -> bool:
    """Return whether a class or function belongs to a local module, not to an installed one."""
    name = getattr(part, "__module__", None) or ""
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return name.partition(".")[0] not in _KNOWN and not any(Path(file).is_relative_to(folder) for folder in _INSTALLED)


def draws(file: Path, argument: str = "random") -> bool:
    """Return whether results depend on the seed, without running the file: `begin` of a class takes `rng`, or a function the argument."""
    return _draws(file, _modified(file), argument)


@functools.lru_cache(maxsize=256)
def _draws(file: Path, modified: int, argument: str) -> bool:
    found = (node for node in ast.walk(_tree(file, modified)) if isinstance(node, ast.FunctionDef))
    names = {(node.name == "begin", one.arg) for node in found for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    return not names.isdisjoint({(True, "rng"), (False, argument)})


def _modified(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else 0


@functools.lru_cache(maxsize=256)
def _tree(file: Path, _modified: int) -> ast.Module:
    """Return the syntax tree of a file; an empty one if it cannot be parsed, which is reported when it is loaded."""
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _imported(file: Path) -> Iterator[Path]:
    for node in ast.walk(_tree(file, _modified(file))):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield from _files_of(one.name, _folders(file))
        elif isinstance(node, ast.ImportFrom):
            folders = [file.parents[node.level - 1]] if node.level else _folders(file)
            for one in node.names:
                yield from _files_of(f"{node.module}.{one.name}" if node.module else one.name, folders)


def _folders(file: Path) -> list[Path]:
    folders = [file.parent, *(Path(name or ".").resolve() for name in sys.path)]
    return [folder for folder in folders if folder not in _INSTALLED]


def _files_of(name: str, folders: list[Path]) -> Iterator[Path]:
    """Yield the files of a module and of the packages that contain it; `name` may end with a name inside the module."""
    parts = name.split(".")
    if parts[0] in _KNOWN:
        return
    for folder in folders:
        places = [folder.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
        files = [one for place in places for one in (place / "__init__.py", place.with_suffix(".py")) if one.is_file()]
        if files:
            yield from (one.resolve() for one in files)
            return


@functools.lru_cache(maxsize=256)
def _declared(file: Path, modified: int) -> tuple[str, ...]:
    """Return the files that classes in a file declare; raises PolicyError unless they are lists of texts."""
    names: list[str] = []
    for node in ast.walk(_tree(file, modified)):
        for one in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(one, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "files" for target in one.targets):
                try:
                    value = ast.literal_eval(one.value)
                except ValueError:
                    value = None
                if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
                    remedy = 'write them as in files = ["model.json"]'
                    raise PolicyError(f"{file}:{one.lineno}: the files of a class must be a list of names; {remedy}", "wrong_type")
                names += value
    return tuple(names)
