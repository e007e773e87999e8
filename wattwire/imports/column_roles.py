"""Recognize the role of a table's columns: levels, measured numbers, and names of runs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import polars as pl

from wattwire.imports.imported import Remark
from wattwire.imports.row_checks import (
    RUN_COLUMN,
    STATUS_COLUMNS,
    is_absent,
    is_numeric,
    may_mark_failures,
)
from wattwire.model.metrics import direction_of
from wattwire.model.words import listed, listed_first

LEVELS_MAX = 20
"""Maximum number of distinct numbers of a column of levels."""
UNBALANCED = 2
"""Ratio of the rows of the most and least frequent number above which numbers are measured."""
BALANCED = 1
"""The same ratio for a column that is named like a response, such as lost or rate_hz."""
VALUES_LISTED = 3


def level_columns(rows: pl.DataFrame, names: Collection[str]) -> list[str]:
    """Return the columns of `names` whose values differ and repeat, as levels do.

    Numbers are levels if each occurs about equally often, because measured numbers do not.
    """
    return [name for name in names if _has_levels(rows, name)]


def number_columns(rows: pl.DataFrame, names: Collection[str]) -> list[str]:
    """Return the columns of `names` with measured numbers."""
    return [
        name
        for name in names
        if not RUN_COLUMN.fullmatch(name)
        and rows[name].n_unique() > 1
        and not _has_levels(rows, name)
        and is_numeric(rows.filter(~is_absent(name)), name)
    ]


def _has_levels(rows: pl.DataFrame, name: str) -> bool:
    if RUN_COLUMN.fullmatch(name):
        return False
    present = rows.filter(~is_absent(name))
    counts = present[name].value_counts()["count"]
    if not 1 < len(counts) <= rows.height / 2:
        return False
    if not is_numeric(present, name):
        return True
    if name.casefold() in STATUS_COLUMNS:
        return False  # a count, such as the errors of a run
    fewest, most = counts.min(), counts.max()
    assert isinstance(fewest, int) and isinstance(most, int)
    ratio = BALANCED if direction_of(name, "") else UNBALANCED
    return len(counts) <= LEVELS_MAX and fewest > 1 and most <= ratio * fewest


def unnamed_columns(
    header: Sequence[str],
    rows: pl.DataFrame,
    run: str | None,
    with_role: Collection[str | None],
) -> list[str]:
    """Return the columns of levels that no option names. They are constant within each run."""
    without_role = [name for name in header if name not in with_role]
    names = [n for n in level_columns(rows, without_role) if not may_mark_failures(rows, n)]
    if run and names:
        varies = rows.group_by(run).agg(pl.col(names).n_unique() > 1).select(pl.col(names).any())
        names = [name for name in names if not varies[name].item()]
    return names


def unnamed_remarks(
    rows: pl.DataFrame, unnamed: Sequence[str], factors: Sequence[str], block: str | None
) -> Iterator[Remark]:
    """Yield a remark on columns of levels without a role, because they may explain differences."""
    if not unnamed:
        return
    keys = [*factors, *filter(None, [block])]
    within = rows.group_by(keys).agg(pl.col(unnamed).n_unique() > 1).select(pl.col(unnamed).any())
    differing = [name for name in unnamed if within[name].item()]
    confounded = [name for name in unnamed if name not in differing]
    if block:  # the comparison within blocks removes what is constant in each block
        blocks = rows.group_by(block).agg(pl.col(unnamed).n_unique() > 1)
        confounded = [name for name in confounded if blocks[name].any()]
    if differing:
        options = " ".join(f"--factor {shlex.quote(name)}" for name in differing)
        or_block = (
            "" if block else f" Or add --block {shlex.quote(differing[0])} to compare within."
        )
        yield Remark(
            "Runs differ in columns without a role",
            f"Runs with the same {listed(list(factors))} differ in "
            f"{_columns_words(rows, differing)}, and count as repetitions. If these are levels, "
            f"add {options}.{or_block}",
            at_top=True,
        )
    if confounded:
        yield Remark(
            "Columns that change with the factors",
            f"All runs with the same {listed(list(factors))} have the same "
            f"{_columns_words(rows, confounded)}, so a difference can come from either.",
            at_top=True,
        )


def alias_remarks(path: Path, rows: pl.DataFrame, factors: Sequence[str]) -> Iterator[Remark]:
    """Yield a remark if a fractional factorial confounds main effects with interactions."""
    treatments = rows.select(factors).unique()
    varied = [name for name in factors if treatments[name].n_unique() > 1]
    aliased = [
        name
        for name in varied
        if len(varied) > 2 and treatments.select(set(varied) - {name}).is_unique().all()
    ]
    if aliased:
        combinations = math.prod(treatments[name].n_unique() for name in varied)
        noun, verb = ("effect", "is") if len(aliased) == 1 else ("effects", "are each")
        yield Remark(
            "Main effects aliased with interactions",
            f"{path.name} has {treatments.height} of the {combinations} combinations of "
            f"{listed(varied)} (a fractional factorial). The {noun} of {listed(aliased)} {verb} "
            "the main effect plus interactions of the other factors. To separate them, add runs "
            "of the other combinations.",
            at_top=True,
        )


def _columns_words(rows: pl.DataFrame, names: Sequence[str]) -> str:
    texts = []
    for name in names:
        values = rows[name].unique(maintain_order=True).to_list()
        texts.append(f"{name} ({listed_first(values, VALUES_LISTED)})")
    return listed(texts)
