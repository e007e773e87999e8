"""As papers do it: tests on pooled runs, step by step, and how often such a way errs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, levels_of
from wattwire.analysis.paper_walks import Walked, asked_for, kept_by, key_of, walked, walks_of
from wattwire.analysis.responses import measured, resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.model.paper_path import Walk
from wattwire.report.parts import Column, Fold, Section, Table, Text
from wattwire.stats import NotComputable, TooFew, paper
from wattwire.stats.paper.rates import MODELS, Rate, rates_for

NONE = (TooFew, NotComputable)
STEPPED_MAX = 40
"""Walks whose steps are printed one by one; all of them stand in the first table."""


def section(evidence: Evidence) -> Section | None:
    """The page's part that repeats a paper's tests; None where nothing can be grouped."""
    if evidence.usable.height == 0:
        return None
    walks, refused = walks_of(evidence)
    found = [walked(evidence, walk) for walk in walks]
    if not found and not refused:
        return None
    part = Section("paper-path", "As papers do it")
    inner: list[Any] = [_caution(found)]
    inner += [Text(told, "item") for told in refused]
    if found:
        inner += [_summary(evidence, found), _rates_table(found)]
    crossed = _aligned(evidence)
    if crossed is not None:
        inner.append(crossed)
    for number, one in enumerate(found[:STEPPED_MAX], 1):
        inner.append(_steps(evidence, one, number))
    part.parts.append(
        Text(
            "The tests that papers use, on the runs of this campaign: a check against what others "
            "print, not what the answers above rest on."
        )
    )
    counted = words.plural(len(found), "walk")
    part.parts.append(Fold(f"Normality, transformation, outliers, tests: {counted}", inner))
    return part


def _caution(found: Sequence[Walked]) -> Text:
    told = [
        "Every test here takes runs as unpaired and the data choose the test, so that its level "
        "is not the one it names.",
    ]
    trimmed = [one for one in found if one.path.without_outliers is not None]
    if trimmed:
        worst = max((rate.without_outliers for one in trimmed for rate in _rates(one)), default=0.0)
        told.append(
            "Removing outliers before a test raises its false alarms, here to "
            f"{words.percent(worst)} where 5 % are promised (simulated, table below): both results "
            "stand wherever it took anything out."
        )
    turned = [one for one in found if one.path.disagrees]
    if turned:
        told.append(
            f"In {len(turned)} of {words.plural(len(found), 'walk')} removing outliers turns the "
            "verdict round."
        )
    emptied = [one for one in found if one.path.undecided_without]
    if emptied:
        told.append(
            f"In {len(emptied)} of {words.plural(len(found), 'walk')} removing outliers leaves "
            "nothing to test."
        )
    if any(isinstance(one.path.blocks, paper.BlockShare) for one in found):
        told.append(
            "The runs come in blocks, which these tests ignore: the share of the scatter that "
            "blocks explain stands in each row; inside blocks it would not blur the comparison."
        )
    pooled = [one for one in found if one.pooled]
    if pooled:
        told.append(
            f"In {len(pooled)} of {words.plural(len(found), 'walk')} the groups pool other factors,"
            " whose effects count as scatter."
        )
    return Text(" ".join(told), "warning")


def _summary(evidence: Evidence, found: Sequence[Walked]) -> Table:
    rows = []
    for one in found:
        branch, other = one.path.with_all, one.path.without_outliers
        removed = sum(one.path.removed.values())
        row: dict[str, Any] = {
            "response": one.response.title,
            "by": _grouped(evidence, one.walk),
            "groups": len(one.path.counts),
            "runs": sum(one.path.counts.values()),
            **_blocks_told(one.path.blocks),
            **_tested(branch, one.path, ""),
        }
        if other is not None:
            row |= _tested(other, one.path, "_kept")
            row["removed"] = f"{words.count(removed)} ({words.percent(one.path.removed_share)})"
        else:
            row["removed"] = "none"
        rows.append(row)
    return Table(
        "paper-path",
        "Every walk and where it ends",
        [
            Column("response", "response"),
            Column("by", "groups by"),
            Column("groups", "groups", "measured"),
            Column("runs", "runs", "measured"),
            Column("test", "test", group="all runs"),
            Column("p", "p", "measured", group="all runs"),
            Column("pairs", "pairs below 5 %", group="all runs"),
            Column("removed", "removed", group="outliers removed"),
            Column("p_kept", "p", "measured", group="outliers removed"),
            Column("pairs_kept", "pairs below 5 %", group="outliers removed"),
            Column("blocks", "ignored", group="scatter of blocks"),
            Column("by_chance", "by chance", group="scatter of blocks"),
        ],
        rows,
        "Shapiro–Wilk in each group; where one departs, a Box–Cox power for all, kept only if it "
        "mends every group; interquartile fences; Brown–Forsythe for equal variances; then t, "
        "ANOVA, Welch's or Kruskal–Wallis, and pairs where it rejects. All at 5 %, pairs after "
        "correction. Exploratory: nothing is corrected over the rows of this table. Scatter of "
        "blocks: its share of the scatter inside groups, and what as many blocks without any "
        "meaning would take.",
    )


def _grouped(evidence: Evidence, walk: Walk) -> str:
    told = words.listed([words.factor_title(name) for name in walk.by])
    kept = [
        words.listed([evidence.title(name, level) for level in levels])
        for name, levels in walk.where.items()
    ]
    return told + (f" (only {'; '.join(kept)})" if kept else "")


def _tested(branch: paper.Branch, path: paper.Path, tail: str) -> dict[str, Any]:
    test = branch.test
    if not isinstance(test, paper.Significance):
        return {f"test{tail}": "none", f"p{tail}": test}
    scale = " on the Box–Cox scale" if path.scale == "Box–Cox" else ""
    row: dict[str, Any] = {
        f"test{tail}": f"{test.name}{scale}, {_statistic(test)}",
        f"p{tail}": test.p,
    }
    if test.powerless(path.level):
        row[f"pairs{tail}"] = f"cannot reject: no p below {words.number(test.p_least)} exists"
    elif isinstance(branch.pairs, tuple):
        below = [pair for pair in branch.pairs if _headline_p(pair) < path.level]
        row[f"pairs{tail}"] = f"{len(below)} of {len(branch.pairs)}"
    elif isinstance(branch.pairs, NONE):
        row[f"pairs{tail}"] = str(branch.pairs)
    return row


def _statistic(test: paper.Significance) -> str:
    degrees = ", ".join(
        words.count(value) if value == round(value) else words.number(value, 4)
        for value in test.degrees
    )
    return f"{test.symbol}{f'({degrees})' if degrees else ''} = {words.number(test.statistic, 5)}"


def _headline_p(pair: paper.Pair) -> float:
    """The corrected p that papers print: Bonferroni's where there is a choice."""
    return pair.p.get("Bonferroni", next(iter(pair.p.values())))


