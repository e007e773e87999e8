"""Compare the statistics and p-values of the paper's tests with those of the recordings.

All tests are on the mean power of a run's node. Values are those of the authors' recipe; where
that misses, the same test with outliers taken out (which the paper does at places it doesn't
name), then, for the one test whose group cannot be what the paper says, every group there is.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.imports import Check, Match
from wattwire.imports.agreement import agrees, close, cut, number
from wattwire.papers.assumptions import Outliers, iqr_outliers, shapiro_wilk
from wattwire.papers.kruskal import kruskal_wallis
from wattwire.papers.means import anova
from wattwire.papers.posthoc import dunn
from wattwire.stats.results import NotComputable, TooFew

from . import values
from .printed import INTERVALS, Means

FloatArray = NDArray[np.float64]
Answer = Mapping[str, float]
Runs = Mapping[str, NDArray[Any]]
COLUMNS = ("language", "interval_s", "clients", "power_w")
SIBLING = {
    "publisher": "subscriber", "subscriber": "publisher", "server": "client", "client": "server",
    "action_server": "action_client", "action_client": "action_server",
}  # fmt: skip
LEVELS = {"cpp": "C++", "python": "Python", "": ""}
WEAK_DIGITS = 2


@dataclass(frozen=True)
class Variant:
    """A way to take a test's values: whose files, and whether outliers are taken out."""

    recipe: str
    trimmed: bool

    @property
    def words(self) -> str:
        """What the variant does."""
        whose = "the files that the authors' log shows" if self.recipe == values.AUTHORS else (
            "earliest file of each run"
        )  # fmt: skip
        trimmed = ", outliers beyond 1.5 IQR of each group taken out" if self.trimmed else ""
        return f"mean power of samples below 3 W, {whose}{trimmed}"


