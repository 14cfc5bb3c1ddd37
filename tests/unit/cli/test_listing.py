"""`walltime list`: the names and options that the registries have, and the one line for a misspelt name."""

import json

import pytest

from tests.cli import HEADER, call, one_line, record
from walltime.cli.completion import registry_of
from walltime.cli.listing import TAKEN_BY
from walltime.logs.catalogue import CATALOGUE
from walltime.metrics import FURTHER
from walltime.metrics.summary import averages

NAMES = {kind: list(registry_of(option)) for kind, option in TAKEN_BY.items()}
NAMES |= {
    "metrics": [*averages(), *FURTHER],
    "trims": ["none", "tsafrir06", "steady", "after:7", "last:0.3"],
    "logs": [one.name for one in CATALOGUE],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", NAMES)
def test_list__has_all_names_of_the_registry_with_a_meaning(capsys, kind):
    status, out, _ = call(capsys, "list", kind, "--json")
    listed = json.loads(out)["names"]
    assert status == 0
    assert [one["name"] for one in listed] == NAMES[kind]
    assert all(one["about"] for one in listed)
    for name in NAMES[kind]:
        assert name in call(capsys, "list", kind)[1]
        assert call(capsys, "list", kind, name)[0] == 0


def test_list__shows_the_options_of_a_name(capsys):
    options = {one["name"]: one for one in json.loads(call(capsys, "list", "policies", "easy", "--json")[1])["options"]}
    assert options["order"]["default"] == "fcfs"
    assert options["backfill-order"]["default"] == "none"
    assert options["shadow"]["value"] == "one of always, kept, once"
    assert "backfill-order" in call(capsys, "list", "policies", "easy")[1]
    column = json.loads(call(capsys, "list", "predictors", "column", "--json")[1])["options"]
    assert column[0]["default"] is None
    assert "required" in call(capsys, "list", "predictors", "column")[1]
    assert "cobalt" in json.loads(call(capsys, "list", "predictors", "tang13", "--json")[1])["presets"]


def test_list__suggests_a_name_for_a_misspelt_one(capsys):
    status, out, err = call(capsys, "list", "policies", "esay")
    assert status == 2
    line = one_line(status, out, err)
    assert "Did you mean 'easy'? Valid names: fcfs, easy, conservative" in line
    assert "Did you mean" not in one_line(*call(capsys, "list", "logs", "zzzz"))
    assert call(capsys, "list", "policy")[0] == 2


def test_coincident__is_another_spelling_of_simultaneous(capsys, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(HEADER + record(1, 0, 10, 4, 10) + record(2, 0, 10, 4, 10))
    old, new = (
        json.loads(call(capsys, "simulate", log, option, "sequential", "--policy", "fcfs", "--json")[1])
        for option in ("--coincident", "--simultaneous")
    )
    assert old["coincident"] == new["coincident"] == "sequential"


def test_list__without_a_kind_lists_the_kinds_and_what_takes_their_names(capsys):
    status, out, _ = call(capsys, "list", "--json")
    kinds = {one["kind"]: one["taken_by"] for one in json.loads(out)["kinds"]}
    assert (status, len(kinds), kinds["policies"], kinds["metrics"]) == (0, 10, "--policy", "--metric")


def test_list__prints_names_without_the_marks_of_markdown(capsys):
    assert "`" not in call(capsys, "list", "policies")[1]
