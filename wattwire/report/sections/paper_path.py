"""Build the section on common tests of papers, with their steps and error rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wattwire import papers
from wattwire.analysis.dataset import Evidence, levels_of
from wattwire.analysis.paper_walks import (
    Walked,
    kept_by,
    key_of,
    walked,
    walks_of,
    with_enough,
)
from wattwire.analysis.responses import measured, resolve
from wattwire.model import words
from wattwire.model.derived import FloatArray, column
from wattwire.model.paper_path import Walk
from wattwire.papers.rates import MODELS, Rate, rates_for
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Fold, Section, Table, Text
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.stats import NotComputable, TooFew

PHRASES = Phrases(
    "paper_path",
    {
        "title": "Tests used in published papers",
        "introduction": (
            "For comparison with published results, this section analyses the runs of this "
            "campaign with tests that are common in papers. The answers above do not use these "
            "tests."
        ),
        "folded": ("Normality, transformation, outliers, tests: {walks:plural analysis/analyses}"),
        # Cautions.
        "unpaired": (
            "Every test here treats runs as unpaired, and the data determine the choice of test, "
            "so the actual significance level differs from the nominal level."
        ),
        "outliers_removed": (
            "Removing outliers before a test raises the test's false-positive rate, here to "
            "{worst:percent} instead of the nominal 5 % (simulated, see the table below). If "
            "outliers were removed, the tables give the results with and without them."
        ),
        "reversed": (
            "In {changed} of {walks:plural analysis/analyses}, removing outliers reverses the "
            "verdict."
        ),
        "nothing_left": (
            "In {undecided} of {walks:plural analysis/analyses}, removing outliers leaves too "
            "few values to test."
        ),
        "blocks_ignored": (
            "These tests ignore the blocks of the design. Each row gives the share of the scatter "
            "that differences between blocks explain. A comparison within blocks excludes this "
            "share."
        ),
        "some_pooled": (
            "In {pooled} of {walks:plural analysis/analyses}, each group pools all levels of other "
            "factors, so the effects of these factors count as scatter."
        ),
        # Result of each analysis.
        "summary": "Result of each analysis",
        "summary_note": (
            "Steps: (1) a Shapiro–Wilk test of each group; (2) if a group is not normal, a Box–Cox "
            "transformation of all groups, which is kept only if every group then passes the test; "
            "(3) a search for outliers with interquartile fences; (4) a Brown–Forsythe test of "
            "equal variances; (5) a t test, ANOVA, Welch's test or a Kruskal–Wallis test of all "
            "groups; (6) pairwise tests if the test of step 5 rejects. Every test has a level of 5 "
            "%; pairwise tests have it after correction. The results are exploratory: p values are "
            "not corrected over the rows of this table. “Scatter of blocks” gives the share of the "
            "sum of squares within groups that blocks explain, and the share expected by chance."
        ),
        "groups": "{factors:listed}",
        "groups_kept": "{factors:listed} (only {levels})",
        "test": "{test}, {statistic}",
        "test_box_cox": "{test} on the Box–Cox scale, {statistic}",
        "cannot_reject": "cannot reject: the smallest attainable p is {least:number}",
        "pairs_below": "{below} of {pairs}",
        # Simulated error rates.
        "rates": "False-positive rate of this procedure",
        "rates_note": (
            "Each row is based on {trials:count} simulated campaigns whose group sizes are the "
            "nearest available to those above. The rates apply to the test over all groups, "
            "without pairwise tests."
        ),
        "aligned": "Interactions by aligned ranks",
        "aligned_note": (
            "Each effect is aligned and ranked separately (type III), and runs are treated as "
            "unpaired. This is not a test of ratios: in every simulated trial, it reported an "
            "interaction of two factors with purely multiplicative effects (×3 and ×5). For "
            "ratios, see the answers."
        ),
        # Steps of an analysis.
        "walk": "{response} by {groups}",
        "pooled": (
            "Each group pools all levels of {factors:listed}, so the effects of these factors "
            "count as scatter."
        ),
        "omitted": "Omitted: {runs:plural run} without this response.",
        "steps": "Steps: {walk}",
        "fences": "fences {low:number} to {high:number}",
        "nothing_decided": "no verdict",
        "differs": "differs ({method})",
        "no_difference": "no difference detected ({method})",
        "powerless": "cannot reject with groups of these sizes, whatever the values ({method})",
        "pairs": "Pairs: {walk}",
    },
)

NONE = (TooFew, NotComputable)
STEPPED_MAX = 40
"""Maximum number of analyses with tables of their steps. The first table lists all analyses."""


def section(evidence: Evidence) -> Section | None:
    """Return the section on papers' tests, or None if the runs cannot be grouped."""
    if evidence.usable.height == 0:
        return None
    walks, refused = walks_of(evidence)
    results = [walked(evidence, walk) for walk in walks]
    if not results and not refused:
        return None
    part = Section("paper-path", PHRASES("title"))
    contents: list[Any] = [_caution(results)]
    contents += [Text(sentence, "item") for sentence in refused]
    if results:
        contents += [_summary(evidence, results), _rates_table(results)]
    interactions = _aligned_table(evidence)
    if interactions is not None:
        contents.append(interactions)
    for number, result in enumerate(results[:STEPPED_MAX], 1):
        contents.append(_steps_fold(evidence, result, number))
    part.parts.append(Text(PHRASES("introduction")))
    part.parts.append(Fold(PHRASES("folded", walks=len(results)), contents))
    return part


