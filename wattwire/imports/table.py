"""Import a CSV table whose rows are runs, with columns for levels and for numbers."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.imports.imported import PROVENANCE, Imported, Remark, SetAside
from wattwire.model.errors import UsageError, unknown
from wattwire.model.words import plural

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
DELIMITERS = ",;\t"
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""Syntax of a number; Python's float also accepts 1_000 and digits of other scripts."""
UNBOUNDED = ("inf", "infinity", "nan")
RUN_COLUMN = "row"
LINES_MAX = 5
"""Maximum number of line numbers in a message."""


@dataclass(frozen=True)
class TableRequest:
    """The roles of a table's columns: responses as (column, unit), factors, block and run name."""

    responses: tuple[tuple[str, str], ...]
    factors: tuple[str, ...]
    block: str | None = None
    run: str | None = None


def response(text: str) -> tuple[str, str]:
    """Return the column and the unit of a text COL or COL:UNIT."""
    name, _, unit = text.partition(":")
    if not name:
        raise UsageError(f"--response {text}: allowed: COL or COL:UNIT, e.g. power:W")
    return name, unit


def read(path: Path, request: TableRequest) -> Imported:
    """Return a campaign from a CSV file with a header line.

    Each row is a run. With `request.run`, rows with the same value are one run, and each response
    is their mean. Missing responses remain missing. Raise UsageError with the column and line of an
    error.
    """
    header, rows = _rows(path)
    _check_roles(path, header, request)
    rows_by_run = _by_run(path, rows, request)
    records, provenance = [], []
    for run, members in rows_by_run.items():
        record, sources = _record(path, run, members, request)
        records.append(record)
        provenance += sources
    _check_repeated(path, records, request)
    runs = _with_positions(records)
    set_aside = tuple(
        SetAside(f"{path.name}, line {line}", 1, "no response in this row")
        for line, row in rows
        if all(_absent(row[name]) for name, _ in request.responses)
    )
    columns = {
        column(name): {"unit": unit, "kind": "measured", "summary": f"{name} of {path.name}"}
        for name, unit in request.responses
    }
    frame = pl.DataFrame(provenance, schema=PROVENANCE)
    reasons = {
        record["run"]: "no response in its rows"
        for record in records
        if record["verdict"] != "valid"
    }
    study = _study(path, records, request)
    if all(len(levels) == 1 for levels in study["factors"].values()):
        study["comparable"] = _comparable_columns(header, rows, request)
    remarks = (*_merged_levels(path, records, request), *_odd_values(path, rows, request))
    return Imported(study, runs, frame, set_aside, columns, reasons, remarks=remarks)


def column(name: str) -> str:
    """Return the name of a response's column without dots, which mark the columns of nodes."""
    return re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "response"


