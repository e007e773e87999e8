"""Build the sections on reproduced numbers and provenance for imported campaigns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.report.page_parts import HeadLine, PagePart
from wattwire.report.parts import Column, Fold, Marked, Section, Table, Text
from wattwire.report.words.phrases import Phrase, Phrases, joined
from wattwire.store import ImportedCampaign

REMARKS_PLACE = 3
"""Position of the remarks that qualify every answer, directly below the title."""
PHRASES = Phrases(
    "replication",
    {
        "title": "The paper's tables, reproduced",
        "counts": (
            "Of {numbers:plural printed number}: {exact:count} exact, {by_search:count} exact by "
            "search{weak}, {near:count} within 1 %, {differ:count} differ, {absent:count} cannot "
            "be computed from these data."
        ),
        "weak": " (weak matches, with few digits: {weak:count})",
        "recipes_differ": (
            "Each number is compared with the result of a specific recipe, which may differ from "
            "the recipe of the import. The answers above use the recipe of the import."
        ),
        "by_match": "Printed numbers by match",
        "legend": (
            "✓: matches the printed digits, rounded or truncated. (✓): the same, but a weak "
            "match, because few digits are printed. ✓ˢ: matches the printed digits after a "
            "search over other choices (their number is given). ≈: within 1 %. ✗: differs. –: "
            "cannot be computed from these data. Hover over a number for its recipe."
        ),
        "folded": "{title}: {numbers:plural number}, {counts}",
        "count_of_match": "{numbers:count} {match}",
        "remarks_on_numbers": "{title}: remarks on single numbers",
        "searched": "{match} ({choices:count})",
        "weak_match": "{match}, weak",
        "recipes": "Matches by recipe",
        "remarks": "Remarks about the data",
        "remark": "{title}. {text}",
        "remark_rows": "{title}: {rows:plural row}",
        # Provenance.
        "sources": "Sources of the values",
        "values": (
            "{values:plural value} of {runs:plural run} come from {files:plural file}{recipe}. "
            "For each value, provenance.parquet gives the files, the number of rows used and the "
            "derivation."
        ),
        "values_recipe": ", by the recipe “{recipe}”",
        "own_line": "its own line",
        "many_ways": "{ways:count} recipes, listed below; the first is: {first}",
        "by_response": "Values by response",
        "ways": "How the values were derived",
        "ways_folded": "How the values were derived: {ways:plural recipe}",
        "excluded": "Excluded files and rows",
        "excluded_note": (
            "set_aside.csv lists the exclusions. An empty row count means that the whole file "
            "was excluded."
        ),
    },
)

EXACT, BY_SEARCH, NEAR = "exact", "exact by search", "within 1 %"
DIFFERS, ABSENT = "differs", "cannot be computed"
MATCHES = (EXACT, BY_SEARCH, NEAR, DIFFERS, ABSENT)
MARKS = {EXACT: "✓", BY_SEARCH: "✓ˢ", NEAR: "≈", DIFFERS: "✗", ABSENT: ""}
WEAK = "(✓)"
OPEN_ROWS = 12
_LINES = re.compile(r", lines? \d+( to \d+)?$")
"""End of the path of excluded rows, after the name of the file."""
"""Maximum number of rows of an expanded table."""
LINES = r"\blines? \d+( to \d+)?"
"""Line numbers in a source file. Recipes that differ only in line numbers are treated as equal."""
WAYS_MAX = 3
"""Maximum number of recipes in the row of a response."""
COLUMN = "column"
NUMBER = re.compile(r"[−-]?[0-9][0-9., ]*(e[+-]?[0-9]+)?( %)?")

Check = Mapping[str, Any]


def sections(evidence: Evidence) -> list[Section]:
    """Return the sections that only imported campaigns have.

    The result is empty for a measured campaign.
    """
    reader = evidence.reader
    if not isinstance(reader, ImportedCampaign):
        return []
    checks = reader.checks()
    first = [_reproduced(checks)] if checks else []
    return [*first, *_remarks(reader), _sources(reader)]


def in_short(evidence: Evidence) -> Phrase:
    """Return the number of printed numbers by kind of match.

    The result is "" if the campaign has no printed numbers.
    """
    reader = evidence.reader
    checks = reader.checks() if isinstance(reader, ImportedCampaign) else []
    return counted(checks) if checks else Phrase()


def at_top(evidence: Evidence) -> list[Phrase]:
    """Return the remarks on imported data that qualify every answer."""
    reader = evidence.reader
    remarks = reader.remarks() if isinstance(reader, ImportedCampaign) else []
    return [
        PHRASES("remark", title=remark["title"], text=remark["text"])
        for remark in remarks
        if remark.get("at_top")
    ]


# -- printed numbers ------------------------------------------------------------------------------


def _reproduced(checks: Sequence[Check]) -> Section:
    part = Section("replication", PHRASES("title"))
    part.parts.append(Text(counted(checks), "lead"))
    part.parts.append(Text(PHRASES("recipes_differ"), "note"))
    groups = list(dict.fromkeys(check["group"] for check in checks))
    part.parts.append(_tally(groups, checks))
    for number, group in enumerate(groups, 1):
        group_checks = [check for check in checks if check["group"] == group]
        title = ", ".join([group, *_shared(group_checks)])
        tables = _group_tables(f"reproduced-{number}", title, group_checks)
        if len(tables[0].rows) > OPEN_ROWS and any(COLUMN in c["place"] for c in group_checks):
            part.parts.append(Fold(_folded_title(title, group_checks), tables))
        else:
            part.parts += tables
    part.parts.append(Fold(PHRASES("recipes"), [_recipes(checks)]))
    return part


def counted(checks: Sequence[Check]) -> Phrase:
    """Return a sentence with the number of checks per kind of match."""
    counts = Counter(check["match"] for check in checks)
    weak = sum(bool(check["weak"]) for check in checks)
    return PHRASES(
        "counts",
        numbers=len(checks),
        exact=counts[EXACT],
        by_search=counts[BY_SEARCH],
        weak=PHRASES("weak", weak=weak) if weak else "",
        near=counts[NEAR],
        differ=counts[DIFFERS],
        absent=counts[ABSENT],
    )


def _folded_title(title: str, checks: Sequence[Check]) -> Phrase:
    counts = Counter(check["match"] for check in checks)
    matches = [
        PHRASES("count_of_match", numbers=counts[match], match=match)
        for match in MATCHES
        if counts[match]
    ]
    return PHRASES("folded", title=title, numbers=len(checks), counts=joined(matches, ", "))


def _tally(groups: Sequence[str], checks: Sequence[Check]) -> Table:
    rows = []
    for group in groups:
        group_checks = [check for check in checks if check["group"] == group]
        counts = Counter(check["match"] for check in group_checks)
        weak_count = sum(bool(check["weak"]) for check in group_checks)
        rows.append(
            {"group": group, "all": len(group_checks), "weak": weak_count or None, **counts}
        )
    columns = [Column("group", "printed in"), Column("all", "numbers", "published")]
    for match in MATCHES:
        title = f"{MARKS[match]} {match}".strip()
        columns.append(Column(match, title, "measured"))
    columns.insert(4, Column("weak", "weak among these", "measured"))
    return Table("reproduced", PHRASES("by_match"), columns, rows, PHRASES("legend"))


def _group_tables(key: str, title: str, checks: Sequence[Check]) -> list[Table]:
    """Return a printed table in its layout or as a list, and a table of its inexact numbers."""
    has_columns = all(COLUMN in check["place"] for check in checks)
    tables = (
        [_laid_out_table(key, title, checks)] if has_columns else _list_tables(key, title, checks)
    )
    return [*tables, *_inexact_table(key, title, checks)]


def _laid_out_table(key: str, title: str, checks: Sequence[Check]) -> Table:
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    names = _place_keys(checks, without=(COLUMN, "table"))
    printed_columns = list(dict.fromkeys(check["place"][COLUMN] for check in checks))
    for check in checks:
        place = check["place"]
        position = tuple(str(place.get(name, "")) for name in names)
        row = rows.setdefault(position, dict(zip(names, position, strict=True)))
        row[f"{place[COLUMN]} printed"] = _printed(check["published"])
        row[f"{place[COLUMN]} here"] = _cell(check)
    columns = [Column(name, name) for name in names]
    for name in printed_columns:
        columns.append(Column(f"{name} printed", "printed", "published", group=name))
        columns.append(Column(f"{name} here", "here", "measured", group=name))
    return Table(key, title, columns, list(rows.values()))


def _list_tables(key: str, title: str, checks: Sequence[Check]) -> list[Table]:
    """Return a table with one number per row, for a text or for a table without columns."""
    names = _place_keys(checks, without=("table",))
    has_alternatives = any(_differs_by_default(check) for check in checks)
    rows = []
    for check in checks:
        row: dict[str, Any] = {name: str(check["place"].get(name, "")) for name in names}
        row |= {"printed": _printed(check["published"]), "here": _cell(check)}
        row["default"] = _number(check["default_value"], check["published"])
        rows.append(row)
    columns = [Column(name, name.replace("_", " ")) for name in names]
    columns += [Column("printed", "printed", "published"), Column("here", "here", "measured")]
    if has_alternatives:
        columns.append(Column("default", "by the default recipe", "measured"))
    return [Table(key, title, columns, rows)]


def _inexact_table(key: str, title: str, checks: Sequence[Check]) -> list[Table]:
    """Return a table of the inexact numbers, one per row, with explanations.

    The result is empty if all numbers are exact.
    """
    inexact = [check for check in checks if check["match"] in (BY_SEARCH, NEAR, DIFFERS)]
    if not inexact:
        return []
    names = _place_keys(checks, without=("table", "section"))
    rows = [
        {
            "where": ", ".join(
                str(check["place"][name]) for name in names if check["place"].get(name)
            ),
            "printed": _printed(check["published"]),
            "here": _cell(check),
            "default": _number(check["default_value"], check["published"]),
            "match": _match_text(check),
            "remark": check["explanation"],
        }
        for check in inexact
    ]
    columns = [
        Column("where", "number"),
        Column("printed", "printed", "published"),
        Column("here", "here", "measured"),
        Column("default", "by the default recipe", "measured"),
        Column("match", "match"),
        Column("remark", "explanation"),
    ]
    remarks_title = PHRASES("remarks_on_numbers", title=title)
    return [Table(f"{key}-remarks", remarks_title, columns, rows)]


def _place_keys(checks: Sequence[Check], without: Sequence[str]) -> list[str]:
    """Return the keys whose values differ between the checks' places.

    For a single check, return all keys.
    """
    names = dict.fromkeys(name for check in checks for name in check["place"])
    return [
        name
        for name in names
        if name not in without
        if len({check["place"].get(name) for check in checks}) > 1 or len(checks) == 1
    ]


def _shared(checks: Sequence[Check]) -> list[str]:
    """Return the values of the places that all checks share."""
    names = dict.fromkeys(name for check in checks for name in check["place"])
    values = {name: {str(check["place"].get(name, "")) for check in checks} for name in names}
    return [
        text
        for name, (text, *others) in ((key, tuple(texts)) for key, texts in values.items())
        if not others and text and name not in ("table", "section") and len(checks) > 1
    ]


def _match_text(check: Check) -> str:
    match = str(check["match"])
    if match == BY_SEARCH:
        match = PHRASES("searched", match=match, choices=check["searched"])
    return PHRASES("weak_match", match=match) if check["weak"] else match


def _cell(check: Check) -> Marked:
    """Return our number with its mark. The tooltip contains match, recipe and explanation."""
    match = check["match"]
    hint = "; ".join(
        text for text in (_match_text(check), check["recipe"], check["explanation"]) if text
    )
    mark = WEAK if check["weak"] and match == EXACT else MARKS[match]
    return Marked(check["value"], _number(check["value"], check["published"]), mark, match, hint)


def _differs_by_default(check: Check) -> bool:
    value, default = check["value"], check["default_value"]
    if value is None or default is None:
        return False
    return abs(value - default) > 1e-6 * max(abs(value), abs(default))


def _printed(text: str) -> str:
    """Format a printed number with all its digits, in the notation of the page."""
    mantissa, e, exponent = text.lower().partition("e")
    return f"{mantissa}·10{words.superscript(int(exponent))}" if e else text


def _number(value: float | None, printed: str) -> str:
    """Format our number with two additional digits, which distinguish rounding from truncation."""
    if value is None:
        return words.MISSING
    mantissa, e, _ = printed.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    tiny = value != 0 and abs(value) < 1e-3 and (e or digits < 3)
    if e or tiny or abs(value) >= 1e9:
        text = f"{value:.{max(digits, 1) + 2}e}"
        front, _, exponent = text.partition("e")
        return f"{front}·10{words.superscript(int(exponent))}"
    return f"{value:.{digits + 2}f}"


def _recipes(checks: Sequence[Check]) -> Table:
    counts = Counter((check["recipe"], check["match"]) for check in checks if check["recipe"])
    by_recipe: dict[str, dict[str, Any]] = {}
    for (recipe, match), count in counts.items():
        by_recipe.setdefault(recipe, {"recipe": recipe})[match] = count
    columns = [Column("recipe", "recipe")]
    columns += [
        Column(match, match, "measured")
        for match in MATCHES[:4]
        if any(match == recorded for _, recorded in counts)
    ]
    rows = sorted(by_recipe.values(), key=lambda row: -row.get(EXACT, 0))
    return Table("recipes", PHRASES("recipes"), columns, rows)


# -- remarks ------------------------------------------------------------------------------------


def _remarks(reader: ImportedCampaign) -> list[Section]:
    remarks = reader.remarks()
    if not remarks:
        return []
    part = Section("about-the-data", PHRASES("remarks"))
    for number, remark in enumerate(remarks, 1):
        rows = remark["rows"]
        is_open = 0 < len(rows) <= OPEN_ROWS
        note = remark["text"] if is_open else ""  # otherwise, the text is above the fold
        table = Table(f"about-{number}", remark["title"], _columns_of(rows), rows, note)
        if is_open:
            part.parts.append(table)
            continue
        title = remark["title"]
        part.parts.append(Text(PHRASES("remark", title=title, text=remark["text"])))
        if rows:
            part.parts.append(Fold(PHRASES("remark_rows", title=title, rows=len(rows)), [table]))
    return [part]


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    return [Column(name, *_heading(name, [row.get(name) for row in rows])) for name in names]


def _heading(name: str, values: Sequence[Any]) -> tuple[str, str, str]:
    """Parse the heading of a remark's column, such as `energy (J)`, into title, kind and unit."""
    match = re.fullmatch(r"(.+) \(([^()]{1,6})\)", name)
    title, unit = (match[1], match[2]) if match else (name, "")
    known = [value for value in values if value is not None]
    kind = "text"
    if known and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in known
    ):
        kind = "measured"
    elif known and all(isinstance(value, str) and NUMBER.fullmatch(value) for value in known):
        # Digits are as written. Published numbers have the same style in every table.
        printed = title.startswith("printed") or title.endswith("printed")
        kind = "published" if printed else "measured"
    return title.replace("_", " "), kind, unit


