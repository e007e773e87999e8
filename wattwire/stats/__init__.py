"""Statistics as pure functions of arrays. Each docstring states the method and its source."""

from wattwire.stats import planning, sequential
from wattwire.stats.block_ranks import BlockRanks, friedman, quade
from wattwire.stats.blocked import (
    Fit,
    Ratio,
    bonferroni,
    cell_means,
    conclusion,
    fit_log,
    fit_plain,
    geometric_mean,
    mean_interval,
    ratio,
    repeat_limit,
    slope,
    treatment_ratio,
    within_treatments,
)
from wattwire.stats.bootstrap import bootstrap_interval
from wattwire.stats.carry_over import drift, predecessor_effect
from wattwire.stats.changepoint_by_size import SIZES_MIN, loss_excess, step_logs
from wattwire.stats.diagnostics import (
    RUNS_MAX,
    FarOut,
    SerialCorrelation,
    Spread,
    far_out,
    serial_correlation,
    spread_between,
    spreads_between,
)
from wattwire.stats.differences import Difference, difference
from wattwire.stats.energy import additivity, joules_per_message
from wattwire.stats.linear import LackOfFit, LinearFit, linear_fit
from wattwire.stats.mcb import Alternative, Ranking, disjoint_confidence, lower_at, lowest_of
from wattwire.stats.paired import block_intervals, sign_p
from wattwire.stats.proportions import alarm_rate, same_share_p, share_interval
from wattwire.stats.ranks import paired_ratio_by_ranks, paired_shift_by_ranks
from wattwire.stats.results import (
    Band,
    BelowResolution,
    Exact,
    Interval,
    Never,
    NotComputable,
    NotPositive,
    TooFew,
)
from wattwire.stats.series.clock_lines import ClockLines, ClockStep, clock_lines, clock_offset
from wattwire.stats.series.dependence import clusters_above, effective_size
from wattwire.stats.series.distribution import Ecdf, ecdf
from wattwire.stats.series.modes import Mode, mode_between
from wattwire.stats.series.percentiles import Percentile, carried_size, nearest_rank, percentile
from wattwire.stats.series.ticks import Ticks, ticks_of
from wattwire.stats.series.warm_up import Course, classify, consensus
from wattwire.stats.two_occasions import welch_difference, welch_ratio
from wattwire.stats.two_samples import cliffs_delta, ratio_by_ranks, shift_by_ranks
from wattwire.stats.variance import Effect, interaction, main_effect, omega_squared

__all__ = [
    "cell_means",
    "disjoint_confidence",
    "RUNS_MAX",
    "SIZES_MIN",
    "Alternative",
    "Band",
    "BelowResolution",
    "BlockRanks",
    "ClockLines",
    "ClockStep",
    "Course",
    "Difference",
    "Ecdf",
    "Effect",
    "Exact",
    "FarOut",
    "Fit",
    "Interval",
    "LackOfFit",
    "LinearFit",
    "Mode",
    "NotComputable",
    "Never",
    "NotPositive",
    "Percentile",
    "Ranking",
    "Ratio",
    "SerialCorrelation",
    "Spread",
    "Ticks",
    "TooFew",
    "additivity",
    "alarm_rate",
    "block_intervals",
    "bonferroni",
    "bootstrap_interval",
    "carried_size",
    "classify",
    "cliffs_delta",
    "clock_lines",
    "clock_offset",
    "clusters_above",
    "consensus",
    "difference",
    "drift",
    "ecdf",
    "effective_size",
    "far_out",
    "fit_log",
    "fit_plain",
    "friedman",
    "geometric_mean",
    "interaction",
    "joules_per_message",
    "linear_fit",
    "loss_excess",
    "lower_at",
    "lowest_of",
    "main_effect",
    "mean_interval",
    "mode_between",
    "nearest_rank",
    "omega_squared",
    "paired_ratio_by_ranks",
    "paired_shift_by_ranks",
    "planning",
    "percentile",
    "predecessor_effect",
    "quade",
    "ratio",
    "repeat_limit",
    "ratio_by_ranks",
    "same_share_p",
    "sequential",
    "serial_correlation",
    "share_interval",
    "shift_by_ranks",
    "sign_p",
    "slope",
    "spread_between",
    "spreads_between",
    "step_logs",
    "ticks_of",
    "treatment_ratio",
    "conclusion",
    "welch_difference",
    "welch_ratio",
    "within_treatments",
]
