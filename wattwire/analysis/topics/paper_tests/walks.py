"""Apply the paper's decision path to a campaign."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress, product
from typing import Any

import polars as pl

from wattwire import papers
from wattwire.analysis.carried import too_few, why_not
from wattwire.analysis.dataset import Evidence, kept_by, levels_of, levels_run, rows_at
from wattwire.analysis.emulated import is_emulated
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.paper_path import Walk
from wattwire.stats import TooFew


@dataclass(frozen=True)
class Walked:
    """Result of the paper's decision path for runs of this campaign.

    `pooled` lists the factors that vary within its groups.
    """

    walk: Walk
    response: Response
    path: papers.Path
    pooled: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """A response without a result, or without `left_out` of `runs` runs because of `why`.

    A response that was not measured has no reason `why`. If it `needs_meter`, only a meter of
    energy measures it.
    """

    title: str
    needs_meter: bool = False
    left_out: int = 0
    runs: int = 0
    why: TooFew | None = None


def walks_of(evidence: Evidence) -> tuple[list[Walk], list[Refused]]:
    """Return the walks, and the responses without a result or without some runs.

    There is one walk for each response and factor of each question. The study may add walks.
    """
    wanted: dict[Any, Walk] = {}
    for question in evidence.study.questions:
        for name in question.responses:
            for factor in question.factors:
                walk = Walk(name, (factor,))
                wanted.setdefault(key_of(evidence, walk), walk)
    for walk in evidence.study.paper_path:
        wanted.setdefault(key_of(evidence, walk), walk)
    walks: list[Walk] = []
    refused: dict[str, Refused] = {}
    for walk in wanted.values():
        response = resolve(walk.response, evidence.described)
        if not measured(evidence.usable, response):
            refused[response.title] = Refused(response.title, response.energy)
        elif any(len(levels_run(evidence, name)) > 1 for name in walk.by):
            left_out = int(too_few(evidence.usable, response.column).sum())
            if left_out:
                refused[response.title] = Refused(
                    response.title,
                    left_out=left_out,
                    runs=evidence.usable.height,
                    why=why_not(evidence.usable, response.column),
                )
            if left_out < evidence.usable.height:
                walks.append(walk)
    return walks, list(refused.values())


def key_of(evidence: Evidence, walk: Walk) -> Any:
    """Return the key of a walk. Different names of a response have the same key."""
    return resolve(walk.response, evidence.described).column, walk.by, str(walk.where)


def walked(evidence: Evidence, walk: Walk) -> Walked:
    """Group the valid runs as specified by `walk`, and apply the paper's decision path."""
    response = resolve(walk.response, evidence.described)
    frame = kept_by(with_enough(evidence.usable, response), walk.where)
    frame = frame.filter(pl.Series(~is_emulated(frame), dtype=pl.Boolean))
    # A factor with one level, fixed by a preset, forms no groups.
    by = [name for name in walk.by if levels_run(evidence, name)]
    values, blocks = column(frame, response.column), frame["block"].to_list()
    groups: dict[str, list[float]] = {}
    group_blocks: dict[str, list[Any]] = {}
    for levels in product(*(levels_run(evidence, name) for name in by)):
        title = ", ".join(
            evidence.title(name, level) for name, level in zip(by, levels, strict=True)
        )
        in_group = rows_at(frame, dict(zip(by, levels, strict=True)))
        if in_group.any():
            groups[title] = values[in_group].tolist()
            group_blocks[title] = list(compress(blocks, in_group))
    pooled = tuple(
        name
        for name in evidence.varied
        if name not in walk.by and len({words.plain(v) for v in levels_of(frame, name)}) > 1
    )
    return Walked(walk, response, papers.decide(groups, group_blocks), pooled)


def with_enough(frame: pl.DataFrame, response: Response) -> pl.DataFrame:
    """Return the runs with enough messages for the response, as in the other sections."""
    return frame.filter(pl.Series(~too_few(frame, response.column), dtype=pl.Boolean))
