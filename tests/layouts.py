"""Logs in the layouts of sites and data sets, made anew: the same sixty jobs in each."""

import gzip
import json
import random
from datetime import UTC, datetime

BEGIN = 1_600_000_000


def stamp(seconds, form="%Y-%m-%d %H:%M:%S"):
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def hours(seconds):
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def jobs():
    """Jobs as (number, user, submit, wait, runtime, request, nodes)."""
    rng, submit = random.Random(1), BEGIN
    for k in range(1, 61):
        submit += rng.randrange(400)
        yield k, f"user{k % 7}", submit, rng.randrange(600), rng.randrange(20, 3000), rng.choice([3600, 7200, 86400]), rng.choice([1, 2, 4])


def swf_line(k, submit, wait, run, procs, request, *further, user=1):
    return " ".join(map(str, (k, submit - BEGIN, wait, run, procs, -1, -1, procs, request, -1, 1, user, 1, -1, 1, -1, -1, -1, *further)))


def cerit():
    for k, _, submit, wait, run, request, nodes in jobs():
        hosts = ",".join(str(1241 + i) for i in range(nodes + (k == 5)))
        yield swf_line(k, submit, wait, run, 64 * nodes, request, f"{{{hosts}}}", f"q_{k % 3}d", f"{nodes}:ppn=64:x86_64", user=k % 7)


def frontier():
    for k, _, submit, wait, run, request, nodes in jobs():
        mode = "excl" if k % 4 else "shared"
        procs = 112 * nodes if k != 7 else 999
        soft = request // 2 if k % 3 else -1
        yield swf_line(k, submit, wait, run, procs, request, 8 * nodes, soft, f"frontier:{mode}:{nodes}x112", user=k % 7)


def eagle():
    yield (
        "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,start_time,end_time,"
        "run_time,name,submit_line,state"
    )
    for k, user, submit, wait, run, request, nodes in jobs():
        begin = f"{k},{user},a,short,normal,{request},{nodes},{36 * nodes},0,85000,{stamp(submit)}"
        if k in (9, 10):
            yield f"{begin},,,,x,sbatch,{'CANCELLED' if k == 9 else 'PENDING'}"
        else:
            state = "COMPLETED" if k % 4 else "TIMEOUT"
            yield f'{begin},{stamp(submit + wait)},{stamp(submit + wait + run)},{run},x,"sbatch a,b",{state}'


def thetagpu():
    yield ",user,project,state,submit_time,start_time,end_time,wait_time,run_time,wall_time,node_num,gpu_num,queue"
    for k, user, submit, wait, run, request, nodes in jobs():
        times = ",".join(f"{one - BEGIN}.0" for one in (submit, submit + wait, submit + wait + run))
        yield f"{k - 1},{user},p,{'Pass' if k % 5 else 'Failed'},{times},{wait}.0,{run}.0,{request}.0,{nodes},{8 * nodes},full-node"


def sacct():
    yield "JobID|User|Account|Partition|QOS|Submit|Start|End|Elapsed|Timelimit|NCPUS|NNodes|State"
    form = "%Y-%m-%dT%H:%M:%S"
    for k, user, submit, wait, run, request, nodes in jobs():
        limit = f"{request // 86400}-{hours(request % 86400)}" if request >= 86400 else hours(request)
        times = f"{stamp(submit, form)}|{stamp(submit + wait, form)}|{stamp(submit + wait + run, form)}|{hours(run)}"
        yield f"{k}|{user}|a|batch|normal|{times}|{limit}|{32 * nodes}|{nodes}|{'COMPLETED' if k % 5 else 'CANCELLED by 12'}"
        yield f"{k}.batch||a|||{times}||{32 * nodes}|{nodes}|COMPLETED"


def soft_walltimes():
    yield "; CERIT-SC with soft walltimes"
    for k, _, submit, wait, run, request, nodes in jobs():
        array = "[16921]" if k % 4 == 0 else ""
        soft = run + 300 if k % 3 else -1
        yield f"{k}{array}   {submit}  {wait}   {run}  {4 * nodes}   {4194304 * nodes}  {k % 7}  {k % 3}  {request}  {soft}"


