"""The second give-back on a real Slurm without soft limits: slurmctld's prolog raises what backfill has shortened, without the side-car."""

from __future__ import annotations

import signal
from getpass import getuser

import pytest

from tests.slurm.beside import KINDS, Adjuster, block, shown
from tests.slurm.conftest import started
from tests.slurm.lab import Lab, wait_until
from walltime.slurm.sidecar import installed_text
from walltime.slurm.sidecar.prolog import script

SPOOL = "adjust-spool"
WITH = pytest.mark.parametrize("lab", [True], indirect=True, scope="module", ids=["prolog"])
WITHOUT = pytest.mark.parametrize("lab", [False], indirect=True, scope="module", ids=["no prolog"])
KILLED_AFTER_THE_CHANGE = """
import os, signal
from walltime.slurm.client import Client
usual = Client.set_time_min
def killed(self, key, minutes):
    usual(self, key, minutes)
    if "walltime-self-test" not in self.output("squeue", "-h", "-j", key, "-o%j"):
        os.kill(os.getpid(), signal.{signal})
Client.set_time_min = killed
"""


def put(lab: Lab, with_prolog: bool) -> None:
    (lab.folder / "job_submit.lua").write_text(installed_text("job_submit.lua"))
    (lab.folder / SPOOL).mkdir(mode=0o755)
    lab.run("sacctmgr", "-iQ", "add", "account", "bio")
    lab.run("sacctmgr", "-iQ", "add", "user", getuser(), "account=bio")
    if with_prolog:
        with pytest.MonkeyPatch.context() as patch:  # as an administrator of this cluster would print it
            patch.setenv("SLURM_CONF", str(lab.folder / "slurm.conf"))
            patch.setenv("PATH", lab.environment["PATH"])
            (lab.folder / "prolog.sh").write_text(script(lab.folder / SPOOL))
        (lab.folder / "prolog.sh").chmod(0o755)
        with (lab.folder / "slurm.conf").open("a") as conf:
            conf.write(f"PrologSlurmctld={lab.folder}/prolog.sh\n")


@pytest.fixture(scope="module")
def lab(request):
    with started(settings={"JobSubmitPlugins": "lua"}, before=lambda lab: put(lab, request.param)) as lab:
        yield lab


@pytest.fixture
def adjusters(lab):
    running: list[Adjuster] = []
    yield running
    for one in running:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)
    wait_until("the queue", lambda: lab.run("scancel", f"--user={getuser()}") == "", 10)
    wait_until("the end of all jobs", lambda: not lab.run("squeue", "--noheader"), 60)
    for file in (lab.folder / SPOOL).iterdir():
        file.unlink()


def start(lab: Lab, folder, adjusters, *options, **more) -> Adjuster:
    one = Adjuster(lab, folder, "--act", f"--spool={lab.folder / SPOOL}", *options, **more)
    adjusters.append(one)
    return one


@pytest.mark.slurm
@WITH
@pytest.mark.parametrize("how", [pytest.param("SIGSTOP", marks=pytest.mark.nightly), "SIGKILL"])
def test_the_prolog_raises_the_limit_without_the_side_car(lab, tmp_path, adjusters, how):
    one = start(lab, tmp_path, adjusters, pause=KILLED_AFTER_THE_CHANGE.format(signal=how))
    wait_until("both self-tests", lambda: one.says("self-test: passed") and one.says("the prolog works"), 120)
    b = block(lab)
    g = lab.submit("-JG", f"-t{KINDS['G']}", "-n1", wrap="sleep 85")  # longer than its TimeMin of a minute
    wait_until("G", lambda: shown(lab, g, "JobState") == "RUNNING", 60)
    assert shown(lab, b, "JobState") == "PENDING"
    assert shown(lab, g, "TimeMin") == "00:01:00"
    # the side-car was ended before it could see that the user's limit was still the one it knew: then it is the partition's longest
    wait_until("the limit of G", lambda: shown(lab, g, "TimeLimit") == "1-00:00:00", 30)
    assert not [line for line in one.out.read_text().splitlines() if "its limit" in line]
    wait_until("the end of G", lambda: shown(lab, g, "JobState") not in ("RUNNING", "COMPLETING"), 120)
    assert shown(lab, g, "JobState") == "COMPLETED"


@pytest.mark.slurm
@WITHOUT
def test_a_missing_prolog_is_noticed(lab, tmp_path, adjusters):
    one = start(lab, tmp_path, adjusters)
    wait_until("the self-tests", lambda: one.says("slurm.conf has no PrologSlurmctld") and one.says("give-back mode without the prolog"), 120)
    block(lab)
    f = lab.submit("-JF", f"-t{KINDS['F']}", "-N2", "--exclusive", wrap="sleep 1")
    wait_until("TimeMin", lambda: shown(lab, f, "TimeMin") == "00:01:00", 60)  # it goes on without
    one.end()


@pytest.mark.slurm
@WITHOUT
def test_a_missing_prolog_keeps_from_adjusting_where_it_is_needed(lab, tmp_path, adjusters):
    with (lab.folder / "slurm.conf").open("a") as conf:
        conf.write("PrologSlurmctld=/bin/true\n")
    lab.run("scontrol", "reconfigure")  # then it is shown, and not run before slurmctld is restarted
    one = start(lab, tmp_path, adjusters, "--need-prolog")
    block(lab)
    f = lab.submit("-JF", f"-t{KINDS['F']}", "-N2", "--exclusive", wrap="sleep 1")
    wait_until("the self-tests", lambda: one.says("give-back (prolog missing: PrologSlurmctld=/bin/true raised no limit"), 120)
    assert shown(lab, f, "TimeMin") == "N/A"
    one.end()
