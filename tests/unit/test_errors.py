"""Errors: every code is a short noun phrase, survives pickling, and passes through an error that adds a place."""

import ast
import pickle
import re
from pathlib import Path

import pytest

import walltime as wt
from walltime.errors import LogError, OutputError


def test_codes__are_short_words():
    codes = {
        call.args[1].value
        for file in Path(wt.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Error") and len(call.args) == 2
        if isinstance(call.args[1], ast.Constant) and not ast.unparse(call.args[0]).isdigit()  # not the number of an OSError
    }
    assert "unknown_partition" in codes
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(_[a-z]+){0,4}", code)] == []


@pytest.mark.parametrize("kind", [LogError, OutputError])
def test_code__is_kept_by_pickle_and_by_an_error_that_adds_a_place(kind):
    one = pickle.loads(pickle.dumps(kind("the text", "the_code")))
    assert (str(one), one.code) == ("the text", "the_code")
    placed = wt.PolicyError(f"here: {one}")
    placed.__cause__ = one
    assert placed.code == "the_code"
    assert wt.PolicyError("no code").code == ""
