"""What is looked at before a test: normality, a transformation, outliers, equal variances.

Each function says what it misses; `decide` (path.py) strings them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy import stats as scipy_stats

from wattwire.stats.paper.results import (
    FloatArray,
    Significance,
    Unanswered,
    Values,
    arrays,
    f_ratio,
    no_scatter,
    refuse_groups,
    scatters,
    standardised,
)
from wattwire.stats.results import NotComputable, TooFew

SHAPIRO_MIN, SHAPIRO_MAX = 3, 5000
LAMBDA_LIMIT = 5.0
WHISKER = 1.5


def shapiro_wilk(values: Values) -> Significance | Unanswered:
    """Whether values (n,) could come from a normal distribution.

    What: W, the squared correlation of the sorted values with normal scores, and its p.
    How: Royston's approximation, 3 to 5,000 values.
    What it misses: with few values hardly anything is rejected (at n = 3 to 5 a lognormal
    sample passes most of the time); with hundreds, harmless departures are.
    Reference: Shapiro & Wilk 1965, Biometrika 52:591; Royston 1995, Applied Statistics 44:547.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    refused = refuse_groups([data, data], 0)
    if refused is not None:
        return refused
    if data.size < SHAPIRO_MIN:
        return TooFew(data.size, SHAPIRO_MIN, "values for Shapiro–Wilk")
    if data.size > SHAPIRO_MAX:
        return NotComputable(f"{data.size:,} values: Shapiro–Wilk is known up to {SHAPIRO_MAX:,}")
    scaled = standardised([data])
    if not scatters(scaled):
        return NotComputable("all values are equal")
    statistic, p = scipy_stats.shapiro(scaled[0])
    return Significance("Shapiro–Wilk", "W", statistic, p, (data.size,), "Royston's approximation")


@dataclass(frozen=True)
class BoxCox:
    """A power transformation: `power` (λ) and the groups on the transformed scale.

    Transformed values are (z^λ − 1)/λ, log z at λ = 0, with z the value over the geometric mean
    of all: they have no unit.
    """

    power: float
    groups: tuple[FloatArray, ...]


def box_cox(groups: Sequence[Values]) -> BoxCox | Unanswered:
    """The power that makes groups of positive values most nearly normal, one for all groups.

    What: λ by maximum likelihood under a mean per group and one variance.
    How: the profile likelihood, maximised over −5 … 5.
    What it misses: a p after it takes λ as if it had been known beforehand, and speaks about
    means on a scale that nobody uses. A λ per group, as sometimes done, would compare groups
    on different scales.
    Reference: Box & Cox 1964, J. Royal Statistical Society B 26:211.
    """
    data = arrays(groups)
    refused = refuse_groups([*data, *data], 1)
    if refused is not None:
        return refused
    bad = sum(int((group <= 0).sum()) for group in data)
    if bad:
        return NotComputable(f"zero or negative in {bad} values: Box–Cox needs positive ones")
    logs = [np.log(group) for group in data]
    centre = float(np.mean(np.concatenate(logs)))
    logs = [group - centre for group in logs]
    if not any(np.ptp(group) > 1e-9 for group in logs):
        return no_scatter()
    extent = max(float(np.max(np.abs(group))) for group in logs)
    limit = min(LAMBDA_LIMIT, 300.0 / max(extent, 1e-9))

    def lack(power: float) -> float:
        return _negative_log_likelihood(power, logs)

    # Infinite lack of fit, where squares overflow, is only a place to go away from.
    with np.errstate(invalid="ignore"):
        found = optimize.minimize_scalar(
            lack, bounds=(-limit, limit), method="bounded", options={"xatol": 1e-9}
        )
        power = float(found.x)
        best = lack(power)
    if not np.isfinite(best) or abs(power) > limit - 1e-3:
        return NotComputable(f"Box–Cox finds no best power between {-limit:g} and {limit:g}")
    return BoxCox(power, tuple(_transformed(group, power) for group in logs))


def _transformed(logs: FloatArray, power: float) -> FloatArray:
    """Box–Cox from the logarithm, which no power below the limit can make overflow."""
    return logs if power == 0 else np.asarray(np.expm1(power * logs) / power, dtype=np.float64)


def _negative_log_likelihood(power: float, logs: Sequence[FloatArray]) -> float:
    """Up to a constant; the values' geometric mean is 1, so the Jacobian's term is zero."""
    moved = [_transformed(group, power) for group in logs]
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in moved)
    count = sum(group.size for group in moved)
    return 0.5 * count * np.log(squares / count) if squares > 0 else np.inf


@dataclass(frozen=True)
class Outliers:
    """Which values lie between the fences `low` and `high`: `kept` has the values' shape."""

    kept: np.ndarray
    low: float
    high: float

    @property
    def removed(self) -> int:
        """How many values lie outside."""
        return int(np.sum(~self.kept))


def iqr_outliers(values: Values, whisker: float = WHISKER) -> Outliers | Unanswered:
    """Values (n,) further than `whisker` interquartile ranges outside the quartiles.

    What: the fences of a box plot. How: quartiles by linear interpolation (R's type 7).
    What it misses: in normal data of 20 values one sample in three has such a value; taking
    them out before a test raises its false alarms to 8–16 %.
    Reference: Tukey 1977, Exploratory Data Analysis, 2D; Frigge, Hoaglin & Iglewicz 1989, The
    American Statistician 43:50.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    refused = refuse_groups([data, data], 1)
    if refused is not None:
        return refused
    largest = float(np.max(np.abs(data))) or 1.0
    scaled = data / largest
    lower, upper = (float(q) for q in np.quantile(scaled, (0.25, 0.75)))
    reach = whisker * (upper - lower)
    # A value on the fence by rounding alone is inside.
    slack = ROUNDING_OF_FENCES
    kept = (scaled >= lower - reach - slack) & (scaled <= upper + reach + slack)
    most = float(np.finfo(np.float64).max)
    fences = (max(-most, (lower - reach) * largest), min(most, (upper + reach) * largest))
    return Outliers(kept, *fences)


ROUNDING_OF_FENCES = 4 * float(np.finfo(np.float64).eps)


def levene(groups: Sequence[Values], centre: str = "median") -> Significance | Unanswered:
    """Whether groups have equal variances.

    What: analysis of variance of the distances from each group's centre: its mean (Levene) or
    its median (Brown–Forsythe, the more robust). `centre` is "mean" or "median".
    What it misses: with five values a group it sees a ratio of standard deviations of 3 about
    one time in five.
    Reference: Levene 1960, in Contributions to Probability and Statistics; Brown & Forsythe
    1974, JASA 69:364.
    """
    data = arrays(groups)
    refused = refuse_groups(data, 2)
    if refused is not None:
        return refused
    scaled = standardised(data)
    middle = np.mean if centre == "mean" else np.median
    distances = [np.abs(group - middle(group)) for group in scaled]
    if not scatters(distances):
        return NotComputable("no scatter in the distances from the groups' centres")
    found = f_ratio(distances)
    counts = tuple(group.size for group in data)
    return Significance(
        "Levene" if centre == "mean" else "Brown–Forsythe",
        "F",
        found[0],
        found[1],
        counts,
        f"distances from the {centre}",
        (len(data) - 1.0, sum(counts) - float(len(data))),
    )