def _rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the header, and each row with its line number in the file."""
    if path.is_dir():
        raise UsageError(f"{path}: this is a folder; name a CSV file with a header line")
    if not path.is_file():
        raise UsageError(f"{path}: this file does not exist; name a CSV file with a header line")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 text ({error.reason}); save it as CSV in UTF-8"
        ) from error
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return _cells(path, reader)
    except csv.Error as error:
        raise UsageError(
            f"{path}: line {reader.line_num}: cannot be read as CSV ({error})"
        ) from error


def _cells(path: Path, reader: Any) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    header = [name.strip() for name in next(reader, [])]
    if not any(header):
        raise UsageError(f"{path}: the file is empty; its first line must name the columns")
    repeated = [name for index, name in enumerate(header) if name in header[:index]]
    if repeated:
        raise UsageError(f'{path}: line 1: found two columns "{repeated[0]}"; rename one of them')
    rows = []
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        line = reader.line_num
        if len(cells) != len(header):
            raise UsageError(
                f"{path}: line {line}: found {len(cells)} cells; the header has {len(header)}"
            )
        named_cells = zip(header, cells, strict=True)
        rows.append((line, {name: cell.strip() for name, cell in named_cells}))
    if not rows:
        raise UsageError(f"{path}: the file has a header but no rows; add at least one row")
    return header, rows


def _check_roles(path: Path, header: Sequence[str], request: TableRequest) -> None:
    if not request.responses:
        raise UsageError(
            f"{path}: --response is missing; name one of the file's columns: {', '.join(header)}"
        )
    if not request.factors:
        raise UsageError(
            f"{path}: --factor is missing; name one of the file's columns: {', '.join(header)}"
        )
    options = [("--response", name) for name, _ in request.responses]
    options += [("--factor", name) for name in request.factors]
    options += [("--block", request.block)] if request.block else []
    options += [("--run", request.run)] if request.run else []
    for option, name in options:
        if name not in header:
            raise unknown(f"{path}: {option}", "column", name, header)
    option_of: dict[str, str] = {}
    for option, name in options:
        if name in option_of:
            raise UsageError(
                f"{path}: column {name}: named twice, in {option_of[name]} and in {option}"
            )
        option_of[name] = option
    response_columns = [column(name) for name, _ in request.responses]
    if len(set(response_columns)) < len(response_columns):
        raise UsageError(
            f"{path}: several responses would have the same name in the summary: "
            f"{', '.join(response_columns)}. Rename columns of the file so that the names differ."
        )


def _by_run(
    path: Path, rows: Sequence[tuple[int, dict[str, str]]], request: TableRequest
) -> dict[str, list[tuple[int, dict[str, str]]]]:
    """Return the rows by run.

    Raise UsageError if a run, level or block is missing, or if a run has several levels or blocks.
    """
    rows_by_run: dict[str, list[tuple[int, dict[str, str]]]] = {}
    fixed_columns = [*request.factors, *([request.block] if request.block else [])]
    for line, row in rows:
        run = row[request.run] if request.run else f"{RUN_COLUMN}-{line}"
        if _absent(run):
            raise UsageError(f"{path}: line {line}: {request.run}: found nothing; name the run")
        members = rows_by_run.setdefault(run, [])
        for column_name in fixed_columns:
            if _absent(row[column_name]):
                raise UsageError(
                    f"{path}: line {line}: {column_name}: found nothing; each row needs a level"
                )
            if members and members[0][1][column_name] != row[column_name]:
                raise UsageError(
                    f"{path}: line {line}: found {column_name} {row[column_name]} for run {run}; "
                    f"line {members[0][0]} has {members[0][1][column_name]}. All rows of a run "
                    "need the same value."
                )
        members.append((line, row))
    return rows_by_run


def _record(
    path: Path, run: str, members: Sequence[tuple[int, dict[str, str]]], request: TableRequest
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of a run in the summary, and the provenance of its numbers."""
    first = members[0][1]
    record: dict[str, Any] = {"run": run, "block": first[request.block] if request.block else ""}
    record |= {f"factor.{name}": first[name] for name in request.factors}
    provenance = []
    for name, _ in request.responses:
        numbers = [_number(path, line, name, row[name]) for line, row in members]
        values = [value for value in numbers if value is not None]
        record[column(name)] = sum(values) / len(values) if values else None
        lines = [line for line, _ in members]
        span = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
        provenance.append(
            {
                "run": run,
                "column": column(name),
                "files": [path.name],
                "rows_used": len(values),
                "rows_left_out": len(numbers) - len(values),
                "how": f"{name}, {span}" + (", mean" if len(lines) > 1 else ""),
            }
        )
    has_response = any(record[column(name)] is not None for name, _ in request.responses)
    record["verdict"] = "valid" if has_response else "invalid"
    return record, provenance


def _absent(text: str) -> bool:
    return text.lower() in MISSING


def _number(path: Path, line: int, name: str, text: str) -> float | None:
    if _absent(text):
        return None
    if not NUMBER.fullmatch(text) and text.lower().lstrip("+-") not in UNBOUNDED:
        hint = ""
        if re.fullmatch(r"[+-]?\d*,\d+", text):
            hint = ". If the comma is a decimal comma, save the table with decimal points"
        raise UsageError(
            f'{path}: line {line}: {name}: found "{text}"; allowed: a number such as 1.5, or '
            f"an empty cell for a missing value{hint}"
        )
    value = float(text)
    if not math.isfinite(value):
        raise UsageError(f'{path}: line {line}: {name}: found "{text}"; allowed: a finite number')
    return value


def _check_repeated(path: Path, records: Sequence[dict[str, Any]], request: TableRequest) -> None:
    """Raise UsageError if no treatment has replicates, which are needed to estimate errors."""
    treatments = [tuple(record[f"factor.{name}"] for name in request.factors) for record in records]
    if len(set(treatments)) == len(treatments):
        raise UsageError(
            f"{path}: there are no repeated runs, because each combination of levels "
            f"({', '.join(request.factors)}) has one run. Effects therefore cannot be separated "
            "from chance. Name fewer factors, or add runs."
            + (f" Rows with the same {request.run} are one run." if request.run else "")
        )


