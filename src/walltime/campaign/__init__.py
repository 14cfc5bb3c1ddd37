"""Run campaigns: resumable runs of a TOML plan on all cores or a Dask cluster, with results in Parquet files."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.campaign.cell import DIMENSIONS as DIMENSIONS
    from walltime.campaign.executors import Dask as Dask, Executor as Executor, Threads as Threads
    from walltime.campaign.page import campaign_page as campaign_page
    from walltime.campaign.plan import Plan as Plan, read_plan as read_plan
    from walltime.campaign.results import Results as Results, campaign_caveats as campaign_caveats, read_results as read_results
    from walltime.campaign.run import (
        Progress as Progress,
        Status as Status,
        plan_keys as plan_keys,
        run_campaign as run_campaign,
        status as status,
    )
    from walltime.campaign.store import SCHEMA as SCHEMA, Store as Store
    from walltime.comparison.combination_means import (
        CombinationMean as CombinationMean,
        compare_cells as compare_cells,
        replication_cells as replication_cells,
    )

__getattr__, __dir__, __all__ = lazy(__name__)
