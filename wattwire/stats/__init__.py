"""Pure functions on arrays. Each says what it measures, how, what it misses, and its source."""

from wattwire.stats.blocked import (
    Fit,
    Ratio,
    bonferroni,
    fit_log,
    geometric_mean,
    mean_interval,
    ratio,
    slope,
    verdict,
)
from wattwire.stats.dependence import clusters_above, effective_size
from wattwire.stats.distribution import Ecdf, ecdf
from wattwire.stats.energy import additivity, joules_per_message
from wattwire.stats.modes import Mode, mode_between
from wattwire.stats.paired import block_intervals, sign_p
from wattwire.stats.percentiles import Percentile, nearest_rank, percentile
from wattwire.stats.ranks import paired_ratio_by_ranks
from wattwire.stats.results import BelowResolution, Interval, NotComputable, TooFew
from wattwire.stats.shares import same_share_p, share_interval
from wattwire.stats.steps import SIZES_MIN, loss_excess, step_logs

__all__ = [
    "BelowResolution",
    "Ecdf",
    "Fit",
    "Interval",
    "Mode",
    "NotComputable",
    "Percentile",
    "Ratio",
    "SIZES_MIN",
    "TooFew",
    "additivity",
    "block_intervals",
    "bonferroni",
    "clusters_above",
    "ecdf",
    "effective_size",
    "fit_log",
    "geometric_mean",
    "joules_per_message",
    "loss_excess",
    "mean_interval",
    "mode_between",
    "nearest_rank",
    "paired_ratio_by_ranks",
    "percentile",
    "ratio",
    "same_share_p",
    "share_interval",
    "sign_p",
    "slope",
    "step_logs",
    "verdict",
]
