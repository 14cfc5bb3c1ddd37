"""The same fifty jobs in every form in which a site may have Slurm's records give the same workload."""

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests import slurm_forms
from tests.cli import call
from tests.profiles import PROFILE
from tests.slurm_forms import FORMS, gpus_of, of_parser, records
from walltime.logs import read_log

COLUMNS = (
    *("wait", "status", "gpus", "mem_mb", "nodes", "array_job", "array_task", "priority", "exit_code", "requested_nodes"),
    *("requested_gpus", "requested_mem_mb", "requested_procs"),
)
NAMED = ("user", "group", "queue", "partition", "executable", "state", "gpu_type", "requested_gpu_type", "node_list", "constraints")
UNCERTAIN = dict.fromkeys(("sacct -P", "sacct -p"), ("executable", "constraints"))
"""Columns of texts that contain the separator of the form."""


@functools.cache
def expected(folder):
    FORMS["sacct -P with seconds since 1970"](folder / "jobs", records())
    return read_log(folder / "jobs").to_workload(procs=64)


def names(workload, column):
    return [workload.origin.name_of(column, number) if number > 0 else None for number in workload.columns[column].tolist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("forms")


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_form__gives_the_same_workload(form, folder, tmp_path):
    whole = expected(folder)
    FORMS[form](tmp_path / "log", records())
    found = read_log(tmp_path / "log").to_workload(procs=64)
    for name in ("job_id", "submit", "runtime", "requested", "procs"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name
    for name in COLUMNS:
        assert np.array_equal(found.columns[name], whole.columns[name]), name
    for name in set(NAMED) - set(UNCERTAIN.get(form, ())):
        assert names(found, name) == names(whole, name), name
    assert (found.origin.dropped, found.origin.changed) == (whole.origin.dropped, whole.origin.changed)


def test_workload__has_the_jobs_that_ran(folder):
    whole = expected(folder)
    ran = [k for k in range(1, 48) if not (k % 2 == 0 and k % 9 in (4, 8))]
    assert whole.job_id.tolist() == ran
    assert whole.runtime.tolist() == [100 + 10 * k for k in ran]
    assert whole.requested.tolist() == [365 * 86_400 if k % 7 == 0 else 600 * k for k in ran]
    assert np.maximum(whole.columns["gpus"], 0).tolist() == [gpus_of(k) for k in ran]
    dropped = {"still_pending": 1, "still_running": 1, "part_of_resized": 1, "never_started": 3, "cancelled_before_start": 3}
    assert dict(whole.origin.dropped) == dropped


def test_sacct_command__whose_output_is_read_with_every_column(capsys, tmp_path, folder):
    command = call(capsys, "slurm", "sacct-command", "--slurm-version", "24.11")[1]
    fields = command.split("--format=")[1].split()[0].split(",")
    given = {"ReqMem": "16G", "TotalCPU": "01:00:00", "UserCPU": "50:00.5", "Flags": "SchedBackfill", "Restarts": "0", "Reservation": "day"}
    given |= {
        "Licenses": "matlab:2",
        "SubmitLine": "sbatch --exclusive a|b",
        "Reason": "Priority",
        "ConsumedEnergyRaw": "900",
        "Cluster": "c",
    }
    used = {"MaxRSS": "4096000", "AveRSS": "2048000", "TRESUsageInTot": "mem=8G,gres/gpuutil=80,gres/gpumem=2G", "TRESUsageInAve": "mem=4G"}
    rows = []
    for row in records():
        begun = row["State"] != "PENDING"
        rows += [
            given | row | {"Cluster": "c"},
            *([used | row | {"JobIDRaw": f"{row['JobIDRaw']}.batch"}] if begun and row["Start"] else []),
        ]
    lines = [fields, *([row.get(name, "") for name in fields] for row in rows)]
    (tmp_path / "jobs.txt").write_text("\n".join(map("\x1f".join, lines)) + "\n")
    log, whole = read_log(tmp_path / "jobs.txt"), expected(folder)
    found = log.to_workload(procs=64)
    assert (found.job_id.tolist(), log.bad_lines, log.reading) == (whole.job_id.tolist(), (), ())
    assert [names(found, name) for name in ("constraints", "executable")] == [names(whole, name) for name in ("constraints", "executable")]
    columns = "reason reservation licences sched_backfill exclusive user_cpu_time cpu_time energy cluster used_mem_mb max_rss_mb ave_rss_mb"
    assert set(f"{columns} gpu_use gpu_mem_mb restarts node_list priority gpus".split()) <= log.columns.keys()
    assert {name: log.columns[name][0] for name in ("exclusive", "user_cpu_time", "energy", "used_mem_mb")} == {
        "exclusive": 1, "user_cpu_time": 3000, "energy": 900, "used_mem_mb": 8192,
    }  # fmt: skip


KEPT = json.loads((Path(__file__).parents[3] / "docs" / "generators" / "slurm-forms.json").read_text())


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("container", KEPT["containers"])
def test_table_of_the_guide__has_what_is_read_from_each_container(container, tmp_path):
    kept = KEPT["containers"][container]
    forms = [name for name in FORMS if any(re.fullmatch(rf"{re.escape(one)}(?![\w'-]).*", name) for one in kept["forms"])]
    assert forms
    for name in forms if PROFILE == "nightly" else forms[::3]:
        if container.startswith(("`sacct --json`", "slurmrestd, `slurmdb")):
            version = int(name[-2:]) if "0.0." in name else 44
            (tmp_path / "log").write_text(json.dumps({"jobs": of_parser(slurm_forms.objects_with_steps(records()), version)}))
        else:
            FORMS[name](tmp_path / "log", slurm_forms.with_steps(records()) if kept["steps"] else records())
        read = read_log(tmp_path / "log").columns.keys()
        missing = {column for column in KEPT["contents"] if column not in read}
        assert missing == (set() if kept["steps"] else {"used_mem_mb"}), name
        assert "used_mem_mb" not in read or (read_log(tmp_path / "log").column("used_mem_mb").max() == 8), name


def test_table_of_the_guide__has_every_form():
    prefixes = [re.escape(one) for kept in KEPT["containers"].values() for one in kept["forms"]]
    assert [name for name in FORMS if not re.match("|".join(prefixes), name)] == []
