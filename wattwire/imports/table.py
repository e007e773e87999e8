"""Import a CSV table whose rows are runs, with columns for levels and for numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from wattwire.imports import column_roles, row_checks
from wattwire.imports.csv_text import LINE, NUMBER, check_no_log, read_table
from wattwire.imports.imported import PROVENANCE, Imported, Remark, SetAside
from wattwire.imports.row_checks import as_number, is_absent, is_number
from wattwire.model.errors import UsageError, unknown
from wattwire.model.metrics import HIGHER, LOWER, METRICS, direction_of
from wattwire.model.study import LEVEL_RULES
from wattwire.model.treatment import is_setting
from wattwire.model.words import COLUMN, listed, listed_first, plural

UNBOUNDED = ("inf", "infinity", "nan", "∞")
RUN_COLUMN = "row"
KEPT_APART = "column_"
"""Prefix of a response whose name is a column of the store."""
ROW, LAST_LINE = " row", " last line"
"""Auxiliary columns, which are no columns of a file, because its names are stripped."""
SORTED_RUNS = 1 << 16
"""Runs whose provenance is sorted at once, because sorting doubles its memory."""
ROWS_LISTED = 1000
"""Maximum number of excluded rows that are listed by line, per reason."""
SHARED_NAMES = 0.5
"""Share of the names of runs that occur in several treatments if names restart in each."""
VALUES_LISTED = 20
"""Maximum number of values of a column that a message lists completely."""
SUMMARY_COLUMN = re.compile(
    r"(mean|average|avg|median|p50|std|sd|stddev|std_dev|stdev|sem|ci|variance|n|samples|count)",
    re.IGNORECASE,
)
"""Names of columns of a table of summaries."""
SUMMARY_ROW = re.compile(r"(mean|average|avg|median|total|sum|std|stdev)\W*", re.IGNORECASE)
"""Cells that mark a row as a summary of others."""
SUMMARY_SUFFIX = re.compile(r"(.+)_(mean|median|stddev|cv|BigO|RMS)")
"""Levels of summaries of Google Benchmark; the first group is the level of the runs."""
COMMIT_COLUMN = re.compile(r"(.*[\W_])?(commit|sha\d*|hash|revision|rev|tag)", re.IGNORECASE)
VERSION_COLUMN = re.compile(r"(.*[\W_])?(version|release|kernel)", re.IGNORECASE)
"""Names of columns whose texts with a point are versions and not numbers."""
UNIT_COLUMN = re.compile(r"(.*[\W_])?units?", re.IGNORECASE)
UNITS = frozenset(
    "ns us µs μs ms s sec min h B kB KB KiB MB MiB GB GiB uJ µJ mJ J kJ Wh mW W kW "
    "Hz kHz MHz GHz".split()
)
"""Units in a column of units."""
TOTALS = {"sample_measured_value": "iteration_count"}
"""Columns of totals → column of the number that they sum up, as in criterion's raw.csv."""


