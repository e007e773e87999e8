"""Apply a paper's decision path to groups of runs, and record each decision.

What it computes: the path Shapiro–Wilk in each group → Box–Cox if a group is not normal →
interquartile outliers → Levene → t, ANOVA, Welch's or Kruskal–Wallis → pairs. All tests are
unpaired.
How: if there are outliers, every step from Levene is done with and without them, and both results
are reported with equal weight.
What it misses: the data select the test, so its actual level differs from the nominal level
(`rates`). Blocks are ignored; `Path.blocks` is the share of the scatter that they explain.
Reference: Rochon, Gondan & Kieser 2012, BMC Medical Research Methodology 12:81 (testing normality
first); Zimmerman 2004, British J. of Mathematical and Statistical Psychology 57:173.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire.papers.assumptions import (
    BoxCox,
    Outliers,
    box_cox,
    iqr_outliers,
    levene,
    shapiro_wilk,
)
from wattwire.papers.kruskal import kruskal_wallis
from wattwire.papers.means import anova, student_t, welch_anova, welch_t
from wattwire.papers.posthoc import dunn, games_howell, tukey_hsd
from wattwire.papers.significance import Pair, Significance
from wattwire.stats.blocked import centred
from wattwire.stats.groups import FloatArray, Unanswered, Values
from wattwire.stats.results import NotComputable, TooFew

LEVEL = 0.05
Found = Significance | BoxCox | Outliers | TooFew | NotComputable


@dataclass(frozen=True)
class Step:
    """One decision: the check, its group ("" for all groups), its result, and the decision."""

    name: str
    group: str
    result: Found
    decision: str


@dataclass(frozen=True)
class Branch:
    """The part of the path that begins with the test of equal variances.

    `test` compares all groups. `pairs` contains the comparisons of pairs after a rejection. It is
    None if pairs were not requested, if there are only two groups, or without a rejection.
    """

    counts: Mapping[str, int]
    steps: tuple[Step, ...]
    test: Significance | Unanswered
    pairs: tuple[Pair, ...] | Unanswered | None


@dataclass(frozen=True)
class BlockShare:
    """Share of the scatter within groups that blocks explain, and the share expected by chance.

    Both are shares of the sum of squares. `degrees` are the degrees of freedom of the blocks.
    """

    share: float
    by_chance: float
    degrees: int


@dataclass(frozen=True)
class Path:
    """A complete decision path.

    `scale` is "as measured" or "Box–Cox". `level` is the significance level of every decision.
    `missing` is the number of missing values by group, which are excluded. `without_outliers` is
    None if there are no outliers. `removed` is the number of outliers by group.
    """

    level: float
    counts: Mapping[str, int]
    missing: Mapping[str, int]
    scale: str
    normal: bool
    steps: tuple[Step, ...]
    with_all: Branch
    without_outliers: Branch | None
    removed: Mapping[str, int]
    blocks: BlockShare | Unanswered | None

    @property
    def removed_share(self) -> float:
        """Return the share of values that are outliers."""
        total = sum(self.counts.values())
        return sum(self.removed.values()) / total if total else 0.0

    @property
    def disagrees(self) -> bool:
        """Return whether removing outliers changes the verdict; False unless both tests exist."""
        if self.without_outliers is None:
            return False
        before, after = self.with_all.test, self.without_outliers.test
        if not isinstance(before, Significance) or not isinstance(after, Significance):
            return False
        return before.rejects(self.level) != after.rejects(self.level)

    @property
    def undecided_without(self) -> bool:
        """Return whether a test exists for all values, but not after removing outliers."""
        without = self.without_outliers
        return (
            without is not None
            and isinstance(self.with_all.test, Significance)
            and not isinstance(without.test, Significance)
        )


def decide(
    groups: Mapping[str, Values],
    blocks: Mapping[str, Sequence[Hashable]] | None = None,
    level: float = LEVEL,
    pairs: bool = True,
) -> Path:
    """Return the decision path over named groups of values, shape (runs of the group,) each.

    `blocks` contains the block of each value, in the same shapes. It is used to report the
    variation that unpaired tests ignore. Missing values (NaN) are excluded and counted. Infinite
    values allow only rank tests. `pairs` enables comparisons of pairs after a rejection;
    simulations disable it. Raise ValueError if blocks and values do not match, or if `level` is not
    between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: found {level}; allowed: a number between 0 and 1")
    arrays = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in groups.items()}
    for name, values in arrays.items():
        if blocks is not None and len(blocks[name]) != values.size:
            raise ValueError(f"{name}: {len(blocks[name])} blocks for {values.size} values")
    present = {name: values[~np.isnan(values)] for name, values in arrays.items()}
    missing = {name: arrays[name].size - values.size for name, values in present.items()}
    scaled, normal, scale, steps = _scale(present, level)
    with_all = _branch(scaled, normal, level, pairs)
    removed, without_outliers, outlier_steps = _outliers(scaled)
    steps += outlier_steps
    branch_without_outliers = (
        _branch(without_outliers, normal, level, pairs) if any(removed.values()) else None
    )
    block_share = None
    if blocks is not None:
        block_share = _block_share(
            scaled,
            {
                group: [
                    block
                    for block, value in zip(blocks[group], arrays[group], strict=True)
                    if value == value
                ]
                for group in arrays
            },
        )
    return Path(
        level,
        {name: values.size for name, values in present.items()},
        missing,
        scale,
        normal,
        tuple(steps),
        with_all,
        branch_without_outliers,
        removed,
        block_share,
    )


