"""Round after round: the end, the metrics, the units."""

from tests.adjust.test_rules import crowd, sidecar
from walltime.adjust.loop import Metrics, describe, keep_on
from walltime.adjust.units import service


def play(cluster, one, rounds, **options):
    """So many rounds, then the end."""
    reports, ended = [], []
    one.stopped = lambda: bool(ended)

    def done(report):
        reports.append(report)
        if len(reports) == rounds:
            ended.append(1)

    keep_on(one, 30.0, lambda: bool(ended), cluster.advance, done, **options)
    return reports


def test_the_end_takes_everything_back(tmp_path):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)
    reports = play(cluster, one, rounds=3)
    assert reports[0].set_now == 6
    assert [report.taken_back for report in reports] == [0, 0, 0, 6, 0]
    assert all(job.time_min == 0 for job in cluster.waiting())
    assert one.watched == []
    assert not any("ended with" in text for text in said)
    one.ledger.close()


def test_an_end_without_an_answer_says_what_is_left(tmp_path):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)
    one.round()
    cluster.down_until = cluster.clock.now + 10_000
    play(cluster, one, rounds=1)
    assert any("ended with 6 jobs" in text for text in said)
    one.ledger.close()


def test_metrics(tmp_path):
    cluster = crowd(soft=True)
    one, said = sidecar(cluster, tmp_path)
    metrics = Metrics(tmp_path / "walltime.prom", said.append)
    for _ in range(2):
        metrics.write(one.round(), one)
    lines = (tmp_path / "walltime.prom").read_text().splitlines()
    values = dict(line.removeprefix("walltime_adjust_").split() for line in lines if not line.startswith("#"))
    assert values["waiting_jobs"] == values["adjusted_jobs"] == values["set_total"] == "6"
    assert values["acting"] == "1"
    assert values["wanted_jobs"] == "0"
    assert len([line for line in lines if line.startswith("# TYPE")]) == len(values)
    missing = Metrics(tmp_path / "missing" / "walltime.prom", said.append)
    missing.write(one.round(), one)
    assert "missing" in missing.wrong
    one.ledger.close()


def test_a_round_in_a_line():
    report = sidecar(crowd(soft=True))[0].round()
    assert describe(report) == "soft limit (dry run): 6 waiting, 0 adjusted"


def test_units_keep_words_whole():
    unit = service(["/opt/w", "slurm", "adjust", "--account", "a b", '--x="$y"%'], "walltime")
    assert 'ExecStart=/opt/w slurm adjust --account "a b" "--x=\\"$$y\\"%%"' in unit
