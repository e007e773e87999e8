"""A paper's numbers beside those of its own data, and where every imported value comes from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.model import words
from wattwire.report.parts import Column, Fold, Marked, Section, Table, Text
from wattwire.store import ImportedCampaign

EXACT, BY_SEARCH, NEAR = "exact", "exact by search", "within 1 %"
DIFFERS, ABSENT = "differs", "cannot be computed"
VERDICTS = (EXACT, BY_SEARCH, NEAR, DIFFERS, ABSENT)
MARKS = {EXACT: "✓", BY_SEARCH: "✓ˢ", NEAR: "≈", DIFFERS: "✗", ABSENT: ""}
WEAK = "(✓)"
LEGEND = (
    "✓ the printed digits, by rounding or by cutting the rest off; (✓) the same, but so few digits "
    "are printed that it says little; ✓ˢ the printed digits by a search over other choices, whose "
    "number is told; ≈ within 1 %; ✗ differs; – cannot be computed from these data. Point at a "
    "number for its recipe."
)
OPEN_ROWS = 12
"""A table of more rows stays folded."""
LINES = r"\blines? \d+( to \d+)?"
"""Where in a table a value stood: each has its own, which is no other way to make it."""
WAYS_MAX = 3
"""So many ways to make a response's values are told in full."""
COLUMN = "column"
NUMBER = re.compile(r"[−-]?[0-9][0-9., ]*(e[+-]?[0-9]+)?( %)?")

Check = Mapping[str, Any]


def sections(evidence: Evidence) -> list[Section]:
    """The page's parts that only imported campaigns have."""
    reader = evidence.reader
    if not isinstance(reader, ImportedCampaign):
        return []
    checks = reader.checks()
    first = [_reproduced(checks)] if checks else []
    return [*first, *_findings(reader), _sources(reader)]


def in_short(evidence: Evidence) -> str:
    """How many printed numbers have which verdict; empty where none belongs to the campaign."""
    reader = evidence.reader
    checks = reader.checks() if isinstance(reader, ImportedCampaign) else []
    return counted(checks) if checks else ""


# -- printed numbers ------------------------------------------------------------------------------


def _reproduced(checks: Sequence[Check]) -> Section:
    part = Section("replication", "The paper's tables, reproduced")
    part.parts.append(Text(counted(checks), "lead"))
    part.parts.append(
        Text(
            "Each is compared with what the recipe named beside it gives, whatever recipe the "
            "campaign was imported by; the answers above rest on the latter.",
            "note",
        )
    )
    groups = list(dict.fromkeys(check["group"] for check in checks))
    part.parts.append(_tally(groups, checks))
    for at, group in enumerate(groups, 1):
        mine = [check for check in checks if check["group"] == group]
        title = ", ".join([group, *_shared(mine)])
        tables = _group(f"reproduced-{at}", title, mine)
        if len(tables[0].rows) > OPEN_ROWS and any(COLUMN in c["place"] for c in mine):
            part.parts.append(Fold(f"{title}: {_short(mine)}", tables))
        else:
            part.parts += tables
    part.parts.append(Fold("By which recipes", [_recipes(checks)]))
    return part


def counted(checks: Sequence[Check]) -> str:
    """How many numbers have which verdict, in a sentence."""
    found = Counter(check["verdict"] for check in checks)
    weak = sum(bool(check["weak"]) for check in checks)
    few = f" ({words.count(weak)} of the matches are weak: few digits)" if weak else ""
    told = f"{words.count(found[EXACT])} exact, {words.count(found[BY_SEARCH])} exact by search"
    return (
        f"Of {words.plural(len(checks), 'printed number')}: {told}{few}, "
        f"{words.count(found[NEAR])} within 1 %, {words.count(found[DIFFERS])} differ, "
        f"{words.count(found[ABSENT])} cannot be computed from these data."
    )


