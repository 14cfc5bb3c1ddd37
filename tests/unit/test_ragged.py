"""Lists of numbers in two arrays."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from walltime.ragged import Ragged

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=6)


@given(LISTS, LISTS)
def test_ragged__is_the_lists_that_it_was_made_of(lists, others):
    ragged = Ragged.of(lists)
    assert list(ragged) == lists
    assert ragged == lists
    assert [ragged[k] for k in range(-len(lists), len(lists))] == lists * 2
    assert ragged[1:] == lists[1:]
    assert ragged.take(np.arange(len(lists))[::-1]) == lists[::-1]
    assert Ragged.of_pairs(len(lists), ragged.places, ragged.items) == lists
    more = [*others, *lists][: len(lists)]
    assert ragged.concat(Ragged.of(more), 10) == [[*a, *(10 + item for item in b)] for a, b in zip(lists, more, strict=True)]


def test_ragged__has_no_list_beyond_its_end():
    assert list(Ragged.empty(2)) == [[], []]
    with pytest.raises(IndexError, match="2"):
        Ragged.empty(2)[2]