def _caution(walks: Sequence[Walked]) -> Text:
    sentences = [PHRASES("unpaired")]
    trimmed = [walk for walk in walks if walk.path.without_outliers is not None]
    if trimmed:
        worst = max(
            (rate.without_outliers for walk in trimmed for rate in _rates(walk)), default=0.0
        )
        sentences.append(PHRASES("outliers_removed", worst=worst))
    changed = [walk for walk in walks if walk.path.disagrees]
    if changed:
        sentences.append(PHRASES("reversed", changed=len(changed), walks=len(walks)))
    undecided = [walk for walk in walks if walk.path.undecided_without]
    if undecided:
        sentences.append(PHRASES("nothing_left", undecided=len(undecided), walks=len(walks)))
    if any(isinstance(walk.path.blocks, papers.BlockShare) for walk in walks):
        sentences.append(PHRASES("blocks_ignored"))
    pooled = [walk for walk in walks if walk.pooled]
    if pooled:
        sentences.append(PHRASES("some_pooled", pooled=len(pooled), walks=len(walks)))
    return Text(joined(sentences), "warning")


def _summary(evidence: Evidence, results: Sequence[Walked]) -> Table:
    rows = []
    for result in results:
        with_all, without_outliers = result.path.with_all, result.path.without_outliers
        removed = sum(result.path.removed.values())
        row: dict[str, Any] = {
            "response": result.response.title,
            "by": _groups_title(evidence, result.walk),
            "groups": len(result.path.counts),
            "runs": sum(result.path.counts.values()),
            **_block_columns(result.path.blocks),
            **_test_columns(with_all, result.path, ""),
        }
        if without_outliers is not None:
            row |= _test_columns(without_outliers, result.path, "_kept")
            row["removed"] = f"{words.count(removed)} ({words.percent(result.path.removed_share)})"
        else:
            row["removed"] = "none"
        rows.append(row)
    return Table(
        "paper-path",
        PHRASES("summary"),
        [
            Column("response", "response"),
            Column("by", "grouped by"),
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
        PHRASES("summary_note"),
    )


def _groups_title(evidence: Evidence, walk: Walk) -> Phrase:
    factors = [words.factor_title(name) for name in walk.by]
    kept_levels = [
        words.listed([evidence.title(name, level) for level in levels])
        for name, levels in walk.where.items()
    ]
    if not kept_levels:
        return PHRASES("groups", factors=factors)
    return PHRASES("groups_kept", factors=factors, levels="; ".join(kept_levels))


def _test_columns(branch: papers.Branch, path: papers.Path, suffix: str) -> dict[str, Any]:
    test = branch.test
    if not isinstance(test, papers.Significance):
        return {f"test{suffix}": "none", f"p{suffix}": test}
    is_transformed = path.scale == "Box–Cox"
    row: dict[str, Any] = {
        f"test{suffix}": PHRASES(
            "test_box_cox" if is_transformed else "test",
            test=test.name,
            statistic=_statistic(test),
        ),
        f"p{suffix}": test.p,
    }
    if test.powerless(path.level):
        row[f"pairs{suffix}"] = PHRASES("cannot_reject", least=test.p_least)
    elif isinstance(branch.pairs, tuple):
        below = [pair for pair in branch.pairs if _headline_p(pair) < path.level]
        row[f"pairs{suffix}"] = PHRASES("pairs_below", below=len(below), pairs=len(branch.pairs))
    elif isinstance(branch.pairs, NONE):
        row[f"pairs{suffix}"] = str(branch.pairs)
    return row


def _statistic(test: papers.Significance) -> str:
    degrees = ", ".join(
        words.count(value) if value == round(value) else words.number(value, 4)
        for value in test.degrees
    )
    return f"{test.symbol}{f'({degrees})' if degrees else ''} = {words.number(test.statistic, 5)}"


def _headline_p(pair: papers.Pair) -> float:
    """Return the corrected p value that papers print.

    The correction is Bonferroni's if available, and otherwise the first correction.
    """
    return pair.p.get("Bonferroni", next(iter(pair.p.values())))


def _block_columns(blocks: Any) -> dict[str, Any]:
    if not isinstance(blocks, papers.BlockShare):
        return {"blocks": blocks}
    return {
        "blocks": words.percent(blocks.share),
        "by_chance": words.percent(blocks.by_chance),
    }


def _rates(result: Walked) -> tuple[Rate, ...]:
    """Return the simulated error rates for the sizes closest to the analysis.

    The result is () for a single group.
    """
    counts = [count for count in result.path.counts.values() if count]
    return rates_for(len(counts), min(counts)) if len(counts) > 1 else ()


def _rates_table(results: Sequence[Walked]) -> Table:
    """Return the table of false-positive rates for the group sizes of the analyses."""
    sizes: dict[tuple[int, int], tuple[Rate, ...]] = {}
    for result in results:
        rates = _rates(result)
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
        PHRASES("rates"),
        [
            Column("groups", "groups", "measured"),
            Column("runs", "runs per group", "measured"),
            Column("model", "data"),
            Column("with_all", "all runs", "text", group="false positives at 5 %"),
            Column("without", "outliers removed", "text", group="false positives at 5 %"),
            Column("turned", "verdict reversed by removal"),
        ],
        rows,
        PHRASES("rates_note", trials=trials),
    )


