"""A laboratory for batch-job scheduling: replay job logs under backfilling policies, with results that you can trust.

>>> import walltime as wt
>>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
>>> wt.simulate(jobs, wt.Easy()).start.tolist()
[0, 10, 2]

The most common names are in this package; all others are in these groups:

* `benchmark`: fixed suites of workloads, and results that others can check
* `campaign`: many runs from a plan
* `errors`: the errors of this package, each a `WalltimeError`
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
    from walltime import (
        accuracy as accuracy,
        auditor as auditor,
        benchmark as benchmark,
        campaign as campaign,
        checking as checking,
        comparison as comparison,
        dialects as dialects,
        errors as errors,
        estimates as estimates,
        explanation as explanation,
        figures as figures,
        inference as inference,
        learn as learn,
        logs as logs,
        machine as machine,
        metrics as metrics,
        policy as policy,
        predictors as predictors,
        report as report,
        schedule as schedule,
        simulation as simulation,
        slurm as slurm,
        tuning as tuning,
        usage as usage,
        whatif as whatif,
        workloads as workloads,
    )
    from walltime.auditor.audit import audit as audit
    from walltime.checking import diff as diff
    from walltime.comparison import write_comparison_page as write_comparison_page
    from walltime.errors import (
        LogError as LogError,
        PolicyError as PolicyError,
        WalltimeError as WalltimeError,
        WorkloadError as WorkloadError,
    )
    from walltime.explanation.waits import explain as explain
    from walltime.inference import infer as infer
    from walltime.logs import read as read
    from walltime.logs.fetch import fetch as fetch
    from walltime.policy import (
        FCFS as FCFS,
        SJF as SJF,
        WFP as WFP,
        Conservative as Conservative,
        Easy as Easy,
        Hybrid as Hybrid,
        NoBackfilling as NoBackfilling,
        PlainPolicy as PlainPolicy,
        Slurm as Slurm,
        order as order,
    )
    from walltime.predictors import Prediction as Prediction, predictor as predictor
    from walltime.schedule import Schedule as Schedule, compare as compare, read_schedule as read_schedule
    from walltime.simulation import (
        Scheduler as Scheduler,
        Simulation as Simulation,
        predict as predict,
        replicate as replicate,
        simulate as simulate,
        simulate_many as simulate_many,
    )
    from walltime.tuning import tune as tune
    from walltime.usage.summary import waste as waste
    from walltime.whatif import calibrate as calibrate, what_if as what_if
    from walltime.workload import Workload as Workload

__getattr__, __dir__, __all__ = lazy(__name__)
