"""Anybody's table as a campaign: columns of levels, columns of numbers, a row or more per run."""

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

from wattwire.imports.imported import PROVENANCE, Finding, Imported, SetAside
from wattwire.model.errors import UsageError, unknown
from wattwire.model.words import plural

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
DELIMITERS = ",;\t"
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""What is read as a number: Python would take 1_000 and digits of other scripts as well."""
UNBOUNDED = ("inf", "infinity", "nan")
RUN_COLUMN = "row"
LINES_MAX = 5
"""So many lines of the file are named one by one."""


@dataclass(frozen=True)
class Asked:
    """What is in the table: responses as (column, unit), factors, block, and the run's name."""

    responses: tuple[tuple[str, str], ...]
    factors: tuple[str, ...]
    block: str | None = None
    run: str | None = None


def response(text: str) -> tuple[str, str]:
    """Column and unit of COL or COL:UNIT."""
    name, _, unit = text.partition(":")
    if not name:
        raise UsageError(f"--response {text}: allowed: COL or COL:UNIT, e.g. power:W")
    return name, unit


def read(path: Path, asked: Asked) -> Imported:
    """A campaign from a CSV file with a header line.

    A row is a run; with `asked.run`, rows that share its value are one run, and a response is
    their mean. Runs whose response is missing stay, without it. Raises UsageError in words that
    name column and line.
    """
    header, rows = _rows(path)
    _check_asked(path, header, asked)
    groups = _by_run(path, rows, asked)
    records, provenance = [], []
    for run, members in groups.items():
        record, told = _record(path, run, members, asked)
        records.append(record)
        provenance += told
    _check_repeated(path, records, asked)
    runs = _placed(records)
    set_aside = tuple(
        SetAside(f"{path.name}, line {line}", 1, "no response in this row")
        for line, row in rows
        if all(_absent(row[name]) for name, _ in asked.responses)
    )
    columns = {
        column(name): {"unit": unit, "kind": "measured", "summary": f"{name} of {path.name}"}
        for name, unit in asked.responses
    }
    frame = pl.DataFrame(provenance, schema=PROVENANCE)
    reasons = {
        record["run"]: "no response in its rows" for record in records if record["verdict"] != "ok"
    }
    study = _study(path, records, asked)
    if all(len(levels) == 1 for levels in study["factors"].values()):
        study["comparable"] = _several(header, rows, asked)
    findings = (*_merged_levels(path, records, asked), *_odd_values(path, rows, asked))
    return Imported(study, runs, frame, set_aside, columns, reasons, findings=findings)


def column(name: str) -> str:
    """A response's column in our summary: a dot would make it a node's."""
    return re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "response"