# -- provenance ----------------------------------------------------------------------------------


def _sources(reader: ImportedCampaign) -> Section:
    part = Section("sources", PHRASES("sources"))
    about = reader.document
    recipe = about.get("recipe")
    part.parts.append(
        Text(
            PHRASES(
                "values",
                values=int(about["values"]),
                runs=about["runs"],
                files=about["files"],
                recipe=PHRASES("values_recipe", recipe=recipe) if recipe else "",
            )
        )
    )
    part.parts += _provenance(reader)
    part.parts.append(_excluded_table(reader))
    return part


def _provenance(reader: ImportedCampaign) -> list[Any]:
    """Return the table of provenance by response, and a fold for responses with many recipes."""
    used = reader.provenance().filter(pl.col("rows_used") > 0)
    used = used.with_columns(pl.col("how").str.replace(LINES, PHRASES("own_line")))
    files = used.select("column", "files").explode("files")
    counted_files = dict(files.group_by("column").agg(pl.col("files").n_unique()).iter_rows())
    by_response = used.group_by("column", maintain_order=True).agg(
        pl.len().alias("values"),
        pl.col("rows_used").sum(),
        pl.col("rows_left_out").sum(),
        pl.col("how").unique(maintain_order=True),
    )
    rows = []
    for name, values, rows_used, left_out, ways in by_response.iter_rows():
        rows.append(
            {
                "column": name,
                "values": values,
                "files": counted_files[name],
                "used": rows_used,
                "left": left_out,
                "how": "; ".join(ways)
                if len(ways) <= WAYS_MAX
                else PHRASES("many_ways", ways=len(ways), first=ways[0]),
            }
        )
    columns = [
        Column("column", "response"),
        Column("values", "values", "measured"),
        Column("files", "files", "measured"),
        Column("used", "rows used", "measured"),
        Column("left", "rows excluded", "measured"),
        Column("how", "derivation"),
    ]
    table = Table("provenance", PHRASES("by_response"), columns, rows)
    many_ways = [name for name, *_, ways in by_response.iter_rows() if len(ways) > WAYS_MAX]
    return [table, _ways(used.filter(pl.col("column").is_in(many_ways)))] if many_ways else [table]


