"""The forms of each kind of value in Slurm's records."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from tests.profiles import examples
from tests.slurm_forms import day_clock, iso
from walltime.logs.batch_systems import NO_LIMIT
from walltime.logs.slurm import fields

TIMES = st.integers(10**9, 2 * 10**9)


def texts(*values):
    return pl.Series("", values, pl.String)


@examples(100)
@given(st.integers(0, 400 * 86_400), st.sampled_from(("", ".123", ".9")))
def test_elapsed__of_any_form_is_the_same(seconds, fraction):
    days, rest = divmod(seconds, 86_400)
    forms = [day_clock(seconds) + fraction, str(seconds), f"{seconds}.0", f"{days} days {day_clock(rest)}{fraction}"]
    values, bad = fields.elapsed(texts(*forms))
    assert (values.tolist(), bad.any()) == ([seconds] * len(forms), False)


@examples(100)
@given(st.integers(1, 10**6))
def test_limit__in_minutes_and_as_a_time(minutes):
    values, bad = fields.limits(texts(day_clock(60 * minutes), str(minutes), f"{minutes}.0"))
    assert (values.tolist(), bad.any()) == ([60 * minutes] * 3, False)


def test_limit__in_words():
    words = ("UNLIMITED", "INFINITE", "UNLIM+", "4294967295", "Partition_Limit", "Partition+", "NOT_SET", "", "Unknown", "0", "-5", "soon")
    values, bad = fields.limits(texts(*words))
    assert values.tolist() == [NO_LIMIT] * 4 + [-1] * 8
    assert bad.tolist() == [False] * 10 + [True] * 2


@examples(100)
@given(TIMES, st.integers(-14 * 4, 14 * 4), st.sampled_from(("T", " ")), st.sampled_from(("", ".5", ".123456")))
def test_time__with_an_offset_is_exact(seconds, quarters, between, fraction):
    sign, size = "-" if quarters < 0 else "+", abs(quarters)
    local = iso(seconds + quarters * 900, between) + fraction
    forms = [f"{local}{sign}{size // 4:02}{colon}{size % 4 * 15:02}" for colon in ("", ":")]
    forms += [iso(seconds, between) + fraction + "Z", str(seconds), f"{seconds}.0"]
    local_times, bad, was_local = fields.times(texts(*forms), "Europe/Stockholm")
    assert (local_times.first.tolist(), bad.any(), was_local.any()) == ([seconds] * len(forms), False, False)


def test_time__that_did_not_happen_is_unknown():
    forms = ("", "Unknown", "None", "N/A", "0", "1970-01-01T00:00:00", "1970-01-01 01:00:00+0100")
    local, bad, _ = fields.times(texts(*forms), None)
    assert (local.first.tolist(), bad.any()) == ([-1] * len(forms), False)


@pytest.mark.parametrize(
    ("text", "processors", "nodes", "mb"),
    [
        *(("4Gn", 8, 2, 8192), ("4000Mc", 8, 2, 32_000), ("16G", 8, 2, 16_384), ("0", 8, 2, -1), ("0n", 8, 2, -1), ("?", 8, 2, -1)),
        *(("", 8, 2, -1), ("2147486648Mn", 8, 1, 24_000), ("62.50G", 1, 1, 64_000), ("1.5T", 1, 1, 1.5 * 2**20), ("512000Kc", 2, 1, 1000)),
    ],
)
def test_requested_memory(text, processors, nodes, mb):
    values, bad = fields.requested_memory(texts(text), np.array([processors]), np.array([nodes]))
    assert (values.tolist(), bad.any()) == ([mb], False)


UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


@examples(100)
@given(st.integers(1, 4000), st.sampled_from(list(UNITS)))
def test_memory__of_any_unit(number, unit):
    mb = number * UNITS[unit]
    found = [fields.memory(texts(f"billing=4,cpu=4,mem={number}{unit},node=1"))[0], fields.sizes(texts(f"{number}{unit}"))[0][0]]
    assert found == pytest.approx([mb, mb])
    assert fields.memory(texts(f"cpu=4,mem={number}"))[0] == number  # MB in old records
    assert fields.sizes(texts(str(number * 2**20)))[0][0] == number  # bytes with --noconvert


@examples(100)
@given(
    st.dictionaries(st.sampled_from(("a100", "rtx_2080_ti", "a100_1g.5gb", "h100-sxm", "4090", "v100")), st.integers(1, 64)),
    st.booleans(),
    st.permutations(("billing=12", "cpu=4", "mem=8G", "node=1", "gres/gpumem=4G", "gres/gpuutil=80")),
)
def test_gpus__are_counted_once(types, with_total, others):
    total = sum(types.values())
    parts = [
        *others[:3],
        *([f"gres/gpu={total}"] if with_total and types else []),
        *(f"gres/gpu:{t}={n}" for t, n in types.items()),
        *others[3:],
    ]
    numbers, names = fields.gpus(texts(",".join(parts)))
    assert numbers.tolist() == [total if types else -1]
    [name] = names.to_list()
    assert name == (next(iter(types)) if len(types) == 1 else "+".join(f"{t}:{n}" for t, n in sorted(types.items())))


def test_gpus__of_old_and_odd_records():
    rows = ("gpu:2", "gpu:a100:2", "gpu", "gres:gpu:a100:2", "craynetwork:1", "", "gpu:0", "cpu=4,gres/gpu=0", "gpu:a100:2,gpu:v100:1")
    numbers, names = fields.gpus(texts(*rows))
    assert numbers.tolist() == [2, 2, 1, 2, -1, -1, 0, 0, 3]
    assert names.to_list() == ["", "a100", "", "a100", "", "", "", "", "a100:2+v100:1"]


def test_resources__by_number_have_names():
    assert fields.named(texts("1=4,2=4096,4=2,1001=8", "cpu=4", "")).to_list() == ["cpu=4,mem=4096,node=2,gres/gpu=8", "cpu=4", ""]


def test_wholes__abbreviated():
    values, bad = fields.wholes(texts("1.25K", "70K", "2M", "12", "12.0", "", "4X", "-1"))
    assert values.tolist()[:6] == [1280, 71_680, 2 * 2**20, 12, 12, -1]
    assert bad.tolist() == [False] * 6 + [True] * 2


def test_energies__without_a_measurement_are_unknown():
    assert fields.energies(texts("1250", "1.25M", "0", "18446744073709551614", ""))[0].tolist() == [1250, 1_250_000, -1, -1, -1]


@pytest.mark.parametrize(("letters", "state"), [*fields.SHORT.items(), ("EXPEDITING", "EXPEDITING"), ("RECONFIG_FAIL", "RECONFIG_FAIL")])
def test_state__in_full_and_by_its_letters(letters, state):
    assert [fields.state_word(text) for text in (state, letters)] == [state, state]
    status, words, bad = fields.states(texts(state, "", "no state"))
    assert (status.tolist()[0], words.to_list()[0], bad.tolist()) == (fields.STATES[state], state, [False, False, True])
