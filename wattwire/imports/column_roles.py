"""Recognize the role of a table's columns: levels, measured numbers, and names of runs."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import polars as pl

from wattwire.imports.imported import Remark
from wattwire.imports.row_checks import (
    RUN_COLUMN,
    RUN_NAME,
    SAMPLES_MIN,
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
BLOCKS_MIN = 3
"""Minimum number of blocks that leaves two degrees of freedom, which an answer needs."""
LONG_COLUMN = re.compile(r"metric|measure|measurement|variable|quantity|counter", re.IGNORECASE)
"""Names of columns that state what a number is, in a table with several numbers in a column."""


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
    counts = present[name].unique_counts()
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
    changing = _varying(rows, factors, unnamed)
    within = _varying(rows, [*factors, *filter(None, [block])], unnamed)
    removed = [] if block is None else [n for n in unnamed if n not in _varying(rows, [block], [n])]
    differing = [name for name in within if _varying(rows, [name], factors)]
    nested = [name for name in within if name not in differing]
    by_block = [name for name in changing if name not in (*within, *removed)]
    confounded = [name for name in unnamed if name not in (*changing, *removed)]
    same = f"Runs with the same {listed(list(factors))} differ in "
    if within:
        advice = ""
        for name in filter(LONG_COLUMN.fullmatch, within):
            advice += f" To import one {name} of a long table, add --where {name}=VALUE."
        if differing:
            options = " ".join(f"--factor {shlex.quote(name)}" for name in differing)
            advice += f" If these are levels, add {options}."
            blocks = [name for name in differing if rows[name].n_unique() >= BLOCKS_MIN]
            if blocks and not block:
                advice += f" Or add --block {shlex.quote(blocks[0])} to compare within."
        for name in nested:
            advice += f" If rows with the same {name} are one run, add --run {shlex.quote(name)}."
        yield Remark(
            "Runs differ in columns without a role",
            f"{same}{_columns_words(rows, within)}, and count as repetitions.{advice}",
            at_top=True,
        )
    if by_block:
        yield Remark(
            "Columns that change between blocks",
            f"{same}{_columns_words(rows, by_block)} from block to block. This adds to the scatter "
            "of the ratios.",
            at_top=True,
        )
    if confounded:
        yield Remark(
            "Columns that change with the factors",
            f"All runs with the same {listed(list(factors))} have the same "
            f"{_columns_words(rows, confounded)}, so a difference can come from either.",
            at_top=True,
        )


def few_rows_remarks(
    rows: pl.DataFrame, factors: Sequence[str], block: str | None
) -> Iterator[Remark]:
    """Yield remarks on factors with hardly any repeated levels, and on blocks that are too few."""
    for name in factors:
        levels = rows[name].n_unique()
        if levels > max(LEVELS_MAX, rows.height / 2) and is_numeric(rows, name):
            yield Remark(
                f"Levels of {name} without repetition",
                f"{name} has {levels} levels in {rows.height} rows, as measured numbers have. "
                "Round them to a few levels, so that each level has several runs.",
                at_top=True,
            )
    if not block or rows[block].n_unique() != 2:
        return
    if rows.select(*factors, block).is_duplicated().all():
        yield Remark(
            f"Two blocks in {block}",
            f"{block} has two values, which are too few blocks for an answer. To use the runs "
            f"within each {block} as repetitions, name it in --factor instead.",
            at_top=True,
        )


def _varying(rows: pl.DataFrame, keys: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns of `names` that vary among rows with the same `keys`."""
    varies = rows.group_by(keys).agg(pl.col(names).n_unique() > 1).select(pl.col(names).any())
    return [name for name in names if varies[name].item()]


def sample_remarks(
    header: Sequence[str], rows: pl.DataFrame, keys: Sequence[str], unnamed: Sequence[str]
) -> Iterator[Remark]:
    """Yield a remark if a column such as trial has several rows of each value at the same levels.

    Such rows are probably samples of a run, and count as independent runs.
    """
    for name in header:
        if name in keys or not RUN_NAME.fullmatch(name):
            continue
        fewest = rows.select(pl.len().over(*keys, *unnamed, name).min()).item()
        if isinstance(fewest, int) and fewest >= SAMPLES_MIN:
            yield Remark(
                "Each row counts as a run",
                f"At least {fewest} rows have the same {name} and levels, and each counts as an "
                f"independent run. If they are samples of one run, import again with --run "
                f"{shlex.quote(name)}, because the intervals are too narrow.",
                at_top=True,
            )


def alias_remarks(
    path: Path, rows: pl.DataFrame, factors: Sequence[str], block: str | None
) -> Iterator[Remark]:
    """Yield a remark on combinations of levels without runs.

    In a fractional factorial, they confound main effects with interactions.
    """
    treatments = rows.select(factors).unique()
    varied = [name for name in factors if treatments[name].n_unique() > 1]
    aliased = [
        name
        for name in varied
        if len(varied) > 2 and treatments.select(set(varied) - {name}).is_unique().all()
    ]
    combinations = math.prod(treatments[name].n_unique() for name in varied)
    if len(varied) > 1 and treatments.height < combinations and not aliased:
        levels = [rows[name].unique(maintain_order=True).to_list() for name in varied]
        present = set(treatments.select(varied).iter_rows())
        ratios = (
            "A ratio averages over the combinations that both of its levels have, so it may "
            "describe only some levels of the other factors. Levels without a common combination "
            "have no ratio."
            if block
            else "Ratios assume that no factor changes the ratio of another one."
        )
        missing = [" with ".join(c) for c in itertools.product(*levels) if c not in present]
        yield Remark(
            "Combinations without runs",
            f"{path.name} has {treatments.height} of the {combinations} combinations of "
            f"{listed(varied)}; it lacks {listed_first(missing, VALUES_LISTED)}. {ratios}",
            at_top=True,
        )
    if aliased:
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