def _short(checks: Sequence[Check]) -> str:
    found = Counter(check["verdict"] for check in checks)
    told = [f"{words.count(found[v])} {v}" for v in VERDICTS if found[v]]
    return f"{words.plural(len(checks), 'number')}, {', '.join(told)}"


def _tally(groups: Sequence[str], checks: Sequence[Check]) -> Table:
    rows = []
    for group in groups:
        mine = [check for check in checks if check["group"] == group]
        found = Counter(check["verdict"] for check in mine)
        weak = sum(bool(check["weak"]) for check in mine)
        rows.append({"group": group, "all": len(mine), "weak": weak or None, **found})
    columns = [Column("group", "printed in"), Column("all", "numbers", "published")]
    for verdict in VERDICTS:
        title = f"{MARKS[verdict]} {verdict}".strip()
        columns.append(Column(verdict, title, "measured"))
    columns.insert(4, Column("weak", "weak among these", "measured"))
    return Table("reproduced", "Printed numbers by verdict", columns, rows, LEGEND)


def _group(key: str, title: str, checks: Sequence[Check]) -> list[Table]:
    """A printed table as it was laid out, or a list, and what is to be said on single numbers."""
    laid_out = all(COLUMN in check["place"] for check in checks)
    first = [_laid_out(key, title, checks)] if laid_out else _listed(key, title, checks)
    return [*first, *_remarks(key, title, checks)]


def _laid_out(key: str, title: str, checks: Sequence[Check]) -> Table:
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    names = _names(checks, without=(COLUMN, "table"))
    printed_columns = list(dict.fromkeys(check["place"][COLUMN] for check in checks))
    for check in checks:
        place = check["place"]
        at = tuple(str(place.get(name, "")) for name in names)
        row = rows.setdefault(at, dict(zip(names, at, strict=True)))
        row[f"{place[COLUMN]} printed"] = _printed(check["published"])
        row[f"{place[COLUMN]} here"] = _cell(check)
    columns = [Column(name, name) for name in names]
    for name in printed_columns:
        columns.append(Column(f"{name} printed", "printed", "published", group=name))
        columns.append(Column(f"{name} here", "here", "measured", group=name))
    return Table(key, title, columns, list(rows.values()))


def _listed(key: str, title: str, checks: Sequence[Check]) -> list[Table]:
    """Numbers of running text or of a table without columns, one a row."""
    names = _names(checks, without=("table",))
    alternatives = any(_differs_by_default(check) for check in checks)
    rows = []
    for check in checks:
        row: dict[str, Any] = {name: str(check["place"].get(name, "")) for name in names}
        row |= {"printed": _printed(check["published"]), "here": _cell(check)}
        row["default"] = _number(check["default_value"], check["published"])
        rows.append(row)
    columns = [Column(name, name.replace("_", " ")) for name in names]
    columns += [Column("printed", "printed", "published"), Column("here", "here", "measured")]
    if alternatives:
        columns.append(Column("default", "by the default recipe", "measured"))
    return [Table(key, title, columns, rows)]


def _remarks(key: str, title: str, checks: Sequence[Check]) -> list[Table]:
    """Numbers that are not plainly exact, one a row, with what is known of each."""
    told = [c for c in checks if c["verdict"] in (BY_SEARCH, NEAR, DIFFERS)]
    if not told:
        return []
    names = _names(checks, without=("table", "section"))
    rows = [
        {
            "where": ", ".join(str(c["place"][name]) for name in names if c["place"].get(name)),
            "printed": _printed(c["published"]),
            "here": _cell(c),
            "default": _number(c["default_value"], c["published"]),
            "verdict": _verdict(c),
            "remark": c["explanation"],
        }
        for c in told
    ]
    columns = [
        Column("where", "number"),
        Column("printed", "printed", "published"),
        Column("here", "here", "measured"),
        Column("default", "by the default recipe", "measured"),
        Column("verdict", "verdict"),
        Column("remark", "what is known"),
    ]
    return [Table(f"{key}-remarks", f"{title}: what is not plainly exact", columns, rows)]


