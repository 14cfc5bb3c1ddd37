"""The grammar of specifications, over every family: what is written is read again, and every fault is one line that says what is known."""

import random
import string
from dataclasses import MISSING
from typing import get_args, get_origin

import pytest
from hypothesis import assume, given, strategies as st

import walltime.campaign.executors  # its family, as those below
import walltime.estimates.registry
import walltime.policy.dialect
import walltime.policy.registry
import walltime.predictors.prediction
import walltime.schedule.groups
import walltime.workload.models
from tests.errors import raises
from walltime.declared import alternatives, unwrapped
from walltime.errors import PolicyError
from walltime.simulation.specification import parse_scheduler
from walltime.specification import FAMILIES, complete, describe_value

NAMES = [(family.title, name) for family in FAMILIES.values() for name in family.variants]
BY_TITLE = {family.title: family for family in FAMILIES.values()}


def values_of(kind, key, draw):
    """A value of a type, that its Key allows."""
    inner, own = unwrapped(kind)
    key = own if own.known else key
    if inner in FAMILIES:
        return FAMILIES[inner].parse(
            draw(st.sampled_from([name for name in FAMILIES[inner].variants if not fault_of(FAMILIES[inner], name)]))
        )
    if key.known:
        return draw(st.sampled_from(key.known))
    if inner is bool:
        return draw(st.booleans())
    least = next((end for end in (key.least, key.above) if end is not None), -1000)
    most = next((end for end in (key.most, key.below) if end is not None), 1000)
    if inner is int:
        return draw(st.integers(int(least), max(int(most), int(least) + 1)))
    if inner is float:
        return draw(st.floats(least, max(most, least), exclude_min=key.above is not None, exclude_max=key.below is not None))
    if get_origin(inner) is tuple:
        args = get_args(inner)
        count = draw(st.integers(1, 3)) if args[-1] is ... else len(args)
        return tuple(values_of(args[0], key, draw) for _ in range(count))
    return draw(st.text(string.ascii_lowercase, min_size=1, max_size=5))


def said(thing):
    """A thing without what goes without saying, such as an order of backfilling that is that of the queue."""
    return type(thing), {one.field: getattr(thing, one.field) for one in thing.differing().values()}


def needed(variant):
    return [key for key, one in variant.keys.items() if one.default is MISSING]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("title", "name"), NAMES)
@given(data=st.data())
def test_specifications__are_read_as_they_are_written(title, name, data):
    family = BY_TITLE[title]
    variant = family.variants[name]
    options = data.draw(st.sets(st.sampled_from(sorted(variant.keys)))) if variant.keys else set()
    values = {}
    for key in {*options, *needed(variant)}:
        one = variant.keys[key]
        values[one.field] = values_of(data.draw(st.sampled_from(alternatives(one.kind))), one.key, data.draw)
        assume(str(values[one.field]).lower() != "none" or values[one.field] is None)  # the word says that there is none
    try:
        thing = family.build(name, variant, values)
    except PolicyError:  # options that exclude each other
        return
    assert said(family.parse(str(thing))) == said(thing)
    assert str(family.parse(str(thing))) == str(thing)
    assert family.parse(thing) is thing


@pytest.mark.parametrize(("title", "name"), NAMES)
def test_specifications__every_option_has_a_text_and_says_what_it_takes(title, name):
    from walltime.declared import meaning_of

    variant = BY_TITLE[title].variants[name]
    for key, one in variant.keys.items():
        assert meaning_of(variant.loaded, one), f"{key} of {name} has no text"
        assert describe_value(one)


@pytest.mark.parametrize("title", list(BY_TITLE))
def test_specifications__misspelled_names_are_told_the_nearest(title):
    family = BY_TITLE[title]
    for name in family.variants:
        if len(name) > 3:
            with raises(PolicyError, "unknown_name", title):
                family.parse(name + "x")


@pytest.mark.parametrize(("title", "name"), NAMES)
def test_specifications__misspelled_options_are_told_the_known_ones(title, name):
    variant = BY_TITLE[title].variants[name]
    with raises(PolicyError, "unknown_option", title, "'nonesuch'") as error:
        BY_TITLE[title].parse(f"{name}:nonesuch=1")
    for key in variant.keys:
        assert key in str(error.value)
        if len(key) > 3:
            with raises(PolicyError, "unknown_option"):
                BY_TITLE[title].parse(f"{name}:{key}x=1")


@pytest.mark.parametrize("title", list(BY_TITLE))
def test_specifications__nonsense_is_one_line(title):
    drawn = random.Random(7)
    for _ in range(300):
        text = drawn.choice(list(BY_TITLE[title].variants)) + "".join(drawn.choices(":,=/x.-1a ", k=8))
        assert "\n" not in fault_of(BY_TITLE[title], text), text


def fault_of(family, text):
    """The message about a text, empty if there is none."""
    try:
        family.parse(text)
    except PolicyError as error:
        return str(error)
    return ""


def test_completion__names_then_options_then_words():
    estimates = BY_TITLE["estimates"]
    assert complete(estimates, "m") == ["mualem01"]
    assert complete(estimates, "tsafrir05:emax=64800,sh") == ["tsafrir05:emax=64800,share=", "tsafrir05:emax=64800,share=none"]
    assert complete(estimates, "tsafrir05:modes-rule=") == ["tsafrir05:modes-rule=linear", "tsafrir05:modes-rule=power"]
    assert complete(estimates, "nobody:") == []
    assert complete(estimates, "f:4,limit=user,") == ["f:4,limit=user,deterministic=", "f:4,limit=user,truncated="]
    assert complete(BY_TITLE["correction"], "double:") == ["double:uncapped", "double:capped="]


def test_commas_within_parentheses__are_part_of_a_value():
    text = "easy:order=expr:min(wait,max(planned,60))-procs,max-wait-share=0.5"
    policy = walltime.policy.registry.parse_policy(text)
    assert policy.label == text
    assert policy.order.max_wait_share == 0.5


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("easy:predictor=last,believe=selective", "easy:predictor=last,predictions-for=selective"),
        ("easy:predictor=last,history=log", "easy:predictor=last,learn-from=log"),
        (
            "easy:order=linear:log-believed=2,predictor=last,believe=100",
            "easy:order=linear:log-planned=2,predictor=last,predictions-for=100",
        ),
        ("fcfs:order=power:wait=1,believed=-1,limit=0.4", "fcfs:order=power:wait=1,planned=-1,max-wait-share=0.4"),
        ("fcfs:order=expr:wait/believed", "fcfs:order=expr:wait/planned"),
    ],
)
def test_former_names__are_still_read(former, present):
    assert parse_scheduler(former).label == present
    assert parse_scheduler(present) == parse_scheduler(former)