def grid_engine(unit=1, more=""):
    yield "# Version: 8.1.9"
    for k, user, submit, wait, run, request, nodes in jobs():
        times = ":".join(str(unit * one) for one in (submit, submit + wait, submit + wait + run))
        yield (
            f"all.q:node1:users:{user}:x:{k}:sge:0:{times}:0:{0 if k % 5 else 1}:{run}:1.0:0.1:0.0:0:0:0:0:1:0:0:0.0:0:0:0:0:1:1:NONE:"
            f"dep:mpi:{8 * nodes}:0:10.0:0.1:0.0:-u {user} -l h_rt={request} -pe mpi {8 * nodes}:0.0:NONE:1000.0:0:0{more}"
        )


def condor():
    """As `condor_history -long` prints them."""
    for k, user, submit, wait, run, _, nodes in jobs():
        yield f'ClusterId = {k}\nProcId = 0\nOwner = "{user}"\nQDate = {submit}\nJobStartDate = {submit + wait}'
        yield f"CompletionDate = {submit + wait + run}\nRequestCpus = {nodes}\nRemoteWallClockTime = {run}.0\nExitCode = {k % 5 and 1}\n"


def oar():
    """As `oarstat -J` prints them."""
    return json.dumps(
        {
            str(k): {"Job_Id": k, "owner": user, "queue": "default", "state": "Terminated", "submissionTime": submit, "events": []}
            | {"startTime": submit + wait, "stopTime": submit + wait + run, "walltime": request, "assigned_resources": list(range(nodes))}
            for k, user, submit, wait, run, request, nodes in jobs()
        }
    )


def day_clock(seconds):
    return f"{seconds // 86_400}-{hours(seconds % 86_400)}"


def batsim():
    """A workload of Batsim."""
    listed = [{"id": k, "subtime": s - BEGIN, "walltime": q, "res": n, "profile": str(r)} for k, _, s, _, r, q, n in jobs()]
    profiles = {str(job[4]): {"type": "delay", "delay": job[4]} for job in jobs()}
    return json.dumps({"nb_res": 64, "jobs": listed, "profiles": profiles}, indent=1)


def qstat():
    """As `qstat -x -f -F json` of PBS prints them."""
    listed = {}
    for k, user, submit, wait, run, request, nodes in jobs():
        when = {"ctime": submit, "qtime": submit, "stime": submit + wait, "obittime": submit + wait + run}
        listed[f"{k}.a"] = {
            "Job_Owner": f"{user}@login",
            "job_state": "F",
            "resources_used": {"walltime": hours(run), "ncpus": nodes},
            "Resource_List": {"walltime": hours(request), "ncpus": nodes, "nodect": 1},
            "Exit_status": 0,
            **{name: stamp(time, "%a %b %d %H:%M:%S %Y") for name, time in when.items()},
        }
    return json.dumps({"timestamp": 1, "pbs_server": "a", "Jobs": listed}, indent=1)


def flux():
    """As `flux jobs --json` has them, one on each line."""
    lines = [
        {"id": f"f{k}X", "username": user, "t_submit": submit + 0.1, "t_run": submit + wait + 0.1, "t_inactive": submit + wait + run + 0.1}
        | {"ncores": nodes, "duration": request, "runtime": float(run)}
        for k, user, submit, wait, run, request, nodes in jobs()
    ]
    return text(map(json.dumps, lines)).decode()


def completed(form="%Y-%m-%dT%H:%M:%S"):
    """As Slurm's jobcomp/filetxt writes them."""
    lines = []
    for k, user, submit, wait, run, request, nodes in jobs():
        begin, end = stamp(submit + wait, form), stamp(submit + wait + run, form)
        times = f"StartTime={begin} EndTime={end} SubmitTime={stamp(submit, form)}"
        known = f"JobId={k} UserId={user}(12) Name=a b JobState=FAILED TimeLimit={request // 60}"
        lines.append(f"{known} {times} NodeCnt={nodes} ProcCnt={nodes} Tres=cpu=1,node=1 ")
    return text(lines).decode()


