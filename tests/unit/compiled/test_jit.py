"""How kernels are compiled."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from walltime.compiled.indices import KernelCompiler


def read(numbers, place):
    return numbers[place]


def read_cell(numbers, row, column):
    return numbers[row, column]


def write(numbers, place, value):
    numbers[place] = value


def kernel(function):
    """The function compiled as a kernel is, and with checked bounds."""
    return numba.njit(boundscheck=True, pipeline_class=KernelCompiler)(function)


@pytest.mark.slow
def test_index__counts_from_zero():
    numbers = np.arange(6)
    kernel(write)(numbers, 2, 9)
    assert kernel(read)(numbers, 2) == numbers[2] == 9
    assert kernel(read_cell)(numbers.reshape(2, 3), 1, 2) == 5


@pytest.mark.slow
def test_negative_index__is_an_error_and_not_the_last_place():
    with pytest.raises(IndexError):
        kernel(read)(np.arange(3), -1)
    with pytest.raises(IndexError):
        kernel(read_cell)(np.zeros((2, 2)), 0, -1)
    with pytest.raises(IndexError):
        kernel(write)(np.arange(3), -1, 0)


def test_negative_index__counts_from_the_end_in_functions_of_users():
    assert numba.njit(read)(np.arange(3), -1) == 2
