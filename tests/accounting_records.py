"""The same fifty jobs as the accounting records of many batch systems."""

import json
import random
import time
from datetime import UTC, datetime

BEGIN = 1_772_445_600


def fifty_jobs():
    """Jobs as (number, submit, start, end, nodes, processors of a node, GPUs of a node, limit, completed), in order of arrival."""
    rng, submit, jobs = random.Random(11), BEGIN, []
    for number in range(101, 151):
        submit += rng.randrange(1, 900)
        limit = 60 * rng.choice((30, 60, 90, 1440))
        start = submit + rng.randrange(5000)
        jobs.append(
            (number, submit, start, start + rng.randrange(61, limit), rng.randint(1, 3), 4, rng.randrange(3), limit, rng.random() < 0.8)
        )
    return jobs


def clock(seconds):
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def pbs_record(job, resources, event="E"):
    number, submit, start, end, nodes, *_, limit, done = job
    stamp = f"{datetime.fromtimestamp(end, UTC):%m/%d/%Y %H:%M:%S}"
    return (
        f"{stamp};{event};{number}.srv;user=ann group=bio jobname=x queue=q ctime={submit} qtime={submit} etime={submit} start={start} "
        f"{resources} Resource_List.mem={nodes * 2048}mb Resource_List.walltime={clock(limit)} session=1 end={end} "
        f"Exit_status={int(not done)} resources_used.walltime={clock(end - start)}\n"
    )


def pbs(job):
    nodes, each, gpus = job[4:7]
    vnodes = "+".join(f"(n{k}:ncpus={each}{f':ngpus={gpus}' if gpus else ''}:mem=2gb)" for k in range(nodes))
    return pbs_record(job, f"exec_vnode={vnodes} Resource_List.ncpus={nodes * each} Resource_List.select={nodes}:ncpus={each}:ngpus={gpus}")


def pbs_rows(jobs):
    """The items of each job's record, and its name."""
    records = (pbs(job).strip().split(";") for job in jobs)
    return [{"id": name} | dict(item.split("=", 1) for item in items.split(" ")) for _, _, name, items in records]


def pbs_table(jobs):
    rows = pbs_rows(jobs)
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n"


def torque(job):
    nodes, each, gpus = job[4:7]
    hosts = "+".join(f"n{k}/0-{each - 1}" for k in range(nodes))
    return pbs_record(job, f"exec_host={hosts} Resource_List.nodect={nodes} Resource_List.nodes={nodes}:ppn={each}:gpus={gpus}:default")


def cray(job):
    nodes, each, gpus = job[4:7]
    sizes = f"Resource_List.mppwidth={nodes * each} Resource_List.mppnppn={each} Resource_List.naccelerators={nodes * gpus}"
    return pbs_record(job, f"exec_host=login2/0 Resource_List.ncpus=1 {sizes}")


def lsf(job):
    number, submit, start, end, nodes, each, gpus, limit, done = job
    hosts = " ".join(f'"{each}*g{k}"' for k in range(nodes))
    usage = " ".join(["1.5", "0.5", *["-1"] * 17])
    extra = f'1 1042 "num={gpus}:mode=shared"' if gpus else "0"
    return (
        f'"JOB_FINISH" "10.1" {end} {number} 1 0 {nodes * each} {submit} 0 0 {start} "ann" "q" "" "" "" "h" "/home" "" "" "" "1" 0 '
        f'{nodes} {hosts} {64 if done else 32} 10.0 "x" "./go" {usage} "" "p" {0 if done else 256} 4 "" "" 0 5000 0 "" "" "" "" 0 "" 0 "" '
        f'-1 "/a" "" "" "" 0 "" "" 5136 "" {start} "" "" {extra} 0 {limit} 0 0 "select[type==any] rusage[mem=100]" "" -1 "" -1\n'
    )