def shown(form="%Y-%m-%dT%H:%M:%S"):
    """As `scontrol show job` prints them."""
    return text(
        f"JobId={k} JobName=my run\n   UserId={user}(12) Reason=None Dependency=(null)\n   RunTime={day_clock(run)} "
        f"TimeLimit={day_clock(request)}\n   SubmitTime={stamp(submit, form)}\n   StartTime={stamp(submit + wait, form)} "
        f"EndTime={stamp(submit + wait + run, form)}\n   NumNodes=1 NumCPUs={nodes}\n   Command=/a b=c\n"
        for k, user, submit, wait, run, request, nodes in jobs()
    ).decode()


def bjobs(form="%b %d %H:%M:%S %Y"):
    """As `bjobs -json -o` of LSF prints them, with the year; limits are minutes by the speed of a host."""
    records = []
    for k, user, submit, wait, run, request, nodes in jobs():
        times = {"SUBMIT_TIME": stamp(submit, form), "START_TIME": stamp(submit + wait, form)}
        times["FINISH_TIME"] = f"{stamp(submit + wait + run, form)} L"
        known = {"JOBID": str(k), "USER": user, "STAT": "DONE", "QUEUE": "normal", "SLOTS": str(nodes)}
        records.append(known | times | {"RUN_TIME": f"{run} second(s)", "RUNTIMELIMIT": f"{request / 60:.1f}/host-1"})
    return json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}, indent=2)


def markdown():
    """A table of Markdown."""
    lines = ["| job id | user | account | submit time | start time | end time | cores | limit (s) |", "|---:|:--|---|---|:-:|---|---|---|"]
    for k, user, submit, wait, run, request, nodes in jobs():
        times = " | ".join(map(stamp, (submit, submit + wait, submit + wait + run)))
        lines.append(f"| {k} | {user} | | {times} | {nodes} | {request} |")
    return text(lines).decode()


def text(lines):
    return ("\n".join(lines) + "\n").encode()


LASSEN = (
    "allocation_id,primary_job_id,launch_node_name,isolated_cores,user_flags,system_flags,ssd_min,ssd_max,num_nodes,num_processors,num_gpus,"
    "projected_memory,type,job_type,hashed_user_id,hashed_user_group_id,begin_time,end_time,exit_status,job_submit_time,queue,requeue,"
    "time_limit,smt_mode,core_blink",
    "allocation_id,node_name,shared,energy,gpfs_read,gpfs_write,ib_tx,ib_rx,power_cap,power_shifting_ratio,power_cap_hit,gpu_usage,"
    "gpu_energy,cpu_usage,memory_usage_max",
    "allocation_id,step_id,begin_time,end_time,num_nodes,num_processors,num_gpus,num_tasks,projected_memory,user_flags,exit_status,"
    "total_u_time,total_s_time,omp_thread_limit",
)
"""The headings of the three files, as the README of the data set has them."""


def lassen_files():
    """The three files of Lassen's jobs, by their names."""
    allocations, nodes_of, steps = ([heading] for heading in LASSEN)
    for k, user, submit, wait, run, request, nodes in jobs():
        begin, end = f"{stamp(submit + wait)}.25", f"{stamp(submit + wait + run)}.25"
        allocations.append(
            f"{k},{1000 + k},l1,0,,,0,0,{nodes},{44 * nodes},0,0,user-managed,batch,{user},g,{begin},{end},{0 if k % 4 else 1},"
            f"{stamp(submit)}.25,pbatch,,{request},4,f"
        )
        energies = [1000 * k + i for i in range(nodes)]
        nodes_of += [f"{k},l{i},f,{energy if k != 3 else -1},0,0,1,1,3050,100,0,5,{k},9,9" for i, energy in enumerate(energies)]
        steps += [f"{k},{i},{begin},{end},{nodes},{nodes},{4 * nodes - i},1,0,,0,1,1,1" for i in range(2 if k % 6 else 0)]
    return {
        "final_csm_allocation_history_hashed.csv": text(allocations),
        "final_csm_allocation_node_history.csv": text(nodes_of),
        "final_csm_step_history.csv.gz": gzip.compress(text(steps), mtime=0),
    }
