"""Metrics, each a function of plain arrays with its source; every metric is defined once."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.metrics.batches import BatchMeans as BatchMeans
    from walltime.metrics.batches import batch_means as batch_means
    from walltime.metrics.batches import jobs_needed as jobs_needed
    from walltime.metrics.changes import ChangedJob as ChangedJob
    from walltime.metrics.changes import ChangedUser as ChangedUser
    from walltime.metrics.changes import Gains as Gains
    from walltime.metrics.changes import Side as Side
    from walltime.metrics.changes import gains as gains
    from walltime.metrics.confidence import Interval as Interval
    from walltime.metrics.confidence import bootstrap as bootstrap
    from walltime.metrics.confidence import ends_of_runs as ends_of_runs
    from walltime.metrics.confidence import holm as holm
    from walltime.metrics.confidence import mean_interval as mean_interval
    from walltime.metrics.confidence import paired_difference as paired_difference
    from walltime.metrics.confidence import paired_probability as paired_probability
    from walltime.metrics.confidence import percentile_band as percentile_band
    from walltime.metrics.confidence import prediction_interval as prediction_interval
    from walltime.metrics.confidence import range_meaning as range_meaning
    from walltime.metrics.confidence import range_of_runs as range_of_runs
    from walltime.metrics.confidence import relative_spread as relative_spread
    from walltime.metrics.dynamics import Dynamics as Dynamics
    from walltime.metrics.dynamics import DynamicsSummary as DynamicsSummary
    from walltime.metrics.dynamics import summarize_dynamics as summarize_dynamics
    from walltime.metrics.estimates import RequestedTime as RequestedTime
    from walltime.metrics.estimates import jobs_by_use as jobs_by_use
    from walltime.metrics.estimates import requested_time as requested_time
    from walltime.metrics.further import FURTHER as FURTHER
    from walltime.metrics.further import metric as metric
    from walltime.metrics.jobs import BackfillStatistics as BackfillStatistics
    from walltime.metrics.jobs import backfill_statistics as backfill_statistics
    from walltime.metrics.jobs import bounded_slowdown as bounded_slowdown
    from walltime.metrics.jobs import relative_difference as relative_difference
    from walltime.metrics.jobs import response as response
    from walltime.metrics.jobs import slowdown as slowdown
    from walltime.metrics.jobs import wait as wait
    from walltime.metrics.jobs import weighted_wait as weighted_wait
    from walltime.metrics.machine import FEW_WAITING as FEW_WAITING
    from walltime.metrics.machine import busy_processors as busy_processors
    from walltime.metrics.machine import levels_at as levels_at
    from walltime.metrics.machine import means_between as means_between
    from walltime.metrics.machine import offered_load as offered_load
    from walltime.metrics.machine import queue_length as queue_length
    from walltime.metrics.machine import queue_stretches as queue_stretches
    from walltime.metrics.machine import steps as steps
    from walltime.metrics.machine import timeline as timeline
    from walltime.metrics.machine import utilization as utilization
    from walltime.metrics.months import Month as Month
    from walltime.metrics.months import month_starts as month_starts
    from walltime.metrics.months import monthly as monthly
    from walltime.metrics.predictions import AdjustmentClass as AdjustmentClass
    from walltime.metrics.predictions import PredictionSummary as PredictionSummary
    from walltime.metrics.predictions import Reservations as Reservations
    from walltime.metrics.predictions import adjustment_classes as adjustment_classes
    from walltime.metrics.predictions import mean_gain as mean_gain
    from walltime.metrics.predictions import priority_at_start as priority_at_start
    from walltime.metrics.predictions import reservations as reservations
    from walltime.metrics.predictions import spread_within_groups as spread_within_groups
    from walltime.metrics.predictions import summarize_predictions as summarize_predictions
    from walltime.metrics.predictions import use_of_request as use_of_request
    from walltime.metrics.predictions import weighted_wait_under as weighted_wait_under
    from walltime.metrics.recorded import RecordedWaits as RecordedWaits
    from walltime.metrics.recorded import correlation as correlation
    from walltime.metrics.recorded import rank_correlation as rank_correlation
    from walltime.metrics.recorded import recorded_waits as recorded_waits
    from walltime.metrics.series import halves_differ as halves_differ
    from walltime.metrics.series import series_interval as series_interval
    from walltime.metrics.series import stratified_interval as stratified_interval
    from walltime.metrics.summary import LAST as LAST
    from walltime.metrics.summary import TRIMS as TRIMS
    from walltime.metrics.summary import Summary as Summary
    from walltime.metrics.summary import check_trim as check_trim
    from walltime.metrics.summary import field_values as field_values
    from walltime.metrics.summary import measured as measured
    from walltime.metrics.summary import no_jobs_error as no_jobs_error
    from walltime.metrics.summary import summarize as summarize

__getattr__, __dir__, __all__ = lazy(__name__)