def grid_engine(job, unit=1, name="x", later="", before=""):
    number, submit, start, end, nodes, each, gpus, limit, done = job
    gpu = f",gpu={nodes * gpus}" if gpus else ""
    return (
        f"{before}all.q:n1:g:ann:{name}:{number}:sge:0:{unit * submit}:{unit * start}:{unit * end}:0:{int(not done)}:{end - start}:1.0:"
        f"0.5:9.0:0:0:0:0:10:0:0:0.0:8:0:0:0:11:3:NONE:dep:mpi:{nodes * each}:0:1.5:0.0:0.0:-l h_rt={clock(limit)}{gpu} -pe mpi 4:"
        f"0.0:NONE:1.2G:0:0{later}\n"
    )


def grid_engine_rows(jobs, unit=1):
    """What a reader of `accounting` makes of each job's record, with the names of accounting(5)."""
    rows = []
    for number, submit, start, end, nodes, each, gpus, limit, done in jobs:
        times = {"submission_time": unit * submit, "start_time": unit * start, "end_time": unit * end}
        gpu = f",gpu={nodes * gpus}" if gpus else ""
        rows.append(
            {"qname": "all.q", "owner": "ann", "job_name": "x", "job_number": number, **times, "failed": 0, "exit_status": int(not done)}
            | {"slots": nodes * each, "task_number": 0, "cpu": 1.5, "category": f"-l h_rt={clock(limit)}{gpu}", "pe_taskid": None}
        )
    return rows


def grid_engine_table(jobs):
    rows = grid_engine_rows(jobs)
    lines = (";".join("" if value is None else str(value) for value in row.values()) for row in rows)
    return "\n".join([";".join(rows[0]), *lines]) + "\n"


def qacct(job):
    number, submit, start, end, nodes, each, gpus, limit, done = job
    gpu = f",gpu={nodes * gpus}" if gpus else ""
    written = {"qname": "all.q", "hostname": "n1", "owner": "ann", "project": "NONE", "jobname": "a: b", "jobnumber": number}
    written |= {"taskid": "undefined"}
    written |= {name: time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(at)) for name, at in (("qsub_time", submit), ("start_time", start))}
    written |= {"end_time": time.strftime("%m/%d/%Y %H:%M:%S.250", time.gmtime(end)), "granted_pe": "mpi", "slots": nodes * each}
    written |= {"failed": "0", "exit_status": "0" if done else "1                  (Hangup)", "cpu": "1.500s"}
    written |= {"category": f"-l h_rt={clock(limit)}{gpu} -pe mpi 4"}
    return "=" * 62 + "\n" + "".join(f"{name:<13}{value} \n" for name, value in written.items())


def reported(job):
    return f"{job[1]}:new_job:{job[1]}:{job[0]}:-1:NONE:x:ann:g::dep:sge:1\n" + grid_engine(job, before=f"{job[3]}:acct:")


def condor(job):
    number, submit, start, end, nodes, each, gpus, limit, done = job
    return {
        **{"ClusterId": number, "ProcId": 0, "Owner": "ann", "JobStatus": 4, "QDate": submit, "JobStartDate": start, "NumJobStarts": 1},
        **{"JobCurrentStartDate": start, "CompletionDate": end, "RemoteWallClockTime": float(end - start), "RequestCpus": nodes * each},
        **{
            "CpusProvisioned": nodes * each,
            "RequestGpus": nodes * gpus,
            "RequestMemory": nodes * 2048,
            "ExitCode": int(not done),
            "MaxWallTimeMins": limit // 60,
        },
    }


def class_ads(jobs):
    ads = (condor(job) for job in jobs)
    return "".join("".join(f"{key} = {json.dumps(value)}\n" for key, value in ad.items()) + "\n" for ad in ads)


def oar(job):
    number, submit, start, end, nodes, each, _, limit, done = job
    times = {"submissionTime": submit, "startTime": start, "stopTime": end, "walltime": limit}
    return {
        "Job_Id": number,
        "owner": "ann",
        "queue": "q",
        "state": "Terminated" if done else "Error",
        **times,
        "assigned_resources": list(range(nodes * each)),
    }


