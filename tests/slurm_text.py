"""A small log of a Slurm cluster, as `sacct -P` would print it; each job is there for a reason that its name tells."""

import os
from pathlib import Path

import numpy as np
import pytest

HEADING = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|State|ExitCode|Submit|Eligible|Start|End|Elapsed|Timelimit|ReqCPUS|AllocCPUS|NNodes|"
    "ReqTRES|AllocTRES|Reason|Flags|Priority|SubmitLine|JobName"
)
D = "2026-03-02T"
ROWS = (
    f"101|101|ann|bio|main|normal|COMPLETED|0:0|{D}10:00:00|{D}10:00:00|{D}10:00:05|{D}10:10:05|00:10:00|01:00:00|4|4|1|"
    "billing=4,cpu=4,mem=8G,node=1|billing=4,cpu=4,gres/gpu=2,node=1|None|SchedMain,StartReceived|900|sbatch -n 4 a.sh|plain",
    f"101.batch|101.batch||bio|||COMPLETED|0:0|{D}10:00:05|{D}10:00:05|{D}10:00:05|{D}10:10:05|00:10:00||4|4|1||cpu=4,mem=0,node=1|||||batch",
    f"102|102|bob|chem|main|long|FAILED|3:0|{D}10:01:00|{D}10:05:00|{D}10:07:00|{D}10:07:30|00:00:30|1-00:00:00|2|8|2|"
    "billing=2,cpu=2,mem=512M,node=2|billing=8,cpu=8,node=2|Dependency|SchedBackfill,StartReceived|800|sbatch -N 2 --exclusive b|held",
    f"103|103|bob|chem|debug|normal|TIMEOUT|0:0|{D}10:02:00|{D}10:02:00|{D}10:02:10|{D}10:03:19|00:01:09|00:01:00|1|1|1|"
    "billing=1,cpu=1,mem=1G,node=1|billing=1,cpu=1,node=1|None|SchedSubmit|700|sbatch -t 1 c|overrun",
    f"104|104|ann|bio|main|normal|CANCELLED by 1001|0:0|{D}10:03:00|{D}10:03:00|None|{D}10:04:00|00:00:00|00:30:00|16|0|4|"
    "billing=16,cpu=16,mem=16G,node=4|||StartReceived|600|sbatch d|cancelled before its start",
    f"105|105|ann|bio|main|normal|COMPLETED|0:0|{D}10:04:00|{D}10:04:00|None|{D}10:06:30|00:00:00|00:05:00|2|2|1|"
    "billing=2,cpu=2,mem=4G,node=1|billing=2,cpu=2,node=1|None|StartReceived|500|sbatch e|lost start",
    f"105.batch|105.batch||bio|||COMPLETED|0:0|{D}10:04:10|{D}10:04:10|{D}10:04:10|{D}10:06:30|00:02:20||2|2|1||cpu=2,node=1|||||batch",
    f"106|106|cy|bio|main|normal|COMPLETED|0:0|{D}10:05:00|{D}10:05:00|{D}10:05:01|{D}10:05:31|00:00:30|UNLIMITED|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|None||400|sbatch -t UNLIMITED f|no limit",
    f"107|107|cy|bio|main|normal|COMPLETED|0:0|{D}10:06:00|{D}10:06:00|{D}10:06:01|{D}10:06:31|00:00:30|00:03:00|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|None|SchedBackfill|300|sbatch -t 20 --time-min=3 g|shrunk",
    f"108_0|109|cy|bio|main|normal|COMPLETED|0:0|{D}10:07:00|{D}10:07:00|{D}10:07:01|{D}10:07:31|00:00:30|00:03:00|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|None|SchedMain|200|sbatch -a 0-4 h|array",
    f"108_[1-4%2]|108|cy|bio|main|normal|PENDING|0:0|{D}10:07:00|{D}10:07:00|Unknown|Unknown|00:00:00|Partition_Limit|1|0|1|"
    "billing=1,cpu=1,node=1|||StartReceived|100|sbatch -a 0-4 h|array",
    f"110|110|cy|bio|main|normal|RUNNING|0:0|{D}10:08:00|{D}10:08:00|{D}10:08:01|Unknown|00:10:00|00:30:00|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|None|SchedMain|90|sbatch i|runs",
    f"111+0|111|bob|chem|main|normal|COMPLETED|0:0|{D}10:09:00|{D}10:09:00|{D}10:09:01|{D}10:09:31|00:00:30|00:03:00|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|None|SchedMain|80|sbatch j|het",
    f"113|113|bob|chem|main|normal|REQUEUED|0:0|{D}10:10:00|{D}10:10:00|{D}10:10:01|{D}10:10:11|00:00:10|00:03:00|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|None|SchedMain|70|sbatch k|again",
    f"113|113|bob|chem|main|normal|COMPLETED|0:0|{D}10:10:11|{D}10:12:11|{D}10:12:11|{D}10:13:11|00:01:00|00:03:00|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|BeginTime|SchedMain|70|sbatch k|again",
    f"114|114|bob|chem|main|normal|NODE_FAIL|0:0|{D}10:11:00|{D}10:11:00|None|{D}10:12:00|00:00:00|00:03:00|1|0|1|"
    "billing=1,cpu=1,node=1||None||70|sbatch l|never started",
    f"115|115|bob|chem|main|normal|COMPLETED|0:0|{D}10:12:00|{D}10:12:00|Unknown|{D}10:13:00|00:00:00|00:03:00|1|1|1|"
    "billing=1,cpu=1,node=1|billing=1,cpu=1,node=1|None||70|sbatch m|lost for good",
)
TEXT = "\n".join((HEADING, *ROWS)) + "\n"


def job(log, number):
    """The row of a job, by name of the column; names instead of numbers."""
    [row] = np.flatnonzero(log.column("job_id") == number)
    values = {name: column[row].item() for name, column in log.columns.items()}
    return values | {name: texts[values[name] - 1] if values[name] > 0 else None for name, texts in log.names.items()}


def samples() -> Path:
    """The folder of real outputs of Slurm, of the environment or beside this project; skips the test where there is none."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "slurm"
    folder = Path(os.environ.get("WALLTIME_SLURM") or beside)
    if not (folder / "samples").is_dir():
        pytest.skip(f"no outputs of Slurm in {folder}; name their folder with WALLTIME_SLURM")
    return folder / "samples"
