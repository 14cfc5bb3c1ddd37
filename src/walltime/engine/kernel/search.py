"""Binary search in sorted arrays."""

from walltime.compiled.jit import kernel


@kernel
def first_from(values, first, end, least):
    """Return the first index in [first, end) at which the sorted values are at least this value; `end` if there is none."""
    while first < end:
        middle = (first + end) // 2
        if values[middle] < least:
            first = middle + 1
        else:
            end = middle
    return first