def openb(job):
    number, submit, start, end, nodes, each, gpus, _, done = job
    phase = "Succeeded" if done else "Failed"
    return f"openb-pod-{number},{nodes * each},{nodes * 2048},{nodes},{gpus},,LS,{phase},{submit},{end},{start}\n"


def written_out(time):
    return f"{datetime.fromtimestamp(time, UTC):%a %b %d %H:%M:%S %Y}"


def qstat(job):
    _, submit, start, end, nodes, each, gpus, limit, done = job
    times = {"ctime": submit, "qtime": submit, "etime": submit, "stime": start, "obittime": end}
    requested = {"ncpus": nodes * each, "mem": f"{2 * nodes}gb", "select": f"{nodes}:ncpus={each}:ngpus={gpus}", "walltime": clock(limit)}
    return {
        **{"Job_Name": "x", "Job_Owner": "ann@h", "job_state": "F", "queue": "q", **{name: written_out(at) for name, at in times.items()}},
        **{"Exit_status": int(not done), "exec_vnode": "+".join(f"(n{k}:ncpus={each}:ngpus={gpus})" for k in range(nodes))},
        **{"Resource_List": requested, "resources_used": {"cput": "00:10:00", "walltime": clock(end - start)}},
    }


def qstat_text(job):
    number, submit, start, end, nodes, each, gpus, limit, done = job
    times = {"ctime": submit, "qtime": submit, "etime": submit, "start_time": start, "comp_time": end}
    hosts = "+".join(f"n{k}/0-{each - 1}" for k in range(nodes))
    lines = [
        *(
            "Job_Name = x",
            "Job_Owner = ann@h",
            "job_state = C",
            "queue = q",
            *(f"{name} = {written_out(at)}" for name, at in times.items()),
        ),
        f"exec_host = {hosts[:9]}\n\t{hosts[9:]}",
        f"exit_status = {int(not done)}",
        f"Resource_List.mem = {2 * nodes}gb",
        f"Resource_List.nodes = {nodes}:ppn={each}:gpus={gpus}",
        f"Resource_List.walltime = {clock(limit)}",
        f"resources_used.walltime = {clock(end - start)}",
    ]
    return "".join([f"Job Id: {number}.srv\n", *(f"    {line}\n" for line in lines), "\n"])


def bjobs(job):
    number, submit, start, end, nodes, each, gpus, limit, done = job
    return {
        **{"JOBID": str(number), "STAT": "DONE" if done else "EXIT", "USER": "ann", "QUEUE": "q", "EXIT_CODE": "" if done else "1"},
        **{"SUBMIT_TIME": written_out(submit), "START_TIME": written_out(start), "FINISH_TIME": f"{written_out(end)} L"},
        **{"RUNTIMELIMIT": f"{limit / 60:.1f}/n1", "NREQ_SLOT": str(nodes * each), "NALLOC_SLOT": str(nodes * each)},
        **{"RUN_TIME": f"{end - start} second(s)", "GPU_NUM": str(nodes * gpus)},
    }


def alcf(jobs):
    titles = "JOB_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,QUEUE_NAME,WALLTIME_SECONDS,RUNTIME_SECONDS,NODES_USED,EXIT_STATUS"
    lines = [titles]
    for number, submit, start, end, nodes, each, _, limit, done in jobs:
        times = (f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}" for time in (submit, start, end))
        lines.append(f'"{number}.theta",{",".join(times)},q,{limit}.0,{end - start}.0,{nodes * each}.0,{int(not done)}')
    return "\n".join(lines) + "\n"


def batsim(jobs):
    profiles = {f"d{job[0]}": {"type": "delay", "delay": job[3] - job[2]} for job in jobs}
    listed = [
        {"id": f"w0!{job[0]}", "subtime": job[1], "res": job[4] * job[5], "walltime": job[7], "profile": f"d{job[0]}"} for job in jobs
    ]
    return json.dumps({"nb_res": 100, "jobs": listed, "profiles": profiles})


