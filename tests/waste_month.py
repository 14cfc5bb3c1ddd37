"""A synthetic month of jobs whose use is known, as sacct, PBS and jobstats record it.

Use is in units that all forms hold exactly: whole seconds, MB and percent.
"""

import json
import random
from pathlib import Path

from tests.accounting_records import clock
from tests.jobstats_texts import node, summary

BEGIN = 1_772_323_200
"""2026-03-01 00:00 UTC."""
STATES = ("COMPLETED",) * 6 + ("FAILED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "CANCELLED by 1000")
NAMES = ("train", "align", "bash", "sys/dashboard/jupyter", "cfd")
PER_NODE = 8
FIELDS = [
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "State", "ExitCode", "Submit", "Eligible", "Start", "End", "ElapsedRaw"),
    *("TimelimitRaw", "ReqCPUS", "AllocCPUS", "NNodes", "ReqTRES", "AllocTRES", "TotalCPU", "MaxRSS", "AveRSS", "TRESUsageInTot"),
    *("TRESUsageInAve", "ConsumedEnergyRaw", "JobName", "AdminComment"),
]


def month(count: int = 300, seed: int = 5) -> list[dict]:
    """Return jobs as mappings: times in s, memory in MB, `gpu_use` in percent; None where the measurement was lost."""
    rng, submit, jobs = random.Random(seed), BEGIN, []
    for number in range(1, count + 1):
        submit += rng.randrange(60, 12_000)
        nodes = rng.choice((1, 1, 1, 2))
        procs = nodes * rng.choice((1, 2, 4, 8))
        gpus = rng.choice((0, 0, 1, 2)) * nodes
        limit = 60 * rng.choice((60, 240, 1440))
        state = rng.choice(STATES)
        run = limit if state == "TIMEOUT" else rng.randrange(120, limit - 60)
        asked = rng.choice((4, 16, 64)) * 1024 * nodes
        busy = rng.choice((0.02, 0.4, 0.95)) if procs == nodes else rng.choice((0.02, 1 / procs, 0.5, 0.97))
        lost = number % 11 == 0
        jobs.append(
            {
                **{"job": number, "user": f"u{rng.randrange(6)}", "account": f"lab{rng.randrange(3)}", "name": rng.choice(NAMES)},
                **{"partition": "gpu" if gpus else "main", "state": state, "submit": submit, "start": submit + rng.randrange(9000)},
                **{"run": run, "limit": limit, "nodes": nodes, "procs": procs, "gpus": gpus, "kind": rng.choice(("a100", "v100"))},
                **{"asked_mb": asked, "cpu": None if lost else max(2 * int(run * procs * busy / 2), 2)},
                "used_mb": None if lost else 2 * max(int(asked * rng.choice((0.04, 0.3, 0.9)) / 2), 1),
                "gpu_use": None if lost or not gpus else rng.choice((0, 40, 95)),
                "joules": None if number % 4 else 3600 * rng.randrange(1, 900),
            }
        )
    return jobs