def _rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Header, and each row with its line number in the file."""
    if path.is_dir():
        raise UsageError(f"{path}: a folder; give a CSV file with a header line")
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; give a CSV file with a header line")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not text in UTF-8 ({error.reason}); save it as CSV in UTF-8"
        ) from error
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return _cells(path, reader)
    except csv.Error as error:
        raise UsageError(f"{path}: line {reader.line_num}: not a table ({error})") from error


def _cells(path: Path, reader: Any) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    header = [name.strip() for name in next(reader, [])]
    if not any(header):
        raise UsageError(f"{path}: the file is empty; its first line has to name the columns")
    twice = [name for at, name in enumerate(header) if name in header[:at]]
    if twice:
        raise UsageError(f'{path}: line 1: there are two columns "{twice[0]}"; rename one')
    rows = []
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        line = reader.line_num
        if len(cells) != len(header):
            raise UsageError(
                f"{path}: line {line}: found {len(cells)} cells; the header has {len(header)}"
            )
        named = zip(header, cells, strict=True)
        rows.append((line, {name: cell.strip() for name, cell in named}))
    if not rows:
        raise UsageError(f"{path}: there is a header and no row below it")
    return header, rows


def _check_asked(path: Path, header: Sequence[str], asked: Asked) -> None:
    if not asked.responses:
        raise UsageError(f"{path}: no --response given; its columns: {', '.join(header)}")
    if not asked.factors:
        raise UsageError(f"{path}: no --factor given; its columns: {', '.join(header)}")
    named = [("--response", name) for name, _ in asked.responses]
    named += [("--factor", name) for name in asked.factors]
    named += [("--block", asked.block)] if asked.block else []
    named += [("--run", asked.run)] if asked.run else []
    for option, name in named:
        if name not in header:
            raise unknown(f"{path}: {option}", "column", name, header)
    role: dict[str, str] = {}
    for option, name in named:
        if name in role:
            raise UsageError(f"{path}: column {name}: given for {role[name]} and for {option}")
        role[name] = option
    stored = [column(name) for name, _ in asked.responses]
    if len(set(stored)) < len(stored):
        raise UsageError(f"{path}: responses would share a name in our summary: {stored}")


def _by_run(
    path: Path, rows: Sequence[tuple[int, dict[str, str]]], asked: Asked
) -> dict[str, list[tuple[int, dict[str, str]]]]:
    """Rows by their run; where a run is spread over treatments or blocks, that is refused."""
    groups: dict[str, list[tuple[int, dict[str, str]]]] = {}
    fixed = [*asked.factors, *([asked.block] if asked.block else [])]
    for line, row in rows:
        name = row[asked.run] if asked.run else f"{RUN_COLUMN}-{line}"
        if _absent(name):
            raise UsageError(f"{path}: line {line}: {asked.run}: found nothing; name the run")
        members = groups.setdefault(name, [])
        for key in fixed:
            if _absent(row[key]):
                raise UsageError(f"{path}: line {line}: {key}: found nothing; each row has a level")
            if members and members[0][1][key] != row[key]:
                raise UsageError(
                    f"{path}: line {line}: run {name} has {key} {row[key]}, in line "
                    f"{members[0][0]} it has {members[0][1][key]}; a run has one"
                )
        members.append((line, row))
    return groups


def _record(
    path: Path, run: str, members: Sequence[tuple[int, dict[str, str]]], asked: Asked
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A run's row in the summary, and where its numbers come from."""
    first = members[0][1]
    record: dict[str, Any] = {"run": run, "block": first[asked.block] if asked.block else ""}
    record |= {f"factor.{name}": first[name] for name in asked.factors}
    provenance = []
    for name, _ in asked.responses:
        found = [_number(path, line, name, row[name]) for line, row in members]
        values = [value for value in found if value is not None]
        record[column(name)] = sum(values) / len(values) if values else None
        lines = [line for line, _ in members]
        span = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
        provenance.append(
            {
                "run": run,
                "column": column(name),
                "files": [path.name],
                "rows_used": len(values),
                "rows_left_out": len(found) - len(values),
                "how": f"{name}, {span}" + (", mean" if len(lines) > 1 else ""),
            }
        )
    known = any(record[column(name)] is not None for name, _ in asked.responses)
    record["verdict"] = "ok" if known else "unknown"
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
            f"nothing where it is missing{hint}"
        )
    value = float(text)
    if not math.isfinite(value):
        raise UsageError(f'{path}: line {line}: {name}: found "{text}"; allowed: a finite number')
    return value


def _check_repeated(path: Path, records: Sequence[dict[str, Any]], asked: Asked) -> None:
    """Runs of one treatment are what tells an effect from chance; without any there is nothing."""
    seen = [tuple(record[f"factor.{name}"] for name in asked.factors) for record in records]
    if len(set(seen)) == len(seen):
        raise UsageError(
            f"{path}: no repeated runs: each of the {len(seen)} combinations of "
            f"{', '.join(asked.factors)} is there once, so nothing tells an effect from chance. "
            "Name fewer factors, or add runs"
            + (f"; rows that share {asked.run} are one run" if asked.run else "")
        )


