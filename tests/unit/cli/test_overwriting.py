"""No command replaces what it reads, whatever the options and however the file is spelled."""

import inspect
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from tests.cli import HEADER, call, one_line, record
from walltime.cli.main import commands
from walltime.cli.option_groups import flat

LOG = HEADER + "".join(record(k, 10 * k, 60, 2, 100) for k in range(1, 4))
NOT_WRITTEN = {("slurm commands", "out"), ("slurm cluster-command", "out"), ("slurm sacct-command", "out")}
"""A file into which the user redirects a command that is printed."""


def _leaves(made: typer.Typer | Callable[..., None], above: tuple[str, ...] = ()) -> Iterator[tuple[str, inspect.Signature]]:
    if not isinstance(made, typer.Typer):
        kept = [one for one in flat(made).__signature__.parameters.values() if getattr(one.annotation, "__metadata__", ())]
        yield made.__name__.replace("_", "-"), inspect.Signature(kept)
        return
    names = (*above, str(made.info.name))
    for info in made.registered_commands:
        kept = [one for one in info.callback.__signature__.parameters.values() if getattr(one.annotation, "__metadata__", ())]
        yield " ".join((*names, info.name or info.callback.__name__.replace("_", "-"))), inspect.Signature(kept)
    for group in made.registered_groups:
        yield from _leaves(group.typer_instance, names)


COMMANDS = dict(leaf for inside in commands().values() for made in inside for leaf in _leaves(made))


def _info(parameter: inspect.Parameter) -> ParameterInfo:
    return next(one for one in parameter.annotation.__metadata__ if isinstance(one, ParameterInfo))


def _is_path(parameter: inspect.Parameter) -> bool:
    kind = next(iter(typing.get_args(parameter.annotation)), None)
    return kind is Path or Path in typing.get_args(kind) or any(Path in typing.get_args(one) for one in typing.get_args(kind))


def _writes(parameter: inspect.Parameter) -> bool:
    return getattr(_info(parameter).callback, "writes", False)


def _spelling(parameter: inspect.Parameter) -> str | None:
    """The option; None for an argument."""
    info = _info(parameter)
    if isinstance(info, ArgumentInfo):
        return None
    return next(text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str))


def _endings(parameter: inspect.Parameter) -> str:
    """An ending that the option takes."""
    callback = inspect.getclosurevars(_info(parameter).callback).nonlocals if _info(parameter).callback else {}
    return callback.get("endings", (".pdf",))[0]


def _words(signature: inspect.Signature, chosen: dict[str, object]) -> list[object]:
    """A call with these values, and something for everything else that it needs: arguments as they are declared, then options."""
    arguments: list[object] = []
    options: list[object] = []
    for parameter in signature.parameters.values():
        if parameter.name in chosen or parameter.default is inspect.Parameter.empty:
            value = chosen.get(parameter.name, "other.swf" if _is_path(parameter) else "1")
            spelled = _spelling(parameter)
            arguments += [value] if spelled is None else []
            options += [] if spelled is None else [spelled, value]
    return [*arguments, *options]


PAIRS = [
    (name, read.name, written.name)
    for name, signature in COMMANDS.items()
    for read in signature.parameters.values()
    if _is_path(read) and not _writes(read)
    for written in signature.parameters.values()
    if _writes(written)
]


def test_pairs__are_of_all_commands():
    assert len(COMMANDS) > 40
    assert {name for name, *_ in PAIRS} >= {"simulate", "clean", "convert", "slurm start-times", "campaign report", "benchmark predictions"}


def test_outputs__are_declared_as_such():
    for name, signature in COMMANDS.items():
        for parameter in signature.parameters.values():
            text = (_info(parameter).help or "") if isinstance(_info(parameter), OptionInfo | ArgumentInfo) else ""
            says = text.startswith(("Write ", "Draw ", "Keep what")) and "tables only" not in text
            named = parameter.name in ("out", "report", "figure", "tables", "timeline", "store", "metrics", "letters", "page")
            is_file = _is_path(parameter) or "FILE" in str(_info(parameter).metavar or "")
            is_switch = bool in typing.get_args(parameter.annotation)
            if (says or named) and is_file and not is_switch and (name, parameter.name) not in NOT_WRITTEN:
                assert _writes(parameter), f"--{parameter.name} of {name} writes a file, and is not declared so"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "read", "written"), PAIRS)