DIRECTION_WORDS = {
    LOWER: "Lower is better: {}.",
    HIGHER: "Higher is better: {}.",
    "": "Unknown: {}; the page names no better level of it, and `compare` refuses it.",
}
"""Better direction of responses → sentence."""


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
    higher_is_better: tuple[str, ...] = ()
    lower_is_better: tuple[str, ...] = ()

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
    all_rows = read_table(path)
    header = [name for name in all_rows.columns if name != LINE]
    request = _with_columns_of(header, request)
    _check_roles(path, header, all_rows, request)
    rows, set_aside = _where(path, all_rows, request)
    del all_rows
    rows, run_remarks = _with_whole_run_names(rows, request)
    _check_runs(path, rows, request)
    _check_no_summaries(path, rows, request)
    _check_comparable_numbers(path, header, rows, request)
    runs, provenance = run_tables(path, rows, request)
    _check_repeated(path, header, runs, request)
    keys = [*request.factors, *filter(None, [request.block])]
    unnamed = column_roles.unnamed_columns(header, rows, request.run, _with_role(request))
    if request.run is None and not request.rows_are_runs:
        check_no_log(path, header)
        row_checks.check_no_series(path, header, rows, keys)
        row_checks.check_independent(path, rows, keys, request.response_columns, unnamed)
    is_empty = pl.all_horizontal(*map(is_absent, request.response_columns))
    set_aside += excluded_rows(path, rows.filter(is_empty)[LINE], "no response in this row")
    directions = _directions(request)
    columns = {
        column(name): {
            "unit": unit,
            "kind": "measured",
            "summary": f"{name} of {path.name}",
            "title": _title(name),
            "direction": directions[name],
        }
        for name, unit in request.responses
    }
    unusable = runs.filter(pl.col("verdict") != "valid")["run"]
    reasons = dict.fromkeys(unusable, "no response in its rows")
    study = _study(path, runs, request)
    is_sample = not (request.run or request.block)  # rows of a block are averaged
    samples = column_roles.sample_remarks(header, rows, keys, unnamed) if is_sample else ()
    if all(len(levels) == 1 for levels in study["factors"].values()):
        study["comparable"] = unnamed
        unnamed = []
    remarks = (
        *(row_checks.many_rows(header, rows, keys) if request.run is None else ()),
        *samples,
        *column_roles.few_rows_remarks(rows, request.factors, request.block),
        *column_roles.unnamed_remarks(rows, unnamed, request.factors, request.block),
        *column_roles.alias_remarks(path, rows, request.factors, request.block),
        *row_checks.status_remarks(path, header, rows, _with_role(request)),
        *row_checks.unequal_remarks(rows, request.factors, request.response_columns),
        *row_checks.spelling_remarks(path, rows, request.factors),
        *(() if request.run else row_checks.repeated_remarks(path, header, rows, request.block)),
        *_spelling_remarks(path, runs, request),
        *row_checks.value_remarks(path, rows, request.response_columns),
        *row_checks.scale_remarks(rows, request.responses),
        *_direction_remarks(directions),
        *run_remarks,
    )
    runs = _with_positions(runs)
    return Imported(study, runs, provenance, tuple(set_aside), columns, reasons, remarks=remarks)


def _directions(request: TableRequest) -> dict[str, str]:
    """Return the better direction of each response: as stated, or by name and unit, or ""."""
    stated = dict.fromkeys(request.higher_is_better, HIGHER)
    stated |= dict.fromkeys(request.lower_is_better, LOWER)
    return {name: stated.get(name, direction_of(name, unit)) for name, unit in request.responses}


def _direction_remarks(directions: Mapping[str, str]) -> Iterator[Remark]:
    """Yield a remark on the better direction of each response, unless all are better if lower."""
    if set(directions.values()) == {LOWER}:
        return
    texts = [
        words.format(listed([name for name, known in directions.items() if known == direction]))
        for direction, words in DIRECTION_WORDS.items()
        if direction in directions.values()
    ]
    yield Remark(
        "Better direction",
        f"{' '.join(texts)} Names and units tell the direction; --higher-is-better COL and "
        "--lower-is-better COL state it.",
    )


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
    path: Path, rows: pl.DataFrame, request: TableRequest
) -> tuple[pl.DataFrame, list[SetAside]]:
    """Return the rows that meet all conditions, and the other rows."""
    set_aside: list[SetAside] = []
    for name in dict.fromkeys(name for name, _ in request.where):
        values = [value for key, value in request.where if key == name]
        present = set(rows[name].unique())
        for value in values:
            if value not in present:
                if len(present) <= VALUES_LISTED:
                    raise unknown(f"{path}: --where {name}", "value", value, present)
                raise UsageError(
                    f'{path}: --where {name}: no row has the value "{value}"; the column has '
                    f"{listed_first(sorted(present), row_checks.VALUES_MAX)}"
                )
        reason = f"{name} is not {' or '.join(value or 'empty' for value in values)} (--where)"
        meets = rows[name].is_in(values)
        set_aside += excluded_rows(path, rows.filter(~meets)[LINE], reason)
        rows = rows.filter(meets)
    return rows, set_aside