def _placed(records: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The summary: blocks numbered as they come, positions counted inside them."""
    numbers: dict[str, int] = {}
    seen: dict[int, int] = {}
    rows = []
    for record in records:
        block = numbers.setdefault(record["block"], len(numbers) + 1)
        seen[block] = seen.get(block, 0) + 1
        usable = record["verdict"] == "ok"
        placed = {"block": block, "position": seen[block], "attempt": 1}
        told = {"outcome": "completed", "used": usable, "control": ""}
        rows.append({**record, **placed, **told})
    frame = pl.DataFrame(rows, infer_schema_length=None)
    for name in [name for name in frame.columns if name.startswith("factor.")]:
        frame = frame.with_columns(_levels(frame[name]))
    return frame


def _levels(series: pl.Series) -> pl.Series:
    """Levels as numbers where all of them are, so that they sort as such."""
    for kind in (pl.Int64, pl.Float64):
        cast = series.cast(kind, strict=False)
        if cast.null_count() == 0 and cast.is_finite().all():
            return cast
    return series


def _merged_levels(
    path: Path, records: Sequence[dict[str, Any]], asked: Asked
) -> Iterator[Finding]:
    """Say which levels are one number written in several ways, as 1 and 1.0: one level here."""
    for name in asked.factors:
        texts = list(dict.fromkeys(record[f"factor.{name}"] for record in records))
        written: dict[Any, list[str]] = {}
        for text, level in zip(texts, _levels(pl.Series(texts)).to_list(), strict=True):
            written.setdefault(level, []).append(text)
        several = [same for same in written.values() if len(same) > 1]
        if several:
            ways = "; ".join(", ".join(same) for same in several)
            yield Finding(
                f"Levels of {name} that are written in several ways",
                f"In {path.name} these are the same number, so each group is one level: {ways}. If "
                "they are meant to differ, write them with a letter.",
            )


def _odd_values(
    path: Path, rows: Sequence[tuple[int, dict[str, str]]], asked: Asked
) -> Iterator[Finding]:
    """Name the rows that lack one of their responses, and those where one is negative.

    Rows without any response are set aside, each by its line.
    """
    some = [one for one in rows if not all(_absent(one[1][name]) for name, _ in asked.responses)]
    for name, _ in asked.responses:
        missing = [line for line, row in some if _absent(row[name])]
        if missing:
            yield Finding(
                f"Rows without {name}",
                f"{len(missing)} of {plural(len(rows), 'row')} of {path.name} hold no number in "
                f"{name} ({_lines(missing)}): they are in no answer about it.",
            )
        negative = [line for line, row in rows if _is_negative(row[name])]
        if negative:
            yield Finding(
                f"Negative values of {name}",
                f"{len(negative)} of {plural(len(rows), 'row')} of {path.name} hold a negative "
                f"{name} ({_lines(negative)}): no ratio can be taken, so answers are differences.",
            )


def _is_negative(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and float(text) < 0.0


def _lines(numbers: Sequence[int]) -> str:
    more = len(numbers) - LINES_MAX
    shown = ", ".join(map(str, numbers[:LINES_MAX])) + (f" and {more} more" if more > 0 else "")
    return f"line {shown}" if len(numbers) == 1 else f"lines {shown}"


def _several(
    header: Sequence[str], rows: Sequence[tuple[int, dict[str, str]]], asked: Asked
) -> list[str]:
    """Columns not asked for in which values differ and come back: what could be compared."""
    taken = {*asked.factors, *(name for name, _ in asked.responses), asked.block, asked.run}
    found = []
    for name in header:
        values = {row[name] for _, row in rows if not _absent(row[name])}
        if name not in taken and 1 < len(values) <= len(rows) / 2:
            found.append(name)
    return found


def _study(path: Path, records: Sequence[dict[str, Any]], asked: Asked) -> dict[str, Any]:
    levels = {}
    for name in asked.factors:
        texts = pl.Series(name, [record[f"factor.{name}"] for record in records])
        values = _levels(texts).unique(maintain_order=True)
        levels[name] = (values.sort() if values.dtype.is_numeric() else values).to_list()
    named = [column(name) for name, _ in asked.responses]
    verb = "does" if len(named) == 1 else "do"
    question = {
        "id": "T1",
        "text": f"How {verb} {' and '.join(named)} differ by {' and '.join(asked.factors)}?",
        "factors": list(asked.factors),
        "responses": named,
    }
    return {
        "name": path.stem,
        "title": path.stem,
        "question": [question],
        "factors": levels,
        "fixed": {},
        "plan": {"primary": asked.factors[0], "blocks": len({r["block"] for r in records})},
        "answers": {},
    }