def _aligned_table(evidence: Evidence) -> Table | None:
    """Return the table of interactions by aligned ranks, for each question and paper path.

    The result is None if there are no interactions.
    """
    wanted: dict[Any, Walk] = {}
    for question in evidence.study.questions:
        for name in question.responses:
            walk = Walk(name, question.factors)
            wanted.setdefault(key_of(evidence, walk), walk)
    for walk in evidence.study.paper_path:
        wanted.setdefault(key_of(evidence, walk), walk)
    rows: list[dict[str, Any]] = []
    for walk in wanted.values():
        response = resolve(walk.response, evidence.described)
        frame = kept_by(with_enough(evidence.usable, response), walk.where)
        levels = {name: levels_of(frame, name) for name in walk.by}
        factors = {
            name: run_levels
            for name, run_levels in levels.items()
            if len({evidence.word(name, level) for level in run_levels}) > 1
        }
        if len(factors) > 1 and measured(frame, response):
            rows += _aligned_rows(evidence, walk, column(frame, response.column), factors)
    if not rows:
        return None
    return Table(
        "paper-path-aligned",
        PHRASES("aligned"),
        [
            Column("response", "response"),
            Column("by", "factors"),
            Column("effect", "effect"),
            Column("statistic", "statistic"),
            Column("p", "p", "measured"),
        ],
        rows,
        PHRASES("aligned_note"),
    )


