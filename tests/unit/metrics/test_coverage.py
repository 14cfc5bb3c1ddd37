"""Every interval of the program is declared, has an experiment that measures it, and holds about what it says."""

from __future__ import annotations

import ast
import importlib.util
import json
from functools import lru_cache
from pathlib import Path

import pytest

from validation import coverage
from validation.coverage import Sizes, Trials, load
from walltime.cli.main import whole_command
from walltime.metrics.intervals import KINDS, SCOPES

SRC = Path(__file__).resolve().parents[3] / "src" / "walltime"
GENERATORS = SRC.parents[1] / "docs" / "generators"
EXPERIMENTS = load()
MADE_BY = {
    "replications.mean": ["simulation.replication.Replications.interval", "comparison.combination_means.compare_cells"],
    "replications.difference": [
        "simulation.replication.Replications.difference",
        "comparison.combination_means._difference",
    ],
    "replications.band": [
        "simulation.replication.Replications.band",
        "comparison.combination_means.compare_cells",
        "comparison.many_runs_page.draw_bands",
    ],
    "shaken.range": ["dialects.dialects._band"],
    "runs.percentiles": [
        "metrics.confidence.percentile_band",
        "papers.tsafrir06.sweep.Sweep.band",
        "papers.mualem01.experiment.chaos",
    ],
    "shaken.copy": [
        "simulation.spread.Spread.difference",
        "accuracy.advice_gains.simulate_advice",
        "accuracy.advice_gains.may_be_clear",
        "accuracy.advice_gains._Simulations.gain",
        "benchmark.predictions._Base._gain",
        "simulation.spread.Spread.scatter",
        "whatif.effects.differences",
    ],
    "weeks": [
        "metrics.weekly_interval.mean_over_weeks",
        "whatif.effects.differences",
        "metrics.weekly_interval.LogWeeks.ends",
    ],
    "weeks.logs": ["whatif.effects.differences"],
    "start-times": [
        "slurm.starts.start_times.start_times",
        "slurm.starts.trials.try_jobs",
        "slurm.starts.learned.simulated_starts",
    ],
    "suggestion.risk": [
        "estimates.suggestion.suggestion_from",
        "accuracy.advice._kind",
        "accuracy.advice._requests",
        "accuracy.requests._advice",
    ],
    "bootstrap": ["metrics.confidence.bootstrap"],
    "batch-means": ["schedule.schedule.Schedule.batch_means", "comparison.simulate_command.simulate"],
    "batch-means.published": ["papers.mualem01.models.run_model"],
    "benchmark.total": ["benchmark.result.totals", "benchmark.standings.leaderboard"],
    "benchmark.behind": ["benchmark.standings._behind"],
    "tuning.change": ["tuning.fitting.tune"],
    "learn.windows": ["learn.evaluation._compare"],
    "learn.seeds": ["learn.evaluation._compare"],
}
"""The functions that make the intervals of each kind, in `walltime`, as module and name."""
MAKERS = [
    "benchmark.standings.behind_best",
    "estimates.suggestion.share_at_most",
    "slurm.starts.start_times.start_quantiles",
    "metrics.batches.batch_means",
    "metrics.confidence.Interval",
    "metrics.confidence.Interval.around",
    "metrics.confidence.bootstrap",
    "metrics.confidence.ends_of_runs",
    "metrics.confidence.mean_interval",
    "metrics.confidence.paired_difference",
    "metrics.confidence.percentile_band",
    "metrics.confidence.prediction_interval",
    "metrics.confidence.range_of_runs",
    "metrics.series.series_interval",
    "metrics.series.stratified_interval",
    "simulation.windows.change_interval",
    "simulation.windows.in_percent",
    "papers.mualem01.models.published_batch_means",
    "metrics.weekly_interval.mean_over_weeks",
]
"""The functions that make intervals of whatever they are given; one that calls one of these makes the intervals of a kind."""


