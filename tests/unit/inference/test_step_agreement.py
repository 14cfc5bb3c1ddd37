"""One-step agreement in a sentence."""

import numpy as np

import walltime as wt
from walltime.inference.step_agreement import record_note
from walltime.machine import Machine
from walltime.simulation.specification import parse_scheduler

FOUR = Machine.one_pool(4, "four", "easy")


def recorded(waits):
    """Four jobs of 10 s: the second fits beside the first; the third, and last the fourth, when these have ended."""
    return wt.Workload.from_arrays(
        submit=[0, 1, 2, 3], runtime=[10, 10, 10, 10], procs=[2, 2, 4, 1], machine_procs=4, columns={"wait": np.array(waits)}
    )


def test_record_note__of_what_easy_does_is_all(golden):
    golden("infer", record_note(recorded([0, 0, 9, 18]), FOUR, parse_scheduler("easy")))


def test_record_note__names_the_blockers(golden):
    said = record_note(recorded([0, 0, 19, 8]), FOUR, parse_scheduler("easy"))  # the fourth starts before the third, which it delays
    golden("infer", said)


def test_record_note__says_why_it_is_not_known():
    log = recorded([0, 0, 9, 18])
    assert "policy without predictions" in record_note(log, FOUR, parse_scheduler("easy:predictor=tsafrir07"))


def test_record_note__has_both_shares_where_jobs_start_late(golden):
    said = record_note(recorded([0, 400, 1400, 2418]), FOUR, parse_scheduler("easy"))
    # The fourth is wished for twice: beside the second, and at last.
    golden("infer", said)
