"""The alerts and the dashboard: they name metrics that there are, and each alert fires on what the side-car writes when it should."""

import json
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from tests.adjust.fake import BEGIN, FakeSlurm, Job
from tests.adjust.test_fairness import lowering
from tests.adjust.test_rules import crowd, sidecar
from tests.adjust.test_unlucky import short_soon, until
from tests.cli import call
from walltime.slurm.client import CommandResult
from walltime.slurm.sidecar.metrics import COUNTERS, GAUGES, Metrics
from walltime.slurm.sidecar.settings import SidecarSettings

RULES = files("walltime.slurm.sidecar") / "alerts.yml"
DASHBOARD = files("walltime.slurm.sidecar") / "dashboard.json"
NAMES = {f"walltime_adjust_{name}" for name in (*GAUGES, "last_answer_seconds")} | {f"walltime_adjust_{name}_total" for name in COUNTERS}
NAMES |= {"walltime_adjust_least_seconds_left"}
ALERTS = re.findall(r"alert: (\w+)", RULES.read_text())


class Watched:
    """A side-car whose metrics are read every minute, as Prometheus would."""

    def __init__(self, cluster, one, folder):
        self.cluster, self.one, self.path = cluster, one, folder / "walltime.prom"
        self.metrics = Metrics(self.path, print)
        self.begin, self.samples = cluster.clock.now, []

    def go(self, minutes, works=lambda: True):
        for _ in range(minutes):
            if works():
                self.metrics.write(self.one.round(), self.one)
            lines = [line.split() for line in self.path.read_text().splitlines() if not line.startswith("#")]
            self.samples.append({name: float(value) for name, value in lines})
            self.cluster.advance(max(60 - (self.cluster.clock.now - self.begin) % 60, 1))

    def series(self):
        """What promtool takes; its time begins at 0."""
        for name in sorted({name for sample in self.samples for name in sample}):
            zero = self.begin if name in ("walltime_adjust_last_try_seconds", "walltime_adjust_last_answer_seconds") else 0
            yield name, " ".join(f"{sample[name] - zero:g}" if name in sample else "_" for sample in self.samples)


def refusing(cluster, what):
    """Its updates of this kind fail, but for the side-car's own jobs."""

    def runner(words, timeout):
        if words[1] == "update" and words[3].startswith(what) and cluster.jobs[words[2].partition("=")[2]].user != "sidecar":
            return CommandResult(1, "", "Unable to contact slurm controller (connect failure)")
        return cluster(words, timeout)

    return runner


def watch(name, tmp_path):
    """What leads to this alert."""
    cluster = crowd(soft=True)
    if name in ("Short", "Alarm", "LittleLeft"):
        cluster = short_soon()
    elif name == "NotActing":
        cluster = crowd(guard=False)
    elif name == "LateHead":
        jobs = [Job(1, "ann", 3, 2400, 40, BEGIN), Job(2, "ann", 4, 60, 60, BEGIN), Job(3, "zoe", 1, 20_000, 350, BEGIN + 900)]
        cluster = FakeSlurm(4, jobs)
        cluster.advance(60)
    elif name == "Quarantine":
        jobs = [Job(1, "ann", 3, 25_000, 420, BEGIN), Job(2, "ann", 4, 60, 60, BEGIN), Job(3, "mal", 1, 80_000, 600, BEGIN)]
        cluster = FakeSlurm(4, jobs, soft=True)
        cluster.advance(60)
    one, _ = sidecar(cluster, tmp_path)
    watched = Watched(cluster, one, tmp_path)
    if name == "Silent":
        watched.go(10)
        cluster.down_until = cluster.clock.now + 100_000
        watched.go(8)
    elif name == "Down":
        watched.go(10)
        watched.go(5, works=lambda: False)
    elif name in ("Short", "Alarm"):
        until(cluster, one, lambda: cluster.jobs.get("3") is not None and cluster.jobs["3"].time_min)
        one.slurm._runner = refusing(cluster, "TimeLimit")
        watched.begin = cluster.clock.now
        watched.go(8)
    elif name == "LittleLeft":
        until(cluster, one, lambda: cluster.jobs.get("3") is not None and cluster.jobs["3"].time_min)
        while cluster.jobs["3"].state == "PENDING":
            cluster.advance(10)
        cluster.advance(530)
        watched.begin = cluster.clock.now
        watched.go(3)
    elif name == "Untaken":
        watched.go(3)
        one.slurm._runner, one.stopped = refusing(cluster, "TimeMin"), lambda: True
        watched.go(15)
    elif name == "Failures":
        one.slurm._runner = refusing(cluster, "TimeMin")
        one.settings = SidecarSettings(share=1.0)
        watched.go(12)
    elif name == "LateHead":
        one.settings = SidecarSettings(share=1.0, slip=0.0, overdue=10, misses=1000)
        watched.go(125)
    elif name == "Quarantine":
        one.slurm._runner = lowering(cluster)
        watched.go(12)
    else:
        watched.go(40)
    one.ledger.close()
    return watched


def test_what_is_printed(capsys):
    assert call(capsys, "slurm", "adjust", "--print-alerts")[:2] == (0, RULES.read_text())
    assert call(capsys, "slurm", "adjust", "--print-dashboard")[:2] == (0, DASHBOARD.read_text())


def test_alerts_and_dashboard_name_metrics_that_there_are():
    dashboard = json.loads(DASHBOARD.read_text())
    assert len(ALERTS) == 10
    assert set(re.findall(r"walltime_adjust_\w+", RULES.read_text())) <= NAMES
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert {name for expression in asked for name in re.findall(r"walltime_adjust_\w+", expression)} <= NAMES
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.fixture(scope="module")
def promtool():
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not here; on Debian: apt-get install prometheus")
    return found


def test_the_rules_are_rules(promtool, tmp_path):
    (tmp_path / "alerts.yml").write_text(RULES.read_text())
    assert subprocess.run([promtool, "check", "rules", tmp_path / "alerts.yml"], capture_output=True).returncode == 0


@pytest.mark.parametrize("alert", [*ALERTS, "none"])
def test_each_alert_fires_on_what_the_sidecar_writes(promtool, tmp_path, alert):
    watched = watch(alert.removeprefix("WalltimeAdjust"), tmp_path)
    (tmp_path / "alerts.yml").write_text(RULES.read_text())
    chosen = "" if alert == "none" else f'alertname="{alert}",'
    expression = f'count(ALERTS{{{chosen}alertstate="firing"}}) >= 1'
    series = "\n".join(f"      - series: {name}\n        values: '{values}'" for name, values in watched.series())
    expected = "[]" if alert == "none" else "[{labels: '{}', value: 1}]"
    (tmp_path / "test.yml").write_text(
        f"rule_files: [alerts.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n{series}\n    promql_expr_test:\n"
        f"      - expr: '{expression}'\n        eval_time: {len(watched.samples) - 1}m\n        exp_samples: {expected}\n"
    )
    done = subprocess.run([promtool, "test", "rules", tmp_path / "test.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
