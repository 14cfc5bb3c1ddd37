"""Metrics, each a function of plain arrays with its source; every metric is defined once."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.metrics.batches import BatchMeans as BatchMeans, batch_means as batch_means, jobs_needed as jobs_needed
    from walltime.metrics.changes import ChangedJob as ChangedJob, ChangedUser as ChangedUser, Gains as Gains, Side as Side, gains as gains
    from walltime.metrics.confidence import (
        Interval as Interval,
        bootstrap as bootstrap,
        ends_of_runs as ends_of_runs,
        holm as holm,
        mean_interval as mean_interval,
        paired_difference as paired_difference,
        paired_probability as paired_probability,
        percentile_band as percentile_band,
        prediction_interval as prediction_interval,
        range_meaning as range_meaning,
        range_of_runs as range_of_runs,
        relative_spread as relative_spread,
    )
    from walltime.metrics.dynamics import Dynamics as Dynamics, DynamicsSummary as DynamicsSummary, summarize_dynamics as summarize_dynamics
    from walltime.metrics.estimates import RequestedTime as RequestedTime, jobs_by_use as jobs_by_use, requested_time as requested_time
    from walltime.metrics.further import FURTHER as FURTHER, metric as metric
    from walltime.metrics.jobs import (
        BackfillStatistics as BackfillStatistics,
        backfill_statistics as backfill_statistics,
        bounded_slowdown as bounded_slowdown,
        relative_difference as relative_difference,
        response as response,
        slowdown as slowdown,
        wait as wait,
        weighted_wait as weighted_wait,
    )
    from walltime.metrics.machine import (
        FEW_WAITING as FEW_WAITING,
        busy_processors as busy_processors,
        levels_at as levels_at,
        means_between as means_between,
        offered_load as offered_load,
        queue_length as queue_length,
        queue_stretches as queue_stretches,
        steps as steps,
        timeline as timeline,
        utilization as utilization,
    )
    from walltime.metrics.months import Month as Month, month_starts as month_starts, monthly as monthly
    from walltime.metrics.predictions import (
        AdjustmentClass as AdjustmentClass,
        PredictionSummary as PredictionSummary,
        Reservations as Reservations,
        adjustment_classes as adjustment_classes,
        mean_gain as mean_gain,
        priority_at_start as priority_at_start,
        reservations as reservations,
        spread_within_groups as spread_within_groups,
        summarize_predictions as summarize_predictions,
        use_of_request as use_of_request,
        weighted_wait_under as weighted_wait_under,
    )
    from walltime.metrics.recorded import (
        RecordedWaits as RecordedWaits,
        correlation as correlation,
        rank_correlation as rank_correlation,
        recorded_waits as recorded_waits,
    )
    from walltime.metrics.series import (
        halves_differ as halves_differ,
        series_interval as series_interval,
        stratified_interval as stratified_interval,
    )
    from walltime.metrics.summary import (
        LAST as LAST,
        TRIMS as TRIMS,
        Summary as Summary,
        check_trim as check_trim,
        field_values as field_values,
        measured as measured,
        no_jobs_error as no_jobs_error,
        summarize as summarize,
    )

__getattr__, __dir__, __all__ = lazy(__name__)
