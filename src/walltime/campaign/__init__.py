"""Many runs: a plan in TOML, run on all cores or on a Dask cluster, into a folder of Parquet files; resumable."""

from walltime.campaign.caveats import campaign_caveats
from walltime.campaign.combination_means import CombinationMean, compare_cells, replication_cells
from walltime.campaign.dimensions import DIMENSIONS
from walltime.campaign.executors import Dask, Executor, Threads
from walltime.campaign.plan import Plan, read_plan
from walltime.campaign.results import Results, read_results
from walltime.campaign.run import Progress, Status, plan_keys, run_campaign, status
from walltime.campaign.store import SCHEMA, Store

__all__ = [
    "DIMENSIONS",
    "SCHEMA",
    "CombinationMean",
    "Dask",
    "Executor",
    "Plan",
    "Progress",
    "Results",
    "Status",
    "Store",
    "Threads",
    "campaign_caveats",
    "compare_cells",
    "plan_keys",
    "read_plan",
    "read_results",
    "replication_cells",
    "run_campaign",
    "status",
]