def _ways(used: pl.DataFrame) -> Fold:
    """Return a fold with all recipes of the responses, and the number of values of each."""
    counted_ways = (
        used.group_by("column", "how", maintain_order=True)
        .agg(pl.len().alias("values"), pl.col("run").first())
        .sort("column", maintain_order=True)
    )
    columns = [
        Column("column", "response"),
        Column("how", "derivation"),
        Column("values", "values", "measured"),
        Column("run", "as in run"),
    ]
    rows = counted_ways.rows(named=True)
    table = Table("provenance-ways", PHRASES("ways"), columns, rows)
    return Fold(PHRASES("ways_folded", ways=len(rows)), [table])


def _excluded_table(reader: ImportedCampaign) -> Table:
    files: dict[str, set[str]] = {}
    row_counts: Counter[str] = Counter()
    for excluded in reader.set_aside():
        file = _LINES.sub("", excluded["path"])
        files.setdefault(excluded["why"], set()).add(file)
        row_counts[excluded["why"]] += int(excluded["rows"])
    most_first = sorted(files.items(), key=lambda item: -len(item[1]))
    table_rows = [
        {"why": why, "places": len(names), "rows": row_counts[why] or None}
        for why, names in most_first
    ]
    columns = [
        Column("why", "reason"),
        Column("places", "files", "measured"),
        Column("rows", "rows", "measured"),
    ]
    note = PHRASES("excluded_note")
    return Table("set-aside", PHRASES("excluded"), columns, table_rows, note)


PART = PagePart(
    60,
    lambda data: sections(data.evidence),
    lambda data: [
        *(HeadLine(REMARKS_PLACE, text) for text in at_top(data.evidence)),
        HeadLine(50, in_short(data.evidence)),
    ],
)