Named = dict[str, FloatArray]


def _scale(present: Named, level: float) -> tuple[Named, bool, str, list[Step]]:
    """Return the scaled groups, whether they are normal, the name of the scale, and the steps."""
    steps, normal = _normality(present, level, "Shapiro–Wilk")
    if normal or any(isinstance(step.result, (TooFew, NotComputable)) for step in steps):
        return present, normal, "as measured", steps
    transformation = box_cox(list(present.values()))
    if not isinstance(transformation, BoxCox):
        steps.append(Step("Box–Cox", "", transformation, "not transformed"))
        return present, False, "as measured", steps
    transformed = dict(zip(present, transformation.groups, strict=True))
    steps_after, normal = _normality(transformed, level, "Shapiro–Wilk after Box–Cox")
    decision = (
        "transformed: no group departs from normality"
        if normal
        else ("not used: a group still departs from normality")
    )
    steps.append(Step("Box–Cox", "", transformation, decision))
    steps += steps_after
    return (
        (transformed, True, "Box–Cox", steps) if normal else (present, False, "as measured", steps)
    )


def _normality(groups: Named, level: float, name: str) -> tuple[list[Step], bool]:
    steps = []
    for group, values in groups.items():
        result = shapiro_wilk(values)
        if not isinstance(result, Significance):
            decision = "not normal"
        else:
            decision = "not normal" if result.rejects(level) else "normality not rejected"
        steps.append(Step(name, group, result, decision))
    return steps, all(step.decision == "normality not rejected" for step in steps)


def _outliers(groups: Named) -> tuple[dict[str, int], Named, list[Step]]:
    removed, kept, steps = {}, {}, []
    for name, values in groups.items():
        result = iqr_outliers(values)
        removed[name], kept[name] = 0, values
        if isinstance(result, Outliers):
            removed[name], kept[name] = result.removed, values[result.kept]
            decision = f"{result.removed} of {values.size} outside the fences"
        else:
            decision = "nothing removed"
        steps.append(Step("IQR outliers", name, result, decision))
    return removed, kept, steps


def _branch(groups: Named, normal: bool, level: float, compare_pairs: bool) -> Branch:
    data = list(groups.values())
    steps = []
    equal = True
    for centre in ("mean", "median"):
        result = levene(data, centre)
        rejected = isinstance(result, Significance) and result.rejects(level)
        unknown = not isinstance(result, Significance)
        # The median version decides, because it is the default of libraries and more robust.
        equal = not rejected if centre == "median" else equal
        decision = "unequal variances" if rejected else "equal variances not rejected"
        name = "Levene" if centre == "mean" else "Brown–Forsythe"
        steps.append(Step(name, "", result, "not decided" if unknown else decision))
    test = _test(data, normal, equal)
    compare_pairs = (
        compare_pairs and len(data) > 2 and isinstance(test, Significance) and test.rejects(level)
    )
    pairs = _pairs(groups, normal, equal) if compare_pairs else None
    counts = {name: values.size for name, values in groups.items()}
    return Branch(counts, tuple(steps), test, pairs)


def _test(data: Sequence[FloatArray], normal: bool, equal: bool) -> Significance | Unanswered:
    if not normal:
        return kruskal_wallis(data)
    if len(data) == 2:
        return (student_t if equal else welch_t)(data[0], data[1])
    return (anova if equal else welch_anova)(data)


def _pairs(groups: Named, normal: bool, equal: bool) -> tuple[Pair, ...] | Unanswered:
    if not normal:
        return dunn(groups)
    return (tukey_hsd if equal else games_howell)(groups)


def _block_share(
    groups: Named, blocks: Mapping[str, Sequence[Hashable]]
) -> BlockShare | Unanswered:
    """Return the share of the sum of squares within groups that the blocks explain.

    The function compares least-squares fits with a mean per group, with and without a mean per
    block.
    """
    values = np.concatenate([*groups.values(), np.zeros(0)])
    if not np.isfinite(values).all():
        return NotComputable("infinite values have no measurable scatter")
    value_blocks = [block for group in groups for block in blocks[group]]
    distinct = list(dict.fromkeys(value_blocks))
    used_groups = [group for group in groups if groups[group].size]
    if len(distinct) < 2 or values.size <= len(used_groups) + len(distinct) - 1:
        return TooFew(values.size, len(used_groups) + len(distinct), "values in two blocks or more")
    values = values / (float(np.max(np.abs(values))) or 1.0)
    group_columns = np.repeat(
        np.eye(len(used_groups)), [groups[g].size for g in used_groups], axis=0
    )
    squares_without = _squares(group_columns, values)
    if squares_without <= 1e-20 * values.size:
        return NotComputable("no scatter within the groups")
    block_number = {block: number for number, block in enumerate(distinct)}
    block_of_value = np.array([block_number[block] for block in value_blocks])
    # Centring within blocks removes exactly the scatter that a mean per block explains.
    within_blocks = centred(np.column_stack([group_columns, values]), block_of_value)
    squares_with = _squares(within_blocks[:, :-1], within_blocks[:, -1])
    rank = len(distinct) + int(np.linalg.matrix_rank(within_blocks[:, :-1]))
    degrees, error_degrees = rank - len(used_groups), values.size - len(used_groups)
    return BlockShare(
        max(0.0, 1 - squares_with / squares_without), degrees / error_degrees, degrees
    )


def _squares(design: FloatArray, values: FloatArray) -> float:
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.sum((values - design @ coefficients) ** 2))