def _names(checks: Sequence[Check], without: Sequence[str]) -> list[str]:
    """The keys of places, in order; those that are the same for all say nothing in a row."""
    names = dict.fromkeys(name for check in checks for name in check["place"])
    return [
        name
        for name in names
        if name not in without
        if len({check["place"].get(name) for check in checks}) > 1 or len(checks) == 1
    ]


def _shared(checks: Sequence[Check]) -> list[str]:
    """What all numbers of a group have in common, which no column then says."""
    names = dict.fromkeys(name for check in checks for name in check["place"])
    values = {name: {str(c["place"].get(name, "")) for c in checks} for name in names}
    return [
        text
        for name, (text, *others) in ((n, tuple(v)) for n, v in values.items())
        if not others and text and name not in ("table", "section") and len(checks) > 1
    ]


def _verdict(check: Check) -> str:
    told = str(check["verdict"])
    if told == BY_SEARCH:
        told += f" ({words.count(check['searched'])})"
    return f"{told}, weak" if check["weak"] else told


def _cell(check: Check) -> Marked:
    """Our number with its mark; pointing at it tells verdict, recipe and what is known."""
    verdict = check["verdict"]
    hint = "; ".join(
        text for text in (_verdict(check), check["recipe"], check["explanation"]) if text
    )
    mark = WEAK if check["weak"] and verdict == EXACT else MARKS[verdict]
    return Marked(check["value"], _number(check["value"], check["published"]), mark, verdict, hint)


def _differs_by_default(check: Check) -> bool:
    value, other = check["value"], check["default_value"]
    if value is None or other is None:
        return False
    return abs(value - other) > 1e-6 * max(abs(value), abs(other))


def _printed(text: str) -> str:
    """A printed number in the page's own way to write one, with all its digits."""
    mantissa, e, exponent = text.lower().partition("e")
    return f"{mantissa}·10{words.superscript(int(exponent))}" if e else text


def _number(value: float | None, printed: str) -> str:
    """Our number with two digits more than are printed, so that cut and rounded can be told."""
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
    found = Counter((c["recipe"], c["verdict"]) for c in checks if c["recipe"])
    by_recipe: dict[str, dict[str, Any]] = {}
    for (recipe, verdict), count in found.items():
        by_recipe.setdefault(recipe, {"recipe": recipe})[verdict] = count
    columns = [Column("recipe", "recipe")]
    columns += [Column(v, v, "measured") for v in VERDICTS[:4] if any(v in r for _, r in found)]
    rows = sorted(by_recipe.values(), key=lambda row: -row.get(EXACT, 0))
    return Table("recipes", "Recipes and what came of them", columns, rows)


# -- what the data show ---------------------------------------------------------------------------


def _findings(reader: ImportedCampaign) -> list[Section]:
    found = reader.findings()
    if not found:
        return []
    part = Section("about-the-data", "What the data show about themselves")
    for at, finding in enumerate(found, 1):
        rows = finding["rows"]
        is_open = 0 < len(rows) <= OPEN_ROWS
        note = finding["text"] if is_open else ""  # what stands before a fold is not said in it
        table = Table(f"about-{at}", finding["title"], _columns_of(rows), rows, note)
        if is_open:
            part.parts.append(table)
            continue
        part.parts.append(Text(f"{finding['title']}. {finding['text']}"))
        if rows:
            part.parts.append(
                Fold(f"{finding['title']}: {words.plural(len(rows), 'row')}", [table])
            )
    return [part]


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    names = dict.fromkeys(n for row in rows for n, value in row.items() if value is not None)
    return [Column(name, *_titled(name, [row.get(name) for row in rows])) for name in names]