def excluded_rows(path: Path, lines: pl.Series, why: str) -> Iterator[SetAside]:
    """Yield the excluded rows: the first ROWS_LISTED by line, and the number of the others."""
    for line in lines.head(ROWS_LISTED):
        yield SetAside(f"{path.name}, line {line}", 1, why)
    others = lines[ROWS_LISTED:]
    if len(others):
        span = f"lines {others[0]} to {others[-1]}" if len(others) > 1 else f"line {others[0]}"
        yield SetAside(f"{path.name}, {span}", len(others), why)


def column(name: str) -> str:
    """Return the name of a response's column in the summary.

    It has no dots, which mark the columns of nodes, and it differs from all columns of the store,
    such as lost or verdict, whose meaning and unit the table may not share.
    """
    plain_name = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_") or "response"
    return f"{KEPT_APART}{plain_name}" if plain_name in METRICS else plain_name


def _title(name: str) -> str:
    """Return the words for a response in sentences."""
    return " ".join(name.split()) or name


def factor(name: str) -> str:
    """Return the name of a factor in the study.

    It differs from all factors of measured studies, such as pattern or loop, because code refers to
    these with their meaning.
    """
    has_meaning = name in LEVEL_RULES or is_setting(name) or name.startswith(COLUMN)
    return f"{COLUMN}{name}" if has_meaning else name


def _check_roles(
    path: Path, header: Sequence[str], rows: pl.DataFrame, request: TableRequest
) -> None:
    for option, names, columns_of, kind in (
        ("--response", request.responses, column_roles.number_columns, "measured numbers"),
        ("--factor", request.factors, column_roles.level_columns, "levels"),
    ):
        if not names:
            likely = ", ".join(columns_of(rows, header))
            hint = f"; probably {kind}: {likely}" if likely else ""
            raise UsageError(
                f"{path}: {option} is missing; name one of the file's columns: "
                f"{', '.join(header)}{hint}"
            )
    options = [("--response", name) for name, _ in request.responses]
    options += [("--factor", name) for name in request.factors]
    options += [("--block", request.block)] if request.block else []
    options += [("--run", request.run)] if request.run else []
    wheres = [("--where", name) for name, _ in request.where]
    for option, name in (*options, *wheres):
        if name not in header:
            raise unknown(f"{path}: {option}", "column", name, header)
    directed = [("--higher-is-better", name) for name in request.higher_is_better]
    directed += [("--lower-is-better", name) for name in request.lower_is_better]
    for option, name in directed:
        if name not in request.response_columns:
            raise unknown(f"{path}: {option}", "response", name, request.response_columns)
    both = set(request.higher_is_better) & set(request.lower_is_better)
    if both:
        raise UsageError(
            f"{path}: column {min(both)}: named in --higher-is-better and in --lower-is-better"
        )
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


def _with_whole_run_names(
    rows: pl.DataFrame, request: TableRequest
) -> tuple[pl.DataFrame, list[Remark]]:
    """Return the rows with unique names of runs, and a remark if they got longer names.

    If at least half of the names occur in several treatments or blocks, as numbers that restart in
    each, a run is named by its block, its levels and its name.
    """
    keys = [*filter(None, [request.block]), *request.factors]
    if request.run is None:
        return rows, []
    places = rows.select(request.run, *keys).unique().group_by(request.run).len(ROW)
    shared = int((places[ROW] > 1).sum())
    if shared < max(2, SHARED_NAMES * places.height):
        return rows, []
    remark = Remark(
        f"Names of runs in {request.run}",
        f"The names restart in each level or block ({shared} of {plural(places.height, 'name')} "
        f"occur in several), so a run is a name at one level of {listed(keys)}.",
    )
    name = pl.concat_str([*keys, request.run], separator=" ")
    return rows.with_columns(
        pl.when((pl.col(request.run) == "") | pl.any_horizontal(pl.col(key) == "" for key in keys))
        .then(pl.col(request.run))
        .otherwise(name)
        .alias(request.run)
    ), [remark]