def test_output__that_is_an_input_is_refused(name, read, written, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    signature = COMMANDS[name]
    writes = signature.parameters[written]
    file = Path(f"x{_endings(writes)}")
    file.write_text(LOG)
    Path("other.swf").write_text(LOG)
    Path("hard" + file.suffix).hardlink_to(file)
    Path("soft" + file.suffix).symlink_to(file)
    is_figure = "NAME=FILE" in str(_info(writes).metavar)
    for spelling in (file, Path("soft" + file.suffix), Path("hard" + file.suffix), tmp_path / file, Path("..") / tmp_path.name / file):
        words = _words(signature, {read: file, written: f"wait={spelling}" if is_figure else spelling})
        status, out, err = call(capsys, *name.split(), *words)
        assert status == 2, (words, err)
        assert "would replace the input" in one_line(status, out, err)
        assert (file.read_text(), len(list(tmp_path.iterdir()))) == (LOG, 4)


@pytest.fixture
def log(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("x.swf").write_text(LOG)
    return Path("x.swf")


def _refused(capsys, *words: object) -> None:
    assert "input" in one_line(*call(capsys, *words))


@pytest.mark.slow
def test_output__that_is_an_input_which_another_file_names(log, capsys):
    Path("held.csv").write_text("job_id,held\n1,5\n")
    Path("m.toml").write_text(
        'policy = "easy"\neligible = "held.csv"\n[[pool]]\nname = "a"\nnodes = 4\nprocs = 1\n[[partition]]\nname = "1"\npools = ["a"]\n'
    )
    Path("waits.swf").write_text(LOG.replace(" -1 60 ", " 5 60 "))
    _refused(capsys, "calibrate", "waits.swf", "--machine", "m.toml", "--hindsight", "--trim", "none", "--tables", "held.csv")
    assert Path("held.csv").read_text().startswith("job_id,held")
    assert call(capsys, "simulate", log, "--out", "s.csv")[0] == 0
    Path("made.csv").write_text("job_id,predicted\n1,5\n2,5\n3,5\n")
    _refused(capsys, "simulate", log, "--policy", "easy:predictor=file:made.csv", "--out", "made.csv")
    Path("log.csv").write_text("job_id,submit,start,end,procs\n1,0,5,50,2\n2,10,60,90,1\n")
    Path("plan.toml").write_text('[fixed]\ntrace = "log.csv"\nprocs = 4\n')
    assert call(capsys, "campaign", "run", "plan.toml")[0] == 0
    before = Path("log.csv").read_bytes()
    _refused(capsys, "campaign", "report", "plan.toml", "--out", "log.csv")
    assert Path("log.csv").read_bytes() == before
    Path("own.py").write_text("def widest(procs):\n    return procs\n")
    Path("tables.json").symlink_to("own.py")
    _refused(capsys, "simulate", log, "--order", "own.py:widest", "--tables", "tables.json")


def test_output__in_a_folder_of_parts_that_is_an_input(log, capsys):
    Path("parts").mkdir()
    for name, job in (("1.csv", 1), ("2.csv", 2)):
        Path("parts", name).write_text(f"job_id,submit,start,end,procs\n{job},0,1,5,2\n")
    before = Path("parts/1.csv").read_bytes()
    _refused(capsys, "convert", "parts", "parts/1.csv")
    _refused(capsys, "simulate", "parts", "--procs", 4, "--out", "parts/2.csv")
    assert Path("parts/1.csv").read_bytes() == before
    assert call(capsys, "convert", "parts", "whole.csv")[0] == 0


def test_outputs__of_one_call_are_different_files(log, capsys):
    Path("b.pdf").symlink_to("a.pdf")
    error = one_line(*call(capsys, "simulate", log, "--figure", "wait=a.pdf", "--figure", "slowdown=b.pdf"))
    assert "--figure twice" in error
    assert "--out and --tables" in one_line(*call(capsys, "simulate", log, "--out", "t.csv", "--tables", "./t.csv"))
    assert not Path("a.pdf").exists()


def test_output__may_replace_what_is_not_read(log, capsys):
    Path("y.csv").write_text("old")
    assert call(capsys, "simulate", log, "--out", "y.csv")[0] == 0
    assert Path("y.csv").read_text() != "old"


def test_whole_file__replaces_an_input_in_python(log):
    import walltime as wt

    workload = wt.read("x.swf")
    wt.logs.write_swf("x.swf", workload)
    assert len(wt.read("x.swf")) == 3


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    ("name", "option", "ending"),
    [
        ("simulate", "--out", "csv"),
        ("simulate", "--out", "parquet"),
        ("simulate", "--tables", "json"),
        ("simulate", "--report", "html"),
        ("simulate", "--figure", "pdf"),
        ("info", "--tables", "md"),
        ("convert", "--out", "swf"),
        ("compare", "--out", "csv"),
    ],
)
def test_output__where_nothing_can_be_made_is_one_line(log, capsys, name, option, ending):
    value = f"wait=/proc/x.{ending}" if option == "--figure" else f"/proc/x.{ending}"
    error = one_line(*call(capsys, name, log, option, value))
    assert f"/proc/x.{ending}: cannot be written" in error
    assert "no folder" not in error
