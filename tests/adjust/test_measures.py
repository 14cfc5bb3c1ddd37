"""Why a dry run leaves jobs alone, by partition, and the options that would change it."""

import shlex
from dataclasses import replace

import numpy as np
import pytest

from tests.adjust.fake import BEGIN, FakeSlurm, Job
from tests.adjust.test_rules import queued
from walltime.predictors.registry import parse_predictor
from walltime.slurm.client import Client
from walltime.slurm.commands.adjust import PREDICTOR, _dry_sentences
from walltime.slurm.sidecar.advice import Advice
from walltime.slurm.sidecar.host import Host
from walltime.slurm.sidecar.measures import measures
from walltime.slurm.sidecar.round import Sidecar
from walltime.slurm.sidecar.selection import time_min_of
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.workload import Origin, Workload

TANG = parse_predictor(PREDICTOR)
SETTINGS = SidecarSettings()


def advice(used, requests, predictor=TANG, ago=1):
    """What was learned of 20 jobs of each user on as many days ago, whose runtimes are these parts of the requests, s."""
    count = 20
    requested = np.repeat(requests, count)
    runtime = np.concatenate([np.full(count, int(part * request)) for part, request in zip(used, requests, strict=True)])
    submit = np.full(len(requested), BEGIN - ago * 86400)
    jobs = Workload.from_arrays(
        submit=submit - submit[0], runtime=runtime, requested=requested, procs=np.ones(len(requested), int), machine_procs=4,
        columns={"wait": np.ones(len(requested), int), "user": np.repeat(np.arange(1, 1 + len(requests)), count)},
        origin=Origin("log", unix_start_time=int(submit[0]), names={"user": ("ann", "bob", "cy")}),
    )  # fmt: skip
    return Advice(predictor, jobs)


def test_dry_run__tells_nothing_to_gain_from_too_little_known():
    """ann's jobs use 95 % of their hour, bob's 30 %; the log has no job of cy."""
    learned = advice([0.95, 0.3], [3600, 3600])
    jobs = [Job(1, "ann", 4, 5000, 120, BEGIN)]
    jobs += [Job(k, user, 4, 1200, 60, BEGIN) for k, user in enumerate(("ann", "ann", "bob", "cy"), 2)]
    cluster = FakeSlurm(4, jobs)
    cluster.advance(60)
    car = Sidecar(Client(cluster), learned.predict, SETTINGS, Host(cluster.clock, "sidecar", print))
    report = car.round()
    assert (list(report.wanted), report.unadjusted) == (["4"], {"2": pytest.approx(0.95), "3": pytest.approx(0.95), "5": None})
    assert report.left["2"] != report.left["5"]
    told = list(_dry_sentences(report, car.waiting(), learned, TANG, SETTINGS, cluster.clock.now))
    assert told[0] == (
        "partition main: 1 of 4 jobs would be adjusted; 2 have nothing to gain (their predicted runtimes are 95 % of the limits); "
        "too little is known about 1 (the log has fewer than 10 similar jobs)"
    )
    assert told[1].startswith("--gain 1 would adjust 2 of these 3 jobs")


@pytest.mark.parametrize(
    ("used", "asked", "ago", "limit", "option"),
    [(0.95, 3600, 1, 60, "--gain 1"), (0.3, 3600, 120, 60, "window=all"), (0.3, 7200, 1, 60, "key=user"), (0.3, 540, 1, 9, "--floor 3")],
)
def test_measures__run_and_do_what_they_say(used, asked, ago, limit, option):
    learned = advice([used], [asked], ago=ago)
    job = replace(queued(), limit=limit)
    now = float(BEGIN)

    def adjusts(predict, settings):
        return time_min_of(predict(job, now), limit, settings) is not None

    assert not adjusts(learned.predict, SETTINGS)
    found = measures([job], learned, TANG, SETTINGS, now)
    [one] = [one for one in found if option in one.option]
    assert one.jobs == 1
    name, value = shlex.split(one.option)
    if name == "--predictor":
        assert adjusts(advice([used], [asked], parse_predictor(value), ago).predict, SETTINGS)
    else:
        settings = replace(SETTINGS, **{name.removeprefix("--"): type(getattr(SETTINGS, name.removeprefix("--")))(value)})
        assert adjusts(learned.predict, settings)


def test_measures__none_for_users_without_jobs():
    assert measures([replace(queued(), user="cy")], advice([0.5], [3600]), TANG, SETTINGS, float(BEGIN)) == []