@lru_cache
def makers_called() -> set[str]:
    """The functions of the program that call one that makes intervals, or take the 5th and the 95th percentile, as module and name."""
    names_of_makers = {maker.rpartition(".")[2] for maker in MAKERS}
    makers = set()

    def visit(node: ast.AST, names: list[str]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = [*names, child.name] if isinstance(child, ast.FunctionDef | ast.ClassDef) else names
            if isinstance(child, ast.Call):
                called = child.func.id if isinstance(child.func, ast.Name) else getattr(child.func, "attr", "")
                if called in names_of_makers or "[5, 95]" in ast.unparse(child):
                    makers.add(".".join(name for name in names if name != "__init__"))
            visit(child, inside)

    for path in SRC.rglob("*.py"):
        text = path.read_text()
        if "[5, 95]" in text or any(f"{maker}(" in text for maker in names_of_makers):
            visit(ast.parse(text), list(path.relative_to(SRC).with_suffix("").parts))
    return makers


@pytest.mark.slow
def test_intervals__each_is_declared_where_it_is_made():
    assert list(MADE_BY) == list(KINDS)
    declared = {place for places in MADE_BY.values() for place in places}
    assert makers_called() - declared - set(MAKERS) == set(), "declare the interval in walltime.metrics.intervals, and its maker here"
    assert declared - makers_called() == set(), "declared, but no interval is made there"


def test_intervals__each_is_of_something_that_is_explained():
    assert {kind.of for kind in KINDS.values()} <= set(SCOPES)


def test_intervals__each_names_the_commands_that_print_it():
    known = set(command_names())
    for name, kind in KINDS.items():
        assert set(kind.commands) <= known, name


def command_names(command=None, path=()):
    """The names of all commands."""
    command = whole_command() if command is None else command
    for name, inside in getattr(command, "commands", {}).items():
        yield from command_names(inside, (*path, name)) if hasattr(inside, "commands") else [" ".join((*path, name))]


def test_intervals__each_has_an_experiment():
    assert {one.kind for one in EXPERIMENTS.values()} == set(KINDS)
    for one in EXPERIMENTS.values():
        assert one.of_what == KINDS[one.kind].of


def test_trials__count_what_is_held_and_what_is_withheld():
    trials = Trials("by hand")
    for truth in (0.0, 0.5, 1.0, 2.0):
        trials.add(0, 1, truth)
    trials.withhold("too few")
    found = trials.as_dict()
    assert (found["measured"], found["trials"], found["withheld"], found["why"]) == (0.75, 4, 1, ["too few"])
    assert trials.error == pytest.approx((0.7 * 0.3 / 4) ** 0.5)
    assert Trials("none").as_dict()["measured"] is None


def test_trials__those_of_a_group_are_one_observation():
    alone, together = Trials("alone"), Trials("together")
    for group in range(10):
        for _ in range(5):
            alone.add(0, 1, 3.0 * (group % 2))
            together.add(0, 1, 3.0 * (group % 2), group)
    assert together.measured == alone.measured == 0.5
    assert together.error == pytest.approx(5**0.5 * alone.error, rel=0.05)


def test_experiment__of_an_undeclared_interval_is_refused():
    with pytest.raises(ValueError, match="guesses"):
        coverage.experiment("guesses", "other seeds", "none")


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if one.quick])
def test_coverage__is_about_what_is_said(name):
    for trials in EXPERIMENTS[name].run(Sizes(quick=True)):
        if trials.meant and len(trials.held) >= coverage.FEW:
            assert abs(trials.measured - trials.nominal) <= 0.06 + 3 * trials.error, f"{trials.case}: {trials.measured:.2f}"


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if not one.quick])
def test_coverage__of_what_takes_longer(name):
    for trials in EXPERIMENTS[name].run(Sizes(quick=True)):
        if trials.meant and len(trials.held) >= coverage.FEW:
            assert trials.measured >= trials.nominal - 0.1 - 3 * trials.error, f"{trials.case}: {trials.measured:.2f}"


def test_tables__say_what_was_stored(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(GENERATORS))
    spec = importlib.util.spec_from_file_location("coverage_tables", GENERATORS / "coverage_tables.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    file = tmp_path / "coverage.json"
    assert tables.coverage("measured", file) == "*Not measured.*"
    given, withheld, other = Trials("given"), Trials("never"), Trials("another log", meant=False)
    for truth in range(10):
        given.add(0, 8, truth)
        other.add(0, 4, truth)
    withheld.withhold("a lasting queue")
    cases = [trials.as_dict() for trials in (given, withheld, other)]
    coverage.store(file, EXPERIMENTS["shaken.copy"], cases, EXPERIMENTS, quick=False)
    measured, apart = tables.coverage("measured", file), tables.coverage("apart", file)
    assert "| given | 90 | 90 ± 11 | 10 |  |" in measured
    assert "| never | 90 |  | 0 | 100 %: a lasting queue |" in measured
    assert "another log" not in measured
    assert "| another log | 90 | 50 ± 16 | 10 |  |" in apart
    assert "| one more shaken copy | shaken copies of this log | 90 | 90 | 2 | 9 % |" in tables.coverage("summary", file)
    assert all(f"| {tables.NAMES[name]} |" in tables.kinds() for name in KINDS)
    assert all(f"| **{of}** |" in tables.scopes() for of in SCOPES)


def test_store__keeps_experiments_that_are_not_run_or_not_known(tmp_path):
    file = tmp_path / "coverage.json"
    file.write_text(json.dumps({"of another branch": {"cases": []}, "learn.seeds": {"cases": [1]}}))
    coverage.store(file, EXPERIMENTS["shaken.copy"], [], EXPERIMENTS, quick=False)
    stored = json.loads(file.read_text())
    assert list(stored) == ["shaken.copy", "learn.seeds", "of another branch"]
    assert stored["learn.seeds"] == {"cases": [1]}


def test_stored__is_of_the_experiments_that_there_are():
    stored = json.loads((GENERATORS / "coverage.json").read_text())
    assert list(stored) == list(EXPERIMENTS), "run validation/coverage.py --only with the missing ones, and delete those that are gone"
    assert not any(found["quick"] for found in stored.values())


def test_stored__each_interval_holds_what_it_says():
    for name, found in json.loads((GENERATORS / "coverage.json").read_text()).items():
        for case in found["cases"]:
            if case["meant"] and case["trials"] >= coverage.FEW:
                assert case["measured"] + 2 * case["error"] >= case["nominal"] - 0.05, f"{name}, {case['case']}"


@pytest.mark.slow
def test_coverage_main__runs_what_is_named_and_not_what_begins_so(capsys, tmp_path):
    assert "learn.windows:streams" in EXPERIMENTS
    out = tmp_path / "coverage.json"
    assert coverage.main(["--only", "batch-means.published", "learn.se", "--quick", "--out", str(out)]) == 0
    assert list(json.loads(out.read_text())) == ["batch-means.published", "learn.seeds"]


def test_coverage_main__refuses_an_unknown_experiment(golden, capsys):
    assert coverage.main(["--only", "nothing"]) == 2
    golden("compare", capsys.readouterr().err)
