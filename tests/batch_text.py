"""Small logs as other batch systems than Slurm write them."""

PBS = """\
03/02/2026 09:59:00;L;license;floating license hour:3 day:3 month:3 max:10
03/02/2026 10:00:00;Q;123.srv;queue=workq
03/02/2026 10:00:05;S;123.srv;user=ann group=bio jobname=plain queue=workq ctime=1772445600 start=1772445605
03/02/2026 10:10:05;E;123.srv;user=ann group=bio account="my project=x" project=_pbs_project_default jobname=plain queue=workq \
ctime=1772445600 qtime=1772445600 etime=1772445602 start=1772445605 exec_host=n1/0*4+n2/0*4 exec_vnode=(n1:ncpus=4:mem=1gb)+(n2:ncpus=4) \
Resource_List.ncpus=8 Resource_List.nodect=2 Resource_List.select=2:ncpus=4:ngpus=1 Resource_List.walltime=01:00:00 session=77 \
end=1772446205 Exit_status=0 resources_used.cput=00:40:00 resources_used.mem=8000kb resources_used.ncpus=8 \
resources_used.walltime=00:10:00 run_count=1
03/02/2026 10:11:00;D;124.srv;requestor=bob@srv
03/02/2026 10:11:01;E;124.srv;user=bob group=chem jobname=torque queue=batch ctime=1772445700 qtime=1772445700 etime=1772445700 \
start=1772445800 owner=bob@srv exec_host=n1/0-3+n2/0+n2/1 Resource_List.nodect=2 Resource_List.nodes=1:ppn=4+1:ppn=2 \
Resource_List.walltime=26:00:00 session=1 end=1772446261 Exit_status=271 resources_used.walltime=00:05:00
03/02/2026 10:12:00;E;125[].srv;user=ann jobname=a queue=workq ctime=1772445600 start=1772445605 end=1772446205 Exit_status=0
03/02/2026 10:12:00;E;125[3].srv;user=ann jobname=a queue=workq ctime=1772445600 qtime=1772445600 etime=1772445600 start=1772445605 \
end=1772446205 exec_host=n1/0 Resource_List.ncpus=1 Exit_status=1
"""


def lsf_record(job, user, submit, start, end, hosts, status, name, *, index=0, info=0, estimate=0, begin=0) -> str:
    """A record JOB_FINISH as the manual of LSF 10.1 has it."""
    where = " ".join([str(len(hosts)), *(f'"{host}"' for host in hosts)])
    usage = " ".join(["1.5", "0.5", *["-1"] * 17])
    return (
        f'"JOB_FINISH" "10.1" {end} {job} 1001 33554438 4 {submit} {begin} 0 {start} "{user}" "normal" "select[type==any]" "" "" "h0" '
        f'"/home/{user}" "" "out" "" "1.job" 0 {where} {status} 60.0 "{name}" "run ""x"" y" {usage} "" "default" 0 4 "" "" {index} 5000 0 '
        f'"" "" "" "" 0 "" {info} "" -1 "" "" "" "" {estimate} "" "" 1024 "" 0 ""'
    )


LSF_ROWS = (
    lsf_record(1, "ann", 1772445600, 1772445700, 1772446000, ["n1", "n1", "n2", "n2"], 64, 'say ""hi""', estimate=3600),
    lsf_record(2, "bob", 1772445650, 1772445700, 1772446000, ["2*n1"], 32, "b", index=3, info=14, begin=1772445660),
    lsf_record(3, "bob", 1772445650, 0, 1772446000, [], 32, "c"),
    '"EVENT_ADRSV_FINISH" "10.1" 1772446000 1 2',
)
LSF = "\n".join(LSF_ROWS) + "\n"

COBALT = """\
"JOB_NAME","COBALT_JOBID","MACHINE_NAME","QUEUED_TIMESTAMP","START_TIMESTAMP","END_TIMESTAMP","USERNAME_GENID","PROJECT_NAME_GENID",\
"QUEUE_NAME","WALLTIME_SECONDS","RUNTIME_SECONDS","NODES_USED","NODES_REQUESTED","CORES_USED","LOCATION","EXIT_STATUS"
"101.theta","101.0000","theta","2023-01-01 00:00:10","2023-01-01 00:10:10.5","2023-01-01 01:10:10","12.0","99","default","7200.0",\
"3600.0","128.0","128.0","8192.0","0-127","0"
"102.theta","102","theta","2023-01-01 00:00:20","2023-01-01 00:10:20","2023-01-01 00:20:10","7","99","default, ""x"" ","7200.0","590",\
"1","2","64","
1","137"
"""

TABLE = """\
id,who,asked (h),began,done,nodes,submitted,how
7,ann,1.5,2026-03-02 11:00:10,2026-03-02 12:00:10,2,2026-03-02 11:00:00,ok
8,bob,0.5,2026-03-02T11:10:00+01:00,2026-03-02T11:20:00+01:00,1,2026-03-02T10:05:00Z,oops
9,bob,0.5,,,1,2026-03-02 11:30:00,waits
"""
MAPPING = """\
time_zone = "Europe/Stockholm"
procs = 128
[columns]
job_id = "id"
submit = "submitted"
start = "began"
end = "done"
requested = { column = "asked (h)", unit = "h" }
allocated_procs = { column = "nodes", times = 64 }
nodes = "nodes"
user = "who"
partition = { constant = "main" }
[status]
column = "how"
completed = ["ok"]
pending = ["waits"]
other = "failed"
"""