def _with_positions(records: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return the summary, with blocks numbered by first occurrence and positions within blocks."""
    block_numbers: dict[str, int] = {}
    runs_in_block: dict[int, int] = {}
    rows = []
    for record in records:
        block = block_numbers.setdefault(record["block"], len(block_numbers) + 1)
        runs_in_block[block] = runs_in_block.get(block, 0) + 1
        usable = record["verdict"] == "valid"
        run_order = {"block": block, "position": runs_in_block[block], "attempt": 1}
        defaults = {"outcome": "completed", "used": usable, "control": ""}
        rows.append({**record, **run_order, **defaults})
    frame = pl.DataFrame(rows, infer_schema_length=None)
    for name in [name for name in frame.columns if name.startswith("factor.")]:
        frame = frame.with_columns(_levels(frame[name]))
    return frame


def _levels(series: pl.Series) -> pl.Series:
    """Return the levels as numbers if all are numeric, so that they sort numerically."""
    for kind in (pl.Int64, pl.Float64):
        numbers = series.cast(kind, strict=False)
        if numbers.null_count() == 0 and numbers.is_finite().all():
            return numbers
    return series


def _merged_levels(
    path: Path, records: Sequence[dict[str, Any]], request: TableRequest
) -> Iterator[Remark]:
    """Yield a remark for each factor that has a number in several spellings, such as 1 and 1.0.

    These spellings become the same level.
    """
    for name in request.factors:
        texts = list(dict.fromkeys(record[f"factor.{name}"] for record in records))
        spellings_by_level: dict[Any, list[str]] = {}
        for text, level in zip(texts, _levels(pl.Series(texts)).to_list(), strict=True):
            spellings_by_level.setdefault(level, []).append(text)
        merged = [spellings for spellings in spellings_by_level.values() if len(spellings) > 1]
        if merged:
            ways = "; ".join(", ".join(spellings) for spellings in merged)
            yield Remark(
                f"Levels of {name} with several spellings",
                f"In {path.name}, these spellings are the same number, so each group is one "
                f"level: {ways}. If they should differ, add a letter to each.",
            )


def _odd_values(
    path: Path, rows: Sequence[tuple[int, dict[str, str]]], request: TableRequest
) -> Iterator[Remark]:
    """Yield remarks on rows that lack some responses, and on negative responses.

    Rows without any response are excluded, and each is listed with its line.
    """
    with_response = [
        numbered_row
        for numbered_row in rows
        if not all(_absent(numbered_row[1][name]) for name, _ in request.responses)
    ]
    for name, _ in request.responses:
        missing = [line for line, row in with_response if _absent(row[name])]
        if missing:
            yield Remark(
                f"Rows without {name}",
                f"{path.name} has no number for {name} in {len(missing)} of "
                f"{plural(len(rows), 'row')} ({_lines(missing)}). Answers about {name} "
                "exclude such rows.",
            )
        negative = [line for line, row in rows if _is_negative(row[name])]
        if negative:
            yield Remark(
                f"Negative values of {name}",
                f"{path.name} has a negative {name} in {len(negative)} of "
                f"{plural(len(rows), 'row')} ({_lines(negative)}). Ratios are undefined, "
                "so answers are differences.",
            )


def _is_negative(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and float(text) < 0.0


def _lines(numbers: Sequence[int]) -> str:
    unlisted = len(numbers) - LINES_MAX
    listed = ", ".join(map(str, numbers[:LINES_MAX])) + (
        f" and {unlisted} more" if unlisted > 0 else ""
    )
    return f"line {listed}" if len(numbers) == 1 else f"lines {listed}"


def _comparable_columns(
    header: Sequence[str], rows: Sequence[tuple[int, dict[str, str]]], request: TableRequest
) -> list[str]:
    """Return possible factors: columns without a role whose values differ and repeat."""
    with_role = {
        *request.factors,
        *(name for name, _ in request.responses),
        request.block,
        request.run,
    }
    comparable = []
    for name in header:
        values = {row[name] for _, row in rows if not _absent(row[name])}
        if name not in with_role and 1 < len(values) <= len(rows) / 2:
            comparable.append(name)
    return comparable


def _study(path: Path, records: Sequence[dict[str, Any]], request: TableRequest) -> dict[str, Any]:
    levels = {}
    for name in request.factors:
        texts = pl.Series(name, [record[f"factor.{name}"] for record in records])
        values = _levels(texts).unique(maintain_order=True)
        levels[name] = (values.sort() if values.dtype.is_numeric() else values).to_list()
    response_columns = [column(name) for name, _ in request.responses]
    verb = "does" if len(response_columns) == 1 else "do"
    question = {
        "id": "T1",
        "text": f"How {verb} {' and '.join(response_columns)} differ "
        f"by {' and '.join(request.factors)}?",
        "factors": list(request.factors),
        "responses": response_columns,
    }
    return {
        "name": path.stem,
        "title": path.stem,
        "question": [question],
        "factors": levels,
        "fixed": {},
        "plan": {
            "primary": request.factors[0],
            "blocks": len({record["block"] for record in records}),
        },
        "answers": {},
    }