def _rows(jobs: list[dict], steps: bool, comments: bool) -> list[dict[str, str]]:
    rows = []
    for job in jobs:
        kind = f",gres/gpu:{job['kind']}={job['gpus']},gres/gpu={job['gpus']}" if job["gpus"] else ""
        tres = f"cpu={job['procs']},mem={job['asked_mb']}M,node={job['nodes']}{kind}"
        row = {
            **{"JobIDRaw": str(job["job"]), "JobID": str(job["job"]), "User": job["user"], "Account": job["account"]},
            **{"Partition": job["partition"], "State": job["state"], "ExitCode": "0:0" if job["state"] == "COMPLETED" else "1:0"},
            **{"Submit": str(job["submit"]), "Eligible": str(job["submit"]), "Start": str(job["start"])},
            **{"End": str(job["start"] + job["run"]), "ElapsedRaw": str(job["run"]), "TimelimitRaw": str(job["limit"] // 60)},
            **{"ReqCPUS": str(job["procs"]), "AllocCPUS": str(job["procs"]), "NNodes": str(job["nodes"])},
            **{"ReqTRES": tres, "AllocTRES": tres, "JobName": job["name"]},
            "TotalCPU": "00:00:00" if job["cpu"] is None or not steps else clock(job["cpu"]),
            "ConsumedEnergyRaw": "" if job["joules"] is None else str(job["joules"]),
            "AdminComment": _comment(job) if comments else "",
        }
        rows.append(dict.fromkeys(FIELDS, "") | row)
        if steps:
            own = {"JobIDRaw": f"{job['job']}.batch", "JobID": f"{job['job']}.batch", "JobName": "batch", "AdminComment": "", "User": ""}
            first = {"JobIDRaw": f"{job['job']}.0", "JobID": f"{job['job']}.0", "JobName": "python", "AdminComment": "", "User": ""}
            rows += [rows[-1] | own | _used(job, 3), rows[-1] | first | _used(job, 1)]
    return rows


def _used(job: dict, divisor: int) -> dict[str, str]:
    """Return what a step used: a share of the job's use."""
    if job["used_mb"] is None:
        return dict.fromkeys(("MaxRSS", "AveRSS", "TRESUsageInTot", "TRESUsageInAve"), "")
    memory = job["used_mb"] * 1024 // divisor
    use = "" if job["gpu_use"] is None else f",gres/gpuutil={job['gpu_use'] * job['gpus'] // divisor}"
    average = "" if job["gpu_use"] is None else f",gres/gpuutil={job['gpu_use'] // divisor}"
    return {
        **{"MaxRSS": f"{memory // 2}K", "AveRSS": f"{memory // 3}K"},
        **{"TRESUsageInTot": f"cpu=00:00:10,mem={memory}K{use}", "TRESUsageInAve": f"mem={memory // 3}K{average}"},
    }


def _comment(job: dict) -> str:
    if job["cpu"] is None:
        return "JS1:None"
    each = job["gpus"] // job["nodes"]
    nodes = [
        node(job["cpu"] / job["nodes"], job["used_mb"] * 2**20 // job["nodes"], [(job["gpu_use"], 2**20)] * each)
        for _ in range(job["nodes"])
    ]
    return summary(*nodes, elapsed=job["run"])


def sacct_text(jobs: list[dict], steps: bool = True, comments: bool = False) -> str:
    return "\n".join("|".join(line) for line in (FIELDS, *(row.values() for row in _rows(jobs, steps, comments)))) + "\n"


def sacct_json(jobs: list[dict]) -> str:
    """As `sacct --json` of Slurm 23.11 and later."""

    def entry(kind, count, name=""):
        return {"type": kind, "name": name, "id": 1, "count": count}

    def used(job, divisor):
        if job["used_mb"] is None:
            return {}
        memory = job["used_mb"] * 2**20 // divisor
        own = [entry("gres", job["gpu_use"] * job["gpus"] // divisor, "gpuutil")] if job["gpu_use"] is not None else []
        return {"max": [entry("mem", memory // 2)], "total": [entry("mem", memory), *own]}

    objects = []
    for job in jobs:
        gpus = [entry("gres", job["gpus"], f"gpu:{job['kind']}"), entry("gres", job["gpus"], "gpu")] if job["gpus"] else []
        tres = [entry("cpu", job["procs"]), entry("mem", job["asked_mb"]), entry("node", job["nodes"]), *gpus]
        energy = [] if job["joules"] is None else [entry("energy", job["joules"])]
        times = {"submission": job["submit"], "eligible": job["submit"], "start": job["start"], "end": job["start"] + job["run"]}
        times |= {"elapsed": job["run"], "limit": {"set": True, "infinite": False, "number": job["limit"] // 60}}
        objects.append(
            {
                **{"job_id": job["job"], "array": {"job_id": 0}, "het": {"job_id": 0}, "user": job["user"], "account": job["account"]},
                **{"partition": job["partition"], "name": job["name"], "state": {"current": [job["state"].split()[0]], "reason": "None"}},
                **{"exit_code": {"return_code": {"set": True, "infinite": False, "number": int(job["state"] != "COMPLETED")}}},
                "time": times | {"total": {"seconds": job["cpu"] or 0, "microseconds": 0}},
                **{"required": {"CPUs": job["procs"]}, "allocation_nodes": job["nodes"]},
                "tres": {"allocated": [*tres, *energy], "requested": tres},
                "steps": [
                    {
                        "step": {"id": f"{job['job']}.{name}"},
                        "time": {"start": {"set": True, "infinite": False, "number": job["start"]}, "elapsed": job["run"]},
                        "tres": {"requested": used(job, divisor)},
                    }
                    for name, divisor in (("batch", 3), ("0", 1))
                ],
            }
        )
    return json.dumps({"jobs": objects, "meta": {"slurm": {"release": "25.11.0"}}})


def pbs_text(jobs: list[dict]) -> str:
    """As OpenPBS's accounting; it has no use of GPUs, and no energy."""
    codes = {"COMPLETED": 0, "FAILED": 1, "OUT_OF_MEMORY": -27, "TIMEOUT": -29, "NODE_FAIL": -20}
    lines = []
    for job in jobs:
        each = job["gpus"] // job["nodes"]
        vnodes = "+".join(f"(n{k}:ncpus={job['procs'] // job['nodes']}{f':ngpus={each}' if each else ''})" for k in range(job["nodes"]))
        used = "" if job["cpu"] is None else f" resources_used.cput={clock(job['cpu'])} resources_used.mem={job['used_mb'] * 1024}kb"
        lines.append(
            f"03/02/2026 10:00:00;E;{job['job']}.srv;user={job['user']} group=g account={job['account']} jobname={job['name']} "
            f"queue={job['partition']} ctime={job['submit']} qtime={job['submit']} etime={job['submit']} start={job['start']} "
            f"exec_vnode={vnodes} Resource_List.mem={job['asked_mb']}mb "
            f"Resource_List.ncpus={job['procs']} "
            f"Resource_List.ngpus={job['gpus']} Resource_List.nodect={job['nodes']} "
            f"Resource_List.select={job['nodes']}:ncpus={job['procs'] // job['nodes']}:ngpus={each} "
            f"Resource_List.walltime={clock(job['limit'])} end={job['start'] + job['run']} "
            f"Exit_status={codes.get(job['state'], 1)} resources_used.walltime={clock(job['run'])}{used}\n"
        )
    return "".join(lines)


def write(folder: Path, jobs: list[dict]) -> dict[str, Path]:
    """Write the jobs in each form; return the files."""
    texts = {
        **{"text": sacct_text(jobs), "json": sacct_json(jobs), "jobstats": sacct_text(jobs, False, True), "pbs": pbs_text(jobs)},
        "nothing": sacct_text([job | {"cpu": None, "used_mb": None, "gpu_use": None, "joules": None} for job in jobs]),
    }
    files = {name: folder / f"{name}.log" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    return files
