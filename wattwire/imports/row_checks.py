"""Check whether the rows of a table are independent, complete and successful runs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wattwire.imports.csv_text import NUMBER, Row
from wattwire.imports.imported import Remark
from wattwire.model.errors import UsageError
from wattwire.model.words import listed, listed_first, number, plural

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
CORRELATED_ROWS_MIN = 50
CORRELATION_MAX = 0.5
"""Largest lag-one rank correlation of rows that count as runs. Among CORRELATED_ROWS_MIN
independent rows, it is exceeded with a probability of 0.0002.
"""
ROWS_MAX = 200
"""Number of rows per treatment and block above which a remark asks whether they are runs."""
STATUS_COLUMNS = frozenset(
    {"status", "state", "result", "outcome", "success", "successful", "ok", "error", "errors",
     "failed", "failure", "verdict", "code", "status_code", "exit_code", "exitcode", "returncode",
     "http_code", "http_status"}
)  # fmt: skip
STATUS_VALUES = frozenset({"ok", "success", "succeeded", "successful", "passed", "completed"})
VALUES_MAX = 6
"""Maximum number of listed values, and of distinct values of a status column."""
LINES_MAX = 5
"""Maximum number of line numbers in a message."""


def is_absent(text: str) -> bool:
    return text.lower() in MISSING


def check_independent(
    path: Path, groups: Sequence[Sequence[Row]], responses: Sequence[str]
) -> None:
    """Raise UsageError if rows that count as runs are samples of a series.

    `groups` contains the rows of each treatment and block, in the order of the file. Samples within
    a run follow each other closely, so that neighbours are similar; as runs, they would make
    intervals too narrow.
    """
    for name in responses:
        rows, correlation = _serial_correlation([[row[name] for _, row in g] for g in groups])
        if rows >= CORRELATED_ROWS_MIN and correlation > CORRELATION_MAX:
            raise UsageError(
                f"{path}: {name}: consecutive rows are correlated ({number(correlation, 2)} in "
                f"{plural(rows, 'row')}), so the rows are samples or messages within runs and not "
                "independent runs. Name the column of the run with --run COL; wattwire then "
                "averages its rows. If each row is a run, add --rows-are-runs."
            )


def _serial_correlation(groups: Sequence[Sequence[str]]) -> tuple[int, float]:
    """Return the number of rows, and the lag-one correlation of the ranks within the groups."""
    products = squares = 0.0
    rows = 0
    for texts in groups:
        values = np.array([float(text) for text in texts if NUMBER.fullmatch(text)])
        if len(values) > 2:
            ranks = _centred_ranks(values)
            products += float(ranks[1:] @ ranks[:-1])
            squares += float(ranks @ ranks)
            rows += len(values)
    return rows, products / squares if squares else 0.0


def _centred_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ranks minus their mean. Equal values have the same rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts + 1) / 2)[inverse]
    centred: NDArray[np.float64] = ranks - ranks.mean()
    return centred


def many_rows(groups: Sequence[Sequence[Row]]) -> Iterator[Remark]:
    """Yield a remark if so many rows count as runs that they may be samples."""
    most = max(map(len, groups))
    if most > ROWS_MAX:
        yield Remark(
            "Each row counts as a run",
            f"A treatment has up to {plural(most, 'row')} per block, and the intervals treat them "
            "as independent runs. If rows are samples or messages within a run, import again with "
            "--run COL.",
        )


def status_remarks(
    path: Path, header: Sequence[str], rows: Sequence[Row], with_role: Collection[str | None]
) -> Iterator[Remark]:
    """Yield a remark for each column that may mark failed rows and has no role."""
    for name in header:
        if name in with_role:
            continue
        counts = Counter(row[name] for _, row in rows)
        named = name.lower().replace(" ", "_").replace("-", "_") in STATUS_COLUMNS
        if not 1 < len(counts) <= (len(rows) / 2 if named else VALUES_MAX):
            continue
        if named or any(value.lower() in STATUS_VALUES for value in counts):
            values = [f'"{value}" in {plural(n, "row")}' for value, n in counts.most_common()]
            successful = next((v for v in counts if v.lower() in STATUS_VALUES), "VALUE")
            yield Remark(
                f"Column {name} may mark failed rows",
                f"{path.name} has {name} {listed_first(values, VALUES_MAX)}, and all of these rows "
                "count. A failed request has no valid time. To import only successful rows, add "
                f"--where {shlex.quote(f'{name}={successful}')}.",
            )


def value_remarks(path: Path, rows: Sequence[Row], responses: Sequence[str]) -> Iterator[Remark]:
    """Yield remarks on rows that lack some responses, and on negative responses.

    Rows without any response are excluded, and each is listed with its line.
    """
    with_response = [
        (line, row) for line, row in rows if not all(is_absent(row[name]) for name in responses)
    ]
    for name in responses:
        missing = [line for line, row in with_response if is_absent(row[name])]
        if missing:
            yield Remark(
                f"Rows without {name}",
                f"{path.name} has no number for {name} in {len(missing)} of "
                f"{plural(len(rows), 'row')} ({lines_words(missing)}). Answers about {name} "
                "exclude such rows.",
            )
        negative = [line for line, row in rows if _is_negative(row[name])]
        if negative:
            yield Remark(
                f"Negative values of {name}",
                f"{path.name} has a negative {name} in {len(negative)} of "
                f"{plural(len(rows), 'row')} ({lines_words(negative)}). Ratios are undefined, "
                "so answers are differences.",
            )


def unequal_remarks(
    rows_by_treatment: dict[tuple[str, ...], list[Row]], responses: Sequence[str]
) -> Iterator[Remark]:
    """Yield a remark for each response that treatments lack in different shares of their rows."""
    for name in responses:
        missing = {
            treatment: sum(is_absent(row[name]) for _, row in rows)
            for treatment, rows in rows_by_treatment.items()
        }
        shares = {missing[treatment] / len(rows) for treatment, rows in rows_by_treatment.items()}
        if len(shares) > 1:
            places = [
                f"{count} of {plural(len(rows_by_treatment[treatment]), 'row')} of "
                f"{listed(list(treatment))}"
                for treatment, count in missing.items()
                if count
            ]
            yield Remark(
                f"Unequal missing values of {name}",
                f"{name} is missing in {listed_first(places, VALUES_MAX)}. Answers describe the "
                "other rows alone. If a value is missing because it was too large, such as the "
                "latency of a lost message, the answers are too favourable; then also import a "
                "column that counts the losses.",
            )


def _is_negative(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and float(text) < 0.0


def lines_words(numbers: Sequence[int]) -> str:
    """Return the first line numbers as words."""
    unlisted = len(numbers) - LINES_MAX
    words = ", ".join(map(str, numbers[:LINES_MAX])) + (
        f" and {unlisted} more" if unlisted > 0 else ""
    )
    return f"line {words}" if len(numbers) == 1 else f"lines {words}"