def _titled(name: str, values: Sequence[Any]) -> tuple[str, str, str]:
    """Title, kind and unit of a finding's column; a name may end in its unit: `energy (J)`."""
    match = re.fullmatch(r"(.+) \(([^()]{1,6})\)", name)
    title, unit = (match[1], match[2]) if match else (name, "")
    known = [value for value in values if value is not None]
    kind = "text"
    if known and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in known):
        kind = "measured"
    elif known and all(isinstance(v, str) and NUMBER.fullmatch(v) for v in known):
        # Digits as written: those of the paper stand back, as everywhere.
        printed = title.startswith("printed") or title.endswith("printed")
        kind = "published" if printed else "measured"
    return title.replace("_", " "), kind, unit


# -- where values come from -----------------------------------------------------------------------


def _sources(reader: ImportedCampaign) -> Section:
    part = Section("sources", "Where the values come from")
    about = reader.document
    recipe = f", by the recipe “{about['recipe']}”" if about.get("recipe") else ""
    part.parts.append(
        Text(
            f"{words.plural(int(about['values']), 'value')} of {words.plural(about['runs'], 'run')}"
            f" from {words.plural(about['files'], 'file')}{recipe}. provenance.parquet names for "
            "each value its files, how many rows it rests on and how it was made."
        )
    )
    part.parts += _provenance(reader)
    part.parts.append(_set_aside(reader))
    return part


def _provenance(reader: ImportedCampaign) -> list[Any]:
    """Provenance by response: values, files, rows, and how they were made; ways where many."""
    used = reader.provenance().filter(pl.col("rows_used") > 0)
    used = used.with_columns(pl.col("how").str.replace(LINES, "its own line"))
    files = used.select("column", "files").explode("files")
    counted_files = dict(files.group_by("column").agg(pl.col("files").n_unique()).iter_rows())
    summed = used.group_by("column", maintain_order=True).agg(
        pl.len().alias("values"),
        pl.col("rows_used").sum(),
        pl.col("rows_left_out").sum(),
        pl.col("how").unique(maintain_order=True),
    )
    rows = []
    for name, values, rows_used, left_out, ways in summed.iter_rows():
        many = f"{words.count(len(ways))} ways, listed below; the first: {ways[0]}"
        rows.append(
            {
                "column": name,
                "values": values,
                "files": counted_files[name],
                "used": rows_used,
                "left": left_out,
                "how": "; ".join(ways) if len(ways) <= WAYS_MAX else many,
            }
        )
    columns = [
        Column("column", "response"),
        Column("values", "values", "measured"),
        Column("files", "files", "measured"),
        Column("used", "rows used", "measured"),
        Column("left", "rows left out", "measured"),
        Column("how", "how"),
    ]
    table = Table("provenance", "Values by response", columns, rows)
    many_ways = [name for name, *_, ways in summed.iter_rows() if len(ways) > WAYS_MAX]
    return [table, _ways(used.filter(pl.col("column").is_in(many_ways)))] if many_ways else [table]


def _ways(used: pl.DataFrame) -> Fold:
    """Every way in which values of these responses were made, with how many were."""
    counted_ways = (
        used.group_by("column", "how", maintain_order=True)
        .agg(pl.len().alias("values"), pl.col("run").first())
        .sort("column", maintain_order=True)
    )
    columns = [
        Column("column", "response"),
        Column("how", "how"),
        Column("values", "values", "measured"),
        Column("run", "as in run"),
    ]
    rows = counted_ways.rows(named=True)
    table = Table("provenance-ways", "How values were made", columns, rows)
    return Fold(f"How values were made: {words.plural(len(rows), 'way')}", [table])


def _set_aside(reader: ImportedCampaign) -> Table:
    files: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for one in reader.set_aside():
        files[one["why"]] += 1
        rows[one["why"]] += int(one["rows"])
    told = [
        {"why": why, "places": count, "rows": rows[why] or None}
        for why, count in files.most_common()
    ]
    columns = [
        Column("why", "why"),
        Column("places", "files", "measured"),
        Column("rows", "rows", "measured"),
    ]
    note = "set_aside.csv names each. Where no rows are counted, whole files were set aside."
    return Table("set-aside", "What no value comes from", columns, told, note)
