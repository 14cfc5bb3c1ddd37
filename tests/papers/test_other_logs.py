"""EASY on every log at hand, against an independent prototype's mean response (s) and mean bounded slowdown."""

import csv
import math
from pathlib import Path

import pytest

import walltime as wt
from tests.traces import trace_path
from walltime.accuracy.requests import judge_requests
from walltime.wording import human_percent

# All jobs, kill mode, batch mode, the users' estimates; a reconstruction lacks the real overruns.
EASY = {
    "CTC-SP2-1996-3.1-cln.recon": (512, 12_497, 4.50),
    "SDSC-SP2-1998-4.recon": (128, 23_930, 84.1),
    "SDSC-SP2-1998-4.x-cln.recon": (128, 27_924, 87.8),
    "SDSC-BLUE-2000-4.x-cln.recon": (1152, 12_087, 37.4),
    "UniLu-Gaia-2014-1": (2004, 14_540, 1.6),
    "ALCF-Mira-2018": (49_152, 54_916, 43.9),
    "ALCF-Theta-2022-23": (4392, 19_888, 28.5),
}


@pytest.mark.parametrize("log", EASY)
def test_easy__agrees_with_the_prototype(log):
    procs, response, slowdown = EASY[log]
    summary = wt.simulate(wt.read(trace_path(log), procs=procs), wt.Easy()).summary()
    assert round(summary.mean_response) == response
    assert summary.mean_bounded_slowdown == pytest.approx(slowdown, abs=0.06)


def test_cm5__runs_whole_with_exact_estimates_and_is_cut_at_the_field_9_of_its_log():
    """Field 9 of this log is no runtime limit: a third of the jobs ran longer. The prototype cut them there.

    mualem01 took the runtimes as estimates and killed nobody; that is what exact estimates do, and it keeps the load.
    """
    jobs = wt.read(trace_path("LANL-CM5-1994-4.1-cln"))
    cut = wt.simulate(jobs.with_estimates(wt.estimates.ExactEstimates(limit="user")), wt.Easy()).summary()
    assert (round(cut.mean_response), round(cut.mean_bounded_slowdown, 1)) == (3207, 15.7)
    whole = wt.simulate(jobs.with_estimates(wt.estimates.ExactEstimates()), wt.Easy()).summary()
    assert whole.utilization == pytest.approx(jobs.offered_load, rel=0.01)
    assert whole.mean_response > 2 * cut.mean_response


@pytest.mark.slow
@pytest.mark.parametrize("log", ["LANL-CM5-1994-4.1-cln", "UniLu-Gaia-2014-1"])
def test_suggested_memory__is_what_the_docs_show(log):
    with Path("docs/generators/measured/suggested-memory.csv").open(encoding="utf-8", newline="") as file:
        shown = [row[1:] for row in csv.reader(file) if log.startswith(row[0])]

    def text(middle, low, high):
        interval = "" if math.isnan(low) else f" ({human_percent(low).removesuffix(' %')} to {human_percent(high).removesuffix(' %')})"
        return human_percent(middle) + interval

    found = [one for one in judge_requests(wt.read(trace_path(log))) if one.resource == "memory"]
    assert shown == [
        [
            "requests" if math.isnan(one.risk) else "suggestions",
            f"{one.jobs:,}",
            text(one.under, one.under_low, one.under_high),
            text(one.over, one.over_low, one.over_high),
        ]
        for one in found
    ]
