"""The way a paper walks from groups of runs to a p, every decision kept with its number.

What: Shapiro–Wilk in each group → Box–Cox where a group is not normal → interquartile outliers →
Levene → t, ANOVA, Welch's or Kruskal–Wallis → pairs. All tests are unpaired.
How: where outliers were found, everything from Levene on is done twice, with all values and
without them; both results stand side by side and neither is called the result.
What it misses: the data choose the test, so its level is not the nominal one (`rates`); blocks
are ignored (`Path.blocks` says how much of the scatter they explain).
Reference: Rochon, Gondan & Kieser 2012, BMC Medical Research Methodology 12:81 (testing
normality first); Zimmerman 2004, British J. of Mathematical and Statistical Psychology 57:173.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire.stats.blocked import centred
from wattwire.stats.paper.assumptions import (
    BoxCox,
    Outliers,
    box_cox,
    iqr_outliers,
    levene,
    shapiro_wilk,
)
from wattwire.stats.paper.kruskal import kruskal_wallis
from wattwire.stats.paper.means import anova, student_t, welch_anova, welch_t
from wattwire.stats.paper.posthoc import dunn, games_howell, tukey_hsd
from wattwire.stats.paper.results import FloatArray, Pair, Significance, Unanswered, Values
from wattwire.stats.results import NotComputable, TooFew

LEVEL = 0.05
Found = Significance | BoxCox | Outliers | TooFew | NotComputable


@dataclass(frozen=True)
class Step:
    """One decision: what was looked at, in which group ("" for all), its number, and so what."""

    name: str
    group: str
    found: Found
    decision: str


@dataclass(frozen=True)
class Branch:
    """From equal variances on: `test` over all groups, then `pairs` where it rejected.

    `pairs` is None where pairs were not asked for: two groups, or nothing rejected.
    """

    counts: Mapping[str, int]
    steps: tuple[Step, ...]
    test: Significance | Unanswered
    pairs: tuple[Pair, ...] | Unanswered | None


@dataclass(frozen=True)
class BlockShare:
    """What blocks explain of the scatter inside groups, and what chance alone would.

    Both are shares of the sum of squares; `degrees` are the blocks' degrees of freedom.
    """

    share: float
    by_chance: float
    degrees: int


@dataclass(frozen=True)
class Path:
    """A whole walk. `scale` is "as measured" or "Box–Cox"; `level` the level of every decision.

    `missing` counts values dropped because they were not measured, by group. `without_outliers`
    is None where no value lay outside the fences; `removed` counts those that did, by group.
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
        """Share of all values that lay outside the fences."""
        total = sum(self.counts.values())
        return sum(self.removed.values()) / total if total else 0.0

    @property
    def disagrees(self) -> bool:
        """Whether taking outliers out turns the verdict round; a test on both sides is needed."""
        if self.without_outliers is None:
            return False
        before, after = self.with_all.test, self.without_outliers.test
        if not isinstance(before, Significance) or not isinstance(after, Significance):
            return False
        return before.rejects(self.level) != after.rejects(self.level)

    @property
    def undecided_without(self) -> bool:
        """Whether a test was there that taking outliers out leaves nothing for."""
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
    """Walk the paper's way over named groups of run values, shape (runs of the group,) each.

    `blocks` gives each value's block, in the same shapes, to say what unpaired tests ignore.
    Missing values (NaN) are dropped and counted; infinite ones leave only ranks. `pairs` says
    whether pairs are compared after a rejection (simulations have no use for them).
    Raises ValueError where blocks and values do not match, or `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: {level} found, allowed: between 0 and 1")
    given = {name: np.asarray(v, dtype=np.float64).ravel() for name, v in groups.items()}
    for name, values in given.items():
        if blocks is not None and len(blocks[name]) != values.size:
            raise ValueError(f"{name}: {len(blocks[name])} blocks for {values.size} values")
    known = {name: values[~np.isnan(values)] for name, values in given.items()}
    missing = {name: given[name].size - values.size for name, values in known.items()}
    scaled, normal, scale, steps = _scale(known, level)
    with_all = _branch(scaled, normal, level, pairs)
    removed, kept, fences = _outliers(scaled)
    steps += fences
    without = _branch(kept, normal, level, pairs) if any(removed.values()) else None
    ignored = None
    if blocks is not None:
        ignored = _block_share(
            scaled,
            {n: [b for b, v in zip(blocks[n], given[n], strict=True) if v == v] for n in given},
        )
    return Path(
        level,
        {name: values.size for name, values in known.items()},
        missing,
        scale,
        normal,
        tuple(steps),
        with_all,
        without,
        removed,
        ignored,
    )


Named = dict[str, FloatArray]


def _scale(known: Named, level: float) -> tuple[Named, bool, str, list[Step]]:
    """The scale to go on with, whether it is normal, and the steps there."""
    steps, normal = _normality(known, level, "Shapiro–Wilk")
    if normal or any(isinstance(step.found, (TooFew, NotComputable)) for step in steps):
        return known, normal, "as measured", steps
    found = box_cox(list(known.values()))
    if not isinstance(found, BoxCox):
        steps.append(Step("Box–Cox", "", found, "not transformed"))
        return known, False, "as measured", steps
    moved = dict(zip(known, found.groups, strict=True))
    after, normal = _normality(moved, level, "Shapiro–Wilk after Box–Cox")
    decision = "transformed: no group departs any more" if normal else "not used: no help"
    steps.append(Step("Box–Cox", "", found, decision))
    steps += after
    return (moved, True, "Box–Cox", steps) if normal else (known, False, "as measured", steps)


def _normality(groups: Named, level: float, name: str) -> tuple[list[Step], bool]:
    steps = []
    for group, values in groups.items():
        found = shapiro_wilk(values)
        if not isinstance(found, Significance):
            decision = "not taken for normal"
        else:
            decision = "not normal" if found.rejects(level) else "normality not rejected"
        steps.append(Step(name, group, found, decision))
    return steps, all(step.decision == "normality not rejected" for step in steps)


def _outliers(groups: Named) -> tuple[dict[str, int], Named, list[Step]]:
    removed, kept, steps = {}, {}, []
    for name, values in groups.items():
        found = iqr_outliers(values)
        removed[name], kept[name] = 0, values
        if isinstance(found, Outliers):
            removed[name], kept[name] = found.removed, values[found.kept]
            decision = f"{found.removed} of {values.size} outside the fences"
        else:
            decision = "nothing removed"
        steps.append(Step("IQR outliers", name, found, decision))
    return removed, kept, steps


def _branch(groups: Named, normal: bool, level: float, wanted: bool) -> Branch:
    data = list(groups.values())
    steps = []
    equal = True
    for centre in ("mean", "median"):
        found = levene(data, centre)
        rejected = isinstance(found, Significance) and found.rejects(level)
        unknown = not isinstance(found, Significance)
        # The median's is what libraries call Levene by default, and the more robust: it decides.
        equal = not rejected if centre == "median" else equal
        decision = "unequal variances" if rejected else "equal variances not rejected"
        name = "Levene" if centre == "mean" else "Brown–Forsythe"
        steps.append(Step(name, "", found, "not decided" if unknown else decision))
    test = _test(data, normal, equal)
    wanted = wanted and len(data) > 2 and isinstance(test, Significance) and test.rejects(level)
    pairs = _pairs(groups, normal, equal) if wanted else None
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
    """Least squares with a mean per group, without and with a mean per block."""
    values = np.concatenate([*groups.values(), np.zeros(0)])
    if not np.isfinite(values).all():
        return NotComputable("infinite values: scatter has no size")
    names = [block for group in groups for block in blocks[group]]
    distinct = list(dict.fromkeys(names))
    used = [group for group in groups if groups[group].size]
    if len(distinct) < 2 or values.size <= len(used) + len(distinct) - 1:
        return TooFew(values.size, len(used) + len(distinct), "values in two blocks or more")
    values = values / (float(np.max(np.abs(values))) or 1.0)
    of_group = np.repeat(np.eye(len(used)), [groups[g].size for g in used], axis=0)
    before = _squares(of_group, values)
    if before <= 1e-20 * values.size:
        return NotComputable("no scatter inside the groups")
    where = {block: at for at, block in enumerate(distinct)}
    block_of_value = np.array([where[name] for name in names])
    # What a mean per block explains is what centring within blocks takes away.
    in_block = centred(np.column_stack([of_group, values]), block_of_value)
    after = _squares(in_block[:, :-1], in_block[:, -1])
    rank = len(distinct) + int(np.linalg.matrix_rank(in_block[:, :-1]))
    degrees, left = rank - len(used), values.size - len(used)
    return BlockShare(max(0.0, 1 - after / before), degrees / left, degrees)


def _squares(design: FloatArray, values: FloatArray) -> float:
    solved = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.sum((values - design @ solved) ** 2))