def _blocks_told(blocks: Any) -> dict[str, Any]:
    if not isinstance(blocks, paper.BlockShare):
        return {"blocks": blocks}
    return {
        "blocks": words.percent(blocks.share),
        "by_chance": words.percent(blocks.by_chance),
    }


def _rates(one: Walked) -> tuple[Rate, ...]:
    """Error rates of the simulated sizes nearest to this walk's; none for a single group."""
    counts = [count for count in one.path.counts.values() if count]
    return rates_for(len(counts), min(counts)) if len(counts) > 1 else ()


def _rates_table(found: Sequence[Walked]) -> Table:
    """False alarms of the sizes that these walks have."""
    sizes: dict[tuple[int, int], tuple[Rate, ...]] = {}
    for one in found:
        rates = _rates(one)
        if rates:
            sizes.setdefault((rates[0].groups, rates[0].runs), rates)
    rows = [
        {
            "groups": rate.groups,
            "runs": rate.runs,
            "model": MODELS[rate.model],
            "with_all": words.percent(rate.with_all),
            "without": words.percent(rate.without_outliers),
            "turned": words.percent(rate.turned),
        }
        for size in sorted(sizes)
        for rate in sizes[size]
    ]
    trials = max((rate.trials for rates in sizes.values() for rate in rates), default=0)
    return Table(
        "paper-path-rates",
        "How often this way finds a difference where there is none",
        [
            Column("groups", "groups", "measured"),
            Column("runs", "runs in each", "measured"),
            Column("model", "data"),
            Column("with_all", "all runs", "text", group="false alarms at 5 %"),
            Column("without", "outliers removed", "text", group="false alarms at 5 %"),
            Column("turned", "verdict turned by removal"),
        ],
        rows,
        f"Simulated, {words.count(trials)} campaigns in each row, for the sizes nearest to those "
        "above; the test over all groups alone, without pairs.",
    )


def _aligned(evidence: Evidence) -> Table | None:
    """Interactions by aligned ranks, for what is asked over several factors together."""
    wanted: dict[Any, Walk] = {}
    for question in evidence.study.get("question", []):
        for name in question.get("responses", []):
            walk = Walk(str(name), tuple(question.get("factors", [])))
            wanted.setdefault(key_of(evidence, walk), walk)
    for item in evidence.study.get("paper_path", []):
        wanted.setdefault(key_of(evidence, asked_for(item)), asked_for(item))
    rows: list[dict[str, Any]] = []
    for walk in wanted.values():
        response = resolve(walk.response, evidence.described)
        frame = kept_by(evidence.usable, walk)
        levels = {name: levels_of(frame, name) for name in walk.by}
        factors = {n: of for n, of in levels.items() if len({evidence.word(n, v) for v in of}) > 1}
        if len(factors) > 1 and measured(frame, response):
            rows += _aligned_rows(evidence, walk, column(frame, response.column), factors)
    if not rows:
        return None
    return Table(
        "paper-path-aligned",
        "Interactions by aligned ranks",
        [
            Column("response", "response"),
            Column("by", "factors"),
            Column("effect", "effect"),
            Column("statistic", "statistic"),
            Column("p", "p", "measured"),
        ],
        rows,
        "Each effect aligned and ranked for itself, type III, runs taken as unpaired. Not a test "
        "of ratios: two factors that multiply (one ×3, one ×5) are an interaction for it, in every "
        "simulated trial. Whether ratios differ is for the answers to say.",
    )