def simulator(job):
    number, submit, start, end, nodes, each, _, limit, _ = job
    return f"{number};{submit};-1;{end - start};{nodes * each};-1;{nodes * 2048};-1;{limit};-1;-1;ann;bio;-1;normal;q;;-1;\n"


def simulated(job):
    number, submit, start, end, nodes, each, gpus, limit, _ = job
    options = f"-J jobid_{number} -sim-walltime {end - start} --uid=ann -t {clock(limit)} -n {nodes * each} --ntasks-per-node={each} -A bio"
    return f"-dt {submit} -e submit_batch_job | {options} --mem=2048{f' --gres=gpu:{gpus}' if gpus else ''} pseudo.job\n"


def table_of_ads(jobs):
    ads = [condor(job) for job in jobs]
    return "\n".join([",".join(ads[0]), *(",".join(map(str, ad.values())) for ad in ads)]) + "\n"


def gwf(job):
    number, submit, start, end, nodes, each, _, limit, done = job
    procs = nodes * each
    first = [
        number,
        submit,
        start - submit,
        end - start,
        procs,
        -1,
        -1,
        procs,
        limit,
        -1,
        int(done),
        "ann",
        "bio",
        "x",
        "q",
        -1,
        "s",
        "s/c",
    ]
    return "\t".join(map(str, [*first, "UNITARY", *[-1] * 10])) + "\n"


FORMS = {
    "OpenPBS, PBS Professional": lambda jobs: "".join(map(pbs, jobs)),
    "Torque": lambda jobs: "".join(map(torque, jobs)),
    "PBS on Cray": lambda jobs: "".join(map(cray, jobs)),
    "PBS, `qstat -x -f -F json`": lambda jobs: json.dumps(
        {"timestamp": 1, "Jobs": {f"{job[0]}.srv": qstat(job) for job in jobs}}, indent=4
    ),
    "PBS, tables": pbs_table,
    "Torque, `qstat -f`": lambda jobs: "".join(map(qstat_text, jobs)),
    "LSF, `bjobs -json`": lambda jobs: json.dumps({"COMMAND": "bjobs", "JOBS": 50, "RECORDS": list(map(bjobs, jobs))}, indent=2),
    "LSF": lambda jobs: "".join(map(lsf, jobs)),
    "Sun, Son of Grid Engine": lambda jobs: "".join(grid_engine(job, name=("x", "run:3", "a:b:c")[job[0] % 3]) for job in jobs),
    "Univa Grid Engine": lambda jobs: "".join(
        grid_engine(job, 1000, later=":NONE:NONE:12:34:host:/home/a:qsub -l m=1:2 x:9.5") for job in jobs
    ),
    "Grid Engine, reporting file": lambda jobs: (
        "# Version: 8.1.9\n"
        + "".join(
            f"{job[1]}:new_job:{job[1]}:{job[0]}:-1:NONE:x:ann:g::dep:sge:1\n" + grid_engine(job, before=f"{job[3]}:acct:") for job in jobs
        )
    ),
    "Grid Engine, `qacct -j`": lambda jobs: "".join(map(qacct, jobs)) + "Total System Usage\n    WALLCLOCK\n" + "=" * 112 + "\n  4200\n",
    "Grid Engine, tables": grid_engine_table,
    "HTCondor, class ads": class_ads,
    "HTCondor, JSON": lambda jobs: json.dumps([condor(job) for job in jobs], indent=1),
    "HTCondor, tables": table_of_ads,
    "ALCF, Cobalt and PBS": alcf,
    "Batsim": batsim,
    "Slurm Simulator, semicolons": lambda jobs: "".join(map(simulator, jobs)),
    "Slurm Simulator, events": lambda jobs: "".join(map(simulated, jobs)),
    "OAR": lambda jobs: json.dumps({str(job[0]): oar(job) for job in jobs}),
    "OpenB": lambda jobs: (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        + "".join(map(openb, jobs))
    ),
    "Grid Workloads Format": lambda jobs: "# made up\n" + "".join(map(gwf, jobs)),
}
"""The text of a file with these jobs, by container."""
