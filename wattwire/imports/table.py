"""Import a CSV table whose rows are runs, with columns for levels and for numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.imports import row_checks
from wattwire.imports.csv_text import NUMBER, Row, read_rows
from wattwire.imports.imported import PROVENANCE, Imported, Remark, SetAside
from wattwire.imports.row_checks import is_absent
from wattwire.model.errors import UsageError, unknown
from wattwire.model.metrics import METRICS
from wattwire.model.study import LEVEL_TYPES
from wattwire.model.treatment import is_setting
from wattwire.model.words import COLUMN, listed_first

UNBOUNDED = ("inf", "infinity", "nan", "∞")
RUN_COLUMN = "row"
KEPT_APART = "column_"
"""Prefix of a response whose name is a column of the store."""
VALUES_LISTED = 20
"""Maximum number of values of a column that a message lists completely."""
SUMMARY_COLUMN = re.compile(
    r"(mean|average|avg|median|p50|std|sd|stddev|std_dev|stdev|sem|ci|variance|n|samples|count)",
    re.IGNORECASE,
)
"""Names of columns of a table of summaries."""


@dataclass(frozen=True)
class TableRequest:
    """The roles of a table's columns: responses as (column, unit), factors, block and run name."""

    responses: tuple[tuple[str, str], ...]
    factors: tuple[str, ...]
    block: str | None = None
    run: str | None = None
    where: tuple[tuple[str, str], ...] = ()
    """Column and value of the rows to import. Several values of a column are alternatives."""
    rows_are_runs: bool = False
    """Whether each row is a run although consecutive rows are correlated."""

    @property
    def response_columns(self) -> list[str]:
        return [name for name, _ in self.responses]


def response(text: str) -> tuple[str, str]:
    """Return the column and the unit of a text COL or COL:UNIT."""
    name, _, unit = text.partition(":")
    if not name:
        raise UsageError(f"--response {text}: allowed: COL or COL:UNIT, e.g. power:W")
    return name, unit


def condition(text: str) -> tuple[str, str]:
    """Return the column and the value of a text COL=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--where {text}: allowed: COL=VALUE, e.g. status=OK")
    return name, value


def read(path: Path, request: TableRequest) -> Imported:
    """Return a campaign from a CSV file with a header line.

    Each row is a run. With `request.run`, rows with the same value are one run, and each response
    is their mean. Missing responses remain missing. Raise UsageError with the column and line of an
    error.
    """
    header, all_rows = read_rows(path)
    request = _with_columns_of(header, request)
    _check_roles(path, header, request)
    rows, set_aside = _where(path, all_rows, request)
    rows_by_run = _by_run(path, rows, request)
    records, provenance = [], []
    for run, members in rows_by_run.items():
        record, sources = _record(path, run, members, request)
        records.append(record)
        provenance += sources
    _check_repeated(path, header, records, request)
    rows_by_treatment = _grouped(rows, request.factors)
    groups = list(_grouped(rows, [*request.factors, *filter(None, [request.block])]).values())
    if request.run is None and not request.rows_are_runs:
        row_checks.check_independent(path, groups, request.response_columns)
    set_aside += [
        SetAside(f"{path.name}, line {line}", 1, "no response in this row")
        for line, row in rows
        if all(is_absent(row[name]) for name in request.response_columns)
    ]
    columns = {
        column(name): {
            "unit": unit,
            "kind": "measured",
            "summary": f"{name} of {path.name}",
            "title": _title(name),
        }
        for name, unit in request.responses
    }
    reasons = {
        record["run"]: "no response in its rows"
        for record in records
        if record["verdict"] != "valid"
    }
    study = _study(path, records, request)
    if all(len(levels) == 1 for levels in study["factors"].values()):
        study["comparable"] = _comparable_columns(header, rows, request)
    remarks = (
        *(row_checks.many_rows(groups) if request.run is None else ()),
        *row_checks.status_remarks(path, header, rows, _with_role(request)),
        *row_checks.unequal_remarks(rows_by_treatment, request.response_columns),
        *_merged_levels(path, records, request),
        *row_checks.value_remarks(path, rows, request.response_columns),
    )
    frame = pl.DataFrame(provenance, schema=PROVENANCE)
    runs = _with_positions(records)
    return Imported(study, runs, frame, tuple(set_aside), columns, reasons, remarks=remarks)


def _with_columns_of(header: Sequence[str], request: TableRequest) -> TableRequest:
    """Return the request with the longest column of the file in each text COL:UNIT.

    The name of a column can contain colons itself, such as "cycles:u".
    """

    def split(name: str, unit: str) -> tuple[str, str]:
        text = f"{name}:{unit}" if unit else name
        ends = [len(text), *(at for at in reversed(range(len(text))) if text[at] == ":")]
        end = next((end for end in ends if text[:end] in header), None)
        return (name, unit) if end is None else (text[:end], text[end + 1 :])

    return replace(request, responses=tuple(split(*texts) for texts in request.responses))


def _where(
    path: Path, rows: Sequence[Row], request: TableRequest
) -> tuple[Sequence[Row], list[SetAside]]:
    """Return the rows that meet all conditions, and the numbers of the other rows."""
    set_aside = []
    for name in dict.fromkeys(name for name, _ in request.where):
        values = [value for key, value in request.where if key == name]
        present = {row[name] for _, row in rows}
        for value in values:
            if value not in present:
                if len(present) <= VALUES_LISTED:
                    raise unknown(f"{path}: --where {name}", "value", value, present)
                raise UsageError(
                    f'{path}: --where {name}: no row has the value "{value}"; the column has '
                    f"{listed_first(sorted(present), row_checks.VALUES_MAX)}"
                )
        reason = f"{name} is not {' or '.join(values)} (--where)"
        set_aside += [
            SetAside(f"{path.name}, line {line}", 1, reason)
            for line, row in rows
            if row[name] not in values
        ]
        rows = [(line, row) for line, row in rows if row[name] in values]
    return rows, set_aside


def _grouped(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    """Return the rows by their cells in these columns."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for line, row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append((line, row))
    return groups


