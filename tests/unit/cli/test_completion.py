"""Completion in a shell: names, options and words of specifications, as bash asks for them."""

import pytest

from walltime.cli.completion import COMPLETED, answer_bash
from walltime.cli.main import run, whole_command

BREAKS = ":="


def split(line):
    """The words of a line as bash has them: colons and equals signs stand alone."""
    for sign in BREAKS:
        line = line.replace(sign, f" {sign} ")
    return line.split() + ([""] if line.endswith(" ") and line.rstrip()[-1] not in BREAKS else [])


@pytest.fixture
def typed(monkeypatch, capsys):
    def answers(line):
        words = split(line)
        monkeypatch.setenv("_WALLTIME_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        assert answer_bash(run) == 0
        out, err = capsys.readouterr()
        assert not err
        return out.split()

    return answers


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("walltime simulate LOG --policy cons", ["conservative", "conservative-scratch"]),
        ("walltime simulate LOG --policy easy", ["easy", "easy++"]),
        ("walltime simulate LOG --policy=easy:backfill-order=s", ["sjf", "sqf", "saf"]),
        ("walltime compare LOG --policy fcfs --policy easy:predictions-for=sel", ["selective"]),
        ("walltime simulate LOG --policy easy:shadow=kept,ends=", ["by", "before"]),
        ("walltime simulate LOG --order sjf:", ["starvation=", "max-wait-share="]),
        ("walltime simulate LOG --backfill-order l", ["lcfs", "ljf", "lqf", "laf", "lxf", "linear"]),
        ("walltime simulate LOG --predictor tsafrir07:rec", ["recompute=", "recompute=no", "recompute=yes"]),
        ("walltime simulate LOG --correction double:un", ["uncapped"]),
        ("walltime generate lub", ["lublin99", "lublin99-typeless"]),
        ("walltime generate lublin99 --estimates mu", ["mualem01"]),
        ("walltime dialects LOG --dialect papers:sh", ["shadow=", "shadow=always", "shadow=kept", "shadow=once"]),
        ("walltime simulate LOG --by size", ["size", "size-length"]),
        ("walltime what-if LOG --change po", ["policy=", "pool."]),
        ("walltime what-if LOG --change SchedulerParameters+=bf_max_job_t", ["bf_max_job_test="]),
        ("walltime what-if LOG --change policy=easy:backf", ["backfill-order="]),
        ("walltime simulate LOG --figure g", ["gantt="]),
        ("walltime explain LOG --job 3 --figure g", []),  # a file
        ("walltime paper run m", ["mualem01"]),
        ("walltime paper list feit", ["feitelson98"]),
        ("walltime fetch KTH", ["KTH-SP2"]),
        ("walltime fetch f-d", ["f-data"]),
        ("walltime simulate LOG --policy own.py:My", []),
        ("walltime simulate myl", []),  # the shell completes names of files
        ("walltime simulate LOG --mapping ", []),
        ("walltime simulate LOG --mapping lass", ["lassen"]),
        ("walltime compare LOG --metric gini", ["gini_wait", "gini_users"]),
        ("walltime campaign report PLAN --metric mean_bounded_slowdown_", ["mean_bounded_slowdown_p1"]),
        ("walltime simulate LOG --trim ", ["none", "tsafrir06", "steady", "after:", "last:"]),
        ("walltime simulate LOG --time-zone Europe/Sto", ["Europe/Stockholm"]),
        ("walltime compare LOG --size ie", ["ieee-column", "ieee-page"]),
        ("walltime tune LOG --optimiser ", ["cma", "random"]),
        ("walltime learn train LOG --reward wa", ["wait"]),
        ("walltime campaign report PLAN --pivot back", ["backfill_order"]),
        ("walltime benchmark run over", ["overload"]),
        ("walltime cite feit", ["feitelson98"]),
        ("walltime paper run mualem01 --item F", ["F1"]),
        ("walltime paper run mualem01 --subject K", ["KTH"]),
        ("walltime paper run nobody --item ", []),
        ("walltime list policies easy", ["easy"]),
        ("walltime list logs KTH", ["KTH-SP2", "KTH-SP2-raw"]),
        ("walltime list nothing ", []),
        ("walltime tune LOG --score ", ["linear", "power"]),
        ("walltime tune LOG --where b", ["backfill-order"]),
        ("walltime predict LOG --ends ", ["auto", "log", "easy"]),
        ("walltime learn train LOG --warm-up ea", ["easy"]),
    ],
)
def test_completion__names_options_and_words(typed, line, answers):
    found = typed(line)
    assert found[: len(answers)] == answers
    assert bool(found) == bool(answers)


def test_completion__every_option_with_names(typed):
    for option in COMPLETED:
        command = {
            "--change": "what-if LOG --change",
            "--ends": "predict LOG --ends",
            "--item": "paper run mualem01 --item",
            "--mapping": "simulate LOG --mapping f",
            "--schedule-mapping": "audit LOG SCHEDULE --schedule-mapping f",
            "--metric": "compare LOG --metric",
            "--optimiser": "tune LOG --optimiser",
            "--pivot": "campaign report PLAN --pivot",
            "--score": "tune LOG --score",
            "--subject": "paper run mualem01 --subject",
            "--warm-up": "learn train LOG --warm-up",
            "--where": "tune LOG --where",
            "--reward": "learn train LOG --reward",
            "SUITE": "benchmark run",
            "cite": "cite",
            "MODEL": "generate",
            "NAME=FILE": "simulate LOG --figure",
            "PAPER": "paper run",
            "fetch": "fetch",
            "list": "list policies",
            "schema": "schema",
        }.get(option, f"simulate LOG {option}")
        assert typed(f"walltime {command}{'' if command.endswith(' f') else ' '}"), option


UNNAMED = {
    "names in the log or on the machine": "--account --executable --group --job --partition --user --schedule-name --remove",
    "times, durations and numbers": "--interval --since --until --time --window --slurm-version",
    "files, keys and addresses": "--anonymise --dask --endpoint --log --out FILE LOG TABLE",
    "lists and texts": "--baseline --features --mail-command --self-test --try",
}
"""Options and arguments that take texts without a list of names."""


def test_completion__no_option_with_names_is_forgotten():
    texts, completed = set(), set()

    def visit(command):
        for inside in getattr(command, "commands", {}).values():
            visit(inside)
        for one in command.params:
            kind = str(one.type_descriptor.annotation)
            name = one.opts[0] if one.opts[0].startswith("--") else one.metavar
            if one._custom_shell_complete is not None:
                completed.add(name)
            elif "str" in kind and "Literal" not in kind:
                texts.add(name)

    visit(whole_command())
    assert texts == {name for names in UNNAMED.values() for name in names.split()}
    assert {name for name in COMPLETED if name.startswith("--")} <= completed