def _aligned_rows(
    evidence: Evidence, walk: Walk, values: FloatArray, factors: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    known = ~np.isnan(values)
    response = resolve(walk.response, evidence.described)
    head = {"response": response.title, "by": _groups_title(evidence, walk)}
    effects = papers.aligned_ranks(
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
    if isinstance(effects, NONE):
        return [{**head, "effect": "none", "p": effects}]
    return [
        {
            **head,
            "effect": " × ".join(words.factor_title(name) for name in effect),
            "statistic": _statistic(test),
            "p": test.p,
        }
        for effect, test in effects.items()
    ]


def _steps_fold(evidence: Evidence, result: Walked, number: int) -> Fold:
    groups = _groups_title(evidence, result.walk)
    title = PHRASES("walk", response=result.response.title, groups=groups)
    contents: list[Any] = [_steps_table(result, number, title)]
    pooled = [words.factor_title(name) for name in result.pooled]
    if pooled:
        contents.append(Text(PHRASES("pooled", factors=pooled), "note"))
    missing = sum(result.path.missing.values())
    if missing:
        contents.append(Text(PHRASES("omitted", runs=missing), "note"))
    pairs = _pairs_table(result, number, title)
    if pairs is not None:
        contents.append(pairs)
    return Fold(f"{title[:1].upper()}{title[1:]}", contents)


def _steps_table(result: Walked, number: int, title: str) -> Table:
    path = result.path
    rows = [_step_row(step, "") for step in path.steps]
    for branch, runs in ((path.with_all, "all"), (path.without_outliers, "outliers removed")):
        if branch is None:
            continue
        rows += [_step_row(step, runs) for step in branch.steps]
        rows.append(_test_row(branch, path.level, runs))
    return Table(
        f"paper-path-{number}-steps",
        PHRASES("steps", walk=title),
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


def _step_row(step: papers.Step, runs: str) -> dict[str, Any]:
    outcome = step.result
    row: dict[str, Any] = {
        "runs": runs,
        "step": step.name,
        "group": step.group,
        "decision": step.decision,
    }
    if isinstance(outcome, papers.Significance):
        return row | {"number": _statistic(outcome), "p": outcome.p}
    if isinstance(outcome, papers.BoxCox):
        return row | {"number": f"λ = {words.number(outcome.power)}"}
    if isinstance(outcome, papers.Outliers):
        return row | {"number": PHRASES("fences", low=outcome.low, high=outcome.high)}
    return row | {"p": outcome}


def _test_row(branch: papers.Branch, level: float, runs: str) -> dict[str, Any]:
    test = branch.test
    row = {"runs": runs, "group": " + ".join(str(count) for count in branch.counts.values())}
    if not isinstance(test, papers.Significance):
        return row | {"step": "no test", "p": test, "decision": PHRASES("nothing_decided")}
    if test.powerless(level):
        decision = PHRASES("powerless", method=test.method)
    else:
        decision = PHRASES(
            "differs" if test.rejects(level) else "no_difference", method=test.method
        )
    return row | {
        "step": test.name,
        "number": _statistic(test),
        "p": test.p,
        "decision": decision,
    }


def _pairs_table(result: Walked, number: int, title: str) -> Table | None:
    rows: list[dict[str, Any]] = []
    corrections: dict[str, None] = {}
    for branch, runs in (
        (result.path.with_all, "all"),
        (result.path.without_outliers, "outliers removed"),
    ):
        if branch is None or not isinstance(branch.pairs, tuple):
            continue
        for pair in branch.pairs:
            corrections |= dict.fromkeys(pair.p)
            rows.append(
                {
                    "runs": runs,
                    "first": pair.first,
                    "second": pair.second,
                    "statistic": f"{pair.symbol} = {words.number(pair.statistic, 4)}",
                    "difference": pair.interval,
                    **{f"p_{correction}": p for correction, p in pair.p.items()},
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
        unit = result.response.unit if result.path.scale == "as measured" else "transformed"
        columns.append(Column("difference", "difference [interval]", "measured", unit))
    titles = {"none": "uncorrected"}
    columns += [
        Column(f"p_{correction}", titles.get(correction, correction), "measured", group="p")
        for correction in corrections
    ]
    return Table(f"paper-path-{number}-pairs", PHRASES("pairs", walk=title), columns, rows)


PART = PagePart(180, lambda data: [section(data.evidence)])
