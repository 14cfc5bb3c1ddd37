"""A laboratory for batch-job scheduling: replay job logs under backfilling policies, with results that you can trust.

>>> import walltime as wt
>>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
>>> wt.simulate(jobs, wt.Easy()).start.tolist()
[0, 10, 2]

The most common names are in this package; all others are in these groups:

* `benchmark`: fixed suites of workloads, and results that others can check
* `campaign`: many runs from a plan
* `errors`: all errors, each a `WalltimeError`
* `estimates`: models of user estimates
* `figures`: figures for papers and talks
* `logs`: formats of logs, reading, cleaning, writing
* `metrics`: definitions on plain arrays
* `policy`: policies and queue orders
* `predictors`: runtimes predicted from history
* `report`: the parts of a page and its forms: HTML, terminal, PDF
* `schedule`: the result of a simulation, its files and groups
* `simulation`: one simulation, its options, batches, replications, stepping
* `accuracy`: accuracy of estimates and predictions, and advice on requests
* `checking`: the first difference between two schedules
* `comparison`: schedules side by side, as tables and pages
* `dialects`: interpretations of points that papers leave open
* `explanation`: why a job waited
* `auditor`: a check of schedules against the guarantees of their policy
* `machine`: machines of several pools: partitions, outages, limits
* `whatif`: calibration, and the effect of changes to a machine
* `inference`: a site's rules, inferred from its log
* `learn`: environments in which an agent learns to schedule, and a trained agent
* `slurm`: a Slurm cluster as a machine, its present state, and the starts of its waiting jobs
* `usage`: requested, used and lost hours of processors, GPUs and memory
* `tuning`: orders fitted to one log, or found by a search on many
* `workloads`: workload models, and changes to workloads
"""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime import accuracy as accuracy
    from walltime import auditor as auditor
    from walltime import benchmark as benchmark
    from walltime import campaign as campaign
    from walltime import checking as checking
    from walltime import comparison as comparison
    from walltime import dialects as dialects
    from walltime import errors as errors
    from walltime import estimates as estimates
    from walltime import explanation as explanation
    from walltime import figures as figures
    from walltime import inference as inference
    from walltime import learn as learn
    from walltime import logs as logs
    from walltime import machine as machine
    from walltime import metrics as metrics
    from walltime import policy as policy
    from walltime import predictors as predictors
    from walltime import report as report
    from walltime import schedule as schedule
    from walltime import simulation as simulation
    from walltime import slurm as slurm
    from walltime import tuning as tuning
    from walltime import usage as usage
    from walltime import whatif as whatif
    from walltime import workloads as workloads
    from walltime.auditor.audit import audit as audit
    from walltime.checking import diff as diff
    from walltime.comparison import write_comparison_page as write_comparison_page
    from walltime.errors import LogError as LogError
    from walltime.errors import PolicyError as PolicyError
    from walltime.errors import WalltimeError as WalltimeError
    from walltime.errors import WorkloadError as WorkloadError
    from walltime.explanation.waits import explain as explain
    from walltime.inference import infer as infer
    from walltime.logs import read as read
    from walltime.logs.fetch import fetch as fetch
    from walltime.policy import FCFS as FCFS
    from walltime.policy import SJF as SJF
    from walltime.policy import WFP as WFP
    from walltime.policy import Conservative as Conservative
    from walltime.policy import Easy as Easy
    from walltime.policy import Hybrid as Hybrid
    from walltime.policy import NoBackfilling as NoBackfilling
    from walltime.policy import PlainPolicy as PlainPolicy
    from walltime.policy import Slurm as Slurm
    from walltime.policy import order as order
    from walltime.predictors import Prediction as Prediction
    from walltime.predictors import predictor as predictor
    from walltime.schedule import Schedule as Schedule
    from walltime.schedule import compare as compare
    from walltime.schedule import read_schedule as read_schedule
    from walltime.simulation import Scheduler as Scheduler
    from walltime.simulation import Simulation as Simulation
    from walltime.simulation import predict as predict
    from walltime.simulation import replicate as replicate
    from walltime.simulation import simulate as simulate
    from walltime.simulation import simulate_many as simulate_many
    from walltime.tuning import tune as tune
    from walltime.usage.summary import waste as waste
    from walltime.whatif import calibrate as calibrate
    from walltime.whatif import what_if as what_if
    from walltime.workload import Workload as Workload

__getattr__, __dir__, __all__ = lazy(__name__)