def published(folder: Path) -> list[dict[str, str]]:
    """The rows of the study's published_tests.csv."""
    with (folder / "published_tests.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Powers:
    """The runs' powers of a material by node, treatment and recipe."""

    def __init__(self, means: Means) -> None:
        self.means = means
        self._runs: dict[tuple[str, str], Runs] = {}
        for recipe, found in means.nodes.items():
            known = found.frame.filter(pl.col("power_w").is_not_null())
            for (role,), part in known.group_by("role", maintain_order=True):
                self._runs[recipe, str(role)] = {n: part[n].to_numpy() for n in COLUMNS}
        counts = means.nodes[values.EARLIEST].frame.group_by("role").agg(pl.col("here").all())
        self.complete = dict(counts.iter_rows())
        self._groups: dict[str, list[tuple[str, int, Answer]]] = {}

    def of(self, recipe: str, role: str, **held: Any) -> Runs:
        """The runs of a role with these levels, by column."""
        runs = self._runs.get((recipe, role), {name: np.empty(0) for name in COLUMNS})
        kept = np.ones(runs["power_w"].size, bool)
        for name, level in held.items():
            if level not in ("", None):
                kept &= runs[name] == level
        return {name: data[kept] for name, data in runs.items()}

    def groups(self, role: str) -> list[tuple[str, int, Answer]]:
        """Every group of a role and its sibling in words, its size, its W and p."""
        if role not in self._groups:
            self._groups[role] = [
                (words, data.size, _tested(shapiro_wilk, data, "W"))
                for words, data in _every_group(self, role)
            ]
        return self._groups[role]


def checks(folder: Path, means: Means) -> Iterator[Check]:
    """A check for every number in the study's published_tests.csv."""
    powers = Powers(means)
    for row in published(folder):
        yield _check(powers, row)


def _check(powers: Powers, row: Mapping[str, str]) -> Check:
    group = "Table 6" if row["where"] == "Table 6" else "Tests"
    check = Check(
        group, _place(row), row["published"], None, Match.NOT_COMPUTABLE, "", weak=_weak(row)
    )
    if not powers.complete.get(row["node_role"], False):
        return replace(check, weak=False, explanation="not all runs of this node are here")
    plain, more = _variants(powers)
    found = [(variant, _answer(powers, row, variant)) for variant in plain]
    right = _answer(powers, row, Variant(values.RIGHT, False)).get(row["statistic"])
    check = replace(check, default_value=right)
    for variant, answer in found:
        if agrees(row["published"], answer.get(row["statistic"])):
            value = answer[row["statistic"]]
            return replace(
                check, value=value, match=Match.EXACT, recipe=variant.words,
                explanation="cut, not rounded" if cut(row["published"], value) else "",
            )  # fmt: skip
    if row["searched"] == "groups":
        return _other_group(powers, row, check)
    trimmed = [(variant, _answer(powers, row, variant)) for variant in more]
    if row["searched"]:
        hit = _searched(row, check, found + trimmed)
        if hit is not None:
            return hit
    known = [(v, a[row["statistic"]]) for v, a in found if row["statistic"] in a]
    if not known:
        return replace(check, weak=False, explanation="no test can be made of these runs")
    variant, value = known[0]
    near = close(row["published"], value) and 0 <= number(row["published"]) <= 1
    return replace(
        check, value=value, recipe=variant.words, weak=False,
        match=Match.WITHIN_1_PERCENT if near else Match.DIFFERS,
        explanation=_missed(powers, row, trimmed),
    )  # fmt: skip


def _searched(
    row: Mapping[str, str], check: Check, found: Sequence[tuple[Variant, Answer]]
) -> Check | None:
    """The number among variants with outliers taken out; None where it is not there either."""
    known = [(v, a[row["statistic"]]) for v, a in found if row["statistic"] in a]
    printed = row["published"]
    for variant, value in known:
        rounded_only = row["searched"].endswith("rounded")
        if agrees(printed, value) and not (rounded_only and cut(printed, value)):
            return replace(
                check, value=value, match=Match.BY_SEARCH, recipe=variant.words,
                searched=len(found), explanation="cut, not rounded" if cut(printed, value) else "",
            )  # fmt: skip
    for variant, value in known:
        if close(printed, value):
            return replace(
                check, value=value, match=Match.WITHIN_1_PERCENT, recipe=variant.words,
                searched=len(found), weak=False,
            )  # fmt: skip
    return None


def _variants(powers: Powers) -> tuple[list[Variant], list[Variant]]:
    recipes = [values.EARLIEST]
    if powers.means.picks_known:
        recipes.append(values.AUTHORS)
    return [Variant(r, False) for r in recipes], [Variant(r, True) for r in recipes]


def _place(row: Mapping[str, str]) -> dict[str, str]:
    place = {"section": row["where"], "node": row["node_role"].replace("_", " ")}
    place["test"] = f"{row['test']}: {row['statistic']}"
    within = [LEVELS[row["language"]]] if row["language"] else []
    within += [f"{row['interval_s']} s"] if row["interval_s"] else []
    place["runs"] = ", ".join(within) or "all"
    place["groups"] = row["grouped_by"].replace("interval_s", "interval")
    if row["first"]:
        place["groups"] = f"{row['first']} s against {row['second']} s"
    return place


def _weak(row: Mapping[str, str]) -> bool:
    """Whether few digits make a match easy: two or less of a p that is not tiny."""
    digits = row["published"].partition("e")[0].lstrip("0.").replace(".", "")
    return row["statistic"] == "p" and number(row["published"]) >= 1e-3 and (
        len(digits) <= WEAK_DIGITS
    )  # fmt: skip


def _level(name: str, text: str) -> Any:
    """A level as the data have it: 0.2 s of the paper is 0.25 s."""
    if not text or name == "language":
        return text
    value = float(text)
    return int(value) if name == "clients" else INTERVALS.get(value, value)


def _held(row: Mapping[str, str]) -> dict[str, Any]:
    return {name: _level(name, row[name]) for name in ("language", "interval_s", "clients")}


def _answer(
    powers: Powers, row: Mapping[str, str], variant: Variant, role: str = "", **more: Any
) -> Answer:
    """Statistic and p of a row's test under a variant; empty where it cannot be made."""
    held = {**_held(row), **more}
    runs = powers.of(variant.recipe, role or row["node_role"], **held)
    groups = _groups(runs, row["grouped_by"], variant.trimmed)
    if row["test"] == "Dunn":
        return _dunn(groups, row)
    if row["test"] == "Shapiro-Wilk":
        # The paper prints one number for a grouping: the group it comes closest to.
        answers = [_tested(shapiro_wilk, group, "W") for group in groups.values()]
        target = number(row["published"])
        known = [a for a in answers if a]
        return min(known, key=lambda a: abs(a[row["statistic"]] - target), default={})
    test, symbol = (anova, "F") if row["test"] == "ANOVA" else (kruskal_wallis, "H")
    return _tested(test, list(groups.values()), symbol)


def _groups(runs: Runs, by: str, trimmed: bool) -> dict[str, FloatArray]:
    """The runs' powers by the levels of one factor, in the order of the levels."""
    found = {}
    for level in sorted(set(runs[by].tolist())):
        data = runs["power_w"][runs[by] == level]
        if trimmed:
            fences = iqr_outliers(data)
            data = data[fences.kept] if isinstance(fences, Outliers) else data
        found[str(level)] = data
    return found


def _tested(test: Callable[[Any], Any], data: Any, symbol: str) -> Answer:
    answer = test(data)
    if isinstance(answer, (TooFew, NotComputable)):
        return {}
    return {symbol: float(answer.statistic), "p": float(answer.p)}


def _dunn(groups: Mapping[str, FloatArray], row: Mapping[str, str]) -> Answer:
    pairs = dunn(groups)
    if isinstance(pairs, (TooFew, NotComputable)):
        return {}
    wanted = {str(_level("interval_s", row[end])) for end in ("first", "second")}
    for pair in pairs:
        if {pair.first, pair.second} == wanted:
            return {"p": float(pair.p["Bonferroni"])}
    return {}


# -- where the printed group cannot be the one that was tested ----------------------------------


def _other_group(powers: Powers, row: Mapping[str, str], check: Check) -> Check:
    """Look for the group whose W and p are the printed ones, among all groups of the pattern."""
    pair = {r["statistic"]: r["published"] for r in _same_test(row)}
    tried, hit = len(powers.groups(row["node_role"])), None
    for words, size, answer in powers.groups(row["node_role"]):
        if answer and all(agrees(pair[s], answer[s]) for s in pair):
            hit = (words, size, answer)
            break
    plain = _answer(powers, row, Variant(values.EARLIEST, False)).get(row["statistic"])
    if hit is None:
        return replace(
            check, value=plain, match=Match.DIFFERS, weak=False, searched=tried,
            recipe=Variant(values.EARLIEST, False).words,
            explanation=f"none of {tried} other groups gives W and p either",
        )  # fmt: skip
    words, size, answer = hit
    stated = f"by {row['grouped_by']}, as printed, the nearest {row['statistic']} is {plain:.4g}"
    return replace(
        check, value=answer[row["statistic"]], match=Match.BY_SEARCH, searched=tried,
        recipe=f"{words} (n = {size})", weak=False,
        explanation=f"the test of another group than stated; {stated}",
    )  # fmt: skip


def _same_test(row: Mapping[str, str]) -> list[dict[str, str]]:
    keys = ("where", "node_role", "test", "language", "interval_s", "clients", "grouped_by")
    folder = Path(__file__).parent
    return [r for r in published(folder) if all(r[k] == row[k] for k in keys)]


def _every_group(powers: Powers, role: str) -> Iterator[tuple[str, FloatArray]]:
    """Every group by node, language, clients and intervals, with and without outliers."""
    recipes, _ = _variants(powers)
    clients: Sequence[Any] = ("", 1, 2, 3)
    intervals: Sequence[Any] = ("", "without 0.1", 0.05, 0.1, 0.25, 0.5, 1.0)
    for variant, node, language, number_of, interval in itertools.product(
        recipes, (role, SIBLING[role]), ("", "cpp", "python"), clients, intervals
    ):
        single = interval if isinstance(interval, float) else ""
        runs = powers.of(
            variant.recipe, node, language=language, clients=number_of, interval_s=single
        )
        data = runs["power_w"]
        if interval == "without 0.1":
            data = data[runs["interval_s"] != 0.1]
        words = [node, LEVELS[language], f"{number_of} clients" if number_of else ""]
        words += [f"{single} s" if single else str(interval)]
        told = ", ".join(word for word in words if word)
        yield f"{variant.words}: {told}", data


def _missed(
    powers: Powers, row: Mapping[str, str], trimmed: Sequence[tuple[Variant, Answer]]
) -> str:
    """What neighbouring tests give where the printed one does not come out."""
    target, statistic = number(row["published"]), row["statistic"]
    told = []
    if statistic == "p" and not 0 <= target <= 1:
        told.append("no p-value can be above 1")
    for variant, answer in trimmed:
        value = answer.get(statistic, math.nan)
        if agrees(row["published"], value):
            told.append(f"the printed digits with {variant.words}: {value:.4g} (not claimed)")
            break
    plain = Variant(values.EARLIEST, False)
    sibling = SIBLING[row["node_role"]]
    other = _answer(powers, row, plain, role=sibling).get(statistic, math.nan)
    if agrees(row["published"], other) or abs(other - target) <= 0.001 * abs(target):
        told.append(f"the {sibling.replace('_', ' ')} gives {other:.6g}")
    if not row["interval_s"] and row["grouped_by"] != "interval_s":
        for interval in (0.05, 0.1, 0.25, 0.5, 1.0):
            value = _answer(powers, row, plain, interval_s=interval).get(statistic, math.nan)
            if agrees(row["published"], value) or 0.5 <= value / target <= 2 and target < 1e-3:
                told.append(f"the runs at {interval} s alone give {value:.3g}")
    return "; ".join(told) or "no variant tried gives it"
