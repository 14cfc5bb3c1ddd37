"""tang13's trends, and EASY++, on logs that have users: what holds on each, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.traces import trace_folder, trace_path
from validation.paper_experiments.easypp import easypp
from walltime.metrics import paired_difference
from walltime.papers.printed import printed
from walltime.papers.results import Chart
from walltime.papers.study import Study
from walltime.papers.subjects import find_subjects
from walltime.papers.tang13.accuracy import STATISTICS, accuracy_of, class_shares, mean_accuracy
from walltime.papers.tang13.scheduling import gains, run_months
from walltime.papers.tang13.schemes import keys_of, replays

FILES = {
    "KTH": "KTH-SP2-1996-2",
    "CTC": "CTC-SP2-1996-3.1-cln.recon",
    "SDSC": "SDSC-SP2-1998-4.x-cln.recon",
    "Gaia": "UniLu-Gaia-2014-1",
    "Mira": "ALCF-Mira-2018",
}
LOGS = pytest.mark.parametrize("log", FILES)


def study(log: str, folder) -> Study:
    trace_path(FILES[log])
    subjects = find_subjects(printed("tang13"), only=[log], folders=[trace_folder()], made=folder)
    assert [subject.kind for subject in subjects] == ["other"]
    return Study(printed("tang13"), subjects, folder, quick=True)


@LOGS
def test_p4__adjusting_beats_the_users_and_lower_percentiles_are_more_accurate(log, tmp_path):
    s = study(log, tmp_path)
    w = s.subjects[0].workload
    key = keys_of(s.subjects[0])["triple"]
    exact = [mean_accuracy(replay) for replay in replays(s, s.subjects[0], key, STATISTICS)]
    assert min(exact) > accuracy_of(w).mean()
    assert (np.diff(exact[: STATISTICS.index("p70") + 1]) > -0.002).all()


@LOGS
def test_p4__the_triple_key_is_the_most_accurate_and_a_threshold_cuts_underestimates(log, tmp_path):
    s = study(log, tmp_path)
    subject = s.subjects[0]
    keys = keys_of(subject)
    at_p85 = {name: mean_accuracy(replays(s, subject, key, ["p85"])[0]) for name, key in keys.items()}
    assert at_p85["triple"] > at_p85["user"] - 0.01
    plain, bounded = (class_shares(replays(s, subject, keys["triple"], ["p85"], threshold=t)[0]) for t in (0.0, 0.5))
    assert bounded["UE"] + bounded["BE"] < plain["UE"] + plain["BE"]
    assert bounded["NA"] == plain["NA"]


@pytest.mark.parametrize("log", ["CTC", "SDSC", "Mira"])
def test_p4__selective_beats_regular_on_the_wait(log, tmp_path):
    s = study(log, tmp_path)
    found = run_months(s, s.subjects[0])
    for order in ("wfp", "fcfs"):
        regular, selective = (gains(found, order, mode, "p85")["wait"] for mode in ("regular", "selective"))
        assert selective > regular
        assert selective > 0


@pytest.mark.nightly
@pytest.mark.parametrize("log", ["KTH", "SDSC"])
def test_easypp__is_better_than_easy_and_perfect_predictions_are_the_bound(log, tmp_path):
    s = study(log, tmp_path)
    data = next(part.data for part in easypp.run(s) if isinstance(part, Chart))
    found = {
        name: np.array([v for n, v in zip(data["scheduler"], data["mean_bounded_slowdown"], strict=True) if n == name])
        for name in dict.fromkeys(data["scheduler"])
    }
    assert paired_difference(found["EASY++"], found["EASY"]).high < 0
    assert found["PERFECT++"].mean() == min(values.mean() for values in found.values())
