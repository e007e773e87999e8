"""Check whether the rows of a table are independent, complete and successful runs."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import polars as pl

from wattwire.imports.csv_text import LINE, NUMBER
from wattwire.imports.imported import Remark
from wattwire.model.errors import UsageError
from wattwire.model.words import listed, listed_first, number, plural

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-"})
"""Texts of a missing number, in lower case. As a level, all but the empty text are words."""
CORRELATED_ROWS_MIN = 50
CORRELATION_MAX = 0.5
"""Largest lag-one rank correlation of rows that count as runs. Among CORRELATED_ROWS_MIN
independent rows, it is exceeded with a probability of 0.0002.
"""
LOG_ROWS_MAX = 30
"""Number of rows as of ROWS_MAX if the table is in the order of a column of times."""
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
TIME_COLUMN = re.compile(r"(date|time|timestamp|date_?time|elapsed|ts|seconds?)(_?m?s)?", re.I)
"""Names of columns of times."""
RUN_NAME = re.compile(
    "(run|rep|repetition|repeat|replicate|trial|iteration|iter)(_?(id|no))?", re.IGNORECASE
)
"""Names of columns that name a run."""
RUN_COLUMN = re.compile(
    f"{RUN_NAME.pattern}|(id|seq|index|no|number|sample)(_?(id|no))?|{TIME_COLUMN.pattern}",
    re.IGNORECASE,
)
"""Names of columns that tell rows apart."""
SAMPLES_MIN = 4
"""Minimum number of rows at a constant step that are samples of a run."""
REGULAR_SHARE = 0.5
"""Share of the steps between rows that are equal in a table of samples."""
_ROWS = " rows"
"""Column of a number of rows, which is no column of a file."""
TIME_NAME = re.compile(r"lat|time|rtt|delay|duration|p\d\d|(?:^|[\W_])[mun]?s$", re.IGNORECASE)
"""Names of responses that are times, which are never 0."""
NO_RATIO = {
    re.compile(r"°[CF]$|(^|[\W_])(deg_?)?(celsius|fahrenheit|temp(erature)?_c)$", re.IGNORECASE): (
        "because the zero of this temperature is arbitrary. Import the rise above a reference, "
        "such as the room."
    ),
    re.compile(r"(^|[\W_])dB[a-z]*$", re.IGNORECASE): (
        "because decibels are logarithms: their difference is a ratio. Import 10^(dB/10)."
    ),
}
"""Units or ends of names of responses → reason why their ratios have no meaning, and remedy."""
FEW_ZEROS = 0.5
"""Share of zeros of a response below which each may be a missing value."""
IF_MISSING = (
    "Some programs write -1 or 0 for a missing value: then leave these cells empty and import "
    "again."
)
LINES_MAX = 5
"""Maximum number of line numbers in a message."""


def is_absent(name: str) -> pl.Expr:
    """Return whether the texts of a column are a missing value."""
    return pl.col(name).str.to_lowercase().is_in(list(MISSING))


def check_independent(
    path: Path,
    rows: pl.DataFrame,
    keys: Sequence[str],
    responses: Sequence[str],
    unnamed: Sequence[str],
) -> None:
    """Raise UsageError if rows that count as runs are samples of a series.

    `keys` are the columns of treatment and block. Samples within a run follow each other closely,
    so that neighbours in the file are similar; as runs, they would make intervals too narrow.
    So are neighbours in a table that is sorted by the levels in `unnamed` columns.
    """
    for name in responses:
        compared, correlation = _serial_correlation(rows, keys, name)
        if compared >= CORRELATED_ROWS_MIN and correlation > CORRELATION_MAX:
            within = _serial_correlation(rows, [*keys, *unnamed], name)[1]
            if unnamed and within <= CORRELATION_MAX:
                options = " ".join(f"--factor {shlex.quote(column)}" for column in unnamed)
                raise UsageError(
                    f"{path}: {name}: consecutive rows are correlated ({number(correlation, 2)} "
                    f"in {plural(compared, 'row')}), because they differ in "
                    f"{listed(list(unnamed))}, which no option names. If these are levels, add "
                    f"{options}, or name one of them in --block."
                )
            raise UsageError(
                f"{path}: {name}: consecutive rows are correlated ({number(correlation, 2)} in "
                f"{plural(compared, 'row')}), so the rows are samples or messages within runs and "
                "not independent runs. Name the column of the run with --run COL; wattwire then "
                "averages its rows. If each row is a run, add --rows-are-runs."
            )


def check_no_series(
    path: Path, header: Sequence[str], rows: pl.DataFrame, keys: Sequence[str]
) -> None:
    """Raise UsageError if a column of times shows that rows are samples at regular intervals.

    At least REGULAR_SHARE of the steps between neighbours in the file of the same treatment and
    block are equal, and at least SAMPLES_MIN rows are part of such steps. Unlike a correlation, a
    regular step is visible in a few rows. Runs in a random order have few such neighbours. The log
    of a load that mixes treatments has regular steps between successive rows of a treatment, or
    between all rows. So may alternating runs, so this takes CORRELATED_ROWS_MIN rows per treatment.
    """
    for name in header:
        if name in keys or not TIME_COLUMN.fullmatch(name):
            continue
        times = _seconds(rows[name])
        if times is None:
            continue
        follows = pl.all_horizontal(pl.col(key) == pl.col(key).shift(1) for key in keys)
        steps = rows.select(*keys, times.diff().alias(_ROWS), follows=follows)
        neighbours = steps.filter("follows")[_ROWS].drop_nulls()
        series = [("neighbouring rows of a treatment", neighbours)]
        if rows.height >= CORRELATED_ROWS_MIN * rows.select(keys).n_unique():
            own = rows.select(*keys, times.alias(_ROWS)).select(pl.col(_ROWS).diff().over(keys))
            series += [("successive rows of a treatment", own[_ROWS].drop_nulls())]
            series += [("successive rows", steps[_ROWS].drop_nulls())]
        for between, lengths in series:
            common = lengths.mode().sort().first() if len(lengths) else None
            if not isinstance(common, float) or common <= 0.0:
                continue
            regular = int((lengths == common).sum())
            if regular >= max(SAMPLES_MIN - 1, REGULAR_SHARE * len(lengths)):
                unit = "" if is_numeric(rows, name) else " s"
                raise UsageError(
                    f"{path}: {name}: {plural(regular, 'step')} between {between} are "
                    f"{common:.6g}{unit} long, so the rows are samples within runs and not "
                    "independent runs. Name the column of the run with --run COL; wattwire then "
                    "averages its rows. If each row is a run, add --rows-are-runs."
                )


def is_numeric(rows: pl.DataFrame, name: str) -> bool:
    """Return whether all texts of a column are numbers."""
    return bool(rows.select(is_number(name).all()).item())


def _seconds(texts: pl.Series) -> pl.Series | None:
    """Return the times of a column as numbers, dates in seconds; None if any is neither."""
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() == 0:
        return numbers
    iso = texts.str.replace("T", " ").str.strip_suffix("Z")
    dates = iso.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False)
    return None if dates.null_count() else dates.dt.epoch("us") / 1e6


def _serial_correlation(rows: pl.DataFrame, keys: Sequence[str], name: str) -> tuple[int, float]:
    """Return the number of rows, and the lag-one correlation of the ranks within the groups.

    Equal values have the same rank. Groups of one or two rows have no correlation.
    """
    group = pl.col(_ROWS).first().over(keys)
    values = rows.filter(is_number(name)).with_row_index(_ROWS)
    values = values.select(group.alias("group"), as_number(name).alias("value"))
    values = values.filter(pl.len().over("group") > 2)
    ranks = values.with_columns(rank=pl.col("value").rank("average").over("group"))
    ranks = ranks.with_columns(rank=pl.col("rank") - pl.col("rank").mean().over("group"))
    products = ranks.select(
        (pl.col("rank") * pl.col("rank").shift(1).over("group")).sum().alias("products"),
        (pl.col("rank") ** 2).sum().alias("squares"),
    )
    product_sum, squares = products.row(0)
    return values.height, product_sum / squares if squares else 0.0


def is_number(name: str) -> pl.Expr:
    """Return whether the texts of a column are numbers, possibly too large for a float."""
    return pl.col(name).str.contains(f"^(?:{NUMBER.pattern})$")


def as_number(name: str) -> pl.Expr:
    """Return the numbers of a column of texts, or null."""
    return pl.col(name).str.strip_prefix("+").cast(pl.Float64, strict=False)


def many_rows(header: Sequence[str], rows: pl.DataFrame, keys: Sequence[str]) -> Iterator[Remark]:
    """Yield a remark if so many rows of a treatment and block count as runs that they may be
    samples.

    A column of times that never decreases, as in a log, makes this likely for fewer rows.
    """
    most = rows.select(pl.len().over(keys).max()).item()
    rows_max = LOG_ROWS_MAX if any(_is_log(rows, name) for name in header) else ROWS_MAX
    if isinstance(most, int) and most > rows_max:
        yield Remark(
            "Each row counts as a run",
            f"A treatment has up to {plural(most, 'row')} per block. In a single block, the "
            "intervals treat them as independent runs; several blocks are averaged. If rows are "
            "requests, samples or messages within a run, import again with --run COL.",
            at_top=True,
        )


def _is_log(rows: pl.DataFrame, name: str) -> bool:
    times = _seconds(rows[name]) if TIME_COLUMN.fullmatch(name) else None
    return times is not None and times.is_sorted()


def status_remarks(
    path: Path, header: Sequence[str], rows: pl.DataFrame, with_role: Collection[str | None]
) -> Iterator[Remark]:
    """Yield a remark for each column that may mark failed rows and has no role."""
    for name in header:
        if name in with_role:
            continue
        if may_mark_failures(rows, name):
            counts = dict(Counter(rows[name].to_list()).most_common())
            values = [f'"{value}" in {plural(n, "row")}' for value, n in counts.items()]
            in_file_order = rows[name].unique(maintain_order=True)
            successful = next((v for v in in_file_order if v.lower() in STATUS_VALUES), "VALUE")
            yield Remark(
                f"Column {name} may mark failed rows",
                f"{path.name} has {name} {listed_first(values, VALUES_MAX)}, and all of these rows "
                "count. A failed request has no valid time. To import only successful rows, add "
                f"--where {shlex.quote(f'{name}={successful}')}.",
                at_top=True,
            )


def may_mark_failures(rows: pl.DataFrame, name: str) -> bool:
    """Return whether a column may mark failed rows, by its name or its values."""
    named = name.lower().replace(" ", "_").replace("-", "_") in STATUS_COLUMNS
    values = rows[name].unique().to_list()
    if not 1 < len(values) <= (rows.height / 2 if named else VALUES_MAX):
        return False
    is_code = name.lower().endswith(("code", "status"))
    if len(values) > 2 and not is_code and is_numeric(rows, name):
        return False  # a count, such as the errors of a run
    return named or any(value.lower() in STATUS_VALUES for value in values)


def value_remarks(path: Path, rows: pl.DataFrame, responses: Sequence[str]) -> Iterator[Remark]:
    """Yield remarks on rows that lack some responses, and on negative responses.

    Rows without any response are excluded, and each is listed with its line.
    """
    with_response = rows.filter(~pl.all_horizontal(*map(is_absent, responses)))
    for name in responses:
        missing = rows.filter(is_absent(name))[LINE]
        if with_response.select(is_absent(name).any()).item():
            yield Remark(
                f"Rows without {name}",
                f"{path.name} has no number for {name} in {len(missing)} of "
                f"{plural(rows.height, 'row')} ({lines_words(missing)}). Answers about {name} "
                "exclude such rows.",
            )
        negative = rows.filter(is_number(name) & (as_number(name) < 0.0))[LINE]
        if len(negative):
            yield Remark(
                f"Negative values of {name}",
                f"{path.name} has a negative {name} in {len(negative)} of "
                f"{plural(rows.height, 'row')} ({lines_words(negative)}). Ratios are undefined, "
                f"so answers are differences. {IF_MISSING}",
                at_top=True,
            )
            continue
        zero = rows.filter(is_number(name) & (as_number(name) == 0.0))[LINE]
        if 0 < len(zero) < FEW_ZEROS * rows.height and TIME_NAME.search(name):
            yield Remark(
                f"Zeros in {name}",
                f"{path.name} has a {name} of 0 in {len(zero)} of {plural(rows.height, 'row')} "
                f"({lines_words(zero)}). {IF_MISSING}",
                at_top=True,
            )


def scale_remarks(rows: pl.DataFrame, responses: Sequence[tuple[str, str]]) -> Iterator[Remark]:
    """Yield a remark on responses whose ratios have no meaning, because 0 is not nothing."""
    for name, unit in responses:
        if rows.select((is_number(name) & (as_number(name) <= 0.0)).any()).item():
            continue  # compared by differences
        remedy = next(
            (text for pattern, text in NO_RATIO.items() if pattern.search(unit or name)), None
        )
        if remedy:
            yield Remark(
                f"Ratios of {name}", f"Ratios of {name} have no meaning, {remedy}", at_top=True
            )


def repeated_remarks(
    path: Path, header: Sequence[str], rows: pl.DataFrame, block: str | None
) -> Iterator[Remark]:
    """Yield a remark on rows that equal an earlier row in every column.

    Without a column that tells runs apart, equal rows can be different runs.
    """
    if not any(name == block or RUN_COLUMN.fullmatch(name) for name in header):
        return
    repeated = rows.filter(~pl.struct(header).is_first_distinct())[LINE]
    if len(repeated):
        yield Remark(
            "Repeated rows",
            f"{path.name} has {plural(len(repeated), 'row')} equal to an earlier row in every "
            f"column ({lines_words(repeated)}). Each counts as a run of its own, so intervals are "
            "too narrow if the table has a run twice. Delete such rows.",
            at_top=True,
        )


def spelling_remarks(path: Path, rows: pl.DataFrame, factors: Sequence[str]) -> Iterator[Remark]:
    """Yield a remark for each factor with levels that differ only in case, spaces or hyphens."""
    for name in factors:
        if is_numeric(rows, name):
            continue  # -1 and 1
        spellings: dict[str, list[str]] = {}
        for text in rows[name].unique(maintain_order=True):
            spellings.setdefault(re.sub(r"[\s_-]+", "", text).casefold(), []).append(text)
        alike = [", ".join(texts) for key, texts in spellings.items() if key and len(texts) > 1]
        if alike:
            yield Remark(
                f"Levels of {name} with similar names",
                f"In {path.name}, these levels differ only in case, spaces or hyphens, and count "
                f"as different: {'; '.join(alike)}. If they are the same, write them alike and "
                "import again.",
                at_top=True,
            )


def unequal_remarks(
    rows: pl.DataFrame, factors: Sequence[str], responses: Sequence[str]
) -> Iterator[Remark]:
    """Yield a remark for each response that treatments lack in different shares of their rows."""
    for name in responses:
        treatments = rows.group_by(factors, maintain_order=True).agg(
            is_absent(name).sum().alias(LINE), pl.len().alias(_ROWS)
        )
        if (treatments[LINE] / treatments[_ROWS]).n_unique() > 1:
            places = [
                f"{missing} of {plural(count, 'row')} of {listed(list(levels))}"
                for *levels, missing, count in treatments.iter_rows()
                if missing
            ]
            yield Remark(
                f"Unequal missing values of {name}",
                f"{name} is missing in {listed_first(places, VALUES_MAX)}. Answers describe the "
                "other rows alone. If a value is missing because it was too large, such as the "
                "latency of a lost message, the answers are too favourable; then also import a "
                "column that counts the losses.",
                at_top=True,
            )


def lines_words(numbers: pl.Series) -> str:
    """Return the first line numbers as words."""
    unlisted = len(numbers) - LINES_MAX
    words = ", ".join(map(str, numbers.head(LINES_MAX))) + (
        f" and {unlisted} more" if unlisted > 0 else ""
    )
    return f"line {words}" if len(numbers) == 1 else f"lines {words}"
