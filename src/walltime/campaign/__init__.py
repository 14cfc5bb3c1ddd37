"""Run campaigns: resumable runs of a TOML plan on all cores or a Dask cluster, with results in Parquet files."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.campaign.dimensions import DIMENSIONS as DIMENSIONS
    from walltime.campaign.executors import Dask as Dask
    from walltime.campaign.executors import Executor as Executor
    from walltime.campaign.executors import Threads as Threads
    from walltime.campaign.page import campaign_page as campaign_page
    from walltime.campaign.plan import Plan as Plan
    from walltime.campaign.plan import read_plan as read_plan
    from walltime.campaign.results import Results as Results
    from walltime.campaign.results import campaign_caveats as campaign_caveats
    from walltime.campaign.results import read_results as read_results
    from walltime.campaign.run import Progress as Progress
    from walltime.campaign.run import Status as Status
    from walltime.campaign.run import plan_keys as plan_keys
    from walltime.campaign.run import run_campaign as run_campaign
    from walltime.campaign.run import status as status
    from walltime.campaign.store import SCHEMA as SCHEMA
    from walltime.campaign.store import Store as Store
    from walltime.comparison.combination_means import CombinationMean as CombinationMean
    from walltime.comparison.combination_means import compare_cells as compare_cells
    from walltime.comparison.combination_means import replication_cells as replication_cells

__getattr__, __dir__, __all__ = lazy(__name__)
