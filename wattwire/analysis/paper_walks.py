"""Which walks of the paper's way a campaign's page takes, and each of them walked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wattwire.analysis.dataset import Evidence, levels_of, levels_run, same_level
from wattwire.analysis.responses import Response, measured, resolve
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.paper_path import Walk
from wattwire.stats import paper


@dataclass(frozen=True)
class Walked:
    """One walk of the paper's way, over runs of this campaign.

    `pooled` are the factors that vary inside its groups.
    """

    walk: Walk
    response: Response
    path: paper.Path
    pooled: tuple[str, ...]


def walks_of(evidence: Evidence) -> tuple[list[Walk], list[str]]:
    """What to walk: each answer's response by each of its factors, then what the study adds."""
    wanted: dict[Any, Walk] = {}
    for question in evidence.study.get("question", []):
        for name in question.get("responses", []):
            for factor in question.get("factors", []):
                walk = Walk(str(name), (str(factor),))
                wanted.setdefault(key_of(evidence, walk), walk)
    for item in evidence.study.get("paper_path", []):
        walk = asked_for(item)
        wanted.setdefault(key_of(evidence, walk), walk)
    walks, refused = [], {}
    for walk in wanted.values():
        response = resolve(walk.response, evidence.described)
        if not measured(evidence.usable, response):
            reason = (
                "cannot be answered here: no meter measured energy"
                if response.energy
                else "not measured in this campaign"
            )
            refused[response.title] = f"{response.title[:1].upper()}{response.title[1:]}: {reason}."
        elif any(len(levels_run(evidence, name)) > 1 for name in walk.by):
            walks.append(walk)
    return walks, list(refused.values())


def key_of(evidence: Evidence, walk: Walk) -> Any:
    """Names of one response are one walk."""
    return resolve(walk.response, evidence.described).column, walk.by, str(walk.where)


def asked_for(item: Mapping[str, Any]) -> Walk:
    """A `[[paper_path]]` table of a study that was checked when it was read."""
    table = dict(item.get("where", {}))
    nested = table.pop("settings", {})
    table |= {f"settings.{name}": level for name, level in nested.items()}
    where = {
        str(name): tuple(level) if isinstance(level, list) else (level,)
        for name, level in table.items()
    }
    return Walk(str(item["response"]), tuple(item["by"]), where)


def walked(evidence: Evidence, walk: Walk) -> Walked:
    """Group the usable runs as `walk` says and take the paper's way over them."""
    frame = kept_by(evidence.usable, walk)
    # A factor that a preset fixed has one level, and groups nothing.
    by = [name for name in walk.by if levels_run(evidence, name)]
    response = resolve(walk.response, evidence.described)
    values, blocks = column(frame, response.column), frame["block"].to_list()
    rows = [levels_of(frame, name) for name in by]
    groups: dict[str, list[float]] = {}
    of_block: dict[str, list[Any]] = {}
    for levels in product(*(levels_run(evidence, name) for name in by)):
        title = ", ".join(
            evidence.title(name, level) for name, level in zip(by, levels, strict=True)
        )
        inside = np.ones(frame.height, bool)
        for row, level in zip(rows, levels, strict=True):
            inside &= _at(row, [level])
        if inside.any():
            groups[title] = values[inside].tolist()
            of_block[title] = list(compress(blocks, inside))
    pooled = tuple(
        name
        for name in evidence.varied
        if name not in walk.by and len({words.plain(v) for v in levels_of(frame, name)}) > 1
    )
    return Walked(walk, response, paper.decide(groups, of_block), pooled)


def kept_by(frame: pl.DataFrame, walk: Walk) -> pl.DataFrame:
    """The rows of `frame` whose levels the walk's filter allows."""
    mask = np.ones(frame.height, bool)
    for name, allowed in walk.where.items():
        mask &= _at(levels_of(frame, name), allowed)
    return frame.filter(pl.Series(mask))


def _at(levels: Sequence[Any], allowed: Sequence[Any]) -> NDArray[np.bool_]:
    """Which of the levels, shape (rows,), are among those allowed; each is compared once."""
    # Kinds apart: 1 and True are one key, and the words of a list are no list.
    keys = [(type(one), one if isinstance(one, Hashable) else str(one)) for one in levels]
    known = {
        key: any(same_level(one, level) for level in allowed)
        for key, one in dict(zip(keys, levels, strict=True)).items()
    }
    return np.array([known[key] for key in keys], dtype=bool)
