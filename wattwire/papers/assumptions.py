"""Check assumptions before a test: normality, a transformation, outliers, equal variances.

Each docstring states the limits of its check. `decide` (path.py) calls the checks in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from wattwire.papers.significance import Significance, f_ratio
from wattwire.stats.groups import (
    FloatArray,
    Unanswered,
    Values,
    arrays,
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
    """Test whether the values, shape (n,), come from a normal distribution.

    What it computes: W, the squared correlation of the sorted values with normal scores, and its p.
    How: Royston's approximation for 3 to 5,000 values.
    What it misses: with few values, it rarely rejects (with 3 to 5 values, a lognormal sample
    usually passes). With hundreds of values, it rejects harmless departures.
    Reference: Shapiro & Wilk 1965, Biometrika 52:591; Royston 1995, Applied Statistics 44:547.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    refusal = refuse_groups([data, data], 0)
    if refusal is not None:
        return refusal
    if data.size < SHAPIRO_MIN:
        return TooFew(data.size, SHAPIRO_MIN, "values for Shapiro–Wilk")
    if data.size > SHAPIRO_MAX:
        return NotComputable(
            f"{data.size:,} values; Shapiro–Wilk is defined for up to {SHAPIRO_MAX:,}"
        )
    scaled = standardised([data])
    if not scatters(scaled):
        return NotComputable("all values are equal")
    statistic, p = scipy.stats.shapiro(scaled[0])
    return Significance("Shapiro–Wilk", "W", statistic, p, (data.size,), "Royston's approximation")


@dataclass(frozen=True)
class BoxCox:
    """A power transformation: its `power` (λ), and the groups on the transformed scale.

    The transformed values are (z^λ − 1)/λ, or log z at λ = 0. z is the value divided by the
    geometric mean of all values, so the result has no unit.
    """

    power: float
    groups: tuple[FloatArray, ...]


def box_cox(groups: Sequence[Values]) -> BoxCox | Unanswered:
    """Return the power that makes all groups of positive values as normal as possible.

    What it computes: λ by maximum likelihood, with a mean per group and a common variance.
    How: the maximum of the profile likelihood over −5 … 5.
    What it misses: a later p treats λ as known beforehand, and applies to means on a scale without
    practical meaning. A separate λ per group, as sometimes used, would compare groups on different
    scales.
    Reference: Box & Cox 1964, J. Royal Statistical Society B 26:211.
    """
    data = arrays(groups)
    refusal = refuse_groups([*data, *data], 1)
    if refusal is not None:
        return refusal
    not_positive = sum(int((group <= 0).sum()) for group in data)
    if not_positive:
        return NotComputable(
            f"zero or negative in {not_positive} values; Box–Cox needs positive values"
        )
    logs = [np.log(group) for group in data]
    centre = float(np.mean(np.concatenate(logs)))
    logs = [group - centre for group in logs]
    if not any(np.ptp(group) > 1e-9 for group in logs):
        return no_scatter()
    extent = max(float(np.max(np.abs(group))) for group in logs)
    limit = min(LAMBDA_LIMIT, 300.0 / max(extent, 1e-9))

    def lack(power: float) -> float:
        return _negative_log_likelihood(power, logs)

    # The objective is infinite where squares overflow, which the minimiser then avoids.
    with np.errstate(invalid="ignore"):
        minimum = scipy.optimize.minimize_scalar(
            lack, bounds=(-limit, limit), method="bounded", options={"xatol": 1e-9}
        )
        power = float(minimum.x)
        best = lack(power)
    if not np.isfinite(best) or abs(power) > limit - 1e-3:
        return NotComputable(f"Box–Cox has no optimal power between {-limit:g} and {limit:g}")
    return BoxCox(power, tuple(_transformed(group, power) for group in logs))


def _transformed(logs: FloatArray, power: float) -> FloatArray:
    """Return the Box–Cox transform, computed from the logarithm.

    This form does not overflow for any power within the limits.
    """
    return logs if power == 0 else np.asarray(np.expm1(power * logs) / power, dtype=np.float64)


def _negative_log_likelihood(power: float, logs: Sequence[FloatArray]) -> float:
    """Return the negative log likelihood of `power`, up to a constant.

    The geometric mean of the values is 1, so the Jacobian term is zero.
    """
    transformed = [_transformed(group, power) for group in logs]
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in transformed)
    count = sum(group.size for group in transformed)
    return 0.5 * count * np.log(squares / count) if squares > 0 else np.inf


@dataclass(frozen=True)
class Outliers:
    """The limits `low` and `high` for outliers; `kept` marks the values between them."""

    kept: np.ndarray
    low: float
    high: float

    @property
    def removed(self) -> int:
        """Return the number of values outside the limits."""
        return int(np.sum(~self.kept))


def iqr_outliers(values: Values, whisker: float = WHISKER) -> Outliers | Unanswered:
    """Mark values, shape (n,), more than `whisker` interquartile ranges outside the quartiles.

    What it computes: the fences of a box plot.
    How: quartiles by linear interpolation (R's type 7).
    What it misses: one in three normal samples of 20 values has an outlier by this rule. Removing
    outliers before a test increases its false-positive rate to 8–16 %.
    Reference: Tukey 1977, Exploratory Data Analysis, 2D; Frigge, Hoaglin & Iglewicz 1989, The
    American Statistician 43:50.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    refusal = refuse_groups([data, data], 1)
    if refusal is not None:
        return refusal
    largest = float(np.max(np.abs(data))) or 1.0
    scaled = data / largest
    lower, upper = (float(q) for q in np.quantile(scaled, (0.25, 0.75)))
    reach = whisker * (upper - lower)
    # The slack includes values that are outside a fence only because of rounding.
    slack = ROUNDING_OF_FENCES
    kept = (scaled >= lower - reach - slack) & (scaled <= upper + reach + slack)
    float_max = float(np.finfo(np.float64).max)
    fences = (max(-float_max, (lower - reach) * largest), min(float_max, (upper + reach) * largest))
    return Outliers(kept, *fences)


ROUNDING_OF_FENCES = 4 * float(np.finfo(np.float64).eps)


def levene(groups: Sequence[Values], centre: str = "median") -> Significance | Unanswered:
    """Test whether groups have equal variances.

    What it computes: an analysis of variance of the distances from the centre of each group. The
    centre is the mean (Levene) or the median (Brown–Forsythe, which is more robust). `centre` is
    "mean" or "median".
    What it misses: with five values per group, it detects a threefold standard deviation in only
    about one case in five.
    Reference: Levene 1960, in Contributions to Probability and Statistics; Brown & Forsythe 1974,
    JASA 69:364.
    """
    data = arrays(groups)
    refusal = refuse_groups(data, 2)
    if refusal is not None:
        return refusal
    scaled = standardised(data)
    centre_of = np.mean if centre == "mean" else np.median
    distances = [np.abs(group - centre_of(group)) for group in scaled]
    if not scatters(distances):
        return NotComputable("no scatter in the distances from the groups' centres")
    f_and_p = f_ratio(distances)
    counts = tuple(group.size for group in data)
    return Significance(
        "Levene" if centre == "mean" else "Brown–Forsythe",
        "F",
        f_and_p[0],
        f_and_p[1],
        counts,
        f"distances from the {centre}",
        (len(data) - 1.0, sum(counts) - float(len(data))),
    )