def _check_runs(path: Path, rows: pl.DataFrame, request: TableRequest) -> None:
    """Raise UsageError if a run, level or block is missing, or if a run has several of them."""
    fixed_columns = [*request.factors, *([request.block] if request.block else [])]
    run = [request.run] if request.run else []
    faults = [pl.col(name) == "" for name in (*run, *fixed_columns)]
    firsts = [pl.col(name).first().over(run) for name in (fixed_columns if run else [])]
    faults += [pl.col(n) != first for n, first in zip(fixed_columns, firsts, strict=False)]
    faulty = rows.with_row_index(ROW).filter(pl.any_horizontal(*faults)).head(1)
    if faulty.is_empty():
        return
    ((line, index),) = faulty.select(LINE, ROW).iter_rows()
    row = rows.row(index, named=True)
    first, of_run = row, ""
    if request.run:
        if not row[request.run]:
            raise UsageError(f"{path}: line {line}: {request.run}: found nothing; name the run")
        first = rows.filter(pl.col(request.run) == row[request.run]).row(0, named=True)
        of_run = f"run {row[request.run]}"
    for name in fixed_columns:
        if not row[name]:
            raise UsageError(
                f"{path}: line {line}: {name}: found nothing; each row needs a level."
                + _cause_of_no_level(row, request)
            )
        if first[name] != row[name]:
            raise UsageError(
                f"{path}: line {line}: found {name} {row[name]} for {of_run}; line {first[LINE]} "
                f"has {first[name]}. All rows of a run need the same value."
            )


def _check_no_summaries(path: Path, rows: pl.DataFrame, request: TableRequest) -> None:
    """Raise UsageError if a level marks rows that summarise the runs of other levels."""
    for name in request.factors:
        counts = Counter(rows[name].to_list())
        for level, count in counts.items():
            runs = SUMMARY_SUFFIX.fullmatch(level)
            is_footer = count == 1 < max(counts.values()) and SUMMARY_ROW.fullmatch(level)
            if is_footer or (runs and runs[1] in counts):
                line = rows.filter(pl.col(name) == level)[LINE][0]
                raise UsageError(
                    f'{path}: line {line}: {name}: "{level}" looks like a summary of other rows. '
                    "Delete such rows. If it is a level, rename it."
                )


def _check_comparable_numbers(
    path: Path, header: Sequence[str], rows: pl.DataFrame, request: TableRequest
) -> None:
    """Raise UsageError if numbers have different units, or are totals of different counts."""
    for name in header:
        values = rows[name].unique(maintain_order=True).to_list()
        has_role = name in {*request.factors, request.block}
        if len(values) > 1 and not has_role and UNIT_COLUMN.fullmatch(name) and {*values} <= UNITS:
            raise UsageError(
                f"{path}: {name} has {listed(values)}, so the numbers have different units. Write "
                f"them in one unit, or import the rows of one unit with --where {name}={values[0]}."
            )
    for name in request.response_columns:
        divisor = TOTALS.get(name)
        if divisor is None or divisor not in header or divisor in request.response_columns:
            continue
        if rows[divisor].n_unique() > 1:
            raise UsageError(
                f"{path}: {name} is a total of {divisor}, which differs between rows. Add a column "
                f"with {name} divided by {divisor}, and name it in --response."
            )


def _cause_of_no_level(row: Mapping[str, Any], request: TableRequest) -> str:
    """Return the probable cause of a row without a level, and the remedy, or ""."""
    unit = row[request.response_columns[0]]
    if unit and not NUMBER.fullmatch(unit) and not _is_missing(unit):
        name = request.response_columns[0]
        return (
            " This row looks like a row of units: delete it, and name the unit in the option, e.g. "
            f"--response {name}:{unit.strip('()[]')}."
        )
    if any(SUMMARY_ROW.fullmatch(str(cell)) for cell in row.values()):
        return " This row looks like a summary of others: delete it."
    return " If the row belongs to no treatment, delete it."


def _is_missing(text: str) -> bool:
    return text.lower() in row_checks.MISSING


