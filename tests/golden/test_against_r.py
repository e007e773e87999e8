"""Test that all tests and effect sizes agree with R on the same samples (from_r.R, from_r.csv).

The tolerance is 1e-9 for the same algorithm. It is stated for each test in which either side
approximates or searches. R is not needed, because its results are stored, with its version in the
first line.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from wattwire import papers, stats
from wattwire.stats import association, block_ranks, blocked, ranks, two_samples, variance

HERE = Path(__file__).parent
SAME = 1e-9
SHAPIRO = 1e-6  # the same approximation, with W's coefficients rounded in another order
RANGE = 1e-6  # both sides integrate the studentised range numerically
SEARCHED = 1e-6  # a maximum is flat, so errors of the search have a small effect


def read(name: str) -> list[dict[str, str]]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


SAMPLES: dict[str, dict[str, list[float]]] = {}
OTHERS: dict[str, list[tuple[str, str, float]]] = {}
for row in read("samples.csv"):
    values = SAMPLES.setdefault(row["sample"], {}).setdefault(row["group"], [])
    values.append(float(row["value"]))
    OTHERS.setdefault(row["sample"], []).append((row["group"], row["other"], float(row["value"])))
R: dict[str, dict[str, float]] = {}
for row in read("from_r.csv"):
    R.setdefault(row["sample"], {})[row["quantity"]] = float(row["value"])
LOOKED_AT: set[tuple[str, str]] = set()


def same(found: float, sample: str, quantity: str, tolerance: float = SAME) -> None:
    LOOKED_AT.add((sample, quantity))
    expected = R[sample][quantity]
    assert found == pytest.approx(expected, rel=tolerance, abs=1e-300), f"{sample}: {quantity}"


@pytest.mark.parametrize("sample", ["two", "three", "small", "many"])
def test_shapiro_wilk(sample: str) -> None:
    for group, values in SAMPLES[sample].items():
        found = papers.shapiro_wilk(values)
        same(found.statistic, sample, f"shapiro.W.{group}", SHAPIRO)
        same(found.p, sample, f"shapiro.p.{group}", SHAPIRO)


@pytest.mark.parametrize("sample", ["three", "many"])
def test_box_cox(sample: str) -> None:
    found = papers.box_cox(list(SAMPLES[sample].values()))
    same(found.power, sample, "boxcox.power", SEARCHED)


def test_fences_of_outliers() -> None:
    found = papers.iqr_outliers(SAMPLES["outliers"]["a"])
    same(found.low, "outliers", "iqr.low")
    same(found.high, "outliers", "iqr.high")
    same(found.removed, "outliers", "iqr.removed")


@pytest.mark.parametrize("sample", ["two", "three", "many"])
@pytest.mark.parametrize("centre", ["mean", "median"])
def test_levene_and_brown_forsythe(sample: str, centre: str) -> None:
    found = papers.levene(list(SAMPLES[sample].values()), centre)
    same(found.statistic, sample, f"levene.F.{centre}")
    same(found.p, sample, f"levene.p.{centre}")


@pytest.mark.parametrize("way", ["student", "welch"])
def test_t_tests(way: str) -> None:
    test = papers.student_t if way == "student" else papers.welch_t
    found = test(SAMPLES["two"]["a"], SAMPLES["two"]["b"])
    same(found.statistic, "two", f"{way}.t")
    same(found.p, "two", f"{way}.p")
    same(found.degrees[0], "two", f"{way}.df")
    same(found.interval.low, "two", f"{way}.low")
    same(found.interval.high, "two", f"{way}.high")


@pytest.mark.parametrize("sample", ["three", "many"])
@pytest.mark.parametrize("way", ["anova", "welch_anova"])
def test_analysis_of_variance(sample: str, way: str) -> None:
    found = getattr(papers, way)(list(SAMPLES[sample].values()))
    same(found.statistic, sample, f"{way}.F")
    same(found.p, sample, f"{way}.p")
    same(found.degrees[1], sample, f"{way}.df")


@pytest.mark.parametrize("sample", ["three", "many"])
def test_pairs_of_means(sample: str) -> None:
    for pair in papers.tukey_hsd(SAMPLES[sample]):
        name = f"{pair.second}-{pair.first}"  # R subtracts the earlier group from the later group
        same(-pair.estimate, sample, f"tukey.difference.{name}")
        same(-pair.interval.high, sample, f"tukey.low.{name}", RANGE)
        same(-pair.interval.low, sample, f"tukey.high.{name}", RANGE)
        same(pair.p["Tukey"], sample, f"tukey.p.{name}", RANGE)
    for pair in papers.games_howell(SAMPLES[sample]):
        name = f"{pair.second}-{pair.first}"
        same(pair.p["Games–Howell"], sample, f"games.p.{name}", RANGE)
        same(-pair.interval.high, sample, f"games.low.{name}", RANGE)


@pytest.mark.parametrize("sample", ["two", "tied", "three", "small", "smalltied", "many"])
def test_kruskal_wallis(sample: str) -> None:
    found = papers.kruskal_wallis(list(SAMPLES[sample].values()))
    same(found.statistic, sample, "kruskal.H")
    if "kruskal.p.exact" in R[sample]:
        assert found.method.startswith("exact")
        same(found.p, sample, "kruskal.p.exact")
    elif sample == "many":
        assert found.method == "χ² approximation"
        same(found.p, sample, "kruskal.p.chi2")


@pytest.mark.parametrize("sample", ["three", "many", "smalltied"])
def test_dunn(sample: str) -> None:
    for pair in papers.dunn(SAMPLES[sample]):
        name = f"{pair.first}-{pair.second}"
        same(pair.statistic, sample, f"dunn.z.{name}")
        for way in ("none", "Bonferroni", "Holm"):
            same(pair.p[way], sample, f"dunn.{way.lower()}.{name}")


def test_aligned_ranks() -> None:
    groups, others, values = zip(*OTHERS["factorial"], strict=True)
    found = papers.aligned_ranks(values, {"group": groups, "other": others})
    for effect, tested in found.items():
        same(tested.statistic, "factorial", f"aligned.F.{':'.join(effect)}")
        same(tested.p, "factorial", f"aligned.p.{':'.join(effect)}")


@pytest.mark.parametrize("sample", ["scatter", "scatter8", "scattertied"])
def test_correlations(sample: str) -> None:
    x, y = SAMPLES[sample]["x"], SAMPLES[sample]["y"]
    found = association.pearson(x, y)
    same(found.estimate, sample, "pearson.r")
    same(found.p, sample, "pearson.p")
    same(found.interval.low, sample, "pearson.low")
    same(found.interval.high, sample, "pearson.high")
    by_ranks = association.spearman(x, y)
    same(by_ranks.estimate, sample, "spearman.rho")
    same(by_ranks.p, sample, "spearman.p")
    by_pairs = association.kendall(x, y)
    same(by_pairs.estimate, sample, "kendall.tau")
    same(by_pairs.p, sample, "kendall.p")
    if "spearman.low" in R[sample]:
        same(by_ranks.interval.low, sample, "spearman.low")
        same(by_pairs.interval.low, sample, "kendall.low")


def test_the_exponent_of_a_proportionality() -> None:
    found = association.exponent(SAMPLES["scatter"]["x"], SAMPLES["scatter"]["y"])
    same(found.estimate, "scatter", "exponent")
    same(found.low, "scatter", "exponent.low")
    same(found.high, "scatter", "exponent.high")


def test_hodges_lehmann_of_two_samples_at_its_exact_level() -> None:
    a, b = SAMPLES["two"]["a"], SAMPLES["two"]["b"]
    found = two_samples.ratio_by_ranks(a, b)
    same(found.estimate, "two", "hl.ratio")
    same(found.low, "two", "hl.low")
    same(found.high, "two", "hl.high")
    same(found.level, "two", "hl.level")
    shift = two_samples.shift_by_ranks(a, b)
    same(shift.low, "two", "hl.shift.low")
    same(shift.high, "two", "hl.shift.high")


def test_signed_ranks_and_t_of_pairs() -> None:
    a, b = SAMPLES["paired"]["a"], SAMPLES["paired"]["b"]
    found = ranks.paired_ratio_by_ranks(b, a)
    same(found.estimate, "paired", "signed.ratio")
    same(found.low, "paired", "signed.low")
    same(found.high, "paired", "signed.high")
    same(found.level, "paired", "signed.level")
    blocks = list(range(len(a))) * 2
    fit = stats.fit_log([*a, *b], blocks, {"group": ["a"] * len(a) + ["b"] * len(b)})
    interval = stats.ratio(fit, "group", "b", "a").interval
    same(interval.estimate, "paired", "t.ratio")
    same(interval.low, "paired", "t.low")
    same(interval.high, "paired", "t.high")


@pytest.mark.parametrize("sample", ["two", "tied"])
def test_cliffs_delta_with_newcombes_interval(sample: str) -> None:
    found = two_samples.cliffs_delta(SAMPLES[sample]["a"], SAMPLES[sample]["b"])
    same(found.estimate, sample, "cliff.delta")
    same(found.low, sample, "cliff.low")
    same(found.high, sample, "cliff.high")


def test_friedman_and_quade_by_every_arrangement() -> None:
    table = np.array(list(SAMPLES["blocks"].values())).T
    for name in ("friedman", "quade"):
        found = getattr(block_ranks, name)(table)
        assert found.exact
        same(found.p, "blocks", f"{name}.p.exact")


def test_ratios_and_omega_squared_inside_blocks() -> None:
    groups = SAMPLES["blocks"]
    values = [value for group in groups.values() for value in group]
    names = [name for name, group in groups.items() for _ in group]
    blocks = [at for group in groups.values() for at in range(len(group))]
    fit = stats.fit_log(values, blocks, {"group": names})
    for level in ("b", "c"):
        same(stats.ratio(fit, "group", level, "a").interval.estimate, "blocks", f"ratio.{level}")
        # The fit has a variance per treatment; R's limits have one for all.
        weights, _ = blocked.contrast_weights(fit, "group", level, "a", None)
        pooled = blocked.interval_with(fit, weights, 0.95, *blocked.pooled_error(fit, weights))
        same(float(np.exp(pooled.low)), "blocks", f"ratio.low.{level}")
        same(float(np.exp(pooled.high)), "blocks", f"ratio.high.{level}")
    effect = variance.main_effect(fit, "group")
    same(effect.statistic, "blocks", "effect.F")
    same(effect.p, "blocks", "effect.p")
    same(effect.omega_squared.estimate, "blocks", "omega2")
    # The limits of the fit also allow for heavy tails; R assumes normal errors.
    degrees = (effect.degrees, effect.error_degrees)
    plain = variance.omega_squared(effect.statistic, *degrees, len(values))
    same(plain.low, "blocks", "omega2.low", SEARCHED)
    same(plain.high, "blocks", "omega2.high", SEARCHED)
    assert effect.omega_squared.low <= plain.low and plain.high <= effect.omega_squared.high


def test_the_kept_numbers_say_which_r_gave_them() -> None:
    first = (HERE / "from_r.csv").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# R version 4.")
    assert len([1 for sample in R.values() for _ in sample]) > 200
