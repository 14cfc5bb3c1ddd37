"""gaussier15 reproduced: single triples against the published metrics, to nine digits; interruption and resumption."""

import numpy as np
import pytest

from tests.profiles import scaled
from tests.published.test_schedules import LOGS
from tests.traces import published_folder, published_path, trace_path
from walltime.papers.gaussier15 import E_LOSS, EASY, EASY_PP, MEASURES, deterministic, measure, published_metrics, triples
from walltime.papers.items import items_of
from walltime.papers.printed import printed
from walltime.papers.run import run_paper
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.simulation.run import counted_simulations
from walltime.simulation.specification import Scheduler

SAMPLE = scaled(60)
"""Learned triples that are simulated for a log."""


def subject(name: str, monkeypatch) -> Subject:
    """A log of the paper, with its published metrics."""
    published_path(f"sc15/{name}.metrics.csv.gz")
    monkeypatch.setenv("WALLTIME_PUBLISHED", str(published_folder()))
    return Subject(name, "paper", trace_path(LOGS[name]), "the paper's input", printed("gaussier15").logs[name])


def test_triples__are_the_published_ones(monkeypatch):
    all_of_them = triples()
    assert len(all_of_them) == 5774
    assert len({triple.label for triple in all_of_them}) == 5774
    assert {triple.key for triple in deterministic()} == {triple.key for triple in all_of_them if not triple.is_learned}
    assert {EASY, EASY_PP, E_LOSS} <= set(triples(quick=True)) <= set(all_of_them)
    assert Scheduler.of("easy++").label == EASY_PP.label
    published = published_metrics(subject("KTH-SP2", monkeypatch))
    assert set(published) <= {triple.key for triple in all_of_them}
    assert len(published) == 5766  # of 5,775 one is empty, and eight were measured on a part of the jobs


@pytest.mark.nightly
@pytest.mark.parametrize("log", LOGS)
def test_a_sample_of_triples__equals_the_published_metrics(log, monkeypatch, tmp_path):
    chosen_log = subject(log, monkeypatch)
    published = published_metrics(chosen_log)
    known = [triple for triple in triples() if triple.is_learned and triple.key in published]
    places = np.random.default_rng(15).choice(len(known), SAMPLE, replace=False)
    chosen = [E_LOSS, *(known[place] for place in places)]
    study = Study(printed("gaussier15"), [chosen_log], tmp_path, workers=1)
    away = []
    for triple, ours in zip(chosen, measure(study, chosen_log, chosen), strict=True):
        away.append(max(abs(ours[name] / theirs - 1) for name, theirs in published[triple.key].items()))
    away = np.array(away)
    assert away[0] <= 1e-9
    assert np.mean(away <= 1e-9) >= 0.5, away
    assert set(ours) >= set(MEASURES)


class PressedControlCError(Exception):
    """Somebody presses Ctrl-C."""


def test_run__goes_on_after_an_interruption(monkeypatch, tmp_path):
    log = subject("KTH-SP2", monkeypatch)
    chosen = triples(quick=True)[:6]
    seen: list[int] = []

    def interrupt(what: str, done: int, total: int) -> None:
        seen.append(done)
        if done >= 3:
            raise PressedControlCError

    with pytest.raises(PressedControlCError):
        measure(Study(printed("gaussier15"), [log], tmp_path, workers=1, progress=interrupt), log, chosen)
    seen.clear()
    study = Study(printed("gaussier15"), [log], tmp_path, workers=1, progress=lambda what, done, total: seen.append(done))
    with counted_simulations() as simulated:
        found = measure(study, log, chosen)
    assert seen[0] >= 3
    assert seen[-1] == len(chosen) == len(found)
    assert sum(simulated) == (len(chosen) - seen[0]) * 28481


@pytest.mark.nightly
def test_quick_run__reproduces_every_published_number(monkeypatch, tmp_path):
    done = run_paper("gaussier15", items_of("gaussier15"), [subject("KTH-SP2", monkeypatch)], tmp_path, quick=True, workers=1)
    values = [value for result in done.results for value in result.values() if value.verdict]
    assert len(values) > 60
    assert {value.verdict for value in values} == {"reproduced"}
    assert "within 5 %" in done.page.read_text()