def _aligned_rows(
    evidence: Evidence, walk: Walk, values: FloatArray, factors: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    known = ~np.isnan(values)
    response = resolve(walk.response, evidence.described)
    head = {"response": response.title, "by": _grouped(evidence, walk)}
    found = paper.aligned_ranks(
        values[known],
        {
            name: [
                evidence.word(name, level)
                for level, keep in zip(levels, known, strict=True)
                if keep
            ]
            for name, levels in factors.items()
        },
    )
    if isinstance(found, NONE):
        return [{**head, "effect": "none", "p": found}]
    return [
        {
            **head,
            "effect": " × ".join(words.factor_title(name) for name in effect),
            "statistic": _statistic(tested),
            "p": tested.p,
        }
        for effect, tested in found.items()
    ]


def _steps(evidence: Evidence, one: Walked, number: int) -> Fold:
    told = f"{one.response.title} by {_grouped(evidence, one.walk)}"
    parts: list[Any] = [_steps_table(one, number, told)]
    pooled = words.listed([words.factor_title(name) for name in one.pooled])
    if pooled:
        parts.append(Text(f"The groups pool {pooled}: their effects count as scatter.", "note"))
    missing = sum(one.path.missing.values())
    if missing:
        runs = words.plural(missing, "run")
        parts.append(Text(f"Without this response, so left out: {runs}.", "note"))
    pairs = _pairs_table(one, number, told)
    if pairs is not None:
        parts.append(pairs)
    return Fold(f"{told[:1].upper()}{told[1:]}", parts)


def _steps_table(one: Walked, number: int, told: str) -> Table:
    path = one.path
    rows = [_step_row(step, "") for step in path.steps]
    for branch, runs in ((path.with_all, "all"), (path.without_outliers, "outliers removed")):
        if branch is None:
            continue
        rows += [_step_row(step, runs) for step in branch.steps]
        rows.append(_test_row(branch, path.level, runs))
    return Table(
        f"paper-path-{number}-steps",
        f"Steps: {told}",
        [
            Column("runs", "runs"),
            Column("step", "step"),
            Column("group", "group"),
            Column("number", "number"),
            Column("p", "p", "measured"),
            Column("decision", "decision"),
        ],
        rows,
    )


def _step_row(step: paper.Step, runs: str) -> dict[str, Any]:
    found = step.found
    row: dict[str, Any] = {
        "runs": runs,
        "step": step.name,
        "group": step.group,
        "decision": step.decision,
    }
    if isinstance(found, paper.Significance):
        return row | {"number": _statistic(found), "p": found.p}
    if isinstance(found, paper.BoxCox):
        return row | {"number": f"λ = {words.number(found.power)}"}
    if isinstance(found, paper.Outliers):
        fences = f"{words.number(found.low)} to {words.number(found.high)}"
        return row | {"number": f"fences {fences}"}
    return row | {"p": found}


def _test_row(branch: paper.Branch, level: float, runs: str) -> dict[str, Any]:
    test = branch.test
    row = {"runs": runs, "group": " + ".join(str(count) for count in branch.counts.values())}
    if not isinstance(test, paper.Significance):
        return row | {"step": "no test", "p": test, "decision": "nothing decided"}
    decision = "differs" if test.rejects(level) else "no difference found"
    if test.powerless(level):
        decision = "cannot reject at these sizes, whatever the data"
    return row | {
        "step": test.name,
        "number": _statistic(test),
        "p": test.p,
        "decision": f"{decision} ({test.method})",
    }


def _pairs_table(one: Walked, number: int, told: str) -> Table | None:
    rows: list[dict[str, Any]] = []
    ways: dict[str, None] = {}
    for branch, runs in (
        (one.path.with_all, "all"),
        (one.path.without_outliers, "outliers removed"),
    ):
        if branch is None or not isinstance(branch.pairs, tuple):
            continue
        for pair in branch.pairs:
            ways |= dict.fromkeys(pair.p)
            rows.append(
                {
                    "runs": runs,
                    "first": pair.first,
                    "second": pair.second,
                    "statistic": f"{pair.symbol} = {words.number(pair.statistic, 4)}",
                    "difference": pair.interval,
                    **{f"p_{way}": p for way, p in pair.p.items()},
                }
            )
    if not rows:
        return None
    columns = [
        Column("runs", "runs"),
        Column("first", "group"),
        Column("second", "against"),
        Column("statistic", "statistic"),
    ]
    if any(row["difference"] is not None for row in rows):
        unit = one.response.unit if one.path.scale == "as measured" else "transformed"
        columns.append(Column("difference", "difference [interval]", "measured", unit))
    titles = {"none": "uncorrected"}
    columns += [Column(f"p_{way}", titles.get(way, way), "measured", group="p") for way in ways]
    return Table(f"paper-path-{number}-pairs", f"Pairs: {told}", columns, rows)