def column(name: str) -> str:
    """Return the name of a response's column in the summary.

    It has no dots, which mark the columns of nodes, and it differs from all columns of the store,
    such as lost or verdict, whose meaning and unit the table may not share.
    """
    plain_name = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "response"
    return f"{KEPT_APART}{plain_name}" if plain_name in METRICS else plain_name


def _title(name: str) -> str:
    """Return the words for a response in sentences."""
    return " ".join(re.sub(r"[_\s]+", " ", name).split()) or name


def factor(name: str) -> str:
    """Return the name of a factor in the study.

    It differs from all factors of measured studies, such as pattern or loop, because code refers to
    these with their meaning.
    """
    has_meaning = name in LEVEL_TYPES or is_setting(name) or name.startswith(COLUMN)
    return f"{COLUMN}{name}" if has_meaning else name


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
    wheres = [("--where", name) for name, _ in request.where]
    for option, name in (*options, *wheres):
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


def _by_run(path: Path, rows: Sequence[Row], request: TableRequest) -> dict[str, list[Row]]:
    """Return the rows by run.

    Raise UsageError if a run, level or block is missing, or if a run has several levels or blocks.
    """
    rows_by_run: dict[str, list[Row]] = {}
    fixed_columns = [*request.factors, *([request.block] if request.block else [])]
    for line, row in rows:
        run = row[request.run] if request.run else f"{RUN_COLUMN}-{line}"
        if is_absent(run):
            raise UsageError(f"{path}: line {line}: {request.run}: found nothing; name the run")
        members = rows_by_run.setdefault(run, [])
        for column_name in fixed_columns:
            if is_absent(row[column_name]):
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
    path: Path, run: str, members: Sequence[Row], request: TableRequest
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of a run in the summary, and the provenance of its numbers."""
    first = members[0][1]
    record: dict[str, Any] = {"run": run, "block": first[request.block] if request.block else ""}
    record |= {f"factor.{factor(name)}": first[name] for name in request.factors}
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


def _number(path: Path, line: int, name: str, text: str) -> float | None:
    if is_absent(text):
        return None
    where = f'{path}: line {line}: {name}: found "{text}"; allowed: '
    if text.lower().lstrip("+-") in UNBOUNDED:
        raise UsageError(
            f"{where}a finite number. A message that was lost has no latency: leave the cell "
            "empty, and import a column that counts the losses as a further response."
        )
    if not NUMBER.fullmatch(text):
        raise UsageError(
            f"{where}a number such as 1.5, or an empty cell for a missing value"
            + _cause_of_no_number(name, text)
        )
    value = float(text)
    if not math.isfinite(value):
        raise UsageError(f"{where}a finite number")
    return value


def _cause_of_no_number(name: str, text: str) -> str:
    """Return the probable cause why a text is not a number, and the remedy, or ""."""
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", text):
        return (
            ". If the comma separates thousands, save the table without it; if it is a decimal "
            "comma, save the table with decimal points"
        )
    if re.fullmatch(r"[+-]?\d*,\d+", text):
        return ". If the comma is a decimal comma, save the table with decimal points"
    unit = re.fullmatch(rf"{NUMBER.pattern}\s*([^\d\s]+)", text)
    if unit:
        return (
            f". Write all numbers of the column in one unit and without it, and name the unit in "
            f"the option, e.g. --response {name}:{unit[unit.lastindex or 0]}"
        )
    return ""


def _check_repeated(
    path: Path,
    header: Sequence[str],
    records: Sequence[dict[str, Any]],
    request: TableRequest,
) -> None:
    """Raise UsageError if no treatment has replicates, which are needed to estimate errors."""
    names = [f"factor.{factor(name)}" for name in request.factors]
    treatments = [tuple(record[name] for name in names) for record in records]
    if len(set(treatments)) < len(treatments):
        return
    summaries = [name for name in header if SUMMARY_COLUMN.fullmatch(name.strip())]
    if len(summaries) > 1:
        hint = (
            f" The columns {', '.join(summaries)} look like summaries of several runs; import a "
            "table with a row for each run instead."
        )
    elif request.run:
        hint = f" Rows with the same {request.run} are one run."
    else:
        hint = (
            " If the columns are the levels of a factor (a wide table), convert it to one column "
            "of levels, one of numbers and a row per run."
        )
    raise UsageError(
        f"{path}: there are no repeated runs, because each combination of levels "
        f"({', '.join(request.factors)}) has one run. Effects therefore cannot be separated "
        f"from chance. Name fewer factors, or add runs.{hint}"
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
        texts = list(dict.fromkeys(record[f"factor.{factor(name)}"] for record in records))
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


def _with_role(request: TableRequest) -> set[str | None]:
    conditions = [name for name, _ in request.where]
    return {
        *request.factors, *request.response_columns, *conditions, request.block, request.run
    }  # fmt: skip


def _comparable_columns(
    header: Sequence[str], rows: Sequence[Row], request: TableRequest
) -> list[str]:
    """Return possible factors: columns without a role whose values differ and repeat."""
    with_role = _with_role(request)
    comparable = []
    for name in header:
        values = {row[name] for _, row in rows if not is_absent(row[name])}
        if name not in with_role and 1 < len(values) <= len(rows) / 2:
            comparable.append(name)
    return comparable


def _study(path: Path, records: Sequence[dict[str, Any]], request: TableRequest) -> dict[str, Any]:
    levels = {}
    for name in request.factors:
        texts = pl.Series(name, [record[f"factor.{factor(name)}"] for record in records])
        values = _levels(texts).unique(maintain_order=True)
        levels[factor(name)] = (values.sort() if values.dtype.is_numeric() else values).to_list()
    response_columns = [column(name) for name, _ in request.responses]
    verb = "does" if len(response_columns) == 1 else "do"
    question = {
        "id": "T1",
        "text": f"How {verb} {' and '.join(map(_title, request.response_columns))} differ "
        f"by {' and '.join(request.factors)}?",
        "factors": list(levels),
        "responses": response_columns,
    }
    return {
        "name": path.stem,
        "title": path.stem,
        "question": [question],
        "factors": levels,
        "fixed": {},
        "plan": {
            "primary": factor(request.factors[0]),
            "blocks": len({record["block"] for record in records}),
        },
        "answers": {},
    }