def run_tables(
    path: Path, rows: pl.DataFrame, request: TableRequest
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of the runs in the summary, and the provenance of their numbers."""
    run = pl.col(request.run) if request.run else pl.format(f"{RUN_COLUMN}-{{}}", LINE)
    numbers = rows.select(
        LINE,
        run.alias("run"),
        (pl.col(request.block) if request.block else pl.lit("")).alias("block"),
        *(pl.col(name).alias(f"factor.{factor(name)}") for name in request.factors),
        *(_numbers(path, rows, name).alias(column(name)) for name in request.response_columns),
    )
    responses = [column(name) for name in request.response_columns]
    keys = [name for name in numbers.columns if name not in (LINE, "run", *responses)]
    values = [pl.col(name).count().alias(f"{ROW}.{name}") for name in responses]
    runs = (
        numbers.group_by("run", maintain_order=True).agg(
            *(pl.col(name).first() for name in keys),
            *(pl.col(name).mean() for name in responses),
            pl.len().alias(ROW),
            pl.col(LINE).first(),
            pl.col(LINE).last().alias(LAST_LINE),
            *values,
        )
        if request.run
        else numbers.with_columns(
            pl.lit(1).alias(ROW),
            pl.col(LINE).alias(LAST_LINE),
            *(
                pl.col(name).is_not_null().cast(pl.Int64).alias(f"{ROW}.{name}")
                for name in responses
            ),
        )
    )
    provenance = _provenance(path, runs, request)
    has_response = pl.any_horizontal(*(pl.col(name).is_not_null() for name in responses))
    verdict = pl.when(has_response).then(pl.lit("valid")).otherwise(pl.lit("invalid"))
    return runs.select("run", *keys, *responses, verdict.alias("verdict")), provenance


def _provenance(path: Path, runs: pl.DataFrame, request: TableRequest) -> pl.DataFrame:
    """Return the provenance of each response of each run, in the order of the runs."""
    span = (
        pl.when(pl.col(ROW) == 1)
        .then(pl.format("line {}", LINE))
        .otherwise(pl.format("lines {} to {}, mean", LINE, LAST_LINE))
    )
    return pl.concat(
        pl.concat(
            part.select(
                "run",
                pl.lit(column(name)).alias("column"),
                pl.lit([path.name]).alias("files"),
                pl.col(f"{ROW}.{column(name)}").cast(pl.Int64).alias("rows_used"),
                (pl.col(ROW) - pl.col(f"{ROW}.{column(name)}"))
                .cast(pl.Int64)
                .alias("rows_left_out"),
                pl.concat_str(pl.lit(f"{name}, "), span).alias("how"),
                pl.int_range(pl.len()).alias(ROW),
            )
            for name in request.response_columns
        )
        .sort(ROW, maintain_order=True)
        .select(list(PROVENANCE))
        for part in runs.iter_slices(SORTED_RUNS)
    )


def _numbers(path: Path, rows: pl.DataFrame, name: str) -> pl.Series:
    """Return the numbers of a column, null where they are absent. Raise UsageError for a text."""
    numbers = rows.select(as_number(name)).to_series()
    is_sound = rows.select(is_absent(name) | (is_number(name) & pl.lit(numbers.is_finite())))
    faulty = rows.filter(~is_sound.to_series().fill_null(False)).head(1)
    if faulty.height:
        raise _no_number(path, faulty[LINE][0], name, faulty[name][0])
    return numbers.set(rows.select(is_absent(name)).to_series(), None)


def _no_number(path: Path, line: int, name: str, text: str) -> UsageError:
    where = f'{path}: line {line}: {name}: found "{text}"; allowed: '
    if text.lower().lstrip("+-") in UNBOUNDED:
        return UsageError(
            f"{where}a finite number. A message that was lost has no latency: leave the cell "
            "empty, and import a column that counts the losses as a further response."
        )
    if not NUMBER.fullmatch(text):
        return UsageError(
            f"{where}a number such as 1.5, or an empty cell for a missing value"
            + _cause_of_no_number(name, text)
        )
    return UsageError(f"{where}a finite number")


def _cause_of_no_number(name: str, text: str) -> str:
    """Return the probable cause why a text is not a number, and the remedy, or ""."""
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", text):
        return (
            ". If the comma separates thousands, save the table without it; if it is a decimal "
            "comma, save the table with decimal points"
        )
    if re.fullmatch(r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+", text):
        return ". If the comma is a decimal comma, save the table with decimal points"
    if text.lower() in ("true", "false", "yes", "no"):
        return ". Write 1 for true and 0 for false: the mean is then the share of runs"
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
    runs: pl.DataFrame,
    request: TableRequest,
) -> None:
    """Raise UsageError if no treatment has replicates, which are needed to estimate errors."""
    if runs.select(f"factor.{factor(name)}" for name in request.factors).is_duplicated().any():
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


def _with_positions(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the summary, with blocks numbered by first occurrence and positions within blocks."""
    blocks = runs.select(pl.col("block").unique(maintain_order=True)).with_row_index(ROW, 1)
    numbered = runs.join(blocks, on="block", maintain_order="left")
    return runs.with_columns(
        numbered[ROW].cast(pl.Int64).alias("block"),
        *(_levels(runs[name]) for name in runs.columns if name.startswith("factor.")),
        pl.int_range(1, pl.len() + 1).over("block").alias("position"),
        attempt=pl.lit(1, pl.Int64),
        outcome=pl.lit("completed"),
        used=pl.col("verdict") == "valid",
        control=pl.lit(""),
    )


def _levels(series: pl.Series) -> pl.Series:
    """Return the levels as numbers if all are numeric, so that they sort numerically.

    Versions and names of digits, such as 1.10 and 007, remain texts if numbers would merge them,
    and versions also if they look like versions.
    """
    texts = series.unique(maintain_order=True).to_list()
    if _are_versions(series.name, texts) or any(map(_are_names, _same_numbers(texts))):
        return series
    for kind in (pl.Int64, pl.Float64):
        numbers = series.cast(kind, strict=False)
        if numbers.null_count() == 0 and numbers.is_finite().all():
            return numbers
    return series


def _are_versions(name: str, texts: Sequence[str]) -> bool:
    """Return whether levels are versions or names of commits, by the column or a final zero.

    As numbers, 6.10 would become 6.1 and precede 6.6. Numbers with a final zero, such as 0.25 and
    0.50, usually have equally many decimals.
    """
    if COMMIT_COLUMN.fullmatch(name):
        return True
    decimals = {text.partition(".")[2] for text in texts if "." in text}
    if VERSION_COLUMN.fullmatch(name) and decimals:
        return True
    has_final_zero = any(
        part.strip("0") and part.endswith("0") or part == "00" for part in decimals
    )
    return has_final_zero and len(set(map(len, decimals))) > 1


def _same_numbers(texts: Sequence[str]) -> list[list[str]]:
    """Return the groups of texts that are the same number, if all texts are numbers."""
    groups: dict[float, list[str]] = {}
    for text in texts:
        if not NUMBER.fullmatch(text):
            return []
        groups.setdefault(float(text), []).append(text)
    return [spellings for spellings in groups.values() if len(spellings) > 1]


def _are_names(spellings: Sequence[str]) -> bool:
    """Return whether spellings of a number look like versions, or like names with leading zeros."""
    return sum("." in text for text in spellings) > 1 or any(
        re.match(r"0\d", text) for text in spellings
    )


def _spelling_remarks(path: Path, runs: pl.DataFrame, request: TableRequest) -> Iterator[Remark]:
    """Yield a remark for each factor that has a number in several spellings, such as 1 and 1.0."""
    for name in request.factors:
        texts = runs[f"factor.{factor(name)}"].unique(maintain_order=True)
        groups = _same_numbers(texts.to_list())
        if not groups:
            continue
        ways = "; ".join(", ".join(spellings) for spellings in groups)
        if _levels(texts).dtype == pl.String:
            outcome = "but count as different levels"
            remedy = "If they are the same, write them alike and import again"
        else:
            outcome = "so each group is one level"
            remedy = "If they should differ, add a letter to each"
        yield Remark(
            f"Levels of {name} with several spellings",
            f"In {path.name}, these spellings are the same number, {outcome}: {ways}. {remedy}.",
            at_top=True,
        )


def _with_role(request: TableRequest) -> set[str | None]:
    conditions = [name for name, _ in request.where]
    return {
        *request.factors, *request.response_columns, *conditions, request.block, request.run
    }  # fmt: skip


def _study(path: Path, runs: pl.DataFrame, request: TableRequest) -> dict[str, Any]:
    levels = {}
    for name in request.factors:
        values = _levels(runs[f"factor.{factor(name)}"]).unique(maintain_order=True)
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
            "blocks": runs["block"].n_unique(),
        },
        "answers": {},
    }
